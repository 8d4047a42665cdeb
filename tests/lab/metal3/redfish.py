# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A stand-in for the nodes' management controllers (BMC): sushy-tools' Redfish emulator switches the lab's nodes.

Started as ``python -m lab redfish``. The protocol is sushy-tools' own. Only its fake driver's reading and setting of
power are replaced, because that driver switches nothing.
"""

from __future__ import annotations

import importlib
import ssl
import threading
import time
import uuid
from pathlib import Path
from typing import Any

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.cluster import Cluster

from ..cluster import Lab
from ..errors import LabError
from ..progress import say
from . import ironic
from .settings import Settings, load
from .switches import Switch, switch

# The name that faults use for each kind of requested change.
_CHANGES = {
    "On": ironic.ON,
    "ForceOn": ironic.ON,
    "ForceOff": ironic.OFF,
    "GracefulShutdown": ironic.SOFT_OFF,
    "ForceRestart": ironic.REBOOT,
    "PowerCycle": ironic.REBOOT,
    "GracefulRestart": ironic.SOFT_REBOOT,
}


def system_id(node: str) -> str:
    """The id of a node's system; it never changes."""
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{node}.lab.holdfast.dev"))


class Systems:
    """The nodes whose settings are in a directory, each in a file ``NODE.json``."""

    def __init__(self, lab: Lab, directory: Path, error: Any) -> None:
        self._directory = directory
        self._error = error
        workload = Cluster({"kubeconfig": str(lab.kubeconfig)})
        names = sorted(path.stem for path in directory.glob("*.json"))
        self._names = {system_id(name): name for name in names}
        self._switches: dict[str, Switch] = {name: switch(lab, workload, name) for name in names}
        self._failures = dict.fromkeys(names, 0)
        self._last: dict[str, bool] = {}

    def described(self) -> list[dict[str, Any]]:
        """The systems in the form that the fake driver expects."""
        return [
            {"uuid": key, "name": name, "power_state": "On", "external_notifier": False, "nics": []}
            for key, name in self._names.items()
        ]

    def get_power_state(self, identity: str) -> str:
        name, settings = self._of(identity)
        faults = settings.faults
        if faults.says:
            return faults.says.capitalize()
        if not faults.stale or name not in self._last:
            self._last[name] = self._switches[name].powered()
        return "On" if self._last[name] else "Off"

    def set_power_state(self, identity: str, state: str) -> None:
        """Answer before anything happens, as a BMC does."""
        name, settings = self._of(identity)
        faults = settings.faults
        change = _CHANGES.get(state)
        if change is None or (faults.soft_unsupported and change in (ironic.SOFT_OFF, ironic.SOFT_REBOOT)):
            raise self._error.BadRequest(f"ResetType {state} is not supported")
        if self._failures[name] < faults.flaky:
            self._failures[name] += 1
            raise self._error.FishyError("Internal error of the BMC")
        if change in faults.refused:
            raise self._error.Conflict(f"ResetType {state} is refused")
        with (self._directory / f"{name}.commands").open("a") as file:
            file.write(f"{state}\n")
        say(f"redfish: {name}: {state}")
        if not (faults.soft_ignored and change in (ironic.SOFT_OFF, ironic.SOFT_REBOOT)):
            arguments = (self._switches[name], change, faults.slow)
            threading.Thread(target=_carry_out, args=arguments, daemon=True).start()

    def _of(self, identity: str) -> tuple[str, Settings]:
        name = self._names[identity]
        settings = load(self._directory / f"{name}.json")
        if settings is None or settings.faults.unreachable:
            raise self._error.FishyError("The BMC does not answer", code=503)
        return name, settings


def serve(lab: Lab, directory: Path, address: str, port: int, *, auth_file: Path | None, pki: Path | None) -> None:
    """Serve until the process ends.

    Args:
        auth_file: Users and their passwords (bcrypt), in htpasswd's format; without it, no request needs a user.
        pki: Directory with tls.crt and tls.key; without it, the service uses plain HTTP.
    """
    try:
        main: Any = importlib.import_module("sushy_tools.emulator.main")
        error: Any = importlib.import_module("sushy_tools.error")
    except ImportError as missing:
        raise LabError(f"the Redfish emulator needs sushy-tools from PyPI ({missing})") from missing
    systems = Systems(lab, directory, error)
    configuration = {
        "SUSHY_EMULATOR_FAKE_DRIVER": True,
        "SUSHY_EMULATOR_FAKE_SYSTEMS": systems.described(),
        "SUSHY_EMULATOR_STATE_DIR": str(directory),
        **({"SUSHY_EMULATOR_AUTH_FILE": str(auth_file)} if auth_file else {}),
    }
    main.app.configure(extra_config=configuration)
    driver = main.app.systems
    driver.get_power_state, driver.set_power_state = systems.get_power_state, systems.set_power_state
    context = None
    if pki:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pki / "tls.crt", pki / "tls.key")
    main.app.run(host=address, port=port, ssl_context=context, threaded=True)


def _carry_out(machine: Switch, change: str, slow: float) -> None:
    time.sleep(slow)
    if change == ironic.ON:
        machine.on()
    elif change == ironic.OFF:
        machine.off()
    elif change == ironic.SOFT_OFF:
        machine.press()
    elif change == ironic.REBOOT:
        machine.off()
        machine.on()
    else:
        machine.restart()
