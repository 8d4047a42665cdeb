# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From an operation's errors to results."""

from __future__ import annotations

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import Refused
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.runner import REPORT_TO, run_operation


def run(operation, **params):
    return run_operation(operation, params, check_mode=False, warn=lambda message: None)


def test_an_unexpected_error_names_operation_object_and_where_to_report_it():
    def cordon(context, params):
        return {"node": {}["metadata"]}

    result = run(cordon, name="worker-1", kubeconfig="secret", run=None)

    assert (result["failed"], result["changed"], result["error"]) == (True, False, "unexpected")
    assert result["msg"].startswith("Unexpected error in cordon of name worker-1: KeyError: 'metadata'.")
    assert REPORT_TO in result["msg"]
    assert "secret" not in result["msg"]
    assert 'return {"node"' in result["exception"]


def test_our_own_errors_stay_as_they_are():
    def drain(context, params):
        raise Refused("Node worker-1 is Ready. Wait.", node="worker-1")

    assert run(drain) == {
        "changed": False,
        "failed": True,
        "msg": "Node worker-1 is Ready. Wait.",
        "error": "refused",
        "node": "worker-1",
    }


def test_what_others_write_begins_no_line_and_moves_no_cursor():
    shown = []

    def drain(context, params):
        context.say("held by shop/a\x1b[2J\nok: [node-1]")
        context.warn("held by shop/b\r")
        raise Refused("Node n is held: shop/\x1b]52;c;cm0=\x07.\nok: [node-1] => rebooted")

    result = run_operation(drain, {}, check_mode=False, warn=shown.append)

    assert all(text.isprintable() for text in [*shown, result["msg"]])
    assert (len(shown), result["msg"][-25:]) == (2, " ok: [node-1] => rebooted")
