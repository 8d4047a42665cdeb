# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The documentation site, as `make docs` builds it: every link leads somewhere, and the search knows all pages."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
import yaml
from sphinx.search.en import SearchEnglish

CHECKOUT = Path(__file__).resolve().parents[2]
SITE = CHECKOUT / "build/site"


class Page(HTMLParser):
    """The anchors and links of a page, and what a browser loads for it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.ids |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag in ("script", "img", "iframe") and "src" in given:
            self.loaded.append(given["src"])
        if tag == "link" and given.get("rel") in ("stylesheet", "icon", "preload"):
            self.loaded.append(given["href"])


@pytest.fixture(scope="module")
def pages() -> dict[Path, Page]:
    done = subprocess.run(["make", "docs"], cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return {path: Page(path) for path in sorted(SITE.rglob("*.html"))}


@pytest.fixture(scope="module")
def index(pages: dict[Path, Page]) -> dict[str, Any]:
    text = (SITE / "searchindex.js").read_text()
    return dict(json.loads(text.removeprefix("Search.setIndex(").removesuffix(")")))


def broken(path: Path, pages: dict[Path, Page]) -> Iterator[str]:
    page = pages[path]
    for link in [*page.links, *page.loaded]:
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            continue
        target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        if not target.exists():
            yield f"{link} leads nowhere"
        elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].ids:
            yield f"{link} has no such anchor"


def test_every_link_and_anchor_leads_somewhere(pages):
    assert len(pages) > 100
    found = {str(path.relative_to(SITE)): list(broken(path, pages)) for path in pages}
    assert {name: problems for name, problems in found.items() if problems} == {}


def test_a_browser_loads_nothing_from_elsewhere(pages):
    found = {
        str(path.relative_to(SITE)): {urlsplit(link).netloc for link in page.loaded} for path, page in pages.items()
    }
    assert {name: hosts - {""} for name, hosts in found.items() if hosts - {""}} == {}


def test_every_page_is_in_the_table_of_contents(pages):
    listed = {(SITE / urlsplit(link).path).resolve() for link in pages[SITE / "index.html"].links}
    for name in ("docs/faq", "docs/rolling_reboot", "collections/index", "docs/decisions/README", "CONTRIBUTING"):
        assert SITE / f"{name}.html" in listed


def test_the_search_knows_modules_roles_options_and_guides(index):
    titles = set(index["titles"])
    for path in CHECKOUT.glob("plugins/modules/*.py"):
        assert any(title.startswith(f"holdfast.kubernetes.{path.stem} module") for title in titles), path.stem
    for path in CHECKOUT.glob("roles/*"):
        assert any(title.startswith(f"holdfast.kubernetes.{path.name} role") for title in titles), path.name
    for path in CHECKOUT.glob("docs/*.md"):
        assert path.read_text().splitlines()[0].removeprefix("# ").replace("`", "") in titles, path.name
    spec = yaml.safe_load((CHECKOUT / "roles/rolling_reboot/meta/argument_specs.yml").read_text())
    terms = {*index["terms"], *index["titleterms"]}
    # The index has the stems of words, and so does what the reader asks for.
    asked = {*spec["argument_specs"]["main"]["options"], "PodDisruptionBudget", "cordoned", "maintenance", "redfish"}
    assert {SearchEnglish({}).stem(word.lower()) for word in asked} <= terms
