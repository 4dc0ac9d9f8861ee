"""Discord: what leaves, what each of its codes means, and what a simulated Discord makes of it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import httpx
import pytest

from tidings.model.errors import Invalid, Misconfigured
from tidings.model.message import Message
from tidings.model.outcome import Done, Outcome, Reject, Retry
from tidings.model.task import Category, OnUnknown
from tidings.outbound.channels.base import Channel, probe
from tidings.outbound.channels.registry import build

from ..foreign_openapi import described
from ..receiver import Receiver, answer, receiving
from .conftest import Sandbox

HOOK = "223704706495545344"
TOKEN = "canary-canary_3d89bb7572e0fb30d8128367b3b1b44fecd1726de135cbe28a41f8b2f777c372"
THREAD = "111222333444555666"
NOW = 1_790_000_060_000_000

P, V, T, TH = Category.PERMANENT, Category.VALIDATION, Category.TEMPORARY, Category.THROTTLING


def channel(url: str, **options: Any) -> Channel:
    """A webhook at this address."""
    given = {"webhook_id": HOOK, "webhook_token": TOKEN, "base_url": f"{url}/api/v10", **options}
    return build("guild", "discord", given, now=lambda: NOW)


def message(to: str = "default", **content: Any) -> Message:
    """A message to somebody."""
    return Message("0190-a1", "default", "guild", to, {"text": "hello", **content}, NOW)


async def send(url: str, to: str = "default", options: dict[str, Any] | None = None, **content: Any) -> Outcome:
    """What came of one attempt."""
    made = channel(url, **(options or {}))
    try:
        return await made.send(message(to, **content))
    finally:
        await made.close()


# What leaves


async def test_the_request_is_discords_byte_for_byte(sandbox: Sandbox) -> None:
    """`wait=true`, or an unsaved message would give no error; the receipt is the message's id."""
    data = {"username": "Night watch", "allowed_mentions": {"parse": []}}
    outcome = await send(sandbox.url, text="Grüße", data=data)

    (seen,) = sandbox.requests
    assert (seen.method, seen.path) == ("POST", f"/api/v10/webhooks/{HOOK}/{TOKEN}?wait=true")
    assert seen.headers["content-type"] == "application/json"
    assert seen.headers["user-agent"].startswith("tidings/")  # Discord blocks who has none
    body = '{"content":"Grüße","username":"Night watch","allowed_mentions":{"parse":[]}}'
    assert seen.body == body.encode()
    assert outcome == Done("1000000000000000001")


async def test_a_thread_is_a_recipient(sandbox: Sandbox) -> None:
    """By its id; it has its own conversation on the phone."""
    outcome = await send(sandbox.url, THREAD, text="", data={"embeds": [{"title": "Rota"}]})

    (seen,) = sandbox.requests
    assert seen.path.endswith(f"?wait=true&thread_id={THREAD}")
    assert seen.body == b'{"embeds":[{"title":"Rota"}]}'
    assert isinstance(outcome, Done)
    assert sandbox.world.conversations.find("discord", THREAD) is not None


LINK = {"type": 1, "components": [{"type": 2, "style": 5, "label": "Rota", "url": "https://example.com"}]}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ({"text": "hello", "data": {"components": [LINK]}}, "hello"),
        ({"text": "", "data": {"components": [{"type": 10, "content": "Rota"}], "flags": 1 << 15}}, ""),
        ({"text": "hello", "data": {"embeds": [{"title": "Rota"}], "username": "Owl", "tts": True}}, "hello"),
        (
            {
                "text": "",
                "data": {"poll": {"question": {"text": "Who?"}, "answers": [{"poll_media": {"text": "Ada"}}]}},
            },
            "",
        ),
    ],
)
async def test_discords_own_description_accepts_what_is_sent_and_answered(
    sandbox: Sandbox, content: dict[str, Any], says: str
) -> None:
    """Judge: the provider's OpenAPI document. Components are ignored unless the query asks for them."""
    outcome = await send(sandbox.url, **content)

    assert isinstance(outcome, Done)
    (seen,) = sandbox.requests
    judge = described("discord")
    path = seen.path.removeprefix("/api/v10")
    judge.request("POST", path, seen.body)
    assert ("with_components=true" in path) is ("components" in seen.json)
    async with httpx.AsyncClient(base_url=sandbox.url, verify=False) as client:
        answered = await client.post(seen.path, json=seen.json)
        judge.response("POST", path.partition("?")[0], answered.status_code, answered.json())
        assert answered.json()["content"] == says
        assert len(answered.json()["components"]) == len(seen.json.get("components", []))
        if "components" in seen.json:
            plain = await client.post(seen.path.replace("&with_components=true", ""), json=seen.json)
            assert plain.json().get("components", plain.json().get("code")) == ([] if says else 50006)


# What an answer means


@pytest.mark.parametrize(
    ("code", "category", "whole"),
    [
        (50006, V, False),
        (50035, V, False),
        (220001, V, False),
        (220003, V, False),
        (50027, P, True),
        (40333, P, True),
        (10015, P, True),
        (10003, P, False),
    ],
)
async def test_discord_error_codes_map_to_retry_categories(
    sandbox: Sandbox, code: int, category: Category, whole: bool
) -> None:
    """A4: one row per code. The webhook is all that the channel has: without it the channel is paused."""
    sandbox.break_("error", code=str(code))
    outcome = await send(sandbox.url)

    assert isinstance(outcome, Reject)
    assert (outcome.category, outcome.whole_channel) == (category, whole)
    assert str(code) in outcome.reason


@pytest.mark.parametrize("code", ["20016", "20028", "20029", "40062"])
async def test_each_rate_limit_code_throttles_the_channel_for_the_retry_after_of_the_body(
    sandbox: Sandbox, code: str
) -> None:
    """A4: fractions of a second from the body; the header is rounded up."""
    sandbox.break_("error", code=code)
    outcome = await send(sandbox.url)

    assert isinstance(outcome, Retry)
    assert (outcome.category, outcome.after) == (TH, timedelta(seconds=5.5))
    assert outcome.whole_channel


async def test_a_429_is_waited_for_to_the_fraction_of_a_second(sandbox: Sandbox) -> None:
    """A4: exactly what Discord asks for."""
    sandbox.break_("429", seconds=64.57)
    outcome = await send(sandbox.url)

    assert isinstance(outcome, Retry)
    assert outcome.after == timedelta(seconds=64.57)


@pytest.fixture
async def receiver() -> Any:
    """For what stands before Discord."""
    async with receiving() as ready:
        yield ready


@pytest.mark.parametrize(
    ("body", "headers", "wait"),
    [
        (b"<html>blocked</html>", {"retry_after": "3600"}, timedelta(hours=1)),
        (b"<html>blocked</html>", {}, None),
        (b'{"retry_after": "soon"}', {"retry_after": "7"}, timedelta(seconds=7)),
        (b'{"retry_after": -3}', {}, None),
        (b'{"retry_after": 1e12}', {}, timedelta(hours=24)),
        (b'{"retry_after": true}', {"retry_after": "2"}, timedelta(seconds=2)),
    ],
)
async def test_a_429_of_a_proxy_throttles_the_channel(
    receiver: Receiver, body: bytes, headers: dict[str, str], wait: timedelta | None
) -> None:
    """F27: without the JSON fields the header counts; nonsense counts as nothing, and a day is the most."""
    receiver.script(answer(429, body, **headers))
    outcome = await send(receiver.url)

    assert isinstance(outcome, Retry)
    assert (outcome.category, outcome.after, outcome.whole_channel) == (TH, wait, True)


@pytest.mark.parametrize("status", ["500", "502", "503", "504", "522"])
async def test_a_server_error_is_retried(sandbox: Sandbox, status: str) -> None:
    """A4: temporary, says the table, whatever its body."""
    sandbox.break_("error", code=status)
    outcome = await send(sandbox.url)

    assert isinstance(outcome, Retry)
    assert (outcome.category, outcome.whole_channel) == (T, False)


async def test_a_204_counts_as_sent(receiver: Receiver) -> None:
    """204 is what a webhook says that does not wait."""
    receiver.script(answer(204))

    assert await send(receiver.url) == Done()


async def test_a_wrong_token_pauses_the_channel(sandbox: Sandbox) -> None:
    """10,000 wrong answers in ten minutes get an address blocked: one is enough."""
    outcome = await send(sandbox.url, options={"webhook_token": "wrong"})

    assert isinstance(outcome, Reject)
    assert outcome.whole_channel and "50027" in outcome.reason


async def test_the_webhook_can_be_tested_without_sending(sandbox: Sandbox) -> None:
    """`channels test`: its name, or what is wrong with it."""
    right, wrong = channel(sandbox.url), channel(sandbox.url, webhook_token="wrong")
    outcomes = [await probe(right), await probe(wrong)]
    await right.close()
    await wrong.close()

    assert outcomes[0] == Done("webhook Sandbox")
    assert isinstance(outcomes[1], Reject) and outcomes[1].whole_channel
    assert sandbox.ledger == []


# Long texts, recipients, configuration


async def test_a_long_text_is_refused_or_split(sandbox: Sandbox) -> None:
    """Bad input: embeds go with the first part, the name with all; a split text opens no thread."""
    text = "word " * 900
    with pytest.raises(Invalid, match="long_text"):
        channel(sandbox.url).check("default", {"text": text})
    split = {"long_text": "split"}
    with pytest.raises(Invalid, match="start a thread"):
        channel(sandbox.url, **split).check("default", {"text": text, "data": {"thread_name": "x"}})

    data = {"username": "Owl", "embeds": [{"title": "x"}]}
    outcome = await send(sandbox.url, options=split, text=text, data=data)
    assert outcome == Done("1000000000000000001 1000000000000000002 1000000000000000003")
    assert ["embeds" in seen.json for seen in sandbox.requests] == [True, False, False]
    assert {seen.json["username"] for seen in sandbox.requests} == {"Owl"}


@pytest.mark.parametrize(
    ("to", "content", "field"),
    [
        ("", {"text": "x"}, "to"),
        ("#general", {"text": "x"}, "to"),
        ("1&thread_id=2", {"text": "x"}, "to"),
        ("default", {"text": ""}, "text"),
        ("default", {"text": "x", "data": {"content": "y"}}, "data.content"),
        ("default", {"text": "x", "data": {"embeds": {}}}, "data.embeds"),
        ("default", {"text": "x", "data": {"embeds": [{}] * 11}}, "data.embeds"),
        ("default", {"text": "x", "data": {"components": [LINK], "flags": 1 << 15}}, "data.flags"),
    ],
)
async def test_invalid_discord_messages_are_refused_before_they_are_accepted(
    sandbox: Sandbox, to: str, content: dict[str, Any], field: str
) -> None:
    """Before it is accepted, and once more when it is sent."""
    with pytest.raises(Invalid) as caught:
        channel(sandbox.url).check(to, content)
    outcome = await send(sandbox.url, to, **content)

    assert (caught.value.field, bool(caught.value.remedy)) == (field, True)
    assert isinstance(outcome, Reject) and outcome.category is V
    assert sandbox.requests == []


@pytest.mark.parametrize(
    ("options", "field", "words"),
    [
        ({"webhook_id": "canary"}, "webhook_id", "/webhooks/"),
        ({"webhook_token": "can/ary"}, "webhook_token", "last part"),
        ({"webhook_token": 5}, "webhook_token", "last part"),
    ],
)
def test_an_invalid_discord_option_stops_the_start(options: dict[str, Any], field: str, words: str) -> None:
    """Bad input: the option and the remedy are named, and no secret is repeated (S9)."""
    with pytest.raises(Misconfigured) as caught:
        channel("http://127.0.0.1:1", **options)
    assert words in str(caught.value) and "canary" not in str(caught.value)
    assert caught.value.field == field


def test_the_rate_limit_and_the_rule_for_unknown_outcomes_are_discords() -> None:
    """What is commonly quoted for one webhook; no key against duplicates, so it is held."""
    traits = channel("http://127.0.0.1:1", webhook_id=int(HOOK)).traits

    assert (traits.per_second, traits.on_unknown) == (2.5, OnUnknown.HOLD)
    assert "no idempotency keys" in traits.why_on_unknown
