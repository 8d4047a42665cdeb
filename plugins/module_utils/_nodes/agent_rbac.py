# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The operation that grants node agents their rights, and removes the rights after the last agent is gone."""

from __future__ import annotations

from functools import partial

from .._api import node_rules, paths
from .._api.cluster import Cluster
from .._api.errors import ApiFailure, HoldfastError, NotFound
from .._api.objects import Object
from .._api.runner import Context, Params, Result
from .._api.watch import retry_conflicts
from . import rbac_rules
from .rbac_rules import BINDING, ROLE


def agent_rbac(context: Context, params: Params) -> Result:
    """Write the role and its binding, or remove them if no Node has an agent any more."""
    cluster = context.cluster
    needed: list[str] = []
    pairs: list[tuple[Object, Object | None, Object | None]]
    if params["state"] == "absent":
        agents = {node_rules.name(item) for item in cluster.items(paths.NODES) if rbac_rules.has_agent(item)}
        needed = sorted(agents - set(params["without"]))
    try:
        if params["state"] == "present":
            # The role first: a binding to a missing role would grant the rules of any role that gets this name.
            pairs = [(wanted, *retry_conflicts(partial(_write, cluster, wanted))) for wanted in (ROLE, BINDING)]
        else:
            pairs = [(wanted, *_remove(cluster, wanted, keep=bool(needed))) for wanted in (BINDING, ROLE)]
    except ApiFailure as error:
        if error.status != 403:
            raise
        raise HoldfastError(
            f"These credentials can't write the rights of node agents: {error.message} Ask an administrator to apply "
            "docs/node_agent_rbac.yml of this collection, and set node_agent_rbac: false.",
            status=error.status,
        ) from error
    return {
        "changed": any(before is not after for _wanted, before, after in pairs),
        "needed_by": needed,
        "diff": {
            "before": {wanted["kind"]: rbac_rules.content(before) for wanted, before, _after in pairs},
            "after": {wanted["kind"]: rbac_rules.content(after) for wanted, _before, after in pairs},
        },
    }


def _write(cluster: Cluster, wanted: Object) -> tuple[Object | None, Object]:
    path = rbac_rules.path(wanted)
    before = cluster.find(path)
    if before is None:
        return None, cluster.create(rbac_rules.COLLECTIONS[wanted["kind"]], wanted)
    if rbac_rules.content(before) == rbac_rules.content(wanted):
        return before, before
    if not rbac_rules.must_be_recreated(before, wanted):
        return before, cluster.replace(path, rbac_rules.changed_into(before, wanted))
    _delete(cluster, path, before)
    # In a dry run the old object still exists, so the server would refuse the new one.
    return before, wanted if cluster.dry_run else cluster.create(rbac_rules.COLLECTIONS[wanted["kind"]], wanted)


def _remove(cluster: Cluster, wanted: Object, *, keep: bool) -> tuple[Object | None, Object | None]:
    path = rbac_rules.path(wanted)
    before = cluster.find(path)
    if before is None or keep:
        return before, before
    _delete(cluster, path, before)
    return before, None


def _delete(cluster: Cluster, path: str, item: Object) -> None:
    try:
        cluster.delete(path, {"preconditions": {"uid": item["metadata"]["uid"]}})
    except NotFound:
        return
