"""WhatsApp Cloud: what leaves, what each of Meta's codes means, and what a simulated Meta makes of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import httpx
import pytest
from pywa.errors import ReEngagementMessage
from pywa.types.callback import Button
from pywa_async.client import WhatsApp

from tidings.model.errors import Invalid, Misconfigured
from tidings.model.message import Message
from tidings.model.outcome import Done, Outcome, Reject, Retry, Unknown
from tidings.model.task import Category, OnUnknown
from tidings.outbound.channels.base import Channel, probe
from tidings.outbound.channels.registry import build
from tidings.outbound.channels.whatsapp_cloud import CODES, WhatsAppCloudSettings
from tidings.sandbox.providers.whatsapp_cloud import ERRORS
from tidings.wire.http_client import MAX_SHOWN

from ..receiver import Act, Receiver, answer, black_hole, cut, hang_up_in_body, receiving, refusing
from .conftest import Sandbox

TOKEN = "EAAcanary0123456789"
PHONE = "106540352242922"
NOW = 1_790_000_060_000_000
ANN = "+15551234567"

P, V, T, TH = Category.PERMANENT, Category.VALIDATION, Category.TEMPORARY, Category.THROTTLING


def channel(url: str, **options: Any) -> Channel:
    """A business number that speaks to this address."""
    given = {"phone_number_id": PHONE, "access_token": TOKEN, "base_url": url, "deadline": 20, **options}
    return build("wa", "whatsapp_cloud", given, now=lambda: NOW)


def message(to: str = ANN, *, attempt: int = 1, **content: Any) -> Message:
    """A message to somebody."""
    return Message("0190-a1", "default", "wa", to, {"text": "hello", **content}, NOW, attempt)


async def send(
    url: str, to: str = ANN, options: dict[str, Any] | None = None, attempt: int = 1, **content: Any
) -> Outcome:
    """What came of one attempt."""
    made = channel(url, **(options or {}))
    try:
        return await made.send(message(to, attempt=attempt, **content))
    finally:
        await made.close()


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    """A receiver that does as it is told, for what no Meta would answer."""
    async with receiving() as ready:
        yield ready


# What leaves


async def test_a_text_message_matches_the_graph_api_byte_for_byte(sandbox: Sandbox) -> None:
    """Path, token, fields in the order of the reference; our id comes back in a status."""
    outcome = await send(sandbox.url, data={"context": {"message_id": "wamid.PREVIOUS"}})

    (seen,) = sandbox.requests
    assert (seen.method, seen.path) == ("POST", f"/v24.0/{PHONE}/messages")
    assert seen.headers["authorization"] == f"Bearer {TOKEN}"
    assert seen.headers["content-type"] == "application/json"
    assert seen.body == (
        b'{"messaging_product":"whatsapp","recipient_type":"individual","to":"15551234567","type":"text",'
        b'"text":{"preview_url":false,"body":"hello"},"context":{"message_id":"wamid.PREVIOUS"},'
        b'"biz_opaque_callback_data":"0190-a1"}'
    )
    assert isinstance(outcome, Done)
    assert outcome.receipt is not None and outcome.receipt.startswith("wamid.")


TEMPLATE = {
    "name": "order_update",
    "language": {"code": "en_US"},
    "components": [
        {"type": "body", "parameters": [{"type": "text", "text": "Ann"}]},
        {
            "type": "button",
            "sub_type": "quick_reply",
            "index": "0",
            "parameters": [{"type": "payload", "payload": "P1"}],
        },
    ],
}


@pytest.mark.parametrize(
    ("text", "data", "kind", "given"),
    [
        ("", {"template": TEMPLATE}, "template", TEMPLATE),
        ("", {"template": {"name": "hi", "language": "de"}}, "template", {"name": "hi", "language": {"code": "de"}}),
        ("look", {"image": {"id": "5"}}, "image", {"id": "5", "caption": "look"}),
        ("", {"video": {"link": "https://a.b/c"}}, "video", {"link": "https://a.b/c"}),
        (
            "bill",
            {"document": {"link": "https://a.b/c", "filename": "c.pdf"}},
            "document",
            {"link": "https://a.b/c", "filename": "c.pdf", "caption": "bill"},
        ),
        ("", {"audio": {"id": "5"}}, "audio", {"id": "5"}),
        ("", {"sticker": {"id": "5"}}, "sticker", {"id": "5"}),
        ("", {"location": {"latitude": 1, "longitude": 2.5}}, "location", {"latitude": 1, "longitude": 2.5}),
        ("", {"contacts": [{"name": {"first_name": "A"}}]}, "contacts", [{"name": {"first_name": "A"}}]),
        ("", {"reaction": {"message_id": "wamid.X", "emoji": ""}}, "reaction", {"message_id": "wamid.X", "emoji": ""}),
        (
            "pick",
            {"interactive": {"type": "button", "action": {"buttons": []}}},
            "interactive",
            {"type": "button", "action": {"buttons": []}, "body": {"text": "pick"}},
        ),
    ],
)
async def test_every_type_goes_out_as_meta_wants_it(
    sandbox: Sandbox, text: str, data: dict[str, Any], kind: str, given: object
) -> None:
    """The text becomes the caption or the body, where there is one."""
    assert isinstance(await send(sandbox.url, text=text, data=data), Done)

    assert sandbox.requests[0].json == {
        "messaging_product": "whatsapp",
        "recipient_type": "individual",
        "to": "15551234567",
        "type": kind,
        kind: given,
        "biz_opaque_callback_data": "0190-a1",
    }


@pytest.mark.parametrize(
    ("to", "address"),
    [
        ("US.13491208655302741918", {"recipient_type": "individual", "recipient": "US.13491208655302741918"}),
        ("US.ENT.11815799212886844830", {"recipient_type": "individual", "recipient": "US.ENT.11815799212886844830"}),
        ("group:Y2FwaV9ncm91cDox", {"recipient_type": "group", "to": "Y2FwaV9ncm91cDox"}),
    ],
)
async def test_user_ids_and_groups_are_addressed_as_meta_wants_it(
    sandbox: Sandbox, to: str, address: dict[str, str]
) -> None:
    """A person without a visible number, or a group; the simulated phone shows the same recipient."""
    assert isinstance(await send(sandbox.url, to), Done)

    sent = sandbox.requests[0].json
    assert {name: sent.get(name) for name in ("recipient_type", "to", "recipient") if name in sent} == address
    assert sandbox.ledger[0].to == to


async def test_a_message_arrives_on_the_phone_of_its_number(sandbox: Sandbox) -> None:
    """With its text; a second copy is seen as one."""
    made = channel(sandbox.url, preview_url=True)
    for _ in range(2):
        await made.send(message())
    await made.close()

    shown = sandbox.world.conversations.find("whatsapp_cloud", ANN)
    assert shown is not None
    assert [(entry.id, entry.text, entry.copy) for entry in shown.entries] == [
        ("0190-a1", "hello", 1),
        ("0190-a1", "hello", 2),
    ]
    assert sandbox.requests[0].json["text"]["preview_url"] is True


async def test_a_long_text_is_split_where_it_was_asked_for(sandbox: Sandbox) -> None:
    """Every part echoes a name of its own in its status, and none counts as a copy of another."""
    outcome = await send(sandbox.url, options={"long_text": "split"}, text="word " * 1000)

    parts = [seen.json["text"]["body"] for seen in sandbox.requests]
    assert " ".join(parts) == ("word " * 1000).strip()
    assert {seen.json["biz_opaque_callback_data"] for seen in sandbox.requests} == {"0190-a1.1", "0190-a1.2"}
    assert isinstance(outcome, Done)
    assert outcome.receipt is not None and outcome.receipt.count("wamid.") == len(parts) == 2
    assert {entry.copy for entry in sandbox.ledger} == {1}


# What is refused before it is accepted


@pytest.mark.parametrize(
    ("to", "content", "field", "words"),
    [
        ("15551234567", {}, "to", "E.164"),
        ("us.1349", {}, "to", "E.164"),
        ("group:", {}, "to", "E.164"),
        (
            ANN,
            {"text": "x" * 1025, "data": {"interactive": {"type": "button", "action": {"buttons": []}}}},
            "text",
            "body",
        ),
        ("0015551234567", {}, "to", "+15551234567"),
        ("+1 555 123-4567", {}, "to", "+15551234567"),
        ("+0555123456", {}, "to", "E.164"),
        ("+1555", {}, "to", "E.164"),
        ("+1555123456789012", {}, "to", "E.164"),
        ("+１５５５１２３４５６７", {}, "to", "E.164"),
        ("ann", {}, "to", "E.164"),
        (ANN, {"text": " "}, "text", "message is empty"),
        (ANN, {"text": "x" * 4097}, "text", "4,097"),
        (ANN, {"data": {"templat": {}}}, "data.templat", "template"),
        (ANN, {"data": {"template": "hi"}}, "data.template", "object"),
        (ANN, {"text": "", "data": {"template": {"name": "hi"}}}, "data.template", "language"),
        (ANN, {"data": {"template": TEMPLATE}}, "text", "takes no text"),
        (ANN, {"text": "", "data": {"image": {"id": "1"}, "video": {"id": "2"}}}, "data", "both image and video"),
        (ANN, {"text": "", "data": {"image": {}}}, "data.image", "link or an id"),
        (ANN, {"text": "", "data": {"image": {"link": "ftp://x", "id": None}}}, "data.image", "not a URL"),
        (ANN, {"text": "", "data": {"image": {"url": "https://x"}}}, "data.image", "'url'"),
        (ANN, {"text": "x" * 1025, "data": {"image": {"id": "1"}}}, "text", "1025"),
        (ANN, {"data": {"audio": {"id": "1"}}}, "text", "takes no text"),
        (ANN, {"text": "", "data": {"location": {"latitude": 1}}}, "data.location", "longitude"),
        (ANN, {"text": "", "data": {"pigeon": {}}}, "data.pigeon", "pigeon"),
    ],
)
async def test_invalid_recipients_and_content_are_rejected_before_sending(
    to: str, content: dict[str, Any], field: str, words: str
) -> None:
    """Bad input: one sentence, the field and a remedy; a message that slips through is a dead letter."""
    made = channel("http://127.0.0.1:9")
    given = message(to, **content)
    with pytest.raises(Invalid) as caught:
        made.check(to, dict(given.content))
    outcome = await made.send(given)
    await made.close()

    assert (caught.value.field, bool(caught.value.remedy)) == (field, True)
    assert words in str(caught.value)
    assert isinstance(outcome, Reject)
    assert outcome.category is V


# What an answer means: the table of the reference


def wait(**length: float) -> timedelta:
    return timedelta(**length)


AUTH = (Reject, P, None, True)
VALIDATION = (Reject, V, None, False)
PERMANENT = (Reject, P, None, False)
TEMPORARY = (Retry, T, None, False)

ROWS: dict[int, tuple[type[Outcome], Category, timedelta | None, bool]] = {
    0: AUTH,
    1: TEMPORARY,
    2: TEMPORARY,
    3: AUTH,
    4: (Retry, TH, wait(minutes=1), True),
    10: AUTH,
    33: AUTH,
    100: VALIDATION,
    190: AUTH,
    200: AUTH,
    299: AUTH,
    368: AUTH,
    506: VALIDATION,
    80007: (Retry, TH, wait(minutes=10), True),
    80008: (Retry, TH, wait(minutes=10), True),
    130429: (Retry, TH, wait(seconds=5), True),
    130472: PERMANENT,
    130497: PERMANENT,
    131000: TEMPORARY,
    131005: AUTH,
    131008: VALIDATION,
    131009: VALIDATION,
    131016: TEMPORARY,
    131020: PERMANENT,
    131021: VALIDATION,
    131026: PERMANENT,
    131030: PERMANENT,
    131031: AUTH,
    131037: AUTH,
    131041: PERMANENT,
    131042: AUTH,
    131044: AUTH,
    131045: AUTH,
    131047: PERMANENT,
    131048: (Retry, TH, wait(hours=1), True),
    131049: (Retry, TH, wait(hours=24), False),
    131050: PERMANENT,
    131051: VALIDATION,
    131052: TEMPORARY,
    131053: VALIDATION,
    131056: (Retry, TH, None, False),
    131057: (Retry, T, wait(minutes=1), True),
    131062: VALIDATION,
    131063: AUTH,
    131064: (Retry, TH, wait(hours=1), True),
    131207: PERMANENT,
    131208: (Retry, TH, None, False),
    131215: PERMANENT,
    132000: VALIDATION,
    132001: VALIDATION,
    132005: VALIDATION,
    132007: VALIDATION,
    132008: VALIDATION,
    132012: VALIDATION,
    132015: (Retry, TH, wait(hours=3), False),
    132016: PERMANENT,
    132068: VALIDATION,
    132069: (Retry, TH, wait(minutes=6), False),
    133000: AUTH,
    133004: TEMPORARY,
    133005: AUTH,
    133006: AUTH,
    133008: (Retry, TH, wait(hours=1), True),
    133009: (Retry, TH, wait(minutes=10), True),
    133010: AUTH,
    133015: (Retry, T, wait(minutes=5), True),
    133016: (Retry, TH, wait(hours=1), True),
    135000: VALIDATION,
    137000: PERMANENT,
}


def test_every_code_of_the_reference_has_a_row() -> None:
    """The channel, the sandbox and this table know the same codes."""
    assert set(ROWS) == set(ERRORS) == set(CODES) | {200, 299}


@pytest.mark.parametrize("code", ROWS)
async def test_each_code_has_its_category_and_its_consequence(sandbox: Sandbox, code: int) -> None:
    """A4: try again or not, how long to wait, and whether it is the whole channel's fault."""
    kind, category, after, account = ROWS[code]
    sandbox.break_("error", code=str(code))
    outcome = await send(sandbox.url)

    assert type(outcome) is kind
    assert isinstance(outcome, Retry | Reject)
    assert (outcome.category, outcome.whole_channel) == (category, account)
    assert (outcome.after if isinstance(outcome, Retry) else None) == after
    assert f"HTTP {ERRORS[code][0]}: code {code}: (#{code}) {ERRORS[code][1]}" in outcome.reason


@pytest.mark.parametrize("code", [4, 80007, 130429, 131048, 131056])
@pytest.mark.parametrize("status", [400, 429])
async def test_throttling_is_recognized_by_the_code_and_not_by_the_status(
    receiver: Receiver, code: int, status: int
) -> None:
    """Meta has answered with either."""
    receiver.script(answer(status, f'{{"error":{{"code":{code},"message":"x"}}}}'.encode()))
    outcome = await send(receiver.url)

    assert isinstance(outcome, Retry)
    assert outcome.category is TH


async def test_meta_error_code_1_is_retried_once(sandbox: Sandbox) -> None:
    """Code 1: temporary at first, then the request's own fault."""
    sandbox.break_("error", code="1")
    first, second = await send(sandbox.url), await send(sandbox.url, attempt=2)

    assert isinstance(first, Retry)
    assert isinstance(second, Reject)
    assert second.category is V


@pytest.mark.parametrize(
    ("status", "error", "kind", "category", "account"),
    [
        (400, b'{"code":100,"error_subcode":33,"message":"no such object"}', Reject, P, True),
        (400, b'{"code":999999,"is_transient":true}', Retry, T, False),
        (400, b'{"code":999999,"message":"new"}', Reject, V, False),
        (403, b'{"code":138000}', Reject, P, True),
        (500, b'{"code":999999}', Retry, T, False),
        (500, b'{"code":"131000"}', Unknown, None, False),
        (400, b'{"code":131047,"error_data":"plain text","message":["x"]}', Reject, P, False),
        (400, b'"text"', Reject, V, False),
        (200, b'{"code":131026,"message":"x"}', Reject, P, False),
    ],
)
async def test_unknown_codes_are_classified_by_their_status(
    receiver: Receiver, status: int, error: bytes, kind: type[Outcome], category: Category | None, account: bool
) -> None:
    """New codes by their status, a number that is not ours as the account's, junk without harm."""
    receiver.script(answer(status, b'{"error":' + error + b"}"))
    outcome = await send(receiver.url)

    assert type(outcome) is kind
    if isinstance(outcome, Retry | Reject):
        assert (outcome.category, outcome.whole_channel) == (category, account)


async def test_the_reason_says_what_to_do(sandbox: Sandbox) -> None:
    """The commonest refusals have their remedy with them."""
    sandbox.break_("error", code="131047")
    outcome = await send(sandbox.url)

    assert isinstance(outcome, Reject)
    assert "only a template is allowed" in outcome.reason


# No answer, strange answers


@pytest.mark.parametrize("act", [cut, black_hole])
async def test_a_lost_answer_is_a_doubt_and_is_held(receiver: Receiver, act: Act) -> None:
    """F24, F25: Meta removes no duplicates, so a person decides."""
    receiver.script(act)
    made = channel(receiver.url, deadline=0.5)
    outcome = await made.send(message())
    await made.close()

    assert isinstance(outcome, Unknown)
    assert made.traits.on_unknown is OnUnknown.HOLD
    assert "no idempotency keys" in made.traits.why_on_unknown
    assert isinstance(await made.lookup(message()), Unknown)


@pytest.mark.parametrize(("fault", "kind", "copies"), [("lost", Unknown, 1), ("cut", Unknown, 0), ("500", Retry, 0)])
async def test_the_sandbox_breaks_on_command(sandbox: Sandbox, fault: str, kind: type[Outcome], copies: int) -> None:
    """For one recipient and no other."""
    sandbox.break_(fault, recipient=ANN)
    outcome = await send(sandbox.url)
    other = await send(sandbox.url, "+15557654321")

    assert type(outcome) is kind
    assert isinstance(other, Done)
    assert sandbox.ledger[0].copy == copies


@pytest.mark.parametrize(
    ("status", "kind", "category", "account"),
    [
        (200, Unknown, None, False),
        (302, Reject, P, True),
        (400, Reject, V, False),
        (401, Reject, P, True),
        (403, Reject, P, True),
        (404, Reject, P, False),
        (429, Retry, TH, True),
        (500, Unknown, None, False),
        (502, Unknown, None, False),
        (503, Retry, T, False),
        (504, Unknown, None, False),
    ],
)
async def test_an_html_response_is_classified_by_its_status(
    receiver: Receiver, status: int, kind: type[Outcome], category: Category | None, account: bool
) -> None:
    """Bad input: a page of 10 MB is cut, shown short and parsed by nobody."""
    receiver.script(answer(status, b"<html>" + b"Bad Gateway " * (900_000 if status == 502 else 100)))
    outcome = await send(receiver.url)

    assert type(outcome) is kind
    assert isinstance(outcome, Unknown | Retry | Reject)
    shown = outcome.evidence if isinstance(outcome, Unknown) else outcome.reason
    assert f"HTTP {status}" in shown and len(shown) < MAX_SHOWN + 60
    if isinstance(outcome, Retry | Reject):
        assert (outcome.category, outcome.whole_channel) == (category, account)


@pytest.mark.parametrize(
    "act",
    [hang_up_in_body, answer(200), answer(200, b'{"messages":['), answer(200, b'{"messages":[7]}'), answer(200, b"{}")],
)
async def test_a_success_status_counts_even_with_a_truncated_body(receiver: Receiver, act: Act) -> None:
    """F26: the status line decides; only the receipt is missing."""
    receiver.script(act)

    assert await send(receiver.url, options={"deadline": 2}) == Done()


# Secrets and options


@pytest.mark.parametrize(
    "act",
    [
        cut,
        answer(401, f'{{"error":{{"code":190,"message":"bad {TOKEN}","error_data":"{TOKEN}"}}}}'.encode()),
        answer(502, f"<p>authorization: Bearer {TOKEN}</p>".encode()),
        answer(200, f'{{"messages":[{{"id":"{TOKEN}"}}],"display_phone_number":"{TOKEN}"}}'.encode()),
    ],
)
async def test_the_token_is_in_nothing_that_can_be_seen(
    receiver: Receiver, act: Act, caplog: pytest.LogCaptureFixture
) -> None:
    """S9: whatever an answer repeats."""
    caplog.set_level("DEBUG")
    receiver.script(act, act)
    made = channel(receiver.url)
    outcomes = [await made.send(message()), await probe(made)]
    with refusing() as url:
        outcomes.append(await send(url))
    await made.close()
    settings = WhatsAppCloudSettings(PHONE, TOKEN)

    assert "canary" not in f"{outcomes} {caplog.text} {made!r} {made.traits!r} {settings!r}"


@pytest.mark.parametrize(
    ("options", "field", "words"),
    [
        ({}, "phone_number_id", "missing"),
        ({"phone_number_id": PHONE}, "access_token", "missing"),
        ({"phone_number_id": "+15550001111", "access_token": TOKEN}, "phone_number_id", "not the phone number"),
        ({"phone_number_id": True, "access_token": TOKEN}, "phone_number_id", "digits"),
        ({"phone_number_id": PHONE, "access_token": "canary canary"}, "access_token", "without spaces"),
        ({"phone_number_id": PHONE, "access_token": "canary\r\nx: y"}, "access_token", "without spaces"),
        ({"phone_number_id": PHONE, "access_token": TOKEN, "api_version": "24"}, "api_version", "v24.0"),
        ({"phone_number_id": PHONE, "access_token": TOKEN, "base_url": "http://a.b"}, "base_url", "https"),
    ],
)
def test_a_wrong_option_stops_the_start(options: dict[str, object], field: str, words: str) -> None:
    """Named, with a remedy, and no secret in it."""
    with pytest.raises(Misconfigured, match=words) as caught:
        build("wa", "whatsapp_cloud", options)
    assert (caught.value.field, bool(caught.value.remedy)) == (field, True)
    assert "canary" not in str(caught.value)


def test_the_default_rate_limits_are_metas() -> None:
    """80 a second from one number, one in 6 s to one person; an id may be a number in TOML."""
    given = {"phone_number_id": int(PHONE), "access_token": TOKEN}
    plain = build("wa", "whatsapp_cloud", given).traits
    more = build("wa", "whatsapp_cloud", {**given, "per_second": 1000, "per_recipient": 1}).traits

    assert (plain.per_second, plain.per_recipient) == (80, timedelta(seconds=6))
    assert (more.per_second, more.per_recipient) == (1000, timedelta(seconds=1))


# channels test


async def test_a_probe_looks_at_the_number_and_sends_nothing(sandbox: Sandbox) -> None:
    """The name, the number and its quality; a wrong token is told as Meta tells it."""
    made, wrong = channel(sandbox.url), channel(sandbox.url, access_token="wrong-canary")
    found, refused = await probe(made), await probe(wrong)
    await made.close()
    await wrong.close()

    assert found == Done("Sandbox, +1 555-2922, quality GREEN")
    assert isinstance(refused, Reject)
    assert refused.whole_channel and "code 190" in refused.reason
    assert sandbox.ledger == []


async def test_a_probe_with_an_unusable_answer_is_a_temporary_error(receiver: Receiver) -> None:
    """Nothing was sent, so nothing can be in doubt."""
    receiver.script(cut, answer(200, b"<html>"), answer(200, b"{}"), answer(502, b"<html>"))
    made = channel(receiver.url)
    outcomes = [await probe(made) for _ in range(4)]
    await made.close()

    assert all(isinstance(outcome, Retry) for outcome in outcomes)


# The simulated Meta, as other clients meet it


@pytest.fixture
async def client(sandbox: Sandbox) -> AsyncIterator[httpx.AsyncClient]:
    headers = {"authorization": f"Bearer {TOKEN}"}
    async with httpx.AsyncClient(base_url=sandbox.url, headers=headers) as ready:
        yield ready


def text(**more: Any) -> dict[str, Any]:
    return {"messaging_product": "whatsapp", "to": "15551234567", "type": "text", "text": {"body": "hi"}, **more}


async def test_an_accepted_message_is_answered_in_full(client: httpx.AsyncClient, sandbox: Sandbox) -> None:
    """Any version; a template has its status; two alike without an id are no copies."""
    first = (await client.post(f"/v19.0/{PHONE}/messages", json=text())).json()
    again = (await client.post(f"/v19.0/{PHONE}/messages", json=text())).json()
    template = {"type": "template", "template": {"name": "x", "language": {"code": "en"}}}
    second = (await client.post(f"/v24.0/{PHONE}/messages", json=text(**template))).json()

    assert first["contacts"] == [{"input": "15551234567", "wa_id": "15551234567"}]
    assert first["messages"][0]["id"] != again["messages"][0]["id"]
    assert second["messages"][0]["message_status"] == "accepted"
    assert [entry.copy for entry in sandbox.ledger] == [1, 1, 1]


async def test_a_message_is_marked_as_read(client: httpx.AsyncClient, sandbox: Sandbox) -> None:
    """The same path; nothing arrives on a phone."""
    body = {"messaging_product": "whatsapp", "status": "read", "message_id": "wamid.X"}
    found = await client.post(f"/v24.0/{PHONE}/messages", json=body)

    assert (found.status_code, found.json(), sandbox.ledger) == (200, {"success": True}, [])


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, 100),
        (text(to=""), 100),
        (text(to="0015551234567"), 100),
        (text(type="pigeon"), 131051),
        (text(text={}), 131008),
        (text(text={"body": "x" * 4097}), 100),
        (text(text={"body": 7}), 131008),
        (text(type="image"), 131008),
        (text(type="template", template={"language": {}}), 131008),
    ],
)
async def test_a_wrong_request_gets_metas_own_error(
    client: httpx.AsyncClient, sandbox: Sandbox, body: dict[str, Any], code: int
) -> None:
    """In its envelope, and in the ledger too."""
    found = await client.post(f"/v24.0/{PHONE}/messages", json=body)

    error = found.json()["error"]
    assert (found.status_code, error["code"], error["type"]) == (400, code, "OAuthException")
    assert error["error_data"]["details"]
    assert [entry.did for entry in sandbox.ledger] == ["400"]


async def test_the_simulated_whatsapp_rejects_requests_without_a_token(sandbox: Sandbox) -> None:
    """Code 190, status 401."""
    async with httpx.AsyncClient(base_url=sandbox.url) as stranger:
        found = await stranger.post(f"/v24.0/{PHONE}/messages", json=text())
    assert (found.status_code, found.json()["error"]["code"]) == (401, 190)


class Detour(httpx.AsyncHTTPTransport):
    """Leads a client that knows only Meta's address to the sandbox instead."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._to = httpx.URL(url)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        request.url = request.url.copy_with(scheme="http", host=self._to.host, port=self._to.port)
        return await super().handle_async_request(request)


async def test_a_well_known_client_works_unchanged(sandbox: Sandbox) -> None:
    """pywa sends text, buttons, media and a place, marks as read, and knows the errors for what they are."""
    async with httpx.AsyncClient(transport=Detour(sandbox.url)) as session:
        client = WhatsApp(PHONE, TOKEN, session=session)
        sent = [
            await client.send_message("15551234567", "hello"),
            await client.send_message("15551234567", "pick", buttons=[Button("Yes", callback_data="y")]),
            await client.send_image("15551234567", "https://example.com/a.jpg", caption="look"),
            await client.send_location("15551234567", 1.0, 2.0),
        ]
        assert (await client.mark_message_as_read("wamid.X")).success
        sandbox.break_("error", code="131047")
        with pytest.raises(ReEngagementMessage):
            await client.send_message("15551234567", "hello")

    assert len({one.id for one in sent}) == 4
    assert [entry.text for entry in sandbox.ledger] == ["hello", "pick", "look", "", "hello"]
    assert {entry.to for entry in sandbox.ledger} == {ANN}
