# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    # Options to reach the cluster whose Nodes are worked on.
    DOCUMENTATION = r"""
options:
  kubeconfig:
    description:
      - Path of a kubeconfig file, a list of paths that are merged (the first file that defines something wins), or the content of one as a dictionary.
      - Several paths can also be given as one string, separated as in the environment variable E(KUBECONFIG).
      - A file that is encrypted with Ansible Vault is decrypted on the controller.
      - Without it and without O(host), the service account of the pod is used if there is one, else E(KUBECONFIG) or C(~/.kube/config).
      - Falls back on the environment variable E(K8S_AUTH_KUBECONFIG).
    type: raw
  context:
    description:
      - Name of the context of the kubeconfig to use.
      - Falls back on the environment variable E(K8S_AUTH_CONTEXT).
    type: str
  host:
    description:
      - URL of the API server.
      - Falls back on the environment variable E(K8S_AUTH_HOST).
    type: str
  api_key:
    description:
      - Bearer token.
      - Falls back on the environment variable E(K8S_AUTH_API_KEY).
    type: str
  username:
    description:
      - User name for HTTP basic authentication, which few API servers accept.
      - Falls back on the environment variable E(K8S_AUTH_USERNAME).
    type: str
  password:
    description:
      - Password for HTTP basic authentication.
      - Falls back on the environment variable E(K8S_AUTH_PASSWORD).
    type: str
  validate_certs:
    description:
      - Whether the API server's certificate is verified.
      - Falls back on the environment variable E(K8S_AUTH_VALIDATE_CERTS) or E(K8S_AUTH_VERIFY_SSL).
    type: bool
    aliases: [verify_ssl]
  ca_cert:
    description:
      - Path of the CA certificate that the API server is verified with.
      - Falls back on the environment variable E(K8S_AUTH_CA_CERT) or E(K8S_AUTH_SSL_CA_CERT).
    type: path
    aliases: [ssl_ca_cert]
  client_cert:
    description:
      - Path of the client certificate.
      - Falls back on the environment variable E(K8S_AUTH_CLIENT_CERT) or E(K8S_AUTH_CERT_FILE).
    type: path
    aliases: [cert_file]
  client_key:
    description:
      - Path of the key of the client certificate.
      - Falls back on the environment variable E(K8S_AUTH_CLIENT_KEY) or E(K8S_AUTH_KEY_FILE).
    type: path
    aliases: [key_file]
  proxy:
    description:
      - URL of an HTTP or SOCKS proxy. E(HTTP_PROXY) and similar variables are ignored.
      - Falls back on the environment variable E(K8S_AUTH_PROXY).
    type: str
  no_proxy:
    description:
      - Hosts, domains, addresses and networks that are reached without the proxy, separated by commas.
      - Falls back on the environment variable E(K8S_AUTH_NO_PROXY).
    type: str
  proxy_headers:
    description:
      - Headers sent to the proxy.
    type: dict
    suboptions:
      proxy_basic_auth:
        description:
          - User and password for the proxy, as V(user:password).
          - Falls back on the environment variable E(K8S_AUTH_PROXY_HEADERS_PROXY_BASIC_AUTH).
        type: str
      basic_auth:
        description:
          - User and password for the server behind the proxy, as V(user:password).
          - Falls back on the environment variable E(K8S_AUTH_PROXY_HEADERS_BASIC_AUTH).
        type: str
      user_agent:
        description:
          - The value of the header C(User-Agent).
          - Falls back on the environment variable E(K8S_AUTH_PROXY_HEADERS_USER_AGENT).
        type: str
  persist_config:
    description:
      - Whether refreshed tokens are written back to the kubeconfig.
      - Falls back on the environment variable E(K8S_AUTH_PERSIST_CONFIG).
    type: bool
  impersonate_user:
    description:
      - User to act as.
      - Falls back on the environment variable E(K8S_AUTH_IMPERSONATE_USER).
    type: str
  impersonate_groups:
    description:
      - Groups to act as.
      - Falls back on the environment variable E(K8S_AUTH_IMPERSONATE_GROUPS).
    type: list
    elements: str
  api_timeout:
    description:
      - Maximum number of seconds to repeat a request while the API server is unavailable (refused, reset or timed-out
        connections) or overloaded (429 with C(Retry-After), 502, 503, 504, an etcd without a leader).
      - After an outage, a module reads again and decides again about a change that depends on earlier reads. It
        recognizes a change that succeeded although its answer was lost. Nothing is counted twice.
      - With V(0), no request is repeated.
      - This does not apply to evictions. The C(timeout) of M(holdfast.kubernetes.drain) is their limit.
      - Falls back on the environment variable E(K8S_AUTH_API_TIMEOUT).
    type: int
    default: 30
requirements:
  - kubernetes >= 31, < 38 (Python library) where this runs
notes:
  - These options and variables have the same names as in kubernetes.core, so AWX's own credential type for Kubernetes
    works; kubernetes.core itself is not needed.
  - A module runs in the controller's process. With C(delegate_to) a host that has a connection other than local, for example a
    bastion that alone reaches the API, it runs there and needs the Python library there. The controller's E(KUBECONFIG) and
    C(K8S_AUTH_*) variables apply there, too, unless the task's C(environment) sets them. The files of O(kubeconfig),
    O(ca_cert), O(client_cert) and O(client_key) that exist on the controller go along, other paths are those of the host.
"""

    # The cluster in which Machines and BareMetalHosts live.
    MANAGEMENT = r"""
options:
  management:
    description:
      - How to reach the cluster that contains the Machines and BareMetalHosts, if it is not the cluster of the Nodes.
      - By default it is the same cluster.
    type: dict
    suboptions:
      kubeconfig:
        description:
          - Path of a kubeconfig file, a list of paths that are merged (the first file that defines something wins), or the content of one as a dictionary.
          - Several paths can also be given as one string, separated as in the environment variable E(KUBECONFIG).
          - A file that is encrypted with Ansible Vault is decrypted on the controller.
          - Without it and without O(host), the service account of the pod is used if there is one, else E(KUBECONFIG) or C(~/.kube/config).
        type: raw
      context:
        description:
          - Name of the context of the kubeconfig to use.
        type: str
      host:
        description:
          - URL of the API server.
        type: str
      api_key:
        description:
          - Bearer token.
        type: str
      username:
        description:
          - User name for HTTP basic authentication, which few API servers accept.
        type: str
      password:
        description:
          - Password for HTTP basic authentication.
        type: str
      validate_certs:
        description:
          - Whether the API server's certificate is verified.
        type: bool
        aliases: [verify_ssl]
      ca_cert:
        description:
          - Path of the CA certificate that the API server is verified with.
        type: path
        aliases: [ssl_ca_cert]
      client_cert:
        description:
          - Path of the client certificate.
        type: path
        aliases: [cert_file]
      client_key:
        description:
          - Path of the key of the client certificate.
        type: path
        aliases: [key_file]
      proxy:
        description:
          - URL of an HTTP or SOCKS proxy. E(HTTP_PROXY) and similar variables are ignored.
        type: str
      no_proxy:
        description:
          - Hosts, domains, addresses and networks that are reached without the proxy, separated by commas.
        type: str
      proxy_headers:
        description:
          - Headers sent to the proxy.
        type: dict
        suboptions:
          proxy_basic_auth:
            description:
              - User and password for the proxy, as V(user:password).
            type: str
          basic_auth:
            description:
              - User and password for the server behind the proxy, as V(user:password).
            type: str
          user_agent:
            description:
              - The value of the header C(User-Agent).
            type: str
      persist_config:
        description:
          - Whether refreshed tokens are written back to the kubeconfig.
        type: bool
      impersonate_user:
        description:
          - User to act as.
        type: str
      impersonate_groups:
        description:
          - Groups to act as.
        type: list
        elements: str
"""
