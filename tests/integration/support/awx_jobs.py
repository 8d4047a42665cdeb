# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Jobs as AWX runs them: by ansible-runner, in a private data directory with the files that AWX puts there."""

from __future__ import annotations

import base64
import itertools
import json
import signal
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml
from awx.survey import launch
from integration.support.playbooks import Done, Rolling, Run
from integration.support.rights import Account

from ansible_collections.holdfast.kubernetes.plugins.filter.survey import survey
from lab.paths import CHECKOUT
from lab.patience import PATIENCE

_ROLE = CHECKOUT / "roles/awx_objects"
TEMPLATES = {
    template["playbook"]: template
    for template in yaml.safe_load((_ROLE / "vars/main.yml").read_text())["__awx_objects_job_templates"]
}


def survey_of(playbook: str) -> dict[str, Any]:
    """The survey of the job template of a playbook, as the role awx_objects makes it."""
    template = TEMPLATES[playbook]
    specs = yaml.safe_load((_ROLE / template["specs"]).read_text())["argument_specs"]
    return survey(specs, template["questions"], template["entry_points"], template["prefix"])


def slices(names: list[str], count: int) -> list[list[str]]:
    """As AWX cuts an inventory: every n-th host."""
    return [names[start::count] for start in range(count)]


class Job:
    """A job that was launched.

    Attributes:
        extra_variables: What AWX keeps for a relaunch.
    """

    def __init__(self, run: Run, artifacts: Path, hosts: list[str], extra_variables: Mapping[str, Any]) -> None:
        self.hosts = hosts
        self.extra_variables = extra_variables
        self._run = run
        self._artifacts = artifacts

    def done(self, patience: float = PATIENCE) -> Done:
        return self._run.done(patience)

    def until(self, condition: Any, what: str) -> Any:
        return self._run.until(condition, what)

    def kill(self) -> None:
        """Kill all that is in its container."""
        self._run.send_to_all(signal.SIGKILL)
        self._run.kill()

    @property
    def artifacts(self) -> dict[str, Any]:
        """What AWX keeps of set_stats: ``artifact_data`` of the last event."""
        events = (json.loads(path.read_text()) for path in self._artifacts.glob("job_events/*.json"))
        ends = [event["event_data"] for event in events if event["event"] == "playbook_on_stats"]
        assert len(ends) == 1, "the job has not ended"
        return dict(ends[0]["artifact_data"])


class Awx:
    """Launch jobs over the nodes of a world, with the token of an account that has the documented rights."""

    def __init__(self, rolling: Rolling, ansible: Any) -> None:
        self._rolling = rolling
        self._ansible = ansible
        self._numbers = itertools.count(4711)
        self._runs: list[Run] = []
        world = rolling.world
        account = Account(world.cluster, world.namespace, lambda _rule: True)
        world.made.objects.extend(account.objects)
        path = account.kubeconfig(rolling.lab.kubeconfig, ansible.folder)
        config = yaml.safe_load(path.read_text())
        cluster = config["clusters"][0]["cluster"]
        authority = ansible.folder / "ca.crt"
        authority.write_bytes(
            base64.b64decode(cluster["certificate-authority-data"])
            if "certificate-authority-data" in cluster
            else Path(cluster["certificate-authority"]).read_bytes()
        )
        # As AWX's credential type for Kubernetes sets them.
        self._credential = {
            "K8S_AUTH_HOST": cluster["server"],
            "K8S_AUTH_API_KEY": config["users"][0]["user"]["token"],
            "K8S_AUTH_VERIFY_SSL": "True",
            "K8S_AUTH_SSL_CA_CERT": str(authority),
        }

    def launch(
        self,
        playbook: str,
        hosts: Iterable[str],
        answers: Mapping[str, str] | None = None,
        *,
        artifacts: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> Job:
        """Launch the job template of a playbook with the answers to its survey.

        Args:
            artifacts: Those of the earlier jobs of a workflow.
            more: See :meth:`relaunch`.
        """
        prefix = TEMPLATES[playbook]["prefix"]
        given = {f"{prefix}{name}": answer for name, answer in (answers or {}).items()}
        variables = {**launch(survey_of(playbook), given), **(artifacts or {})}
        return self.relaunch(playbook, list(hosts), variables, **more)

    def relaunch(
        self, playbook: str, hosts: list[str], variables: Mapping[str, Any], *, limit: str = "", check: bool = False
    ) -> Job:
        """Launch a job with the extra variables of an earlier one."""
        number = next(self._numbers)
        data = self._ansible.folder / f"awx_{number}"
        for name in ("env", "inventory"):
            (data / name).mkdir(parents=True)
        (data / "project").symlink_to(CHECKOUT)
        script = data / "inventory/hosts"
        script.write_text(f"#!{sys.executable}\nprint({json.dumps(self._inventory(hosts, data))!r})\n")
        script.chmod(0o700)
        own = {
            f"{name}_{key}": value
            for name in ("awx", "tower")
            for key, value in {
                "job_id": number,
                "job_launch_type": "manual",
                "job_template_name": playbook,
                "user_name": "operator",
                "inventory_name": "nodes",
            }.items()
        }
        (data / "env/extravars").write_text(yaml.safe_dump({**variables, **own}))
        (data / "env/envvars").write_text(yaml.safe_dump({**self._credential, "JOB_ID": str(number)}))
        arguments = ["--forks", "10", *(["-l", limit] if limit else []), *(["--check"] if check else [])]
        (data / "env/cmdline").write_text(" ".join(arguments))
        command = [
            str(Path(sys.executable).parent / "ansible-runner"),
            *("run", str(data), "-p", f"playbooks/{playbook}.yml", "-i", str(number)),
        ]
        run = Run(command, self._ansible.environment(ANSIBLE_INVENTORY_UNPARSED_FAILED="True"), data)
        self._runs.append(run)
        return Job(run, data / "artifacts" / str(number), hosts, variables)

    def close(self) -> None:
        for run in self._runs:
            run.close()

    def _inventory(self, hosts: list[str], folder: Path) -> dict[str, Any]:
        every = self._rolling._inventory(hosts, folder, {"report": ""})["all"]
        return {
            "all": {"hosts": hosts, "vars": every["vars"]},
            "_meta": {"hostvars": {name: {"remote_tower_enabled": "true"} for name in hosts}},
        }
