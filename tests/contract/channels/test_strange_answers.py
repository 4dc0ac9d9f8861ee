"""Twilio, Slack, Discord and GroupMe when somebody else answers, or nobody: judged by status, nothing lost.

One suite for the kinds that post to a provider of their own; each is aimed at a receiver that misbehaves.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest

from tidings.config import ChannelSettings
from tidings.model.message import Message
from tidings.model.outcome import Done, Outcome, Reject, Retry, Unknown
from tidings.model.task import Category
from tidings.outbound.channels.base import Channel, probe
from tidings.outbound.channels.registry import KINDS, build
from tidings.wire.http_client import MAX_SHOWN

from ..receiver import (
    Act,
    Receiver,
    answer,
    black_hole,
    cut,
    drip_head,
    endless,
    hang_up_in_head,
    no_http,
    receiving,
    refusing,
)
from .conftest import Sandbox

pytestmark = pytest.mark.slow

NOW = 1_790_000_060_000_000
SECRET = "canary0123456789abcdef"
ACCOUNT = "AC" + "0123456789abcdef" * 2
PAGE = b"<!doctype html><html><body>" + b"Bad gateway " * 1_000_000  # 12 MB

# How to make each, where its recipient is, and below which path of the sandbox it lives.
CASES: dict[str, tuple[str, dict[str, Any], str, str]] = {
    "twilio": ("twilio", {"account_sid": ACCOUNT, "auth_token": SECRET, "sender": "Tidings"}, "+15551234567", ""),
    "slack": ("slack", {"token": f"xoxb-{SECRET}"}, "C0123456789", "/api"),
    "slack webhook": ("slack", {"webhook_token": f"T1/B1/{SECRET}"}, "default", "/services"),
    "discord": ("discord", {"webhook_id": "1", "webhook_token": SECRET}, "default", "/api/v10"),
    "groupme bot": ("groupme", {"bot_id": SECRET}, "bot", "/v3"),
    "groupme": ("groupme", {"token": SECRET}, "12345678", "/v3"),
}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> str:
    """Each kind, in each of its ways."""
    return str(request.param)


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    """A receiver that does as it is told."""
    async with receiving() as ready:
        yield ready


def channel(case: str, url: str, **options: Any) -> Channel:
    """A channel that speaks to this address."""
    kind, given, _, path = CASES[case]
    return build("mine", kind, {**given, "base_url": url + path, "deadline": 20, **options}, now=lambda: NOW)


def message(case: str, **content: Any) -> Message:
    """A message to somebody."""
    return Message("0190-a1", "default", "mine", CASES[case][2], {"text": "hello", **content}, NOW)


async def send(case: str, url: str, **options: Any) -> Outcome:
    """What came of one attempt."""
    made = channel(case, url, **options)
    try:
        return await made.send(message(case))
    finally:
        await made.close()


async def test_it_works_against_the_sandbox_as_it_is(case: str, sandbox: Sandbox) -> None:
    """The base of this suite: without strangers it is done, and in the ledger once."""
    assert isinstance(await send(case, sandbox.url), Done)
    assert [(entry.id, entry.copy) for entry in sandbox.ledger] == [("0190-a1", 1)]


@pytest.mark.parametrize(("fault", "delivered"), [("lost", True), ("cut", False)])
async def test_a_lost_answer_is_a_doubt_whether_it_arrived_or_not(
    case: str, sandbox: Sandbox, fault: str, delivered: bool
) -> None:
    """F24, R1: from here both look the same."""
    sandbox.break_(fault)
    outcome = await send(case, sandbox.url)

    assert isinstance(outcome, Unknown)
    assert [entry.delivered for entry in sandbox.ledger] == [delivered]


@pytest.mark.parametrize("act", [cut, hang_up_in_head, black_hole, drip_head, no_http])
async def test_no_answer_after_the_request_left_is_unknown(case: str, receiver: Receiver, act: Act) -> None:
    """F24, F25, F28: cut, silent, slow or senseless; the deadline ends it."""
    receiver.script(act)

    assert isinstance(await send(case, receiver.url, deadline="600ms"), Unknown)
    assert len(receiver.requests) == 1


async def test_a_refused_connection_was_certainly_not_sent(case: str) -> None:
    """F22: a plain retry, no doubt."""
    with refusing() as url:
        outcome = await send(case, url)

    assert isinstance(outcome, Retry)
    assert (outcome.category, outcome.whole_channel) == (Category.TEMPORARY, False)


@pytest.mark.parametrize("status", [200, 201, 203])
async def test_a_page_that_says_200_is_not_the_providers_yes(case: str, receiver: Receiver, status: int) -> None:
    """A captive portal or a proxy answers in HTML: nobody can say what became of the message."""
    receiver.script(answer(status, PAGE[:1000], content_type="text/html"))

    assert isinstance(await send(case, receiver.url), Unknown)


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (301, Reject),
        (400, Reject),
        (401, Reject),
        (403, Reject),
        (404, Reject),
        (408, Retry),
        (413, Reject),
        (429, Retry),
        (503, Retry),
    ],
)
async def test_html_instead_of_json_is_judged_by_its_status(
    case: str, receiver: Receiver, status: int, expected: type[Outcome]
) -> None:
    """Bad input: 12 MB of it do no harm either; the reason is short, printable, and nothing is parsed."""
    receiver.script(answer(status, PAGE, content_type="text/html"))
    outcome = await send(case, receiver.url)

    assert isinstance(outcome, expected)
    assert isinstance(outcome, Retry | Reject)
    assert outcome.whole_channel is (status in (301, 401, 403, 429) or (status, case) == (404, "groupme bot"))
    assert len(outcome.reason) < MAX_SHOWN + 80 and outcome.reason.isprintable()


@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        b"null",
        b"7",
        b'"x"',
        b"{}",
        b'{"code": "x", "error": 7, "meta": 5, "errors": []}',
        b'{"code": true, "meta": {"errors": 7}, "error": ["x"], "message": {}}',
        b'{"meta": {"errors": [null, 7, {}]}, "code": 1.5}',
        b"{" * 100_000,
        b'{"message": "' + b"\xff\x00\x1b[2J" * 100 + b'"}',
    ],
)
async def test_json_that_makes_no_sense_breaks_nothing(case: str, receiver: Receiver, body: bytes) -> None:
    """S18: a hostile provider cannot make a channel raise, nor get control characters into a page."""
    for status in (200, 400, 429, 500):
        receiver.script(answer(status, body))
        outcome = await send(case, receiver.url)
        assert isinstance(outcome, Done | Unknown if status == 200 else Retry | Reject | Unknown)
        assert repr(outcome).isprintable()


async def test_an_endless_answer_is_cut(case: str, receiver: Receiver) -> None:
    """F26: the status has come, and only so much of the rest is read."""
    receiver.script(endless)

    assert isinstance(await send(case, receiver.url), Done | Unknown)


@pytest.mark.parametrize("status", [200, 400, 401, 404, 429, 500])
async def test_no_secret_is_ever_shown(
    case: str, receiver: Receiver, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    """S9: not even when the other side repeats it, in its words, its codes or its receipts."""
    caplog.set_level("DEBUG")
    basic = b64encode(f"{ACCOUNT}:{SECRET}".encode()).decode()  # what Twilio gets
    said = f"{SECRET} {basic if case == 'twilio' else ''}"
    names = ("error", "message", "sid", "id", "channel", "ts", "needed", "friendly_name", "name", "user")
    inner = {"id": said, "name": said, "message": {"id": said}}
    more = {"ok": status == 200, "code": 1, "meta": {"errors": [said]}, "response": inner}
    body = orjson.dumps({**dict.fromkeys(names, said), **more})
    receiver.script(*[answer(status, body)] * 2, answer(status, said.encode()), cut)
    made = channel(case, receiver.url)
    outcomes = [await made.send(message(case)), await probe(made)]
    outcomes += [await made.send(message(case)) for _ in range(2)]
    await made.close()

    shown = repr(outcomes) + caplog.text + repr(made.traits) + repr(vars(made).get("_settings"))
    assert SECRET not in shown
    assert basic not in shown


@pytest.mark.parametrize("kind", ["twilio", "slack", "discord", "groupme"])
def test_settings_do_not_show_their_secrets(kind: str) -> None:
    """S9: a settings object may end in a traceback or a log."""
    for case in CASES.values():
        if case[0] == kind:
            assert SECRET not in repr(KINDS[kind].settings(**case[1]))


def test_the_printed_configuration_masks_them(case: str) -> None:
    """S9: `tidings config` shows which options there are, and no credential in clear."""
    kind, options, _, _ = CASES[case]
    shown = ChannelSettings(kind, options)

    assert SECRET not in repr(shown) + str(shown.describe())


async def test_content_that_json_cannot_hold_is_rejected(case: str, receiver: Receiver) -> None:
    """A channel gives back an outcome; it does not raise."""
    extras = {
        "twilio": {"content_sid": "HX" + "0" * 32, "content_variables": {"n": 2**70}},
        "discord": {"embeds": [{"n": 2**70}]},
    }
    made = channel(case, receiver.url)
    outcome = await made.send(message(case, data=extras.get(case, {"attachments": [{"n": 2**70}]})))
    await made.close()

    assert isinstance(outcome, Reject)
    assert outcome.category is Category.VALIDATION
    assert receiver.requests == []


async def test_a_lone_surrogate_breaks_nothing(case: str, receiver: Receiver) -> None:
    """JSON may carry half a character; it is rejected or replaced, never raised."""
    made = channel(case, receiver.url)
    outcome = await made.send(message(case, text="half \ud83d"))
    await made.close()

    assert isinstance(outcome, Reject | Done | Unknown)


async def test_nobody_can_be_asked_and_that_is_admitted(case: str, receiver: Receiver) -> None:
    """`lookup` is Unknown where the provider has no list with our id."""
    receiver.script(cut)
    made = channel(case, receiver.url)
    outcome = await made.lookup(message(case))
    await made.close()
    await made.close()

    assert isinstance(outcome, Unknown)
