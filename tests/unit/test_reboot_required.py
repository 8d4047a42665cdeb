# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a machine needs a reboot, by its distribution's own sign."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

TOOLS = ("sort", "paste")


class Machine:
    """A root of its own, and a PATH on which there is no more than the script needs."""

    def __init__(self, folder: Path, script: Path) -> None:
        self.root = folder / "root"
        self._bin = folder / "bin"
        self._script = script
        self._bin.mkdir()
        for tool in TOOLS:
            found = shutil.which(tool)
            assert found
            (self._bin / tool).symlink_to(found)

    def file(self, path: str, text: str = "") -> None:
        target = self.root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def program(self, name: str, text: str, code: int, *, wants: str = "-r") -> None:
        """One that says something and exits, where it is called as it should be."""
        program = self._bin / name
        program.write_text(f'#!/bin/sh\n[ "$*" = "{wants}" ] || exit 99\necho "{text}"\nexit {code}\n')
        program.chmod(0o755)

    def says(self) -> str:
        done = subprocess.run(
            ["/bin/sh", str(self._script)],
            env={"PATH": str(self._bin), "HOLDFAST_ROOT": str(self.root)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.count("\n") == 1, "one line, whatever others say"
        return done.stdout.rstrip("\n")


@pytest.fixture
def machine(tmp_path, checkout):
    return Machine(tmp_path, checkout / "roles/rolling_reboot/files/reboot_required.sh")


def test_debian_without_the_sign(machine):
    machine.file("/etc/debian_version", "12.1")
    assert machine.says() == "no"


@pytest.mark.parametrize("folder", ["/run", "/var/run"])
def test_debian_with_the_sign(machine, folder):
    machine.file("/etc/debian_version", "12.1")
    machine.file(f"{folder}/reboot-required", "*** System restart required ***")
    assert machine.says() == f"yes: {folder}/reboot-required"


def test_debian_names_the_packages_once(machine):
    machine.file("/etc/debian_version", "12.1")
    machine.file("/run/reboot-required")
    machine.file("/run/reboot-required.pkgs", "linux-image\nlibc6\nlinux-image\n")
    assert machine.says() == "yes: /run/reboot-required (by libc6 linux-image)"


def test_debian_does_not_ask_needs_restarting(machine):
    machine.file("/etc/debian_version", "12.1")
    machine.program("needs-restarting", "Reboot is required", 1)
    assert machine.says() == "no"


def test_the_sign_counts_on_whatever_system(machine):
    machine.file("/run/reboot-required")
    machine.program("needs-restarting", "No", 0)
    assert machine.says() == "yes: /run/reboot-required"


@pytest.mark.parametrize(("name", "wants"), [("needs-restarting", "-r"), ("dnf", "-q needs-restarting -r")])
@pytest.mark.parametrize(
    ("code", "said"),
    [
        (0, "no"),
        (1, "yes: needs-restarting -r: Core libraries changed: kernel Reboot is required"),
        (2, "unknown: needs-restarting -r exited 2: Core libraries changed: kernel Reboot is required"),
    ],
)
def test_red_hat(machine, name, wants, code, said):
    machine.program(name, "Core libraries changed: kernel\nReboot is required", code, wants=wants)
    assert machine.says() == said


def test_needs_restarting_itself_goes_before_the_plugin(machine):
    machine.program("needs-restarting", "quiet", 0)
    machine.program("dnf", "no such command", 1, wants="-q needs-restarting -r")
    assert machine.says() == "no"


def test_dnf_without_the_plugin_is_unknown(machine):
    machine.program("dnf", "No such command: needs-restarting.", 1, wants="-q needs-restarting -r")
    assert machine.says().startswith("unknown: needs-restarting -r exited 1: No such command")


def test_neither_is_unknown_and_says_what_is_missing(machine):
    said = machine.says()
    assert said.startswith("unknown: ")
    assert "dnf-utils" in said
