"""GroupMe: what leaves, what each status means, and how a message in doubt is looked up."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest

from tidings.app import build as build_app
from tidings.app.source_wiring import OutboundReplyPort
from tidings.config import ChannelSettings, Settings
from tidings.kernel.clock import ManualClock
from tidings.model.errors import Invalid, Misconfigured
from tidings.model.message import Message
from tidings.model.outcome import Done, Outcome, Reject, Retry, Skip, Unknown
from tidings.model.task import Category, OnUnknown
from tidings.outbound.channels.base import Channel, probe
from tidings.outbound.channels.groupme import found_in
from tidings.outbound.channels.registry import build
from tidings.store.port import Store

from ..kernel_harness import KernelHarness
from ..receiver import Receiver, answer, receiving
from .conftest import Sandbox

BOT_ID = "canary0123456789abcdef"
TOKEN = "canaryToken0123456789"
ADA, SQUAD = "12345678", "group:87654321"
NOW = 1_790_000_060_000_000

P, V, T, TH = Category.PERMANENT, Category.VALIDATION, Category.TEMPORARY, Category.THROTTLING


def channel(url: str, **options: Any) -> Channel:
    """A bot and an account at this address; an option of None is left out."""
    given = {"bot_id": BOT_ID, "token": TOKEN, "base_url": f"{url}/v3", **options}
    chosen = {name: value for name, value in given.items() if value is not None}
    return build("squad", "groupme", chosen, now=lambda: NOW)


def message(to: str = ADA, **content: Any) -> Message:
    """A message to somebody."""
    return Message("0190-a1", "default", "squad", to, {"text": "hello", **content}, NOW)


async def send(url: str, to: str = ADA, options: dict[str, Any] | None = None, **content: Any) -> Outcome:
    """What came of one attempt."""
    made = channel(url, **(options or {}))
    try:
        return await made.send(message(to, **content))
    finally:
        await made.close()


@pytest.fixture
async def receiver() -> Any:
    """For what no GroupMe would answer."""
    async with receiving() as ready:
        yield ready


# What leaves


@pytest.mark.parametrize(
    ("to", "path", "body", "has_token"),
    [
        ("bot", "/v3/bots/post", f'{{"bot_id":"{BOT_ID}","text":"Grüße"}}', False),
        (
            ADA,
            "/v3/direct_messages",
            '{"direct_message":{"source_guid":"0190-a1","recipient_id":"12345678","text":"Grüße"}}',
            True,
        ),
        (
            SQUAD,
            "/v3/groups/87654321/messages",
            '{"message":{"source_guid":"0190-a1","text":"Grüße","attachments":[]}}',
            True,
        ),
    ],
)
async def test_the_requests_are_groupmes_byte_for_byte(
    sandbox: Sandbox, to: str, path: str, body: str, has_token: bool
) -> None:
    """The engine's id is the source_guid; the token is in a header and not in the URL."""
    outcome = await send(sandbox.url, to, text="Grüße")

    (seen,) = sandbox.requests
    assert (seen.method, seen.path) == ("POST", path)
    assert seen.body == body.encode()
    assert (seen.headers.get("x-access-token") == TOKEN) is has_token
    assert isinstance(outcome, Done)
    assert bool(outcome.receipt) is has_token  # a bot's post is answered with nothing
    assert [(entry.channel, entry.to, entry.text) for entry in sandbox.ledger] == [("groupme", to, "Grüße")]


async def test_attachments_are_sent(sandbox: Sandbox) -> None:
    """And may stand without a text."""
    picture = [{"type": "image", "url": "https://i.groupme.com/1"}]
    outcome = await send(sandbox.url, "bot", text="", data={"attachments": picture})

    assert sandbox.requests[0].json["attachments"] == picture
    assert isinstance(outcome, Done)


# What an answer means


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (400, Reject(V, "")),
        (401, Reject(P, "", whole_channel=True)),
        (403, Reject(P, "", whole_channel=True)),
        (404, Reject(P, "")),
        (409, Done()),
        (420, Retry(TH, "", after=timedelta(seconds=60), whole_channel=True)),
        (429, Retry(TH, "", after=timedelta(seconds=60), whole_channel=True)),
        (500, Retry(T, "")),
        (502, Retry(T, "")),
        (503, Retry(T, "")),
        (504, Unknown("")),
    ],
)
async def test_groupme_statuses_map_to_retry_categories(sandbox: Sandbox, status: int, expected: Outcome) -> None:
    """A4: one row per status of the table. A repeated source_guid means that an earlier try arrived."""
    sandbox.break_("error", code=str(status))
    outcome = await send(sandbox.url)

    assert type(outcome) is type(expected)
    if isinstance(outcome, Retry | Reject) and isinstance(expected, Retry | Reject):
        assert (outcome.category, outcome.whole_channel) == (expected.category, expected.whole_channel)
        assert str(status) in outcome.reason
    if isinstance(outcome, Retry) and isinstance(expected, Retry):
        assert outcome.after == expected.after


@pytest.mark.parametrize(("status", "expected"), [(404, Reject(P, "", whole_channel=True)), (409, Reject(P, ""))])
async def test_an_unknown_bot_pauses_the_channel(sandbox: Sandbox, status: int, expected: Reject) -> None:
    """A bot's id is our own setting; and a bot's post has no guard that a 409 could come from."""
    sandbox.break_("error", code=str(status))
    outcome = await send(sandbox.url, "bot")

    assert isinstance(outcome, Reject)
    assert (outcome.category, outcome.whole_channel) == (expected.category, expected.whole_channel)


@pytest.mark.parametrize("status", [200, 201, 202, 204])
@pytest.mark.parametrize("to", ["bot", ADA])
async def test_every_2xx_is_done(receiver: Receiver, to: str, status: int) -> None:
    """The documentation and the clients disagree which one it is."""
    receiver.script(answer(status))

    assert await send(receiver.url, to) == Done()


async def test_errors_may_be_an_object(receiver: Receiver) -> None:
    """Seen in practice instead of the list; both are shown."""
    for errors, words in (({"filter": "cannot be blank"}, "filter cannot be blank"), (["no", "way"], "no; way")):
        body = orjson.dumps({"response": None, "meta": {"code": 400, "errors": errors}})
        receiver.script(answer(400, body))
        outcome = await send(receiver.url)
        assert isinstance(outcome, Reject) and words in outcome.reason


# In doubt


async def test_a_duplicate_source_guid_counts_as_sent(sandbox: Sandbox) -> None:
    """The answer is lost, the resend is refused as a duplicate, and the recipient has it once (R1)."""
    sandbox.break_("lost", times=1)
    lost = await send(sandbox.url)
    again = await send(sandbox.url)

    assert isinstance(lost, Unknown)
    assert again == Done()
    assert [entry.delivered for entry in sandbox.ledger] == [True, False]


@pytest.mark.parametrize("to", [ADA, SQUAD])
@pytest.mark.parametrize(("fault", "found"), [("lost", True), ("cut", False)])
async def test_an_unknown_outcome_is_looked_up_by_source_guid(
    sandbox: Sandbox, to: str, fault: str, found: bool
) -> None:
    """`ask`: it arrived and its receipt is found, or it certainly did not and may be sent again."""
    made = channel(sandbox.url)
    sandbox.break_(fault, times=1)
    await made.send(message(to))
    await made.send(message(to)._replace(id="0190-b2"))
    outcome = await made.lookup(message(to))
    await made.close()

    assert type(outcome) is (Done if found else Retry)
    assert not isinstance(outcome, Done) or outcome.receipt


@pytest.mark.parametrize(("fault", "requests"), [("lost", ["POST", "GET"]), ("cut", ["POST", "GET", "POST"])])
async def test_the_engine_looks_a_message_up_before_it_sends_it_again(
    store: Store, clock: ManualClock, sandbox: Sandbox, fault: str, requests: list[str]
) -> None:
    """E1, R1: through the engine, on both databases: the recipient has it once, and the doubt is told."""
    world = KernelHarness(store, clock, on_unknown=OnUnknown.ASK)
    made = channel(sandbox.url)
    world.channels["main"] = made  # type: ignore[index]
    await world.open()
    sandbox.break_(fault, times=1)
    id_ = await world.send(ADA)
    await world.step()
    in_doubt = await world.show(id_)
    await world.step(seconds=6)
    sent = await world.show(id_)
    await made.close()

    assert (in_doubt["state"], in_doubt["unknown"]) == ("pending", True)
    assert (sent["state"], bool(sent["receipt"])) == ("sent", True)
    assert [seen.method for seen in sandbox.requests] == requests
    assert sum(entry.delivered for entry in sandbox.ledger) == 1


async def test_an_empty_chat_proves_that_a_message_was_not_sent(sandbox: Sandbox) -> None:
    """304 and no body: an empty list."""
    made = channel(sandbox.url)
    outcome = await made.lookup(message())
    await made.close()

    assert isinstance(outcome, Retry)


@pytest.mark.parametrize(
    ("status", "body"), [(500, b""), (401, b"{}"), (200, b"<html>"), (200, b'{"response": {"direct_messages": 7}}')]
)
async def test_a_failed_lookup_leaves_the_outcome_unknown(receiver: Receiver, status: int, body: bytes) -> None:
    """R1: nothing is sent again on a guess."""
    receiver.script(answer(status, body))
    made = channel(receiver.url)
    outcome = await made.lookup(message())
    await made.close()

    assert isinstance(outcome, Unknown)


async def test_a_bots_post_cannot_be_looked_up(sandbox: Sandbox) -> None:
    """It has no guid of ours; a person decides."""
    made = channel(sandbox.url)
    outcome = await made.lookup(message("bot"))
    await made.close()

    assert isinstance(outcome, Unknown)
    assert sandbox.requests == []


def listed(count: int, *, since: int) -> list[Any]:
    """So many messages of others, the oldest at that second."""
    return [{"id": str(n), "source_guid": f"o-{n}", "created_at": since + n} for n in range(count)][::-1]


@pytest.mark.parametrize(
    ("others", "keys", "expected"),
    [
        (listed(5, since=NOW // 1_000_000 + 1), ["a"], Retry),
        (listed(4, since=NOW // 1_000_000 + 1), ["a"], Unknown),
        (listed(4, since=NOW // 1_000_000 - 9), ["a"], Unknown),
        (listed(4, since=NOW // 1_000_000 - 99), ["a"], Retry),
        ([{"source_guid": "a", "id": "1"}], ["a"], Done),
        ([{"source_guid": "a", "id": "1"}], ["a", "a.2"], Unknown),
        ([{}], ["a"], Unknown),
    ],
)
def test_a_short_page_does_not_prove_that_a_message_was_not_sent(
    others: list[Any], keys: list[str], expected: type[Outcome]
) -> None:
    """A short page is not a whole list: without all five messages of the chat, only time proves absence."""
    assert type(found_in(others, keys, total=5, accepted_at=NOW)) is expected
    assert type(found_in([], keys, total=None, accepted_at=NOW)) is Unknown


async def test_a_lookup_pages_through_direct_messages(sandbox: Sandbox) -> None:
    """They come twenty at a time, whatever limit is asked for; the message must not be sent twice."""
    made = channel(sandbox.url)
    first = await made.send(message())
    for number in range(45):
        await made.send(message()._replace(id=f"0190-b{number}"))
    found = await made.lookup(message())
    absent = await made.lookup(message()._replace(id="0190-c1"))
    await made.close()

    assert found == first
    assert isinstance(absent, Retry)
    asked = [seen.path for seen in sandbox.requests if seen.method == "GET"]
    assert len(asked) == 6
    assert ["before_id" in path for path in asked] == [False, True, True] * 2


def test_the_rule_for_unknown_outcomes_depends_on_the_credentials() -> None:
    """With an account it asks; a bot alone can only hold."""
    url = "http://127.0.0.1:1"
    both, bot = channel(url).traits, channel(url, token=None).traits

    assert (both.on_unknown, bot.on_unknown) == (OnUnknown.ASK, OnUnknown.HOLD)
    assert "our id" in both.why_on_unknown and "cannot be looked up" in bot.why_on_unknown
    assert channel(url, on_unknown="hold").traits.on_unknown is OnUnknown.HOLD


# Long texts, recipients, configuration


async def test_an_answer_in_a_group_goes_to_the_group_and_not_to_a_person_of_that_number(
    tmp_path: Path, clock: ManualClock
) -> None:
    """D11: the bot answers where it was asked; with a bot alone, through the bot."""
    for options, to in (({"token": TOKEN}, "group:9"), ({"bot_id": BOT_ID}, "bot")):
        settings = Settings(
            database=f"sqlite:///{tmp_path}/x.db", channels={"crew": ChannelSettings("groupme", options)}
        )
        app = build_app(settings, clock=clock)
        voice = OutboundReplyPort(app.messages, app.channels)
        _, row = await voice.prepare(
            "crew", "9", "done", in_chat=True, tenant="default", ordering_key="crew/9", now=clock.now()
        )
        assert to in row
        await app.close()


async def test_a_long_text_is_refused_or_split(sandbox: Sandbox) -> None:
    """Bad input: each part has a guid of its own, so that each is guarded, and all are looked up."""
    text = "word " * 300
    with pytest.raises(Invalid, match="long_text"):
        channel(sandbox.url).check(ADA, {"text": text})
    made = channel(sandbox.url, long_text="split")
    outcome = await made.send(message(text=text))
    asked = await made.lookup(message(text=text))
    await made.close()

    assert isinstance(outcome, Done)
    assert asked == outcome
    guids = [seen.json["direct_message"]["source_guid"] for seen in sandbox.requests[:2]]
    assert guids == ["0190-a1", "0190-a1.2"]


@pytest.mark.parametrize(
    ("options", "to", "content", "field"),
    [
        ({}, "ada", {"text": "x"}, "to"),
        ({}, "group:", {"text": "x"}, "to"),
        ({}, "group:1/2", {"text": "x"}, "to"),
        ({"token": None}, ADA, {"text": "x"}, "to"),
        ({"token": None}, SQUAD, {"text": "x"}, "to"),
        ({"bot_id": None}, "bot", {"text": "x"}, "to"),
        ({}, ADA, {"text": "\n"}, "text"),
        ({}, ADA, {"text": "x", "data": {"picture": 1}}, "data.picture"),
        ({}, ADA, {"text": "x", "data": {"attachments": {}}}, "data.attachments"),
    ],
)
async def test_invalid_groupme_messages_are_refused(
    sandbox: Sandbox, options: dict[str, Any], to: str, content: dict[str, Any], field: str
) -> None:
    """Before it is accepted, and once more when it is sent."""
    with pytest.raises(Invalid) as caught:
        channel(sandbox.url, **options).check(to, content)
    outcome = await send(sandbox.url, to, options, **content)

    assert (caught.value.field, bool(caught.value.remedy)) == (field, True)
    assert isinstance(outcome, Reject) and outcome.category is V
    assert sandbox.requests == []


@pytest.mark.parametrize(
    ("options", "field", "words"),
    [
        ({"bot_id": None, "token": None}, "bot_id", "token"),
        ({"token": "canary\n"}, "token", "ASCII"),
        ({"on_unknown": "guess"}, "on_unknown", "'ask'"),
        ({"on_unknown": "ask", "token": None}, "on_unknown", "'hold'"),
    ],
)
def test_an_invalid_groupme_option_stops_the_start(options: dict[str, Any], field: str, words: str) -> None:
    """Bad input: the option and the remedy are named, and no secret is repeated (S9)."""
    with pytest.raises(Misconfigured) as caught:
        channel("http://127.0.0.1:1", **options)
    assert words in str(caught.value) and "canary" not in str(caught.value)
    assert caught.value.field == field


async def test_the_account_can_be_tested_without_sending(sandbox: Sandbox) -> None:
    """`channels test`: whose token it is; a bot alone can only be tried."""
    made = [channel(sandbox.url), channel(sandbox.url, token="wrong"), channel(sandbox.url, token=None)]
    outcomes = [await probe(one) for one in made]
    for one in made:
        await one.close()

    assert outcomes[0] == Done("Sandbox (user 1)")
    assert isinstance(outcomes[1], Reject) and outcomes[1].whole_channel
    assert isinstance(outcomes[2], Skip)
    assert sandbox.ledger == []
