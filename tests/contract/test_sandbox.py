"""The sandbox: what its routes answer, what its ledger says, how it breaks and what its page shows."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.types import Message

from tidings.model.errors import Invalid, Misconfigured
from tidings.sandbox import content_hash, create_sandbox, read_ledger
from tidings.sandbox.conversations import SandboxConversations
from tidings.sandbox.duplicate_counts import DuplicateCounts
from tidings.sandbox.environment import SandboxEnvironment
from tidings.sandbox.faults import (
    RECIPIENT_FAULTS,
    FaultContext,
    FaultKind,
    FaultRule,
    SandboxFault,
    decide,
    parse_rule,
    spend,
    with_rule,
)
from tidings.sandbox.ledger import SandboxEntry, SandboxLedger
from tidings.sandbox.live_feed import MAX_BUFFERED_ENTRIES, LiveFeed
from tidings.sandbox.providers import PROVIDERS
from tidings.sandbox.simulator import ProviderArrival, SandboxSimulator

from ..servers import serving

NOON = 1_794_744_000_000_000


@dataclass
class Hand:
    """Time and chance in the hand of the test."""

    now: float = 0.0
    drawn: float = 0.0
    slept: list[float] = field(default_factory=list)

    def environment(self) -> SandboxEnvironment:
        async def wait(seconds: float) -> None:
            self.slept.append(seconds)

        return SandboxEnvironment(
            wall=lambda: NOON + int(self.now * 1_000_000), ticks=lambda: self.now, draw=lambda: self.drawn, sleep=wait
        )


@pytest.fixture
def hand() -> Hand:
    return Hand()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sandbox" / "ledger.jsonl"


@pytest.fixture
def app(path: Path, hand: Hand) -> Iterator[Starlette]:
    app = create_sandbox(path, environment=hand.environment())
    yield app
    app.state.world.close()


@pytest.fixture
async def phone(app: Starlette) -> AsyncIterator[httpx.AsyncClient]:
    async with client(app) as phone:
        yield phone


def client(app: Starlette) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost")


async def send(phone: httpx.AsyncClient, id: str = "m-1", to: str = "ada", **more: Any) -> httpx.Response:
    body = {"id": id, "to": to, "text": "hello", "subject": None, "data": None, "attempt": 1} | more
    return await phone.post("/sandbox/messages", json=body, headers={"x-sender-pid": "4711"})


async def counts(phone: httpx.AsyncClient) -> dict[str, Any]:
    found: dict[str, Any] = (await phone.get("/sandbox/ledger")).json()["counts"]
    return found


def entry(n: int = 1, to: str = "ada", **more: Any) -> SandboxEntry:
    fields = {"at": NOON, "channel": "phone", "id": f"m-{n}", "attempt": 1, "did": FaultKind.OK, "wait": 0.0}
    return SandboxEntry(**{"n": n, "to": to, "copy": 1, "hash": "0", **fields, **more})


# The phone and its ledger


async def test_a_message_is_taken_with_a_receipt(phone: httpx.AsyncClient) -> None:
    """The receipt names the phone and counts up."""
    first, second = await send(phone, "m-1"), await send(phone, "m-2")

    assert (first.status_code, first.json()) == (200, {"receipt": "phone-1"})
    assert second.json() == {"receipt": "phone-2"}


async def test_each_request_is_one_line_with_all_that_a_drill_needs(phone: httpx.AsyncClient, path: Path) -> None:
    """Time, channel, id, attempt, recipient, body hash, sender and what was done are in the file."""
    await send(phone, attempt=2, subject="Hi", data={"a": 1})

    (line,) = path.read_bytes().splitlines()
    assert {
        "n": 1,
        "time": "2026-11-15T12:00:00.000000Z",
        "channel": "phone",
        "id": "m-1",
        "attempt": 2,
        "to": "ada",
        "hash": content_hash("hello", "Hi", {"a": 1}),
        "sender": 4711,
        "did": "ok",
        "wait": 0.0,
        "copy": 1,
        "subject": "Hi",
        "text": "hello",
        "data": '{"a":1}',
    } == orjson.loads(line)
    assert [read.at for read in read_ledger(path)] == [NOON]


async def test_the_line_is_written_before_the_answer_leaves(app: Starlette, path: Path) -> None:
    """At the first byte of the answer the ledger already has the request."""
    lines_at_answer: list[int] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b'{"id": "m-1", "to": "ada"}'}

    async def answer(message: Message) -> None:
        if message["type"] == "http.response.start":
            lines_at_answer.append(len(path.read_bytes().splitlines()))

    scope = {"type": "http", "method": "POST", "path": "/sandbox/messages", "headers": [(b"host", b"localhost")]}
    await app(scope, receive, answer)

    assert lines_at_answer == [1]


async def test_the_body_hash_is_the_same_for_every_try_of_one_content(phone: httpx.AsyncClient, path: Path) -> None:
    """It covers text, subject and data, and not the attempt; another text has another hash."""
    await send(phone, attempt=1)
    await send(phone, attempt=2)
    await send(phone, text="hello!")

    first, second, other = (line.hash for line in read_ledger(path))
    assert first == second != other


async def test_a_duplicate_is_kept_counted_and_marked(phone: httpx.AsyncClient) -> None:
    """The second copy of an id is shown as a copy, never hidden."""
    await send(phone, "m-1")
    await send(phone, "m-2")
    await send(phone, "m-1", attempt=2)

    found = (await phone.get("/sandbox/ledger")).json()
    assert [line["copy"] for line in found["entries"]] == [1, 1, 2]
    assert found["counts"] == {
        "requests": 3,
        "refused": 0,
        "delivered": 3,
        "unique_ids": 2,
        "duplicates": 1,
        "whole": True,
    }
    assert "duplicate · copy 2" in (await phone.get("/")).text


async def test_a_retry_of_a_refused_request_is_not_a_duplicate(phone: httpx.AsyncClient) -> None:
    """Only what was delivered twice is a duplicate."""
    await send(phone, to="flaky-2", attempt=1)
    await send(phone, to="flaky-2", attempt=2)

    found = await counts(phone)
    assert (found["requests"], found["refused"], found["unique_ids"], found["duplicates"]) == (2, 1, 1, 0)


@pytest.mark.parametrize(
    ("body", "word"),
    [
        (b'{"id": "m-1", "to": ""}', "to must name a recipient"),
        (b'{"id": "m-1", "to": "  "}', "to must name a recipient"),
        (b'{"id": "m-1"}', "to must name a recipient"),
        (b'{"id": "m-1", "to": 7}', "to must name a recipient"),
        (b'{"to": "ada"}', "id must be"),
        (b'{"id": "m-1", "to": "ada", "text": 7}', "text must be"),
        (b'{"id": "m-1", "to": "ada", "attempt": 0}', "attempt must be"),
        (b'{"id": "m-1", "to": "ada", "attempt": true}', "attempt must be"),
        (b"[]", "not a JSON object"),
        (b"{", "not JSON"),
        (b"", "not JSON"),
    ],
)
async def test_a_bad_request_is_refused_with_a_sentence_and_still_in_the_ledger(
    phone: httpx.AsyncClient, body: bytes, word: str
) -> None:
    """400 says what is wrong; the request is counted, and delivered to nobody."""
    answer = await phone.post("/sandbox/messages", content=body)

    assert answer.status_code == 400
    assert word in answer.json()["error"]["message"]
    found = await counts(phone)
    assert (found["requests"], found["refused"], found["delivered"]) == (1, 1, 0)


async def test_a_body_over_the_limit_is_refused(phone: httpx.AsyncClient) -> None:
    """A megabyte is enough for any message."""
    assert (await send(phone, text="x" * 1_100_000)).status_code == 413


async def test_a_long_text_is_clipped_for_showing_and_hashed_whole(phone: httpx.AsyncClient, path: Path) -> None:
    """The ledger's lines stay small, and the hash still tells two long texts apart."""
    await send(phone, text="x" * 10_000)

    (line,) = read_ledger(path)
    assert len(line.text) == 4_000
    assert content_hash("x" * 10_000) == line.hash


async def test_a_request_that_cannot_be_recorded_is_not_delivered(
    phone: httpx.AsyncClient, app: Starlette, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a full disk the phone answers 507 and shows nothing."""

    def full(_: int, __: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("tidings.sandbox.ledger.os.write", full)
    answer = await send(phone)

    assert answer.status_code == 507
    assert "No space left" in answer.json()["error"]["message"]
    assert (await counts(phone))["requests"] == 0
    assert len(app.state.world.conversations) == 0


def test_a_torn_line_is_closed_off_and_skipped(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a line, left by a full disk or an earlier process, costs no other line."""
    path.parent.mkdir()
    path.write_bytes(b'{"n": 1, "ti')
    ledger = SandboxLedger(path)
    ledger.append(entry(2))
    whole = os.write
    with monkeypatch.context() as disk:
        disk.setattr("tidings.sandbox.ledger.os.write", lambda fd, line: whole(fd, line[:20]))
        with pytest.raises(Exception, match="No space left"):
            ledger.append(entry(3))
    ledger.append(entry(4))
    ledger.close()

    assert [read.n for read in read_ledger(path)] == [2, 4]


def test_a_ledger_that_cannot_be_opened_refuses_the_start(tmp_path: Path) -> None:
    """The sentence names the file and the reason."""
    with pytest.raises(Misconfigured, match=r"cannot open its ledger .* Is a directory"):
        create_sandbox(tmp_path)


async def test_the_ledger_route_gives_a_bounded_tail(phone: httpx.AsyncClient) -> None:
    """The newest entries, oldest first; a senseless limit is refused."""
    for n in range(5):
        await send(phone, f"m-{n}")

    found = (await phone.get("/sandbox/ledger?limit=2")).json()
    assert [line["id"] for line in found["entries"]] == ["m-3", "m-4"]
    for limit in ("0", "1001", "-1", "x", "²"):
        assert (await phone.get("/sandbox/ledger", params={"limit": limit})).status_code == 422


async def test_conversations_are_per_channel_and_recipient_newest_first(phone: httpx.AsyncClient) -> None:
    """The list is short; one conversation comes with its messages."""
    await send(phone, "m-1", "ada")
    await send(phone, "m-2", "grace")
    await send(phone, "m-3", "ada")

    found = (await phone.get("/sandbox/conversations")).json()["conversations"]
    one = (await phone.get("/sandbox/conversations?channel=phone&to=ada")).json()
    assert [(row["channel"], row["to"], row["delivered"]) for row in found] == [
        ("phone", "ada", 2),
        ("phone", "grace", 1),
    ]
    assert [message["id"] for message in one["messages"]] == ["m-1", "m-3"]
    assert (await phone.get("/sandbox/conversations?to=nobody")).status_code == 404


async def test_messages_survive_a_restart(phone: httpx.AsyncClient, path: Path) -> None:
    """A new sandbox on the same ledger shows the same phones and goes on counting."""
    await send(phone, "m-1")
    await send(phone, "m-1", attempt=2)

    async with client(create_sandbox(path)) as again:
        assert "duplicate · copy 2" in (await again.get("/")).text
        assert (await send(again, "m-1", attempt=3)).json() == {"receipt": "phone-3"}
        found = await counts(again)
        assert (found["requests"], found["unique_ids"], found["duplicates"]) == (3, 1, 2)


def test_a_start_reads_only_the_tail_and_says_so(path: Path) -> None:
    """The whole file is never read; a line cut by the limit is left out."""
    ledger = SandboxLedger(path)
    for n in range(101, 201):
        ledger.append(entry(n))
    line = len(path.read_bytes().splitlines()[-1]) + 1

    exact, whole = ledger.tail(limit=3 * line)
    cut, _ = ledger.tail(limit=3 * line - 1)
    everything, all_of_it = ledger.tail()
    ledger.close()
    assert ([read.n for read in exact], whole) == ([198, 199, 200], False)
    assert [read.n for read in cut] == [199, 200]
    assert (len(everything), all_of_it) == (100, True)


@pytest.mark.parametrize(
    ("per_conversation", "max_conversations", "max_entries", "expected"),
    [(2, 9, 99, [("c", 2), ("b", 2), ("a", 2)]), (9, 2, 99, [("c", 3), ("b", 3)]), (9, 9, 7, [("c", 3), ("b", 3)])],
)
def test_memory_is_bounded_in_every_direction(
    per_conversation: int, max_conversations: int, max_entries: int, expected: list[tuple[str, int]]
) -> None:
    """Per conversation, in conversations and over all: the oldest goes first."""
    kept = SandboxConversations(per_conversation, max_conversations, max_entries)
    for n in range(9):
        kept.add(entry(n, "abc"[n // 3]))

    assert [(one.to, len(one.entries)) for one in kept.newest_first()] == expected


def test_the_count_of_ids_is_bounded_and_says_so() -> None:
    """When ids had to be forgotten, the counts no longer claim to be whole."""
    tally = DuplicateCounts(max_ids=2)
    for n in range(1, 4):
        assert tally.whole
        tally.add(entry(n), ticks=0)

    assert not tally.whole
    assert [tally.seen("phone", f"m-{n}")[0] for n in range(1, 4)] == [0, 1, 1]


def test_what_is_counted_again_is_not_what_is_forgotten() -> None:
    """The newest half stays, an id that comes again is among them, and its copies go on counting."""
    tally = DuplicateCounts(max_ids=4)
    for n in (1, 2, 1, 3, 1, 4):
        copies, _ = tally.seen("phone", f"m-{n}")
        tally.add(entry(n)._replace(copy=copies + 1), ticks=0)

    assert tally.counts()["duplicates"] == 2
    assert tally.seen("phone", "m-1")[0] == 3


# Faults


@pytest.mark.parametrize(
    ("to", "attempt", "waited", "expected"),
    [
        ("ada", 1, None, SandboxFault(FaultKind.OK)),
        ("flaky-3", 1, None, SandboxFault(FaultKind.ERROR)),
        ("flaky-3", 2, 1.0, SandboxFault(FaultKind.ERROR)),
        ("flaky-3", 3, 2.0, SandboxFault(FaultKind.OK)),
        ("ada+flaky-2", 1, None, SandboxFault(FaultKind.ERROR)),
        ("throttle-5", 1, None, SandboxFault(FaultKind.THROTTLED, 5)),
        ("throttle-5", 1, 3.2, SandboxFault(FaultKind.THROTTLED, 2)),
        ("throttle-5", 1, 5.0, SandboxFault(FaultKind.OK)),
        ("down", 99, None, SandboxFault(FaultKind.ERROR)),
        ("lost", 99, None, SandboxFault(FaultKind.LOST)),
        ("lost-2", 1, None, SandboxFault(FaultKind.LOST)),
        ("lost-2", 2, None, SandboxFault(FaultKind.OK)),
        ("slow-2", 1, None, SandboxFault(FaultKind.SLOW, 2)),
        ("slow-99999", 1, None, SandboxFault(FaultKind.SLOW, 600)),
        ("cut", 1, None, SandboxFault(FaultKind.CUT)),
        ("gone", 1, None, SandboxFault(FaultKind.GONE)),
        ("error-21610", 9, None, SandboxFault(FaultKind.REFUSED, code="21610")),
        ("rota+error-is_archived", 1, None, SandboxFault(FaultKind.REFUSED, code="is_archived")),
        ("terror-21610", 1, None, SandboxFault(FaultKind.OK)),
        ("error-", 1, None, SandboxFault(FaultKind.OK)),
        ("begone", 1, None, SandboxFault(FaultKind.OK)),
        ("slow-", 1, None, SandboxFault(FaultKind.OK)),
        ("slow-٣", 1, None, SandboxFault(FaultKind.OK)),
        ("flaky-3-times", 1, None, SandboxFault(FaultKind.OK)),
    ],
)
def test_the_recipient_decides_by_name(to: str, attempt: int, waited: float | None, expected: SandboxFault) -> None:
    """A word at the end of the name, alone or after a plus, and nothing that only looks like one."""
    fault, rule = decide(FaultContext("phone", to, attempt, waited), (), now=0, draw=lambda: 0.0)

    assert (expected, None) == (fault, rule)


def test_every_recipient_fault_on_the_page_works() -> None:
    """The help names no word that the code does not know."""
    for word in RECIPIENT_FAULTS:
        fault, _ = decide(FaultContext("phone", word, 1), (), now=0, draw=lambda: 0.0)
        assert fault.kind is not FaultKind.OK, word


@pytest.mark.parametrize(
    ("rule", "now", "drawn", "hit"),
    [
        (FaultRule(1, FaultKind.ERROR), 0, 0.99, True),
        (FaultRule(1, FaultKind.ERROR, rate=0.02), 0, 0.019, True),
        (FaultRule(1, FaultKind.ERROR, rate=0.02), 0, 0.02, False),
        (FaultRule(1, FaultKind.ERROR, until=10), 9.9, 0, True),
        (FaultRule(1, FaultKind.ERROR, until=10), 10, 0, False),
        (FaultRule(1, FaultKind.ERROR, recipient="ada"), 0, 0, True),
        (FaultRule(1, FaultKind.ERROR, recipient="grace"), 0, 0, False),
        (FaultRule(1, FaultKind.ERROR, channel="phone"), 0, 0, True),
        (FaultRule(1, FaultKind.ERROR, channel="telegram"), 0, 0, False),
    ],
)
def test_a_rule_holds_for_its_people_its_time_and_its_rate(
    rule: FaultRule, now: float, drawn: float, hit: bool
) -> None:
    """Outside of any of them it does nothing."""
    fault, used = decide(FaultContext("phone", "ada", 1), (rule,), now=now, draw=lambda: drawn)

    assert hit == (fault.kind is FaultKind.ERROR)
    assert (rule if hit else None) == used


def test_rules_of_one_kind_replace_and_used_up_ones_go() -> None:
    """Pressing a button twice does not stack; the last of n uses removes the rule."""
    twice = FaultRule(2, FaultKind.LOST, times=2)
    rules = with_rule(with_rule((), FaultRule(1, FaultKind.LOST)), twice)
    assert (twice,) == rules

    once = spend(rules, twice)
    assert [rule.times for rule in once] == [1]
    assert spend(once, once[0]) == ()


@pytest.mark.parametrize(
    ("command", "word"),
    [
        ([], "JSON object"),
        ({}, "Unknown fault None"),
        ({"kind": "ok"}, "Use one of 500, 429, 404, lost, cut, slow"),
        ({"kind": "400"}, "Unknown fault '400'"),
        ({"kind": "500", "rate": 0}, "rate must be"),
        ({"kind": "500", "rate": 1.1}, "rate must be"),
        ({"kind": "500", "rate": True}, "rate must be"),
        ({"kind": "500", "rate": float("nan")}, "rate must be"),
        ({"kind": "500", "for_seconds": -1}, "for_seconds must be"),
        ({"kind": "500", "times": 1.5}, "times must be"),
        ({"kind": "slow", "seconds": 601}, "at most 600"),
        ({"kind": "500", "recipient": ""}, "recipient must be"),
        ({"kind": "500", "colour": "red"}, "no field 'colour'"),
        ({"kind": "error"}, "code must be"),
        ({"kind": "error", "code": "a b"}, "code must be"),
        ({"kind": "error", "code": "x" * 65}, "code must be"),
    ],
)
def test_an_invalid_fault_command_is_rejected_with_a_remedy(command: object, word: str) -> None:
    """The sentence names the field or the choices."""
    with pytest.raises(Invalid, match=word):
        parse_rule(command, id=1, now=0)


async def test_faults_are_set_shown_and_healed_by_command(phone: httpx.AsyncClient, hand: Hand) -> None:
    """What is set is listed with what is left of it, and healing ends it at once."""
    made = await phone.post("/sandbox/faults", json={"kind": 500, "for_seconds": 30})
    await phone.post("/sandbox/faults", json={"kind": "slow", "seconds": 3, "recipient": "grace"})
    hand.now = 10
    assert made.status_code == 201
    assert [
        (fault["kind"], fault["for_seconds"]) for fault in (await phone.get("/sandbox/faults")).json()["faults"]
    ] == [("slow", None), ("500", 20.0)]
    assert (await send(phone)).status_code == 500

    assert (await phone.delete(f"/sandbox/faults/{made.json()['id']}")).json() == {"healed": 1}
    assert (await send(phone)).status_code == 200
    assert (await phone.delete("/sandbox/faults/99")).status_code == 404
    assert (await phone.delete("/sandbox/faults")).json() == {"healed": 1}
    assert (await phone.get("/sandbox/faults")).json()["faults"] == []


@pytest.mark.parametrize(("code", "status"), [("503", 503), ("21610", 400)])
async def test_a_providers_own_error_can_be_asked_for(
    phone: httpx.AsyncClient, path: Path, code: str, status: int
) -> None:
    """By its code: it is in the ledger, in the list of faults and on the page, and nobody got the message."""
    made = await phone.post("/sandbox/faults", json={"kind": "error", "code": code})
    answer = await send(phone)

    assert made.json()["code"] == code
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    (line,) = read_ledger(path)
    assert (line.did, line.code, line.delivered) == (FaultKind.REFUSED, code, False)
    assert f"failed with error {code}" in (await phone.get("/")).text


async def test_a_fault_ends_automatically_after_its_count(phone: httpx.AsyncClient, hand: Hand) -> None:
    """After its time, or after its number of requests."""
    await phone.post("/sandbox/faults", json={"kind": "500", "for_seconds": 30})
    await phone.post("/sandbox/faults", json={"kind": "404", "times": 1})

    first, second = await send(phone), await send(phone)
    hand.now = 30
    third = await send(phone)
    assert [answer.status_code for answer in (first, second, third)] == [404, 500, 200]


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"kind": "fire"}'])
async def test_a_bad_fault_command_changes_nothing(phone: httpx.AsyncClient, body: bytes) -> None:
    """It is answered with 422 and a sentence."""
    answer = await phone.post("/sandbox/faults", content=body)

    assert answer.status_code == 422
    assert answer.json()["error"]["message"]
    assert (await phone.get("/sandbox/faults")).json()["faults"] == []


async def test_a_sender_that_honors_retry_after_gets_through(phone: httpx.AsyncClient, hand: Hand) -> None:
    """Retry-After counts down from the first refusal, whatever the attempt says."""
    first = await send(phone, to="throttle-5")
    hand.now = 2
    early = await send(phone, to="throttle-5")
    hand.now = 5
    late = await send(phone, to="throttle-5")

    assert [answer.status_code for answer in (first, early, late)] == [429, 429, 200]
    assert [answer.headers["retry-after"] for answer in (first, early)] == ["5", "3"]


async def test_a_sender_that_does_not_number_its_attempts_is_counted_for(phone: httpx.AsyncClient) -> None:
    """Without `attempt` the phone counts the tries that it saw."""
    answers = [await send(phone, to="flaky-3", attempt=None) for _ in range(3)]

    assert [answer.status_code for answer in answers] == [500, 500, 200]


async def test_a_slow_answer_is_delivered_first_and_sent_later(phone: httpx.AsyncClient, hand: Hand) -> None:
    """The ledger says how long the answer waited."""
    answer = await send(phone, to="slow-2")

    (line,) = (await phone.get("/sandbox/ledger")).json()["entries"]
    assert (answer.status_code, hand.slept) == (200, [2.0])
    assert (line["did"], line["wait"], line["copy"]) == ("slow", 2.0, 1)


@asynccontextmanager
async def served(app: Starlette) -> AsyncIterator[str]:
    """The application behind a real server, for what only a socket can show."""
    async with serving(app) as url:
        yield url
        app.state.world.feed.close()


@contextmanager
def listening() -> Iterator[socket.socket]:
    """A socket that already listens, so nobody has to wait for the server behind it."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        yield taken


@pytest.mark.parametrize(("to", "delivered"), [("lost", 1), ("cut", 0)])
async def test_a_cut_line_leaves_the_sender_without_an_answer(
    app: Starlette, path: Path, to: str, delivered: int
) -> None:
    """Lost was delivered and cut was not; the sender sees the same. The next request works."""
    async with served(app) as url, httpx.AsyncClient(base_url=url) as phone:
        with pytest.raises(httpx.TransportError):
            await send(phone, to=to)
        after = await send(phone, "m-2", "ada")

        assert after.status_code == 200
        assert [(to, delivered), ("ok", 1)] == [(line.did.value, line.copy) for line in read_ledger(path)]


async def test_an_unanswerable_request_stays_silent_where_there_is_no_socket_to_cut(app: Starlette, path: Path) -> None:
    """Behind another server the client gets nothing until it leaves; never a made-up answer."""
    arriving: list[dict[str, Any]] = [
        {"type": "http.disconnect"},
        {"type": "http.request", "body": b'{"id": "m-1", "to": "lost"}'},
    ]
    answered: list[Any] = []

    async def receive() -> dict[str, Any]:
        return arriving.pop()

    async def answer(message: Any) -> None:
        answered.append(message)

    scope = {"type": "http", "method": "POST", "path": "/sandbox/messages", "headers": [(b"host", b"localhost")]}
    await app(scope, receive, answer)

    assert answered == []
    assert [line.did.value for line in read_ledger(path)] == ["lost"]


def test_providers_share_faults_ledger_and_phones(path: Path, hand: Hand) -> None:
    """Another provider hands in an arrival and gets all of it; ids of two channels do not meet."""
    world = SandboxSimulator(path, hand.environment())
    world.break_({"kind": "500", "channel": "telegram"})
    done = [world.receive(ProviderArrival(channel, "m-1", "ada")) for channel in ("phone", "telegram")]
    world.heal()
    done.append(world.receive(ProviderArrival("telegram", "m-1", "ada")))
    world.close()

    assert [one.did for one in done] == [FaultKind.OK, FaultKind.ERROR, FaultKind.OK]
    assert [one.copy for one in done] == [1, 0, 1]
    assert {("phone", "ada"), ("telegram", "ada")} == {
        (one.channel, one.to) for one in world.conversations.newest_first()
    }
    assert len(PROVIDERS) >= 1


# The page


async def test_an_empty_phone_says_what_to_type(phone: httpx.AsyncClient) -> None:
    """The command can be copied as it stands."""
    page = (await phone.get("/")).text

    assert 'tidings send --channel phone --to ada --text "hello" --in 10s' in page


async def test_the_page_needs_nothing_from_elsewhere(phone: httpx.AsyncClient) -> None:
    """All that it loads comes from the sandbox, and the policy header holds it to that."""
    page = await phone.get("/")
    assert "default-src 'self'" in page.headers["content-security-policy"]
    for name in ("phone.css", "phone.js", "icon.svg"):
        assert f"/sandbox/static/{name}" in page.text
        found = await phone.get(f"/sandbox/static/{name}")
        assert found.status_code == 200
        assert "https://" not in found.text
    assert "https://" not in page.text


async def test_the_page_works_below_a_prefix(app: Starlette) -> None:
    """Mounted into another application, it loads its files from where it is."""
    async with client(Starlette(routes=[Mount("/pretend", app)])) as outer:
        page = await outer.get("/pretend/")
        assert 'href="/pretend/sandbox/static/phone.css"' in page.text
        assert (await outer.get("/pretend/sandbox/static/phone.css")).status_code == 200


async def test_what_people_send_is_text_and_never_markup(phone: httpx.AsyncClient) -> None:
    """Names, texts and data are escaped in the page."""
    evil = "<script>alert(1)</script>"
    await send(phone, evil, evil, text=evil, subject=evil, data={evil: evil})

    page = (await phone.get("/", params={"channel": "phone", "to": evil})).text
    assert evil not in page
    assert "&lt;script&gt;alert(1)" in page


async def test_the_page_opens_the_conversation_in_its_address(phone: httpx.AsyncClient) -> None:
    """Otherwise the newest one; refused tries are shown between the messages."""
    await send(phone, to="flaky-2", text="second try", attempt=1)
    await send(phone, to="flaky-2", text="second try", attempt=2)
    await send(phone, "m-2", "ada", text="newest")

    newest = (await phone.get("/")).text
    picked = (await phone.get("/?channel=phone&to=flaky-2")).text
    assert 'data-key="phone/ada" data-to="ada"' in newest
    assert "attempt 1 failed with 500" in picked
    assert '<body data-root="" class="picked">' in picked


async def test_messages_and_faults_arrive_live(app: Starlette) -> None:
    """The stream carries ready-made fragments; a page that connects is told to look once."""
    async with (
        served(app) as url,
        httpx.AsyncClient(base_url=url) as phone,
        phone.stream("GET", "/sandbox/stream") as stream,
    ):
        lines = stream.aiter_lines()
        assert (await next_event(lines))[0] == "stale"
        await send(phone, text="live & well")
        kind, news = await next_event(lines)
        await phone.post("/sandbox/faults", json={"kind": "500"})
        _, broken = await next_event(lines)

    assert kind == "news"
    assert [row["key"] for row in news["rows"]] == ["phone/ada"]
    assert "live &amp; well" in news["messages"][0]["html"]
    assert news["counts"]["requests"] == 1
    assert [fault["kind"] for fault in broken["faults"]] == ["500"]


async def next_event(lines: AsyncIterator[str]) -> tuple[str, dict[str, Any]]:
    """The next event of a stream: its name and its data."""
    kind = ""
    async for line in lines:
        name, _, value = line.partition(": ")
        if name == "event":
            kind = value
        elif name == "data":
            return kind, orjson.loads(value)
    raise AssertionError("the stream ended")


async def test_a_slow_page_is_notified_of_missed_events() -> None:
    """Its box is bounded, and the sender never waits for it."""
    feed = LiveFeed()
    with feed.listen() as slow:
        for n in range(MAX_BUFFERED_ENTRIES + 1):
            feed.tell(entry(n))
        batch = await slow.next(patience=60)
    assert batch is not None
    assert (len(batch.entries), batch.missed) == (MAX_BUFFERED_ENTRIES, True)
    assert not feed.listeners


async def test_closing_ends_every_stream() -> None:
    """An open page does not hold up the stop of the server."""
    feed = LiveFeed()
    with feed.listen() as page:

        async def close() -> None:
            feed.close()

        news, _ = await asyncio.gather(page.next(patience=60), close())  # in this order
        assert news is None


# The command


def run(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tidings.sandbox", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_a_port_in_use_is_one_clear_sentence(path: Path) -> None:
    """Exit code 2, nothing on standard output, and no ledger made."""
    with listening() as taken:
        port = taken.getsockname()[1]
        done = run("--port", str(port), "--ledger", str(path))

    assert (done.returncode, done.stdout) == (2, "")
    assert f"error: Port {port} on 127.0.0.1 is in use. Stop the other process, or choose" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not path.exists()


@pytest.mark.parametrize(
    ("options", "code", "word"),
    [
        (("--port", "70000"), 2, "a port is a number from 0 to 65535"),
        (("--port", "0", "--host", "203.0.113.1"), 78, "the sandbox has no key"),
        (("--port", "0", "--host", "203.0.113.1", "--key-file", __file__), 2, "cannot listen on 203.0.113.1"),
        (("--port", "0", "--ledger", "/"), 78, "cannot open its ledger /"),
    ],
)
def test_an_impossible_start_is_one_clear_sentence(options: tuple[str, ...], code: int, word: str) -> None:
    """With the exit code of its kind, and no traceback."""
    done = run(*options)

    assert code == done.returncode
    assert word in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.fixture
def started(path: Path) -> Iterator[Callable[[], tuple[subprocess.Popen[str], str]]]:
    """Starts the command on any free port; gives back the process and the address it printed."""
    running: list[subprocess.Popen[str]] = []

    def start() -> tuple[subprocess.Popen[str], str]:
        command = [sys.executable, "-m", "tidings.sandbox", "--port", "0", "--ledger", str(path)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        running.append(process)
        assert process.stdout is not None
        return process, process.stdout.readline().split()[-1].rstrip("/")

    yield start
    for process in running:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


@pytest.mark.crash
async def test_the_command_prints_its_address_and_survives_a_kill(
    started: Callable[[], tuple[subprocess.Popen[str], str]],
) -> None:
    """What was answered before kill -9 is there after the next start."""
    process, url = started()
    async with httpx.AsyncClient(base_url=url, timeout=30) as phone:
        await send(phone, "m-1")
    process.kill()
    process.wait()

    _, url = started()
    async with httpx.AsyncClient(base_url=url, timeout=30) as phone:
        found = (await phone.get("/sandbox/ledger")).json()
    assert [line["id"] for line in found["entries"]] == ["m-1"]


async def test_an_open_page_does_not_hold_up_the_stop(started: Callable[[], tuple[subprocess.Popen[str], str]]) -> None:
    """The stream ends in order and the process goes."""
    process, url = started()
    async with httpx.AsyncClient(base_url=url, timeout=30) as phone, phone.stream("GET", "/sandbox/stream") as stream:
        lines = stream.aiter_lines()
        assert (await next_event(lines))[0] == "stale"
        process.terminate()
        with pytest.raises(AssertionError, match="the stream ended"):
            await next_event(lines)
    process.wait(timeout=30)
