# Copyright (c) 2026 holdfast contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

"""What ``python -m lab`` starts of this package. Imported only then: nothing else in the lab needs the client."""

from __future__ import annotations

from pathlib import Path

from ansible_collections.holdfast.kubernetes.plugins.module_utils._cluster import Cluster

from ..cluster import Lab
from .attacher import Attacher
from .controller import Controller


def metal3(lab: Lab, namespace: str, settings: Path, kubeconfig: Path | None) -> None:
    """Until the process ends."""
    cluster = Cluster({"kubeconfig": str(kubeconfig or lab.kubeconfig)})
    Controller(lab, cluster, Cluster({"kubeconfig": str(lab.kubeconfig)}), namespace, settings).run()


def attacher(lab: Lab, driver: str, namespace: str, delays: Path) -> None:
    """Until the process ends."""
    Attacher(Cluster({"kubeconfig": str(lab.kubeconfig)}), driver, namespace, delays).run()
