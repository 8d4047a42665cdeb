# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes the pictures of docs/images from real runs: the demo, a run with a hold and a failure, and a failover."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
OUT = ROOT / "build" / "demo"
IMAGES = ROOT / "docs" / "images"
TEST = "tests/integration/test_report_page.py"
# Of the terminal.
WIDTH, HEIGHT = 110, 30
# The recording begins with this line. What is above it tells how to use the lab.
FIRST = "a Deployment of 6 replicas"
sys.path[:0] = [str(HERE.parent), str(ROOT / "build/collections")]

from ansible_collections.holdfast.kubernetes.plugins.module_utils._report import (  # noqa: E402
    chart_rules,
    content_rules,
)
from lab import Lab  # noqa: E402
from lab.chromium import Chromium  # noqa: E402
from lab.terminal import Frame, Terminal, recording  # noqa: E402


def begun(frames: list[Frame]) -> list[Frame]:
    """Return the frames from the first line on."""
    return frames[next(number for number, frame in enumerate(frames) if FIRST in frame.text) :]


def shown(frame: Frame) -> Frame:
    """Return a frame without what is above the first line."""
    first = next((number for number, line in enumerate(frame.lines) if FIRST in line), 0)
    return replace(frame, lines=frame.lines[first:])


def main() -> int:
    IMAGES.mkdir(exist_ok=True)
    print("the demo in a terminal ...", flush=True)
    # It shows nothing of how the lab starts.
    Lab.default().up(3, 0)
    terminal = Terminal([sys.executable, str(HERE / "demo.py")], WIDTH, HEIGHT, dict(os.environ), ROOT)
    code = terminal.follow()
    if code:
        print(terminal.frames[-1].text)
        return code
    (IMAGES / "demo.svg").write_text(recording([*map(shown, begun(terminal.frames))], WIDTH, HEIGHT))
    report = json.loads((OUT / "playbook.json").read_text())
    title = "make demo: three nodes are rebooted, one at a time; node-2 is held until its application releases it"
    timeline = content_rules.timeline_of(report)
    (IMAGES / "demo-timeline.svg").write_text(chart_rules.picture(timeline, title))
    with Chromium() as browser:
        browser.open(OUT / "report.html", 1000, 1050)
        browser.picture(IMAGES / "report-demo.png")
    environment = {**os.environ, "HOLDFAST_PICTURES": str(IMAGES)}
    command = [sys.executable, "-m", "pytest", TEST, "-q", "-n0"]
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
