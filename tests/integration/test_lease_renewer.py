# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The renewer as a process, while its controller is stopped and killed, with a real API server."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from integration.support.group import until

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._budget import run_rules, runs
from lab.patience import PATIENCE

RENEWER = "ansible_collections.holdfast.kubernetes.plugins.plugin_utils._lease_renewer"
RUN = "ansible_collections.holdfast.kubernetes.plugins.module_utils._budget.runs"
# The interval in seconds; otherwise a quarter of a minute.
OFTEN = 0.3
PROGRAM = f"from {RUN} import RENEW_EVERY; from {RENEWER} import runs, main; runs.RENEW_EVERY = {OFTEN}; main()"
# A controller whose worker starts the renewer and ends, as reboot_begin's does.
CONTROLLER = f"""
import json, os, subprocess, sys, time
worker = "import json, sys; from {RENEWER} import start; start(*json.loads(sys.argv[1]))"
subprocess.run([sys.executable, "-c", worker, sys.argv[1]], check=True)
print("started", flush=True)
time.sleep(600)
"""


class Watched:
    """A controller, its run's Lease and, once started, the renewer."""

    def __init__(self, world):
        self.world = world
        self.run = f"renewer-{world.namespace}"
        self.path = paths.lease("holdfast", run_rules.lease_name(self.run))
        world.made.objects.append(self.path)
        runs.renew(world.cluster, self.run, "another")
        self.controller = subprocess.Popen(["sleep", "600"])
        order = {
            "options": {"kubeconfig": world.kubeconfig},
            "run": self.run,
            "pid": self.controller.pid,
            "alertmanager": None,
            "lasts": False,
        }
        self.renewer = subprocess.Popen([sys.executable, "-c", PROGRAM], env=environment(), stdin=subprocess.PIPE)
        self.renewer.stdin.write(json.dumps(order).encode())
        self.renewer.stdin.close()

    @property
    def sign(self):
        return self.world.cluster.get(self.path)["spec"]["renewTime"]

    def until_renewed(self):
        before = self.sign
        until(lambda: self.sign != before, "the Lease is not renewed")

    def close(self):
        for process in (self.renewer, self.controller):
            process.kill()
            process.wait()


def is_stopped(pid):
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def environment():
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


@pytest.fixture
def watched(world):
    made = Watched(world)
    yield made
    made.close()


def test_renews_is_silent_while_the_controller_is_stopped_and_ends_with_it(watched):
    watched.until_renewed()
    watched.controller.send_signal(signal.SIGSTOP)
    until(lambda: is_stopped(watched.controller.pid), "it is not stopped")
    signs = [watched.sign]
    for _round in range(8):
        time.sleep(OFTEN)
        signs.append(watched.sign)
    # One that was under way may still have arrived.
    assert len(set(signs)) <= 2, signs
    assert watched.renewer.poll() is None

    watched.controller.send_signal(signal.SIGCONT)
    watched.until_renewed()

    watched.controller.kill()
    watched.controller.wait()
    assert watched.renewer.wait(PATIENCE) == 0
    before = watched.sign
    time.sleep(4 * OFTEN)
    assert watched.sign == before


def test_ends_when_the_run_has_ended_and_makes_no_lease_again(watched):
    watched.until_renewed()
    runs.end(watched.world.cluster, watched.run)

    assert watched.renewer.wait(PATIENCE) == 0
    assert watched.world.cluster.find(watched.path) is None


def renewers(group):
    """Process ids of the renewers of a process group."""
    found = subprocess.run(["ps", "-wweo", "pgid=,pid=,args="], check=True, capture_output=True, text=True).stdout
    lines = (line.split(maxsplit=2) for line in found.splitlines())
    return {int(pid) for pgid, pid, command in lines if int(pgid) == group and f"-m {RENEWER}" in command}


def test_a_worker_starts_a_renewer_that_outlives_it_and_ends_with_the_controller(world):
    run = f"renewer-{world.namespace}"
    world.made.objects.append(paths.lease("holdfast", run_rules.lease_name(run)))
    runs.renew(world.cluster, run, "another")
    arguments = json.dumps([{"kubeconfig": world.kubeconfig}, run])
    command = [sys.executable, "-c", CONTROLLER, arguments]
    controller = subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, start_new_session=True)
    try:
        assert controller.stdout.readline() == b"started\n"
        until(lambda: renewers(controller.pid), "there is no renewer")
        controller.kill()
        controller.wait()
        until(lambda: not renewers(controller.pid), "it lives on")
    finally:
        controller.kill()
        controller.wait()
        controller.stdout.close()
