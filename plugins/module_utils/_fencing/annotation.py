# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keep a host off, or reboot it once, by metal3's reboot annotation, and verify the effect."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from .._api import node_rules
from .._api.cluster import Cluster
from .._api.errors import Held, HoldfastError, NotFound, Refused, TimedOut
from .._api.names import REBOOT_KEYS
from .._api.objects import Object, ObjectChange
from .._api.runner import Context, Params, Result
from .._api.times import from_text, seconds_between, to_text
from .._api.watch import Deadline, retry_conflicts, wait_for
from .._budget import runs as run_leases
from .._shared.bounds import some
from . import evidence_rules, expired_keys, find_host, key_rules, last_look
from . import host_rules as rules
from .host_rules import Off, Written
from .key_rules import HARD, SOFT, Request
from .reboot_watch import wait_for_reboot
from .target import Target, may_remove_key, resolve, resolve_for_removal

# Seconds. metal3 reads the power of an idle host every 60 s, so it has seen an earlier change of the power by then.
_ROUND = 75.0
# Seconds. A single reboot that an earlier run asked for may take this long, although the annotation is already gone.
_UNDER_WAY = 900.0
# The most overridden holds that a record names.
_NAMED = 100
EXPIRED = "expired"
_WAY_OUT = {SOFT: "Try mode hard, or raise wait_timeout.", HARD: "Check its BMC, and whether metal3 runs."}


class NotOff(HoldfastError):
    """The key is set, but the host does not go off, and more waiting does not help."""

    kind = "not_off"


class NotDatable(NotOff):
    """The host is off, but nothing says since when."""

    kind = "not_datable"


# Refuses a node that must not go off, directly before it is told to.
LastCheck = Callable[[Cluster, str], None]


def reboot_annotation(context: Context, params: Params, last_check: LastCheck | None = None) -> Result:
    """Set or remove one reboot annotation, or those that expired; see the module of the same name.

    Args:
        last_check: One more check of the node, which is part of the last look.
    """
    if params["state"] == EXPIRED:
        return {**_empty_result(), **expired_keys.remove(context, params)}
    if params.get("key") is not None:
        key_rules.check_key(params["key"])
    context, host = find_host.from_options(context, params)
    with run_leases.heartbeat(context.cluster, params.get("run") or ""):
        if params["state"] == "present":
            try:
                found = _Annotation(context, params, resolve(context, params, host), last_check).put()
                return {**found, "step": "rebooted"} if params.get("operation") else found
            except Held as error:
                if not params.get("operation"):
                    raise
                # A part of a rolling reboot: the node is uncordoned, and its turn comes again.
                return {**_empty_result(), "step": "held", "why": error.message}
        target = resolve_for_removal(context, params, host)
        if target is None:
            return _result_without_host(context, params, host)
        # A key without a record may belong to someone else. A run knows only what is recorded; a person may have looked
        # at the host. If both host and node are given, only the record says whether the key was written for the node.
        by_person = not params.get("run") and not (host and params.get("node"))
        return _Annotation(context, params, target).remove(by_person=by_person)


def _result_without_host(context: Context, params: Params, host: str) -> Result:
    """No key keeps off a host that no longer exists."""
    if params.get("key"):
        where = f" in namespace {params['namespace']}" if params.get("namespace") else ""
        context.warn(
            f"There is no BareMetalHost {host}{where}, so key {params['key']} is gone with it. Its machine may be off: "
            "make sure that it is switched on."
        )
    return {
        **_empty_result(),
        "host": host,
        "namespace": params.get("namespace") or None,
        "node": params.get("node") or None,
    }


def _empty_result() -> Result:
    return {
        "changed": False,
        "host": None,
        "namespace": None,
        "node": None,
        "powered_on": None,
        "keys": [],
        "effective_mode": None,
        "resource_version": None,
        "evidence": None,
        "overridden_holds": [],
        "waited": 0.0,
        "diff": {"before": {}, "after": {}},
    }


def _recorded_holds(held: Sequence[str]) -> tuple[str, ...]:
    """Return the first holds, and a last entry with the number of further ones, also in the form NAMESPACE/HOLDER."""
    return (*held[:_NAMED], *([f"…/and {len(held) - _NAMED} more"] if len(held) > _NAMED else []))


class _Annotation:
    """One annotation of one host."""

    def __init__(self, context: Context, params: Params, target: Target, last_check: LastCheck | None = None) -> None:
        self._context = context
        self._management = context.management
        self._params = params
        self._key: str = params.get("key") or ""
        self._mode: str = params["mode"]
        self._run: str = params.get("run") or ""
        self._deadline = Deadline(params["wait_timeout"])
        self._target, self._last_check = target, last_check

    # -- present

    def put(self) -> Result:
        record = last_look.RebootRecord(self._context, self._target.node, self._params)
        change = last_look.repeat(lambda: retry_conflicts(lambda: self._try_to_put(record)))
        if not self._params["wait"] or self._context.check_mode:
            return self._result(change, change.after)
        try:
            host = self._wait(change)
        except HoldfastError as error:
            with suppress(HoldfastError):
                seen = self._management.find(self._target.path)
                error.fields.update(self._facts(seen) if seen else {})
            error.fields["changed"] = change.changed
            raise
        return self._result(change, host)

    def _wait(self, change: ObjectChange) -> Object:
        """Wait until the request has its effect, and return the host."""
        try:
            return self._wait_until_off(change.after) if self._key else self._wait_until_rebooted(change)
        except NotFound as error:
            # Before a request, this error says that nothing was sent.
            raise NotOff(
                f"{error.message} metal3 may have acted on the request before. Check the machine.",
                **{**error.fields, "why": "gone"},
            ) from error

    def _try_to_put(self, record: last_look.RebootRecord) -> ObjectChange:
        host = self._target.read()
        if why := rules.why_not(host):
            raise self._refused(host, why, "inert")
        request, written = rules.request_of(host, self._key), rules.written_of(host, self._key)
        value = key_rules.value_of(self._mode)
        if self._key and request and not written:
            raise self._refused(
                host,
                f"it already has {request.annotation}, and {REBOOT_KEYS} does not say that this collection wrote it. "
                "It stays, because it may belong to someone else; use another key, or, if you know that it is yours, "
                "remove it with state absent first",
                "foreign",
            )
        if self._key and request and written and self._is_of_another_node(written):
            raise self._refused(
                host,
                f"{request.annotation} keeps it off for node {written.node}, not for node {self._target.node}. If the "
                f"host is node {written.node}, give that of node {self._target.node}. If it is node "
                f"{self._target.node} now, remove the key with state absent first",
                "other_host",
            )
        ours = written is not None and self._is_of_this_boot(written)
        if request and written and ours and request.value == value:
            return self._adopt(host, record)
        if not self._key and (self._requested_by_others(host, request, written) or self._under_way(request, written)):
            return self._adopt(host, record)
        if not self._key and not request and (why := rules.why_no_reboot(host)):
            raise self._refused(host, why, "no_reboot")
        consumer = find_host.consumer_uid(self._management, host)
        record.add()
        look = self._target.look(
            self._run,
            override_holds=self._params["override_holds"],
            boot_id=self._params.get("boot_id") or "",
            down=bool(self._params.get("not_ready")),
        )
        if self._last_check:
            self._last_check(self._context.cluster, self._target.node)
        if request is None or written is None or not ours:
            # A key of an earlier attempt proves nothing about this boot if the node has booted since.
            written = rules.to_write(
                host,
                since=to_text(self._management.now()),
                node=self._target.node,
                boot_id=look.boot_id,
                run=self._run,
                consumer=consumer,
                overridden=_recorded_holds(look.overridden),
            )
        look.check(record)
        return ObjectChange(host, self._write(host, value, written, once=True))

    def _adopt(self, host: Object, record: last_look.RebootRecord) -> ObjectChange:
        """Wait for what was requested before: from now on, the node may go down in this run."""
        self._target.check_claim(self._run)
        record.add()
        return ObjectChange(host, host)

    def _is_of_this_boot(self, written: Written) -> bool:
        """Return whether a key was written for this node and, as far as is known, in its present boot."""
        if self._is_of_another_node(written):
            return False
        present = self._target.find_node()
        return not present or not written.boot_id or node_rules.boot_id(present) in ("", written.boot_id)

    def _is_of_another_node(self, written: Written) -> bool:
        return self._target.node != "" and written.node not in ("", self._target.node)

    def _requested_by_others(self, host: Object, request: Request | None, written: Written | None) -> bool:
        """Return whether someone else has asked for the same reboot; their annotation stays as it is."""
        if request is None or written is not None:
            return False
        if self._mode == HARD and key_rules.effective_mode([request], rules.error_count(host)) != HARD:
            raise self._refused(
                host,
                f"someone else has already requested a soft reboot ({request.annotation}: {request.value!r}), and only "
                "they may change that",
                "foreign",
            )
        return True

    def _under_way(self, request: Request | None, written: Written | None) -> bool:
        """Return whether an earlier run asked for this reboot, and the annotation is gone, but no new boot is seen."""
        if request is not None or written is None or not self._target.node or not written.boot_id:
            return False
        # A time in the future must not delay the next reboot until then.
        age = abs(seconds_between(from_text(written.since), self._management.now()))
        node = self._target.read_node()
        return age < _UNDER_WAY and node_rules.boot_id(node) == written.boot_id

    def _wait_until_off(self, host: Object) -> Object:
        while True:
            host = self._record_power_on(host)
            off = rules.off(host, self._key)
            if off.proven or self._is_futile(host):
                break
            # The status of a host that was off before may be old. If metal3 sees it on in its next round, the host can
            # still be seen to go off.
            patience = Deadline(self._deadline.left if off.datable else min(self._deadline.left, _ROUND))
            host = self._follow(patience, off)
            after = rules.off(host, self._key)
            if self._deadline.passed or (not off.datable and not after.datable):
                break
        return self._judge(host)

    def _record_power_on(self, host: Object) -> Object:
        """Record that a host is on that was off before, so that the proof can see it go off."""
        written = rules.written_of(host, self._key)
        if written is None or written.powered_on or not rules.powered_on(host):
            return host

        def attempt() -> Object:
            found = self._target.read()
            known, request = rules.written_of(found, self._key), rules.request_of(found, self._key)
            if known is None or request is None or known.since != written.since:
                return found
            return self._write(found, request.value, replace(known, powered_on=True))

        return retry_conflicts(attempt)

    def _follow(self, patience: Deadline, before: Off) -> Object:
        """Watch the host until it is proven off, or waiting is futile, or ``datable`` is no longer as ``before``."""

        def until(item: Object | None) -> bool:
            if item is None or self._is_futile(item):
                return True
            off = rules.off(item, self._key)
            return off.proven or off.datable != before.datable

        host = wait_for(self._management, self._target.collection, self._target.name, until, patience)
        if host is None:
            raise self._target.gone()
        return host

    def _is_futile(self, host: Object) -> bool:
        """Return whether no wait helps: metal3 does not act on the host, or our annotation is gone."""
        return bool(rules.inert(host)) or rules.request_of(host, self._key) is None

    def _judge(self, host: Object) -> Object:
        off = rules.off(host, self._key)
        if off.proven:
            return host
        if self._is_futile(host):
            raise NotOff(f"BareMetalHost {self._target.full_name} does not switch off: {off.why}.", why="inert")
        if not off.datable:
            raise NotDatable(
                f"BareMetalHost {self._target.full_name} is off, but that proves nothing: {off.why}. The key stays and "
                f"keeps it off. {rules.OTHER_EVIDENCE}",
                why="not_datable",
            )
        error = rules.trouble(host)
        raise TimedOut(
            f"BareMetalHost {self._target.full_name} is not off after {self._params['wait_timeout']} s: "
            f"{off.why}{f' ({error})' if error and error not in off.why else ''}. The key stays: metal3 may still "
            "switch the host off later. To take the request back, run the playbook holdfast.kubernetes.recover, or "
            "this module with state absent. "
            f"{_WAY_OUT[self._mode]}{' Or use another kind of evidence.' if self._mode == HARD else ''}",
            why="timed_out",
        )

    def _wait_until_rebooted(self, change: ObjectChange) -> Object:
        written = rules.written_of(change.after, self._key)
        boot_id = written.boot_id if written else ""
        if not boot_id and self._target.node:
            boot_id = node_rules.boot_id(self._target.read_node())
        see = partial(
            wait_for_reboot,
            (self._management, self._target.collection, self._target.name),
            (self._context.cluster, self._target.node, boot_id) if self._target.node and boot_id else None,
            self._deadline,
        )
        outcome = see(respect_holds=not self._params["override_holds"])
        if outcome.held:
            self._yield_to(outcome.held_by)
            outcome = see()
        if outcome.host is None:
            raise self._target.gone()
        gone = rules.request_of(outcome.host, self._key) is None
        if outcome.rebooted or gone:
            # If the record of an abandoned reboot stayed, the next run would wait for it.
            self._forget(written)
        if not outcome.rebooted:
            if gone:
                about = "The annotation is gone, but that does not prove a reboot"
            elif self._take_back():
                about = "The annotation was removed, but metal3 may already act on it, so the host may still reboot"
            else:
                about = "The annotation is still there"
            raise TimedOut(
                f"BareMetalHost {self._target.full_name} was not seen to reboot within {self._params['wait_timeout']} "
                f"s: {outcome.why}. {about}. Check its BMC and console, and whether metal3 runs.",
                why="timed_out",
            )
        return outcome.host

    def _yield_to(self, held_by: Sequence[str]) -> None:
        """Take the request back for a hold that the node confirmed after the last look; return if that is too late.

        With mode soft, the lock of the hold refuses the shutdown until metal3 uses a hard power-off, 3 minutes later.
        """
        if not self._take_back():
            return
        # metal3 may have asked the BMC before the removal.
        patience = Deadline(min(self._deadline.left, _ROUND))
        host = wait_for(
            self._management,
            self._target.collection,
            self._target.name,
            lambda item: item is None or rules.powered_on(item) is not True,
            patience,
        )
        if host is not None and rules.powered_on(host):
            raise Held(
                f"Node {self._target.node} was held after metal3 was asked to reboot it: the condition "
                f"ShutdownInhibited names {some(held_by)}. The annotation was removed from BareMetalHost "
                f"{self._target.full_name}, and the host stayed on. Wait until the holder releases it, or set "
                "override_holds to interrupt the holder.",
                node=self._target.node,
                holds=[],
                shutdown_inhibited=list(held_by),
            )

    def _take_back(self) -> bool:
        """Remove our request if metal3 shows no sign of it; return whether it was removed.

        If it stayed, metal3 would later reboot a node that has its pods again. But metal3 may have asked the BMC before
        it shows that, so the removal does not prove that the host stays up.
        """

        def attempt() -> bool:
            host = self._target.read()
            if None in (rules.request_of(host, self._key), rules.written_of(host, self._key)):
                return False
            if not rules.powered_on(host):
                return False
            self._target.check_claim(self._run)
            self._write(host, None, None)
            return True

        try:
            return retry_conflicts(attempt)
        except HoldfastError:
            return False

    def _forget(self, request: Written | None) -> None:
        """Remove the record of our request; metal3 has removed the annotation, or is about to.

        The record of a later request stays: this run may have been paused.
        """

        def attempt() -> None:
            host = self._management.find(self._target.path)
            found = rules.written_of(host, self._key) if host else None
            if host and request and found and found.since == request.since:
                self._merge(host, {REBOOT_KEYS: rules.records_with(host, self._key, None)})

        retry_conflicts(attempt)

    # -- absent

    def remove(self, *, by_person: bool) -> Result:
        change = last_look.repeat(lambda: retry_conflicts(lambda: self._try_to_remove(by_person=by_person)))
        host = change.after
        gone = rules.request_of(host, self._key) is None
        if self._params["wait"] and self._key and gone and not self._context.check_mode:
            host = self._wait_until_on(change)
        return self._result(change, host)

    def _try_to_remove(self, *, by_person: bool) -> ObjectChange:
        host = self._target.read()
        request, written = rules.request_of(host, self._key), rules.written_of(host, self._key)
        if request and not written and not (self._key and by_person):
            why = (
                "someone else wrote it"
                if not self._key
                else f"{REBOOT_KEYS} does not say that this collection wrote it"
            )
            self._context.warn(
                f"{request.annotation} of BareMetalHost {self._target.full_name} stays: {why}, so its owner removes it."
            )
            return ObjectChange(host, host)
        if request is None and written is None:
            return ObjectChange(host, host)
        if not self._is_removable(request, written):
            return ObjectChange(host, host)
        # Another run may fence the node meanwhile: it keeps a key that is there, without a write.
        began = last_look.steady()
        self._target.check_claim(self._run)
        if written and not by_person and not self._run:
            self._check_not_created_again(written)
        last_look.check(began)
        return ObjectChange(host, self._write(host, None, None, once=True))

    def _check_not_created_again(self, written: Written) -> None:
        """Check that the Node is still gone, or has not booted since the key was written: no run has claimed it.

        Raises:
            Refused: Other hardware may run as the Node, and the host would start with the same name and credentials.
        """
        node, host = self._target.node, self._target.full_name
        if written.node != node or self._is_of_this_boot(written):
            return
        raise Refused(
            f"Node {node} has booted since its key on BareMetalHost {host} was written, and no run of this task has "
            "claimed the Node. It may have been deleted, and other hardware may have created it again. The key stays. "
            f"Find out which machine runs as node {node}, and run the playbook holdfast.kubernetes.recover again. If "
            f"BareMetalHost {host} may start, you can also leave out node.",
            node=node,
            host=host,
            why="created_again",
        )

    def _is_removable(self, request: Request | None, written: Written | None) -> bool:
        """Return whether the key may be removed for our node; warn if the host belongs to another node now."""
        node, serves, written_for = self._target.node, self._target.serves, written.node if written else ""
        what = request.annotation if request else REBOOT_KEYS
        if not may_remove_key(node, serves, written_for):
            instead = f"and the host is now node {serves}" if serves else f"but for node {written_for}"
            self._context.warn(
                f"{what} of BareMetalHost {self._target.full_name} stays: it was not written for node {node}, "
                f"{instead}."
            )
            return False
        if serves not in ("", node):
            self._context.warn(
                f"BareMetalHost {self._target.full_name} is now node {serves}. {what} was written for node {node} and "
                "is removed."
            )
        return True

    def _wait_until_on(self, change: ObjectChange) -> Object:
        host = change.after
        others = [request.annotation for request in rules.requests_of(host) if request.key]
        why = rules.why_not(host) or (f"annotations of others keep it off: {', '.join(others)}" if others else "")
        if rules.powered_on(host):
            return host
        if why:
            self._context.warn(f"BareMetalHost {self._target.full_name} stays off: {why}.")
            return host

        def until(item: Object | None) -> bool:
            return item is None or rules.powered_on(item) is True

        found = wait_for(self._management, self._target.collection, self._target.name, until, self._deadline)
        if found is None:
            raise self._target.gone()
        if not until(found):
            raise TimedOut(
                f"BareMetalHost {self._target.full_name} is not on after {self._params['wait_timeout']} s"
                f"{f' ({rules.trouble(found)})' if rules.trouble(found) else ''}. {_WAY_OUT[HARD]}",
                **self._facts(found),
                changed=change.changed,
            )
        return found

    # -- both

    def _write(self, host: Object, value: str | None, written: Written | None, *, once: bool = False) -> Object:
        changes = {
            key_rules.annotation(self._key): value,
            REBOOT_KEYS: rules.records_with(host, self._key, written),
        }
        return self._merge(host, changes, once=once)

    def _merge(self, host: Object, annotations: dict[str, str | None], *, once: bool = False) -> Object:
        metadata = {"resourceVersion": host["metadata"]["resourceVersion"], "annotations": annotations}
        return self._management.merge(self._target.path, {"metadata": metadata}, once=once)

    def _refused(self, host: Object, why: str, code: str) -> Refused:
        return Refused(
            f"BareMetalHost {self._target.full_name} would not be {'kept off' if self._key else 'rebooted'}: {why}. "
            "Nothing was changed. Fix that, or switch the node off in another way.",
            **self._facts(host),
            why=code,
        )

    def _facts(self, host: Object) -> Result:
        requests = rules.requests_of(host)
        return {
            "host": self._target.name,
            "namespace": self._target.namespace,
            "node": self._target.node or None,
            "powered_on": rules.powered_on(host),
            "keys": [request.to_data() for request in requests],
            "effective_mode": key_rules.effective_mode(requests, rules.error_count(host)) if requests else None,
            "resource_version": host["metadata"]["resourceVersion"],
        }

    def _result(self, change: ObjectChange, host: Object) -> Result:
        written = rules.written_of(host, self._key)
        return {
            "changed": change.changed,
            **self._facts(host),
            "evidence": self._evidence(host),
            "overridden_holds": list(written.overridden) if written else [],
            "waited": round(self._deadline.elapsed, 3),
            "diff": {"before": _shown(change.before), "after": _shown(change.after)},
        }

    def _evidence(self, host: Object) -> dict[str, Any] | None:
        """Return the evidence that out_of_service takes; ``None`` if our key does not prove that the host is off."""
        written, off = rules.written_of(host, self._key), rules.off(host, self._key)
        if not self._key or written is None or not off.proven or self._params["state"] != "present":
            return None
        return {
            "kind": evidence_rules.BARE_METAL_HOST,
            "at": to_text(self._context.cluster.now()),
            "node": self._target.node,
            "boot_id": written.boot_id,
            "host": self._target.name,
            "namespace": self._target.namespace,
            "uid": host["metadata"]["uid"],
            "key": self._key,
            "since": written.since,
            "seen": off.why,
        }


def _shown(host: Object) -> dict[str, Any]:
    annotations = node_rules.annotations_of(host)
    return {
        "annotations": {
            name: value
            for name, value in sorted(annotations.items())
            if name.startswith(key_rules.BASE) or name == REBOOT_KEYS
        }
    }
