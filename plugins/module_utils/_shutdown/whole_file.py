# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that are replaced as a whole or not at all. Runs on the node."""

from __future__ import annotations

import errno
import os
import tempfile
from contextlib import suppress

from .._api.errors import HoldfastError, Refused


def read(path: str) -> str | None:
    """Return the text of a file, unchanged; None if there is none.

    Raises:
        Refused: It is not UTF-8 text.
    """
    try:
        with open(path, "rb") as file:
            return file.read().decode("utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise Refused(f"{path} is not text in UTF-8: {error}. Convert it.", path=path) from error
    except OSError as error:
        raise HoldfastError(f"{path} can't be read: {error.strerror}.", path=path) from error


def write(path: str, text: str, mode: int = 0o644) -> None:
    """Replace a text; a concurrent reader sees the old one or the new one. The new one survives a power cut.

    Owner, mode and labels stay the same, and a link still points to the same place.

    Args:
        path: The file.
        text: The new content.
        mode: Mode of a new file.
    """
    target = os.path.realpath(path)
    folder = os.path.dirname(target)
    new = not os.path.isdir(folder)
    try:
        os.makedirs(folder, mode=0o755, exist_ok=True)
        # Neither the kubelet nor logind reads a file with this name.
        descriptor, draft = tempfile.mkstemp(prefix=".holdfast-", dir=folder)
    except OSError as error:
        raise _failed(path, error) from error
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(text.encode())
            file.flush()
            _look_like(target, descriptor, mode)
            os.fsync(descriptor)
        os.replace(draft, target)
        for place in [folder, *([os.path.dirname(folder)] if new else [])]:
            _sync(place)
    except OSError as error:
        raise _failed(path, error) from error
    finally:
        with suppress(FileNotFoundError):
            os.unlink(draft)


def remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise _failed(path, error) from error


def remove_folder(path: str) -> None:
    """Remove a directory if it is empty."""
    with suppress(OSError):
        os.rmdir(path)


def _sync(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some file systems can't sync a directory.
        if error.errno != errno.EINVAL:
            raise
    finally:
        os.close(descriptor)


def _look_like(path: str, descriptor: int, mode: int) -> None:
    try:
        old = os.stat(path)
    except FileNotFoundError:
        os.fchmod(descriptor, mode)
        return
    os.fchown(descriptor, old.st_uid, old.st_gid)
    os.fchmod(descriptor, old.st_mode & 0o7777)
    # SELinux labels and access control lists.
    with suppress(OSError):
        for name in os.listxattr(path):
            os.setxattr(descriptor, name, os.getxattr(path, name))


def _failed(path: str, error: OSError) -> HoldfastError:
    return HoldfastError(f"{path} can't be written: {error.strerror}. Check its file system.", path=path)
