"""The HTTP API: what it answers, what it refuses, and that a refusal changes nothing."""

from __future__ import annotations

import asyncio
import csv
import io
import resource
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from time import process_time
from typing import Any
from uuid import uuid4
from zoneinfo import ZoneInfo

import httpx
import orjson
import pytest

from tidings.model.errors import InProgress, StoreUnavailable
from tidings.model.message import Message
from tidings.model.outcome import Done, Outcome, Reject, Retry, Unknown
from tidings.model.task import Category
from tidings.outbound.health import HealthStatus, evaluate_health

from ..time_limits import Limit, within
from .harness import KEY, AppHarness, house, in_one_house

both = pytest.mark.parametrize("home", ["sqlite", "postgres"], indirect=True)
MESSAGE = {"channel": "out", "to": "ada", "text": "hello"}


@pytest.fixture
async def home(request: pytest.FixtureRequest, sqlite_url: str) -> AsyncIterator[AppHarness]:
    """An engine on SQLite, or on what the test names."""
    on_postgres = getattr(request, "param", "sqlite") == "postgres"
    async with house(request.getfixturevalue("postgres_url") if on_postgres else sqlite_url) as built:
        yield built


def refused(answer: httpx.Response, status: int, field: str | None = None) -> dict[str, Any]:
    """The inside of the one error envelope, checked in shape."""
    assert answer.status_code == status, answer.text
    body = answer.json()
    assert body.keys() == {"error"}
    error: dict[str, Any] = body["error"]
    assert error.keys() == {"code", "message", "field", "remedy", "request_id"}
    assert error["message"] and error["remedy"]
    assert error["request_id"] == answer.headers["x-request-id"]
    assert error["field"] == field
    return error


# -- accepting


@both
async def test_an_accepted_message_is_returned_with_its_full_due_time(home: AppHarness) -> None:
    """Id, state, and the time both for people and for programs."""
    answer = await home.http.post("/v1/messages", json=MESSAGE | {"in": "10 min"})

    assert answer.status_code == 201
    body = answer.json()
    assert body["state"] == "pending"
    assert body["at"] == "2027-01-15T08:10:00.000Z"
    assert body["when"] == "Fri 15 Jan 2027 08:10:00 UTC (2027-01-15T08:10:00Z), in 10 min"
    assert answer.headers["location"] == f"/v1/messages/{body['id']}"
    shown = await home.show(body["id"])
    assert (shown["to"], shown["text"], shown["scheduled_at"]) == ("ada", "hello", body["at"])


async def test_words_are_read_in_the_configured_zone(sqlite_url: str) -> None:
    """ "tomorrow 9am" is a time in the user's own zone, and is said back with it."""
    async with house(sqlite_url, timezone=ZoneInfo("Europe/Berlin")) as home:
        answer = await home.http.post("/v1/messages", json=MESSAGE | {"at": "tomorrow 9am"})

    assert answer.json()["when"].startswith("Sat 16 Jan 2027 09:00:00 CET (2027-01-16T08:00:00Z)")


async def test_every_field_arrives_where_it_should(home: AppHarness) -> None:
    """Priority, order key, expiry and tries are the caller's to set."""
    fields = {
        "subject": "Hi",
        "data": {"a": [1]},
        "priority": 0,
        "ordering_key": "k",
        "expires_in": "1h",
        "max_attempts": 2,
    }

    shown = await home.show(await home.accept(**fields, at="2027-01-15T09:00:00+01:00"))

    assert {name: shown[name] for name in fields if name in shown} == {
        name: value for name, value in fields.items() if name != "expires_in"
    }
    assert shown["scheduled_at"] == "2027-01-15T08:00:00.000Z"
    assert shown["expires_at"] == "2027-01-15T09:00:00.000Z"


@both
async def test_a_time_in_the_past_is_sent_only_if_the_caller_asks_for_it(home: AppHarness) -> None:
    """B2: small differences of clocks are no past; a repeated call with its key gets its first answer at any time."""
    past = {"at": "2026-01-15T08:00:00Z"}
    slow = await home.accept(at="2027-01-15T07:56:00Z")
    asked = await home.accept(**past, past="send")
    await home.work()
    assert [(await home.show(id_))["state"] for id_ in (slow, asked)] == ["sent", "sent"]

    waiting = await home.accept(**{"in": "1h"})
    for action in ("reschedule", "retry"):
        refused(await home.http.post(f"/v1/messages/{waiting}/{action}", json=past), 422, "at")
    moved = await home.http.post(f"/v1/messages/{waiting}/reschedule", json=past | {"past": "send"})
    assert moved.status_code == 200, moved.text

    soon, key = MESSAGE | {"at": "2027-01-15T08:01:00Z"}, {"Idempotency-Key": uuid4().hex}
    line = orjson.dumps(soon)
    first = await home.http.post("/v1/messages", json=soon, headers=key)
    bulk = await home.http.post("/v1/messages:bulk", content=line, headers=key)
    home.clock.advance(hours=1)
    again = await home.http.post("/v1/messages", json=soon, headers=key)
    bulk_again = await home.http.post("/v1/messages:bulk", content=line, headers=key)
    assert again.status_code == 201
    assert again.json()["id"] == first.json()["id"]
    assert bulk_again.text == bulk.text


BAD = [
    pytest.param({"channel": "nope"}, "channel", "no channel 'nope'", "careful, console, out", id="unknown channel"),
    pytest.param({"at": "2027-01-16T09:00"}, "at", "no time zone", "Z for UTC", id="time without zone"),
    pytest.param({"at": "2027-02-30T09:00Z"}, "at", "not a valid time", "tomorrow 9am", id="impossible date"),
    pytest.param({"at": "tomorrow 25:00"}, "at", "time of day", "tomorrow 9am", id="impossible time of day"),
    pytest.param({"at": "soonish"}, "at", "soonish", "tomorrow 9am", id="time that is no time"),
    pytest.param({"in": "10"}, "in", "has no unit", "10m", id="length without unit"),
    pytest.param({"at": "now", "in": "1h"}, "at", "both", "one of them", id="two times"),
    pytest.param({"at": "2099-01-01T00:00Z"}, "at", "ten years", "earlier", id="far too late"),
    pytest.param({"at": "2020-01-01T00:00Z"}, "at", "2571 d 8 h ago", '"past": "send"', id="years ago"),
    pytest.param({"at": "2027-01-15T07:54Z"}, "at", "6 min ago", '"past": "send"', id="minutes ago"),
    pytest.param({"at": "now", "past": "yes"}, "past", "past is 'yes'", "send or refuse", id="unknown past"),
    pytest.param({"at": "03/04/2027 9:00"}, "at", "3 April or 4 March", "2026-11-16", id="ambiguous date"),
    pytest.param({"to": ""}, "to", "recipient is empty", "recipient's address", id="empty recipient"),
    pytest.param({"to": "  "}, "to", "recipient is empty", "recipient's address", id="blank recipient"),
    pytest.param({"to": "a\nb"}, "to", "control characters", "printable", id="recipient with a line break"),
    pytest.param({"to": None}, "to", "to is missing", "recipient", id="missing recipient"),
    pytest.param({"text": ""}, "text", "message is empty", "text", id="nothing to say"),
    pytest.param({"chanel": "out"}, "chanel", "unknown field 'chanel'", "'channel'", id="misspelt field"),
    pytest.param({"tenant": "x"}, "tenant", "unknown field", "known fields", id="hidden field"),
    pytest.param({"priority": 10}, "priority", "priority is 10", "0 (first) to 9", id="priority out of range"),
    pytest.param({"priority": "5"}, "priority", "not an integer", "5", id="priority as text"),
    pytest.param({"priority": True}, "priority", "not an integer", "5", id="priority as truth"),
    pytest.param({"max_attempts": 0}, "max_attempts", "max_attempts is 0", "1 to 1000", id="no tries"),
    pytest.param({"data": [1]}, "data", "not an object", "reference", id="data as a list"),
    pytest.param(
        {"ordering_key": "a\x00b"}, "ordering_key", "control characters", "printable", id="order key with NUL"
    ),
    pytest.param({"expires_at": "2027-01-15T07:00Z"}, "expires_at", "expire", "later", id="expired already"),
]


@both
@in_one_house(("change", "field", "problem", "remedy"), BAD)
async def test_bad_input_is_refused_in_one_clear_sentence(
    home: AppHarness, change: dict[str, Any], field: str, problem: str, remedy: str
) -> None:
    """Issue 2, bad input: 422, the field, what is wrong, what to do; and nothing was changed."""
    before, key = await home.everything(), {"Idempotency-Key": uuid4().hex}
    answer = await home.http.post("/v1/messages", json=MESSAGE | change, headers=key)

    error = refused(answer, 422, field)
    assert error["code"] == "invalid"
    assert problem in error["message"]
    assert remedy in error["remedy"]
    assert await home.everything() == before
    answer = await home.http.post("/v1/messages", json=MESSAGE, headers=key)
    assert answer.status_code == 201  # and neither is the key used up


async def test_data_nested_too_deeply_is_refused(home: AppHarness) -> None:
    """S17: depth has a limit of its own."""
    data: dict[str, Any] = {}
    for _ in range(300):
        data = {"in": data}

    refused(await home.http.post("/v1/messages", json=MESSAGE | {"data": data}), 422, "data")


@in_one_house("body", [b"{", b"", b"\xff\xfe", b'{"to": "\\ud800"}', b"NaN"])
async def test_a_body_that_is_not_json_is_refused_with_the_reason(home: AppHarness, body: bytes) -> None:
    """400, and where it breaks off."""
    assert refused(await home.http.post("/v1/messages", content=body), 400)["code"] == "malformed"


async def test_a_form_is_refused_as_a_form_and_json_with_its_content_type_is_accepted(home: AppHarness) -> None:
    """`curl -d` announces a form, whatever it sends."""
    answer = await home.http.post("/v1/messages", data=MESSAGE)
    error = refused(answer, 400)
    assert error["message"] == "the body is a form (application/x-www-form-urlencoded), not JSON"
    assert "Content-Type: application/json" in error["remedy"]

    curl = {"content-type": "application/x-www-form-urlencoded"}
    assert (await home.http.post("/v1/messages", content=orjson.dumps(MESSAGE), headers=curl)).status_code == 201


async def test_json_that_is_no_object_is_refused(home: AppHarness) -> None:
    """A list or a text is JSON, but not a message."""
    refused(await home.http.post("/v1/messages", json=[MESSAGE]), 422)


async def test_a_message_over_the_limit_is_refused(home: AppHarness) -> None:
    """413 for a content over max_body, with the limit in the remedy."""
    answer = await home.http.post("/v1/messages", json=MESSAGE | {"text": "x" * 300_000})

    assert "262,144" in refused(answer, 413, "text")["remedy"]
    assert await home.everything() == []


async def test_a_body_over_the_limit_is_refused_by_its_announced_length(home: AppHarness) -> None:
    """S17: nothing of it is read."""
    answer = await home.http.post("/v1/messages", content=b" " * 1_000_000)

    assert refused(answer, 413)["code"] == "too_large"


async def test_a_chunked_body_over_the_limit_is_refused_while_it_is_read(home: AppHarness) -> None:
    """S17: whatever was announced, what comes in is counted, and the rest is not waited for."""
    taken = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal taken
        while taken < 100_000_000:
            taken += 10_000
            yield b" " * 10_000

    refused(await home.http.post("/v1/messages", content=endless()), 413)

    assert taken < 1_000_000


# -- the same call again


@both
async def test_the_same_key_and_body_give_the_first_answer_again(home: AppHarness) -> None:
    """B4: also when "in 10 min" has become another instant meanwhile."""
    body, headers = MESSAGE | {"in": "10 min"}, {"Idempotency-Key": "order-1"}
    first = await home.http.post("/v1/messages", json=body, headers=headers)
    home.clock.advance(minutes=3)

    again = await home.http.post("/v1/messages", content=orjson.dumps(body), headers=headers)

    assert again.status_code == 201
    assert again.headers["idempotency-replayed"] == "true"
    assert "idempotency-replayed" not in first.headers
    assert (again.json()["id"], again.json()["at"]) == (first.json()["id"], first.json()["at"])
    assert len(await home.everything()) == 1


@both
async def test_the_same_key_with_another_body_is_refused(home: AppHarness) -> None:
    """B4: 422."""
    headers = {"Idempotency-Key": "order-1"}
    await home.http.post("/v1/messages", json=MESSAGE, headers=headers)

    answer = await home.http.post("/v1/messages", json=MESSAGE | {"text": "other"}, headers=headers)

    assert "another body" in refused(answer, 422, "Idempotency-Key")["message"]
    assert len(await home.everything()) == 1


async def test_a_concurrent_request_with_the_same_key_gets_409_with_retry_after(
    home: AppHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B4: 409 with Retry-After."""

    async def busy(*_args: object, **_kwargs: object) -> None:
        raise InProgress("a call with this key is under way", remedy="repeat it in a second")

    monkeypatch.setattr(home.app.store, "enqueue", busy)
    answer = await home.http.post("/v1/messages", json=MESSAGE, headers={"Idempotency-Key": "k"})

    assert refused(answer, 409)["code"] == "in_progress"
    assert answer.headers["retry-after"] == "1"


async def test_keys_of_senseless_length_are_refused(home: AppHarness) -> None:
    """An empty key would be everybody's, a huge one nobody's."""
    for key in ("", "x" * 300):
        answer = await home.http.post("/v1/messages", json=MESSAGE, headers={"Idempotency-Key": key})
        refused(answer, 422, "Idempotency-Key")


# -- finding


@both
async def test_pages_show_every_message_exactly_once(home: AppHarness) -> None:
    """Cursor pages: newest first, no gap and no overlap, also while more are accepted."""
    wanted = [await home.accept(to=f"user-{number}") for number in range(7)]

    seen: list[str] = []
    after: str | None = None
    for _ in range(10):
        page = (await home.http.get("/v1/messages", params={"limit": 3} | ({"after": after} if after else {}))).json()
        seen += [item["id"] for item in page["items"]]
        await home.accept(to="latecomer")
        after = page["next"]
        if after is None:
            break

    assert seen == wanted[::-1]


@both
async def test_lists_are_filtered(home: AppHarness) -> None:
    """By state, channel, recipient and doubt."""
    home.script("careful", lambda _message: Unknown("the line went dead"))
    waiting = await home.accept(to="ada", **{"in": "1h"})
    sent = await home.accept(to="grace")
    held = await home.accept(to="ada", channel="careful")
    await home.work()

    async def found(**filters: str) -> list[str]:
        answer = await home.http.get("/v1/messages", params=filters)
        return [item["id"] for item in answer.json()["items"]]

    assert await found(state="pending") == [waiting]
    assert await found(state="sent") == [sent]
    assert await found(state="failed") == [held]
    assert await found(channel="careful") == [held]
    assert await found(to="ada") == [held, waiting]
    assert await found(to="ada", state="pending") == [waiting]
    assert await found(unknown="true") == [held]


@in_one_house(
    ("query", "field"),
    [
        ("stat=sent", "stat"),
        ("state=done", "state"),
        ("limit=0", "limit"),
        ("limit=1001", "limit"),
        ("limit=x", "limit"),
        ("after=x", "after"),
        ("after=-1", "after"),
        ("after=99999999999999999999", "after"),
        ("unknown=perhaps", "unknown"),
        ("to=a%00b", "to"),
    ],
)
@both
async def test_a_bad_filter_is_refused(home: AppHarness, query: str, field: str) -> None:
    """A misspelt filter must not show everything instead."""
    refused(await home.http.get(f"/v1/messages?{query}"), 422, field)


@both
async def test_a_message_is_shown_with_its_whole_history(home: AppHarness) -> None:
    """A7: each move with from, to, try, node, category, detail and time."""
    outcomes: list[Outcome] = [Retry(Category.TEMPORARY, "busy", after=timedelta(minutes=1)), Done("abc")]
    home.script("out", lambda _message: outcomes.pop(0))
    id_ = await home.accept()
    await home.work()
    home.clock.advance(minutes=10)
    await home.work()

    shown = await home.show(id_)

    moves = [(move["from"], move["to"], move["attempt"]) for move in shown["history"]]
    assert moves == [
        ("pending", "processing", 1),
        ("processing", "pending", 1),
        ("pending", "processing", 2),
        ("processing", "sent", 2),
    ]
    assert shown["history"][1]["category"] == "temporary"
    assert shown["history"][1]["detail"] == "busy"
    assert (shown["state"], shown["attempts"], shown["receipt"], shown["actions"]) == ("sent", 2, "abc", [])


async def test_why_is_answered_in_one_sentence(home: AppHarness) -> None:
    """What it waits for, until when, and what a person can do."""
    later, paused = await home.accept(**{"in": "1h"}), await home.accept(channel="console")
    await home.http.post("/v1/channels/console/pause", json={"reason": "new number"})

    assert (await home.http.get(f"/v1/messages/{later}/why")).json() == {
        "id": later,
        "why": "scheduled for 2027-01-15T09:00:00.000Z",
        "until": "2027-01-15T09:00:00.000Z",
        "remedy": None,
    }
    assert "paused: new number" in (await home.http.get(f"/v1/messages/{paused}/why")).json()["why"]


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", ""), ("GET", "/why"), *(("POST", f"/{verb}") for verb in ("cancel", "retry", "discard"))],
)
async def test_a_stranger_is_not_found(home: AppHarness, method: str, path: str) -> None:
    """404 for an id that does not exist, whatever is asked of it."""
    answer = await home.http.request(method, f"/v1/messages/0190-nothing{path}")

    assert refused(answer, 404)["code"] == "not_found"


# -- what a person may do


@both
async def test_what_waits_is_rescheduled_and_cancelled(home: AppHarness) -> None:
    """A6: pending may be moved in time or cancelled; cancelled is final."""
    id_ = await home.accept(**{"in": "1h"})

    moved = await home.http.post(f"/v1/messages/{id_}/reschedule", json={"at": "tomorrow 9am"})
    assert moved.json()["next_attempt_at"] == "2027-01-16T09:00:00.000Z"
    assert moved.json()["when"].startswith("Sat 16 Jan 2027 09:00:00 UTC")
    assert moved.json()["actions"] == ["reschedule", "cancel"]

    gone = await home.http.post(f"/v1/messages/{id_}/cancel", json={"reason": "ordered twice"})
    assert (gone.json()["state"], gone.json()["actions"]) == ("cancelled", [])
    assert gone.json()["history"][-1]["detail"] == "ordered twice"

    for verb, body in (("cancel", None), ("retry", None), ("discard", None), ("reschedule", {"in": "1h"})):
        refused(await home.http.post(f"/v1/messages/{id_}/{verb}", json=body), 409)


@both
async def test_a_dead_letter_is_retried_or_discarded(home: AppHarness) -> None:
    """B7: with all its tries, or given up."""
    home.script("out", lambda _message: Reject(Category.PERMANENT, "no such number"))
    first, second = await home.accept(), await home.accept()
    await home.work()
    assert (await home.show(first))["actions"] == ["retry", "discard"]
    refused(await home.http.post(f"/v1/messages/{first}/reschedule", json={"in": "1h"}), 409)

    retried = await home.http.post(f"/v1/messages/{first}/retry", json={"in": "1h"})
    discarded = await home.http.post(f"/v1/messages/{second}/discard")

    assert (retried.json()["state"], retried.json()["attempts"]) == ("pending", 0)
    assert retried.json()["next_attempt_at"] == "2027-01-15T09:00:00.000Z"
    assert discarded.json()["state"] == "cancelled"


async def test_what_was_sent_is_too_late_to_cancel(home: AppHarness) -> None:
    """A6: sent is final, and the caller is told so."""
    id_ = await home.accept()
    await home.work()

    assert "already been sent" in refused(await home.http.post(f"/v1/messages/{id_}/cancel"), 409)["message"]


async def test_a_reschedule_needs_a_time(home: AppHarness) -> None:
    """And nothing but a time."""
    id_ = await home.accept(**{"in": "1h"})

    refused(await home.http.post(f"/v1/messages/{id_}/reschedule"), 422, "at")
    refused(await home.http.post(f"/v1/messages/{id_}/reschedule", json={"at": "2027-01-16T09:00"}), 422, "at")
    refused(await home.http.post(f"/v1/messages/{id_}/reschedule", json={"when": "now"}), 422, "when")


# -- dead letters


@both
async def test_dead_letters_are_counted_by_cause_and_moved_together(home: AppHarness) -> None:
    """B7: those in doubt are moved only when that is asked for, because they might arrive twice."""
    reasons: dict[str, Outcome] = {
        "a": Reject(Category.PERMANENT, "no such number"),
        "b": Reject(Category.VALIDATION, "too long"),
        "c": Unknown("the line went dead"),
    }

    def answer(message: Message) -> Outcome:
        return reasons[message.recipient]

    home.script("out", answer)
    home.script("careful", answer)
    for to, channel in (("a", "out"), ("a", "out"), ("b", "out"), ("c", "careful")):
        await home.accept(to=to, channel=channel)
    await home.work()

    groups = (await home.http.get("/v1/dead/groups")).json()["items"]
    assert [(g["channel"], g["category"], g["unknown"], g["count"], g["error"]) for g in groups] == [
        ("out", "permanent", False, 2, "no such number"),
        ("careful", None, True, 1, "the line went dead"),
        ("out", "validation", False, 1, "too long"),
    ]
    items = (await home.http.get("/v1/dead", params={"category": "validation"})).json()["items"]
    assert [(item["to"], item["error"]) for item in items] == [("b", "too long")]

    assert (await home.http.post("/v1/dead/retry", json={"category": "permanent"})).json() == {
        "retried": 2,
        "more": False,
    }
    assert (await home.http.post("/v1/dead/retry")).json() == {"retried": 1, "more": False}
    assert [item["to"] for item in (await home.http.get("/v1/dead")).json()["items"]] == ["c"]
    assert (await home.http.post("/v1/dead/retry", json={"unknown": True})).json()["retried"] == 1
    assert (await home.http.get("/v1/dead")).json() == {"items": [], "next": None}


@both
async def test_many_dead_letters_are_moved_in_bounded_steps(home: AppHarness) -> None:
    """B7: a limit is kept, the rest is told, and order keys are passed on."""
    home.script("out", lambda _message: Reject(Category.PERMANENT, "no"))
    for number in range(7):
        await home.accept(ordering_key="k" if number % 2 else None)
    await home.work()
    assert len((await home.http.get("/v1/dead")).json()["items"]) == 7

    assert (await home.http.post("/v1/dead/retry", json={"limit": 4})).json() == {"retried": 4, "more": True}
    assert (await home.http.post("/v1/dead/discard", json={"channel": "nope"})).json()["discarded"] == 0
    assert (await home.http.post("/v1/dead/discard")).json() == {"discarded": 3, "more": False}

    home.script("out", lambda _message: Done())
    await home.work()
    states = sorted(item["state"] for item in await home.everything())
    assert states == ["cancelled"] * 3 + ["sent"] * 4


@pytest.mark.parametrize(
    ("body", "field"), [({"category": "odd"}, "category"), ({"limit": 0}, "limit"), ({"chanel": "out"}, "chanel")]
)
async def test_a_bad_choice_of_dead_letters_moves_none(home: AppHarness, body: dict[str, Any], field: str) -> None:
    """A misspelt filter must not move everything."""
    home.script("out", lambda _message: Reject(Category.PERMANENT, "no"))
    await home.accept()
    await home.work()

    for verb in ("retry", "discard"):
        refused(await home.http.post(f"/v1/dead/{verb}", json=body), 422, field)
    assert len((await home.http.get("/v1/dead")).json()["items"]) == 1


# -- channels and nodes


@both
async def test_a_channel_is_paused_and_resumed(home: AppHarness) -> None:
    """Rule 13: its messages wait and lose no attempt."""
    id_ = await home.accept()
    paused = (await home.http.post("/v1/channels/out/pause", json={"reason": "new number"})).json()
    await home.work()

    assert (paused["state"], paused["pause_reason"], paused["breaker"]) == ("paused", "new number", "closed")
    assert (await home.show(id_))["attempts"] == 0

    resumed = (await home.http.post("/v1/channels/out/resume")).json()
    await home.work()

    assert (resumed["state"], resumed["pause_reason"]) == ("open", None)
    assert (await home.show(id_))["state"] == "sent"


async def test_channels_say_how_they_stand(home: AppHarness) -> None:
    """Breaker, limits, and what is done with an unknown outcome, with the reason."""
    home.script("out", lambda _message: Retry(Category.TEMPORARY, "down"))
    for _ in range(5):
        await home.accept()
    await home.work()

    channels = {item["name"]: item for item in (await home.http.get("/v1/channels")).json()["items"]}

    assert channels["out"]["breaker"] == "open"
    assert channels["out"]["state"] == "breaker_open"
    assert channels["out"]["blocked_until"] == "2027-01-15T08:01:00.000Z"
    assert channels["careful"]["on_unknown"] == "hold"
    assert channels["careful"]["why_on_unknown"] == "chosen in the configuration"
    assert channels["console"]["kind"] == "console"


async def test_an_unknown_channel_is_not_found(home: AppHarness) -> None:
    """404, with the names that exist."""
    for verb in ("pause", "resume"):
        error = refused(await home.http.post(f"/v1/channels/nope/{verb}"), 404, "name")
        assert "careful, console, out" in error["remedy"]
    refused(await home.http.get("/v1/channels/nope"), 404, "name")


@both
async def test_nodes_are_listed(home: AppHarness) -> None:
    """Who works, since when, last seen when."""
    nodes = (await home.http.get("/v1/nodes")).json()["items"]

    assert [node["state"] for node in nodes] == ["live"]
    assert nodes[0]["seen_at"] == "2027-01-15T08:00:00.000Z"


# -- the log


@both
async def test_the_log_has_all_that_was_sent(home: AppHarness) -> None:
    """E9: to whom, when, with what result; newest first, in pages."""
    home.script("out", lambda message: Done(f"r-{message.recipient}"))
    for number in range(3):
        await home.accept(to=f"user-{number}")
    await home.accept(to="later", **{"in": "1h"})
    await home.work()

    first = (await home.http.get("/v1/log", params={"limit": 2})).json()
    rest = (await home.http.get("/v1/log", params={"limit": 2, "after": first["next"]})).json()

    entries = first["items"] + rest["items"]
    assert [(entry["to"], entry["receipt"]) for entry in entries] == [
        (f"user-{number}", f"r-user-{number}") for number in (2, 1, 0)
    ]
    assert entries[0]["sent_at"] == "2027-01-15T08:00:00.000Z"
    assert (await home.http.get("/v1/log", params={"to": "user-1"})).json()["items"] == [entries[1]]


async def test_the_log_is_safe_in_a_spreadsheet(home: AppHarness) -> None:
    """S14: what a spreadsheet would run as a formula is marked as text; the exact form changes nothing."""
    dangerous = ["=1+1", "+49 30 1234", "-1", "@x", "\tx", "＝1", 'say "hi", twice']
    for text in dangerous:
        await home.accept(text=text)
    await home.work()

    async def texts(form: str) -> list[str]:
        answer = await home.http.get("/v1/log", params={"format": form})
        assert answer.headers["content-type"] == "text/csv; charset=utf-8"
        return [row["text"] for row in csv.DictReader(io.StringIO(answer.text))][::-1]

    assert await texts("csv-exact") == dangerous
    assert await texts("csv") == [f"'{text}" for text in dangerous[:-1]] + dangerous[-1:]
    refused(await home.http.get("/v1/log", params={"format": "xls"}), 422, "format")


# -- health


@both
async def test_health_is_up_while_somebody_works(home: AppHarness) -> None:
    """A10: 200, with the figures."""
    for _ in range(3):
        await home.accept()
    await home.work()

    answer = await home.http.get("/health")

    assert answer.status_code == 200
    body = answer.json()
    assert (body["status"], body["reasons"]) == ("up", [])
    assert (body["total_processed"], body["success_rate"]) == (3, 1.0)
    assert body["error_rate_by_category"] == dict.fromkeys(map(str, Category), 0.0)


@both
async def test_health_is_degraded_when_too_much_fails(home: AppHarness) -> None:
    """A10: under 90 % after ten, or one category over 10 %: 503 with reasons."""
    home.script("out", lambda message: Reject(Category.PERMANENT, "no") if message.recipient == "bad" else Done())
    for number in range(10):
        await home.accept(to="bad" if number < 2 else "good")
    await home.work()

    answer = await home.http.get("/health")

    assert answer.status_code == 503
    assert answer.json()["status"] == "degraded"
    assert answer.json()["reasons"] == [
        "only 80% of 10 attempts succeeded",
        "20% of attempts ended in a permanent error",
    ]


async def test_health_is_down_when_nobody_works(home: AppHarness) -> None:
    """A10: the processor does not run."""
    home.clock.advance(minutes=5)

    answer = await home.http.get("/health")

    assert answer.status_code == 503
    assert (answer.json()["status"], answer.json()["reasons"]) == ("down", ["no process is working"])


async def test_health_fails_when_the_clocks_disagree(home: AppHarness) -> None:
    """B13: over 10 s fails the health check."""
    home.clock.set_drift(timedelta(seconds=11))

    assert (await home.http.get("/health")).json()["reasons"] == ["this machine's clock is off by 11 s"]


@pytest.mark.parametrize(
    ("tallies", "status"),
    [
        ({}, HealthStatus.UP),
        ({"failed:permanent": 9}, HealthStatus.UP),  # fewer than ten say nothing
        ({"done": 9, "failed:permanent": 1}, HealthStatus.UP),  # exactly 90 %, exactly 10 %
        ({"done": 89, "unknown": 11}, HealthStatus.DEGRADED),
        ({"done": 880, "retry:temporary": 120}, HealthStatus.DEGRADED),
        ({"done": 10, "deferred": 500, "released": 500}, HealthStatus.UP),  # nothing was tried
    ],
)
def test_health_is_judged_by_shares(tallies: dict[str, int], status: HealthStatus) -> None:
    """A10: the bars themselves, and that what was not tried does not count."""
    rows = [{"queue": "q", "outcome": what, "n": count, "ms": count} for what, count in tallies.items()]

    assert evaluate_health(rows, alive=1, drift=timedelta(0)).status is status


async def test_readiness_follows_the_database(home: AppHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    """503 while the store does not answer; liveness does not depend on it."""
    assert (await home.http.get("/health/ready")).json() == {"status": "ready"}

    async def dead(*_args: object, **_kwargs: object) -> None:
        raise StoreUnavailable("the database does not answer", remedy="wait")

    monkeypatch.setattr(home.app.store, "read", dead)

    ready = await home.http.get("/health/ready")
    assert ready.status_code == 503
    assert ready.json() == {"status": "not ready", "reasons": ["the database does not answer"]}
    assert (await home.http.get("/health")).status_code == 503
    assert (await home.http.get("/health/live")).status_code == 200
    answer = await home.http.get("/v1/messages")
    assert refused(answer, 503)["code"] == "store_unavailable"
    assert answer.headers["retry-after"] == "5"


# -- one envelope for everything


async def test_unknown_routes_and_methods_use_the_error_envelope(home: AppHarness) -> None:
    """404 and 405, the latter with what is allowed."""
    refused(await home.http.get("/v2/messages"), 404)
    answer = await home.http.delete("/v1/messages")

    assert refused(answer, 405)["remedy"] == "allowed here: GET, POST"
    assert answer.headers["allow"] == "GET, POST"


async def test_our_own_mistake_is_answered_without_its_details(
    home: AppHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """500 with a request id to look for; the traceback is for the log only."""

    async def broken(*_args: object, **_kwargs: object) -> None:
        raise RuntimeError("a secret detail")

    monkeypatch.setattr(home.app.store, "read", broken)
    answer = await home.http.get("/v1/messages")

    error = refused(answer, 500)
    assert error["code"] == "internal"
    assert "secret" not in answer.text and "Traceback" not in answer.text
    assert error["request_id"] in error["remedy"]


async def test_a_request_keeps_the_id_it_came_with(home: AppHarness) -> None:
    """A safe one is kept; anything else is replaced."""
    kept = await home.http.get("/v1/nodes", headers={"X-Request-Id": "abc-1"})
    replaced = await home.http.get("/v1/nodes", headers={"X-Request-Id": "a b<script>"})

    assert kept.headers["x-request-id"] == "abc-1"
    assert replaced.headers["x-request-id"] not in ("", "a b<script>")


# -- who may call


def _routes(home: AppHarness) -> list[tuple[str, str]]:
    """Every route of the API, with its path filled in."""
    paths = home.api.openapi()["paths"]
    return [
        (method.upper(), path.replace("{id}", "x").replace("{name}", "out"))
        for path, operations in paths.items()
        for method in operations
    ]


async def test_every_route_needs_a_key_when_there_are_keys(sqlite_url: str) -> None:
    """S1, S2: no key, a wrong one and a malformed one get the same 401; only health is open."""
    async with house(sqlite_url, api_keys=(KEY, KEY[::-1])) as home:
        pages = [("GET", path) for path in ("/", "/live", "/messages", "/dead", "/docs", "/openapi.json", "/when")]
        for method, path in _routes(home) + pages:
            if path.startswith("/health"):
                assert (await home.http.request(method, path)).status_code != 401
                continue
            if path.startswith(("/callbacks/", "/inbound/", "/calendar.ics")):  # a signature or a token is the key
                assert (await home.http.request(method, path)).status_code in (401, 404)
                continue
            told = set()
            home.clock.advance(21)  # under ten wrong keys a minute: none is refused unseen
            for headers in (
                {},
                {"X-API-Key": KEY[:-1]},
                {"Authorization": f"Basic {KEY}"},
                {"Authorization": "Bearer"},
            ):
                answer = await home.http.request(method, path, headers=headers)
                error = refused(answer, 401)
                assert answer.headers["www-authenticate"] == "Bearer"
                told.add((error["message"], error["remedy"]))
            assert len(told) == 1
        for headers in ({"Authorization": f"bearer {KEY}"}, {"X-API-Key": KEY[::-1]}):
            assert (await home.http.get("/v1/messages", headers=headers)).status_code == 200


async def test_a_browser_signs_in_once(sqlite_url: str) -> None:
    """The cookie is out of reach for scripts and other sites, holds no key, and ends by itself."""
    async with house(sqlite_url, api_keys=(KEY,)) as home, home.client(accept="text/html") as browser:
        sent_away = await browser.get("/messages?state=sent")
        assert (sent_away.status_code, sent_away.headers["location"]) == (303, "/sign-in?next=/messages")
        assert (await browser.get("/sign-in")).status_code == 200
        wrong = await browser.post("/sign-in", data={"key": "wrong", "next": "/dead"})
        assert wrong.headers["location"] == "/sign-in?wrong=1&next=/dead"

        right = await browser.post("/sign-in", data={"key": KEY, "next": "/dead"})

        assert right.headers["location"] == "/dead"
        cookie = right.headers["set-cookie"].lower()
        assert "httponly" in cookie and "samesite=lax" in cookie and KEY not in cookie
        assert (await browser.get("/dead")).status_code == 200
        assert (await browser.get("/v1/messages")).status_code == 200
        home.clock.advance(hours=13)
        assert (await browser.get("/dead")).status_code == 303


@pytest.mark.parametrize("wanted", ["https://evil.example", "//evil.example", "/\\evil.example", "x"])
async def test_signing_in_leads_nowhere_else(sqlite_url: str, wanted: str) -> None:
    """Whoever shows a key here must not be sent to another site with it."""
    async with house(sqlite_url, api_keys=(KEY,)) as home:
        answer = await home.http.post("/sign-in", data={"key": KEY, "next": wanted})

        assert answer.headers["location"] == "/"


async def test_a_forged_session_is_refused(sqlite_url: str) -> None:
    """S1: nothing near a session is one, and neither is the key itself."""
    async with house(sqlite_url, api_keys=(KEY,)) as home:
        right = await home.http.post("/sign-in", data={"key": KEY})
        session = right.cookies["tidings_session"]
        home.http.cookies.clear()
        for forged in (session[:-1], session.swapcase(), f"{session}x", KEY, "x.y", ""):
            answer = await home.http.get("/v1/messages", headers={"Cookie": f"tidings_session={forged}"})
            refused(answer, 401)
        assert (
            await home.http.get("/v1/messages", headers={"Cookie": f"tidings_session={session}"})
        ).status_code == 200


@in_one_house(
    ("host", "status"),
    [
        ("localhost", 200),
        ("localhost:8020", 200),
        ("127.0.0.1:8020", 200),
        ("[::1]:8020", 200),
        ("LOCALHOST.", 200),
        ("evil.example", 403),
        ("127.0.0.1.evil.example:8020", 403),
        ("localhost.evil.example", 403),
        ("192.168.1.5", 403),
        ("", 403),
    ],
)
async def test_on_loopback_only_local_names_are_served(home: AppHarness, host: str, status: int) -> None:
    """A foreign name that points at this machine (DNS rebinding) gets nothing."""
    for path in ("/v1/messages", "/", "/health"):
        assert (await home.http.get(path, headers={"Host": host})).status_code == status


async def test_other_hosts_are_served_where_keys_protect(sqlite_url: str) -> None:
    """An address that others reach has keys, and any name may lead to it."""
    async with house(sqlite_url, host="0.0.0.0", api_keys=(KEY,)) as home:
        headers = {"Host": "tidings.example", "X-API-Key": KEY}
        assert (await home.http.get("/v1/messages", headers=headers)).status_code == 200


@in_one_house(
    ("headers", "status"),
    [
        ({}, 201),
        ({"Origin": "http://localhost"}, 201),
        ({"Origin": "http://localhost", "Sec-Fetch-Site": "same-origin"}, 201),
        ({"Sec-Fetch-Site": "none"}, 201),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "http://localhost:8025"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Origin": "http://localhost", "Sec-Fetch-Site": "cross-site"}, 403),
    ],
)
async def test_another_site_cannot_make_a_browser_send(home: AppHarness, headers: dict[str, str], status: int) -> None:
    """A request that changes something must come from here, or from a program."""
    before = len(await home.everything())
    answer = await home.http.post("/v1/messages", json=MESSAGE, headers=headers)

    assert answer.status_code == status
    assert len(await home.everything()) == before + (status == 201)


# -- the reference


async def test_the_reference_names_every_route_and_field(home: AppHarness) -> None:
    """S21: openapi.json is the inventory; bodies list their fields, errors their envelope."""
    document = (await home.http.get("/openapi.json")).json()

    assert set(document["paths"]) == {
        "/v1/messages",
        "/v1/messages:bulk",
        "/v1/messages/{id}",
        *(f"/v1/messages/{{id}}/{verb}" for verb in ("why", "cancel", "retry", "reschedule", "discard")),
        *("/v1/contacts", "/v1/contacts:import", "/v1/contacts/{id}"),
        *("/v1/lists", "/v1/lists/{list}", "/v1/lists/{list}/members", "/v1/lists/{list}/members/remove"),
        *("/v1/suppressions", "/v1/suppressions:import"),
        *("/v1/keys", "/v1/keys/{id}", "/v1/keys/{id}/rotate", "/v1/keys/{id}/revoke", "/v1/audit"),
        *("/v1/alerts", "/v1/alerts/{id}", "/v1/alerts/{id}/acknowledge"),
        *("/v1/migrations", "/v1/migrations/{id}", "/v1/migrations/{id}/crosswalk/{type}"),
        *(f"/v1/migrations/{{id}}/{verb}" for verb in ("approve", "audit", "batches", "cancel", "dead", "dead/export")),
        *(f"/v1/migrations/{{id}}/{verb}" for verb in ("job", "lint", "pause", "plan", "plan/records")),
        *(f"/v1/migrations/{{id}}/{verb}" for verb in ("records", "records/{type}/{source_id}", "repaired")),
        *(f"/v1/migrations/{{id}}/{verb}" for verb in ("replay", "resume", "run", "undo", "verify")),
        "/v1/dead",
        *(f"/v1/dead/{verb}" for verb in ("groups", "retry", "discard")),
        "/v1/channels",
        "/v1/channels/{name}",
        *(f"/v1/channels/{{name}}/{verb}" for verb in ("pause", "resume", "secret")),
        "/v1/nodes",
        *("/v1/log", "/v1/sla"),
        "/v1/subscriptions",
        "/v1/subscriptions/{id}",
        *(f"/v1/subscriptions/{{id}}/{verb}" for verb in ("rotate", "test")),
        "/v1/rollout",
        *(f"/v1/channels/{{name}}/{verb}" for verb in ("rollout", "rollout/undo", "report", "compare")),
        "/v1/templates",
        "/v1/templates:preview",
        "/v1/templates/{name}",
        *(f"/v1/templates/{{name}}/{verb}" for verb in ("versions", "preview", "retire", "restore")),
        "/v1/schedules",
        *(f"/v1/schedules:{verb}" for verb in ("preview", "bulk", "pause", "resume", "end", "remove")),
        "/v1/schedules/{id}",
        *(f"/v1/schedules/{{id}}/{verb}" for verb in ("end", "occurrences", "pause", "preview", "resume", "run")),
        "/v1/broadcasts",
        "/v1/broadcasts/{id}",
        *(f"/v1/broadcasts/{name}" for name in ("counts", "reports")),
        *(f"/v1/broadcasts/{{id}}/{verb}" for verb in ("cancel", "export", "freeze", "pause", "recipients")),
        *(f"/v1/broadcasts/{{id}}/{verb}" for verb in ("resume", "retry", "trigger")),
        *("/v1/calendar", "/v1/calendar/changes", "/calendar.ics"),
        *(f"/v1/calendar/changes/{{change}}{verb}" for verb in ("", "/undo")),
        *("/v1/inbox", "/v1/inbox/{id}", "/v1/inbox/{id}/retry", "/v1/roster", "/v1/roster/log"),
        *("/v1/roster:import", "/v1/conversations", "/v1/conversations/{name}", "/v1/sources"),
        *("/v1/cases", "/v1/cases/{id}", "/v1/notices", "/v1/notices/{id}/acknowledge"),
        *(f"/v1/cases/{{id}}/{verb}" for verb in ("answer", "claim", "close", "handback")),
        *("/callbacks/{channel}", "/inbound/{source}", "/v1/channels/{name}/code", "/metrics"),
        *("/health", "/health/live", "/health/ready", "/health/scheduler"),
    }
    accept = document["paths"]["/v1/messages"]["post"]
    schema = accept["requestBody"]["content"]["application/json"]["schema"]
    assert {"channel", "to", "text", "at", "in", "priority", "ordering_key"} <= schema["properties"].keys()
    assert schema["required"] == ["channel", "to"]
    assert "Envelope" in str(accept["responses"]["422"])


# -- bulk


def _lines(count: int, **fields: Any) -> bytes:
    return b"".join(
        orjson.dumps({"channel": "out", "to": f"user-{number}", "text": "hello"} | fields) + b"\n"
        for number in range(count)
    )


def _answers(answer: httpx.Response) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The lines of an answer and its summary."""
    assert answer.headers["content-type"] == "application/x-ndjson"
    *lines, summary = [orjson.loads(line) for line in answer.content.splitlines()]
    return lines, summary["summary"]


@both
async def test_each_line_of_a_bulk_call_stands_alone(home: AppHarness) -> None:
    """Bad lines are told with their number and skipped; the others are accepted."""
    body = b"\n".join(
        [
            b'{"channel": "out", "to": "ada", "text": "one"}',
            b"",
            b"{nonsense",
            b'{"channel": "nope", "to": "ada", "text": "x"}',
            b'{"chanel": "out", "to": "ada"}',
            b'["a list"]',
            b'{"channel": "out", "to": "ada", "text": "' + b"x" * 900_000 + b'"}',
            b'{"channel": "out", "to": "grace", "text": "two", "at": "tomorrow 9am"}',
        ]
    )

    lines, summary = _answers(await home.http.post("/v1/messages:bulk", content=body))

    assert [line["line"] for line in lines] == [1, 3, 4, 5, 6, 7, 8]
    assert [line.get("error", {}).get("code") for line in lines] == [
        None, "malformed", "invalid", "invalid", "invalid", "too_large", None,
    ]  # fmt: skip
    assert lines[3]["error"]["remedy"] == "did you mean 'channel'?"
    assert summary == {"accepted": 2, "refused": 5, "complete": True}
    assert {item["id"] for item in await home.everything()} == {lines[0]["id"], lines[-1]["id"]}


@pytest.mark.parametrize("size", [1, 7, 64, 100_000])
async def test_lines_are_found_however_the_body_is_cut(home: AppHarness, size: int) -> None:
    """The network cuts where it likes, also in the middle of a letter."""
    body = _lines(20, text="schöne Grüße").rstrip(b"\n")

    async def cut() -> AsyncIterator[bytes]:
        for start in range(0, len(body), size):
            yield body[start : start + size]

    lines, summary = _answers(await home.http.post("/v1/messages:bulk", content=cut()))

    assert summary["accepted"] == len(lines) == 20
    assert {item["text"] for item in await home.everything()} == {"schöne Grüße"}


async def test_an_endless_line_is_reported_once_and_skipped(home: AppHarness) -> None:
    """S17: a line over the limit is never held in memory; what follows it is accepted."""

    async def long() -> AsyncIterator[bytes]:
        yield b'{"channel": "out", "to": "ada", "text": "'
        for _ in range(500):
            yield b"x" * 10_000
        yield b'"}\n' + _lines(1)

    lines, summary = _answers(await home.http.post("/v1/messages:bulk", content=long()))

    assert [line["line"] for line in lines] == [1, 2]
    assert lines[0]["error"]["code"] == "too_large"
    assert summary["accepted"] == 1


async def test_too_many_lines_end_the_call(sqlite_url: str) -> None:
    """The limit is enforced while reading: what was accepted is told, and that it is not complete."""
    async with house(sqlite_url, max_bulk=1500) as home:
        answer = await home.http.post("/v1/messages:bulk", content=_lines(2000))
        *lines, error, summary = [orjson.loads(line) for line in answer.content.splitlines()]

        assert len(lines) == 1000  # the chunks that were whole before the limit was met
        assert "1,500 lines" in error["error"]["message"]
        assert summary["summary"] == {"accepted": 1000, "refused": 0, "complete": False}


async def test_large_lines_are_accepted_a_few_at_a_time(home: AppHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule 17: what one transaction takes, and so what is held in memory, is bounded by its size too."""
    sizes, enqueue = [], home.app.store.enqueue

    async def watching(tasks: Any, *args: Any, **kwargs: Any) -> Any:
        sizes.append(len(tasks))
        return await enqueue(tasks, *args, **kwargs)

    monkeypatch.setattr(home.app.store, "enqueue", watching)
    lines, summary = _answers(await home.http.post("/v1/messages:bulk", content=_lines(100, text="x" * 200_000)))

    assert summary["accepted"] == len(lines) == 100
    assert sizes == [21, 21, 21, 21, 16]  # 4 MB each


async def test_too_many_lines_within_the_first_chunk_change_nothing(sqlite_url: str) -> None:
    """What fails before anything was accepted has a status of its own."""
    async with house(sqlite_url, max_bulk=10) as home:
        answer = await home.http.post("/v1/messages:bulk", content=_lines(11))

        assert "10 lines" in refused(answer, 413)["message"]
        assert await home.everything() == []


@both
async def test_a_bulk_call_can_be_repeated_with_its_key(home: AppHarness) -> None:
    """B4: the same ids, nothing twice, also with times in words."""
    body, headers = _lines(1200, **{"in": "10 min"}), {"Idempotency-Key": "import-1"}
    first, _ = _answers(await home.http.post("/v1/messages:bulk", content=body, headers=headers))
    home.clock.advance(minutes=1)

    again, summary = _answers(await home.http.post("/v1/messages:bulk", content=body, headers=headers))

    assert again == first
    assert summary["accepted"] == 1200
    counted = await home.http.get("/v1/messages", params={"limit": 1000})
    rest = await home.http.get("/v1/messages", params={"limit": 1000, "after": counted.json()["next"]})
    assert len(counted.json()["items"]) + len(rest.json()["items"]) == 1200
    other = await home.http.post("/v1/messages:bulk", content=_lines(3), headers=headers)
    refused(other, 422, "Idempotency-Key")


async def test_a_database_that_goes_away_ends_the_answer_honestly(
    home: AppHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was accepted is told; the error and `complete: false` come after it."""
    enqueue, calls = home.app.store.enqueue, 0

    async def failing(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise StoreUnavailable("the database does not answer", remedy="try again")
        return await enqueue(*args, **kwargs)

    monkeypatch.setattr(home.app.store, "enqueue", failing)
    answer = await home.http.post("/v1/messages:bulk", content=_lines(3000))
    *lines, error, summary = [orjson.loads(line) for line in answer.content.splitlines()]

    assert len(lines) == 1000
    assert error["error"]["code"] == "store_unavailable"
    assert summary["summary"] == {"accepted": 1000, "refused": 0, "complete": False}


async def test_an_answer_that_nobody_reads_stops_nothing(home: AppHarness) -> None:
    """A caller may send everything before it reads the first line; neither side waits for the other."""
    sent: list[bytes] = []
    may_read = asyncio.Event()
    pieces = [_lines(1000) for _ in range(30)]

    async def receive() -> dict[str, Any]:
        if not pieces:
            may_read.set()  # only now does the caller begin to read
            return {"type": "http.request", "body": b"", "more_body": False}
        return {"type": "http.request", "body": pieces.pop(), "more_body": True}

    async def send(message: Any) -> None:
        await may_read.wait()
        sent.append(message.get("body", b""))

    scope = {
        "type": "http", "method": "POST", "path": "/v1/messages:bulk", "raw_path": b"/v1/messages:bulk",
        "query_string": b"", "headers": [(b"host", b"localhost")], "http_version": "1.1", "scheme": "http",
        "asgi": {"version": "3.0"}, "root_path": "", "client": None, "server": None,
    }  # fmt: skip
    async with within(60):
        await home.api(scope, receive, send)

    assert len(b"".join(sent).splitlines()) == 30_001


async def test_a_hundred_thousand_lines_in_one_call(tmp_path: Path) -> None:
    """Issue 2: 100,000 in one call, streamed, quickly, and with flat memory."""
    block = 1000

    async def lines() -> AsyncIterator[bytes]:
        for start in range(0, 100_000, block):
            yield b"".join(
                b'{"channel":"out","to":"user-%d","text":"%s","at":"2027-01-16T09:00:00Z"}\n' % (number, b"x" * 400)
                for number in range(start, start + block)
            )

    async with house(f"sqlite:///{tmp_path}/bulk.db") as home:
        await home.http.post("/v1/messages:bulk", content=_lines(5000))  # caches are warm from here on
        before, limit = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, Limit(15, clock=process_time)
        answers, summary = _answers(await home.http.post("/v1/messages:bulk", content=lines()))
        over = limit.is_over()
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before

    assert summary == {"accepted": 100_000, "refused": 0, "complete": True}
    assert len({answer["id"] for answer in answers}) == 100_000
    assert not over
    assert grown < 200_000  # KiB; the test's own copy of the answers and the database's cache are in it
