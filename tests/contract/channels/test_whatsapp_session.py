"""WhatsApp through a session: what leaves, what each answer means, how the session's state is read."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import httpx
import orjson
import pytest

from tidings.model.errors import CallerError, Misconfigured
from tidings.model.message import Message
from tidings.model.outcome import Done, Offline, Outcome, Reject, Retry, Unknown
from tidings.model.task import Category, OnUnknown
from tidings.model.time import SECOND
from tidings.outbound.channels.base import probe
from tidings.outbound.channels.registry import build
from tidings.outbound.channels.session import SessionCheck, SessionStatus
from tidings.outbound.channels.whatsapp_servers.base import WhatsappSessionChannel, WhatsappSessionSettings
from tidings.outbound.channels.whatsapp_servers.waha import MAX_ERRORS, STATES, WahaChannel, message_id
from tidings.sandbox.environment import SandboxEnvironment
from tidings.sandbox.providers.waha import START_SECONDS
from tidings.wire.http_client import MAX_SHOWN

from ..receiver import Act, Receiver, answer, black_hole, cut, drip_head, endless, receiving, refusing
from .conftest import Sandbox, serving

NOW = 1_790_000_060_000_000
KEY = "canary-key"
ADA = "+15551234567"
CHAT = "15551234567@c.us"
PATIENT, SHORT = 20.0, 0.5


def channel(url: str, server: str = "waha", **options: Any) -> WhatsappSessionChannel:
    """A channel aimed at a URL."""
    given = {"server": server, "base_url": url, "api_key": KEY, "deadline": PATIENT, **options}
    made = build("wa", "whatsapp_session", given, now=lambda: NOW)
    assert isinstance(made, WhatsappSessionChannel)
    return made


def waha(sandbox: Sandbox, **options: Any) -> WahaChannel:
    """A channel aimed at the simulated WAHA."""
    made = channel(f"{sandbox.url}/waha", **options)
    assert isinstance(made, WahaChannel)
    return made


def gateway(sandbox: Sandbox, **options: Any) -> WhatsappSessionChannel:
    """A channel aimed at the simulated gateway."""
    return channel(f"{sandbox.url}/gateway", "gateway", **options)


def message(to: str = ADA, *, id: str = "0190-a1", **content: Any) -> Message:
    """A message to somebody."""
    return Message(id, "default", "wa", to, {"text": "hello", **content}, NOW)


async def send(made: WhatsappSessionChannel, what: Message | None = None) -> Outcome:
    """What came of one attempt."""
    try:
        return await made.send(what or message())
    finally:
        await made.close()


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    """A server with scripted answers."""
    async with receiving() as ready:
        yield ready


async def put(sandbox: Sandbox, path: str, **body: Any) -> None:
    async with httpx.AsyncClient(base_url=sandbox.url) as client:
        assert (await client.post(path, json=body)).status_code == 200


# What leaves


async def test_waha_gets_the_request_byte_for_byte(sandbox: Sandbox) -> None:
    """The fields of its sendText, in its order; the key in its header; the receipt is its id."""
    outcome = await send(waha(sandbox))

    request = sandbox.requests[0]
    assert (request.method, request.path) == ("POST", "/waha/api/sendText")
    assert request.headers["x-api-key"] == KEY
    assert request.headers["content-type"].startswith("application/json")
    assert request.body == (b'{"session":"default","chatId":"15551234567@c.us","text":"hello","linkPreview":true}')
    assert outcome == Done(receipt=f"true_{CHAT}_waha-1")
    assert [(entry.channel, entry.to, entry.text) for entry in sandbox.ledger] == [("waha", CHAT, "hello")]


async def test_waha_gets_optional_fields_and_the_same_id_on_every_attempt(sandbox: Sandbox) -> None:
    """`message_ids`: a server can remove duplicates by the id; groups are named as WAHA names them."""
    data = {"reply_to": "false_1@c.us_AA", "link_preview": False}
    await put(sandbox, "/sandbox/waha/desk-2", status="WORKING")
    for _ in range(2):
        what = message("120363041234567890@g.us", data=data)
        assert isinstance(await send(waha(sandbox, session="desk-2", message_ids=True), what), Done)

    first, second = (request.json for request in sandbox.requests if request.path.endswith("sendText"))
    assert (
        first
        == second
        == {
            "session": "desk-2",
            "chatId": "120363041234567890@g.us",
            "text": "hello",
            "reply_to": "false_1@c.us_AA",
            "linkPreview": False,
            "id": message_id("0190-a1"),
        }
    )
    assert message_id("0190-a1") != message_id("0190-a2")
    assert [entry.copy for entry in sandbox.ledger] == [1, 2]  # the ledger sees the duplicate


async def test_the_gateway_gets_the_request_byte_for_byte(sandbox: Sandbox) -> None:
    """POST /send {phone, message}."""
    outcome = await send(gateway(sandbox))

    request = sandbox.requests[0]
    assert (request.method, request.path) == ("POST", "/gateway/send")
    assert request.body == b'{"phone":"+15551234567","message":"hello"}'
    assert outcome == Done(receipt="gateway-1")


# WAHA's answers: one row per case of the table (provider-apis 3.1)


@pytest.mark.parametrize(
    ("state", "needs_person"),
    [
        ("STOPPED", False),
        ("STARTING", False),
        ("SCAN_QR_CODE", True),
        ("PASSKEY_REQUIRED", True),
        ("PASSKEY_CONFIRMATION_REQUIRED", True),
        ("FAILED", False),
    ],
)
async def test_a_session_that_cannot_send_makes_the_channel_wait(
    sandbox: Sandbox, state: str, needs_person: bool
) -> None:
    """E7, A4: only linking needs a person. No message fails for it, and the channel is not paused."""
    await put(sandbox, "/sandbox/waha/default", status=state)
    outcome = await send(waha(sandbox))

    assert isinstance(outcome, Offline) and outcome.needs_person is needs_person
    assert ("HTTP 404" if state == "STOPPED" else state) in outcome.reason
    assert not any(entry.delivered for entry in sandbox.ledger)


WAHA_ROWS = [
    # status, body, outcome, category, whole channel
    (401, {"message": "Unauthorized", "statusCode": 401}, Reject, Category.PERMANENT, True),
    (404, {"message": "We didn't find a session with name 'default'", "statusCode": 404}, Offline, None, False),
    (422, {"message": "not in this engine", "statusCode": 422}, Reject, Category.VALIDATION, False),
    (400, {"message": ["chatId must be a string"]}, Reject, Category.VALIDATION, False),
    (500, {"exception": {"message": "Evaluation failed"}}, Unknown, None, False),
    (500, {"exception": {"message": "No LID for user"}}, Reject, Category.PERMANENT, False),
    (500, {"exception": {"message": "wid error: invalid wid"}}, Reject, Category.PERMANENT, False),
    (500, {"exception": "odd"}, Unknown, None, False),
    (502, {}, Unknown, None, False),
    (504, {}, Unknown, None, False),
    (503, {}, Retry, Category.TEMPORARY, False),
    (408, {}, Retry, Category.TEMPORARY, False),
    (429, {}, Retry, Category.THROTTLING, True),
    (302, {}, Reject, Category.PERMANENT, True),
]


@pytest.mark.parametrize(("status", "body", "kind", "category", "whole"), WAHA_ROWS)
async def test_each_answer_of_waha_has_its_category(
    receiver: Receiver, status: int, body: dict[str, Any], kind: type, category: Category | None, whole: bool
) -> None:
    """A4: what is about the session is about the channel; an engine's crash says nothing of the message."""
    receiver.script(answer(status, orjson.dumps(body), retry_after="7"))
    outcome = await send(channel(receiver.url))

    assert type(outcome) is kind
    if isinstance(outcome, Retry | Reject):
        assert (outcome.category, outcome.whole_channel) == (category, whole)
    if isinstance(outcome, Retry):
        assert outcome.after == timedelta(seconds=7)


@pytest.mark.parametrize(
    ("body", "receipt"),
    [
        ({"id": "true_1@c.us_A"}, "true_1@c.us_A"),
        ({"id": {"_serialized": "true_1@c.us_B"}}, "true_1@c.us_B"),
        ({"key": {"id": "3EB0"}}, "3EB0"),
        ({"_data": {"id": {"id": "C"}}}, "C"),
        ({"id": 5}, None),
        ({}, None),
    ],
)
async def test_the_message_id_is_found_wherever_an_engine_puts_it(
    receiver: Receiver, body: dict[str, Any], receipt: str | None
) -> None:
    """What the status says counts, wherever the id is."""
    receiver.script(answer(201, orjson.dumps(body)))

    assert await send(channel(receiver.url)) == Done(receipt=receipt)


@pytest.mark.parametrize(
    ("data", "path", "file"),
    [
        (
            {"image": {"url": "https://example.org/a.png"}},
            "sendImage",
            {"mimetype": "image/png", "url": "https://example.org/a.png"},
        ),
        (
            {"file": {"data": "aGVsbG8=", "filename": "plan.pdf"}},
            "sendFile",
            {"mimetype": "application/pdf", "filename": "plan.pdf", "data": "aGVsbG8="},
        ),
        (
            {"file": {"url": "https://example.org/x", "mimetype": "text/csv"}},
            "sendFile",
            {"mimetype": "text/csv", "url": "https://example.org/x"},
        ),
    ],
)
async def test_waha_sends_images_and_files_with_the_text_as_caption(
    sandbox: Sandbox, data: dict[str, Any], path: str, file: dict[str, str]
) -> None:
    """By URL, or with the data; a file needs no text."""
    made = waha(sandbox)
    for text in ("hello", ""):
        made.check(ADA, {"text": text, "data": data})
        assert isinstance(await made.send(message(text=text, data=data)), Done)
    await made.close()

    first, second = sandbox.requests
    assert first.path == f"/waha/api/{path}"
    assert first.json == {"session": "default", "chatId": CHAT, "file": file, "caption": "hello"}
    assert second.json == {"session": "default", "chatId": CHAT, "file": file}


async def test_a_number_with_a_moved_digit_is_looked_up_once(sandbox: Sandbox) -> None:
    """Brazil: WhatsApp knows the account without the ninth digit; other numbers are not asked about."""
    made = waha(sandbox)
    outcomes = [await made.send(message(to)) for to in ("+5511987654321", "+5511987654321", ADA)]
    unknown = await made.send(message("+5511987654404"))
    await made.close()

    assert [type(outcome) for outcome in outcomes] == [Done] * 3
    assert isinstance(unknown, Reject) and not unknown.whole_channel
    assert [entry.to for entry in sandbox.ledger if entry.delivered] == ["551187654321@c.us"] * 2 + [CHAT]
    asked = [request.path.partition("?")[2] for request in sandbox.requests if "check-exists" in request.path]
    assert asked == [f"phone={number}&session=default" for number in ("5511987654321", "5511987654404")]

    every = waha(sandbox, check_numbers=True)
    assert isinstance(await send(every, message("+15551234404")), Reject)


async def test_a_lookup_of_a_stopped_session_makes_the_channel_wait(sandbox: Sandbox) -> None:
    """Nothing was sent: the message is not uncertain."""
    for state in ("STOPPED", "STARTING"):
        await put(sandbox, "/sandbox/waha/default", status=state)
        assert isinstance(await send(waha(sandbox), message("+5511987654321")), Offline)
    with refusing() as url:
        assert isinstance(await send(channel(url), message("+5511987654321")), Offline)


async def test_several_errors_in_a_row_ask_for_a_restart_of_the_session(receiver: Receiver) -> None:
    """A session may say WORKING and send nothing; each message stays unknown, the last one tells the monitor."""
    error, fine = answer(500, b'{"exception": {"message": "server returned error 400"}}'), answer(201, b'{"id": "a"}')
    receiver.script(*[error] * (MAX_ERRORS - 1), fine, *[error] * MAX_ERRORS, error)
    made = channel(receiver.url)
    found = [await made.send(message()) for _ in range(2 * MAX_ERRORS + 1)]
    await made.close()

    assert [type(outcome) for outcome in found if type(outcome) is not Unknown] == [Done]
    failed = [outcome.session_failed for outcome in found if isinstance(outcome, Unknown)]
    assert failed == [False] * (2 * MAX_ERRORS - 2) + [True, False]


async def test_the_number_behind_a_lid_is_looked_up_once(sandbox: Sandbox, receiver: Receiver) -> None:
    """None if it is hidden, or if the server does not answer."""
    made = waha(sandbox)
    assert [await made.number_of("10015551234567@lid") for _ in range(2)] == [CHAT] * 2
    assert await made.number_of("77@lid") is None
    await made.close()
    assert len(sandbox.requests) == 2
    receiver.script(answer(200, b'{"lid": "1@lid", "pn": null}'), answer(500, b""))
    other = channel(receiver.url)
    assert isinstance(other, WahaChannel)
    assert [await other.number_of("1@lid") for _ in range(2)] == [None] * 2
    await other.close()


# The plain gateway's answers


GATEWAY_ROWS = [
    (200, {"success": False, "error": "The number is not registered"}, Reject, Category.PERMANENT, False),
    (500, {"success": False, "error": "No LID for user"}, Reject, Category.PERMANENT, False),
    (200, {"success": False, "error": "client is not ready"}, Offline, None, False),
    (503, {"success": False, "error": "websocket not connected"}, Offline, None, False),
    (200, {"success": False, "error": "state UNPAIRED"}, Offline, None, True),
    (200, {"success": False, "error": "logged out"}, Offline, None, True),
    (200, {"success": False, "error": "rate-overlimit"}, Retry, Category.THROTTLING, True),
    (200, {"success": False, "error": "timed out waiting for message send response"}, Unknown, None, False),
    (200, {"success": False, "error": "disconnected before the answer"}, Unknown, None, False),
    (200, {"success": False, "error": "something else"}, Retry, Category.TEMPORARY, False),
    (200, {"success": False}, Retry, Category.TEMPORARY, False),
    (200, {}, Unknown, None, False),
    (200, {"success": "yes"}, Unknown, None, False),
    (500, {"success": True}, Unknown, None, False),
    (401, {"success": False, "error": "no key"}, Reject, Category.PERMANENT, True),
    (429, {"success": False, "error": "slow"}, Retry, Category.THROTTLING, True),
    (500, {}, Unknown, None, False),
]


@pytest.mark.parametrize(("status", "body", "kind", "category", "whole"), GATEWAY_ROWS)
async def test_each_answer_of_the_gateway_has_its_category(
    receiver: Receiver, status: int, body: dict[str, Any], kind: type, category: Category | None, whole: bool
) -> None:
    """E3: not registered is never retried; `success` decides, and without it nobody can say."""
    receiver.script(answer(status, orjson.dumps(body)))
    outcome = await send(channel(receiver.url, "gateway"))

    assert type(outcome) is kind
    if isinstance(outcome, Retry | Reject):
        assert (outcome.category, outcome.whole_channel) == (category, whole)
    if isinstance(outcome, Offline):
        assert outcome.needs_person is whole


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (200, {"ok": True}, Done(None)),
        (200, {"sent": True, "id": {"_serialized": "true_1@c.us_A"}}, Done("true_1@c.us_A")),
        (200, {"messageId": "A"}, Done("A")),
        (503, {"error": "WhatsApp client not ready"}, Offline("HTTP 503: WhatsApp client not ready")),
        (400, {"error": "The number is not registered"}, Reject),
        (500, {"error": "Evaluation failed"}, Unknown),
        (404, {"message": "no such route"}, Reject),
    ],
)
async def test_services_that_wrap_whatsapp_web_are_understood(
    receiver: Receiver, status: int, body: dict[str, Any], expected: Any
) -> None:
    """Without `success`: by the usual other fields, and by the status where they say nothing."""
    receiver.script(answer(status, orjson.dumps(body)))
    outcome = await send(channel(receiver.url, "gateway"))
    assert isinstance(outcome, expected) if isinstance(expected, type) else outcome == expected


@pytest.mark.parametrize(
    ("body", "link", "is_down"),
    [
        ({"ready": True}, SessionStatus.CONNECTED, False),
        ({"connected": False}, SessionStatus.RECONNECTING, False),
        ({"status": "connected"}, SessionStatus.CONNECTED, False),
        ({"success": True, "data": {"isConnected": True}}, SessionStatus.CONNECTED, False),
        ({"ready": False, "qr": "2@abc"}, SessionStatus.LOGGED_OUT, False),
        ({"state": "LOGOUT"}, SessionStatus.LOGGED_OUT, False),
        ({"status": "disconnected"}, SessionStatus.RECONNECTING, True),
        ({"hello": "world"}, SessionStatus.RECONNECTING, True),
    ],
)
async def test_the_status_of_services_that_wrap_whatsapp_web_is_understood(
    receiver: Receiver, body: dict[str, Any], link: SessionStatus, is_down: bool
) -> None:
    """A flag or a word, at the top or below `data`."""
    receiver.script(answer(200, orjson.dumps(body)))
    made = channel(receiver.url, "gateway")
    found = await made.status()
    await made.close()
    assert (found.link, found.is_down, bool(found.why)) == (link, is_down, True)


@pytest.mark.parametrize(("format", "number"), [("digits", "15551234567"), ("chat", CHAT), ("e164", ADA)])
async def test_a_gateway_gets_the_fields_and_the_number_that_it_wants(
    receiver: Receiver, format: str, number: str
) -> None:
    """Named in the settings; a chat id is passed on."""
    receiver.script(*[answer(200, b'{"success": true}')] * 2)
    made = channel(receiver.url, "gateway", phone_field="to", text_field="body", number_format=format)
    for to in (ADA, "120363041234567890@g.us"):
        assert isinstance(await made.send(message(to)), Done)
    await made.close()
    bodies = [orjson.loads(request.body) for request in receiver.requests]
    assert bodies == [{"to": to, "body": "hello"} for to in (number, "120363041234567890@g.us")]


# No answer, strange answers


@pytest.mark.parametrize("server", ["waha", "gateway", "evolution"])
@pytest.mark.parametrize("act", [cut, black_hole, drip_head])
async def test_no_answer_after_the_request_left_is_unknown(receiver: Receiver, server: str, act: Act) -> None:
    """F24: perhaps it was sent."""
    receiver.script(act)

    assert isinstance(await send(channel(receiver.url, server, deadline=SHORT)), Unknown)


@pytest.mark.parametrize("server", ["waha", "gateway", "evolution"])
async def test_an_unreachable_server_makes_the_message_wait(server: str) -> None:
    """F22, E7: nothing was sent, so everything waits."""
    with refusing() as url:
        assert isinstance(await send(channel(url, server)), Offline)


@pytest.mark.parametrize("server", ["waha", "gateway"])
@pytest.mark.parametrize(
    ("act", "kind"),
    [
        (answer(500, b"<html>" + b"x" * 9_000), Unknown),
        (answer(401, b"<html>who are you</html>"), Reject),
        (answer(200, b"<html>a portal</html>"), Unknown),
        (endless, Unknown),
        (answer(400, KEY.encode() + b"\x1b[2J" + b"y" * 9_000), Reject),
    ],
)
async def test_a_page_instead_of_json_is_judged_by_its_status_and_shown_short(
    receiver: Receiver, server: str, act: Act, kind: type
) -> None:
    """Bad input: HTML, megabytes, control characters; nothing is parsed wildly, no secret is shown (S9)."""
    receiver.script(act)
    outcome = await send(channel(receiver.url, server, deadline=2 * SHORT if act is endless else PATIENT))

    shown = str(outcome)
    assert isinstance(outcome, kind)
    assert len(shown) < MAX_SHOWN + 120 and KEY not in shown and "\x1b" not in shown


@pytest.mark.parametrize(
    ("word", "kind", "copies"),
    [
        ("lost", Unknown, 1),
        ("cut", Unknown, 0),
        ("500", Unknown, 0),
        ("429", Retry, 0),
        ("404", Reject, 0),
        ("slow", Done, 1),
    ],
)
@pytest.mark.parametrize("make", [waha, gateway])
async def test_the_faults_of_the_sandbox_work(sandbox: Sandbox, make: Any, word: str, kind: type, copies: int) -> None:
    """The ledger knows what the sender cannot."""
    sandbox.break_(word, **({"seconds": 0.01} if word == "slow" else {}))
    outcome = await send(make(sandbox))

    if (make, word) == (gateway, "500"):
        kind = Retry  # the gateway itself says that it failed
    assert isinstance(outcome, kind)
    assert sum(entry.delivered for entry in sandbox.ledger) == copies


async def test_a_state_may_last_for_one_request(sandbox: Sandbox) -> None:
    """A fault by code, where no session shall change."""
    sandbox.break_("error", code="STARTING", times=1)

    assert isinstance(await send(waha(sandbox)), Offline)
    assert isinstance(await send(waha(sandbox)), Done)


# The session's state


@pytest.mark.parametrize(("state", "check"), STATES.items())
async def test_each_state_of_waha_maps_to_a_session_status(sandbox: Sandbox, state: str, check: SessionCheck) -> None:
    """E7: connected, reconnecting, logged out; stopped and failed sessions are down, failed ones need a restart."""
    await put(sandbox, "/sandbox/waha/default", status=state)
    made = waha(sandbox)

    assert await made.status() == check
    assert (check.link is SessionStatus.LOGGED_OUT) is (state == "SCAN_QR_CODE" or "PASSKEY" in state)
    assert (check.is_down, check.restart) == (state in ("STOPPED", "FAILED"), state == "FAILED")
    await made.close()
    request = sandbox.requests[-1]
    assert (request.method, request.path) == ("GET", "/waha/api/sessions/default")
    assert request.headers["x-api-key"] == KEY


@pytest.mark.parametrize(
    ("state", "link"),
    [
        ("CONNECTED", SessionStatus.CONNECTED),
        ("OPENING", SessionStatus.RECONNECTING),
        ("PAIRING", SessionStatus.RECONNECTING),
        ("TIMEOUT", SessionStatus.RECONNECTING),
        ("CONFLICT", SessionStatus.LOGGED_OUT),
        ("UNPAIRED", SessionStatus.LOGGED_OUT),
        ("UNPAIRED_IDLE", SessionStatus.LOGGED_OUT),
        ("TOS_BLOCK", SessionStatus.LOGGED_OUT),
    ],
)
async def test_each_state_of_the_gateway_maps_to_a_session_status(
    sandbox: Sandbox, state: str, link: SessionStatus
) -> None:
    """E7: a message that is sent meanwhile waits, for the session or for a person."""
    await put(sandbox, "/sandbox/gateway", connectionState=state)
    made = gateway(sandbox)

    assert await made.status() == SessionCheck(link, state)
    outcome = await send(made)
    assert type(outcome) is (Done if link is SessionStatus.CONNECTED else Offline)
    assert getattr(outcome, "needs_person", False) is (link is SessionStatus.LOGGED_OUT)


@pytest.mark.parametrize(
    ("act", "rejected"),
    [
        (answer(404, b"{}"), False),
        (answer(401, b"{}"), True),
        (answer(403, b"{}"), True),
        (answer(500, b"<html>"), False),
        (answer(200, b"[]"), False),
        (answer(200, b'{"status": "NEW_STATE"}'), False),
        (black_hole, False),
        (cut, False),
    ],
)
async def test_a_status_that_cannot_be_read_means_that_the_session_is_down(
    receiver: Receiver, act: Act, rejected: bool
) -> None:
    """E7: within `status_timeout`, whatever the server does; a rejected key is told apart."""
    receiver.script(act)
    made = channel(receiver.url, status_timeout=SHORT)
    found = await made.status()
    await made.close()

    assert found.why
    assert found == SessionCheck(SessionStatus.RECONNECTING, found.why, is_down=True, rejected=rejected)


async def test_the_settings_can_be_tested_without_sending(sandbox: Sandbox) -> None:
    """Whether the session works, or what a person must do."""
    good = await probe(waha(sandbox))
    wrong = await probe(waha(sandbox, api_key="wrong"))
    await put(sandbox, "/sandbox/gateway", connectionState="OPENING")
    later = await probe(gateway(sandbox))

    assert isinstance(good, Done)
    assert isinstance(wrong, Reject) and wrong.whole_channel
    assert isinstance(later, Offline) and not later.needs_person
    assert sandbox.ledger == []


# What is refused


@pytest.mark.parametrize(
    ("to", "content", "field"),
    [
        ("", {}, "to"),
        ("5551234567", {}, "to"),
        ("+1 555 123-4567", {}, "to"),
        ("+0123456789", {}, "to"),
        ("ada@c.us", {}, "to"),
        ("15551234567@example.org", {}, "to"),
        (ADA, {"text": ""}, "text"),
        (ADA, {"text": "x" * 65_537}, "text"),
        (ADA, {"data": {"image": "x"}}, "data.image"),
        (ADA, {"data": {"image": {}}}, "data.image"),
        (ADA, {"data": {"image": {"url": "ftp://example.org/a.png"}}}, "data.image"),
        (ADA, {"data": {"file": {"data": "not base64!"}}}, "data.file"),
        (ADA, {"data": {"file": {"url": "https://example.org/a", "data": "aGk="}}}, "data.file"),
        (ADA, {"data": {"file": {"url": "https://example.org/a", "size": "1"}}}, "data.file"),
        (ADA, {"data": {"file": {"data": "aGk="}, "image": {"data": "aGk="}}}, "data.file"),
        (ADA, {"data": {"link_preview": "yes"}}, "data.link_preview"),
        (ADA, {"data": []}, "data"),
    ],
)
def test_what_could_never_be_sent_is_refused_with_a_remedy(to: str, content: dict[str, Any], field: str) -> None:
    """Bad input: a number that is none (with the right form in the remedy), too long, media that it lacks."""
    with pytest.raises(CallerError) as caught:
        channel("http://127.0.0.1:3000").check(to, {"text": "hello", **content})

    assert (caught.value.field, bool(caught.value.remedy)) == (field, True)


@pytest.mark.parametrize("to", [ADA, CHAT, "120363041234567890@g.us", "123456789012345@lid"])
def test_people_groups_and_linked_ids_are_accepted(to: str) -> None:
    """As a number, or as the server names them."""
    channel("http://127.0.0.1:3000").check(to, {"text": "hello"})


def test_fields_that_a_gateway_cannot_send_are_refused() -> None:
    """Nothing is dropped silently."""
    with pytest.raises(CallerError):
        channel("http://127.0.0.1:3000", "gateway").check(ADA, {"text": "a", "data": {"reply_to": "x"}})


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"server": "baileys"}, "server"),
        ({"server": "evolution", "hmac_key": "key"}, "hmac_key"),
        ({"server": "gateway", "phone_field": "a b"}, "phone_field"),
        ({"number_format": "national"}, "number_format"),
        ({"base_url": "waha"}, "base_url"),
        ({"base_url": "http://waha.example.org"}, "base_url"),
        ({"session": "a/b"}, "session"),
        ({"api_key": "a b"}, "api_key"),
        ({"status_timeout": 0}, "status_timeout"),
    ],
)
def test_a_wrong_option_stops_the_start(options: dict[str, Any], field: str) -> None:
    """The error names the option."""
    with pytest.raises(Misconfigured) as caught:
        build("wa", "whatsapp_session", options)

    assert caught.value.field == field


def test_uncertain_messages_are_held_and_the_key_is_hidden() -> None:
    """With its reason; the key is in no repr (S9)."""
    traits = channel("http://127.0.0.1:3000").traits

    assert traits.on_unknown is OnUnknown.HOLD and traits.why_on_unknown
    assert KEY not in repr(WhatsappSessionSettings(api_key=KEY))


# The pretend WAHA as WAHA


async def test_the_simulated_waha_moves_its_sessions_through_their_states() -> None:
    """Create, scan, stop, start, log out, delete; a start takes a moment, and unlinked sessions stay unlinked."""
    now = [NOW]
    later = round(START_SECONDS * SECOND)
    environment = SandboxEnvironment(wall=lambda: now[0])
    headers = {"x-api-key": "any"}
    async with serving(environment=environment) as sandbox, httpx.AsyncClient(
        base_url=f"{sandbox.url}/waha", headers=headers
    ) as client:  # fmt: skip

        async def state() -> str:
            return str((await client.get("/api/sessions/two")).json()["status"])

        created = await client.post("/api/sessions", json={"name": "two"})
        assert (created.status_code, created.json()["status"]) == (201, "STARTING")
        now[0] += later
        code = (await client.get("/api/two/auth/qr", params={"format": "raw"})).json()
        assert code["value"].startswith("2@")
        assert (await client.get("/api/two/auth/qr")).status_code == 422
        await client.post("/api/sessions/two/stop")
        await client.post("/api/sessions/two/start")
        now[0] += later
        assert await state() == "SCAN_QR_CODE", "nobody has linked it"
        await put(sandbox, "/sandbox/waha/two", status="WORKING")
        assert (await client.get("/api/two/auth/qr", params={"format": "raw"})).status_code == 422
        for action, first, then in [
            ("stop", "STOPPED", "STOPPED"),
            ("start", "STARTING", "WORKING"),
            ("start", "WORKING", "WORKING"),
            ("restart", "STARTING", "WORKING"),
            ("logout", "SCAN_QR_CODE", "SCAN_QR_CODE"),
            ("restart", "STARTING", "SCAN_QR_CODE"),
        ]:
            moved = await client.post(f"/api/sessions/two/{action}")
            now[0] += later
            assert (moved.status_code, moved.json()["status"], await state()) == (201, first, then)
        assert (await client.post("/api/sessions/two/dance")).status_code == 404
        await put(sandbox, "/sandbox/waha/two", status="FAILED", then="FAILED")
        await client.post("/api/sessions/two/restart")
        now[0] += later
        assert await state() == "FAILED", "a restart may not help"
        assert {one["name"] for one in (await client.get("/api/sessions")).json()} == {"default", "two"}
        assert (await client.delete("/api/sessions/two")).status_code == 200
        assert (await client.delete("/api/sessions/two")).status_code == 200
        gone = await client.get("/api/sessions/two")
        assert (gone.status_code, gone.json()["message"]) == (404, "Session not found")
        unknown = await client.post("/api/sendText", json={"session": "two", "chatId": CHAT, "text": "x"})
        assert unknown.status_code == 404
        assert unknown.json()["message"] == (
            "We didn't find a session with name 'two'.\n"
            "Please start it first by using POST /api/sessions/two/start request"
        )
        for path in ("/api/contacts/check-exists?phone=1&session=two", "/api/two/lids/1@lid"):
            assert (await client.get(path)).status_code == 404
        bad = await client.post("/api/sendText", json={"session": "default", "chatId": "x", "text": "x"})
        assert bad.status_code == 400
        locked = await client.get("/api/sessions", headers={"x-api-key": "wrong"})
        assert (locked.status_code, locked.json()) == (401, {"message": "Unauthorized", "statusCode": 401})


@pytest.mark.parametrize("path", ["/sandbox/waha/default", "/sandbox/gateway"])
@pytest.mark.parametrize("body", [b"", b"{}", b"[1]", b'{"status": "DANCING", "connectionState": 5}'])
async def test_a_state_that_does_not_exist_is_refused(sandbox: Sandbox, path: str, body: bytes) -> None:
    """With the states that there are."""
    async with httpx.AsyncClient(base_url=sandbox.url) as client:
        answered = await client.post(path, content=body)

    assert answered.status_code == 422 and answered.json()["error"]["message"]
