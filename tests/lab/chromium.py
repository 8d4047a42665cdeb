# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A headless Chromium that opens a page, says what went wrong in it, and takes pictures. Over its debugging pipe."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from . import packages
from .commands import direct_environment
from .errors import LabError
from .paths import Paths

# What the page itself asks for: its own file, and data that it contains.
_OWN = ("file:", "data:", "about:")
_LIBRARIES = ("usr/lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu/pulseaudio", "lib/x86_64-linux-gnu")


class Chromium:
    """One browser with one tab.

    Attributes:
        errors: What the browser reported since the last page was opened: errors of the console, and exceptions.
        requests: The outside addresses that the page asked for.
    """

    def __init__(self) -> None:
        binary = packages.program(Paths.default().cache, "chromium", "usr/lib/chromium/chromium", whole=True)
        unpacked = binary.parents[3]
        libraries = os.pathsep.join(str(unpacked / folder) for folder in _LIBRARIES if unpacked != Path("/"))
        self._folder = tempfile.TemporaryDirectory(prefix="holdfast-chromium-", ignore_cleanup_errors=True)
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        self._process = subprocess.Popen(
            # Its pipe is on the file descriptors 3 and 4. The shell puts them there.
            ["bash", "-c", f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}', "bash", str(binary), *self._options()],
            pass_fds=(theirs_in, theirs_out),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**direct_environment(), "HOME": self._folder.name, "LD_LIBRARY_PATH": libraries},
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._rest = b""
        self._number = 0
        self._session = ""
        self.errors: list[str] = []
        self.requests: list[str] = []
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._ask(f"{domain}.enable")

    def _options(self) -> list[str]:
        return [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-extensions",
            "--remote-debugging-pipe",
            f"--user-data-dir={self._folder.name}/profile",
            # Whatever a page asks for, nothing leaves the machine.
            "--proxy-server=127.0.0.1:9",
            "--proxy-bypass-list=<-loopback>",
        ]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the browser."""
        self._process.terminate()
        self._process.wait()
        os.close(self._in)
        os.close(self._out)
        self._folder.cleanup()

    def open(self, page: Path, width: int, height: int = 900, *, dark: bool = False, media: str = "screen") -> None:
        """Open a page, and wait until it is loaded.

        Args:
            width: Width of the screen in pixels.
            dark: Whether the reader prefers the dark style.
            media: ``screen`` or ``print``.
        """
        self.errors, self.requests = [], []
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._ask("Emulation.setEmulatedMedia", media=media, features=[scheme])
        self._resize(width, height)
        self._ask("Page.navigate", url=page.resolve().as_uri())
        while self._read().get("method") != "Page.loadEventFired":
            pass

    def picture(self, to: Path) -> None:
        """Save the screen as PNG."""
        to.write_bytes(base64.b64decode(self._ask("Page.captureScreenshot", format="png")["data"]))

    def whole(self, width: int) -> None:
        """Make the screen as high as the page."""
        self._resize(width, int(self.value("Math.ceil(document.documentElement.getBoundingClientRect().height)")))

    def value(self, script: str) -> Any:
        """Return the value of an expression in the page."""
        answer = self._ask("Runtime.evaluate", expression=script, returnByValue=True)
        if "exceptionDetails" in answer:
            raise LabError(f"{script}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def _resize(self, width: int, height: int) -> None:
        self._ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def _ask(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        number = self._number
        session = {"sessionId": self._session} if self._session else {}
        message = {"id": number, "method": method, "params": params, **session}
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == number:
                if "error" in answer:
                    raise LabError(f"{method}: {answer['error']}")
                return dict(answer["result"])

    def _read(self) -> dict[str, Any]:
        """Return the next message. Keep what went wrong, and what was asked for."""
        while b"\0" not in self._rest:
            chunk = os.read(self._in, 1 << 20)
            if not chunk:
                raise LabError("Chromium ended")
            self._rest += chunk
        line, _null, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        params = message.get("params") or {}
        if message.get("method") == "Network.requestWillBeSent":
            url = params["request"]["url"]
            if not url.startswith(_OWN):
                self.requests.append(url)
        elif message.get("method") == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.errors.append(params["entry"]["text"])
        elif message.get("method") == "Runtime.exceptionThrown":
            self.errors.append(str(params["exceptionDetails"]))
        elif message.get("method") == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.errors.append(str(params["args"]))
        return message
