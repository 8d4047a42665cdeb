# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is changed in a kubelet's configuration is what was asked for, and nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api.errors import MissingLibrary, Refused
from ansible_collections.holdfast.kubernetes.plugins.module_utils._shutdown import kubelet_edit_rules
from ansible_collections.holdfast.kubernetes.plugins.module_utils._shutdown.grace_rules import (
    BY_PRIORITY,
    CRITICAL,
    KEYS,
    TOTAL,
)
from ansible_collections.holdfast.kubernetes.plugins.module_utils._shutdown.kubelet_edit_rules import (
    Setting,
    edit,
    settings,
)

GROUPS = [{"priority": 0, "shutdownGracePeriodSeconds": 20}, {"priority": 2000000000, "shutdownGracePeriodSeconds": 10}]

# What people and programs write, each with the keys that it has.
OTHERS = [
    "apiVersion: kubelet.config.k8s.io/v1beta1",
    "kind: KubeletConfiguration",
    "address:   0.0.0.0   # everywhere",
    '"clusterDomain" : "cluster.local"',
    "'cgroupDriver': 'systemd'",
    "clusterDNS:\n- 10.96.0.10\n# the second one\n- 10.96.0.11 # here",
    "clusterDNS:\n  - 10.96.0.10\n\n",
    "evictionHard: {memory.available: 5%, # flow\n  nodefs.available: 10%}",
    "authentication:\n  # who\n  anonymous:\n    enabled: false\n\n  webhook: {enabled: true}",
    "staticPodPath:",
    "staticPodURLHeader:\n  X:\n    -",
    "featureGates: {}",
    "registerWithTaints: []",
    "# only a comment",
    "",
    "  # an indented comment",
    "maxPods: 110",
    "systemReserved: &reserved\n  cpu: 100m",
    "tlsCipherSuites: [ A,\n  B ]",
    "providerID: |\n  a text\n  of lines\n",
    "hairpinMode: >-\n  folded\n  too\n\n\n",
    "containerLogMaxSize: |+\n  kept\n\n",
    "resolvConf: /etc/a plain scalar\n  over two lines",
    "? podCIDR\n: 10.0.0.0/8",
    "volumePluginDir: é ü \u2014",
]
OURS = {
    TOTAL: ["30s", "1m30s # why", '"0s"', "'10s'   ", "0s", "  5s"],
    CRITICAL: ["10s", "0s\n# a comment", '"4s"'],
    BY_PRIORITY: [
        "[]",
        "[{priority: 0, shutdownGracePeriodSeconds: 5}]",
        "\n- priority: 0\n  shutdownGracePeriodSeconds: 5\n# in it\n- priority: 7\n  shutdownGracePeriodSeconds: 6 # x",
        "\n  - priority: 0\n    shutdownGracePeriodSeconds: 5",
        " # about it\n- {priority: 0, shutdownGracePeriodSeconds: 5}",
    ],
}
VALUES = {
    TOTAL: st.sampled_from(["0s", "30s", "1h2m3s"]),
    CRITICAL: st.sampled_from(["0s", "10s"]),
    BY_PRIORITY: st.sampled_from([[], GROUPS, GROUPS[:1]]),
}


def _key(part: str) -> str:
    found = yaml.safe_load(part)
    return next(iter(found)) if found else ""


@st.composite
def documents(draw: Any, without: tuple[str, ...] = ()) -> str:
    """Files as kubeadm, kubelets' packages and people write them."""
    parts = draw(st.lists(st.sampled_from(OTHERS), min_size=1, max_size=8, unique_by=lambda part: _key(part) or part))
    # A kubelet refuses a file that says nothing.
    if not any(_key(part) for part in parts):
        parts.append("kind: KubeletConfiguration")
    for key in [key for key in KEYS if key not in without and draw(st.booleans())]:
        value = draw(st.sampled_from(OURS[key]))
        parts.append(f"{key}:{'' if value.startswith((chr(10), ' #')) else ' '}{value}")
    parts = draw(st.permutations(parts))
    text = "\n".join(parts)
    indentation = draw(st.sampled_from(["", "  "]))
    if indentation and "\n\n" not in text:
        text = "\n".join(f"{indentation}{line}" for line in text.split("\n"))
    text = draw(st.sampled_from(["", "---\n", "# head\n---\n", "\ufeff", "%YAML 1.1\n---\n"])) + text
    text += draw(st.sampled_from(["", "\n", "\n\n# the end", "\n...\n", "\n---\nkind: Other\n"]))
    if draw(st.booleans()):
        text = text.replace("\n", "\r\n")
    try:
        found = next(iter(yaml.safe_load_all(text)))
        list(yaml.safe_load_all(text))
    except yaml.YAMLError:
        found = None
    # Some of the puzzles that the pieces make are no YAML.
    if not isinstance(found, dict):
        return draw(documents(without))
    return text


@st.composite
def json_documents(draw: Any, without: tuple[str, ...] = ()) -> str:
    names = st.sampled_from(["kind", "address", "maxPods", "x", "evictionHard", *(k for k in KEYS if k not in without)])
    leaf = st.one_of(st.integers(), st.booleans(), st.text(max_size=5), st.lists(st.integers(), max_size=2))
    found = draw(st.dictionaries(names, st.one_of(leaf, st.dictionaries(st.text(max_size=3), leaf, max_size=2))))
    for key in sorted(set(found) & set(KEYS)):
        found[key] = draw(VALUES[key])
    found["apiVersion"] = "v1beta1"
    text = json.dumps(found, indent=draw(st.sampled_from([None, 2, "\t"])), ensure_ascii=draw(st.booleans()))
    return text + draw(st.sampled_from(["", "\n"]))


def read(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return next(iter(yaml.safe_load_all(text)))


def parts_of_others(text: str) -> dict[str, int]:
    """How often each of the pieces that are not ours is in a text, byte for byte but for the ends of lines.

    Empty lines behind one are counted by themselves: one of our keys may come before them.
    """
    text = text.replace("\r\n", "\n")
    pieces = [part.rstrip("\n") for part in OTHERS if part]
    forms = ["\n\n", *(form for part in pieces for form in (part, part.replace("\n", "\n  ")))]
    return {form: text.count(form) for form in forms}


@given(st.one_of(documents(), json_documents()), st.fixed_dictionaries({}, optional=VALUES))
def test_only_the_wanted_setting_changes(text, values):
    changed = edit("f", text, {key: Setting(value) for key, value in values.items()})

    assert read(changed) == {**read(text), **values}


@given(documents(), st.fixed_dictionaries({}, optional=VALUES))
def test_no_byte_of_others_is_touched(text, values):
    changed = edit("f", text, {key: Setting(value) for key, value in values.items()})

    assert changed.count("\r") in (0, changed.count("\n"))
    assert parts_of_others(changed) == parts_of_others(text)


@given(st.one_of(documents(KEYS), json_documents(KEYS)), st.fixed_dictionaries({}, optional=VALUES))
def test_new_settings_leave_no_trace(text, values):
    changed = edit("f", text, {key: Setting(value) for key, value in values.items()})
    back = edit("f", changed, dict.fromkeys(reversed(list(values))))

    assert back == text


@given(st.one_of(documents(), json_documents()), st.fixed_dictionaries({}, optional=VALUES))
def test_earlier_settings_are_restored_as_they_were(text, values):
    before = settings("f", text, KEYS)
    changed = edit("f", text, {key: Setting(value) for key, value in values.items()})
    back = edit("f", changed, {key: before.get(key) for key in reversed(list(values))})

    assert back == text


@given(st.one_of(documents(), json_documents()))
def test_settings_are_found(text):
    found = settings("f", text, KEYS)

    assert {key: setting.value for key, setting in found.items()} == {
        key: value for key, value in read(text).items() if key in KEYS
    }


@given(st.one_of(documents(), json_documents()))
def test_setting_what_is_set_changes_nothing(text):
    assert edit("f", text, dict(settings("f", text, KEYS))) == text


def test_it_reads_like_the_rest_of_the_file():
    text = "apiVersion: v1\nshutdownGracePeriod: 0s # off\nzone: a\n"

    changed = edit("f", text, {TOTAL: Setting("30s"), CRITICAL: Setting("10s"), BY_PRIORITY: Setting(GROUPS)})

    assert changed == (
        "apiVersion: v1\nshutdownGracePeriod: 30s # off\nshutdownGracePeriodCriticalPods: 10s\n"
        "shutdownGracePeriodByPodPriority:\n- priority: 0\n  shutdownGracePeriodSeconds: 20\n"
        "- priority: 2000000000\n  shutdownGracePeriodSeconds: 10\nzone: a\n"
    )


def test_json_stays_json():
    text = '{\n\t"kind": "KubeletConfiguration",\n\t"maxPods": 110\n}\n'

    assert edit("f", text, {TOTAL: Setting("30s")}) == (
        '{\n\t"kind": "KubeletConfiguration",\n\t"maxPods": 110,\n\t"shutdownGracePeriod": "30s"\n}\n'
    )


def test_a_notation_that_no_longer_fits_is_replaced():
    """The file was written in another form meanwhile: the value counts."""
    before = settings("f", "a: 1\nshutdownGracePeriodByPodPriority:\n- {priority: 1}\n", KEYS)

    changed = edit("f", '{"a": 1}', {BY_PRIORITY: before[BY_PRIORITY]})

    assert json.loads(changed) == {"a": 1, BY_PRIORITY: [{"priority": 1}]}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "not a mapping|is empty"),
        ("- a\n", "not a mapping"),
        ("---\n---\na: 1\n", "not a mapping"),
        ("a: [\n", "is not YAML"),
        ("a: 1\n\tb: 2\n", "is not YAML"),
        ("shutdownGracePeriod: 1s\na: 1\nshutdownGracePeriod: 2s\n", "occurs 2 times"),
        ("shutdownGracePeriod: &g 1s\nsyncFrequency: *g\n", "refer to"),
        ("? shutdownGracePeriod\n: 1s\n", "unknown form"),
    ],
)
def test_what_would_be_a_risk_is_refused(text, why):
    with pytest.raises(Refused, match=why) as caught:
        edit("/etc/kubelet.yaml", text, {TOTAL: Setting("30s")})

    assert "/etc/kubelet.yaml can't be changed" in caught.value.message
    assert caught.value.fields == {"path": "/etc/kubelet.yaml"}


def test_no_comment_of_others_goes_with_a_setting():
    with pytest.raises(Refused, match="there are comments around"):
        edit("f", "{a: 1, # of a\n shutdownGracePeriod: 1s}\n", {TOTAL: None})


def test_a_merged_setting_is_overridden_and_left():
    text = "base: &base {shutdownGracePeriod: 1s}\n<<: *base\n"

    changed = edit("f", text, {TOTAL: Setting("30s")})

    assert changed == f"{text.rstrip()}\nshutdownGracePeriod: 30s\n"


def test_without_the_library_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(kubelet_edit_rules, "YAML_ERROR", "Traceback")

    with pytest.raises(MissingLibrary, match="python3-yaml"):
        edit("f", "a: 1\n", {TOTAL: Setting("30s")})
