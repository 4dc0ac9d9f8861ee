"""Slack: what leaves, what each of its errors means, and what a simulated Slack makes of it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tidings.model.errors import Invalid, Misconfigured
from tidings.model.message import Message
from tidings.model.outcome import Done, Outcome, Reject, Retry, Skip, Unknown
from tidings.model.task import Category, OnUnknown
from tidings.outbound.channels.base import Channel, probe
from tidings.outbound.channels.registry import build
from tidings.sandbox.providers.slack import HOOK_ERRORS

from .conftest import Sandbox

TOKEN = "xoxb-1234567890-canary"
HOOK = "T0123/B0123/canary0123456789"
GENERAL = "C0123456789"
NOW = 1_790_000_060_000_000

P, V, T, TH = Category.PERMANENT, Category.VALIDATION, Category.TEMPORARY, Category.THROTTLING

UNREACHABLE = (
    "channel_not_found is_archived not_in_channel restricted_action restricted_action_read_only_channel "
    "user_is_restricted"
)
WRONG = (
    "msg_too_long no_text too_many_attachments invalid_blocks invalid_arguments invalid_arg_name "
    "invalid_array_arg invalid_charset invalid_form_data invalid_post_type missing_post_type "
    "as_user_not_supported msg_blocks_too_long invalid_blocks_format invalid_metadata_format metadata_too_large "
    "cannot_reply_to_message"
)
ACCOUNT = (
    "not_authed invalid_auth account_inactive token_revoked token_expired missing_scope no_permission "
    "not_allowed_token_type org_login_required ekm_access_denied access_denied enterprise_is_restricted "
    "accesslimited team_access_not_granted team_not_found two_factor_setup_required deprecated_endpoint "
    "method_deprecated"
)


def channel(url: str, **options: Any) -> Channel:
    """An app that speaks to this address; an option of None is left out."""
    given = {"token": TOKEN, "base_url": f"{url}/api", **options}
    chosen = {name: value for name, value in given.items() if value is not None}
    return build("team", "slack", chosen, now=lambda: NOW)


def hook(url: str, **options: Any) -> Channel:
    """An incoming webhook at this address."""
    given = {"token": None, "webhook_token": HOOK, "base_url": f"{url}/services", **options}
    return channel(url, **given)


def message(to: str = GENERAL, **content: Any) -> Message:
    """A message to somebody."""
    return Message("0190-a1", "default", "team", to, {"text": "hello", **content}, NOW)


async def send(made: Channel, to: str = GENERAL, **content: Any) -> Outcome:
    """What came of one attempt."""
    try:
        return await made.send(message(to, **content))
    finally:
        await made.close()


# What leaves


async def test_the_request_is_slacks_byte_for_byte(sandbox: Sandbox) -> None:
    """The token in a header, JSON with its charset; the receipt names channel and time stamp."""
    outcome = await send(channel(sandbox.url), text="Grüße", data={"thread_ts": "1.2", "unfurl_links": False})

    (seen,) = sandbox.requests
    assert (seen.method, seen.path) == ("POST", "/api/chat.postMessage")
    assert seen.headers["content-type"] == "application/json; charset=utf-8"
    assert seen.headers["authorization"] == f"Bearer {TOKEN}"
    body = '{"channel":"C0123456789","text":"Grüße","thread_ts":"1.2","unfurl_links":false}'
    assert seen.body == body.encode()
    assert isinstance(outcome, Done)
    assert outcome.receipt is not None and outcome.receipt.startswith(f"{GENERAL}/")


async def test_a_webhook_gets_the_text_alone(sandbox: Sandbox) -> None:
    """Its URL says where; its answer is the word ok, which names nothing."""
    outcome = await send(hook(sandbox.url), "default")

    (seen,) = sandbox.requests
    assert (seen.path, seen.body) == (f"/services/{HOOK}", b'{"text":"hello"}')
    assert "authorization" not in seen.headers
    assert outcome == Done()
    assert [(entry.channel, entry.to) for entry in sandbox.ledger] == [("slack", "T0123/B0123")]


async def test_a_message_arrives_on_the_phone_under_its_channel(sandbox: Sandbox) -> None:
    """With its blocks; a second copy of one id is seen as one."""
    made = channel(sandbox.url)
    for _ in range(2):
        await made.send(message("#rota", text="", data={"blocks": [{"type": "divider"}]}))
    await made.close()

    shown = sandbox.world.conversations.find("slack", "rota")
    assert shown is not None
    assert [(entry.id, entry.copy) for entry in shown.entries] == [("0190-a1", 1), ("0190-a1", 2)]
    assert '"divider"' in shown.last.data


# What an answer means


@pytest.mark.parametrize(
    ("error", "expected"),
    [(error, Reject(P, "")) for error in UNREACHABLE.split()]
    + [(error, Reject(V, "")) for error in WRONG.split()]
    + [(error, Reject(P, "", whole_channel=True)) for error in ACCOUNT.split()]
    + [
        (error, Retry(TH, "", after=timedelta(seconds=30), whole_channel=True))
        for error in ("rate_limited", "ratelimited")
    ]
    + [("message_limit_exceeded", Retry(TH, "", whole_channel=True))]
    + [(error, Retry(T, "")) for error in ("team_added_to_org", "request_timeout", "service_unavailable")]
    + [(error, Unknown("")) for error in ("internal_error", "fatal_error")]
    + [("something_new", Reject(P, ""))],
)
async def test_slack_errors_map_to_retry_categories(sandbox: Sandbox, error: str, expected: Outcome) -> None:
    """A4: one row per error of the table. What may have partly happened is a doubt, not a retry."""
    sandbox.break_("error", code=error)
    outcome = await send(channel(sandbox.url))

    check(outcome, expected, "ratelimited" if error == "rate_limited" else error)
    assert sandbox.requests and not sandbox.ledger[0].delivered


async def test_blocks_that_are_too_long_for_slack_are_a_validation_error(sandbox: Sandbox) -> None:
    """The message is wrong, not the channel."""
    blocks = [{"type": "section", "text": {"type": "mrkdwn", "text": "x" * 2900}}] * 5
    outcome = await send(channel(sandbox.url), data={"blocks": blocks})

    check(outcome, Reject(V, ""), "msg_blocks_too_long")


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        (word, Reject(V, ""))
        for word in ("invalid_payload", "user_not_found", "no_text", "too_many_attachments", "invalid_blocks")
    ]
    + [
        (word, Reject(P, "", whole_channel=True))
        for word in ("action_prohibited", "invalid_token", "posting_to_general_channel_denied", "team_disabled")
    ]
    + [(word, Reject(P, "", whole_channel=True)) for word in ("no_service", "no_service_id", "no_team")]
    + [(word, Reject(P, "")) for word in ("channel_not_found", "channel_is_archived")]
    + [("rollup_error", Retry(T, ""))],
)
async def test_webhook_errors_map_to_retry_categories(sandbox: Sandbox, word: str, expected: Outcome) -> None:
    """A4: one row per word. A webhook that is gone pauses the channel: it is all that the channel has."""
    assert word in HOOK_ERRORS
    sandbox.break_("error", code=word)

    check(await send(hook(sandbox.url), "default"), expected, word)


def check(outcome: Outcome, expected: Outcome, word: str) -> None:
    """The same outcome but for its reason, which has the provider's word in it."""
    assert type(outcome) is type(expected)
    if isinstance(outcome, Retry | Reject) and isinstance(expected, Retry | Reject):
        assert (outcome.category, outcome.whole_channel) == (expected.category, expected.whole_channel)
        assert word in outcome.reason
    if isinstance(outcome, Retry) and isinstance(expected, Retry):
        assert outcome.after == expected.after


@pytest.mark.parametrize("make", [channel, hook])
async def test_a_429_throttles_the_channel_for_its_retry_after(sandbox: Sandbox, make: Any) -> None:
    """A4: the limit is the app's, so nobody else on this channel need run into it."""
    sandbox.break_("429", seconds=17)
    outcome = await send(make(sandbox.url), "default" if make is hook else GENERAL)

    assert isinstance(outcome, Retry)
    assert (outcome.category, outcome.after) == (TH, timedelta(seconds=17))
    assert outcome.whole_channel


@pytest.mark.parametrize(("status", "expected"), [("500", Retry), ("503", Retry), ("502", Unknown), ("504", Unknown)])
async def test_a_gateway_error_is_an_unknown_outcome_and_slacks_own_error_is_not(
    sandbox: Sandbox, status: str, expected: type[Outcome]
) -> None:
    """500 and 503 are retryable, says Slack; who stands before Slack cannot know."""
    sandbox.break_("error", code=status)

    assert isinstance(await send(channel(sandbox.url)), expected)


async def test_a_channel_name_triggers_a_sandbox_fault(sandbox: Sandbox) -> None:
    """No preparation is needed to see an error, or a try that works the second time."""
    flaky = [await send(channel(sandbox.url), "#flaky-2") for _ in range(2)]
    archived = await send(channel(sandbox.url), "#error-is_archived")

    assert isinstance(archived, Reject)
    assert [type(outcome) for outcome in flaky] == [Retry, Done]


@pytest.mark.parametrize("token", ["xoxb-wrong", "xoxp-wrong"])
async def test_a_wrong_token_pauses_the_channel(sandbox: Sandbox, token: str) -> None:
    """A4: for sending and for testing alike; a missing scope says which one."""
    made = channel(sandbox.url, token=token)
    outcome, tested = await made.send(message()), await probe(made)
    await made.close()

    for found in (outcome, tested):
        assert isinstance(found, Reject)
        assert found.whole_channel and "invalid_auth" in found.reason
    sandbox.break_("error", code="missing_scope")
    lacking = await send(channel(sandbox.url))
    assert isinstance(lacking, Reject) and "needed: chat:write" in lacking.reason


async def test_the_token_can_be_tested_without_sending(sandbox: Sandbox) -> None:
    """`channels test`: who we are over there; a webhook can only be tried."""
    app, webhook = channel(sandbox.url), hook(sandbox.url)
    outcomes = [await probe(app), await probe(webhook)]
    await app.close()
    await webhook.close()

    assert outcomes[0] == Done("sandbox at Sandbox")
    assert isinstance(outcomes[1], Skip)
    assert sandbox.ledger == []


# Long texts, recipients, configuration


async def test_a_long_text_is_refused_or_split(sandbox: Sandbox) -> None:
    """Bad input: Slack would cut it off in silence. Blocks go with the first part only."""
    text = "word " * 9_000
    with pytest.raises(Invalid, match="long_text"):
        channel(sandbox.url).check(GENERAL, {"text": text})

    data = {"thread_ts": "1.2", "blocks": [{"type": "divider"}]}
    outcome = await send(channel(sandbox.url, long_text="split"), text=text, data=data)
    assert isinstance(outcome, Done)
    first, second = (seen.json for seen in sandbox.requests)
    assert (set(first) - set(second), second["thread_ts"]) == ({"blocks"}, "1.2")


@pytest.mark.parametrize("to", ["", "general", "#", "# general", "@ada", "c0123456789", "+15551234567", "#a,b"])
def test_an_invalid_slack_recipient_is_refused(to: str) -> None:
    """Bad input, with what would be right."""
    with pytest.raises(Invalid, match="C0123456789") as caught:
        channel("http://127.0.0.1:1").check(to, {"text": "x"})
    assert caught.value.field == "to"


@pytest.mark.parametrize("to", [GENERAL, "G0123", "D0123", "U0123ABC", "W0123", "#general", "#rota-münchen"])
def test_channel_ids_user_ids_and_names_are_valid_recipients(to: str) -> None:
    """Whatever chat.postMessage takes."""
    channel("http://127.0.0.1:1").check(to, {"text": "x"})


def test_a_webhook_has_one_recipient() -> None:
    """Anything else would silently go elsewhere."""
    made = hook("http://127.0.0.1:1")
    made.check("default", {"text": "x"})
    with pytest.raises(Invalid, match="'default'"):
        made.check(GENERAL, {"text": "x"})


@pytest.mark.parametrize(
    ("content", "field"),
    [
        ({"text": " "}, "text"),
        ({"text": "x", "data": {"as_user": True}}, "data.as_user"),
        ({"text": "x", "data": {"blocks": "[]"}}, "data.blocks"),
        ({"text": "x", "data": {"mrkdwn": 1}}, "data.mrkdwn"),
    ],
)
async def test_invalid_slack_content_is_refused(sandbox: Sandbox, content: dict[str, Any], field: str) -> None:
    """Before it is accepted, and once more when it is sent."""
    with pytest.raises(Invalid) as caught:
        channel(sandbox.url).check(GENERAL, content)
    outcome = await send(channel(sandbox.url), **content)

    assert (caught.value.field, bool(caught.value.remedy)) == (field, True)
    assert isinstance(outcome, Reject) and outcome.category is V
    assert sandbox.requests == []


@pytest.mark.parametrize(
    ("options", "field", "words"),
    [
        ({"token": "canary"}, "token", "xoxb-"),
        ({"token": "xoxb-can ary"}, "token", "xoxb-"),
        ({"token": None}, "token", "exactly one"),
        ({"webhook_token": HOOK}, "token", "exactly one"),
        ({"webhook_token": "canary"}, "webhook_token", "/services/"),
        ({"base_url": "http://example.com/api"}, "base_url", "https"),
    ],
)
def test_an_invalid_slack_option_stops_the_start(options: dict[str, Any], field: str, words: str) -> None:
    """Bad input: the option and the remedy are named, and no secret is repeated (S9)."""
    with pytest.raises(Misconfigured) as caught:
        channel("http://127.0.0.1:1", **options)
    said = str(caught.value)
    assert words in said and "canary" not in said
    assert (caught.value.field, bool(caught.value.remedy)) == (field, True)


async def test_a_webhooks_whole_url_may_be_given(sandbox: Sandbox) -> None:
    """As it is copied from Slack; only its end is kept."""
    made = hook(sandbox.url, webhook_token=f"https://hooks.slack.com/services/{HOOK}")
    await send(made, "default")

    assert sandbox.requests[0].path == f"/services/{HOOK}"


def test_the_rate_limit_and_the_rule_for_unknown_outcomes_are_slacks() -> None:
    """About one message a second and channel; no key against duplicates, so it is held."""
    traits = channel("http://127.0.0.1:1").traits

    assert (traits.per_recipient, traits.on_unknown) == (timedelta(seconds=1), OnUnknown.HOLD)
    assert "no idempotency keys" in traits.why_on_unknown
