"""The contract of a channel: every outcome, provoked against a real receiver on loopback."""

from __future__ import annotations

import asyncio
import time
from base64 import b64encode
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import timedelta
from importlib.metadata import EntryPoint, EntryPoints
from typing import Any, NamedTuple

import pytest
from pyreqwest.http import Url
from standardwebhooks import Webhook, WebhookVerificationError

from tidings.model.errors import Invalid, Misconfigured
from tidings.model.message import Message
from tidings.model.outcome import Done, Outcome, Reject, Retry, Unknown
from tidings.model.start_check import TOO_LATE, StartedTooLate
from tidings.model.task import Category, OnUnknown
from tidings.outbound.channels import registry
from tidings.outbound.channels.base import Channel
from tidings.outbound.channels.console import line
from tidings.outbound.channels.options import COMMON
from tidings.outbound.channels.registry import KINDS, build
from tidings.outbound.channels.webhook import WebhookChannel, WebhookSettings
from tidings.wire.http_client import MAX_SHOWN, HttpClient, HttpResponse, MaybeSent
from tidings.wire.ssrf_guard import ForbiddenUrl
from tidings.wire.webhook_signatures import parse_secret, verify

from ..time_limits import Limit
from .receiver import (
    Act,
    Receiver,
    answer,
    bad_header,
    black_hole,
    bomb,
    cut,
    drip,
    drip_head,
    endless,
    flood_of_1xx,
    hang_up_in_body,
    hang_up_in_head,
    head_only,
    no_http,
    receiving,
    refusing,
    silent,
)

pytestmark = pytest.mark.slow

SECRET = "whsec_" + b64encode(b"canary: a secret of the tests").decode()
ACCEPTED = 1_790_000_000_123_456
NOW = 1_790_000_060_000_000  # 2026-09-21 14:14:20
SHORT = timedelta(seconds=0.5)  # where the deadline is to end it
UNCONNECTED = timedelta(seconds=3)  # where the connect timeout, a third of it, is to end it well before
PATIENT = timedelta(seconds=20)  # where it must not, however busy the machine is

Make = Callable[[str, timedelta], Channel]


class Case(NamedTuple):
    """A kind of channel that speaks HTTP, and how to aim it at a URL."""

    make: Make
    recipient: Callable[[str], str]


def webhook(
    *, look_up: Callable[[str], Any] | None = None, now: Callable[[], int] = lambda: NOW, **options: Any
) -> WebhookChannel:
    """A signed webhook channel that may call this machine."""
    given = {"secrets": (SECRET,), "allow_private": True, "allow_http": True, "deadline": PATIENT, **options}
    return WebhookChannel(WebhookSettings(**given), now=now, look_up=look_up)


def sandbox(url: str, deadline: timedelta = PATIENT) -> Channel:
    """A sandbox channel aimed at a URL."""
    options = {"url": url, "deadline": deadline.total_seconds()}
    return build("phone", "sandbox", options, now=lambda: NOW)


CASES = {
    "webhook": Case(lambda url, deadline: webhook(deadline=deadline), lambda url: f"{url}/hook"),
    "sandbox": Case(sandbox, lambda url: "+15550100"),
}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    """Each kind that speaks HTTP."""
    return CASES[request.param]


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    """A receiver that does as it is told."""
    async with receiving() as ready:
        yield ready


def message(recipient: str, *, attempt: int = 1, **content: Any) -> Message:
    """A message to somebody."""
    content = {"text": "Grüße", "subject": "Hi", "data": {"n": 1}, **content}
    return Message("0190-a1", "default", "hooks", recipient, content, ACCEPTED, attempt)


async def attempt(case: Case, url: str, deadline: timedelta = PATIENT) -> Outcome:
    """What came of one attempt, which must end by its deadline, give or take a busy machine."""
    channel = case.make(url, deadline)
    limit = Limit(deadline.total_seconds() + 2)
    outcome = await channel.send(message(case.recipient(url)))
    assert not limit.is_over()
    await channel.close()
    return outcome


async def test_a_2xx_is_done(case: Case, receiver: Receiver) -> None:
    """The other side said yes."""
    for status in (200, 201, 202, 204):
        receiver.script(answer(status))
        outcome = await attempt(case, receiver.url)
        assert isinstance(outcome, Done)
    assert len(receiver.requests) == 4


@pytest.mark.parametrize(
    ("status", "category"),
    [(429, Category.THROTTLING)]
    + [(status, Category.TEMPORARY) for status in (408, 425, 500, 502, 503, 504, 520, 599)],
)
async def test_what_may_work_later_is_tried_again(
    case: Case, receiver: Receiver, status: int, category: Category
) -> None:
    """A4, F27: temporary or throttling, with the wait that was asked for; the news is of this receiver."""
    receiver.script(answer(status, retry_after="120"))
    outcome = await attempt(case, receiver.url)

    assert isinstance(outcome, Retry)
    assert (outcome.category, outcome.after, outcome.whole_channel) == (category, timedelta(minutes=2), False)
    assert str(status) in outcome.reason


@pytest.mark.parametrize(
    ("header", "wait"),
    [
        ("Mon, 21 Sep 2026 14:15:50 GMT", timedelta(seconds=90)),
        ("Sun, 20 Sep 2020 15:24:00 GMT", timedelta()),
        ("999999999", timedelta(hours=24)),
        ("-1", None),
        ("soon", None),
    ],
)
async def test_a_wish_to_wait_is_bounded(receiver: Receiver, header: str, wait: timedelta | None) -> None:
    """F27: the date form by the engine's clock, a cap, nothing negative, nonsense ignored."""
    receiver.script(answer(429, retry_after=header))
    channel = webhook()
    outcome = await channel.send(message(f"{receiver.url}/hook"))
    await channel.close()

    assert isinstance(outcome, Retry)
    assert outcome.after == wait


async def test_a_header_that_is_no_text_breaks_nothing(case: Case, receiver: Receiver) -> None:
    """F27, S18: a hostile receiver cannot make a channel raise."""
    receiver.script(bad_header)
    outcome = await attempt(case, receiver.url)

    assert isinstance(outcome, Retry)
    assert (outcome.category, outcome.after) == (Category.THROTTLING, None)


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 405, 409, 410, 413, 415, 418, 422, 451])
async def test_what_will_never_work_is_rejected(case: Case, receiver: Receiver, status: int) -> None:
    """A4, F28: permanent or validation; a receiver that knows us not is its own affair, not the channel's."""
    receiver.script(answer(status, b"no"))
    outcome = await attempt(case, receiver.url)

    assert isinstance(outcome, Reject)
    wrong = {400, 413, 422} | ({405, 415} if case is CASES["webhook"] else set())
    assert outcome.category is (Category.VALIDATION if status in wrong else Category.PERMANENT)
    assert not outcome.whole_channel


@pytest.mark.parametrize("status", [300, 301, 302, 303, 307, 308])
async def test_a_redirect_is_never_followed(case: Case, receiver: Receiver, status: int) -> None:
    """F28, S6: it is a failure, and nobody is called twice."""
    receiver.script(answer(status, location=f"{receiver.url}/inner"))
    outcome = await attempt(case, receiver.url)

    assert isinstance(outcome, Reject)
    assert outcome.category is Category.PERMANENT
    assert len(receiver.requests) == 1


async def test_a_refused_connection_was_certainly_not_sent(case: Case) -> None:
    """F22: a plain retry, no doubt."""
    with refusing() as url:
        outcome = await attempt(case, url)

    assert isinstance(outcome, Retry)
    assert outcome.category is Category.TEMPORARY


async def test_a_connection_that_is_never_made_was_certainly_not_sent(case: Case) -> None:
    """F23: silence at the connect ends before the deadline, so that it is no doubt."""
    with silent() as url:
        outcome = await attempt(case, url, UNCONNECTED)

    assert isinstance(outcome, Retry)


async def test_a_failed_handshake_was_certainly_not_sent(receiver: Receiver) -> None:
    """F22: TLS with somebody who does not speak it."""
    outcome = await attempt(CASES["webhook"], receiver.url.replace("http:", "https:"), UNCONNECTED)

    assert isinstance(outcome, Retry)
    assert receiver.requests == []


@pytest.mark.parametrize("act", [cut, hang_up_in_head, black_hole, drip_head, flood_of_1xx, no_http])
async def test_no_answer_after_the_request_left_is_unknown(case: Case, receiver: Receiver, act: Act) -> None:
    """F24, F25, F28: cut, silent, slow or senseless: perhaps it was done. The deadline ends it."""
    receiver.script(act)
    outcome = await attempt(case, receiver.url, SHORT)

    assert isinstance(outcome, Unknown)
    assert len(receiver.requests) == 1


@pytest.mark.parametrize("act", [drip, head_only, endless, bomb, hang_up_in_body])
async def test_the_status_line_decides_whatever_the_body_does(case: Case, receiver: Receiver, act: Act) -> None:
    """F26, S18: a body that drips, stalls, never ends, would explode or breaks off is cut."""
    receiver.script(act)
    outcome = await attempt(case, receiver.url, 2 * SHORT)

    assert isinstance(outcome, Done)


async def test_an_answer_is_read_raw_and_up_to_a_cap(receiver: Receiver) -> None:
    """S18: no decompression, no more bytes than asked for."""
    client = HttpClient(connect_within=PATIENT)
    for act, cap in ((bomb, 1_000_000), (endless, 1000)):
        receiver.script(act)
        got = await client.request(
            "POST", Url(receiver.url), headers={}, body=b"", deadline=PATIENT, pinned=None, max_response_size=cap
        )
        assert 0 < len(got.body_prefix) <= min(cap, 100_000)
    await client.close()


async def test_what_waits_for_a_new_client_past_its_rate_limit_slot_is_not_sent(receiver: Receiver) -> None:
    """While a process starts, building takes long; all that waited would arrive at once."""
    client = HttpClient(connect_within=PATIENT)

    async def post() -> HttpResponse:
        return await client.request(
            "POST", Url(receiver.url), headers={}, body=b"", deadline=PATIENT, pinned=None, max_response_size=9
        )

    TOO_LATE.set(lambda: True)
    told = await asyncio.gather(post(), post(), return_exceptions=True)
    assert [type(one) for one in told] == [StartedTooLate, StartedTooLate]
    assert not receiver.requests
    assert (await post()).status == 200
    await client.close()


async def test_a_captured_webhook_verifies_at_its_own_endpoint_only(receiver: Receiver) -> None:
    """S7: each tenant and URL has secrets of its own; a rotation signs with both. As a receiver checks it."""
    old, new = SECRET, "whsec_" + b64encode(b"another secret of the tests").decode()
    now = time.time_ns() // 1000
    channel = webhook(secrets=(new, old), now=lambda: now, url=f"{receiver.url}/own")
    here, there = f"{receiver.url}/a", f"{receiver.url}/b"
    await channel.send(message(here))
    await channel.send(message("default")._replace(tenant="bakery"))
    await channel.close()
    captured, own = receiver.requests

    def holds(request: Any, secret: str) -> bool:
        try:
            Webhook(secret).verify(request.body, dict(request.headers))
        except WebhookVerificationError:
            return False
        return True

    secrets = channel.endpoint_secrets("default", here)
    assert len(set(secrets)) == 2 and all(holds(captured, secret) for secret in secrets)
    assert webhook(secrets=(old,)).endpoint_secrets("default", here) == secrets[1:]
    others = [
        *channel.endpoint_secrets("default", there), *channel.endpoint_secrets("bakery", here), old, new,
    ]  # fmt: skip
    assert not any(holds(captured, secret) for secret in others)
    assert holds(own, channel.endpoint_secrets("default", "default")[0])
    with pytest.raises(ForbiddenUrl, match="belongs to the operator"):
        channel.endpoint_secrets("bakery", "default")


async def test_a_webhook_has_the_same_id_and_body_on_each_try_and_a_new_signature(receiver: Receiver) -> None:
    """F24, S7: what a receiver needs to remove duplicates, and to believe us."""
    clock = [NOW]
    channel = webhook(now=lambda: clock[0])
    receiver.script(answer(500))
    for number in (1, 2):
        await channel.send(message(f"{receiver.url}/hook?a=1", attempt=number))
        clock[0] += 60_000_000
    await channel.close()

    first, second = receiver.requests
    assert first.path == "/hook?a=1"
    assert first.body == second.body
    assert first.headers["webhook-id"] == second.headers["webhook-id"] == "0190-a1"
    for request, at in ((first, NOW), (second, NOW + 60_000_000)):
        assert request.headers["webhook-timestamp"] == str(at // 1_000_000)
        [secret] = channel.endpoint_secrets("default", f"{receiver.url}/hook?a=1")
        assert verify([parse_secret(secret)], request.headers, request.body, now=at // 1_000_000) == "0190-a1"
    assert first.headers["content-type"] == "application/json"
    assert first.json == {
        "type": "message",
        "timestamp": "2026-09-21T14:13:20.123456Z",
        "data": {"id": "0190-a1", "to": f"{receiver.url}/hook?a=1", "text": "Grüße", "subject": "Hi", "data": {"n": 1}},
    }


async def test_the_word_default_stands_for_the_channels_own_url(receiver: Receiver) -> None:
    """A channel with one receiver needs no URL per message."""
    channel = webhook(url=f"{receiver.url}/own")
    channel.check("default", {})
    assert isinstance(await channel.send(message("default")), Done)
    await channel.close()

    assert receiver.requests[0].path == "/own"


async def test_the_phone_gets_the_attempt_and_gives_a_receipt(receiver: Receiver) -> None:
    """The pretend phone can tell a retry from a twin."""
    channel = sandbox(receiver.url)
    outcome = await channel.send(message("+15550100", attempt=3))
    receiver.script(answer(200, b"[]"), answer(200, b'{"receipt": 5}'))
    strange = [await channel.send(message("+15550100")) for _ in range(2)]
    await channel.close()

    assert outcome == Done(receipt="r-1")
    assert strange == [Done(), Done()]
    assert receiver.requests[0].path == "/sandbox/messages"
    assert receiver.requests[0].json == {
        "id": "0190-a1",
        "to": "+15550100",
        "text": "Grüße",
        "subject": "Hi",
        "data": {"n": 1},
        "attempt": 3,
    }


@pytest.mark.parametrize("host", ["hooks.invalid", "hooks.invalid.", "HOOKS.invalid", "bücher.invalid"])
async def test_a_name_is_called_at_the_address_that_was_checked(receiver: Receiver, host: str) -> None:
    """S6: the system would not find this name, so only the pin can have led here; the Host stays."""

    async def look_up(_: str) -> Sequence[str]:
        return ["127.0.0.1"]

    channel = webhook(look_up=look_up)
    outcome = await channel.send(message(f"http://{host}:{receiver.port}/hook"))
    await channel.close()

    assert outcome == Done(receipt="200")
    expected = host.lower().replace("bücher", "xn--bcher-kva")
    assert receiver.requests[0].headers["host"] == f"{expected}:{receiver.port}"


@pytest.mark.parametrize("answers", [["127.0.0.1", "169.254.169.254"], ["0.0.0.0"], ["::ffff:169.254.169.254"]])
async def test_one_forbidden_address_and_nobody_is_called(receiver: Receiver, answers: list[str]) -> None:
    """S6: every answer must be allowed, even when private addresses are."""

    async def look_up(_: str) -> Sequence[str]:
        return answers

    channel = webhook(look_up=look_up)
    outcome = await channel.send(message(f"http://hooks.invalid:{receiver.port}/"))
    await channel.close()

    assert isinstance(outcome, Reject)
    assert outcome.category is Category.VALIDATION
    assert receiver.connections == 0


async def test_a_name_that_cannot_be_looked_up_is_tried_later(receiver: Receiver) -> None:
    """S6, F22: nobody is called, and nothing was sent."""

    async def look_up(_: str) -> Sequence[str]:
        raise OSError("no such name")

    channel = webhook(look_up=look_up)
    outcome = await channel.send(message(f"http://hooks.invalid:{receiver.port}/"))
    await channel.close()

    assert isinstance(outcome, Retry)
    assert receiver.connections == 0


async def test_a_real_look_up_is_pinned_too(receiver: Receiver) -> None:
    """S6: through the system's own name service."""
    channel = webhook()
    outcome = await channel.send(message(f"http://localhost:{receiver.port}/"))
    await channel.close()

    assert outcome == Done(receipt="200")


@pytest.mark.parametrize("spelling", ["127.0.0.1", "2130706433", "0x7f000001", "127.1", "[::ffff:127.0.0.1]"])
async def test_without_leave_this_machine_is_never_called(receiver: Receiver, spelling: str) -> None:
    """S6: refused when the message is accepted, and once more when it is sent."""
    channel = webhook(allow_private=False, ports=frozenset({receiver.port}))
    url = f"http://{spelling}:{receiver.port}/"
    with pytest.raises(Invalid) as caught:
        channel.check(url, {})
    outcome = await channel.send(message(url))
    await channel.close()

    assert caught.value.field == "to"
    assert isinstance(outcome, Reject)
    assert outcome.category is Category.VALIDATION
    assert receiver.connections == 0


async def test_proxies_of_the_environment_are_ignored(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    """S6: a proxy would call what we must not."""
    async with receiving() as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        outcome = await attempt(CASES["webhook"], receiver.url)

        assert isinstance(outcome, Done)
        assert proxy.connections == 0


@pytest.mark.parametrize("act", [answer(500, SECRET.encode() + b"\x1b[2J\x00\r\n" + b"A" * 9000), cut])
async def test_what_is_shown_of_an_answer_is_short_escaped_and_without_secrets(
    receiver: Receiver, act: Act, caplog: pytest.LogCaptureFixture
) -> None:
    """S6, S9: neither our secret, nor the URL's query, nor a control character gets into history or logs."""
    caplog.set_level("DEBUG")
    receiver.script(act)
    channel = webhook()
    outcome = await channel.send(message(f"{receiver.url}/hook?token=canary"))
    await channel.close()

    shown = outcome.reason if isinstance(outcome, Retry) else str(outcome)
    assert "canary" not in shown + caplog.text
    assert SECRET not in shown + caplog.text + repr(channel.traits)
    assert shown.isprintable()
    assert len(shown) < MAX_SHOWN + 60
    assert SECRET not in repr(WebhookSettings(secrets=(SECRET,)))


async def test_content_that_json_cannot_hold_is_rejected(case: Case, receiver: Receiver) -> None:
    """A channel gives back an outcome; it does not raise."""
    channel = case.make(receiver.url, PATIENT)
    outcome = await channel.send(message(case.recipient(receiver.url), data={"n": 2**70}))
    await channel.close()

    assert isinstance(outcome, Reject)
    assert receiver.connections == 0


async def test_connections_are_kept_and_a_closed_channel_sends_nothing(case: Case, receiver: Receiver) -> None:
    """One connection for messages in a row; after close a send is a plain retry."""
    channel = case.make(receiver.url, PATIENT)
    for _ in range(5):
        assert isinstance(await channel.send(message(case.recipient(receiver.url))), Done)
    await channel.close()
    outcome = await channel.send(message(case.recipient(receiver.url)))

    assert receiver.connections == 1
    assert isinstance(outcome, Retry)
    assert len(receiver.requests) == 5


async def test_a_request_in_flight_when_the_channel_closes_has_an_unknown_outcome(receiver: Receiver) -> None:
    """It left; nobody will hear the answer."""
    arrived = asyncio.Event()

    async def arrive(exchange: Any) -> None:
        arrived.set()
        await exchange.gone()

    receiver.script(arrive)
    channel = webhook()
    sending = asyncio.create_task(channel.send(message(f"{receiver.url}/")))
    await arrived.wait()
    await channel.close()

    assert isinstance(await sending, Unknown)


async def test_few_clients_serve_many_hosts_and_none_is_cut_when_it_is_forgotten(receiver: Receiver) -> None:
    """Clients are pinned and costly, so only the latest are kept; what is under way on another finishes."""
    released, arrived = asyncio.Event(), asyncio.Event()

    async def wait(exchange: Any) -> None:
        arrived.set()
        await released.wait()
        await answer(200, b"late")(exchange)

    async def post(number: int) -> bytes:
        url = Url(f"http://host{number}.invalid:{receiver.port}/")
        got = await client.request(
            "POST", url, headers={}, body=b"", deadline=PATIENT, pinned="127.0.0.1", max_response_size=100
        )
        return got.body_prefix

    client = HttpClient(connect_within=PATIENT, most=2)
    receiver.script(wait)
    late = asyncio.create_task(post(0))
    await arrived.wait()
    for number in range(1, 6):
        assert await post(number)
    released.set()

    assert await late == b"late"
    assert len(client._clients) == 2
    await client.close()


async def test_a_deadline_that_ends_while_connecting_is_never_called_not_sent_by_mistake() -> None:
    """R1: when the client cannot say whether the request left, it is a doubt."""
    client = HttpClient(connect_within=PATIENT)
    with silent() as url, pytest.raises(MaybeSent):
        await client.request("POST", Url(url), headers={}, body=b"", deadline=SHORT, pinned=None, max_response_size=1)
    await client.close()


# Every kind, and how a table of the configuration becomes one

NEEDED: dict[str, dict[str, object]] = {  # what a kind cannot do without
    "apprise": {"secret_url": "json://127.0.0.1/in"},
    "email": {"host": "smtp.example.org", "sender": "Tidings <hello@example.org>"},
    "http": {"url": "https://api.example.org/send"},
    "discord": {"webhook_id": "223704706495545344", "webhook_token": "3d89bb7572e0fb30"},
    "groupme": {"bot_id": "0123456789abcdef"},
    "slack": {"token": "xoxb-0123456789"},
    "twilio": {"account_sid": "AC" + "0" * 32, "auth_token": "0123456789", "sender": "+15550001111"},
    "telegram": {"token": "110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw"},
    "whatsapp_cloud": {"phone_number_id": "106540352242922", "access_token": "EAAtoken"},
}
RESENDS = frozenset({"console", "noop", "sandbox", "webhook"})  # all others hold what is in doubt


@pytest.mark.parametrize("kind", KINDS)
async def test_every_channel_kind_can_be_built_and_declares_on_unknown(kind: str) -> None:
    """The port is filled: a kind, traits with a reason, a look-up that admits what it cannot tell."""
    channel = build("mine", kind, NEEDED.get(kind, {}))

    assert channel.kind == kind
    assert channel.traits.on_unknown is (OnUnknown.RESEND if kind in RESENDS else OnUnknown.HOLD)
    assert channel.traits.why_on_unknown
    assert isinstance(await channel.lookup(message("x")), Unknown)
    await channel.close()
    await channel.close()


def test_another_package_brings_a_kind_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """One entry point is enough; what it brings is checked and configured like our own."""
    brought = EntryPoint("pigeon", "tidings.outbound.channels.noop:KIND", registry.GROUP)
    wrong = EntryPoint("owl", "tidings.outbound.channels.noop:NoopChannel", registry.GROUP)
    broken = EntryPoint("dodo", "no_such_package:KIND", registry.GROUP)
    known = EntryPoints([brought, wrong, broken])
    monkeypatch.setattr(registry, "entry_points", known.select)

    assert build("post", "pigeon", {"per_second": 2}).traits.per_second == 2
    with pytest.raises(Misconfigured, match="unknown option"):
        build("post", "pigeon", {"wings": 2})
    with pytest.raises(Misconfigured, match="is not a ChannelKind"):
        build("post", "owl", {})
    with pytest.raises(Misconfigured, match="cannot be loaded"):
        build("post", "dodo", {})


def test_an_option_under_the_name_of_another_system_is_recognized() -> None:
    """Mail programs say `from`; here it is `sender`."""
    with pytest.raises(Misconfigured, match=r"option 'from': unknown option. Did you mean 'sender'\?"):
        build("post", "email", {"from": "ada@example.org"})


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_takes_the_common_options(kind: str) -> None:
    """One table of options for what every channel has."""
    options: dict[str, object] = {
        "on_unknown": "hold",
        "deadline": "2m",
        "policy": "quick",
        "per_second": 5,
        "per_recipient": 1.5,
        "suppress_opt_outs": False,
    }
    assert set(options) == set(COMMON)
    traits = build("mine", kind, {**NEEDED.get(kind, {}), **options}).traits

    assert (traits.on_unknown, traits.deadline) == (OnUnknown.HOLD, timedelta(minutes=2))
    assert (traits.policy, traits.per_second) == ("quick", 5.0)
    assert (traits.per_recipient, traits.suppress_opt_outs) == (timedelta(seconds=1.5), False)


async def test_the_console_prints_one_line_that_cannot_lie(capsys: pytest.CaptureFixture[str]) -> None:
    """Time, recipient, text; a message cannot move the cursor or fake another line."""
    channel = build("screen", "console", {}, now=lambda: NOW)
    hostile = message("Ann", text="hi\n\x1b[2J12:00 Bob  fake")

    assert await channel.send(message("Ann", text="Grüße, Ann")) == Done()
    assert await channel.send(hostile) == Done()
    assert capsys.readouterr().out.splitlines() == [
        "2026-09-21T14:14:20.000Z  Ann  Grüße, Ann",
        "2026-09-21T14:14:20.000Z  Ann  hi\\n\\x1b[2J12:00 Bob  fake",
    ]
    assert line(hostile, NOW).count("\n") == 1


async def test_a_closed_output_is_our_own_fault_and_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A4: category system; the message is not lost with the pipe."""

    class Broken:
        def write(self, _: str) -> int:
            raise BrokenPipeError("gone")

    monkeypatch.setattr("sys.stdout", Broken())
    outcome = await build("screen", "console", {}).send(message("Ann"))

    assert isinstance(outcome, Retry)
    assert outcome.category is Category.SYSTEM


@pytest.mark.parametrize("options", [{}, {"delay": "1ms"}])
async def test_the_no_op_channel_says_done(options: dict[str, object]) -> None:
    """For benchmarks and drills, at once or after a while."""
    assert await build("nothing", "noop", options).send(message("x")) == Done()


@pytest.mark.parametrize(("kind", "recipient"), [("console", " "), ("sandbox", ""), ("webhook", "default")])
def test_a_recipient_that_can_never_be_reached_is_refused_at_once(kind: str, recipient: str) -> None:
    """Before the message is accepted; `default` needs a URL in the configuration."""
    with pytest.raises(Invalid) as caught:
        build("mine", kind, {}).check(recipient, {})
    assert caught.value.field == "to"
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("kind", "options", "field", "words"),
    [
        ("webhok", {}, "kind", "'webhook'"),
        ("carrier pigeon", {}, "kind", "Known names: "),
        ("webhook", {"deadlin": 5}, "deadlin", "'deadline'"),
        ("console", {"zzz": 5}, "zzz", "Known names"),
        ("webhook", {"deadline": "soon"}, "deadline", "duration"),
        ("webhook", {"deadline": 0}, "deadline", "greater than zero"),
        ("webhook", {"deadline": True}, "deadline", "duration"),
        ("webhook", {"on_unknown": "ask"}, "on_unknown", "'hold'"),
        ("webhook", {"on_unknown": ["hold"]}, "on_unknown", "'hold'"),
        ("webhook", {"per_second": 0}, "per_second", "above 0"),
        ("webhook", {"per_second": float("nan")}, "per_second", "above 0"),
        ("webhook", {"per_recipient": -1}, "per_recipient", "negative"),
        ("webhook", {"policy": ""}, "policy", "string"),
        ("webhook", {"allow_private": "yes"}, "allow_private", "true or false"),
        ("webhook", {"ports": [443, "x"]}, "ports", "[443, 8443]"),
        ("webhook", {"ports": []}, "ports", "[443, 8443]"),
        ("webhook", {"max_response_size": -1}, "max_response_size", "bytes"),
        ("webhook", {"secrets": "canary"}, "secrets", "whsec_"),
        ("webhook", {"secrets": [5]}, "secrets", "whsec_"),
        ("webhook", {"secrets": ["whsec_canary!"]}, "secrets", "base64"),
        ("webhook", {"url": "http://example.com/"}, "url", "allow_http"),
        ("webhook", {"url": "https://127.0.0.1/"}, "url", "allow_private"),
        ("sandbox", {"url": "phone"}, "url", "http://127.0.0.1:8025"),
        ("noop", {"delay": "1 month"}, "delay", "duration"),
    ],
)
def test_a_wrong_option_stops_the_start_with_a_remedy(
    kind: str, options: dict[str, object], field: str, words: str
) -> None:
    """Bad input: the error names the channel, the option and the remedy, and repeats no secret (S9)."""
    with pytest.raises(Misconfigured) as caught:
        build("mine", kind, options)
    said = str(caught.value)
    assert "'mine'" in said and words in said and "canary" not in said
    assert (caught.value.field, bool(caught.value.remedy)) == (field, True)


def test_a_full_table_becomes_a_channel() -> None:
    """As it stands in a TOML file."""
    options: dict[str, object] = {
        "url": "http://127.0.0.1:9/in",
        "secrets": [SECRET],
        "allow_private": True,
        "allow_http": True,
        "ports": [9],
        "max_response_size": 1024,
        "deadline": 20,
    }
    channel = build("hooks", "webhook", options)

    channel.check("default", {})
    channel.check("http://127.0.0.1:9/other", {})
    with pytest.raises(Invalid):
        channel.check("http://127.0.0.1:10/", {})
