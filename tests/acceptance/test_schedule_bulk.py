"""Many schedules at once: created from a file, filtered, paused, resumed, ended and removed by filter."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from .harness import AppHarness, house
from .program import run

CSV = {"content-type": "text/csv"}
ROWS = """name,daily,timezone,channel,to,text,tags,excluded_dates,count
Ada's round,09:00,Europe/Berlin,out,ada,good morning,"rounds,morning",2027-01-20,
Bob's round,09:00,Asia/Tokyo,out,bob,good morning,rounds,,3
Call,18:00,Europe/Berlin,careful,ada,call them,,,
"""


@pytest.fixture(params=["sqlite", "postgres"])
async def home(request: pytest.FixtureRequest) -> AsyncIterator[AppHarness]:
    """An engine on each database."""
    async with house(request.getfixturevalue(f"{request.param}_url")) as built:
        yield built


async def upload(home: AppHarness, content: str, **headers: str) -> list[dict[str, Any]]:
    """The answer lines of a bulk call."""
    answer = await home.http.post("/v1/schedules:bulk", content=content.encode(), headers=CSV | headers)
    assert answer.status_code == 200, answer.text
    return [orjson.loads(line) for line in answer.text.splitlines()]


async def names(home: AppHarness, **filters: str) -> list[str]:
    """The names of the schedules that match."""
    answer = await home.http.get("/v1/schedules", params=filters)
    assert answer.status_code == 200, answer.text
    return sorted(row["name"] for row in answer.json()["items"])


async def test_schedules_are_created_from_a_file_row_by_row(home: AppHarness) -> None:
    """A bad row is reported and skipped; a call that is repeated with its key creates nothing more."""
    bad = ROWS + "Bad,25:00,UTC,out,eve,hi,,,\nWorse,09:00,UTC,nowhere,eve,hi,,,\n"
    lines = await upload(home, bad, **{"idempotency-key": "rounds"})
    assert [line.get("id") is not None for line in lines[:-1]] == [True, True, True, False, False]
    assert [line["error"]["field"] for line in lines[3:5]] == ["rule", "message.channel"]
    assert lines[-1]["summary"] == {"accepted": 3, "refused": 2, "complete": True}
    again = await upload(home, bad, **{"idempotency-key": "rounds"})
    assert [(line.get("id"), line.get("error", {}).get("message")) for line in again] == [
        (line.get("id"), line.get("error", {}).get("message")) for line in lines
    ]

    page = (await home.http.get("/v1/schedules")).json()["items"]
    assert len(page) == 3
    first = page[-1]
    assert (first["tags"], first["excluded_dates"], first["timezone"]) == (
        ["rounds", "morning"], ["2027-01-20"], "Europe/Berlin"
    )  # fmt: skip
    assert first["message"] == {"channel": "out", "to": "ada", "text": "good morning"}
    ndjson = orjson.dumps({"rule": {"every": "1h"}, "message": first["message"]})
    more = await home.http.post("/v1/schedules:bulk", content=ndjson, headers={"content-type": "application/x-ndjson"})
    assert orjson.loads(more.text.splitlines()[-1])["summary"]["accepted"] == 1
    unknown = await upload(home, "dayly,channel,to,text\n09:00,out,ada,hi\n")
    assert unknown[0]["error"]["remedy"] == "did you mean 'daily'?"


async def test_schedules_are_found_by_each_filter(home: AppHarness) -> None:
    """By state, channel, recipient, time zone, a part of the name and a tag; also together, and page by page."""
    await upload(home, ROWS)
    ada, bob, call = "Ada's round", "Bob's round", "Call"
    assert await names(home) == [ada, bob, call]
    assert await names(home, channel="careful") == [call]
    assert await names(home, to="ada") == [ada, call]
    assert await names(home, timezone="Europe/Berlin", to="ada", tag="rounds") == [ada]
    assert await names(home, name="ROUND") == [ada, bob]
    assert await names(home, tag="rounds") == [ada, bob]
    assert await names(home, tag="round") == []
    assert await names(home, state="paused") == []
    first = (await home.http.get("/v1/schedules", params={"tag": "rounds", "limit": 1})).json()
    rest = (await home.http.get("/v1/schedules", params={"tag": "rounds", "after": first["next"]})).json()
    assert [row["name"] for row in (*first["items"], *rest["items"])] == [bob, ada]
    for bad in ({"state": "gone"}, {"timezone": "Mars"}, {"tagg": "x"}):
        assert (await home.http.get("/v1/schedules", params=bad)).status_code == 422


async def test_schedules_are_changed_by_filter_after_a_count(home: AppHarness) -> None:
    """A dry run counts and changes nothing; without a filter everything must be asked for."""
    await upload(home, ROWS)

    async def change(action: str, **body: Any) -> Any:
        answer = await home.http.post(f"/v1/schedules:{action}", json=body)
        return answer.json() if answer.status_code == 200 else answer.json()["error"]["field"]

    assert await change("pause", tag="rounds", dry_run=True) == {"matched": 2, "changed": 0, "more": False}
    assert await names(home, state="paused") == []
    assert await change("pause", tag="rounds") == {"matched": 2, "changed": 2, "more": False}
    assert await change("pause", tag="rounds") == {"matched": 0, "changed": 0, "more": False}
    assert await names(home, state="paused") == ["Ada's round", "Bob's round"]
    assert await change("resume", to="bob") == {"matched": 1, "changed": 1, "more": False}
    assert await names(home, state="active") == ["Bob's round", "Call"]
    assert await change("end") == "all"
    assert await change("end", all=True, tag="rounds") == "all"
    assert await change("end", all=True) == {"matched": 3, "changed": 3, "more": False}
    assert await change("remove", state="ended", channel="out") == {"matched": 2, "changed": 2, "more": False}
    assert await names(home) == ["Call"]


def test_the_command_line_imports_filters_and_changes_schedules(tmp_path: Path) -> None:
    """Each command, with JSON for programs; nothing is changed without --yes."""
    (tmp_path / "tidings.toml").write_text('[channels.out]\nkind = "noop"\n[channels.careful]\nkind = "noop"\n')
    (tmp_path / "rounds.csv").write_text(ROWS + "Bad,25:00,UTC,out,eve,hi,,,\n")

    def schedules(*words: str, code: int = 0) -> Any:
        done = run("schedules", *words, "--json", folder=tmp_path)
        assert done.returncode == code, done.stdout + done.stderr
        return json.loads(done.stdout) if done.stdout else done.stderr

    assert schedules("import", "rounds.csv", "--dry-run", code=2) == {"valid": 3, "refused": 1}
    assert schedules("list")["items"] == []
    assert schedules("import", "rounds.csv", "--key", "k", code=2) == {"created": 3, "refused": 1}
    assert [row["name"] for row in schedules("list", "--tag", "rounds")["items"]] == ["Bob's round", "Ada's round"]
    assert schedules("pause", "--tag", "rounds", "--dry-run")["matched"] == 2
    assert "this would pause 2 schedules. Add --yes" in schedules("pause", "--tag", "rounds", code=2)
    assert schedules("pause", "--tag", "rounds", "--yes") == {"matched": 2, "changed": 2}
    one = schedules("list", "--to", "bob")["items"][0]["id"]
    assert schedules("resume", one)["state"] == "active"
    assert "both given" in schedules("end", one, "--all", code=2)
    edited = schedules("edit", one, "--tag", "night", "--overlap", "skip")
    assert (edited["tags"], edited["overlap"]) == (["night"], "skip")
