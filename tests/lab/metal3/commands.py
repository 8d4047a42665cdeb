# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands of this package for ``python -m lab``. Imported only then: nothing else in the lab needs the client."""

from __future__ import annotations

import argparse

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.cluster import Cluster

from ..cluster import Lab
from . import redfish
from .attacher import Attacher
from .controller import Controller


def run(lab: Lab, options: argparse.Namespace) -> None:
    """Run until the process ends."""
    workload = {"kubeconfig": str(lab.kubeconfig)}
    if options.command == "metal3":
        hosts = Cluster({"kubeconfig": str(options.kubeconfig or lab.kubeconfig)})
        Controller(lab, hosts, Cluster(workload), options.namespace, options.settings).run()
    elif options.command == "attacher":
        Attacher(Cluster(workload), options.driver, options.namespace, options.delays).run()
    else:
        redfish.serve(
            lab, options.settings, options.address, options.port, auth_file=options.auth_file, pki=options.pki
        )
