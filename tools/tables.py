# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the tables of the READMEs from the documentation of the modules, roles, playbooks and plugins.

tools/tables.py [--check]

A table is between `<!-- table: NAME -->` and `<!-- end of table -->`. With --check, nothing is written: the exit status
is 1 if a table is stale, and the output names the file.

In the README: modules, roles, playbooks, plugins. In a role's README: entry points, and variables, in one table or in
several. Each of several tables names its variables without the role's prefix: `<!-- table: variables auth node_name
-->`. Each variable of meta/argument_specs.yml must be in exactly one table.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import workingtree
import yaml

CHECKOUT = workingtree.CHECKOUT
TABLE = re.compile(r"(<!-- table: (?P<name>[^\n]*?) -->\n).*?(?=<!-- end of table -->)", re.DOTALL)
# Ansible's markup for literal words: C(x), O(x=y), P(namespace.collection.role#role).
LITERAL = re.compile(r"\b[CEOPMV]\(([^()]*?)(?:#\w+)?\)")
BOLD = re.compile(r"\bB\(([^()]*)\)")
URL = re.compile(r"\bU\(([^()]*)\)")
COLLECTION = "holdfast.kubernetes"

# What a person wants to do, and the modules for it, the most important first.
JOBS = {
    "Reboot a fleet": [
        "reboot",
        "drain",
        "cordon",
        "reboot_slot",
        "node_info",
        "node_ready",
        "maintenance_window",
        "node_blockers",
        "etcd_quorum",
        "leftover_pods",
        "status_info",
        "run_report",
        "reboot_operation_info",
        "doctor",
        "metrics",
    ],
    "Hold a node": [
        "lease_hold",
        "lease_hold_info",
        "node_condition_info",
        "node_condition",
        "inhibitor_lock",
        "inhibitor_lock_info",
    ],
    "Fail over a dead node": ["out_of_service", "reboot_annotation", "bare_metal_host_info"],
    "Guard a Machine's deletion": ["deletion_hook", "deletion_hook_info"],
    "Prove graceful shutdown": ["graceful_shutdown", "graceful_shutdown_info", "graceful_shutdown_fit"],
}
# The first sentence of each other module's documentation; these modules are listed last.
FOR_ROLES = "Only the roles of this collection call this module; its options may change in any release."


class Wrong(Exception):
    """The documentation lacks what a table needs."""


def once(where: str, listed: Sequence[str], known: Iterable[str]) -> None:
    differ = {name for name in listed if listed.count(name) > 1} | (set(listed) ^ set(known))
    if differ:
        raise Wrong(f"{where} has to name each of these once: {', '.join(sorted(differ))}")


def text_of(described: str | Iterable[str]) -> str:
    """A description as one paragraph of Markdown that fits into a cell."""
    paragraph = " ".join([described] if isinstance(described, str) else described)
    paragraph = BOLD.sub(r"**\1**", URL.sub(r"<\1>", LITERAL.sub(r"`\1`", paragraph)))
    return " ".join(paragraph.split()).replace("|", "\\|")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(row)} |" for row in [head, *rows]]
    lines.insert(1, "|---" * len(head) + "|")
    return "\n".join(lines) + "\n"


def documentation(path: Path) -> dict[str, Any]:
    """The DOCUMENTATION of a plugin, from its Python file or the YAML file next to it."""
    content = path.read_text()
    if path.suffix == ".yml":
        loaded = yaml.safe_load(content)["DOCUMENTATION"]
    elif found := re.search(r'^DOCUMENTATION = r?"""(.*?)"""', content, re.DOTALL | re.MULTILINE):
        loaded = yaml.safe_load(found[1])
    else:
        raise Wrong(f"{path.relative_to(CHECKOUT)} has no DOCUMENTATION")
    return dict(loaded)


def short(path: Path) -> str:
    return text_of(documentation(path)["short_description"])


# --- the README


def modules() -> str:
    known = {path.stem: documentation(path) for path in sorted(CHECKOUT.glob("plugins/modules/*.py"))}
    for_jobs = [name for names in JOBS.values() for name in names]
    for_roles = [name for name, document in known.items() if document["description"][0] == FOR_ROLES]
    once("JOBS in tools/tables.py, or FOR_ROLES in its documentation,", for_jobs + for_roles, known)
    # A module without an action plugin runs where its task does.
    controller = {path.stem for path in CHECKOUT.glob("plugins/action/*.py")}
    parts = []
    for job, names in {**JOBS, "For the roles of this collection only": for_roles}.items():
        rows = [
            [f"`{name}`" + ("" if name in controller else " (on the node)"), text_of(known[name]["short_description"])]
            for name in names
        ]
        parts.append(f"**{job}**\n\n{table(['module', 'what it does'], rows)}")
    return "\n".join(parts)


def roles() -> str:
    rows = []
    for path in sorted(CHECKOUT.glob("roles/*")):
        what = text_of(entry_points_of(path)["main"]["short_description"])
        rows.append([f"[`{path.name}`](roles/{path.name}/README.md)", what])
    return table(["role", "what it does"], rows)


def playbooks() -> str:
    """Each playbook begins with a one-sentence comment, and names its guide after it."""
    rows = []
    for path in sorted(CHECKOUT.glob("playbooks/*.yml")):
        found = re.search(r"^---\n# (.+)\. Guide: (\S+)$", path.read_text(), re.MULTILINE)
        if not found:
            raise Wrong(f"{path.relative_to(CHECKOUT)} does not begin with '# WHAT IT DOES. Guide: docs/FILE.md'")
        rows.append([f"`{COLLECTION}.{path.stem}`", text_of(found[1]), f"[{Path(found[2]).stem}]({found[2]})"])
    return table(["playbook", "what it does", "guide"], rows)


def plugins() -> str:
    rows = [
        *([f"callback `{path.stem}`", short(path)] for path in sorted(CHECKOUT.glob("plugins/callback/*.py"))),
        *([f"inventory `{path.stem}`", short(path)] for path in sorted(CHECKOUT.glob("plugins/inventory/*.py"))),
        *([f"filter `{path.stem}`", short(path)] for path in sorted(CHECKOUT.glob("plugins/filter/*.yml"))),
        *([f"test `{path.stem}`", short(path)] for path in sorted(CHECKOUT.glob("plugins/test/*.yml"))),
        *(
            [f"event source `{path.stem}`", short(path)]
            for path in sorted(CHECKOUT.glob("extensions/eda/plugins/event_source/*.py"))
        ),
        *(
            [f"rulebook `{path.stem}`", text_of(yaml.safe_load(path.read_text())[0]["name"])]
            for path in sorted(CHECKOUT.glob("extensions/eda/rulebooks/*.yml"))
        ),
    ]
    return table(["plugin", "what it does"], rows)


# --- a role's README


def entry_points_of(role: Path) -> dict[str, Any]:
    return dict(yaml.safe_load((role / "meta/argument_specs.yml").read_text())["argument_specs"])


def entry_points(role: Path) -> str:
    rows = [[f"`{name}`", text_of(spec["short_description"])] for name, spec in entry_points_of(role).items()]
    return table(["`tasks_from`", "what it does"], rows)


def default_of(option: dict[str, Any]) -> str:
    if option.get("required"):
        return "required"
    default = option.get("default")
    if default in (None, "", [], {}):
        return ""
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    return f"`{', '.join(map(str, default)) if isinstance(default, list) else default}`"


def variable(name: str, option: dict[str, Any]) -> list[str]:
    text = text_of(option["description"])
    choices = [f"`{choice}`" for choice in option.get("choices", [])]
    if not all(choice in text for choice in choices):
        text += f" {'Some' if option['type'] == 'list' else 'One'} of {', '.join(choices)}."
    for key, below in option.get("options", {}).items():
        if f"`{key}`" not in text:
            text += f" `{key}`: {text_of(below['description'])}"
    return [f"`{name}`", default_of(option), text]


def variables(role: Path) -> dict[str, str]:
    """The tables by the names of their markers."""
    known = {name: option for spec in entry_points_of(role).values() for name, option in spec["options"].items()}
    readme = (role / "README.md").read_text()
    markers = [found["name"] for found in TABLE.finditer(readme) if found["name"].split()[0] == "variables"]
    named = {marker: [f"{role.name}_{name}" for name in marker.split()[1:]] or list(known) for marker in markers}
    listed = [name for marker in markers for name in named[marker]]
    once("a table of variables", listed, known)
    head = ["variable", "default", "description"]
    return {marker: table(head, [variable(name, known[name]) for name in names]) for marker, names in named.items()}


# --- the files


def filled(path: Path, tables: dict[str, str]) -> str:
    def fill(found: re.Match[str]) -> str:
        if found["name"] not in tables:
            raise Wrong(f"{path.relative_to(CHECKOUT)}: there is no table '{found['name']}'")
        return f"{found[1]}\n{tables[found['name']]}\n"

    return TABLE.sub(fill, path.read_text())


def tables_of(path: Path) -> dict[str, str]:
    if path.parent == CHECKOUT:
        makers: list[Callable[[], str]] = [modules, roles, playbooks, plugins]
        return {maker.__name__: maker() for maker in makers}
    return {"entry points": entry_points(path.parent), **variables(path.parent)}


def main() -> int:
    check = "--check" in sys.argv[1:]
    status = 0
    for path in [CHECKOUT / "README.md", *sorted(CHECKOUT.glob("roles/*/README.md"))]:
        name = path.relative_to(CHECKOUT)
        try:
            wanted = filled(path, tables_of(path))
        except Wrong as wrong:
            print(f"{name}: {wrong}")
            status = 1
            continue
        if wanted == path.read_text():
            continue
        if check:
            print(f"{name}: a table is stale; run make tables")
            status = 1
        else:
            path.write_text(wanted)
            print(f"{name}: written")
    return status


if __name__ == "__main__":
    sys.exit(main())
