"""Apprise: everything else. What it is given, what its yes and no mean, and that its URLs stay secret."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from tidings.model.errors import CallerError, Misconfigured
from tidings.model.message import Message
from tidings.model.outcome import Done, Outcome, Reject, Retry, Skip, Unknown
from tidings.model.task import Category, OnUnknown
from tidings.outbound.channels.apprise import AppriseSettings, hidden
from tidings.outbound.channels.base import Channel, probe
from tidings.outbound.channels.registry import build

from ..receiver import Act, Receiver, answer, black_hole, cut, receiving, refusing

pytest.importorskip("apprise", reason="the extra apprise is not installed")

NOW = 1_790_000_060_000_000
TOKEN = "canary-token-0815"


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    """A receiver that does as it is told."""
    async with receiving() as ready:
        yield ready


def channel(url: str, **options: Any) -> Channel:
    """A channel for one Apprise URL."""
    return build("rest", "apprise", {"secret_url": url, "deadline": 20, **options}, now=lambda: NOW)


def json_url(receiver: Receiver, path: str = TOKEN) -> str:
    """A service of Apprise's that can be aimed at this machine."""
    return f"json://127.0.0.1:{receiver.port}/{path}"


def message(to: str = "default", **content: Any) -> Message:
    """A message to somebody."""
    return Message("0190-a1", "default", "rest", to, {"text": "Grüße", "subject": "Hi", **content}, NOW)


async def send(made: Channel, what: Message | None = None) -> Outcome:
    """What came of one attempt."""
    try:
        return await made.send(what or message())
    finally:
        await made.close()


async def test_apprise_gets_text_subject_and_type(receiver: Receiver) -> None:
    """And says yes."""
    outcome = await send(channel(json_url(receiver)), message(data={"type": "warning", "format": "text"}))

    assert outcome == Done()
    request = receiver.requests[0]
    assert request.path == f"/{TOKEN}"
    assert {key: request.json[key] for key in ("title", "message", "type")} == {
        "title": "Hi",
        "message": "Grüße",
        "type": "warning",
    }


async def test_the_recipient_may_be_part_of_the_url(receiver: Receiver) -> None:
    """`{to}`, escaped, so that it cannot become another service or host."""
    await send(channel(json_url(receiver, "to/{to}")), message("a/../b?x=1"))

    assert receiver.requests[0].path == "/to/a%2F..%2Fb%3Fx=1"  # one step of the path, no query


async def test_many_at_once_share_a_few_threads(receiver: Receiver) -> None:
    """Apprise blocks; the engine does not."""
    import asyncio

    made = channel(json_url(receiver))
    outcomes = await asyncio.gather(*(made.send(message()) for _ in range(30)))
    await made.close()

    assert outcomes == [Done()] * 30
    assert len(receiver.requests) == 30


@pytest.mark.parametrize(
    ("status", "kind", "category", "whole"),
    [
        (400, Reject, Category.VALIDATION, False),
        (401, Reject, Category.PERMANENT, True),
        (403, Reject, Category.PERMANENT, True),
        (404, Reject, Category.PERMANENT, False),
        (429, Retry, Category.THROTTLING, True),
        (503, Retry, Category.TEMPORARY, False),
        (500, Unknown, None, False),
        (502, Unknown, None, False),
    ],
)
async def test_a_logged_status_maps_to_a_retry_category(
    receiver: Receiver, status: int, kind: type, category: Category | None, whole: bool
) -> None:
    """A4: read from the only thing that Apprise tells, its words."""
    receiver.script(answer(status, b"{}"))
    outcome = await send(channel(json_url(receiver)))

    assert type(outcome) is kind
    if isinstance(outcome, Retry | Reject):
        assert (outcome.category, outcome.whole_channel) == (category, whole)


@pytest.mark.parametrize("scheme", ["json", "xml", "form", "ntfy", "gotify", "mmost"])
async def test_the_locked_apprise_words_a_refused_request_as_expected(receiver: Receiver, scheme: str) -> None:
    """The outcome is read from log lines: an upgrade that words them otherwise must fail here."""
    receiver.script(*[answer(429, b"{}")] * 3)
    outcome = await send(channel(f"{scheme}://127.0.0.1:{receiver.port}/{TOKEN}-{'a' * 12}"))

    assert isinstance(outcome, Retry)
    assert (outcome.category, outcome.whole_channel) == (Category.THROTTLING, True)


def test_almost_every_http_service_of_the_locked_apprise_logs_its_status() -> None:
    """Of the others a failure is unknown, and held; this list must not grow unnoticed."""
    import apprise

    sources = {file.stem: file.read_text() for file in (Path(apprise.__file__).parent / "plugins").rglob("*.py")}
    calling = {name: text for name, text in sources.items() if re.search(r"requests\.(post|get|put|request)\b", text)}
    silent = {name for name, text in calling.items() if not re.search(r"error=(%[sd]|\{)", text)}

    assert len(calling) > 100
    assert silent <= {"lark", "qq", "spike", "spugpush", "wxpusher"}


@pytest.mark.parametrize("act", [cut, black_hole])
async def test_a_failure_without_a_status_is_an_unknown_outcome(receiver: Receiver, act: Act) -> None:
    """F24: a lost answer looks the same as no connection; nobody can say."""
    receiver.script(act)

    assert isinstance(await send(channel(json_url(receiver) + "?rto=0.5", deadline=3)), Unknown)


async def test_the_deadline_ends_an_attempt(receiver: Receiver) -> None:
    """The thread may go on; the attempt is in doubt, and one that found no thread was not sent."""
    receiver.script(*[black_hole] * 8)
    made = channel(json_url(receiver) + "?rto=3", deadline=0.4)
    import asyncio

    outcomes = await asyncio.gather(*(made.send(message()) for _ in range(9)))
    await made.close()

    assert [type(outcome) for outcome in outcomes] == [Unknown] * 8 + [Retry]


async def test_a_closed_channel_sends_nothing() -> None:
    """And says so as a plain retry."""
    made = channel("json://127.0.0.1:9/x")
    await made.close()

    assert isinstance(await made.send(message()), Retry)


async def test_no_part_of_the_url_is_ever_shown(receiver: Receiver, capfd: pytest.CaptureFixture[str]) -> None:
    """S9: in no reason, log, repr or error, whatever level the log has and whatever the service says."""
    root, apprise = logging.getLogger(), logging.getLogger("apprise")
    printing, level = logging.StreamHandler(sys.stderr), root.level  # as a program that logs everything
    root.addHandler(printing)
    root.setLevel(logging.DEBUG)
    apprise.setLevel(logging.DEBUG)
    url = f"json://user-{TOKEN}:pass-{TOKEN}@127.0.0.1:{receiver.port}/{TOKEN}/{{to}}"
    receiver.script(answer(500, TOKEN.encode()), cut)
    said = [str(await send(channel(url), message(f"{TOKEN}"))) for _ in range(2)]
    with refusing() as nobody:
        said.append(str(await send(channel(nobody.replace("http", "json") + f"/{TOKEN}"))))
    with pytest.raises(Misconfigured) as caught:
        channel(f"nonsense://{TOKEN}")
    apprise.setLevel(logging.NOTSET)
    root.setLevel(level)
    root.removeHandler(printing)
    printed = "".join(capfd.readouterr())

    shown = "".join(said) + printed + str(caught.value) + repr(AppriseSettings(url))
    assert TOKEN not in shown


def test_everything_except_scheme_and_host_is_masked() -> None:
    """As it stands, and decoded."""
    assert {"secret%20key", "secret key", "token"} <= set(hidden("x://secret%20key@host.example/token"))
    assert "host.example" not in hidden("x://secret@host.example/token")


@pytest.mark.parametrize(
    ("url", "to", "content", "field"),
    [
        ("json://127.0.0.1/x", "ada", {}, "to"),
        ("json://127.0.0.1/{to}", " ", {}, "to"),
        ("json://127.0.0.1/x", "default", {"text": ""}, "text"),
        ("json://127.0.0.1/x", "default", {"text": "x" * 40_000}, "text"),
        ("json://127.0.0.1/x", "default", {"data": {"colour": 1}}, "data.colour"),
        ("json://127.0.0.1/x", "default", {"data": {"type": "loud"}}, "data.type"),
    ],
)
def test_invalid_messages_are_refused_with_a_remedy(url: str, to: str, content: dict[str, Any], field: str) -> None:
    """Bad input: before it is accepted."""
    with pytest.raises(CallerError) as caught:
        channel(url).check(to, {"text": "hi", **content})

    assert (caught.value.field, bool(caught.value.remedy)) == (field, True)


async def test_a_long_text_may_be_split(receiver: Receiver) -> None:
    """`long_text`: by Apprise, and if one part fails nobody can say what arrived."""
    made = channel(json_url(receiver), long_text="split")
    long = message(text="word " * 8_000)
    made.check("default", dict(long.content))
    outcome = await made.send(long)
    receiver.script(answer(200), answer(404))
    broken = await made.send(long)
    await made.close()

    assert outcome == Done() and isinstance(broken, Unknown)
    assert len(receiver.requests) == 4
    assert all(len(orjson.loads(one.body)["message"]) <= 32_768 for one in receiver.requests)


def test_the_rate_limit_of_a_service_is_apprises() -> None:
    """The limit is the engine's to keep, over all processes; one's own wins."""
    url = "ntfys://ntfy.example/topic"  # 5.5 seconds between two calls

    assert channel(url).traits.per_second == pytest.approx(1 / 5.5)
    assert channel(url, per_second=9).traits.per_second == 9
    assert channel("json://127.0.0.1/x").traits.per_second is None


async def test_unknown_outcomes_are_held_and_there_is_no_probe() -> None:
    """With the reason for both."""
    made = channel("json://127.0.0.1/x")

    assert made.traits.on_unknown is OnUnknown.HOLD and made.traits.why_on_unknown
    assert isinstance(await probe(made), Skip)


def test_a_missing_apprise_package_is_reported_with_the_command_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an extra."""
    monkeypatch.setitem(sys.modules, "apprise", None)
    with pytest.raises(Misconfigured, match=r"tidings\[apprise\]"):
        channel("json://127.0.0.1/x")
