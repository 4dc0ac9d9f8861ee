"""Templated requests: what leaves, what counts as success, what each answer means, what may be called."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest

from tidings.config import load
from tidings.model.errors import CallerError, Misconfigured
from tidings.model.message import Message
from tidings.model.outcome import Done, Outcome, Reject, Retry, Skip, Unknown
from tidings.model.task import Category, OnUnknown
from tidings.outbound.channels.base import Channel, probe
from tidings.outbound.channels.http import HttpChannel, HttpSettings
from tidings.outbound.channels.registry import build
from tidings.wire.http_client import MAX_SHOWN

from ..receiver import Act, Receiver, answer, black_hole, cut, drip_head, endless, receiving, refusing
from .conftest import Sandbox

NOW = 1_790_000_060_000_000
KEY = "canary-key-0815"
PATIENT, SHORT = 20.0, 0.5
FORM = "application/x-www-form-urlencoded"
BODY = {
    "to": "{%address%}",
    "text": "{%message.content%}",
    "from": "{%message.meta.sender%}",
    "sms": {"count": "{%message.meta.count%}", "flash": False},
    "ref": "id {%message.id%}",
}


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    """A receiver that does as it is told."""
    async with receiving() as ready:
        yield ready


def channel(url: str, **options: Any) -> Channel:
    """A channel that may call this machine."""
    given = {"url": url, "allow_private": True, "allow_http": True, "deadline": PATIENT, **options}
    return build("sms", "http", given, now=lambda: NOW)


def message(to: str = "+1 555-0100", **content: Any) -> Message:
    """A message to somebody."""
    return Message("0190-a1", "default", "sms", to, {"text": 'Say "hi"\nü', **content}, NOW, 2)


async def send(url: str, what: Message | None = None, **options: Any) -> Outcome:
    """What came of one attempt."""
    made = channel(url, **options)
    try:
        return await made.send(what or message())
    finally:
        await made.close()


# What leaves


async def test_a_table_leaves_as_json_with_its_placeholders_filled(receiver: Receiver) -> None:
    """Types kept, a key with nothing but an unresolved placeholder dropped."""
    outcome = await send(
        f"{receiver.url}/v1/{{%message.meta.sender%}}/send?key={{%secrets.key%}}",
        message(data={"sender": "A/B ü", "count": 2}),
        method="put",
        headers={"Authorization": "Bearer {%secrets.key%}", "X-Id": "{%message.id%}-{%message.attempt%}"},
        body={**BODY, "none": "{%message.meta.none%}"},
        secrets={"key": KEY},
    )

    request = receiver.requests[0]
    assert outcome == Done()
    assert request.path == f"/v1/A%2FB%20%C3%BC/send?key={KEY}"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers["x-id"] == "0190-a1-2"
    assert request.headers["content-type"] == "application/json"
    assert request.body == orjson.dumps(
        {
            "to": "+1 555-0100",
            "text": 'Say "hi"\nü',
            "from": "A/B ü",
            "sms": {"count": 2, "flash": False},
            "ref": "id 0190-a1",
        }
    )


@pytest.mark.parametrize(
    ("body", "kind", "sent"),
    [
        (
            {"to": "{%address%}", "text": "{%message.content%}", "n": 1},
            FORM,
            b"to=%2B1+555-0100&text=Say+%22hi%22%0A%C3%BC&n=1",
        ),
        ("t={%message.content%}", FORM, b"t=Say+%22hi%22%0A%C3%BC"),
        (
            "<t a='{%address%}'>{%message.content%}</t>",
            "text/xml",
            "<t a='+1 555-0100'>Say &quot;hi&quot;\nü</t>".encode(),
        ),
        ('{"t": "{%message.content%}"}', "application/json", b'{"t":"Say \\"hi\\"\\n\xc3\xbc"}'),
        ('[{"t": "{%message.content%}"}, ] // odd', "application/json", b'[{"t": "Say \\"hi\\"\\n\xc3\xbc"}, ] // odd'),
        ("{%message.content%}", None, 'Say "hi"\nü'.encode()),
        (None, None, b""),
    ],
)
async def test_a_value_is_escaped_for_the_place_it_stands_in(
    receiver: Receiver, body: object, kind: str | None, sent: bytes
) -> None:
    """A form, XML, JSON as a text, plain text: no value ends its own place."""
    headers: dict[str, Any] = {"headers": {"Content-Type": kind}} if kind else {}
    content: dict[str, Any] = {} if body is None else {"body": body}
    await send(f"{receiver.url}/in", **headers, **content)

    assert receiver.requests[0].body == sent
    assert receiver.requests[0].headers.get("content-type", "").split(";")[0] == (
        kind or ("text/plain" if body else "")
    )


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH"])
async def test_each_method_leaves(receiver: Receiver, method: str) -> None:
    """A GET carries all in its URL."""
    outcome = await send(
        f"{receiver.url}/send?to={{%address%}}&text={{%message.content%}}", method=method, address_prefix="tel:"
    )

    assert outcome == Done()
    assert receiver.requests[0].path == "/send?to=tel%3A%2B1%20555-0100&text=Say%20%22hi%22%0A%C3%BC"


async def test_an_address_may_be_stripped_to_its_digits_and_get_a_prefix(receiver: Receiver) -> None:
    """Connect's stripNonNumeric and addressPrefix."""
    await send(f"{receiver.url}/", strip_non_numeric=True, address_prefix="whatsapp:+", body={"to": "{%address%}"})

    assert receiver.requests[0].json == {"to": "whatsapp:+15550100"}


async def test_the_subject_is_part_of_meta(receiver: Receiver) -> None:
    """Where Connect has it; data may say otherwise."""
    body = {"a": "{%message.meta.subject%}", "b": "{%message.subject%}"}
    await send(f"{receiver.url}/", message(subject="Hi"), body=body)
    await send(f"{receiver.url}/", message(subject="Hi", data={"subject": "Ho"}), body=body)
    await send(f"{receiver.url}/", body=body)

    assert [one.json for one in receiver.requests] == [{"a": "Hi", "b": "Hi"}, {"a": "Ho", "b": "Hi"}, {}]


async def test_an_http_channel_can_send_to_the_sandbox_phone(sandbox: Sandbox) -> None:
    """A provider of which the engine has never heard: its JSON, its receipt, its faults."""
    options: dict[str, Any] = {
        "body": {"id": "{%message.id%}", "to": "{%address%}", "text": "{%message.content%}"},
        "receipt_path": "receipt",
        "error_path": "error.message",
    }
    url = f"{sandbox.url}/sandbox/messages"
    done = await send(url, message("ada"), **options)
    lost = await send(url, message("lost"), **options)
    gone = await send(url, message("gone"), **options)

    assert done == Done(receipt="phone-1")
    assert isinstance(lost, Unknown)
    assert gone == Reject(Category.PERMANENT, "HTTP 404: Unknown recipient")
    assert [entry.to for entry in sandbox.ledger if entry.delivered] == ["ada", "lost"]


# What counts as success


YES = {"success_path": "result.ok", "success_equals": True, "receipt_path": "result.id", "error_path": "error"}


@pytest.mark.parametrize(
    ("status", "body", "options", "expected"),
    [
        (200, {}, {}, Done()),
        (204, None, {}, Done()),
        (200, {"id": 7}, {"receipt_path": "id"}, Done("7")),
        (200, {"id": {"a": 1}}, {"receipt_path": "id"}, Done()),
        (202, {}, {"success": [200]}, Unknown),
        (302, {}, {"success": [302]}, Done()),
        (200, {"result": {"ok": True, "id": "m-1"}}, YES, Done("m-1")),
        (200, {"result": {"ok": False}, "error": "no"}, YES, Retry(Category.TEMPORARY, "HTTP 200: no")),
        (200, {"result": {"ok": "true"}}, YES, Retry),
        (200, {"result": {"ok": "queued"}}, {**YES, "success_equals": "queued"}, Done()),
        (200, {"status": 0}, {"success_path": "status", "success_equals": 0}, Done()),
        (200, None, YES, Unknown),
    ],
)
async def test_what_counts_as_success_is_configured(
    receiver: Receiver, status: int, body: object, options: dict[str, Any], expected: Any
) -> None:
    """A list of statuses, and a place in the answer that must say so; unreadable means that nobody knows."""
    receiver.script(answer(status, b"<html>" if body is None else orjson.dumps(body)))
    outcome = await send(receiver.url, **options)

    assert outcome == expected if not isinstance(expected, type) else isinstance(outcome, expected)


WRONG = Category.VALIDATION
ERRORS: dict[str, Any] = {
    "error_path": "error.code",
    "errors": {
        "busy": "temporary",
        "LIMIT": "throttling",
        "no_such_number": "permanent",
        "4711": "validation",
        "disk": "system",
        "bad_key": "account",
    },
}


@pytest.mark.parametrize("status", [200, 400, 500])
@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("busy", Retry(Category.TEMPORARY, "", timedelta(seconds=9))),
        ("limit", Retry(Category.THROTTLING, "", timedelta(seconds=9), True)),
        ("no_such_number", Reject(Category.PERMANENT, "")),
        (4711, Reject(Category.VALIDATION, "")),
        ("disk", Retry(Category.SYSTEM, "", timedelta(seconds=9))),
        ("bad_key", Reject(Category.PERMANENT, "", True)),
    ],
)
async def test_errors_that_are_named_have_their_category(
    receiver: Receiver, status: int, code: object, expected: Retry | Reject
) -> None:
    """A4: the provider's own word decides, whatever the status."""
    receiver.script(answer(status, orjson.dumps({"error": {"code": code}}), retry_after="9"))
    outcome = await send(receiver.url, **ERRORS)

    assert isinstance(outcome, Retry | Reject)
    reason = f"HTTP {status}: {code}"
    assert outcome.reason == reason
    assert outcome == replace(expected, reason=reason)


@pytest.mark.parametrize(
    ("status", "posted", "put"),
    [
        *((status, WRONG, WRONG) for status in (400, 405, 406, 411, 413, 414, 415, 422)),
        *((status, "account", "account") for status in (401, 402, 403, 407, 301, 308)),
        *((status, Category.PERMANENT, Category.PERMANENT) for status in (404, 410, 409, 451)),
        *((status, "later", "later") for status in (408, 425, 503)),
        *((status, "unknown", "later") for status in (500, 502, 504, 520)),
        *((status, "throttled", "throttled") for status in (420, 429)),
    ],
)
async def test_each_status_has_its_category(receiver: Receiver, status: int, posted: str, put: str) -> None:
    """A4: a write that may not be repeated and ends in a crash over there is a doubt."""
    for method, expected in (("POST", posted), ("PUT", put)):
        receiver.script(answer(status, b"no", retry_after="60"))
        outcome = await send(receiver.url, method=method)
        if expected == "unknown":
            assert isinstance(outcome, Unknown)
        elif expected in ("later", "throttled"):
            throttled = expected == "throttled"
            category = Category.THROTTLING if throttled else Category.TEMPORARY
            assert isinstance(outcome, Retry)
            assert (outcome.category, outcome.after) == (category, timedelta(minutes=1))
            assert outcome.whole_channel is throttled
        else:
            assert isinstance(outcome, Reject)
            account = expected == "account"
            assert (outcome.category, outcome.whole_channel) == (Category.PERMANENT if account else expected, account)


async def test_a_status_may_be_known_to_say_that_nothing_was_done(receiver: Receiver) -> None:
    """`not_sent`: whoever knows the other side can take the doubt away."""
    receiver.script(answer(500))

    assert isinstance(await send(receiver.url, not_sent=[500, 502]), Retry)


@pytest.mark.parametrize("act", [cut, black_hole, drip_head])
async def test_no_answer_after_the_request_left_is_unknown(receiver: Receiver, act: Act) -> None:
    """F24: perhaps it was done."""
    receiver.script(act)

    assert isinstance(await send(receiver.url, deadline=SHORT), Unknown)


async def test_nobody_there_was_certainly_not_sent() -> None:
    """F22: a plain retry."""
    with refusing() as url:
        assert isinstance(await send(url), Retry)


# What may be called


async def test_the_guard_looks_at_every_address(receiver: Receiver) -> None:
    """S6: as for webhooks; one forbidden address and nobody is called."""

    async def look_up(_: str) -> Sequence[str]:
        return ["127.0.0.1", "169.254.169.254"]

    settings = HttpSettings(f"http://api.invalid:{receiver.port}/", allow_private=True, allow_http=True)
    made = HttpChannel(settings, now=lambda: NOW, look_up=look_up)
    outcome = await made.send(message())
    await made.close()

    assert isinstance(outcome, Reject) and outcome.category is Category.VALIDATION
    assert receiver.connections == 0


async def test_a_name_is_looked_up_once_for_many_messages(receiver: Receiver) -> None:
    """S6: and called at the address that was checked, although each message has a URL of its own."""
    asked = []

    async def look_up(name: str) -> Sequence[str]:
        asked.append(name)
        return ["127.0.0.1"]

    url = f"http://api.invalid:{receiver.port}/{{%address%}}"
    made = HttpChannel(HttpSettings(url, allow_private=True, allow_http=True), now=lambda: NOW, look_up=look_up)
    for number in range(5):
        assert isinstance(await made.send(message(f"n{number}")), Done)
    await made.close()

    assert (asked, [one.path for one in receiver.requests]) == (["api.invalid"], [f"/n{n}" for n in range(5)])


# Secrets and strange answers


@pytest.mark.parametrize(
    "act", [answer(500, KEY.encode() + b"\x1b[2J\x00" + b"A" * 9000), answer(400, b"<html>"), endless, cut]
)
async def test_no_secret_gets_into_reasons_receipts_logs_or_repr(
    receiver: Receiver, act: Act, caplog: pytest.LogCaptureFixture
) -> None:
    """S9: given as a secret, in a header, or in the query; a page of any size is shown short and escaped."""
    caplog.set_level("DEBUG")
    receiver.script(act)
    inner = "canary-in-header", "canary-in-query"
    options: dict[str, Any] = {"secrets": {"k": KEY}, "headers": {"X-Key": f"Token {inner[0]}"}}
    outcome = await send(f"{receiver.url}/?key={inner[1]}&s={{%secrets.k%}}", **options)
    receiver.script(answer(200, orjson.dumps({"id": f"{KEY} {inner[0]} {inner[1]}"})))
    receipt = await send(f"{receiver.url}/?key={inner[1]}", receipt_path="id", **options)

    shown = str(outcome) + str(receipt) + caplog.text + repr(HttpSettings(f"https://x/?k={KEY}", **options))
    assert not any(secret in shown for secret in (KEY, *inner))
    assert "\x1b" not in shown and len(str(outcome)) < MAX_SHOWN + 100


# What is refused


@pytest.mark.parametrize(
    ("to", "content", "field"),
    [
        ("", {}, "to"),
        ("a\nb", {}, "to"),
        ("ada", {}, "data.sender"),
        ("ada", {"data": {"sender": "x", "ref": "a\r\nX-Evil: 1"}}, "data"),
        ("ada", {"data": {"sender": "x", "ref": "ü"}}, "data"),
        ("ada", {"text": "x" * 65_537, "data": {"sender": "x"}}, "text"),
    ],
)
async def test_what_cannot_be_filled_is_refused_with_a_remedy(
    receiver: Receiver, to: str, content: dict[str, Any], field: str
) -> None:
    """Bad input: before the message is accepted, and once more before it would be sent (S12)."""
    made = channel(f"{receiver.url}/{{%message.meta.sender%}}", headers={"X-Ref": "{%message.meta.ref%}"}, body=BODY)
    with pytest.raises(CallerError) as caught:
        made.check(to, {"text": "hi", **content})
    assert (caught.value.field, bool(caught.value.remedy)) == (field, True)
    if field != "text":
        outcome = await made.send(Message("m", "default", "sms", to, {"text": "hi", **content}, NOW))
        assert isinstance(outcome, Reject) and outcome.category is Category.VALIDATION
        assert receiver.connections == 0
    await made.close()


def test_a_message_that_can_be_filled_is_taken() -> None:
    """Without a network."""
    channel("http://127.0.0.1:9/", body=BODY).check("ada", {"text": "hi", "data": {"sender": "x"}})


@pytest.mark.parametrize(
    ("options", "field", "words"),
    [
        ({}, "url", "missing"),
        ({"url": "https://{%address%}/"}, "url", "host"),
        ({"url": "http://example.com/"}, "url", "allow_http"),
        ({"url": "https://127.0.0.1/"}, "url", "allow_private"),
        ({"url": "https://x.example/{%adress%}"}, "url", "adress"),
        ({"url": "https://x.example/{%secrets.k%}"}, "url", "secrets.k"),
        ({"url": "https://x.example/{%address"}, "url", "{%address%}"),
        ({"url": "https://x.example/", "method": "DELETE"}, "method", "POST"),
        ({"url": "https://x.example/", "method": "GET", "body": {"a": 1}}, "body", "GET"),
        ({"url": "https://x.example/", "headers": {"a b": "x"}}, "headers", "name"),
        ({"url": "https://x.example/", "headers": {"Host": "x"}}, "headers", "set automatically"),
        ({"url": "https://x.example/", "headers": {"A": "x", "a": "y"}}, "headers", "duplicate"),
        ({"url": "https://x.example/", "headers": {"A": "x\r\ny"}}, "headers", "ASCII"),
        ({"url": "https://x.example/", "headers": {"A": 5}}, "headers", "strings"),
        ({"url": "https://x.example/", "headers": ["A"]}, "headers", "table"),
        ({"url": "https://x.example/", "body": 5}, "body", "table"),
        ({"url": "https://x.example/", "success": [99]}, "success", "[200, 202]"),
        ({"url": "https://x.example/", "errors": {"a": "temporary"}}, "error_path", "missing"),
        ({"url": "https://x.example/", "error_path": "e", "errors": {"a": "bad"}}, "errors", "temporary"),
        ({"url": "https://x.example/", "secrets": {"canary": 5}}, "secrets", "strings"),
        ({"url": "https://x.example/", "body": ["a"], "headers": {"Content-Type": FORM}}, "body", "table"),
    ],
)
def test_a_wrong_option_stops_the_start(options: dict[str, Any], field: str, words: str) -> None:
    """The error names the option and the remedy."""
    with pytest.raises(Misconfigured) as caught:
        build("sms", "http", options)

    assert caught.value.field == field
    assert words in str(caught.value)


async def test_an_http_channel_holds_unknown_outcomes_and_has_no_dry_test() -> None:
    """With the reason for both."""
    made = channel("http://127.0.0.1:9/")

    assert made.traits.on_unknown is OnUnknown.HOLD and made.traits.why_on_unknown
    assert isinstance(await probe(made), Skip)


def test_options_may_come_as_texts_from_the_environment() -> None:
    """A variable holds nothing but text: JSON stands for a table."""
    made = channel("http://127.0.0.1:9/", headers='{"X-A": "{%address%}"}', body='{"to": "{%address%}"}')

    made.check("ada", {"text": "x"})


@pytest.mark.parametrize(
    ("value", "taken"),
    [
        ("Bearer {%secrets.key%}", True),
        ("{%message.id%}", True),
        ("Bearer canary", False),
        ("canary {%message.id%}", False),
    ],
)
def test_a_template_is_no_secret_in_the_file(tmp_path: Path, value: str, taken: bool) -> None:
    """S9: a header called Authorization is one, unless nothing but placeholders stands in it."""
    file = tmp_path / "tidings.toml"
    head = '[channels.sms]\nkind = "http"\nurl = "https://x.example/"\n[channels.sms.headers]\n'
    file.write_text(f'{head}Authorization = "{value}"\n')
    file.chmod(0o644)
    if taken:
        load(environ={}, folder=tmp_path)
    else:
        with pytest.raises(Misconfigured, match="in clear") as caught:
            load(environ={}, folder=tmp_path)
        assert "canary" not in str(caught.value)
