"""Telegram: what leaves, what each answer means, and what a simulated Telegram makes of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import aiogram.methods
import aiogram.types
import httpx
import pytest
import telegram.error
from telegram import Bot

from tidings.model.errors import Invalid, Misconfigured
from tidings.model.message import Message
from tidings.model.outcome import Done, Outcome, Reject, Retry, Skip, Unknown
from tidings.model.task import Category, OnUnknown
from tidings.outbound.channels.base import Channel, probe
from tidings.outbound.channels.registry import build
from tidings.outbound.channels.telegram import MEDIA, TelegramSettings, receipt_of
from tidings.sandbox.providers.telegram_errors import ERRORS
from tidings.wire.http_client import MAX_SHOWN

from ..receiver import Act, Receiver, answer, black_hole, cut, drip_head, endless, hang_up_in_body, receiving, refusing
from .conftest import Sandbox

SECRET = "AAcanary-canary_canary0123456789abcde"
TOKEN = f"110201543:{SECRET}"
NOW = 1_790_000_060_000_000
ANN, GROUP = "123456789", "-987654321"

P, V, T, TH = Category.PERMANENT, Category.VALIDATION, Category.TEMPORARY, Category.THROTTLING


def channel(url: str, **options: Any) -> Channel:
    """A bot that speaks to this address."""
    given = {"token": TOKEN, "base_url": url, "deadline": 20, **options}
    return build("bot", "telegram", given, now=lambda: NOW)


def message(to: str = ANN, *, attempt: int = 1, **content: Any) -> Message:
    """A message to somebody."""
    return Message("0190-a1", "default", "bot", to, {"text": "hello", **content}, NOW, attempt)


async def send(url: str, to: str = ANN, options: dict[str, Any] | None = None, **content: Any) -> Outcome:
    """What came of one attempt."""
    made = channel(url, **(options or {}))
    try:
        return await made.send(message(to, **content))
    finally:
        await made.close()


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    """A receiver that does as it is told, for what no Telegram would answer."""
    async with receiving() as ready:
        yield ready


# What leaves


async def test_the_request_is_telegrams_byte_for_byte(sandbox: Sandbox) -> None:
    """Method in the path, one JSON object, a number as a number; the receipt names chat and message."""
    data = {"parse_mode": "HTML", "disable_notification": True}
    outcome = await send(sandbox.url, data=data)

    (seen,) = sandbox.requests
    assert (seen.method, seen.path) == ("POST", f"/bot{TOKEN}/sendMessage")
    assert seen.headers["content-type"] == "application/json"
    assert seen.body == (b'{"chat_id":123456789,"text":"hello","parse_mode":"HTML","disable_notification":true}')
    assert outcome == Done("123456789/1")


async def test_a_message_arrives_on_the_phone_under_its_chat(sandbox: Sandbox) -> None:
    """The ledger knows it by the engine's own id, so that a second copy is seen as one."""
    made = channel(sandbox.url)
    for _ in range(2):
        await made.send(message(text="Grüße 🎉", data={"reply_markup": {"force_reply": True}}))
    await made.close()

    shown = sandbox.world.conversations.find("telegram", ANN)
    assert shown is not None
    assert [(entry.id, entry.text, entry.copy) for entry in shown.entries] == [
        ("0190-a1", "Grüße 🎉", 1),
        ("0190-a1", "Grüße 🎉", 2),
    ]
    assert '"force_reply":true' in shown.last.data


@pytest.mark.parametrize(
    ("data", "body"),
    [
        ({"parse_mode": None}, {}),
        ({}, {"parse_mode": "MarkdownV2"}),
        ({"parse_mode": "HTML"}, {"parse_mode": "HTML"}),
        (
            {"entities": [{"type": "bold", "offset": 0, "length": 5}]},
            {"entities": [{"type": "bold", "offset": 0, "length": 5}]},
        ),
        (
            {"message_thread_id": 7, "protect_content": False, "link_preview_options": {"is_disabled": True}},
            {
                "parse_mode": "MarkdownV2",
                "message_thread_id": 7,
                "protect_content": False,
                "link_preview_options": {"is_disabled": True},
            },
        ),
    ],
)
async def test_extra_parameters_are_sent_unchanged(
    sandbox: Sandbox, data: dict[str, Any], body: dict[str, Any]
) -> None:
    """The channel's parse_mode holds unless the message says otherwise; null means plain."""
    assert isinstance(await send(sandbox.url, options={"parse_mode": "MarkdownV2"}, data=data), Done)

    assert sandbox.requests[0].json == {"chat_id": 123456789, "text": "hello", **body}


@pytest.mark.parametrize("kind", ["photo", "document", "video", "audio", "voice", "animation"])
async def test_media_are_sent_by_url_with_the_text_as_caption(sandbox: Sandbox, kind: str) -> None:
    """Each kind has a method of its own."""
    data = {kind: "https://example.com/x", "entities": [{"type": "bold", "offset": 0, "length": 5}]}
    outcome = await send(sandbox.url, data=data)

    assert outcome == Done("123456789/1")
    assert sandbox.requests[0].path.lower().endswith(f"/send{kind}")
    assert sandbox.requests[0].json == {
        "chat_id": 123456789,
        kind: "https://example.com/x",
        "caption": "hello",
        "caption_entities": [{"type": "bold", "offset": 0, "length": 5}],
    }


@pytest.mark.parametrize(
    "content",
    [
        {"text": "hello"},
        {"text": "<b>hello</b>", "data": {"parse_mode": "HTML", "link_preview_options": {"is_disabled": True}}},
        {"text": "hello", "data": {"entities": [{"type": "bold", "offset": 0, "length": 5}], "protect_content": True}},
        {"text": "hello", "data": {"reply_markup": {"inline_keyboard": [[{"text": "Yes", "callback_data": "yes"}]]}}},
        {"text": "hello", "data": {"ephemeral_message_parameters": {"receiver_user_id": 7}}},
        *({"text": "a caption", "data": {name: "https://example.com/x"}} for name in MEDIA),
    ],
)
async def test_aiogram_accepts_what_is_sent_and_answered(sandbox: Sandbox, content: dict[str, Any]) -> None:
    """Judge: the typed methods and messages of aiogram; an unknown parameter is an error."""
    outcome = await send(sandbox.url, GROUP, **content)

    (seen,) = sandbox.requests
    method = getattr(aiogram.methods, f"S{seen.path.rpartition('/')[2][1:]}")
    method.model_validate(seen.json)
    assert seen.json.keys() <= method.model_fields.keys()
    async with httpx.AsyncClient(base_url=sandbox.url, verify=False) as client:
        answered = (await client.post(seen.path, json=seen.json)).json()
    said = aiogram.types.Message.model_validate(answered["result"])
    assert not said.model_extra
    assert outcome == Done(f"{GROUP}/1")
    assert said.message_id == (0 if "ephemeral_message_parameters" in seen.json else 2)


def test_a_message_without_a_number_has_no_receipt() -> None:
    """Telegram schedules some videos in large chats and answers with the number 0."""
    assert receipt_of({"message_id": 0, "chat": {"id": 5}}) is None


async def test_a_public_name_is_a_recipient_too(sandbox: Sandbox) -> None:
    """Channels and public groups."""
    assert isinstance(await send(sandbox.url, "@durov_channel"), Done)

    assert sandbox.requests[0].json["chat_id"] == "@durov_channel"


# What is refused before it is accepted


@pytest.mark.parametrize(
    ("to", "content", "field", "words"),
    [
        ("ada", {}, "to", "not a Telegram chat"),
        ("+15551234567", {}, "to", "phone number"),
        ("0", {}, "to", "not a Telegram chat"),
        ("12345678901234567", {}, "to", "not a Telegram chat"),
        ("@no", {}, "to", "not a Telegram chat"),
        ("１２３", {}, "to", "not a Telegram chat"),
        (ANN, {"text": " \n"}, "text", "message is empty"),
        (ANN, {"text": "x" * 4097}, "text", "4,097"),
        (ANN, {"text": "x" * 32_769, "data": {"parse_mode": "HTML"}}, "text", "32,768"),
        (ANN, {"data": {"parse_mode": "BBCode"}}, "data", "parse_mode"),
        (ANN, {"data": {"parse_mod": "HTML"}}, "data.parse_mod", "parse_mod"),
        (ANN, {"data": {"disable_notification": "yes"}}, "data.disable_notification", "true or false"),
        (ANN, {"data": [1]}, "data", "object"),
        (ANN, {"data": {"photo": "file:///etc/passwd"}}, "data", "URL"),
        (ANN, {"data": {"photo": "a", "video": "b"}}, "data", "both photo and video"),
        (ANN, {"text": "x" * 1025, "data": {"photo": "https://example.com/x"}}, "text", "1025"),
    ],
)
async def test_invalid_telegram_messages_are_refused_before_they_are_accepted(
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


@pytest.mark.parametrize("to", ["1", "-1001234567890", "9007199254740991", "@abcd"])
def test_every_kind_of_chat_is_a_valid_recipient(to: str) -> None:
    """People, groups, supergroups, channels."""
    channel("http://127.0.0.1:9").check(to, {"text": "x" * 4096})


async def test_a_long_text_is_split_where_it_was_asked_for(sandbox: Sandbox) -> None:
    """In order, at white space, each at most 4,096 characters; no part counts as a copy of another."""
    text = "\n".join(f"line {number} " + "x" * 90 for number in range(100))
    outcome = await send(sandbox.url, options={"long_text": "split"}, text=text)

    parts = [seen.json["text"] for seen in sandbox.requests]
    assert len(parts) == 3 and all(len(part) <= 4096 for part in parts)
    assert "\n".join(parts) == text
    assert outcome == Done("123456789/1 123456789/2 123456789/3")
    assert {entry.copy for entry in sandbox.ledger} == {1}


async def test_a_text_sent_in_part_is_an_unknown_outcome(receiver: Receiver) -> None:
    """R1: a plain retry would send the first part twice without saying so."""
    sent = b'{"ok":true,"result":{"message_id":7,"chat":{"id":123456789}}}'
    receiver.script(answer(200, sent), answer(429, b'{"ok":false,"error_code":429,"description":"Too Many"}'))
    outcome = await send(receiver.url, options={"long_text": "split"}, text="word " * 1000)

    assert isinstance(outcome, Unknown)
    assert "1 of 2 parts were sent (123456789/7)" in outcome.evidence
    assert "Too Many" in outcome.evidence


async def test_a_text_with_markup_is_not_split(sandbox: Sandbox) -> None:
    """Telegram counts without the tags, and a part could begin inside of one."""
    text = '<a href="https://example.com/' + "x" * 4096 + '">here</a>'
    outcome = await send(sandbox.url, options={"long_text": "split", "parse_mode": "HTML"}, text=text)

    assert isinstance(outcome, Done)
    assert len(sandbox.requests) == 1


# What an answer means: the table of the reference

ROWS: list[tuple[str, type[Outcome], Category, bool]] = [
    ("chat_not_found", Reject, P, False),
    ("private_chat_not_found", Reject, P, False),
    ("chat_id_empty", Reject, V, False),
    ("text_empty", Reject, V, False),
    ("text_must_be_non_empty", Reject, V, False),
    ("message_too_long", Reject, V, False),
    ("text_too_long", Reject, V, False),
    ("parse_mode", Reject, V, False),
    ("entities", Reject, V, False),
    ("reply_not_found", Reject, V, False),
    ("thread_not_found", Reject, P, False),
    ("topic_closed", Reject, P, False),
    ("button_url", Reject, V, False),
    ("wrong_url", Reject, V, False),
    ("markup_too_long", Reject, V, False),
    ("no_write_access", Reject, P, False),
    ("not_enough_rights", Reject, P, False),
    ("need_administrator", Reject, P, False),
    ("chat_restricted", Reject, P, False),
    ("chat_write_forbidden", Reject, P, False),
    ("peer_id_invalid", Reject, P, False),
    ("migrated_long_ago", Reject, P, False),
    ("group_deactivated", Reject, P, False),
    ("logged_out", Reject, P, True),
    ("unauthorized", Reject, P, True),
    ("invalid_token", Reject, P, True),
    ("blocked", Reject, P, False),
    ("deactivated", Reject, P, False),
    ("cannot_initiate", Reject, P, False),
    ("to_a_bot", Reject, P, False),
    ("to_the_bot", Reject, P, False),
    ("kicked", Reject, P, False),
    ("kicked_from_supergroup", Reject, P, False),
    ("kicked_from_channel", Reject, P, False),
    ("not_a_member", Reject, P, False),
    ("group_deleted", Reject, P, False),
    ("method_not_found", Reject, V, False),
    ("not_found", Reject, P, True),
    ("two_pollers", Retry, T, False),
    ("webhook_active", Retry, T, False),
    ("webhook_set", Retry, T, False),
    ("too_large", Reject, V, False),
    ("misdirected", Reject, P, True),
    ("restart", Retry, T, False),
]


def test_every_error_of_the_reference_has_a_row() -> None:
    """One row per error; a group that moved has a test of its own."""
    assert {row[0] for row in ROWS} == set(ERRORS) - {"migrated"}


@pytest.mark.parametrize(("code", "kind", "category", "account"), ROWS, ids=[row[0] for row in ROWS])
async def test_telegram_errors_map_to_retry_categories(
    sandbox: Sandbox, code: str, kind: type[Outcome], category: Category, account: bool
) -> None:
    """A4: try again or not, and whether it is the whole channel's fault; in Telegram's own words."""
    sandbox.break_("error", code=code)
    outcome = await send(sandbox.url)

    assert type(outcome) is kind
    assert isinstance(outcome, Retry | Reject)
    assert (outcome.category, outcome.whole_channel) == (category, account)
    assert ERRORS[code].description in outcome.reason
    assert f"HTTP {ERRORS[code].status}" in outcome.reason


@pytest.mark.parametrize(
    "code",
    ["CHAT_SEND_PLAIN_FORBIDDEN", "CHAT_ADMIN_REQUIRED", "USER_BANNED_IN_CHANNEL", "ALLOW_PAYMENT_REQUIRED",
     "PRIVACY_PREMIUM_REQUIRED"],
)  # fmt: skip
async def test_a_code_about_the_recipient_is_permanent_and_not_a_validation_error(sandbox: Sandbox, code: str) -> None:
    """Another recipient gets the same message (A4)."""
    sandbox.break_("error", code=code)

    outcome = await send(sandbox.url)

    assert isinstance(outcome, Reject)
    assert (outcome.category, outcome.whole_channel) == (Category.PERMANENT, False)


@pytest.mark.parametrize(("to", "account"), [(ANN, True), (GROUP, False), ("@durov_channel", False)])
async def test_a_429_is_waited_for_as_long_as_its_retry_after(sandbox: Sandbox, to: str, account: bool) -> None:
    """A4: people are paced by us, so their 429 is the bot's and parks all; a group has its own limit."""
    sandbox.break_("429", seconds=17)
    outcome = await send(sandbox.url, to)

    assert outcome == Retry(TH, "HTTP 429: Too Many Requests: retry after 17", timedelta(seconds=17), account)


@pytest.mark.parametrize(
    ("body", "header", "wait"),
    [
        (b'{"ok":false,"error_code":429,"parameters":{"retry_after":3}}', "9", 3),
        (b'{"ok":false,"error_code":429}', "9", 9),
        (b'{"ok":false,"error_code":429,"parameters":{"retry_after":-3}}', "9", 9),
        (b'{"ok":false,"error_code":429,"parameters":{"retry_after":1e99}}', "9", 9),
        (b'{"ok":false,"error_code":429,"parameters":{"retry_after":9999999}}', "9", 86_400),
        (b'{"ok":false,"error_code":429,"parameters":[]}', "nonsense", None),
        (b"<html>slow down</html>", "9", 9),
    ],
)
async def test_retry_after_is_read_in_every_form_and_limited(
    receiver: Receiver, body: bytes, header: str, wait: int | None
) -> None:
    """F27: the body first, then the header; nonsense is no wish."""
    receiver.script(answer(429, body, retry_after=header))
    outcome = await send(receiver.url)

    assert isinstance(outcome, Retry)
    assert outcome.category is TH
    assert outcome.after == (None if wait is None else timedelta(seconds=wait))


async def test_a_message_follows_a_group_that_became_a_supergroup(sandbox: Sandbox) -> None:
    """REDIRECT: rewritten and sent in the same attempt; later messages go there at once."""
    sandbox.break_("error", code="migrated", recipient=GROUP)
    made = channel(sandbox.url)
    outcomes = [await made.send(message(GROUP)) for _ in range(2)]
    await made.close()

    new = -1_000_987_654_321
    assert outcomes == [Done(f"{new}/2"), Done(f"{new}/3")]
    assert [seen.json["chat_id"] for seen in sandbox.requests] == [int(GROUP), new, new]


@pytest.mark.parametrize(("rule", "done"), [("reject", False), ("plain", True)])
async def test_wrong_markup_is_rejected_or_sent_as_plain_text(sandbox: Sandbox, rule: str, done: bool) -> None:
    """As configured; the simulated Telegram reads HTML strictly."""
    outcome = await send(sandbox.url, options={"bad_markup": rule, "parse_mode": "HTML"}, text="a <b>bold move")

    assert isinstance(outcome, Done) is done
    if done:
        assert sandbox.requests[-1].json == {"chat_id": 123456789, "text": "a <b>bold move"}
    else:
        assert isinstance(outcome, Reject)
        assert outcome.category is V
        assert "can't parse entities" in outcome.reason


# No answer, strange answers


@pytest.mark.parametrize("act", [cut, black_hole, drip_head])
async def test_a_lost_answer_is_an_unknown_outcome_and_held(receiver: Receiver, act: Act) -> None:
    """F24, F25: Telegram has no key against duplicates, so a person decides."""
    receiver.script(act)
    made = channel(receiver.url, deadline=0.5)
    outcome = await made.send(message())
    await made.close()

    assert isinstance(outcome, Unknown)
    assert made.traits.on_unknown is OnUnknown.HOLD
    assert "cannot be looked up" in made.traits.why_on_unknown
    assert isinstance(await made.lookup(message()), Unknown)


@pytest.mark.parametrize(("word", "copies"), [("@lost", 1), ("@down", 0), ("@error_blocked", 0)])
async def test_a_recipient_name_triggers_a_sandbox_fault(sandbox: Sandbox, word: str, copies: int) -> None:
    """With no preparation at all: the line is cut after the message was taken, or it is refused."""
    outcome = await send(sandbox.url, word)

    expected = {"@lost": Unknown, "@down": Retry, "@error_blocked": Reject}[word]
    assert type(outcome) is expected
    assert [entry.copy for entry in sandbox.ledger] == [copies]


async def test_a_refused_connection_is_retried() -> None:
    """F22: certainly not sent."""
    with refusing() as url:
        outcome = await send(url)

    assert isinstance(outcome, Retry)
    assert outcome.category is T


PAGE = b"<html><body>" + b"Bad Gateway " * 900_000 + b"</body></html>"  # 10 MB


@pytest.mark.parametrize(
    ("status", "kind", "category", "account"),
    [
        (200, Unknown, None, False),
        (301, Reject, P, True),
        (400, Reject, V, False),
        (401, Reject, P, True),
        (403, Reject, P, True),
        (404, Reject, P, True),
        (413, Reject, V, False),
        (500, Unknown, None, False),
        (502, Unknown, None, False),
        (503, Retry, T, False),
        (504, Unknown, None, False),
    ],
)
async def test_an_html_response_is_classified_by_its_status(
    receiver: Receiver, status: int, kind: type[Outcome], category: Category | None, account: bool
) -> None:
    """Bad input: not Telegram's words, so a gateway's 5xx is a doubt; shown short, parsed by nobody."""
    receiver.script(answer(status, PAGE if status in (200, 502) else b"<html>hello</html>"))
    outcome = await send(receiver.url)

    assert type(outcome) is kind
    assert isinstance(outcome, Unknown | Retry | Reject)
    shown = outcome.evidence if isinstance(outcome, Unknown) else outcome.reason
    assert f"HTTP {status}" in shown and len(shown) < MAX_SHOWN + 60
    if isinstance(outcome, Retry | Reject):
        assert (outcome.category, outcome.whole_channel) == (category, account)


@pytest.mark.parametrize(
    "act",
    [
        hang_up_in_body,
        endless,
        answer(200),
        answer(200, b'{"ok":true,"result":'),
        answer(200, b'{"ok":true,"result":[]}'),
        answer(200, b'{"ok":true,"result":{"message_id":"x","chat":5}}'),
    ],
)
async def test_a_success_status_counts_even_with_a_truncated_body(receiver: Receiver, act: Act) -> None:
    """F26: the status line decides; only the receipt is missing."""
    receiver.script(act)
    outcome = await send(receiver.url, options={"deadline": 2})

    assert outcome == Done() or (act is endless and isinstance(outcome, Unknown))


async def test_malformed_error_fields_are_ignored(receiver: Receiver) -> None:
    """A hostile other side cannot make a channel raise."""
    for body in (
        b'{"ok":false}',
        b'{"ok":false,"error_code":"x","description":{"a":1},"parameters":7}',
        b'{"ok":false,"error_code":400,"description":null,"parameters":{"migrate_to_chat_id":"x"}}',
        b"[]",
        b"nul",
    ):
        receiver.script(answer(400, body))
        outcome = await send(receiver.url)
        assert isinstance(outcome, Reject)
        assert outcome.category is V


# Secrets


@pytest.mark.parametrize(
    "act",
    [
        cut,
        answer(404, f"no route /bot{TOKEN}/sendMessage".encode()),
        answer(502, f"<p>/bot110201543%3A{SECRET}/sendMessage</p>".encode()),
        answer(400, f'{{"ok":false,"error_code":400,"description":"Bad: {TOKEN}"}}'.encode()),
        answer(200, f"<p>{SECRET}".encode()),
    ],
)
async def test_the_token_is_never_shown(receiver: Receiver, act: Act, caplog: pytest.LogCaptureFixture) -> None:
    """S9: it is part of the URL, and an answer may repeat it."""
    caplog.set_level("DEBUG")
    receiver.script(act, act)
    made = channel(receiver.url)
    outcomes = [await made.send(message()), await probe(made)]
    with refusing() as url:
        outcomes.append(await send(url))
    await made.close()

    assert "canary" not in f"{outcomes} {caplog.text} {made!r} {made.traits!r} {TelegramSettings(token=TOKEN)!r}"


@pytest.mark.parametrize("token", ["canary", "1:canary canary", f"bot{TOKEN}", f"{TOKEN}/canary", 5, ""])
def test_a_malformed_token_stops_the_start_and_is_not_repeated(token: object) -> None:
    """S9, bad input."""
    with pytest.raises(Misconfigured, match="BotFather") as caught:
        build("bot", "telegram", {"token": token})
    assert caught.value.field == "token"
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "field", "words"),
    [
        ({}, "token", "missing"),
        ({"token": TOKEN, "base_url": "http://api.telegram.org"}, "base_url", "https"),
        ({"token": TOKEN, "base_url": "http://8.8.8.8"}, "base_url", "https"),
        ({"token": TOKEN, "base_url": "https://example.com/?a=1"}, "base_url", "without ?"),
        ({"token": TOKEN, "base_url": "telegram"}, "base_url", "https"),
        ({"token": TOKEN, "parse_mode": "bbcode"}, "parse_mode", "MarkdownV2"),
        ({"token": TOKEN, "long_text": "cut"}, "long_text", "'split'"),
        ({"token": TOKEN, "bad_markup": "x"}, "bad_markup", "'plain'"),
    ],
)
def test_an_invalid_telegram_option_stops_the_start(options: dict[str, object], field: str, words: str) -> None:
    """Named, with a remedy, and no secret in it."""
    with pytest.raises(Misconfigured, match=words) as caught:
        build("bot", "telegram", options)
    assert (caught.value.field, bool(caught.value.remedy)) == (field, True)
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    ["https://example.com", "http://127.0.0.1:8025", "http://[::1]:8025", "http://sandbox:8025/", "http://10.1.2.3"],
)
def test_a_base_url_needs_https_outside_the_own_network(url: str) -> None:
    """A self-hosted Bot API server, or the sandbox."""
    build("bot", "telegram", {"token": TOKEN, "base_url": url})


def test_the_limits_are_telegrams_unless_said_otherwise() -> None:
    """30 a second over all chats, one a second in one."""
    plain = build("bot", "telegram", {"token": TOKEN}).traits
    paid = build("bot", "telegram", {"token": TOKEN, "per_second": 1000, "per_recipient": 0.1}).traits

    assert (plain.per_second, plain.per_recipient) == (30, timedelta(seconds=1))
    assert (paid.per_second, paid.per_recipient) == (1000, timedelta(seconds=0.1))


# channels test


async def test_a_probe_says_whose_token_it_is_and_sends_nothing(sandbox: Sandbox) -> None:
    """getMe; a wrong token is told as Telegram tells it."""
    made, wrong = channel(sandbox.url), channel(sandbox.url, token="5:wrong-canary")
    found, refused = await probe(made), await probe(wrong)
    await made.close()
    await wrong.close()

    assert found == Done("@sandbox_110201543_bot, bot 110201543")
    assert refused == Reject(P, "HTTP 401: Unauthorized", whole_channel=True)
    assert sandbox.ledger == []


async def test_a_probe_without_an_answer_is_retried(receiver: Receiver) -> None:
    """Nothing was sent, so nothing can be in doubt."""
    receiver.script(cut, answer(200, b"<html>"), answer(200, b'{"ok":true,"result":[]}'))
    made = channel(receiver.url)
    outcomes = [await probe(made) for _ in range(3)]
    await made.close()

    assert all(isinstance(outcome, Retry) for outcome in outcomes)


async def test_a_telegram_message_cannot_be_looked_up() -> None:
    """The default of the port."""
    assert isinstance(await probe(build("screen", "console", {})), Skip)


# The simulated Telegram, as other clients meet it


@pytest.fixture
async def client(sandbox: Sandbox) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=sandbox.url) as ready:
        yield ready


async def test_parameters_come_as_json_form_query_or_files(sandbox: Sandbox, client: httpx.AsyncClient) -> None:
    """As Telegram takes them; method names in any case; nested objects in a form are JSON text."""
    path = f"/bot{TOKEN}/SENDmessage"
    markup = '{"force_reply":true}'
    answers = [
        await client.post(path, json={"chat_id": 5, "text": "a"}),
        await client.post(path, data={"chat_id": "5", "text": "b", "reply_markup": markup}),
        await client.get(path, params={"chat_id": "5", "text": "c"}),
        await client.post(f"/bot{TOKEN}/sendPhoto", data={"chat_id": "5", "caption": "d"}, files={"photo": b"x"}),
    ]

    assert [one.status_code for one in answers] == [200] * 4
    assert [entry.text for entry in sandbox.ledger] == ["a", "b", "c", "d"]
    assert {entry.copy for entry in sandbox.ledger} == {1}
    result = answers[0].json()["result"]
    assert result["chat"] == {"id": 5, "type": "private", "first_name": "Ann"}
    assert result["from"]["is_bot"] is True and result["text"] == "a" and result["date"] > 0


@pytest.mark.parametrize(
    ("path", "body", "status", "description"),
    [
        ("/botnonsense/sendMessage", {}, 404, "Not Found"),
        (f"/bot{TOKEN}/sendPigeon", {}, 404, "Not Found: method not found"),
        (f"/bot{TOKEN}/sendMessage", {"text": "a"}, 400, "Bad Request: chat_id is empty"),
        (f"/bot{TOKEN}/sendMessage", {"chat_id": "ann", "text": "a"}, 400, "Bad Request: chat not found"),
        (f"/bot{TOKEN}/sendMessage", {"chat_id": 5}, 400, "Bad Request: message text is empty"),
        (f"/bot{TOKEN}/sendMessage", {"chat_id": 5, "text": "x" * 4097}, 400, "Bad Request: message is too long"),
        (f"/bot{TOKEN}/sendMessage", {"chat_id": 5, "text": "x" * 40_000}, 400, "Bad Request: text is too long"),
        (
            f"/bot{TOKEN}/sendMessage",
            {"chat_id": 5, "text": "x", "parse_mode": "x"},
            400,
            "Bad Request: unsupported parse_mode",
        ),
        (f"/bot{TOKEN}/sendPhoto", {"chat_id": 5}, 400, "Bad Request: there is no photo in the request"),
    ],
)
async def test_a_wrong_request_gets_telegrams_own_error(
    client: httpx.AsyncClient, path: str, body: dict[str, Any], status: int, description: str
) -> None:
    """Status, code and description agree."""
    found = await client.post(path, json=body)

    assert (found.status_code, found.json()) == (
        status,
        {"ok": False, "error_code": status, "description": description},
    )


async def test_a_body_that_is_not_json_is_a_bad_request(client: httpx.AsyncClient) -> None:
    """And no error of the server's."""
    headers = {"content-type": "application/json"}
    found = await client.post(f"/bot{TOKEN}/sendMessage", content=b"{nonsense", headers=headers)

    assert (found.status_code, found.json()["ok"]) == (400, False)


async def test_a_well_known_client_works_unchanged(sandbox: Sandbox) -> None:
    """python-telegram-bot, told another address only: it sends, and knows each error for what it is."""
    async with Bot(TOKEN, base_url=f"{sandbox.url}/bot") as bot:
        sent = await bot.send_message(5, "<b>hi</b> Ann", parse_mode="HTML")
        pictures = [await bot.send_photo(5, photo, caption="look") for photo in (b"bytes", "https://a.b/c")]
        others = [
            await send(5, "https://a.b/c")
            for send in (bot.send_document, bot.send_video, bot.send_audio, bot.send_voice, bot.send_animation)
        ]
        sandbox.break_("429", seconds=7, times=1)
        with pytest.raises(telegram.error.RetryAfter) as flood:
            await bot.send_message(5, "x")
        sandbox.break_("error", code="blocked", times=1)
        with pytest.raises(telegram.error.Forbidden, match="blocked by the user"):
            await bot.send_message(5, "x")
        sandbox.break_("error", code="migrated", times=1)
        with pytest.raises(telegram.error.ChatMigrated) as moved:
            await bot.send_message(GROUP, "x")
        with pytest.raises(telegram.error.BadRequest):
            await bot.send_message(5, "")

    assert bot.username == "sandbox_110201543_bot"
    assert (sent.text, sent.chat.id, sent.chat.type) == ("hi Ann", 5, "private")
    assert [picture.caption for picture in pictures] == ["look", "look"]
    assert all(other.effective_attachment for other in others)
    assert flood.value.retry_after in (7, timedelta(seconds=7))
    assert moved.value.new_chat_id == -1_000_987_654_321
    with pytest.raises(telegram.error.InvalidToken):
        await Bot("5:wrong", base_url=f"{sandbox.url}/bot").initialize()
