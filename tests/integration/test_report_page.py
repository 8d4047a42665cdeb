# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page of real runs in a headless Chromium, and the live view in terminals of two widths.

With HOLDFAST_PICTURES, a folder, it leaves the pictures there that `make pictures` makes.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from dataclasses import replace
from pathlib import Path

import pytest
from integration.support.bmcs import redfish
from unit.report import runs

from ansible_collections.holdfast.kubernetes.plugins.module_utils._report import page_rules
from lab.chromium import Chromium

# It needs rich, which the environments of `make matrix` don't have.
screens = pytest.importorskip("lab.terminal")

pytestmark = pytest.mark.long
WIDTHS = (400, 1000, 2000)
HEIGHT = 1050
WHY = "The shop is not healthy on its new node: 2 of 3 replicas answer after 10 s. See https://wiki.example.org/shop"


@pytest.fixture(scope="module")
def browser():
    with Chromium() as found:
        yield found


@pytest.fixture
def namespace(request, cluster, made):
    """Nodes have the name of their namespace, and pictures show it."""
    name = f"{request.param}-{secrets.token_hex(5)}"
    cluster.create("/api/v1/namespaces", {"metadata": {"name": name}})
    made.namespaces.append(name)
    return name


@pytest.fixture
def pictures(tmp_path):
    """The folder that pictures go to."""
    return Path(os.environ.get("HOLDFAST_PICTURES") or tmp_path)


def check(browser, page, to):
    """Open a page at all widths: no error, no outside request, nothing wider than the screen. Take a picture."""
    for width in WIDTHS:
        browser.open(page, width, dark=width == 2000)
        assert (browser.errors, browser.requests) == ([], [])
        assert browser.value("document.documentElement.scrollWidth") <= width
    browser.open(page, 1000, HEIGHT)
    browser.picture(to)


@pytest.mark.parametrize("number", [3, 300])
def test_few_and_many_nodes(browser, tmp_path, number):
    path = tmp_path / "page.html"
    path.write_text(page_rules.page(runs.rolling(number)))
    check(browser, path, tmp_path / "page.png")
    if browser.value("document.getElementById('filter') !== null"):
        browser.value("box.value = 'failed'; box.dispatchEvent(new Event('input'))")
        assert browser.value("document.querySelectorAll('.lane[data-node]:not([hidden])').length") == 1


@pytest.mark.parametrize(("namespace", "width"), [("web", 80), ("fra1", 200)], indirect=["namespace"])
def test_run_with_a_hold_and_a_failure(rolling, browser, pictures, width):
    world = rolling.world
    names = world.nodes(8)
    held, bad = names[1], names[4]
    run = f"job-4711-{width}"
    rolling.hold(held, "firmware/alice")
    down, up = rolling.off_and_on
    slow = rolling.tasks("slow", f"{down} && sleep 4 && {up}")
    unhealthy = rolling.tasks("unhealthy", {"name": "Check the shop", "ansible.builtin.fail": {"msg": WHY}})
    command, environment, folder = rolling.prepare(
        {name: {"rolling_reboot_check_tasks": unhealthy} if name == bad else {} for name in names},
        environment={
            "K8S_AUTH_KUBECONFIG": world.kubeconfig,
            "ANSIBLE_STDOUT_CALLBACK": "holdfast.kubernetes.progress",
        },
        operation="kernel-2026-11",
        run=run,
        max_unavailable=2,
        max_failed=1,
        command_tasks=slow,
        html="report.html",
    )
    seen, released = [], []

    def meanwhile(frame):
        is_held = re.search(rf"{held} +hold ", frame.text)
        if is_held and re.search(rf"{bad} +failed ", frame.text):
            seen.append(frame)
        if is_held and not released and len(re.findall(" rebooted ", frame.text)) == len(names) - 2:
            released.append(held)
            rolling.release(held)

    terminal = screens.Terminal(command, width, 36, environment, folder)
    code = terminal.follow(meanwhile)

    last = terminal.frames[-1].text
    assert code == 2, last
    report = json.loads((folder / "report.json").read_text())
    assert {node["name"]: node["result"] for node in report["nodes"]} == {
        name: "failed" if name == bad else "rebooted" for name in names
    }
    phases = {name: [item["phase"] for item in spans] for name, spans in report["timeline"]["nodes"].items()}
    assert "hold" in phases[held]
    assert phases[bad][-1] == "failed"
    (budget,) = report["timeline"]["budgets"].values()
    assert (max(look["unavailable"] for look in budget), budget[0]["allowed"]) == (2, 2)
    # The table during the run, in the width of the terminal.
    assert seen, last
    assert all(len(line) <= width for frame in terminal.frames for line in frame.text.splitlines())
    table = seen[0].text.splitlines().index(f"Rolling reboot, operation kernel-2026-11, run {run}")
    frame = replace(seen[0], lines=seen[0].lines[table:])
    (pictures / f"live-{width}.svg").write_text(screens.still(frame, width, len(frame.lines)))
    check(browser, folder / "report.html", pictures / "report-failure.png")


@pytest.mark.parametrize("namespace", ["rack-7"], indirect=True)
def test_failover_and_recovery(failovers, lab, browser, pictures, tmp_path):
    pytest.importorskip("sushy_tools")
    world, victim = failovers.world, failovers.victim()
    world.nodes(2)
    world.owned("shop-db-0", victim.name)
    with redfish(world, lab, tmp_path, victim.name) as bmcs:
        variables = {**bmcs.variables(victim.name), "reason": "its power supply failed"}
        victim.hang()
        page = tmp_path / "failover.html"
        failovers.run(victim.name, **variables, confirm_seconds=3, html=str(page)).good()
        check(browser, page, pictures / "report-failover.png")
        text = page.read_text()
        assert "Proof that" in text
        assert bmcs.PASSWORD not in text

        back = tmp_path / "recover.html"
        failovers.recover(victim.name, **variables, html=str(back)).good()
        check(browser, back, tmp_path / "recover.png")
        assert "recovered" in back.read_text()
