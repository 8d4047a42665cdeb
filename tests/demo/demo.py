# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The main job, on three real nodes: a rolling reboot under a workload behind a budget, with one node held.

Prints what happens as the API server sees it and leaves build/demo/report.json.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from observer import Observer

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
OUT = ROOT / "build" / "demo"
sys.path.insert(0, str(HERE.parent))

from lab import Lab  # noqa: E402  (found only by the path set above)

REPLICAS = 6
ALLOWED_MISSING = 2
HELD = "node-2"
STARTED = time.monotonic()


def say(text: str) -> None:
    line = f"{time.monotonic() - STARTED:7.1f} s  {text}"
    print(line, flush=True)
    _write(line)


def note(text: str) -> None:
    """Say it while the playbook runs. On a terminal, the playbook's own table has the screen."""
    if sys.stdout.isatty():
        _write(f"{time.monotonic() - STARTED:7.1f} s  {text}")
    else:
        say(text)


def _write(line: str) -> None:
    with (OUT / "demo.log").open("a", encoding="utf-8") as log:
        log.write(f"{line}\n")


def main() -> int:
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "demo.log").unlink(missing_ok=True)
    subprocess.run([sys.executable, "-m", "lab", "up", "--nodes", "3"], cwd=ROOT, env=_environment(), check=True)
    lab = Lab.default()
    _prepare(lab)
    released: list[str] = []

    def release_when_awaited() -> None:
        others_done = observer.rebooted >= {"node-1", "node-3"}
        if others_done and observer.phases.get(HELD) == "hold" and not released:
            released.extend(observer.boot_ids[HELD])
            note(f"the application on {HELD} is done and releases it")
            lab.kubectl("delete", "lease", "--namespace=demo", HELD)

    observer = Observer(str(lab.kubeconfig), note, release_when_awaited)
    observer.start()
    say("ansible-playbook holdfast.kubernetes.rolling_reboot starts; its output is in build/demo/ansible.log, too")
    say(
        "what the API server sees is in build/demo/demo.log; the playbook holdfast.kubernetes.status shows the run, too"
    )
    code = _play(lab)
    observer.stop()
    return _report(code, observer, held_untouched=len(released) == 1)


def _prepare(lab: Lab) -> None:
    say("a Deployment of 6 replicas, of which 2 may be missing (PodDisruptionBudget), comes up on 3 nodes")
    lab.kubectl("delete", "namespace", "demo", "--ignore-not-found", "--wait=true")
    lab.kubectl("apply", "--filename", str(HERE / "workload.yml"))
    lab.kubectl("rollout", "status", "deployment/web", "--namespace=demo", "--timeout=120s")
    say(f"an application holds {HELD} (a Lease of that name in the namespace demo)")
    lab.kubectl("create", "--filename=-", stdin=json.dumps(_hold()))
    say("all three nodes get the sign of Debian that a reboot is required (/run/reboot-required)")
    for name in lab.nodes[:3]:
        lab.ssh(name, "touch /run/reboot-required")


def _hold() -> dict[str, object]:
    now = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime())
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": HELD, "namespace": "demo"},
        "spec": {"holderIdentity": "firmware-update", "acquireTime": now},
    }


def _play(lab: Lab) -> int:
    variables = {
        "rolling_reboot_hosts": "node-1:node-2:node-3",
        "rolling_reboot_group": "demo",
        "rolling_reboot_selector": "type=real",
        "rolling_reboot_report": str(OUT / "playbook.json"),
        "rolling_reboot_html": str(OUT / "report.html"),
    }
    command = [
        str(Path(sys.executable).parent / "ansible-playbook"),
        *(
            "--inventory",
            str(lab.inventory),
            "holdfast.kubernetes.rolling_reboot",
            "--extra-vars",
            json.dumps(variables),
        ),
    ]
    log = OUT / "ansible.log"
    log.unlink(missing_ok=True)
    environment = {
        **_environment(),
        "K8S_AUTH_KUBECONFIG": str(lab.kubeconfig),
        "ANSIBLE_STDOUT_CALLBACK": "holdfast.kubernetes.progress",
        "ANSIBLE_LOG_PATH": str(log),
    }
    return subprocess.run(command, check=False, cwd=OUT, env=environment, stdin=subprocess.DEVNULL).returncode


def _report(code: int, observer: Observer, *, held_untouched: bool) -> int:
    written = OUT / "playbook.json"
    nodes = json.loads(written.read_text(encoding="utf-8"))["nodes"] if written.exists() else []
    report = {
        "nodes": nodes,
        "min_ready": observer.lowest,
        "min_ready_allowed": REPLICAS - ALLOWED_MISSING,
        "holds_honoured": held_untouched,
        "seconds": round(time.monotonic() - STARTED, 1),
    }
    (OUT / "report.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    for node in nodes:
        phases = ", ".join(f"{name} {seconds:g} s" for name, seconds in node["phases"].items())
        say(f"{node['name']}: {node['result']}, boot ID {node['boot_id_before']} -> {node['boot_id_after']} ({phases})")
    say(f"lowest number of ready replicas: {report['min_ready']}, allowed: {report['min_ready_allowed']}")
    say(f"the held node was left alone until its release: {'yes' if held_untouched else 'NO'}")
    good = (
        code == 0
        and len(nodes) == 3
        and all(node["result"] == "rebooted" and node["boot_id_before"] != node["boot_id_after"] for node in nodes)
        and observer.lowest >= REPLICAS - ALLOWED_MISSING
        and held_untouched
    )
    say("report: build/demo/report.html and report.json; the lab stays up (make lab-down removes it)")
    if not good:
        say(f"THE DEMO FAILED (ansible-playbook exited {code}); see build/demo/ansible.log")
    return 0 if good else 1


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(HERE.parent)}


if __name__ == "__main__":
    sys.exit(main())
