"""Every fault of the sandbox against every kind of channel: its category, its consequence, and nothing lost.

By command, by recipient and by rate; each channel speaks its provider's own protocol to a real server.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, NamedTuple

import pytest

from tidings.app import App, build
from tidings.config import ChannelSettings, Settings
from tidings.kernel import retry
from tidings.kernel.clock import ManualClock
from tidings.model.errors import Invalid
from tidings.model.message import Draft, Message
from tidings.model.outcome import Done, Offline, Outcome, Reject, Retry, Unknown
from tidings.model.task import Category
from tidings.outbound.channels.registry import build as build_channel
from tidings.sandbox.faults import ON_COMMAND, FaultContext, FaultKind, FaultRule, decide, parse_rule, spend
from tidings.store.port import Step, Store
from tidings.wire.http_client import MAX_SHOWN

from .channels.conftest import Sandbox, serving

pytestmark = pytest.mark.slow

NOW = 1_790_000_060_000_000
ACCOUNT = "AC" + "0123456789abcdef" * 2
T, P, TH = Category.TEMPORARY, Category.PERMANENT, Category.THROTTLING


class Case(NamedTuple):
    """How to make a channel, whom it writes to, and below which path of the sandbox it lives."""

    kind: str
    options: Mapping[str, Any]
    to: str
    path: str


CASES: Mapping[str, Case] = {
    "telegram": Case("telegram", {"token": "1:abcdef"}, "4711", ""),
    "whatsapp_cloud": Case(
        "whatsapp_cloud", {"access_token": "EAA", "phone_number_id": "123456789"}, "+15551234567", ""
    ),
    "waha": Case("whatsapp_session", {"api_key": "key", "server": "waha"}, "+15551234567", "/waha"),
    "gateway": Case("whatsapp_session", {"server": "gateway"}, "+15551234567", "/gateway"),
    "evolution": Case("whatsapp_session", {"api_key": "key", "server": "evolution"}, "+15551234567", "/evolution"),
    "groupme": Case("groupme", {"token": "token"}, "12345678", "/v3"),
    "twilio": Case("twilio", {"account_sid": ACCOUNT, "auth_token": "token", "sender": "Tidings"}, "+15551234567", ""),
    "slack": Case("slack", {"token": "xoxb-token"}, "C0123456789", "/api"),
    "slack webhook": Case("slack", {"webhook_token": "T1/B1/token"}, "default", "/services"),
    "discord": Case("discord", {"webhook_id": "1", "webhook_token": "token"}, "default", "/api/v10"),
}
SESSIONS = ("waha", "gateway")


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> str:
    """Each provider."""
    return str(request.param)


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    """All pretend providers behind one address."""
    async with serving() as ready:
        yield ready


async def send(case: str, sandbox: Sandbox, **options: Any) -> Outcome:
    """What came of one attempt."""
    kind, given, to, path = CASES[case]
    base = {"base_url": sandbox.url + path, "deadline": "5s"}
    channel = build_channel("mine", kind, {**given, **base, **options}, now=lambda: NOW)
    try:
        return await channel.send(Message("0190-a1", "default", "mine", to, {"text": "hello"}, NOW))
    finally:
        await channel.close()


async def test_429_is_a_wait_for_the_whole_channel(case: str, sandbox: Sandbox) -> None:
    """A4: the account is too fast, not the message; and it was not delivered."""
    sandbox.break_("429", seconds=7)
    outcome = await send(case, sandbox)
    assert isinstance(outcome, Retry)
    assert (outcome.category, outcome.whole_channel) == (TH, True)
    assert [entry.delivered for entry in sandbox.ledger] == [False]


async def test_a_500_is_retried_or_unknown(case: str, sandbox: Sandbox) -> None:
    """A provider that says itself that it failed is tried again; a session's engine cannot know."""
    sandbox.break_("500")
    outcome = await send(case, sandbox)
    expected: type[Outcome] = Unknown if case in ("waha", "evolution") else Retry
    assert isinstance(outcome, expected)
    assert not isinstance(outcome, Retry) or (outcome.category, outcome.whole_channel) == (T, False)


@pytest.mark.parametrize(("fault", "delivered"), [("slow", True), ("lost", True), ("cut", False)])
async def test_no_answer_is_a_doubt(case: str, sandbox: Sandbox, fault: str, delivered: bool) -> None:
    """Time-out, lost answer, cut line: from here all look the same (F24, R1)."""
    sandbox.break_(fault, **({"seconds": 2} if fault == "slow" else {}))
    assert isinstance(await send(case, sandbox, deadline="1200ms"), Unknown)
    assert [entry.delivered for entry in sandbox.ledger] == [delivered]


async def test_an_answer_that_drips_ends_with_the_deadline(case: str, sandbox: Sandbox) -> None:
    """S18: it was delivered, so it is done where the status says so, else in doubt; never a plain retry."""
    sandbox.break_("drip", seconds=2)
    assert isinstance(await send(case, sandbox, deadline="1200ms"), Done | Unknown)
    assert [entry.delivered for entry in sandbox.ledger] == [True]


@pytest.mark.parametrize("fault", ["banned", "logged_out"])
async def test_a_ban_or_a_lost_login_stops_the_channel_for_a_person(case: str, sandbox: Sandbox, fault: str) -> None:
    """In the provider's own words; no message pays for it (A4)."""
    sandbox.break_(fault)
    outcome = await send(case, sandbox)
    if case in SESSIONS:
        assert isinstance(outcome, Offline)
        assert outcome.needs_person or (case, fault) == ("waha", "banned")
    else:
        assert isinstance(outcome, Reject)
        assert (outcome.category, outcome.whole_channel) == (P, True)
    assert [(entry.did, entry.delivered) for entry in sandbox.ledger] == [(FaultKind.REFUSED, False)]


@pytest.mark.parametrize("fault", ["html", "huge"])
async def test_a_page_in_between_is_judged_by_its_status(case: str, sandbox: Sandbox, fault: str) -> None:
    """Bad input: HTML, ten megabytes of it; the reason stays short and printable."""
    sandbox.break_(fault)
    outcome = await send(case, sandbox)
    assert isinstance(outcome, Unknown | Retry)
    said = outcome.evidence if isinstance(outcome, Unknown) else outcome.reason
    assert len(said) < MAX_SHOWN + 80 and said.isprintable()
    assert not isinstance(outcome, Retry) or outcome.category is T


async def test_a_fault_by_recipient_leaves_the_others_alone(sandbox: Sandbox) -> None:
    """The one in the rule is hit, everybody else is served."""
    sandbox.break_("banned", recipient="1")
    sandbox.break_("html", recipient="C1", channel="slack")
    assert isinstance(await send("telegram", sandbox), Done)
    assert isinstance(await send("slack", sandbox), Done)


def test_a_limit_hits_only_what_is_above_it() -> None:
    """By rate: a second's worth may come at once, then one in each interval, whatever was refused."""
    rules: tuple[FaultRule, ...] = (FaultRule(1, FaultKind.THROTTLED, 1.0, per_second=30),)
    taken = 0
    for tick in range(4000):  # a request in each millisecond, for four seconds
        now = tick / 1000
        fault, used = decide(FaultContext("twilio", "ada", 1), rules, now=now, draw=lambda: 0.0)
        assert used is not None
        taken += fault.kind is FaultKind.OK
        rules = spend(rules, used, now)
    assert 30 * 4 <= taken <= 30 * 5


@pytest.mark.parametrize(
    "command",
    [
        {"kind": "500", "per_second": 30},
        {"kind": "429", "per_second": 0.5},
        {"kind": "429", "per_second": 30, "times": 3},
        {"kind": "429", "per_second": "fast"},
        {"kind": "drip", "seconds": 601},
    ],
)
def test_a_senseless_limit_is_refused_with_what_would_be_right(command: object) -> None:
    """One sentence, and nothing is set."""
    with pytest.raises(Invalid, match=r"per_second|seconds"):
        parse_rule(command, id=1, now=0)


FAULTS = [kind for kind in ON_COMMAND if kind not in (FaultKind.REFUSED, FaultKind.GONE)]


async def test_nothing_is_lost_whatever_the_provider_does(store: Store, clock: ManualClock, sandbox: Sandbox) -> None:
    """One message per fault, each met once: in the end all are delivered, each doubt flagged (A12)."""
    app = telegram(store, clock, sandbox)
    await app.open()
    await app.worker.node.join()
    ids = {}
    for number, kind in enumerate(FAULTS, 1):
        more = {"seconds": 1} if kind in (FaultKind.SLOW, FaultKind.DRIP) else {}
        sandbox.break_(kind.value, recipient=str(number), times=1, **more)
        ids[kind] = (await app.messages.accept(Draft("bot", str(number), kind.value))).id
    for _ in range(12):
        await app.worker.node.beat()
        await app.worker.runner.step()
        await resume(app)
        clock.advance(61)
    shown = {kind: await app.messages.show(id_) for kind, id_ in ids.items()}
    await app.worker.stop()
    for channel in app.channels.values():
        await channel.close()

    assert {row["state"] for row in shown.values()} == {"sent"}
    copies = {kind: sum(entry.delivered for entry in sandbox.ledger if entry.id == ids[kind]) for kind in FAULTS}
    assert min(copies.values()) == 1, "everybody got it"
    twice = {kind for kind, count in copies.items() if count > 1}
    assert twice == {FaultKind.LOST, FaultKind.SLOW}, "only where nobody can know"
    for kind in twice:
        told = [line["detail"] for line in shown[kind]["history"] if line["detail"]]
        assert any("no answer after the request was sent" in detail for detail in told), "and it is in the history"


def telegram(store: Store, clock: ManualClock, sandbox: Sandbox) -> App:
    """An engine with one bot, which prefers twice to never."""
    options = {"token": "1:abcdef", "base_url": sandbox.url, "deadline": "500ms", "on_unknown": "resend",
               "policy": "drill"}  # fmt: skip
    policy = retry.parse_policy("drill", {"backoff": "fixed", "initial_delay": "1s", "max_attempts": 20})
    settings = Settings(
        channels={"bot": ChannelSettings("telegram", options)}, policies={"drill": policy}, sandbox=False
    )
    return build(settings, clock=clock, store=store)


async def resume(app: App) -> None:
    """What a person does once the account is well again."""
    for row in await app.store.read("queue_list"):
        if row["paused"]:
            await app.store.write([Step("queue_resume", {"name": row["name"]})])
