# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names that this collection gives to its own labels, annotations and objects."""

from __future__ import annotations

from .._shared import hold_rules

# The version of this collection, as in galaxy.yml.
VERSION = "0.1.0"
NAMESPACE = hold_rules.NAMESPACE

# On a Node: who cordoned it, and whether it was unschedulable before.
CORDON = "holdfast.dev/cordon"
# On a Node, by a person: leave it cordoned.
KEEP_CORDONED = "holdfast.dev/keep-cordoned"
# On a Node: its phase and result in a rolling reboot.
OPERATION = "holdfast.dev/operation"
# On a Node: the run that works on it.
CLAIM = "holdfast.dev/claim"
# On the Lease of a run: its id, which the name of the Lease may not contain as it is.
RUN = "holdfast.dev/run"
# On a Lease that holds a node: why, for people.
REASON = "holdfast.dev/reason"
# A label on a Node, by a person: do not reboot it.
EXCLUDE = "holdfast.dev/exclude"
# A label on the objects that this collection creates, and its value.
MANAGED_BY = "app.kubernetes.io/managed-by"
COLLECTION = "holdfast.kubernetes"
# A label on the ConfigMap of a group.
LEDGER = "holdfast.dev/ledger"
# On a Node: the values that the opt-outs replaced.
OPT_OUTS = "holdfast.dev/opt-outs"
# On a Node: the lifecycle conditions that a run has set.
LIFECYCLE_CONDITIONS = "holdfast.dev/conditions"
# On a Node with our out-of-service taint: the evidence that it is off.
EVIDENCE = "holdfast.dev/evidence"
# On a BareMetalHost: the state of the host when our reboot annotation was written.
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
