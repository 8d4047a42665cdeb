# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names that this collection gives to its own labels, annotations and objects."""

from __future__ import annotations

from .._shared import hold_rules

# Of this collection, as in galaxy.yml.
VERSION = "0.1.0"
NAMESPACE = hold_rules.NAMESPACE

CORDON = "holdfast.dev/cordon"
KEEP_CORDONED = "holdfast.dev/keep-cordoned"
OPERATION = "holdfast.dev/operation"
CLAIM = "holdfast.dev/claim"
RUN = "holdfast.dev/run"
REASON = "holdfast.dev/reason"
EXCLUDE = "holdfast.dev/exclude"
MANAGED_BY = "app.kubernetes.io/managed-by"
LEDGER = "holdfast.dev/ledger"
OPT_OUTS = "holdfast.dev/opt-outs"
# On a Node, why it is believed to be off; on a BareMetalHost, what was known when a key of ours was written.
EVIDENCE = "holdfast.dev/evidence"
REBOOT_KEYS = "holdfast.dev/reboot-keys"
# On a Node, how far its failover has come.
FAILOVER = "holdfast.dev/failover"
# On a Machine, what was done for it at the points of its deletion, for each hook of ours.
MACHINE_GUARD = "holdfast.dev/machine-guard"

OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
SHUTDOWN_INHIBITED = hold_rules.CONDITION

# Of the cluster autoscaler and of Cluster API: what they are asked to leave alone, and which Machine a Node is.
SCALE_DOWN_DISABLED = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
SKIP_REMEDIATION = "cluster.x-k8s.io/skip-remediation"
# A label of medik8s, on a Node: its NodeHealthCheck and its remediators leave the node.
EXCLUDE_FROM_REMEDIATION = "remediation.medik8s.io/exclude-from-remediation"
MACHINE = "cluster.x-k8s.io/machine"
MACHINE_NAMESPACE = "cluster.x-k8s.io/cluster-namespace"
