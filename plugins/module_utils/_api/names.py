# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names that this collection gives to its own labels, annotations and objects."""

from __future__ import annotations

from .._shared import hold_rules

# The version of this collection, as in galaxy.yml.
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
# On a Node: the lifecycle conditions that a run has set.
LIFECYCLE = "holdfast.dev/conditions"
# On a Node: why it is considered off. On a BareMetalHost: the evidence when our reboot annotation was written.
EVIDENCE = "holdfast.dev/evidence"
REBOOT_KEYS = "holdfast.dev/reboot-keys"
# On a Node: the progress of its failover.
FAILOVER = "holdfast.dev/failover"
# On a Machine: what each of our deletion hooks has done for it.
MACHINE_GUARD = "holdfast.dev/machine-guard"

OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
SHUTDOWN_INHIBITED = hold_rules.CONDITION

# These two tell the cluster autoscaler and Cluster API to leave an object alone.
SCALE_DOWN_DISABLED = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
SKIP_REMEDIATION = "cluster.x-k8s.io/skip-remediation"
# A label on a Node: the NodeHealthChecks and remediators of medik8s leave the node alone.
EXCLUDE_FROM_REMEDIATION = "remediation.medik8s.io/exclude-from-remediation"
# Cluster API writes these on a Node: the Machine of the Node.
MACHINE = "cluster.x-k8s.io/machine"
MACHINE_NAMESPACE = "cluster.x-k8s.io/cluster-namespace"
