"""Twilio: what leaves, what each of its codes means, and what a simulated Twilio makes of it."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest

from tidings.model.errors import Invalid, Misconfigured
from tidings.model.message import Message
from tidings.model.outcome import Done, Outcome, Reject, Retry, Unknown
from tidings.model.task import Category, OnUnknown
from tidings.outbound.channels.base import Channel, probe
from tidings.outbound.channels.registry import build
from tidings.outbound.channels.twilio import CODES, outcome_of
from tidings.sandbox.providers.twilio import segments

from .conftest import Sandbox

ACCOUNT = "AC" + "0123456789abcdef" * 2
KEY = "SK" + "0123456789abcdef" * 2
TOKEN = "canary0123456789"
ADA = "+15551234567"
NOW = 1_790_000_060_000_000

P, V, T, TH = Category.PERMANENT, Category.VALIDATION, Category.TEMPORARY, Category.THROTTLING


def channel(url: str, **options: Any) -> Channel:
    """An account that speaks to this address; an option of None is left out."""
    given = {"account_sid": ACCOUNT, "auth_token": TOKEN, "sender": "+15550001111", "base_url": url}
    chosen = {name: value for name, value in {**given, **options}.items() if value is not None}
    return build("texts", "twilio", chosen, now=lambda: NOW)


def message(to: str = ADA, **content: Any) -> Message:
    """A message to somebody."""
    return Message("0190-a1", "default", "texts", to, {"text": "hello", **content}, NOW)


async def send(url: str, to: str = ADA, options: dict[str, Any] | None = None, **content: Any) -> Outcome:
    """What came of one attempt."""
    made = channel(url, **(options or {}))
    try:
        return await made.send(message(to, **content))
    finally:
        await made.close()


# What leaves


async def test_the_request_matches_the_twilio_api_byte_for_byte(sandbox: Sandbox) -> None:
    """Basic auth, a form, E.164 with its plus encoded; the receipt is the SID."""
    outcome = await send(sandbox.url, text="Grüße & more")

    (seen,) = sandbox.requests
    assert (seen.method, seen.path) == ("POST", f"/2010-04-01/Accounts/{ACCOUNT}/Messages.json")
    assert seen.headers["content-type"] == "application/x-www-form-urlencoded"
    assert seen.headers["authorization"] == "Basic " + b64encode(f"{ACCOUNT}:{TOKEN}".encode()).decode()
    assert seen.body == b"To=%2B15551234567&From=%2B15550001111&Body=Gr%C3%BC%C3%9Fe+%26+more"
    assert outcome == Done(f"SM{1:032x}")


@pytest.mark.parametrize(
    ("options", "content", "body"),
    [
        (
            {"sender": None, "messaging_service": "MG" + "a" * 32},
            {},
            f"To=%2B15551234567&MessagingServiceSid=MG{'a' * 32}&Body=hello",
        ),
        ({"via": "whatsapp"}, {}, "To=whatsapp%3A%2B15551234567&From=whatsapp%3A%2B15550001111&Body=hello"),
        (
            {"status_callback": "https://example.com/in?a=1", "validity": "5m"},
            {},
            "To=%2B15551234567&From=%2B15550001111&Body=hello"
            "&StatusCallback=https%3A%2F%2Fexample.com%2Fin%3Fa%3D1&ValidityPeriod=300",
        ),
        (
            {},
            {"text": "", "data": {"media": ["https://example.com/a.png", "https://example.com/b.png"]}},
            "To=%2B15551234567&From=%2B15550001111"
            "&MediaUrl=https%3A%2F%2Fexample.com%2Fa.png&MediaUrl=https%3A%2F%2Fexample.com%2Fb.png",
        ),
        (
            {},
            {"text": "", "data": {"content_sid": "HX" + "0" * 32, "content_variables": {"1": "Ada"}}},
            f"To=%2B15551234567&From=%2B15550001111&ContentSid=HX{'0' * 32}&ContentVariables=%7B%221%22%3A%22Ada%22%7D",
        ),
    ],
)
async def test_options_and_extras_become_twilios_parameters(
    sandbox: Sandbox, options: dict[str, Any], content: dict[str, Any], body: str
) -> None:
    """A messaging service, WhatsApp, a callback, media and templates; all of them arrive."""
    outcome = await send(sandbox.url, options=options, **content)

    assert sandbox.requests[0].body.decode() == body
    assert isinstance(outcome, Done)
    assert sandbox.ledger[0].delivered


async def test_an_api_key_logs_in_instead_of_the_account(sandbox: Sandbox) -> None:
    """The key's SID is the user, its secret the password; the path stays the account's."""
    options = {"auth_token": None, "api_key": KEY, "api_secret": "s3cret"}
    assert isinstance(await send(sandbox.url, options=options), Done)

    (seen,) = sandbox.requests
    assert seen.headers["authorization"] == "Basic " + b64encode(f"{KEY}:s3cret".encode()).decode()
    assert f"/Accounts/{ACCOUNT}/" in seen.path


async def test_a_message_arrives_on_the_phone_and_a_second_copy_is_seen(sandbox: Sandbox) -> None:
    """The ledger knows it by the engine's id, so two messages with the same text are no duplicates."""
    made = channel(sandbox.url)
    for id_ in ("m-1", "m-2", "m-1"):
        await made.send(message()._replace(id=id_))
    await made.close()

    shown = sandbox.world.conversations.find("twilio", ADA)
    assert shown is not None
    assert [(entry.id, entry.copy) for entry in shown.entries] == [("m-1", 1), ("m-2", 1), ("m-1", 2)]


# What an answer means


@pytest.mark.parametrize(
    ("code", "category", "retry", "whole"),
    [
        (20003, P, False, True),
        (20404, V, False, False),
        (20429, TH, True, True),
        (21211, V, False, False),
        (21408, P, False, False),
        (21604, V, False, False),
        (21606, P, False, False),
        (21608, P, False, False),
        (21609, V, False, False),
        (21610, P, False, False),
        (21611, TH, True, True),
        (21612, P, False, False),
        (21614, P, False, False),
        (21617, V, False, False),
        (21635, P, False, False),
        *((code, P, False, True) for code in (21659, 21660, 21661, 21703, 21704, 21705)),
        (30001, TH, True, True),
        (30002, P, False, True),
        (30003, T, True, False),
        (30004, P, False, False),
        (30005, P, False, False),
        (30006, P, False, False),
        (30007, P, False, False),
        (30008, T, True, False),
        (30022, TH, True, True),
        (30023, TH, True, True),
        (30034, P, False, True),
        *((code, P, False, True) for code in (63001, 63007, 63020, 63022)),
        *((code, P, False, False) for code in (63003, 63005, 63013, 63014, 63016, 63024, 63029, 63032, 63033, 63049)),
        *((code, T, True, False) for code in (63010, 63012, 63019)),
        *((code, V, False, False) for code in (63021, 63025, 63027, 63028, 63030)),
        (63018, TH, True, True),
        (63038, TH, True, True),
    ],
)
async def test_each_code_has_its_category_and_its_consequence(
    sandbox: Sandbox, code: int, category: Category, retry: bool, whole: bool
) -> None:
    """A4: one row per code of the table; Twilio names no wait, so the policy's own applies."""
    sandbox.break_("error", code=str(code))
    outcome = await send(sandbox.url)

    assert isinstance(outcome, Retry if retry else Reject)
    assert (outcome.category, outcome.whole_channel) == (category, whole)
    assert str(code) in outcome.reason
    assert not isinstance(outcome, Retry) or outcome.after == CODES[code].after
    assert (isinstance(outcome, Reject) and outcome.opted_out) == (code == 21610)
    assert not sandbox.ledger[0].delivered


def test_every_twilio_code_is_tested_and_an_unknown_code_has_no_outcome() -> None:
    """The same table reads callbacks; a code that nobody has told us of decides nothing."""
    assert len(CODES) == 56
    assert outcome_of(30003, "off") == Retry(T, "off")
    assert outcome_of(99999, "?") is None


@pytest.mark.parametrize(
    ("code", "expected"),
    [("503", Retry), ("500", Retry), ("429", Retry), ("401", Reject), ("404", Reject), ("99999", Reject)],
)
async def test_an_unknown_twilio_code_is_classified_by_its_status(
    sandbox: Sandbox, code: str, expected: type[Outcome]
) -> None:
    """In Twilio's own words a failure is certain, whatever its number."""
    sandbox.break_("error", code=code)
    outcome = await send(sandbox.url)

    assert isinstance(outcome, expected)


@pytest.mark.parametrize(
    ("number", "code"),
    [
        ("+15005550001", "21211"),
        ("+15005550002", "21612"),
        ("+15005550003", "21408"),
        ("+15005550004", "21610"),
        ("+15005550009", "21614"),
    ],
)
async def test_twilios_test_numbers_work_in_the_sandbox(sandbox: Sandbox, number: str, code: str) -> None:
    """No preparation is needed to see an error."""
    outcome = await send(sandbox.url, number)

    assert isinstance(outcome, Reject)
    assert code in outcome.reason


async def test_a_wrong_token_pauses_the_channel(sandbox: Sandbox) -> None:
    """A4: every message would fail; none is spent on finding that out."""
    outcome = await send(sandbox.url, options={"auth_token": "wrong"})

    assert isinstance(outcome, Reject)
    assert (outcome.category, outcome.whole_channel) == (P, True)


# Long texts


async def test_a_long_text_is_refused_or_becomes_several_messages(sandbox: Sandbox) -> None:
    """Bad input: refused with the remedy, or split where the configuration says so."""
    text = "word " * 700
    with pytest.raises(Invalid, match="long_text") as caught:
        channel(sandbox.url).check(ADA, {"text": text})
    assert caught.value.field == "text"

    outcome = await send(
        sandbox.url, options={"long_text": "split"}, text=text, data={"media": ["https://example.com/a"]}
    )
    assert outcome == Done(f"SM{1:032x} SM{2:032x} SM{3:032x}")
    assert all(len(entry.text) <= 1600 for entry in sandbox.ledger)
    assert [b"MediaUrl" in seen.body for seen in sandbox.requests] == [True, False, False]
    assert [entry.copy for entry in sandbox.ledger] == [1, 1, 1]


async def test_a_failed_part_makes_the_outcome_of_the_message_unknown(sandbox: Sandbox) -> None:
    """R1: the first part is out; a plain retry would send it twice without saying so."""
    made = channel(sandbox.url, long_text="split")
    world, receive = sandbox.world, sandbox.world.receive

    def after_one(arrival: Any) -> Any:
        entry = receive(arrival)
        world.break_({"kind": "error", "code": "21610"})
        return entry

    world.receive = after_one  # type: ignore[method-assign]
    outcome = await made.send(message(text="word " * 700))
    await made.close()

    assert isinstance(outcome, Unknown)
    assert outcome.evidence.startswith("1 of 3 parts were sent")


# What is refused before it is accepted


@pytest.mark.parametrize(
    ("to", "words"),
    [
        ("5551234567", "such as +15551234567"),
        ("+1 (555) 123-4567", "without spaces and punctuation: +15551234567"),
        ("0049 151 2345678", "+ instead of 00: +491512345678"),
        ("+0551234567", "such as"),
        ("+1555123456789012", "such as"),
        ("+1555123456\u0667", "such as"),
        ("", "such as"),
        ("whatsapp:+15551234567", "such as"),
    ],
)
def test_a_malformed_number_is_refused_with_how_to_write_it(to: str, words: str) -> None:
    """Bad input: E.164 with a remedy."""
    with pytest.raises(Invalid) as caught:
        channel("http://127.0.0.1:1").check(to, {"text": "hello"})
    assert caught.value.field == "to"
    assert words in caught.value.remedy


@pytest.mark.parametrize(
    ("content", "field"),
    [
        ({"text": ""}, "text"),
        ({"text": "  "}, "text"),
        ({"text": "x", "data": {"colour": "red"}}, "data.colour"),
        ({"text": "x", "data": {"media": "https://example.com"}}, "data.media"),
        ({"text": "x", "data": {"media": ["file:///etc/passwd"]}}, "data.media"),
        ({"text": "x", "data": {"media": ["https://example.com"] * 11}}, "data.media"),
        ({"text": "x", "data": {"content_sid": "HX1"}}, "data.content_sid"),
        ({"text": "x", "data": [1]}, "data"),
    ],
)
async def test_invalid_twilio_content_is_rejected_before_sending(
    sandbox: Sandbox, content: dict[str, Any], field: str
) -> None:
    """Before it is accepted; and should it come up later, it is a rejection and nobody is called."""
    with pytest.raises(Invalid) as caught:
        channel(sandbox.url).check(ADA, content)
    outcome = await send(sandbox.url, **content)

    assert caught.value.field == field
    assert caught.value.remedy
    assert isinstance(outcome, Reject)
    assert outcome.category is V
    assert sandbox.requests == []


# The configuration


@pytest.mark.parametrize(
    ("options", "field", "words"),
    [
        ({"account_sid": "canary"}, "account_sid", "AC and 32"),
        ({"auth_token": None}, "auth_token", "api_key"),
        ({"auth_token": "canary canary"}, "auth_token", "ASCII"),
        ({"api_key": KEY}, "api_key", "belong together"),
        ({"sender": None}, "sender", "messaging_service"),
        ({"sender": "+1 555"}, "sender", "+15550001111"),
        ({"sender": "Tidings", "via": "whatsapp"}, "sender", "number"),
        ({"messaging_service": "MG1"}, "messaging_service", "MG and 32"),
        ({"via": "pigeon"}, "via", "'sms' or 'whatsapp'"),
        ({"validity": "11h"}, "validity", "10 h"),
        ({"status_callback": "https://a_b.example.com/"}, "status_callback", "underscore"),
        ({"long_text": "cut"}, "long_text", "'refuse' or 'split'"),
        ({"base_url": "twilio"}, "base_url", "https"),
    ],
)
def test_a_wrong_option_stops_the_start(options: dict[str, Any], field: str, words: str) -> None:
    """Bad input: the option and the remedy are named, and no secret is repeated (S9)."""
    with pytest.raises(Misconfigured) as caught:
        channel("http://127.0.0.1:1", **options)
    said = str(caught.value)
    assert words in said and "canary" not in said
    assert (caught.value.field, bool(caught.value.remedy)) == (field, True)


def test_the_default_rate_limit_and_on_unknown_of_twilio() -> None:
    """A long number sends one a second; a service spreads. A second text costs money, so it is held."""
    url = "http://127.0.0.1:1"
    plain = channel(url).traits
    service = channel(url, sender=None, messaging_service="MG" + "a" * 32).traits

    assert (plain.per_second, service.per_second, plain.max_text) == (1.0, None, 1600)
    assert channel(url, per_second=10).traits.per_second == 10
    assert plain.on_unknown is OnUnknown.HOLD
    assert "costs money" in plain.why_on_unknown
    assert channel(url, on_unknown="resend").traits.why_on_unknown == "chosen in the configuration"


@pytest.mark.parametrize(
    ("options", "expected"),
    [({}, Done("Sandbox")), ({"auth_token": None, "api_key": KEY, "api_secret": "s"}, Done(ACCOUNT))],
)
async def test_the_account_can_be_tested_without_sending(
    sandbox: Sandbox, options: dict[str, Any], expected: Outcome
) -> None:
    """`channels test`: says whose account it is; an API key may not look at the account itself."""
    made = channel(sandbox.url, **options)
    outcome = await probe(made)
    await made.close()

    assert outcome == expected
    assert sandbox.ledger == []


async def test_a_test_with_a_wrong_token_says_so(sandbox: Sandbox) -> None:
    """And sends nothing either."""
    made = channel(sandbox.url, auth_token="wrong")
    outcome = await probe(made)
    await made.close()

    assert isinstance(outcome, Reject)
    assert "20003" in outcome.reason


def test_the_simulated_twilio_counts_segments() -> None:
    """160 plain characters or 70 others make one; more are split smaller."""
    assert [segments(text) for text in ("a" * 160, "a" * 161, "ü" * 70, "ü" * 71)] == [1, 2, 1, 2]
