# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sphinx's settings of the documentation site, see tools/docs.py."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes

project = "holdfast.kubernetes"
author = project_copyright = "holdfast.kubernetes contributors"
language = "en"

extensions = ["myst_parser", "sphinx_antsibull_ext"]
# Sphinx reads a copy of the repository, so each link of a guide leads where it leads in the repository.
include_patterns = [
    "index.md",
    "README.md",
    "SECURITY.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "docs/**.md",
    "roles/*/README.md",
    "tests/lab/README.md",
    "collections/**.rst",
]

# Headings have the same anchors as on GitHub.
myst_heading_anchors = 4
# A block without a language has commands.
highlight_language = "bash"

html_theme = "furo"
html_title = project
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False

ANSIBLE = "https://docs.ansible.com/projects/ansible/latest"
# Labels of Ansible's own documentation that the pages of modules, plugins and roles link to.
PAGES = {
    "action_plugins": "plugins/action.html",
    "callback_plugins": "plugins/callback.html",
    "ansible_configuration_settings": "reference_appendices/config.html",
    "common_return_values": "reference_appendices/common_return_values.html",
}
# The theme has the table of contents of each page, and antsibull-docs writes another one.
CONTENTS = re.compile(r"^\.\. contents::\n(?: {3}:.*\n)+", re.MULTILINE)
# The entries of tables of contents are whole titles, unless they have a short one.
ENTRY = re.compile(r"^ {4}((\w+)_(?:module|role|callback|filter|inventory|test))$", re.MULTILINE)
OTHERS = re.compile(r"ansible_collections\.(?!holdfast\.)(\w+)\.(\w+)\.(\w+)")


def setup(app: Any) -> None:
    app.connect("missing-reference", link_to_ansible)
    app.connect("source-read", change)


def link_to_ansible(_app: Any, _env: Any, wanted: Any, shown: nodes.Node) -> nodes.Node | None:
    """Link to Ansible's documentation. Sphinx' own way, intersphinx, reads an index of it from the network."""
    target = wanted.get("reftarget", "")
    if found := OTHERS.fullmatch(target):
        page = "collections/{}/{}/{}.html".format(*found.groups())
    elif target.startswith("ANSIBLE_"):
        page = f"reference_appendices/config.html#envvar-{target}"
    elif target in PAGES:
        page = PAGES[target]
    else:
        return None
    return nodes.reference("", "", shown, refuri=f"{ANSIBLE}/{page}", internal=False)


def change(_app: Any, name: str, source: list[str]) -> None:
    """Adapt the pages of antsibull-docs, and list the decisions in the table of contents below the page about them."""
    if name.startswith("collections/"):
        source[0] = ENTRY.sub(r"    \2 <\1>", CONTENTS.sub("", source[0]))
    elif name == "docs/decisions/README":
        source[0] += "\n```{toctree}\n:hidden:\n:glob:\n\n[0-9]*\n```\n"
