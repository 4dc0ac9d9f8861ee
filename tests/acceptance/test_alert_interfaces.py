"""Alerts in the API, on the dashboard, in the metrics and on the command line (B11, C11)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import orjson
import pytest
from typer.testing import CliRunner, Result

from tidings.api import create_api
from tidings.cli.program import full_program
from tidings.observability.metrics import Metrics
from tidings.outbound.alerts.rules import RULES

from .harness import CHANNELS, AppHarness, house


@pytest.fixture
async def home(sqlite_url: str) -> AsyncIterator[AppHarness]:
    """An engine whose only process has fallen silent."""
    async with house(sqlite_url, alert_channel="out", alert_to=("ops",)) as built:
        built.clock.advance(310)
        (guard,) = built.app.worker._observers
        await guard.step()
        yield built


async def test_an_alert_is_listed_shown_and_acknowledged(home: AppHarness) -> None:
    """In the API and on the dashboard; a second acknowledgment is refused with the name of the first person."""
    (alert,) = (await home.http.get("/v1/alerts")).json()["items"]
    assert (alert["rule"], alert["state"], alert["severity"]) == ("scheduler_silent", "raised", "critical")
    page = (await home.http.get("/alerts")).text
    assert "no process polls for due messages" in page and "tidings docs runbooks/scheduler-silent" in page
    assert (await home.http.get(f"/v1/alerts/{alert['id']}")).json() == alert
    assert (await home.http.get("/v1/alerts/none")).status_code == 404

    nobody = await home.http.post(f"/alerts/{alert['id']}/acknowledge", data={})
    assert nobody.status_code == 303 and "problem=" in nobody.headers["location"]
    assert (await home.http.post(f"/v1/alerts/{alert['id']}/acknowledge", json={})).status_code == 422
    taken = await home.http.post(f"/v1/alerts/{alert['id']}/acknowledge", json={"by": "Ada <b>"})
    assert (taken.status_code, taken.json()["state"]) == (200, "acknowledged")
    again = await home.http.post(f"/v1/alerts/{alert['id']}/acknowledge", json={"by": "Eve"})
    assert again.status_code == 409
    assert "acknowledged by Ada &lt;b&gt;" in (await home.http.get("/alerts")).text
    assert [message["to"] for message in await home.everything()] == ["ops"]

    await home.app.worker.node.beat()
    home.clock.advance(15)
    await home.app.worker._observers[0].step()
    assert (await home.http.get("/v1/alerts")).json()["items"] == []
    assert "No open alerts" in (await home.http.get("/alerts")).text
    assert [row["state"] for row in (await home.http.get("/v1/alerts?past=true")).json()["items"]] == ["resolved"]
    assert "resolved" in (await home.http.get("/alerts?past=yes")).text
    assert (await home.http.get("/v1/alerts?old=1")).status_code == 422


async def test_metrics_contain_the_inputs_of_the_alert_rules(home: AppHarness) -> None:
    """Prometheus sees the values that the engine compares."""
    api = create_api(home.app, Metrics())
    async with httpx.AsyncClient(transport=httpx.ASGITransport(api), base_url="http://localhost") as caller:
        text = (await caller.get("/metrics")).text
    found = {
        name: float(value) for name, _, value in (line.rpartition(" ") for line in text.splitlines() if line[:1] != "#")
    }
    assert found["tidings_scheduler_silent_seconds"] == 310
    assert found['tidings_alerts_open{severity="critical"}'] == 1
    for name in ("messages_overdue", "missed_runs", "persistent_errors_total"):
        assert found[f"tidings_{name}"] == 0
    assert found["tidings_database_free_bytes"] > 0 and "tidings_database_response_seconds" in found


async def test_the_command_line_lists_and_acknowledges_alerts(
    home: AppHarness, sqlite_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """`tidings alerts list` and `ack`, beside the process that raised one."""
    monkeypatch.chdir(tmp_path)

    async def run(*words: str) -> Result:
        return await asyncio.to_thread(CliRunner().invoke, full_program(), [*words, "--database", sqlite_url])

    (alert,) = orjson.loads((await run("alerts", "list", "--json")).stdout)["items"]
    assert "scheduler_silent" in (await run("alerts", "list")).stdout
    taken = await run("alerts", "ack", alert["id"], "--by", "Ada")
    assert "acknowledged by Ada" in taken.stdout
    refused = await run("alerts", "ack", "no-such", "--by", "Ada")
    assert "there is no alert no-such" in str(refused.exception)


async def test_an_unknown_alert_channel_prevents_the_start(sqlite_url: str) -> None:
    """Both settings or neither, and a channel that exists."""
    from tidings.config import Settings
    from tidings.model.errors import Misconfigured

    for given in ({"alert_channel": "out"}, {"alert_to": ("ops",)}, {"alert_channel": "x", "alert_to": ("o",)}):
        with pytest.raises(Misconfigured, match="alert_channel"):
            Settings(database=sqlite_url, channels=CHANNELS, **given).check()


def test_every_rule_has_its_runbook() -> None:
    """A page each: what it means, what to look at, what to do."""
    from tests.docs.pages import DOCS

    for rule in RULES.values():
        text = (DOCS / "how-to" / f"{rule.runbook}.md").read_text()
        for heading in ("## What it means", "## Look", "## Do"):
            assert heading in text, f"{rule.runbook} has no {heading!r}"
        assert f"`{rule.name}`" in text
