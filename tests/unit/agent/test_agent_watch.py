# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""List, then watch: what is told, and what is survived."""

from __future__ import annotations

import json

import pytest

from holdfast_agent.api import Away, Refused
from holdfast_agent.clock import ServerClock
from holdfast_agent.config import Config
from holdfast_agent.watch import Watcher

THEN = "2026-01-02T03:04:05.000000Z"


class End(BaseException):
    """The script is at its end."""


def lease(namespace, version, holder="me", **spec):
    metadata = {"name": "worker-1", "namespace": namespace, "resourceVersion": str(version)}
    return {"metadata": metadata, "spec": {"holderIdentity": holder, "acquireTime": THEN, **spec}}


def event(kind, item):
    return json.dumps({"type": kind, "object": item}).encode()


def bookmark(version):
    return event("BOOKMARK", {"metadata": {"resourceVersion": str(version)}})


def listed(version, *items, more=""):
    return {"metadata": {"resourceVersion": str(version), "continue": more}, "items": list(items)}


class Script:
    """An API server that answers what it is told to, in order."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []
        self.slept = []
        self.seconds = 0.0
        self.clock = ServerClock()

    def _next(self):
        if not self.answers:
            raise End
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def ask(self, method, path, **query):
        self.asked.append(("list", query.get("continue", "")))
        return self._next()

    def lines(self, path, read_seconds, **query):
        self.asked.append(("watch", query["resourceVersion"]))
        self.query = query
        answer = self._next()
        yield b""
        for line in answer:
            if isinstance(line, Exception):
                raise line
            if isinstance(line, float):
                self.seconds += line
                continue
            yield line


def follow(*answers, **config):
    script = Script(*answers)
    reported, away = [], []
    watcher = Watcher(
        script,
        Config(node_name="worker-1", **config),
        lambda holds: reported.append([hold.entry for hold in holds]),
        away.append,
        # Nobody waits here.
        sleep=script.slept.append,
        clock=lambda: script.seconds,
    )
    with pytest.raises(End):
        watcher._run()
    return script, reported, away


def test_changes_are_reported_and_a_renewal_is_no_change():
    script, reported, away = follow(
        listed(5, lease("a", 3)),
        [
            event("ADDED", lease("b", 6, "you")),
            event("MODIFIED", lease("b", 7, "you", renewTime=THEN)),
            event("MODIFIED", lease("a", 8, "")),
            event("DELETED", lease("b", 9, "you")),
            event("ADDED", lease("b", 10, "you")),
            bookmark(20),
        ],
        [],
    )
    assert reported == [["a/me"], ["a/me", "b/you"], ["b/you"], [], ["b/you"]]
    assert away == []
    assert script.asked == [("list", ""), ("watch", "5"), ("watch", "20"), ("list", "")]
    assert script.query["fieldSelector"] == (
        "metadata.name=worker-1,metadata.namespace!=kube-node-lease,metadata.namespace!=holdfast"
    )


def test_a_change_of_holder_is_reported_at_once():
    _script, reported, _away = follow(listed(5, lease("a", 3)), [event("MODIFIED", lease("a", 6, "you"))])
    assert reported == [["a/me"], ["a/you"]]


def test_all_pages_are_one_list():
    script, reported, _away = follow(listed(5, lease("a", 3), more="next"), listed(5, lease("b", 4)), [])
    assert reported == [["a/me", "b/me"]]
    assert script.asked[:2] == [("list", ""), ("list", "next")]


@pytest.mark.parametrize(
    "expired",
    [
        [event("ERROR", {"kind": "Status", "code": 410, "message": "too old"})],
        Refused("GET: 410 too old", 410),
        [b"no JSON"],
        [b'{"type": "ADDED"}'],
    ],
)
def test_expired_or_invalid_watches_are_listed_again(expired):
    script, reported, away = follow(listed(5, lease("a", 3)), expired, listed(9), [])
    assert reported == [["a/me"], []]
    assert away == []
    assert script.asked[:3] == [("list", ""), ("watch", "5"), ("list", "")]


def test_a_server_that_is_away_changes_nothing_and_is_reported_once_it_is_back():
    script, reported, away = follow(listed(5, lease("a", 3)), Away("refused"), Away("refused"), [bookmark(7)])
    assert reported == [["a/me"]]
    assert away == ["refused", "refused", ""]
    assert script.asked == [
        ("list", ""),
        ("watch", "5"),
        ("watch", "5"),
        ("watch", "5"),
        ("list", ""),
    ]


def test_a_server_that_is_away_from_the_beginning_says_nothing_about_holds():
    _script, reported, away = follow(Away("refused"), Refused("403", 403), listed(5), [])
    assert reported == [[]]
    assert away == ["refused", "403", ""]


def test_a_watch_that_breaks_off_resumes_at_its_last_event():
    script, reported, away = follow(
        listed(5), [event("ADDED", lease("a", 6)), Away("broken")], [event("DELETED", lease("a", 7))], []
    )
    assert reported == [[], ["a/me"], []]
    assert script.asked[2] == ("watch", "6")
    assert away == []


@pytest.mark.parametrize("nonsense", [{}, {"items": []}, {"metadata": {}}, {"items": [{}], "metadata": {}}])
def test_an_answer_that_is_not_a_list_is_not_taken_for_an_empty_one(nonsense):
    _script, reported, away = follow(nonsense, listed(5, lease("a", 3)), [])
    assert reported == [["a/me"]]
    assert "not a list of Leases" in away[0]


def test_only_namespaces_that_may_hold_do():
    _script, reported, _away = follow(listed(5, lease("a", 3), lease("b", 4)), [], namespaces=("b",))
    assert reported == [["b/me"]]


def test_a_namespace_that_may_not_hold_is_named_once(caplog):
    renewals = [event("MODIFIED", lease("a", version)) for version in (6, 7, 8)]
    follow(listed(5, lease("a", 3)), renewals, namespaces=("b",))
    assert [record.message for record in caplog.records if "namespaces" in record.message] == [
        "A Lease in a does not hold this node: the setting namespaces leaves its namespace out."
    ]


MINUTE = 60.0
SHORT, BROKEN = [], [Away("broken")]
EXPIRED = Refused("GET: 410 too old", 410)


@pytest.mark.parametrize("stream", [SHORT, BROKEN, [bookmark(6)]], ids=["ends", "breaks off", "tells no change"])
def test_streams_that_do_not_last_are_asked_for_less_and_less(stream):
    """A stream that tells nothing proves nothing, so a list has to tell what is so; it must not end the pauses."""
    script, reported, away = follow(*[listed(5, lease("a", 3)), stream] * 8)
    assert [kind for kind, _version in script.asked] == ["list", "watch"] * 8 + ["list"]
    assert len(script.slept) == 8
    assert all(first < later for first, later in zip(script.slept[:3], script.slept[3:6]))
    assert script.slept[-1] >= 5
    assert (away, reported) == ([], [["a/me"]] * 8)


@pytest.mark.parametrize(
    "stream", [[MINUTE, bookmark(6)], [MINUTE, bookmark(6), Away("broken")]], ids=["ends", "breaks off"]
)
def test_a_stream_that_lasted_is_followed_by_the_next_at_once(stream):
    script, _told, away = follow(listed(5), SHORT, listed(5), stream, stream)
    assert [kind for kind, _version in script.asked] == ["list", "watch", "list", "watch", "watch", "watch"]
    assert (len(script.slept), away) == (1, [])


@pytest.mark.parametrize("stream", [[MINUTE], [MINUTE, Away("broken")]], ids=["ends", "breaks off"])
def test_streams_without_a_line_are_followed_by_a_list(stream):
    """After a restore of etcd, the API server sends nothing until it comes to the version of the watch again."""
    script, reported, _away = follow(listed(1200, lease("a", 3)), stream, stream, listed(1000))
    assert script.asked == [("list", ""), ("watch", "1200"), ("watch", "1200"), ("list", ""), ("watch", "1000")]
    assert reported == [["a/me"], []]


def test_news_ends_the_pauses():
    script, _told, _away = follow(*[listed(5), SHORT] * 7, listed(5), [event("ADDED", lease("a", 6))], [MINUTE])
    assert script.slept[-2] >= 5
    assert script.slept[-1] < 1


def test_nodes_whose_versions_expire_at_once_do_not_list_at_once(monkeypatch):
    monkeypatch.setattr("random.uniform", lambda _least, most: most)
    script, _told, _away = follow(*[listed(5), EXPIRED] * 3)
    assert script.slept[0] > 1
    assert script.slept == sorted(set(script.slept))


class Minutes:
    """An API server that always answers the same, and a clock that only pauses move."""

    def __init__(self, watch, listing=None):
        self.watch, self.listing = watch, listing or listed(5, lease("a", 3))
        self.seconds = 0.0
        self.asked = []
        self.clock = ServerClock()

    def _answer(self, answer):
        self.asked.append(self.seconds)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def ask(self, *_request, **_query):
        return self._answer(self.listing)

    def lines(self, *_request, **_query):
        answer = self._answer(self.watch)
        yield b""
        for line in answer:
            if isinstance(line, Exception):
                raise line
            yield line

    def sleep(self, seconds):
        self.seconds += seconds
        if self.seconds > 3600:
            raise End


ALWAYS = {
    "ends at once": [[]],
    "breaks off": [BROKEN],
    "tells no change": [[bookmark(6)]],
    "429": [Away("429")],
    "503": [Away("503")],
    "403": [Refused("403", 403)],
    "410": [EXPIRED],
    "410 in the stream": [[event("ERROR", {"kind": "Status", "code": 410, "message": "too old"})]],
    "no JSON": [[b"<html>"]],
    "503 for lists too": [Away("503"), Away("503")],
    "410 for lists too": [EXPIRED, EXPIRED],
    "lists that are no lists": [[], {"items": []}],
}


@pytest.mark.parametrize("answers", ALWAYS.values(), ids=ALWAYS)
def test_whatever_a_server_always_answers_it_is_asked_seldom(answers):
    """An hour of it. The longest pause is 5 to 10 s; a list and a watch fit between two."""
    server = Minutes(*answers)
    watcher = Watcher(
        server,
        Config(node_name="worker-1"),
        lambda _holds: None,
        lambda _error: None,
        sleep=server.sleep,
        clock=lambda: server.seconds,
    )
    with pytest.raises(End):
        watcher._run()
    assert len([second for second in server.asked if second < 10]) < 30
    assert len(server.asked) < 2 * (3600 / 5 + 10)


def test_the_pause_that_the_server_asks_for_is_kept():
    script, _told, _away = follow(Away("429", 20.0), listed(5), Away("429", 20.0), SHORT)
    assert script.slept[0] > 20
    assert script.slept[1] > 20
    assert script.slept[2] < 20
