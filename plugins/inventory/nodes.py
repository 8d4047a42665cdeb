# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: nodes
short_description: Nodes of a Kubernetes cluster as hosts
version_added: 0.1.0
description:
  - Each Node is a host. Its groups say its role, zone and state, and its variables say what the API knows about it.
  - A host has the name of its Node, so the roles of this collection need no variable that maps hosts to Nodes. With
    O(hostname_prefix), this plugin sets these variables.
  - Reads one list of Nodes and one of Leases, however many Nodes there are.
  - Its configuration is a YAML file whose name ends in C(nodes.yml) or C(nodes.yaml).
options:
  plugin:
    description:
      - The name of this plugin.
    type: str
    required: true
    choices: [holdfast.kubernetes.nodes]
  selector:
    description:
      - Label selector of the Nodes. By default all.
    type: str
    default: ''
  holds:
    description:
      - Whether to read the Leases, and so the holds on each node.
      - With V(false), the right to list Leases is not needed, there is no variable C(node_holds), and the group
        C(nodes_held) is empty.
    type: bool
    default: true
  address_types:
    description:
      - The types of addresses that C(ansible_host) may be, the preferred one first.
      - A host without such an address is reached by its name. With an empty list, all hosts are.
      - A kubelet can report any text. What is neither an IP address nor a DNS name is left out, and so is an address
        that several nodes report.
    type: list
    elements: str
    choices: [InternalIP, ExternalIP, InternalDNS, ExternalDNS, Hostname]
    default: [InternalIP, ExternalIP, Hostname]
  label_groups:
    description:
      - Keys of labels. Nodes that have such a label are in a group for its value. For the label C(example.com/pool)
        with the value C(gpu) that is the group C(pool_gpu).
    type: list
    elements: str
    default: []
  hostname_prefix:
    description:
      - What the names of the hosts begin with, before the name of the Node. It tells Nodes of several clusters apart.
    type: str
    default: ''
  group_prefix:
    description:
      - What the names of the groups begin with, apart from those of O(keyed_groups) and O(groups).
      - Without it, Nodes of several clusters share their groups.
    type: str
    default: ''
  vars_prefix:
    description:
      - What the names of the variables begin with that this plugin sets for each Node.
    type: str
    default: node_
extends_documentation_fragment:
  - constructed
  - inventory_cache
  - holdfast.kubernetes.auth
author:
  - holdfast.kubernetes contributors (@holdfast)
seealso:
  - module: holdfast.kubernetes.node_info
"""

EXAMPLES = r"""
# The file nodes.yml: all Nodes, reached as root.
plugin: holdfast.kubernetes.nodes
compose:
  ansible_user: "'root'"

---
# The file production.nodes.yml: the workers of one cluster, with groups of our own and a cache.
plugin: holdfast.kubernetes.nodes
kubeconfig: ~/.kube/production
selector: "!node-role.kubernetes.io/control-plane"
address_types: [InternalIP]
hostname_prefix: production-
group_prefix: production_
label_groups: [example.com/pool]
keyed_groups:
  - key: node_kubelet_version
    prefix: kubelet
groups:
  # Nodes that a rolling reboot did not finish.
  unfinished: node_operation is not none and not node_operation.result
cache: true
cache_plugin: ansible.builtin.jsonfile
cache_connection: ~/.cache/ansible-inventory
cache_timeout: 300
"""

import json
import os
from collections.abc import Collection
from typing import Any

from ansible.errors import AnsibleParserError
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.plugins.inventory import BaseInventoryPlugin, Cacheable, Constructable

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.auth_options import auth_options
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.cluster import Cluster
from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import ApiFailure, HoldfastError
from ansible_collections.holdfast.kubernetes.plugins.module_utils._inventory import rules
from ansible_collections.holdfast.kubernetes.plugins.module_utils._inventory.hosts import read_hosts
from ansible_collections.holdfast.kubernetes.plugins.module_utils._shared.bounds import digest, some
from ansible_collections.holdfast.kubernetes.plugins.plugin_utils._kubeconfig import current_context, decrypted

# A change of these reads the cluster again, in spite of a cache.
_READ_BY = ("kubeconfig", "context", "host", "username", "impersonate_user")


class InventoryModule(BaseInventoryPlugin, Constructable, Cacheable):
    """Hosts from the Nodes of a cluster."""

    NAME = "holdfast.kubernetes.nodes"
    # Set by parse().
    inventory: Any
    _in_file: frozenset[str]

    def verify_file(self, path: str) -> bool:
        return bool(super().verify_file(path)) and path.endswith(("nodes.yml", "nodes.yaml"))

    def parse(self, inventory: Any, loader: Any, path: str, cache: bool = True) -> None:
        super().parse(inventory, loader, path, cache)
        self._in_file = frozenset(self._read_config_data(path))
        found = self._cached(path, cache) if self.get_option("cache") else self._read()
        self.inventory.add_group(self._group(rules.ALL))
        for name in rules.STATES:
            self._add_group(rules.state(name))
        shared, types = rules.shared_addresses(found), self.get_option("address_types")
        lost = {text for facts in found if (text := rules.address(facts, types)) != rules.address(facts, types, shared)}
        if lost:
            self.display.warning(
                f"Several nodes report the same address, so no host is reached by it: {some(sorted(map(str, lost)))}. "
                "If that is no mistake, set ansible_host in compose, or give another type in address_types."
            )
        for facts in found:
            self._add(facts, shared)

    def _cached(self, path: str, may_read: bool) -> list[dict[str, Any]]:
        key = f"{self.get_cache_key(path)}_{digest(json.dumps(self._source(), sort_keys=True, default=str))}"
        if may_read and key in self._cache:
            found: list[dict[str, Any]] = self._cache[key]
        else:
            found = self._cache[key] = self._read()
        return found

    def _source(self) -> dict[str, Any]:
        """What the facts depend on, apart from the cluster."""
        options, environment = self._auth(), os.environ.get("KUBECONFIG", "")
        files = options["kubeconfig"] or environment or "~/.kube/config"
        # kubectl config use-context changes the file, and no option.
        chosen = None if options["context"] or isinstance(files, dict) else current_context(self.loader, files)
        return {
            **{name: options[name] for name in _READ_BY},
            "KUBECONFIG": environment,
            "current-context": chosen,
            **{name: self.get_option(name) for name in ("selector", "holds")},
        }

    def _auth(self) -> dict[str, Any]:
        """The common options, with the same types and environment variables as those of the modules."""
        spec = auth_options()
        # A default would hide the environment variable.
        given = {
            name for name, option in spec.items() if not self._in_file.isdisjoint((name, *option.get("aliases", ())))
        }
        values = {name: self.get_option(name) for name in given}
        known = {name: value for name, value in values.items() if value is not None}
        found = ArgumentSpecValidator(spec).validate(known)
        if found.error_messages:
            raise AnsibleParserError("; ".join(found.error_messages))
        options: dict[str, Any] = found.validated_parameters
        return options

    def _read(self) -> list[dict[str, Any]]:
        options = self._auth()
        options["kubeconfig"] = decrypted(self.loader, options["kubeconfig"])
        holds = self.get_option("holds")
        try:
            return read_hosts(Cluster(options), selector=self.get_option("selector"), holds=holds)
        except HoldfastError as error:
            forbidden = holds and isinstance(error, ApiFailure) and error.status == 403 and "leases" in error.message
            hint = " With holds: false, no right to list Leases is needed." if forbidden else ""
            # With its cause, Ansible would print the message twice.
            raise AnsibleParserError(error.message + hint) from None

    def _group(self, name: str) -> str:
        return str(self.get_option("group_prefix")) + name

    def _add_group(self, name: str) -> str:
        group = str(self.inventory.add_group(self._group(name)))
        self.inventory.add_child(self._group(rules.ALL), group)
        return group

    def _add(self, facts: dict[str, Any], shared: Collection[str]) -> None:
        host = self.inventory.add_host(self.get_option("hostname_prefix") + facts["name"])
        for name in rules.groups(facts, self.get_option("label_groups")):
            self.inventory.add_child(self._add_group(name), host)
        variables = rules.variables(
            facts,
            prefix=self.get_option("vars_prefix"),
            host=host,
            types=self.get_option("address_types"),
            shared=shared,
        )
        for name, value in variables.items():
            self.inventory.set_variable(host, name, value)
        strict, compose = self.get_option("strict"), self.get_option("compose")
        groups, keyed_groups = self.get_option("groups"), self.get_option("keyed_groups")
        if compose:
            self._set_composite_vars(compose, variables, host, strict=strict)
        if groups or keyed_groups:
            # Read once: either method would combine all variables of the host again.
            known = self.inventory.get_host(host).get_vars()
            self._add_host_to_composed_groups(groups, known, host, strict=strict, fetch_hostvars=False)
            self._add_host_to_keyed_groups(keyed_groups, known, host, strict=strict, fetch_hostvars=False)
