"""The SLA report: the share of messages sent within 60 seconds of their due time, by day and channel (C10, B2)."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from typer.testing import CliRunner

from tidings.cli.program import full_program
from tidings.model.message import Message
from tidings.model.outcome import Done, Outcome, Reject, Retry
from tidings.model.task import Category
from tidings.model.time import iso

from .harness import AppHarness, house


@pytest.fixture
async def home(request: pytest.FixtureRequest, sqlite_url: str) -> AsyncIterator[AppHarness]:
    """An engine on either database."""
    async with house(request.getfixturevalue("postgres_url") if request.param else sqlite_url) as built:
        yield built


def answer(message: Message) -> Outcome:
    """Fail the first attempt at some recipients: for a moment, for five minutes, or forever."""
    if message.recipient == "nobody":
        return Reject(Category.PERMANENT, "no such number")
    waits = {"soon": timedelta(seconds=5), "later": timedelta(minutes=5)}
    if message.attempt == 1 and message.recipient in waits:
        return Retry(Category.TEMPORARY, "busy", waits[message.recipient])
    return Done("r")


@pytest.mark.parametrize("home", [False, True], ids=["sqlite", "postgres"], indirect=True)
async def test_the_report_counts_messages_sent_on_time_by_day_and_channel(home: AppHarness) -> None:
    """A quick retry is on time, a slow one and a late start are not; failures and internal queues are left out."""
    home.script("out", answer)
    first = str(iso(home.clock.now()))[:10]
    for to in ("ada", "soon", "later", "nobody"):
        await home.accept(to=to)
    await home.work()
    home.clock.advance(6)
    await home.work()
    home.clock.advance(300)
    await home.work()
    expected = {"day": first, "channel": "out", "sent": 3, "on_time": 2, "share": 0.66667}
    report = (await home.http.get("/v1/sla")).json()
    assert report == {"target_seconds": 60, "items": [expected]}  # not yet packed into days

    home.clock.advance(180)
    await home.app.worker.node.beat()
    await home.app.worker.pruner.step()
    assert (await home.http.get("/v1/sla")).json() == report

    await home.accept(to="ada", channel="careful", **{"in": "1d"})
    home.clock.advance(86_400 + 90)
    await home.work()
    second = {"day": str(iso(home.clock.now()))[:10], "channel": "careful", "sent": 1, "on_time": 0, "share": 0.0}
    assert (await home.http.get("/v1/sla")).json()["items"] == [second, expected]
    assert (await home.http.get("/v1/sla?days=1")).json()["items"] == [second]
    assert (await home.http.get("/v1/sla?channel=out")).json()["items"] == [expected]
    exported = await home.http.get("/v1/sla?format=csv")
    assert exported.text.splitlines()[2] == f'"{first}","out","3","2","0.66667"'
    assert "attachment" in exported.headers["content-disposition"]
    for wrong, field in (("days=0", "days"), ("days=401", "days"), ("format=xml", "format"), ("dayz=1", "dayz")):
        refused = await home.http.get(f"/v1/sla?{wrong}")
        assert (refused.status_code, refused.json()["error"]["field"]) == (422, field)
    page = (await home.http.get("/sla?days=7")).text
    assert "66.67 %" in page and "50.00 %" in page  # of the day, and of both days
    await home.app.worker._heartbeat_once()
    recent = (await home.http.get("/sla")).text
    assert "Errors: temporary" in recent and re.search(r"<td>\d+ %</td><td>\d+\.\d %</td><td>[\d.]+ ms</td>", recent)
    assert ("Database connections" in recent) is (home.app.store.dialect == "postgres")
    assert "Export as CSV" in page and "No messages were sent" in (await home.http.get("/sla?channel=console")).text


def test_the_command_prints_a_table_json_or_csv(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`tidings sla`, on an engine that has sent nothing yet."""
    monkeypatch.setenv("TIDINGS_DATABASE", sqlite_url)
    program = full_program()

    def run(*words: str) -> tuple[int, str]:
        done = CliRunner().invoke(program, ["sla", *words])
        return done.exit_code, done.stdout

    assert run()[0] == 0
    assert json.loads(run("--json")[1])["items"] == []
    assert run("--csv") == (0, '"day","channel","sent","on_time","share"\n')
