# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One new boot ID on a real node, even if the connection repeats the command or delivers it late."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from integration.support.history import History
from integration.support.realnodes import boot_id, member, noted_reboot

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths

pytestmark = pytest.mark.nodes
PATIENCE = 300

# The command asks for the reboot, and the connection is cut before the answer: ssh ends with 255.
CUT = """/usr/bin/systemctl "$@"
pid=$$
while [ "$(cat /proc/$pid/comm)" != sshd ]; do pid=$(awk '/^PPid:/ {print $2}' /proc/$pid/status); done
kill -9 $pid"""


def watched(rolling):
    return History(rolling.world.kubeconfig, group=rolling.group, selector=rolling.selector)


@pytest.mark.parametrize("name", ["node-1"])
def test_a_connection_that_repeats_what_it_sends(lab, world, rolling, name):
    with member(world, lab, name) as variables, noted_reboot(lab, name, CUT):
        before = boot_id(lab, name)
        with watched(rolling) as history:
            done = rolling.run({name: {**variables, "ansible_ssh_retries": 5}})

        # No slot is given back while its node goes down.
        assert all(moment.unavailable <= moment.slots for moment in history.moments)
        assert done.good().results == {name: "rebooted"}
        assert history.boot_ids == {name: [before, boot_id(lab, name)]}
        rolling.assert_nothing_left([name])


class PausedSsh:
    """An ssh that stops just before it sends the reboot."""

    def __init__(self, folder: Path) -> None:
        self.reached, self.go, self.path = folder / "reached", folder / "go", folder / "ssh"
        self.path.write_text(
            "#!/bin/sh\n"
            "case \"$*\" in *'too late, nothing was done'*)\n"
            f"  touch {shlex.quote(str(self.reached))}\n"
            f"  while [ ! -e {shlex.quote(str(self.go))} ]; do sleep 0.1; done;;\n"
            "esac\n"
            'exec ssh "$@"\n'
        )
        self.path.chmod(0o755)


@pytest.fixture
def ssh(tmp_path):
    return PausedSsh(tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("name", ["node-1"])
def test_a_controller_that_is_paused_between_the_look_and_the_act(world, rolling, freeze, ssh, name):
    """Meanwhile the node is rebooted by other means; when the controller continues, nothing happens to the node."""
    lab = rolling.lab
    with member(world, lab, name) as variables:
        before = boot_id(lab, name)
        with watched(rolling) as history:
            run = rolling.start({name: {**variables, "ansible_ssh_executable": str(ssh.path)}})
            run.until(ssh.reached.exists, "the act", PATIENCE)
            with freeze(run.pid):
                # The connection ends with the node.
                lab.ssh(name, "systemd-run --on-active=1 systemctl reboot")
                world.until(paths.NODES, name, lambda item: item["status"]["nodeInfo"]["bootID"] != before)
                lab.wait_ready([name])
                other = boot_id(lab, name)
                ssh.go.touch()
            done = run.done(PATIENCE)
        # By the boot ID, the run resumes a node that was rebooted.
        assert done.results == {name: "rebooted"}, done.output
        assert history.boot_ids == {name: [before, other]}
        assert boot_id(lab, name) == other
        rolling.assert_nothing_left([name])
