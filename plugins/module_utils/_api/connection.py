# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make a client of the ``kubernetes`` library from the common options."""

from __future__ import annotations

import json
import os
import socket
import tempfile
import threading
import traceback
from collections.abc import Mapping
from typing import Any

from .auth_options import is_content
from .errors import HoldfastError, InvalidInput, MissingLibrary

try:
    import kubernetes
    import urllib3
    import yaml
    from kubernetes import config as kube_config
    from kubernetes.client import ApiClient, Configuration
    from kubernetes.config.config_exception import ConfigException
    from urllib3.util.ssl_ import create_urllib3_context

    IMPORT_ERROR = ""
except ImportError:
    IMPORT_ERROR = traceback.format_exc()

_OLDEST = 31
_INSTALL = (
    f"Install it there, for example with pip install 'kubernetes>={_OLDEST},<38', or use an execution environment "
    "that has it."
)
# If a connection breaks without a sign, its watch would wait for minutes. client-go probes its connections, too.
_PROBES = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 3}
_KEEP_ALIVE = [
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    # Not each operating system has these options.
    *((socket.IPPROTO_TCP, getattr(socket, name), value) for name, value in _PROBES.items() if hasattr(socket, name)),
]
# The library remembers the files that it writes in one place for the whole process.
_LOADING = threading.Lock()
_DIRECT = (("username", "password"), ("api_key",), ("client_cert", "client_key"))
_ATTRIBUTES = {
    "host": "host",
    "validate_certs": "verify_ssl",
    "ca_cert": "ssl_ca_cert",
    "client_cert": "cert_file",
    "client_key": "key_file",
    "proxy": "proxy",
    "no_proxy": "no_proxy",
}


def connect(options: Mapping[str, Any]) -> Any:
    """Make an ``ApiClient``.

    Args:
        options: Values of the common options; unset ones are ``None`` or absent.

    Raises:
        MissingLibrary: The ``kubernetes`` library can't be imported.
        InvalidInput: The options do not say how to reach a cluster.
    """
    if IMPORT_ERROR:
        raise MissingLibrary(
            f"The Python library kubernetes ({_OLDEST} or later) is needed where this runs. {_INSTALL}",
            IMPORT_ERROR,
        )
    if int(kubernetes.__version__.partition(".")[0]) < _OLDEST:
        raise MissingLibrary(
            f"The Python library kubernetes is version {kubernetes.__version__} where this runs, and {_OLDEST} or "
            f"later is needed. {_INSTALL}",
            "",
        )
    given = {key: value for key, value in options.items() if value is not None}
    configuration = Configuration()
    # Later versions take them from HTTP_PROXY and similar variables.
    configuration.proxy = configuration.no_proxy = None
    # The library writes the certificates and the key of a kubeconfig to files, and removes them in an exit handler.
    # Ansible ends its workers without exit handlers, so private keys would stay in the temporary directory.
    with _LOADING, tempfile.TemporaryDirectory(prefix="holdfast-") as folder:
        # Version 31 fails for each user of the library in this process if a file that it remembers is gone.
        files: dict[str, str] = getattr(kube_config.kube_config, "_temp_files", {})
        remembered = dict(files)
        files.clear()
        try:
            if not speaks_for_itself(given):
                _load(given, configuration, folder)
            _override(given, configuration)
            client = ApiClient(configuration=configuration)
            pool = client.rest_client.pool_manager.connection_pool_kw
            _keep_in_memory(pool, folder)
            pool["socket_options"] = [*urllib3.connection.HTTPConnection.default_socket_options, *_KEEP_ALIVE]
        finally:
            files.clear()
            files.update(remembered)
    client.user_agent = "holdfast.kubernetes"
    if given.get("impersonate_user"):
        client.set_default_header("Impersonate-User", given["impersonate_user"])
    return client


def speaks_for_itself(given: Mapping[str, Any]) -> bool:
    return bool(given.get("host")) and any(all(given.get(name) for name in names) for names in _DIRECT)


def _keep_in_memory(pool: dict[str, Any], folder: str) -> None:
    """Load what the library wrote to ``folder``, which is removed next.

    Other paths stay paths, because their files may change: a kubelet rotates its own certificate.

    Raises:
        InvalidInput: They are not certificates, or not the key of the certificate.
    """
    written = {name for name in ("ca_certs", "cert_file", "key_file") if (pool[name] or "").startswith(folder)}
    if not written:
        return
    context = create_urllib3_context(cert_reqs=pool["cert_reqs"])
    try:
        if "ca_certs" in written:
            context.load_verify_locations(pool.pop("ca_certs"))
        elif not (pool["ca_certs"] or pool.get("ca_cert_data")):
            context.load_default_certs()
        if pool["cert_file"] and written & {"cert_file", "key_file"}:
            # Without a password, OpenSSL asks for that of an encrypted key on the terminal.
            context.load_cert_chain(pool.pop("cert_file"), pool.pop("key_file"), password="")
    except OSError as error:
        raise InvalidInput(
            f"The certificates or the key in the kubeconfig can't be used: {error}. Give PEM, the key that belongs to "
            "the certificate, and a key without a password."
        ) from error
    pool["ssl_context"] = context


def _load(given: Mapping[str, Any], configuration: Any, folder: str) -> None:
    kubeconfig, context = given.get("kubeconfig"), given.get("context")
    arguments = {
        "temp_file_path": folder,
        "context": context,
        "client_configuration": configuration,
        "persist_config": given.get("persist_config", False),
    }
    try:
        if isinstance(kubeconfig, str) and kubeconfig.lstrip().startswith("{"):
            # Action plugins pass the content as text.
            kubeconfig = json.loads(kubeconfig)
        if isinstance(kubeconfig, Mapping):
            kube_config.load_kube_config_from_dict(dict(kubeconfig), **arguments)
            return
        if not kubeconfig and not context and "KUBECONFIG" not in os.environ:
            try:
                kube_config.load_incluster_config(client_configuration=configuration)
                return
            except ConfigException:
                pass
        if is_content(kubeconfig):
            raise InvalidInput(
                "kubeconfig is a text of several lines, and no path. Give the content of a kubeconfig as a dictionary, "
                "for example with the filter from_yaml."
            )
        path = _one_path(kubeconfig) if kubeconfig else os.environ.get("KUBECONFIG", "~/.kube/config")
        kube_config.load_kube_config(config_file=path, **arguments)
    except (ConfigException, OSError, TypeError, ValueError, KeyError, AttributeError, yaml.YAMLError) as error:
        if given.get("host") and not kubeconfig:
            return
        named = ", ".join(map(str, kubeconfig)) if isinstance(kubeconfig, (list, tuple)) else kubeconfig
        source = "the given content" if is_content(kubeconfig) else named or "no kubeconfig"
        raise InvalidInput(
            f"No cluster can be reached with {source}: {str(error).rstrip('.')}. Set kubeconfig (or "
            "K8S_AUTH_KUBECONFIG), or host with api_key, or host with client_cert and client_key."
        ) from error


def _one_path(kubeconfig: Any) -> str:
    if isinstance(kubeconfig, (list, tuple)):
        return os.pathsep.join(os.path.expanduser(str(path)) for path in kubeconfig)
    if isinstance(kubeconfig, str):
        return os.pathsep.join(os.path.expanduser(path) for path in kubeconfig.split(os.pathsep))
    raise HoldfastError(f"kubeconfig must be a path, a list of paths or a dict, not {type(kubeconfig).__name__}.")


def _override(given: Mapping[str, Any], configuration: Any) -> None:
    for option, attribute in _ATTRIBUTES.items():
        if option in given:
            value = given[option]
            setattr(configuration, attribute, value.rstrip("/") if option == "host" else value)
    if "api_key" in given:
        _authorize(configuration, f"Bearer {given['api_key']}")
    elif given.get("username") and given.get("password"):
        basic = urllib3.make_headers(basic_auth=f"{given['username']}:{given['password']}")
        _authorize(configuration, basic["authorization"])
    headers = {key: value for key, value in (given.get("proxy_headers") or {}).items() if value is not None}
    if headers:
        configuration.proxy_headers = urllib3.make_headers(**headers)


def _authorize(configuration: Any, header: str) -> None:
    configuration.refresh_api_key_hook = None
    # Later versions also call it BearerToken.
    configuration.api_key = {"authorization": header}
