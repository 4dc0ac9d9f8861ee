"""The log: every attempt can be found by the public id of its message, and unexpected errors have a traceback (A9)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tidings.config import InboundSettings
from tidings.inbound.sources.settings import read_source
from tidings.kernel.actor import Actor
from tidings.model.message import Message
from tidings.model.outcome import Done, Outcome, Unknown
from tidings.model.time import SECOND
from tidings.observability.events import StoreError
from tidings.observability.log import LogOptions, fan_out, log_sink
from tidings.observability.metrics import Metrics
from tidings.wire.webhook_signatures import parse_secret, signature_headers

from .harness import AppHarness, house
from .program import run, until
from .test_fleet_metrics import running

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def written(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def log_to(home: AppHarness, *also: Any, **options: Any) -> None:
    """Let the engine log as `tidings serve` does."""
    home.app.worker.runner._settler._emit = fan_out(log_sink(LogOptions(**{"form": "json", **options})), *also)


@pytest.mark.parametrize("is_postgres", [False, True], ids=["sqlite", "postgres"])
async def test_a_message_is_found_in_the_log_by_its_id(
    is_postgres: bool, sqlite_url: str, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    """Success, an exception of a channel and an unknown outcome: ids, tenant, attempt, category, duration."""

    def answer(message: Message) -> Outcome:
        if message.recipient == "bug":
            raise KeyError("a bug in a plug-in")
        return Unknown("no answer") if message.recipient == "lost" else Done("r")

    metrics = Metrics()
    async with house(request.getfixturevalue("postgres_url") if is_postgres else sqlite_url) as home:
        log_to(home, metrics.take)
        home.script("careful", answer)
        ids = {to: await home.accept(channel="careful", to=to) for to in ("fine", "bug", "lost")}
        await home.work()

    lines = {line["message"]: line for line in written(capsys) if "message" in line}
    assert set(lines) == set(ids.values())
    for line in lines.values():
        assert (line["tenant"], line["queue"], line["attempt"], line["logger"]) == ("default", "careful", 1, "tidings")
        assert line["time"].endswith("Z") and line["duration_ms"] >= 0 and line["node"]
    fine, bug, lost = (lines[ids[to]] for to in ("fine", "bug", "lost"))
    assert (fine["event"], fine["level"]) == ("attempt_succeeded", "info")
    assert (bug["event"], bug["level"], bug["category"]) == ("attempt_failed", "warning", "system")
    assert bug["exception"].startswith("Traceback") and bug["exception"].endswith("KeyError: 'a bug in a plug-in'")
    assert "in answer" in bug["exception"]
    assert lost["outcome"] == "unknown" and "exception" not in lost
    assert b"tidings_messages_unknown_total 1.0" in metrics.text()


async def test_lines_for_successes_can_be_turned_off(sqlite_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """By the setting, and by the level; a text log has none by default, because it is read on a terminal."""
    async with house(sqlite_url) as home:
        for options in ({"successes": False}, {"level": "warning"}, {"form": "text"}):
            log_to(home, **options)
            await home.accept()
            await home.work()
    assert "attempt_succeeded" not in capsys.readouterr().err


async def test_an_inbound_message_is_found_in_the_log_by_its_id(
    sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The line says which source it came from."""
    source = read_source("own", {"kind": "webhook", "secrets": [SECRET]}, production=True)
    async with house(sqlite_url, inbound=InboundSettings(sources={"own": source})) as home:
        log_to(home)
        await home.http.put("/v1/roster", json={"sender": "u7", "name": "Ann", "squad": "42"})
        body = b'{"id":"1","conversation":"desk","sender":"u7","name":"Ann","text":"hello"}'
        signed = signature_headers([parse_secret(SECRET)], "m1", home.clock.now() // SECOND, body)
        assert (await home.http.post("/inbound/own", content=body, headers=signed)).status_code == 200
        await home.work()
        (item,) = (await home.http.get("/v1/inbox")).json()["items"]
    (line,) = [line for line in written(capsys) if "inbound" in line]
    assert (line["event"], line["inbound"], line["source"]) == ("attempt_succeeded", item["id"], "own")


def test_errors_of_our_own_have_no_traceback() -> None:
    """An unreachable database is expected; its text says everything."""
    from tidings.model.errors import StoreUnavailable

    assert StoreError.of("claim", StoreUnavailable("no answer", remedy="check it")).exception is None
    assert "ZeroDivisionError" in (StoreError.of(Actor.__name__, ZeroDivisionError()).exception or "")


def test_the_log_goes_to_stdout_alone_if_asked(tmp_path: Path) -> None:
    """C9: stdout has nothing but JSON lines, so that a container platform can parse it."""
    (tmp_path / "tidings.toml").write_text('[channels.out]\nkind = "noop"\n')
    with running(tmp_path, "--port", "0", env={"TIDINGS_LOG_OUTPUT": "stdout"}) as served:
        served.hears("Press Ctrl-C to stop")
        sent = run("send", "--channel", "out", "--to", "ada", "--text", "x", folder=tmp_path)
        id_ = sent.stdout.partition("\t")[0]
        until(lambda: any(id_ in line for line in served.told), "the line about the message")
        assert served.stop() == 0
    lines = [json.loads(line) for line in served.told]
    assert {"node_joined", "attempt_succeeded"} <= {line["event"] for line in lines}
    assert any("dashboard" in line for line in served.logged)
