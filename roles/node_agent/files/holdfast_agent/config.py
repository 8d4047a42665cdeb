# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about the configuration file.

```yaml
node_name: worker-1                        # the Node's name; required
kubeconfig: /etc/kubernetes/kubelet.conf   # or these four instead:
server: https://api.example.com:6443
certificate_authority: /etc/kubernetes/pki/ca.crt
client_certificate: /var/lib/kubelet/pki/kubelet-client-current.pem
client_key: /var/lib/kubelet/pki/kubelet-client-current.pem
enforcement: strict                        # strict: locks and masks; inhibitor: locks alone; observe: neither
masked_targets: [reboot, poweroff, halt, kexec, soft-reboot, exit]
alert_timeout: 14400                       # seconds; 0: never
namespaces: []                             # namespaces whose Leases hold; empty: all
textfile: ""                               # metrics for node_exporter, a path that ends in .prom; empty: none
state_directory: /var/lib/holdfast-agent
heartbeat_interval: 300                    # seconds between heartbeats of the Node's condition
log_level: info                            # debug, info, warning or error
```
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import Any

from .hold_rules import FORBIDDEN_NAMESPACES

# Outside of a container, "exit" switches the machine off.
TARGETS = ("reboot", "poweroff", "halt", "kexec", "soft-reboot", "exit")
ENFORCEMENTS = ("strict", "inhibitor", "observe")
LOG_LEVELS = ("debug", "info", "warning", "error")
KUBECONFIG = "/etc/kubernetes/kubelet.conf"
STATE_DIRECTORY = "/var/lib/holdfast-agent"

_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_DIRECT = ("server", "certificate_authority", "client_certificate", "client_key")


class ConfigError(Exception):
    """The configuration is wrong. ``mistakes`` has a sentence for each mistake."""

    def __init__(self, mistakes: list[str]) -> None:
        super().__init__("\n".join(mistakes))
        self.mistakes = mistakes


@dataclass(frozen=True)
class Config:
    """A valid configuration."""

    node_name: str
    kubeconfig: str = KUBECONFIG
    server: str = ""
    certificate_authority: str = ""
    client_certificate: str = ""
    client_key: str = ""
    enforcement: str = "strict"
    masked_targets: tuple[str, ...] = TARGETS
    alert_timeout: int = 14400
    namespaces: tuple[str, ...] = ()
    textfile: str = ""
    state_directory: str = STATE_DIRECTORY
    heartbeat_interval: int = 300
    log_level: str = "info"


KEYS = tuple(item.name for item in fields(Config))


def parse(content: Any) -> Config:
    """Validate the content of the file.

    Raises:
        ConfigError: It has mistakes, and the error lists all of them.
    """
    if not isinstance(content, dict):
        raise ConfigError([f"The configuration must be a mapping of keys to values, it is {_shown(content)}."])
    found = _Values(content)
    values: dict[str, Any] = {
        "node_name": found.name("node_name"),
        "enforcement": found.choice("enforcement", ENFORCEMENTS, "strict"),
        "masked_targets": found.listed("masked_targets", TARGETS, _one_of(TARGETS), f"of {', '.join(TARGETS)}"),
        "alert_timeout": found.number("alert_timeout", 0, 14400, "seconds, 0 for never"),
        "namespaces": found.listed(
            "namespaces",
            (),
            lambda item: bool(_LABEL.fullmatch(item)) and len(item) <= 63 and item not in FORBIDDEN_NAMESPACES,
            f"names of namespaces other than {' and '.join(FORBIDDEN_NAMESPACES)}",
        ),
        "textfile": found.path("textfile", "", ending=".prom"),
        "state_directory": found.path("state_directory", STATE_DIRECTORY),
        "heartbeat_interval": found.number("heartbeat_interval", 10, 300, "seconds"),
        "log_level": found.choice("log_level", LOG_LEVELS, "info"),
        **found.access(),
    }
    found.unknown()
    if found.mistakes:
        raise ConfigError(found.mistakes)
    return Config(**values)


class _Values:
    """Reads values from a mapping, and collects the mistakes."""

    def __init__(self, content: dict[Any, Any]) -> None:
        self._content = content
        self.mistakes: list[str] = []

    def _wrong(self, key: str, allowed: str) -> None:
        self.mistakes.append(f"{key} must be {allowed}, it is {_shown(self._content.get(key))}.")

    def _given(self, key: str) -> bool:
        return self._content.get(key) is not None

    def name(self, key: str) -> str:
        value = self._content.get(key)
        if isinstance(value, str) and len(value) <= 253 and _SUBDOMAIN.fullmatch(value):
            return value
        self._wrong(key, "the Node's name as the API has it (kubectl get nodes)")
        return ""

    def choice(self, key: str, allowed: tuple[str, ...], default: str) -> str:
        value = self._content[key] if self._given(key) else default
        if value not in allowed:
            self._wrong(key, f"one of {', '.join(allowed)}")
        return str(value)

    def number(self, key: str, least: int, default: int, unit: str) -> int:
        value = self._content[key] if self._given(key) else default
        # For Python, a bool is an int.
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            self._wrong(key, f"a whole number of at least {least} ({unit})")
            return default
        return value

    def listed(self, key: str, default: tuple[str, ...], fits: Any, allowed: str) -> tuple[str, ...]:
        if not self._given(key):
            return default
        value = self._content[key]
        if not isinstance(value, list):
            self._wrong(key, f"a list {allowed}" if allowed.startswith("of ") else f"a list of {allowed}")
            return default
        wrong = [item for item in value if not isinstance(item, str) or not fits(item)]
        if wrong:
            rest = allowed if allowed.startswith("of ") else f"of {allowed}"
            self.mistakes.append(f"{key} must be a list {rest}, but has {', '.join(map(_shown, wrong))}.")
            return default
        return tuple(dict.fromkeys(value))

    def path(self, key: str, default: str, *, ending: str = "") -> str:
        value = self._content[key] if self._given(key) else default
        if value == "" and default == "":
            return ""
        good = isinstance(value, str) and value.startswith("/") and value.endswith(ending) and "\0" not in value
        if not good:
            self._wrong(key, "an absolute path" + (f" that ends in {ending}, or empty" if ending else ""))
            return default
        return str(value)

    def access(self) -> dict[str, str]:
        """The kubeconfig, or the four values that replace it."""
        direct = [key for key in _DIRECT if self._content.get(key) not in (None, "")]
        if not direct:
            return {"kubeconfig": self.path("kubeconfig", KUBECONFIG)}
        if self._content.get("kubeconfig") not in (None, ""):
            self.mistakes.append(f"kubeconfig and {direct[0]} are both set: use only one of them.")
            return {}
        missing = [key for key in _DIRECT if key not in direct]
        if missing:
            self.mistakes.append(f"{', '.join(missing)} must be set with {direct[0]}, or kubeconfig instead.")
        server = self._content.get("server")
        if "server" in direct and not (isinstance(server, str) and re.fullmatch(r"https://[^/\s]+/?", server)):
            self._wrong("server", "a URL such as https://api.example.com:6443")
        paths = {key: self.path(key, "") for key in _DIRECT[1:] if key in direct}
        return {"kubeconfig": "", "server": str(server or ""), **paths}

    def unknown(self) -> None:
        for key in self._content:
            if key not in KEYS:
                self.mistakes.append(
                    f"{_shown(key)} is not a key of this configuration. The keys are {', '.join(KEYS)}."
                )


def _one_of(allowed: tuple[str, ...]) -> Any:
    return lambda item: item in allowed


def _shown(value: Any) -> str:
    """A value about as the user wrote it."""
    return "not given" if value is None else repr(value)
