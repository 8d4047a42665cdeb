# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The user's files of tasks, checked before anything changes.

Ansible reads such a file only when it includes it: in the middle of the work on a node. If the file is missing, the
host drops out without a reason. If it is invalid, the whole playbook ends at once, and all nodes stay as they are.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ansible.errors import AnsibleError
from ansible.parsing.mod_args import ModuleArgsParser

_BLOCKS = ("block", "rescue", "always")


def names(options: Mapping[str, Mapping[str, Any]], prefix: str) -> list[str]:
    """Return the names of the variables that are files of tasks."""
    texts = [name for name, option in options.items() if option.get("type", "str") in ("str", "path", "list")]
    return [name for name in texts if name.endswith("_tasks") or name == f"{prefix}notify"]


def problems(files: Iterable[tuple[str, str]], loader: Any, task: Any) -> list[str]:
    """Return what is wrong with files of tasks.

    Args:
        files: Each file, with the name of its variable.
        loader: Ansible's loader of files.
        task: The task of the role that includes the files. It says where they are.
    """
    found = ((f"{name}: {why}") for name, file in files for why in [_problem(file, loader, task)] if why)
    return list(dict.fromkeys(found))


def _problem(file: str, loader: Any, task: Any) -> str:
    """Return what is wrong with one file; empty if nothing is."""
    # As include_tasks finds it.
    path = loader.path_dwim_relative(task._role._role_path, "tasks", file, is_role=True)
    if not os.path.isfile(path):
        return f"there is no file {file}. Give its full path, for example with playbook_dir in front."
    try:
        content = loader.load_from_file(path)
        if content is not None and not isinstance(content, list):
            return f"{file} is not a list of tasks."
        for item, collections in _tasks(content or [], task.collections):
            ModuleArgsParser(item, collection_list=collections).parse()
    except AnsibleError as error:
        return f"{file} can't be used: {str(error).strip().rstrip('.')}."
    return ""


def _tasks(content: Sequence[Any], collections: Any) -> Iterator[tuple[dict[str, Any], Any]]:
    """Yield the tasks whose module is known before they run, also those in blocks, each with its collections."""
    if not isinstance(content, list):
        raise AnsibleError(f"{content!r} is not a list of tasks")
    for item in filter(None, content):
        if not isinstance(item, dict):
            raise AnsibleError(f"{item!r} is not a task")
        given = item.get("collections") or []
        own = [*([given] if isinstance(given, str) else given), "ansible.legacy"] if given else collections
        if any(name in item for name in _BLOCKS):
            for name in _BLOCKS:
                yield from _tasks(item.get(name) or [], own)
        elif not any("{{" in str(item.get(name)) for name in ("action", "local_action")):
            yield item, own
