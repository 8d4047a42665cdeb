# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page: well formed, loads nothing, shows texts of others as texts, and stays small."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.report import runs

from ansible_collections.holdfast.kubernetes.plugins.module_utils._report import chart_rules, content_rules, write
from ansible_collections.holdfast.kubernetes.plugins.module_utils._report.page_rules import page

# Texts that a tenant may write as a name, a reason or a message.
HOSTILE = (
    "<script>alert(1)</script>\"'><img src=https://evil.example/x onerror=alert(1)>&lt;</style></title>"
    "\x00\x1b[2J\ud800\u202e"
)
VOID = {"meta", "input", "br", "img", "link"}
MEGABYTE = 1_000_000


class Page(HTMLParser):
    """The elements of a page and its text, and what is wrong with it."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.attributes, self.problems, self.texts = [], [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.problems.append(f"</{tag}>")

    def handle_data(self, data):
        self.texts.append(data)


def hostile(text):
    """A report in which all that others write is this text."""
    report = runs.rolling(2, detail=text)
    report["timeline"]["nodes"] = {f"{text}{name}": spans for name, spans in report["timeline"]["nodes"].items()}
    for spans in report["timeline"]["nodes"].values():
        spans[0]["why"] = spans[0]["phase"] = text
    report["timeline"]["budgets"] = dict(zip([text], report["timeline"]["budgets"].values()))
    report["summary"].update(operation=text, not_reported=[text])
    report["about"].update(group=text, run=text, options={text: text})
    for node in report["nodes"]:
        node.update(name=text, output=text, boot_id_before=text, versions_after={"kernel_version": text})
    return report


def hostile_failover(text):
    report = runs.failover()
    (node,) = report["nodes"]
    node.update(name=text, detail=text, evidence={"kind": text, text: text})
    node["entry"].update(by=text, reason=text, host=text, overridden_holds=[text])
    for step in node["entry"]["steps"]:
        step.update(detail=text, run=text)
    return report


def assert_safe(text):
    found = Page(text)
    assert (found.problems, found.open) == ([], [])
    assert found.tags.count("script") == 1
    assert "img" not in found.tags
    names = {name for name, _value in found.attributes}
    assert not names & {"src", "href", "style", "action"}
    assert not {name for name in names if name.startswith("on")}


@pytest.mark.parametrize("make", [hostile, hostile_failover])
def test_texts_of_others_are_texts(make):
    text = page(make(HOSTILE))
    assert_safe(text)
    assert "\x1b" not in text
    assert "alert(1)</script>" in "".join(Page(text).texts)


@given(st.text(max_size=60))
def test_any_text_is_a_text(text):
    assert_safe(page(hostile(text)))
    ElementTree.fromstring(chart_rules.picture(content_rules.timeline_of(hostile(text)), text))


@pytest.mark.parametrize("report", [runs.rolling(3), runs.failover(), {"summary": {}, "nodes": []}])
def test_it_loads_nothing(report):
    text = page(report)
    assert_safe(text)
    policy = next(value for name, value in Page(text).attributes if value.startswith("default-src"))
    assert policy.startswith("default-src 'none'; ")
    outside = set(re.findall(r"(?:https?:)?//[\w.-]+", text))
    assert outside <= {"https://bmc-3"}, outside


def test_300_nodes_are_small_and_can_be_filtered():
    text = page(runs.rolling(300))
    assert len(text.encode()) < 2 * MEGABYTE
    assert 'id="filter"' in text
    assert len(re.findall('class="lane" data-node=', text)) == 300
    assert 'id="filter"' not in page(runs.rolling(3))


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        ({}, {}, ""),
        ({"kernel_version": "6.1"}, {}, "kernel 6.1"),
        ({"kernel_version": "6.1", "kubelet_version": "v1"}, {"kernel_version": "6.1"}, "kernel 6.1"),
        (
            {"kernel_version": "6.1", "kubelet_version": "v1", "os_image": "12"},
            {"kernel_version": "6.2", "kubelet_version": "v2", "os_image": "12"},
            "kernel 6.1 → 6.2, kubelet v1 → v2",
        ),
    ],
)
def test_kernel_is_shown_and_what_has_changed(before, after, shown):
    assert content_rules.versions({"versions_before": before, "versions_after": after}) == shown


def test_failure_says_what_to_do():
    text = page(runs.rolling(3))
    assert "What needs attention" in text
    assert runs.FAILED in text
    assert "start the same playbook again" in text


def test_failover_shows_its_proof_and_its_steps():
    text = page(runs.failover())
    for shown in ("Failover worker-3", "Proof that worker-3 was off", "power_state", "shop/db-0", "metal3: no host"):
        assert shown in text


@pytest.mark.parametrize(
    ("report", "order"),
    [
        (runs.failover(), ["look and claim", "cordon", "fence or power on", "taint", "move"]),
        (runs.rolling(3), ["waits for its turn", "cordon", "drain", "reboot", "ready", "uncordon"]),
    ],
)
def test_the_legend_has_the_order_of_the_steps(report, order):
    timeline = content_rules.timeline_of(report)
    words = [chart_rules.legend_word(timeline, name) for name in chart_rules.used_colours(timeline)]
    assert [word for word in words if word in order] == [word for word in order if word in words]
    assert len(set(words) & set(order)) >= 4


def test_plan_shows_verdicts():
    nodes = [{"name": "a", "result": "planned", "verdict": "never", "detail": "pod x has no owner"}]
    text = page({"summary": {"operation": "kernel", "check_mode": True}, "nodes": nodes})
    assert "Plan of a rolling reboot kernel" in text
    assert "pod x has no owner" in text


def test_options_that_differ_are_counted_and_empty_ones_left_out():
    settings = [{"when": "always", "reason": "", "max": 1}, {"when": "required", "reason": "", "max": 1}]
    assert content_rules.common(settings) == {"when": "2 different values", "max": 1}


def test_picture_is_svg_in_both_styles():
    report = runs.rolling(3)
    picture = chart_rules.picture(content_rules.timeline_of(report), "three nodes")
    root = ElementTree.fromstring(picture)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "prefers-color-scheme:dark" in picture


def test_files_are_written_or_the_error_names_the_file(tmp_path):
    report = runs.rolling(1)
    write.write(report, as_json="", as_html=str(tmp_path / "page.html"))
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]
    with pytest.raises(write.NotWritten, match=r"missing/page\.html: No such file"):
        write.write(report, as_json=str(tmp_path / "missing/page.html"), as_html="")
