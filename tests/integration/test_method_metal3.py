# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rolling reboots through the BMC: rolling_reboot_method metal3, with the lab's metal3."""

from __future__ import annotations

import pytest
from integration.support.metal3 import bound

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths

BASE = "reboot.metal3.io"


@pytest.fixture
def hosts(world, lab, tmp_path):
    with bound(world, lab, tmp_path) as found:
        found.start()
        yield found


@pytest.mark.long
def test_nodes_reboot_by_their_hosts(rolling, hosts, nodes):
    names = nodes(3)
    for name in names:
        hosts.add(name)
        provider = f"metal3://{hosts.namespace}/host-{name}/m"
        rolling.world.cluster.merge(paths.node(name), {"spec": {"providerID": provider}})
    *_rebooted, paused = hosts.hosts
    paused.annotate({"baremetalhost.metal3.io/paused": ""})
    before = rolling.boot_ids(names)

    done = rolling.run(names, method="metal3", max_failed=1)

    assert done.results == {**dict.fromkeys(names[:2], "rebooted"), names[2]: "failed"}, done.output
    assert "it is paused" in done.detail(names[2])
    after = rolling.boot_ids(names)
    assert [after[name] != before[name] for name in names] == [True, True, False]
    for host in hosts.hosts[:2]:
        assert host.commands == ["shut down", "on"]
        assert BASE not in host.annotations
    assert paused.commands == []
    rolling.assert_nothing_left(names)
