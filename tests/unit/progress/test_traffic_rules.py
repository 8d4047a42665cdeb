# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The requests and bytes of a run, as a report shows them."""

from __future__ import annotations

from ansible_collections.holdfast.kubernetes.plugins.module_utils._progress import traffic_rules

TRAFFIC = {"a": {"requests": 10, "bytes": 2600}, "b": {"requests": 5, "bytes": 1000}, "c": {"requests": 1}}


def test_the_traffic_of_nodes():
    assert traffic_rules.total(TRAFFIC, "a", "b", "none") == {"requests": 15, "bytes": 3600}
    assert traffic_rules.total(TRAFFIC, "c") == {"requests": 1, "bytes": 0}


def test_the_traffic_in_words():
    assert traffic_rules.words(TRAFFIC["a"]) == "10 requests, 3 kB"
    assert traffic_rules.words(TRAFFIC["c"]) == "1 requests, 0 kB"
    assert traffic_rules.words({}) == traffic_rules.words({"requests": 0, "bytes": 0}) == ""
