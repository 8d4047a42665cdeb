# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One task gives the same result however it runs: in process, by `ansible -m`, or delegated over ssh."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from integration.support.turns import node_turns

from ansible_collections.holdfast.kubernetes.plugins.module_utils._api import paths
from ansible_collections.holdfast.kubernetes.plugins.modules import lease_hold

FQCN = "holdfast.kubernetes"
BASTION = "node-3"
# These values always differ: times, durations, the version of an object, and where something ran.
VARYING = {
    "resourceVersion", "uid", "creationTimestamp", "acquireTime", "renewTime", "acquired", "since", "time",
    "held_seconds", "duration", "seconds", "waited", "requests", "invocation", "managedFields",
    "_ansible_delegated_vars",
}  # fmt: skip


def plain(value: Any) -> Any:
    """A result without the values that vary."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items() if key not in VARYING}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, str):
        return re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME", value)
    return value


def task(module: str, **options: Any) -> dict[str, Any]:
    return {f"{FQCN}.{module}": options}


@pytest.fixture
def scene(world):
    """A held node with a pod that may not be evicted, and tasks of every kind on it: they read, write and fail."""
    (node,) = world.nodes()
    world.pod("bare", node)
    own = {"node": node, "namespace": world.namespace}
    return [
        task("lease_hold", holder="app", reason="why", wait=False, **own),
        task("lease_hold", holder="other", wait=False, **own),
        task("lease_hold_info", node=node),
        task("node_info", name=node),
        task("lease_hold", holder="app", state="absent", **own),
        task("cordon", name=node, owner="me", reason="why"),
        task("cordon", name=node, owner="you"),
        task("drain", name=node, owner="me"),
        task("cordon", name=node, owner="me", state="uncordoned"),
        task("lease_hold", holder="a,b", **own),
        task("cordon", name="no-such-node"),
    ]


EXPECTED = [True, "held", False, False, True, True, "refused", "refused", True, "invalid_input", "not_found"]


def outcome(result: dict[str, Any]) -> Any:
    return result["error"] if result.get("failed") else result["changed"]


def with_kubeconfig(tasks, kubeconfig, **more):
    return [{name: {**options, "kubeconfig": kubeconfig} for name, options in item.items()} | more for item in tasks]


MODULES = """
import contextlib, importlib, io, json, sys
from ansible.module_utils.testing import patch_module_args
results = []
for name, arguments in json.load(sys.stdin):
    path = name.replace("kubernetes.", "kubernetes.plugins.modules.")
    module = importlib.import_module("ansible_collections." + path)
    told = io.StringIO()
    with patch_module_args(arguments), contextlib.suppress(SystemExit), contextlib.redirect_stdout(told):
        module.main()
    results.append(json.loads(told.getvalue()))
print(json.dumps(results))
"""


def assert_same(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    dropped = ("failed", "api", "warnings", "deprecations", "exception", "ansible_facts", "_ansible_no_log")
    assert {key: value for key, value in plain(ours).items() if key not in dropped} == {
        key: value for key, value in plain(theirs).items() if key not in dropped
    }
    assert bool(ours.get("failed")) == bool(theirs.get("failed"))


@pytest.mark.long
@pytest.mark.core
def test_same_results_in_process_as_modules_and_ad_hoc(ansible, scene, kubeconfig):
    tasks = with_kubeconfig(scene, kubeconfig)
    here, _text = ansible.tasks(tasks)
    assert [outcome(item) for item in here] == EXPECTED
    assert all(item["msg"] for item in here if item.get("failed"))

    environment = ansible.environment()
    done = subprocess.run(
        [sys.executable, "-c", MODULES],
        env={**environment, "PYTHONPATH": environment["ANSIBLE_COLLECTIONS_PATH"]},
        input=json.dumps([next(iter(item.items())) for item in tasks]),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for ours, theirs in zip(here, json.loads(done.stdout), strict=True):
        assert_same(ours, theirs)

    for number in (0, 1, 4):
        ((name, options),) = tasks[number].items()
        done = ansible.command("ansible", "localhost", "-m", name, "-a", json.dumps(options))
        printed = json.loads(done.stdout.rpartition("=> ")[2])
        # Ad-hoc says this in other words, or only with --diff.
        printed["failed"] = "FAILED!" in done.stdout
        assert_same({key: value for key, value in here[number].items() if key != "diff"}, printed)


@pytest.fixture(scope="module")
def library(lab):
    """The libraries that our modules need on a real node; nodes have no such Python libraries themselves."""
    import kubernetes

    site = Path(kubernetes.__file__).parent.parent
    found = [
        path.name
        for path in site.iterdir()
        if re.match(
            r"(kubernetes|urllib3|certifi|dateutil|six|yaml|_yaml|requests|requests_oauthlib|oauthlib|charset_normalizer"
            r"|idna|websocket|durationpy|pydantic|pydantic_core|annotated_types|typing_extensions|typing_inspection)"
            r"(\.py)?$|[0-9a-f]{20}__mypyc",
            path.name,
        )
    ]
    target = "/opt/holdfast-test-library"
    node = lab.node(BASTION)
    pack = ["tar", "-C", str(site), "--exclude=__pycache__", "--exclude=kubernetes/aio", "-cf", "-", *found]
    unpack = ["ssh", *node.ssh_arguments(), f"root@{node.address}", f"mkdir -p {target} && tar -C {target} -xf -"]
    # Each test has its own turn; this is before the first and after the last test.
    with node_turns(lab, [BASTION]):
        there = lab.ssh(BASTION, "python3 -c 'import sys; print(*sys.version_info[:2])'").split()
        if [int(part) for part in there] != list(sys.version_info[:2]):
            pytest.skip(f"{BASTION} has another Python")
        with subprocess.Popen(pack, stdout=subprocess.PIPE) as packing:
            subprocess.run(unpack, stdin=packing.stdout, check=True)
    yield target
    with node_turns(lab, [BASTION]):
        lab.ssh(BASTION, f"rm -rf {target}")


@pytest.mark.long
@pytest.mark.nodes
class TestDelegated:
    """Delegated to another host over ssh, such as a bastion that alone reaches the API."""

    def test_same_results_with_the_controller_s_kubeconfig(self, ansible, scene, kubeconfig, lab, library):
        some = [scene[number] for number in (0, 1, 2, 4, 5, 6, 8)]
        before, _text = ansible.tasks(with_kubeconfig(some, kubeconfig))
        more = {"delegate_to": BASTION, "environment": {"PYTHONPATH": library}}
        there, _text = ansible.tasks(with_kubeconfig(some, kubeconfig, **more), "-i", str(lab.inventory))

        for ours, theirs in zip(before, there, strict=True):
            assert_same(ours, theirs)

    def test_a_variable_of_the_controller_s_environment_goes_along(self, ansible, world, kubeconfig, lab, library):
        (node,) = world.nodes()
        there = {**task("node_info", name=node), "delegate_to": BASTION, "environment": {"PYTHONPATH": library}}
        (result,), _text = ansible.tasks([there], "-i", str(lab.inventory), K8S_AUTH_KUBECONFIG=kubeconfig)

        assert [item["name"] for item in result["nodes"]] == [node], result

    def test_without_the_library_it_says_what_is_needed(self, ansible, kubeconfig, lab):
        item = {**task("lease_hold_info", node="any", kubeconfig=kubeconfig), "delegate_to": BASTION}
        (result,), _text = ansible.tasks([item], "-i", str(lab.inventory))

        assert result["failed"]
        assert "Python library kubernetes" in result["msg"]


class TestKubeconfig:
    @pytest.fixture
    def read(self, world):
        """A task that finds its node only with the right kubeconfig."""
        (node,) = world.nodes()
        return task("node_info", name=node)

    def given(self, read, kubeconfig):
        return with_kubeconfig([read], kubeconfig)[0]

    @pytest.mark.long
    def test_every_form(self, ansible, read, kubeconfig, lab):
        """Path, list of paths, joined paths and content, and an encrypted file, in one play."""
        content = yaml.safe_load(Path(kubeconfig).read_text())
        parts = []
        for key in ("clusters", "users"):
            part = ansible.folder / f"{key}.yml"
            part.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Config", key: content[key]}))
            parts.append(str(part))
        rest = ansible.folder / "rest.yml"
        rest.write_text(
            yaml.safe_dump({key: value for key, value in content.items() if key not in ("clusters", "users")})
        )
        parts.append(str(rest))
        password = ansible.folder / "password"
        password.write_text("open sesame")
        vault = ansible.folder / "vault.yml"
        vault.write_text(Path(kubeconfig).read_text())
        done = ansible.command("ansible-vault", "encrypt", str(vault), "--vault-password-file", str(password))
        assert done.returncode == 0, done.stderr
        assert vault.read_text().startswith("$ANSIBLE_VAULT")

        forms = [kubeconfig, parts, ":".join(parts), content, str(vault), [str(vault)]]
        results, _text = ansible.tasks(
            [self.given(read, form) for form in forms], "--vault-password-file", str(password)
        )

        for form, result in zip(forms, results, strict=True):
            assert not result.get("failed"), (form, result)
            assert plain(result["nodes"]) == plain(results[0]["nodes"]), "masked where it is no secret"

    @pytest.mark.long
    def test_variables(self, ansible, read, kubeconfig):
        (result,), _text = ansible.tasks([read], K8S_AUTH_KUBECONFIG=kubeconfig)
        assert len(result["nodes"]) == 1

        (result,), _text = ansible.tasks([read], KUBECONFIG=kubeconfig)
        assert len(result["nodes"]) == 1

    @pytest.mark.long
    def test_results_are_whole_with_the_content_given(self, ansible, world, kubeconfig):
        """The parts of a kubeconfig that are not secret (names, versions) are not masked in results."""
        (node,) = world.nodes()
        options = {"node": node, "namespace": world.namespace, "holder": "lab", "wait": False}
        content = yaml.safe_load(Path(kubeconfig).read_text())
        (result,), _text = ansible.tasks(with_kubeconfig([task("lease_hold", **options)], content))

        assert result["lease"] == world.get("leases", node)

    @pytest.mark.long
    def test_an_invalid_kubeconfig_is_reported(self, ansible, read):
        results, _text = ansible.tasks([self.given(read, "/not/there"), self.given(read, {"clusters": 1})])

        for result in results:
            assert (result["failed"], result["error"]) == (True, "invalid_input")
            assert "No cluster can be reached" in result["msg"]

    @pytest.mark.long
    def test_no_server_answers(self, ansible, world):
        item = task(
            "lease_hold_info", host="https://127.0.0.1:1", api_key="abc-def", validate_certs=False, api_timeout=1
        )
        (result,), text = ansible.tasks([item])

        assert (result["failed"], result["error"]) == (True, "api_unreachable")
        assert "127.0.0.1:1" in result["msg"]
        assert "abc-def" not in json.dumps(result) + text


class TestOptions:
    @pytest.mark.long
    def test_unknown_ones_are_refused(self, ansible, world, kubeconfig):
        tasks = [
            task("cordon", name="any", nmae="typo"),
            task("lease_hold", node="a", namespace="b", holder="c", wiat=1),
        ]
        results, _text = ansible.tasks(with_kubeconfig(tasks, kubeconfig))

        for result, word in zip(results, ("nmae", "wiat"), strict=True):
            assert result["failed"]
            assert word in result["msg"]

    @pytest.mark.long
    def test_missing_and_wrong_ones_are_refused(self, ansible, kubeconfig):
        tasks = [task("cordon"), task("cordon", name="a", state="half"), task("drain", name="a", timeout="soon")]
        results, _text = ansible.tasks(with_kubeconfig(tasks, kubeconfig))

        for result, word in zip(results, ("name", "half", "timeout"), strict=True):
            assert result["failed"]
            assert word in result["msg"]

    @pytest.mark.core
    def test_secrets_are_masked_even_at_the_loudest(self, ansible, world, kubeconfig):
        content = yaml.safe_load(Path(kubeconfig).read_text())
        key = content["users"][0]["user"]["client-key-data"]
        tasks = [
            *with_kubeconfig([task("lease_hold_info", node="any")], content),
            task("lease_hold_info", kubeconfig=kubeconfig, node="any", password="pass-word-1", api_key="token-of-mine"),
        ]
        results, text = ansible.tasks(tasks, "-vvvv")

        printed = json.dumps(results) + text
        for secret in (key, "pass-word-1", "token-of-mine"):
            assert secret not in printed

    @pytest.mark.long
    def test_check_mode_reaches_the_operation(self, ansible, world, kubeconfig):
        (node,) = world.nodes()
        options = {"node": node, "namespace": world.namespace, "holder": "app", "wait": False}
        (result,), text = ansible.tasks(
            with_kubeconfig([task("lease_hold", **options)], kubeconfig), "--check", "--diff"
        )

        assert result["changed"]
        assert "holderIdentity" in text, "no diff was shown"
        assert world.cluster.find(paths.lease(world.namespace, node)) is None

    @pytest.mark.long
    def test_group_defaults(self, ansible, world, kubeconfig):
        (node,) = world.nodes()
        play = {
            "hosts": "localhost",
            "gather_facts": False,
            "module_defaults": {f"group/{FQCN}.all": {"kubeconfig": kubeconfig}},
            "tasks": [task("cordon", name=node)],
        }
        book = ansible.folder / "group.yml"
        book.write_text(yaml.safe_dump([play]))
        done = ansible.command("ansible-playbook", str(book))

        assert done.returncode == 0, done.stdout
        assert world.cordoned(node)

    @pytest.mark.long
    def test_warnings_are_shown(self, ansible, world, kubeconfig):
        (node,) = world.nodes()
        world.cluster.merge(paths.node(node), {"spec": {"unschedulable": True}})
        _results, text = ansible.tasks(with_kubeconfig([task("cordon", name=node, state="uncordoned")], kubeconfig))

        assert "stays cordoned" in re.sub(r"\s+", " ", text)

    def test_the_operation_is_the_module_s(self):
        assert lease_hold.OPERATION.__name__ == "lease_hold"
