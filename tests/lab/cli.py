# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab's commands."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import kwok, network, programs, supervisor
from .cluster import Lab
from .cluster_api import ClusterApi
from .control_plane import ControlPlane
from .errors import LabError
from .management import Management
from .node import existing
from .progress import say, step

# Commands of the package metal3.
PARTS = ("metal3", "attacher", "redfish")


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="lab", description="A real Kubernetes cluster on one machine.")
    commands = top.add_subparsers(dest="command", required=True)
    setup = commands.add_parser("setup", help="install and build what a lab with so many nodes needs")
    up = commands.add_parser("up", help="start the lab, or adjust the one that runs")
    setup.add_argument("--all", action="store_true", help="also what only some tests start, such as Cluster API")
    for command in (setup, up):
        command.add_argument("--nodes", type=_count, default=3, help="real nodes (default: 3)")
        command.add_argument("--simulated", type=_count, default=0, help="simulated nodes (default: 0)")
    commands.add_parser("down", help="remove everything, also after a crash")
    commands.add_parser("status", help="what runs")
    power = commands.add_parser("power", help="switch a real node, hard")
    power.add_argument("action", choices=["on", "off", "cycle"])
    power.add_argument("node")
    apiserver = commands.add_parser("apiserver", help="an outage of the API")
    apiserver.add_argument("action", choices=["start", "stop"])
    cluster_api = commands.add_parser("cluster-api", help="Cluster API's core controller and its kinds")
    cluster_api.add_argument("action", choices=["up", "down"])
    simulate = commands.add_parser("simulate", help="create simulated nodes")
    simulate.add_argument("count", type=_count)
    simulate.add_argument("--prefix", default=kwok.PREFIX)
    simulate.add_argument("--label", action="append", default=[], type=_label, metavar="KEY=VALUE")
    unsimulate = commands.add_parser("unsimulate", help="remove simulated nodes")
    unsimulate.add_argument("--prefix", help="only the nodes that were created with this prefix (default: all)")
    management = commands.add_parser(
        "management", help="a second API server, for hosts and Machines; prints its kubeconfig"
    )
    management.add_argument("action", choices=["start", "stop"])
    _parts(commands)
    supervise = commands.add_parser("supervise", help="run one node's machine (started by the lab itself)")
    supervise.add_argument("node")
    return top


def _parts(commands: Any) -> None:
    """The programs that a test starts itself, and the commands that run until they are ended."""
    metal3 = commands.add_parser("metal3", help="simulate metal3 for the BareMetalHosts of a namespace")
    metal3.add_argument("--namespace", required=True)
    metal3.add_argument("--settings", required=True, type=Path, help="directory with the settings of each host")
    metal3.add_argument("--kubeconfig", type=Path, help="of the cluster with the BareMetalHosts (default: the lab's)")
    attacher = commands.add_parser("attacher", help="attach and detach volumes as a storage driver does")
    attacher.add_argument("--driver", required=True, help="name of the driver, as VolumeAttachments have it")
    attacher.add_argument("--namespace", required=True, help="of its claims and pods")
    attacher.add_argument("--delays", required=True, type=Path, help='file such as {"attach": 0, "detach": null}')
    redfish = commands.add_parser("redfish", help="management controllers that speak Redfish, for nodes of the lab")
    redfish.add_argument("--settings", required=True, type=Path, help="directory with a file NODE.json for each node")
    redfish.add_argument("--address", default="127.0.0.1")
    redfish.add_argument("--port", type=int, default=8000)
    redfish.add_argument(
        "--auth-file", type=Path, help="users, as htpasswd -B writes them (default: no credentials are needed)"
    )
    redfish.add_argument("--pki", type=Path, help="directory with tls.crt and tls.key (default: plain HTTP)")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; print an error that a person can act on as one line, without a traceback."""
    try:
        return _run(parser().parse_args(arguments))
    except LabError as error:
        say(f"lab: {error}")
        return 1
    except KeyboardInterrupt:
        say("lab: interrupted; the same command resumes here, 'down' removes everything")
        return 130


def _run(options: argparse.Namespace) -> int:
    lab = Lab.default()
    if options.command == "setup":
        lab.setup(options.nodes, options.simulated, [programs.CLUSTER_API, programs.CSI] if options.all else [])
    elif options.command == "up":
        lab.up(options.nodes, options.simulated)
        print(usage(lab))
    elif options.command == "down":
        with step("remove the lab"):
            lab.down()
    elif options.command == "status":
        return _status(lab)
    elif options.command == "power":
        if options.action in ("off", "cycle"):
            lab.power_off(options.node)
        if options.action in ("on", "cycle"):
            lab.power_on(options.node)
    elif options.command == "apiserver":
        if options.action == "stop":
            lab.stop_apiserver()
        else:
            lab.start_apiserver()
    elif options.command == "cluster-api":
        cluster_api = ClusterApi(lab)
        if options.action == "up":
            cluster_api.up()
        else:
            cluster_api.down()
    elif options.command == "simulate":
        lab.start_kwok()
        with step(f"{options.count} simulated nodes"):
            lab.simulate(kwok.names(options.count, options.prefix), dict(options.label))
    elif options.command == "unsimulate":
        lab.unsimulate(prefix=options.prefix)
    elif options.command == "management":
        plane = Management(lab)
        if options.action == "start":
            plane.start()
            print(plane.kubeconfig)
        else:
            plane.stop()
    elif options.command in PARTS:
        from .metal3 import commands

        commands.run(lab, options)
    else:
        return supervisor.supervise(lab.node(options.node))
    return 0


def usage(lab: Lab) -> str:
    """How to use a lab that is up."""
    paths = lab.paths
    real = "\n".join(f"    {node.name}: {node.address}, Debian {node.suite}" for node in existing(paths, lab.network))
    return f"""
The lab is up: {len(lab.nodes)} real nodes, {len(lab.simulated)} simulated ones.

    export KUBECONFIG={paths.kubeconfig}
    {paths.bin / "kubectl"} get nodes
    ansible -i {paths.inventory} real -m ansible.builtin.ping
    ssh -i {paths.ssh_key} root@ADDRESS

{real}"""


def _status(lab: Lab) -> int:
    found = network.owned(lab.paths.root)
    if not found:
        print("The lab is not up.")
        return 3
    plane = ControlPlane(lab.paths, found[0])
    running = {name: plane.process(name).pid() for name in plane.names}
    for name, pid in running.items():
        print(f"{name}: {f'runs, pid {pid}' if pid else 'is not running'}")
    for node in existing(lab.paths, found[0]):
        print(f"{node.name}: {node.address}, Debian {node.suite}, power {'on' if node.powered else 'off'}")
    if running["kube-apiserver"]:
        try:
            print(lab.kubectl("get", "nodes"), end="")
        except LabError as error:
            print(f"The API does not answer: {error}")
    # A lab whose start or removal was interrupted is not up.
    return 0 if any(running.values()) else 3


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text} is not a number of 0 or more")
    return int(text)


def _label(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not (key and equals):
        raise argparse.ArgumentTypeError(f"{text} is not KEY=VALUE")
    return key, value
