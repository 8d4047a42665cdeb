# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which Machines have hooks, where there is no Cluster API."""

from __future__ import annotations

import pytest

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import Context
from ansible_collections.holdfast.kubernetes.plugins.module_utils._capi.hook_info import deletion_hook_info


class Empty:
    """A cluster that knows no kind of Cluster API."""

    def find(self, path):
        assert path == "/apis/cluster.x-k8s.io"


@pytest.mark.parametrize("wait_for", ["none", "waiting"])
def test_a_cluster_without_cluster_api_has_no_machines(wait_for):
    params = {"wait_for": wait_for, "wait_timeout": 3600, "namespace": None}
    context = Context(params)
    context.management = Empty()

    assert deletion_hook_info(context, params)["machines"] == []
