# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""graceful_shutdown_info on real nodes: tests cause every problem, and the module finds and names it."""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import random
from typing import Any

import pytest
import yaml
from integration.support.agent import until
from integration.support.world import IMAGE

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import HoldfastError
from ansible_collections.holdfast.kubernetes.plugins.module_utils._shutdown import grace_rules as grace
from ansible_collections.holdfast.kubernetes.plugins.module_utils._shutdown import kubelet_files
from lab.patience import PATIENCE

pytestmark = pytest.mark.nodes

# systemd 252 and systemd 257.
OLD, NEW = "node-1", "node-2"
INFO = "holdfast.kubernetes.graceful_shutdown_info"
CONFIG, FOLDER = "/var/lib/kubelet/config.yaml", "/etc/systemd/logind.conf.d"
# As unattended-upgrades of Ubuntu has it; it sorts after the kubelet's own.
OTHERS = "/usr/lib/systemd/logind.conf.d/unattended-upgrades-logind-maxdelay.conf"
STATE = "/var/lib/kubelet/graceful_node_shutdown_state"
KEPT = "/var/lib/holdfast-test"
OBJECT = "org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.login1.Manager"

SHELL = rf"""
set -eu
until_() {{ for _try in $(seq 1000); do if "$@"; then return; fi; sleep 0.2; done; echo "too late: $*" >&2; exit 1; }}
limited() {{ [ "$(busctl get-property {OBJECT} InhibitDelayMaxUSec)" = "t ${{1}}000000" ]; }}
reload() {{ systemctl kill --signal=HUP systemd-logind; until_ limited "$1"; }}
pid() {{ systemctl show --property=MainPID --value kubelet; }}
locked() {{ busctl call {OBJECT} ListInhibitors | grep -q "\"kubelet\" .*\"delay\" 0 $(pid)\b"; }}
restart() {{ systemctl reset-failed kubelet || :; systemctl restart kubelet; until_ locked; }}
said() {{ journalctl --no-pager --unit=kubelet --since="$1" | grep -q "$2"; }}
"""


class Node:
    """A real node whose kubelet belongs to the test for a while."""

    def __init__(self, name, lab, ansible):
        self.name, self.lab, self._ansible = name, lab, ansible

    def ssh(self, command):
        return self.lab.ssh(self.name, command)

    def tasks(self, *tasks):
        results, output = self._ansible.tasks(list(tasks), f"--inventory={self.lab.inventory}", hosts=self.name)
        assert "UNREACHABLE" not in output
        assert not any(result.get("failed") for result in results), output
        return [result for result in results if "problems" in result]

    def look(self):
        (found,) = self.tasks(info())
        return found

    def keep(self):
        """Save everything that a test changes, and start with logind's files as the kubelet wrote them."""
        self.lab.wait_ready([self.name])
        # If a killed run left a copy, that copy is the original state.
        self.ssh(f"[ -d {KEPT} ] || {{ mkdir -p {KEPT} {FOLDER} && cp -a {CONFIG} {FOLDER} {KEPT}/; }}")
        self.ssh(f"rm -f {FOLDER}/* {OTHERS} {STATE}")
        self.configure(shutdownGracePeriod="10s", shutdownGracePeriodCriticalPods="4s")
        self.ssh(f"{SHELL}\nreload 5; restart")

    def give_back(self):
        # A failed test may have left it off, or with a kubelet that does not start.
        self.lab.power_on(self.name)
        self.lab.node(self.name).wait_boot_id()
        self.ssh(f"rm -rf {OTHERS} {FOLDER} {STATE}")
        self.ssh(f"cp -a {KEPT}/config.yaml {CONFIG} && cp -a {KEPT}/logind.conf.d {FOLDER} && rm -rf {KEPT}")
        self.ssh(f"{SHELL}\nsystemctl kill --signal=HUP systemd-logind; sleep 0.5; restart")
        self.lab.wait_ready([self.name])

    def configure(self, **wanted):
        self.ssh(self.written(**wanted))

    def written(self, **wanted: Any):
        """A command that writes these shutdown settings into the kubelet's file, and no other ones."""
        content = yaml.safe_load(self.ssh(f"cat {CONFIG}"))
        content = {key: value for key, value in content.items() if key not in grace.KEYS} | wanted
        # It writes another file first: the kubelet never sees half of it.
        text = base64.b64encode(yaml.safe_dump(content).encode()).decode()
        return f"echo {text} | base64 -d > {CONFIG}.new && mv {CONFIG}.new {CONFIG}"


def known_pods(world, name):
    """Return the names of the pods that the kubelet of a node knows; none while it can't be asked."""
    with contextlib.suppress(HoldfastError):
        found = world.cluster.get(f"{paths.node(name)}/proxy/pods", patient=False)
        return {pod["metadata"]["name"] for pod in found["items"] or []}
    return set()


def info():
    return {"name": "Look", INFO: {}}


def do(command):
    return {"name": "Do", "ansible.builtin.shell": {"cmd": f"{SHELL}\n{command}", "executable": "/bin/bash"}}


def codes(found):
    return {item["problem"]: item["file"] for item in found["problems"]}


@pytest.fixture(params=[OLD, NEW])
def node(request, lab, ansible):
    found = Node(request.param, lab, ansible)
    try:
        found.keep()
        yield found
    finally:
        found.give_back()


@pytest.mark.long
@pytest.mark.long_on("node-1")
def test_what_is_wrong_is_found_and_named(node):
    longer = node.written(shutdownGracePeriod="40s", shutdownGracePeriodCriticalPods="10s")
    both = node.written(
        shutdownGracePeriod="40s",
        shutdownGracePeriodByPodPriority=[{"priority": 0, "shutdownGracePeriodSeconds": 40}],
    )
    good, changed, longer_good, unread, too_short, lost, refused = node.tasks(
        info(),
        do(longer),
        info(),
        do("restart"),
        info(),
        do(f"mkdir -p $(dirname {OTHERS}) && printf '[Login]\\nInhibitDelayMaxSec=30\\n' > {OTHERS}"),
        info(),
        do("reload 30"),
        info(),
        do("since=$(date '+%F %T'); systemctl restart kubelet; until_ said \"$since\" 'was timed out after'"),
        info(),
        do(f"since=$(date '+%F %T'); {both}; systemctl restart kubelet; until_ said \"$since\" 'Cannot specify both'"),
        info(),
    )

    own = f"{FOLDER}/99-kubelet.conf"
    assert (good["enabled"], good["in_effect"], good["problems"]) == (True, True, [])
    assert (good["kubelet"]["config"], good["kubelet"]["needed"]) == (CONFIG, 10)
    assert good["kubelet"]["groups"] == [{"priority": 0, "seconds": 6}, {"priority": 2_000_000_000, "seconds": 4}]
    assert good["logind"] == {
        "inhibit_delay_max": 10.0,
        "configured": 10.0,
        "file": own,
        "candidates": [{"file": own, "seconds": 10.0}],
    }
    assert good["delay_lock"]["who"] == "kubelet"

    assert codes(changed) == {"restart_needed": CONFIG, "kubelet_needs_more": own}
    assert (changed["in_effect"], changed["kubelet"]["needed"]) == (False, 40)

    assert (longer_good["in_effect"], longer_good["problems"]) == (True, [])
    assert longer_good["logind"]["inhibit_delay_max"] == 40

    # It still has what it needs, until logind reads its files again.
    assert codes(unread) == {"logind_not_reloaded": OTHERS}
    assert unread["in_effect"]
    assert codes(too_short) == {"kubelet_needs_more": OTHERS}
    assert not too_short["in_effect"]
    assert "needs 40 s" in too_short["problems"][0]["message"]
    assert too_short["delay_lock"]
    assert [item["file"] for item in too_short["logind"]["candidates"]] == [own, OTHERS]

    assert codes(lost) == {"kubelet_needs_more": OTHERS, "delay_lock_missing": None}
    assert (lost["delay_lock"], lost["kubelet"]["active"], lost["in_effect"]) == (None, True, False)

    assert codes(refused)["configuration_refused"] == CONFIG
    assert not refused["in_effect"]


@pytest.mark.long
def test_a_shutdown_that_did_not_finish_is_found(node, world):
    world.pod(
        "slow",
        node.name,
        containers=[
            {
                "name": "app",
                "image": IMAGE,
                "imagePullPolicy": "Never",
                "command": ["sh", "-c", "trap '' TERM; while :; do sleep 0.1; done"],
            }
        ],
        terminationGracePeriodSeconds=200,
    )
    # Long enough to be seen under way on a busy machine, too.
    node.configure(shutdownGracePeriod="200s", shutdownGracePeriodCriticalPods="4s")
    node.ssh(f"{SHELL}\nrestart")
    # A kubelet that has just started knows no pods, and ends none.
    until(lambda: "slow" in known_pods(world, node.name))
    node.lab.node(node.name).ask_to_reboot()
    until(lambda: "0001-01-01" in node.ssh(f"cat {STATE} 2>/dev/null || true"))
    node.lab.power_off(node.name)
    node.lab.power_on(node.name)
    node.lab.wait_ready([node.name])

    found = node.look()
    assert codes(found) == {"last_shutdown_unfinished": None}
    # The problem concerns the last shutdown, not the next one.
    assert found["in_effect"]
    assert found["last_shutdown"] == {
        "started": found["last_shutdown"]["started"],
        "ended": None,
        "finished": False,
        "this_boot": False,
    }


@pytest.mark.parametrize("name", [OLD])
def test_the_kubelet_itself_refuses_the_same(name, lab, tmp_path):
    """The kubelet reads its configuration before it looks for the API, and there is none here."""
    durations = ["0s", "1s", "10s", "1m30s", "999ms", "-5s", "", "5", 0, 30, None, True, "1.5s", "1d", "+7s"]
    entry = {"priority": 0, "shutdownGracePeriodSeconds": 5}
    lists: list[Any] = [None, [], {}, "5s", 0, entry, [entry], [entry, entry], [None], [{}], ["a"], [5]]
    for key, value in itertools.product(entry, [-5, 1.0, 1.5, 2**31, 2**63, None, "1", True]):
        lists.append([{**entry, key: value}])
    documents = [
        *({grace.TOTAL: total} for total in durations),
        *({grace.CRITICAL: critical} for critical in durations),
        *({grace.BY_PRIORITY: items} for items in lists),
        *({grace.TOTAL: a, grace.CRITICAL: b} for a, b in itertools.product(["0s", "10s", "11s", "1m"], repeat=2)),
        *({grace.TOTAL: a, grace.BY_PRIORITY: b} for a, b in itertools.product(["0s", "10s"], [[], [entry]])),
        {grace.CRITICAL: "0s", grace.BY_PRIORITY: [entry]},
    ]
    random.Random(6).shuffle(documents)
    head = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "failCgroupV1": False}
    texts = [yaml.safe_dump({**head, **document}) for document in documents]

    packed = base64.b64encode(json.dumps(texts).encode()).decode()
    script = f"""
import base64, json, subprocess
for text in json.loads(base64.b64decode("{packed}")):
    open("{KEPT}.yaml", "w").write(text)
    said = subprocess.run(["/opt/k8s/kubelet", "--config={KEPT}.yaml", "--kubeconfig=/nonexistent",
        "--root-dir={KEPT}"], capture_output=True, text=True).stderr
    print("passes" if "invalid kubeconfig" in said else "refuses")
"""
    answers = lab.node(name).ssh(f"python3 - <<'END'\n{script}\nEND\nrm -rf {KEPT}.yaml {KEPT}", 4 * PATIENCE).split()

    ours = []
    for text in texts:
        path = tmp_path / "config.yaml"
        path.write_text(text)
        settings = kubelet_files.read_settings(str(path), "")
        refused = settings.troubles or grace.configured(settings.values).refusals
        ours.append("refuses" if refused else "passes")
    assert [*zip(documents, ours)] == [*zip(documents, answers)]
    assert {"passes", "refuses"} == set(answers)
