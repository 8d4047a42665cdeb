# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Taint a node proven to be off as out of service, wait until its contents move, and put it back into service."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from .._api import node_rules, paths
from .._api.cluster import Cluster
from .._api.errors import InvalidInput, Refused, TimedOut
from .._api.names import EVIDENCE
from .._api.objects import Object, ObjectChange
from .._api.read_node import node_names, read_node
from .._api.runner import Context, Params, Result
from .._api.times import seconds_between, to_text
from .._api.watch import Deadline, Follower, Listed, retry_conflicts, wait_for
from .._budget import claim_rules, gate, runs
from .._budget import ledger_store as store
from .._drain.volumes import persistent_volumes
from .._fencing import check_evidence, evidence_rules, last_look
from .._fencing.redfish_rules import BmcFailure
from .._progress.event_rules import waits
from .._shared.bounds import bounded
from .._shared.hold_rules import NODE_LEASES
from . import taint_rules as rules
from .rules import known_off
from .taint_rules import GONE, LEFT, STAYS, Attachment, Occupant

# Seconds. A look may take as long as a verify command, and is repeated if the Node changed meanwhile.
_PATIENCE = 180.0
# Seconds between two looks at a node that is not off yet.
_PROOF_PAUSE = 5.0
_RECOVER = " Run the playbook holdfast.kubernetes.recover, or remove the taint with state absent."


def out_of_service(context: Context, params: Params) -> Result:
    """Add the taint to one node or remove it; see the module of the same name."""
    if params["force"] and params["state"] == "present":
        raise InvalidInput(
            "force is only for state absent: a node is not declared out of service without evidence. Give evidence."
        )
    with runs.heartbeat(context.cluster, params.get("run") or ""):
        return _add_taint(context, params) if params["state"] == "present" else _remove_taint(context, params)


@dataclass
class _Contents:
    """What is on a node, or was since the first look."""

    pods: dict[str, Occupant] = field(default_factory=dict)
    attachments: dict[str, Attachment] = field(default_factory=dict)
    pods_now: set[str] = field(default_factory=set)
    attachments_now: set[str] = field(default_factory=set)
    kept_volumes: set[str] = field(default_factory=set)

    def saw_pods(self, found: list[Occupant]) -> None:
        self.pods.update({item.pod.uid: item for item in found})
        self.pods_now = {item.pod.uid for item in found}

    def saw_pod(self, item: Occupant, *, deleted: bool) -> None:
        if not deleted:
            self.pods[item.pod.uid] = item
            self.pods_now.add(item.pod.uid)
        else:
            self.pods_now.discard(item.pod.uid)

    def saw_attachments(self, found: list[Attachment]) -> None:
        self.attachments.update({item.name: item for item in found})
        self.attachments_now = {item.name for item in found}

    def saw_attachment(self, item: Attachment, *, deleted: bool) -> None:
        if not deleted:
            self.attachments[item.name] = item
            self.attachments_now.add(item.name)
        else:
            self.attachments_now.discard(item.name)

    @property
    def staying(self) -> list[Occupant]:
        return [self.pods[uid] for uid in self.pods_now if self.pods[uid].stays]

    @property
    def pods_left(self) -> list[Occupant]:
        return [self.pods[uid] for uid in self.pods_now if not self.pods[uid].stays]

    @property
    def attachments_left(self) -> list[Attachment]:
        found = (self.attachments[name] for name in self.attachments_now)
        return [item for item in found if item.volume not in self.kept_volumes]

    @property
    def words(self) -> str:
        return f"pods to leave: {len(self.pods_left)}, volumes to be detached: {len(self.attachments_left)}"

    @property
    def blockers(self) -> list[dict[str, Any]]:
        return rules.blockers(self.pods_left, self.attachments_left)

    def to_data(self) -> dict[str, Any]:
        pods = sorted(self.pods.values(), key=lambda item: item.pod.full_name)
        attachments = sorted(self.attachments.values(), key=lambda item: item.name)
        return {
            "pods": [item.to_data(self._state(item.pod.uid in self.pods_now, bool(item.stays))) for item in pods],
            "volume_attachments": [
                item.to_data(self._state(item.name in self.attachments_now, item.volume in self.kept_volumes))
                for item in attachments
            ],
            "blockers": self.blockers,
        }

    @staticmethod
    def _state(there: bool, stays: bool) -> str:
        return GONE if not there else STAYS if stays else LEFT


# -- present ----------------------------------------------------------------------------------------------------------


def _add_taint(context: Context, params: Params) -> Result:
    began = Deadline(None)
    # Look before the taint, too: on a busy machine some may be gone before a later look.
    contents = _look(context.cluster, params["name"], params["value"])
    change = _prove_and_add(context, params)
    deadline = Deadline(params["wait_timeout"])
    _watch(context.cluster, params["name"], params["value"], Deadline(0), contents)
    if not params["wait"] or context.check_mode:
        return {**_result(change, contents, began), "back": False}
    _watch(context.cluster, params["name"], params["value"], deadline, contents, tell=context.tell)
    node = context.cluster.find(paths.node(params["name"]))
    back = rules.back(node, node_rules.boot_id(change.after)) if node else ""
    gone_or_back = " The Node no longer exists." if node is None else f" It {back} meanwhile.{_RECOVER}" if back else ""
    result = {**_result(change, contents, began), "back": bool(back)}
    if contents.blockers:
        raise TimedOut(
            f"Node {params['name']} is out of service, but has pods or volumes left after {params['wait_timeout']} s: "
            f"{rules.sentence(contents.blockers)}.{gone_or_back} The taint stays. Find out what keeps them, and run it "
            f"again.{rules.attachments_advice(contents.blockers)}",
            **result,
        )
    if gone_or_back:
        context.warn(f"Node {params['name']}:{gone_or_back}")
    return result


def _prove_and_add(context: Context, params: Params) -> ObjectChange:
    """Look at everything, again and again until the deadline as long as the node may yet prove to be off."""
    deadline = Deadline(0 if context.check_mode else params["proof_timeout"])
    while True:
        try:
            return last_look.repeat(lambda: retry_conflicts(lambda: _try_to_add(context, params), seconds=_PATIENCE))
        except (Refused, BmcFailure) as error:
            # A BMC may be unreachable for a moment because its machine was switched off.
            passes = isinstance(error, BmcFailure) or error.fields.get("why") == evidence_rules.NOT_OFF
            if not passes or deadline.passed:
                raise
        time.sleep(min(_PROOF_PAUSE, deadline.left))


def _try_to_add(context: Context, params: Params) -> ObjectChange:
    """Check everything on one version of the Node, and write only over that version."""
    cluster, name, run = context.cluster, params["name"], params.get("run") or ""
    node = read_node(cluster, name)
    taint, record = rules.taint_of(node), rules.evidence_of(node)
    if taint and record and known_off(node):
        # Proven before, perhaps by a run that was killed, and not on again since.
        claim_rules.check(node, run)
        rules.check_down(node, None)
        if taint.get("value") == params["value"] or record.get("taint") == "found":
            return ObjectChange(node, node)
        return ObjectChange(node, _write(cluster, node, rules.with_taint(node, params["value"], cluster.now()), record))
    evidence = params.get("evidence")
    if not evidence:
        back = rules.back(node)
        what = f"It {back}" if back else "A recovery may have switched it on" if taint and record else ""
        since = f" {what}, so the earlier proof no longer counts." if what else ""
        raise Refused(
            f"Node {name} is not declared out of service without evidence that it is off: its pods could run twice, "
            f"and two nodes could write to its volumes.{since} Switch it off, and give evidence of that.",
            node=name,
            why="no_evidence",
            back=bool(back),
        )
    gate.check(cluster, name, override_holds=params["override_holds"], run=run)
    # With a run, the gate has shown that the claim is its own. A slot comes before the claim, and passes without it.
    rules.check_down(node, None if run else _live_slot(cluster, name))
    evidence_rules.check(evidence, node=name, boot_id=node_rules.boot_id(node), now=cluster.now())
    if evidence["kind"] == evidence_rules.ATTESTATION:
        evidence_rules.check_statement(str(evidence["statement"]), name, node_names(cluster))
    found, looked = _evidence_now(context, node, evidence)
    lease = _kubelets_lease(cluster, name)
    if _check_silence(cluster, name, evidence, lease):
        # The wait for the kubelet's silence took time, and the machine may be on by now.
        found, looked = _evidence_now(context, node, evidence)
    facts = evidence_rules.record(
        evidence, found, node=name, boot_id=node_rules.boot_id(node), looked_at=to_text(cluster.now()), run=run
    )
    # The evidence may have taken minutes, so a hold may have come since the first look.
    last = last_look.look(cluster, name, run=run, override_holds=params["override_holds"])
    if last.overridden:
        facts["overridden_holds"] = last.overridden
    # A watch that ends or fails during the wait may miss a renewal, and the evidence may have taken minutes.
    if _last_sign(_kubelets_lease(cluster, name)) not in (None, _last_sign(lease)):
        raise _renewed(name)
    last_look.check(looked)
    last.check()
    if taint and (record is None or record.get("taint") == "found"):
        # The one who set the taint removes it.
        return ObjectChange(node, _write(cluster, node, None, {**facts, "taint": "found"}, once=True))
    taints = rules.with_taint(node, params["value"], cluster.now())
    return ObjectChange(node, _write(cluster, node, taints, facts, once=True))


def _evidence_now(context: Context, node: Object, evidence: Mapping[str, Any]) -> tuple[dict[str, Any], float]:
    """Return what is seen now, and since when that counts."""
    check_evidence.check_source(context.cluster, node, evidence)
    began = last_look.steady()
    found = check_evidence.confirm(context.management, node, evidence)
    # A slow BMC or command may take longer than a look is valid, and reports the state at its end. If it took longer
    # than its timeout, this process was paused meanwhile.
    return found, min(last_look.steady(), began + check_evidence.max_seconds(evidence))


def _live_slot(cluster: Cluster, name: str) -> Any:
    slots = [(group, ledger.slots[name]) for group, ledger in store.all_ledgers(cluster) if name in ledger.slots]
    return rules.live_slot(slots, runs.live_ids(cluster), run="") if slots else None


def _kubelets_lease(cluster: Cluster, name: str) -> Object | None:
    return cluster.find(paths.one(paths.leases(NODE_LEASES), name))


def _last_sign(lease: Object | None) -> datetime | None:
    return rules.last_sign(lease) if lease else None


def _renewed(name: str) -> Refused:
    return evidence_rules.not_confirmed(name, "its kubelet has just renewed its Lease, so the node is on", "alive")


def _check_silence(cluster: Cluster, name: str, evidence: Mapping[str, Any], lease: Object | None) -> bool:
    """Wait until the kubelet has missed a renewal of its Lease: if it renews it, the node is on, despite all evidence.

    Returns:
        Whether the wait took any time.

    Raises:
        Refused: The kubelet renewed it, or gave a sign of life after a person had seen the node off.
    """
    last = _last_sign(lease)
    if lease is None or last is None:
        return False
    # A client can write these times, also into the future.
    missing = rules.quiet_seconds(lease) - max(0.0, seconds_between(last, cluster.now()))

    def renewed(item: Object | None) -> bool:
        return item is not None and rules.last_sign(item) != last

    if missing > 0 and renewed(wait_for(cluster, paths.leases(NODE_LEASES), name, renewed, Deadline(missing))):
        raise _renewed(name)
    evidence_rules.check_silent_since(evidence, node=name, last_sign=last)
    return missing > 0


# -- absent -----------------------------------------------------------------------------------------------------------


def _remove_taint(context: Context, params: Params) -> Result:
    deadline = Deadline(params["wait_timeout"])
    contents = _Contents()
    if params["wait"] and not context.check_mode:
        _await_empty(context, params, deadline)

    def attempt() -> ObjectChange:
        nonlocal contents
        node = read_node(context.cluster, params["name"])
        taint, record = rules.taint_of(node), rules.evidence_of(node)
        if taint is None:
            return ObjectChange(node, _write(context.cluster, node, None, None) if record else node)
        claim_rules.check(node, params.get("run") or "")
        contents = _look(context.cluster, params["name"], str(taint.get("value") or ""))
        rules.check_back(node, contents.blockers, force=params["force"])
        return ObjectChange(node, _remove_checked(context, params, node, contents))

    change = retry_conflicts(attempt)
    return _result(change, contents, deadline)


def _await_empty(context: Context, params: Params, deadline: Deadline) -> None:
    """Wait until the old contents are gone; a returning kubelet ends its old pods. Skip a wait that cannot help."""
    node = read_node(context.cluster, params["name"])
    taint = rules.taint_of(node)
    if taint is None:
        return
    claim_rules.check(node, params.get("run") or "")
    rules.check_back(node, [], force=params["force"])
    if rules.needs_force(node):
        return
    _watch(context.cluster, params["name"], str(taint.get("value") or ""), deadline, _Contents())


def _remove_checked(context: Context, params: Params, node: Object, contents: _Contents) -> Object:
    cluster, name, record = context.cluster, params["name"], rules.evidence_of(node)
    if record and record.get("taint") == "found" and not params["force"]:
        context.warn(
            f"The out-of-service taint stays on node {name}: it was there before this collection recorded its "
            "evidence, so the one who added it removes it. force removes it nevertheless."
        )
        return _write(cluster, node, None, None)
    if not rules.needs_force(node) and not contents.blockers:
        return _write(cluster, node, rules.without_taint(node), None)
    removed = {"at": to_text(cluster.now()), "forced": True, "run": params.get("run") or ""}
    left = f" {rules.sentence(contents.blockers)}." if contents.blockers else ""
    if rules.needs_force(node):
        context.warn(
            f"The out-of-service taint was removed from node {name} by force, with boot ID {node_rules.boot_id(node)}: "
            f"the evidence ({(record or {}).get('kind') or 'not recorded'}) did not prove that the node was off. Its "
            f"pods may run twice, and two nodes may have written to its volumes: check them.{left}"
        )
    else:
        # The machine was off, so it has none of these volumes mounted. Only the driver does not confirm it.
        context.warn(
            f"The out-of-service taint was removed from node {name} by force.{left} Pods that use these volumes wait "
            "on other nodes until the CSI driver's attacher works again."
        )
    kept = {**(record or {}), "removed": removed}
    return _write(cluster, node, rules.without_taint(node), kept)


# -- both -------------------------------------------------------------------------------------------------------------


def _look(cluster: Cluster, name: str, value: str) -> _Contents:
    """Return what is on the node now."""
    contents = _Contents()
    _watch(cluster, name, value, Deadline(0), contents)
    return contents


def _watch(
    cluster: Cluster,
    name: str,
    value: str,
    deadline: Deadline,
    contents: _Contents,
    *,
    tell: Callable[[dict[str, Any]], None] | None = None,
) -> None:
    """Watch until all that must go is gone, or until the deadline; look at everything at least once.

    Args:
        tell: Tells the live view what is left.
    """

    def show() -> None:
        if tell:
            tell(waits(name, "move", contents.words))

    for news in Follower(
        cluster,
        paths.PODS,
        deadline,
        field_selector=f"spec.nodeName={name}",
        keep=lambda item: rules.occupant(item, value),
    ):
        if isinstance(news, Listed):
            contents.saw_pods(news.items)
        else:
            contents.saw_pod(news.object, deleted=news.deleted)
        if not contents.pods_left:
            break
        show()
    contents.kept_volumes = persistent_volumes(
        cluster, [item.pod for item in contents.staying if not item.pod.finished], []
    )

    def ours(item: Object) -> Attachment | None:
        return rules.attachment(item) if item["spec"]["nodeName"] == name else None

    for news in Follower(cluster, paths.VOLUME_ATTACHMENTS, deadline, keep=ours):
        if isinstance(news, Listed):
            contents.saw_attachments([item for item in news.items if item])
        elif news.object is not None:
            contents.saw_attachment(news.object, deleted=news.deleted)
        if not contents.attachments_left:
            break
        show()


def _write(
    cluster: Cluster,
    node: Object,
    taints: list[dict[str, Any]] | None,
    record: Mapping[str, Any] | None,
    *,
    once: bool = False,
) -> Object:
    """Write the taints, if given, and the evidence, only if the Node is still the version that was checked."""
    text = json.dumps(bounded(record), sort_keys=True) if record else None
    metadata = {"resourceVersion": node["metadata"]["resourceVersion"], "annotations": {EVIDENCE: text}}
    body: dict[str, Any] = {"metadata": metadata}
    if taints is not None:
        body["spec"] = {"taints": taints or None}
    return cluster.merge(paths.node(node_rules.name(node)), body, once=once)


def _result(change: ObjectChange, contents: _Contents, deadline: Deadline) -> Result:
    return {
        "changed": change.changed,
        "taint": rules.shown(rules.taint_of(change.after)),
        "evidence": node_rules.record(change.after, EVIDENCE),
        **contents.to_data(),
        "waited": round(deadline.elapsed, 3),
        "diff": {"before": _shown(change.before), "after": _shown(change.after)},
    }


def _shown(node: Object) -> dict[str, Any]:
    return {"taints": node_rules.taints(node), "evidence": node_rules.record(node, EVIDENCE)}
