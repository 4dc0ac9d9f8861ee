"""Roll-out through its faces: the API and the command line (B14)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tidings.model.time import MINUTE, iso

from .harness import AppHarness, house, in_one_house
from .program import run


@pytest.fixture(params=["sqlite", "postgres"])
async def home(request: pytest.FixtureRequest) -> AsyncIterator[AppHarness]:
    """An engine with its API."""
    async with house(request.getfixturevalue(f"{request.param}_url")) as made:
        yield made


async def test_a_channel_is_let_out_step_by_step_through_the_api(home: AppHarness) -> None:
    """Observe, ten percent, back; the channel itself shows it."""
    path = "/v1/channels/out/rollout"
    observing = (await home.http.post(path, json={"mode": "observe", "reason": "first"})).json()
    assert (observing["mode"], observing["share"], len(observing["past"])) == ("observe", 100, 1)
    id_ = await home.accept()
    await home.work()
    assert (await home.show(id_))["state"] == "skipped"

    await home.http.post(path, json={"mode": "live", "share": 10})
    shown = (await home.http.get("/v1/channels/out")).json()
    assert (shown["mode"], shown["share"]) == ("live", 10)
    back = (await home.http.post(f"{path}/undo")).json()
    assert back["mode"] == "observe"
    listed = {row["channel"]: row["mode"] for row in (await home.http.get("/v1/rollout")).json()["items"]}
    assert listed == {"careful": "live", "console": "live", "out": "observe"}


async def test_a_report_comes_in_as_csv_or_ndjson_and_is_compared(home: AppHarness) -> None:
    """Larger than an ordinary body may be; a repeat changes nothing."""
    await home.http.post("/v1/channels/out/rollout", json={"mode": "shadow"})
    now = home.clock.now()
    await home.accept(to="ada")
    await home.accept(to="bob")
    await home.work()
    sheet = f"to,at,text,ref\nada,{iso(now)},hello,1\neve,{iso(now - MINUTE)},hello,2\nbad,never,hello,3\n"
    told = await home.http.post("/v1/channels/out/report", content=sheet, headers={"content-type": "text/csv"})
    assert told.json() | {"bad": []} == {"taken": 2, "known": 0, "refused": 1, "bad": []}
    assert told.json()["bad"][0]["line"] == 4
    line = json.dumps({"to": "max", "at": iso(now), "text": "x" * 1000})
    many = "\n".join(line.replace("max", f"max{n}") for n in range(2000))
    large = await home.http.post(
        "/v1/channels/out/report", content=many, headers={"content-type": "application/x-ndjson"}
    )
    assert large.json()["taken"] == 2000

    home.clock.advance(60)
    found = (await home.http.get("/v1/channels/out/compare", params={"since": "1h", "limit": 5})).json()
    assert found["counts"] == {
        "ours": 2, "theirs": 2002, "same": 1,
        "only_ours": 1, "only_theirs": 2001, "other_content": 0, "other_time": 0,
    }  # fmt: skip
    assert (len(found["differences"]), found["more"]) == (5, True)


@in_one_house(
    ("method", "path", "body", "status"),
    [
        ("POST", "/v1/channels/nowhere/rollout", {"mode": "observe"}, 404),
        ("POST", "/v1/channels/out/rollout", {"mode": "half"}, 422),
        ("POST", "/v1/channels/out/rollout", {"share": 200}, 422),
        ("POST", "/v1/channels/out/rollout", {"share": "10"}, 422),
        ("POST", "/v1/channels/out/rollout", {}, 422),
        ("POST", "/v1/channels/out/rollout/undo", {}, 409),
        ("POST", "/v1/channels/out/report", {}, 422),
        ("GET", "/v1/channels/out/compare?since=gestern", None, 422),
        ("GET", "/v1/channels/out/compare?tolerance=many", None, 422),
        ("GET", "/v1/channels/out/compare?since=1h&until=2h", None, 422),
        ("GET", "/v1/channels/nowhere/compare", None, 404),
    ],
)
async def test_bad_input_is_one_clear_sentence(
    home: AppHarness, method: str, path: str, body: dict[str, object] | None, status: int
) -> None:
    """Nothing is switched."""
    answer = await home.http.request(method, path, json=body)
    error = answer.json()["error"]

    assert (answer.status_code, bool(error["message"]), bool(error["remedy"])) == (status, True, True)
    assert (await home.http.get("/v1/channels/out/rollout")).json()["past"] == []


def test_the_command_line_does_the_same(tmp_path: Path) -> None:
    """Set, list, show, back, report, compare."""
    set_ = run("rollout", "set", "console", "--mode", "live", "--share", "10", folder=tmp_path)
    assert (set_.returncode, "share\t10" in set_.stdout) == (0, True), set_.stderr
    assert "console\tlive\t10" in run("rollout", "list", folder=tmp_path).stdout
    run("rollout", "undo", "console", folder=tmp_path)
    assert "share\t100" in run("rollout", "show", "console", folder=tmp_path).stdout
    (tmp_path / "sent.csv").write_text("address;at;text\nada;2026-11-16 09:00;hello\n")
    report = run("rollout", "report", "console", "sent.csv", "--timezone", "Asia/Kathmandu", folder=tmp_path)
    assert "taken\t1" in report.stdout, report.stderr
    words = ("--since", "2026-11-16T03:00:00Z", "--until", "2026-11-16T04:00:00Z", "--json")
    found = json.loads(run("rollout", "compare", "console", *words, folder=tmp_path).stdout)
    assert found["counts"]["only_theirs"] == 1
    assert found["differences"][0]["theirs"]["at"] == "2026-11-16T03:15:00.000Z"
    wrong = run("rollout", "set", "console", "--share", "500", folder=tmp_path)
    assert (wrong.returncode, "0 to 100" in wrong.stderr) == (2, True)
    missing = run("rollout", "report", "console", "nothing.csv", folder=tmp_path)
    assert (missing.returncode, "cannot be read" in missing.stderr) == (2, True)
