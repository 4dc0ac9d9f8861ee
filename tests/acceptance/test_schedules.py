"""Schedules as people meet them: through the API, on the command line, and in a process that is killed."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from tidings.cli.errors import run_safely
from tidings.cli.program import program
from tidings.outbound.schedules.request_parser import SCHEDULE_FIELDS
from tidings.outbound.schedules.scheduler import Scheduler

from .harness import AppHarness, house, in_one_house
from .program import Serving, free_port, get, post, serving, until

both = pytest.mark.parametrize("home", ["sqlite", "postgres"], indirect=True)
MESSAGE = {"channel": "out", "to": "ada", "text": "good morning"}
SCHEDULE: dict[str, Any] = {"rule": {"daily": "09:00"}, "timezone": "Europe/Berlin", "message": MESSAGE}


@pytest.fixture
async def home(request: pytest.FixtureRequest, sqlite_url: str) -> AsyncIterator[AppHarness]:
    """An engine on SQLite, or on what the test names; it is Friday, 15 January 2027, 08:00 UTC."""
    on_postgres = getattr(request, "param", "sqlite") == "postgres"
    async with house(request.getfixturevalue("postgres_url") if on_postgres else sqlite_url) as built:
        yield built


async def tick(home: AppHarness, seconds: float) -> None:
    """Let time pass, let the scheduler look, and send what is due."""
    home.clock.advance(seconds)
    for actor in home.app.actors:
        if isinstance(actor, Scheduler):
            await actor.step()
    await home.work()


async def add(home: AppHarness, **change: Any) -> dict[str, Any]:
    answer = await home.http.post("/v1/schedules", json=SCHEDULE | change)
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


# -- the API


@both
async def test_a_schedule_is_made_fires_and_is_seen(home: AppHarness) -> None:
    """A8, E5: made, shown with its next run in words, fired, logged."""
    answer = await home.http.post("/v1/schedules", json=SCHEDULE)
    made = answer.json()

    assert answer.status_code == 201
    assert answer.headers["location"] == f"/v1/schedules/{made['id']}"
    assert made["rule_in_words"] == made["name"] == "every day at 09:00"
    assert made["next_at"] == "2027-01-16T08:00:00.000Z"
    assert made["next"] == "Sat 16 Jan 2027 09:00:00 CET (2027-01-16T08:00:00Z), in 1 d"
    await tick(home, 86_400)
    shown = (await home.http.get(f"/v1/schedules/{made['id']}")).json()
    assert (shown["runs"], shown["last_at"]) == (1, "2027-01-16T08:00:00.000Z")
    assert shown["next_at"] == "2027-01-17T08:00:00.000Z"
    log = (await home.http.get(f"/v1/schedules/{made['id']}/occurrences")).json()
    assert [(line["outcome"], line["created"]) for line in log["items"]] == [("created", shown["last_created"])]
    assert log["items"][0]["local"] == "2027-01-16T09:00:00+01:00"
    message = await home.show(shown["last_created"])
    assert (message["state"], message["scheduled_at"]) == ("sent", "2027-01-16T08:00:00.000Z")


@both
async def test_a_schedule_of_broadcasts_makes_one_at_its_time(home: AppHarness) -> None:
    """What a broadcast is made of is the schedule's; each occurrence is a broadcast of its own."""
    body = {"channel": "out", "text": "news", "addresses": ["ada", "bob"]}
    made = await add(home, message=None, broadcast=body, rule={"every": "1h"})
    await tick(home, 3600)

    shown = (await home.http.get(f"/v1/schedules/{made['id']}")).json()
    assert (shown["runs"], shown["problem"]) == (1, None)
    found = await home.app.store.read("broadcast_find", id=shown["last_created"], tenant="default")
    assert [(row["schedule"], row["channel"]) for row in found] == [(made["id"], "out")]


async def test_the_same_call_with_a_key_makes_one_schedule(home: AppHarness) -> None:
    """B4: the first answer again, and it says so; another body is a 422."""
    calls = [home.http.post("/v1/schedules", json=SCHEDULE, headers={"Idempotency-Key": "k"}) for _ in range(20)]
    answers = await asyncio.gather(*calls)

    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert sum("idempotency-replayed" in answer.headers for answer in answers) == 19
    other = await home.http.post("/v1/schedules", json=SCHEDULE | {"name": "other"}, headers={"Idempotency-Key": "k"})
    assert other.status_code == 422
    assert len((await home.http.get("/v1/schedules")).json()["items"]) == 1


async def test_a_schedule_can_be_paused_resumed_run_ended_and_removed(home: AppHarness) -> None:
    """Each says what became of it; what its state does not allow is a 409."""
    id_ = (await add(home))["id"]
    place = f"/v1/schedules/{id_}"
    paused = (await home.http.post(f"{place}/pause")).json()
    assert (paused["state"], paused["next_at"]) == ("paused", None)
    assert (await home.http.post(f"{place}/pause")).status_code == 409
    resumed = (await home.http.post(f"{place}/resume")).json()
    assert (resumed["state"], resumed["next_at"]) == ("active", "2027-01-16T08:00:00.000Z")
    ran = await home.http.post(f"{place}/run", headers={"Idempotency-Key": "once"})
    again = await home.http.post(f"{place}/run", headers={"Idempotency-Key": "once"})
    assert ran.status_code == again.status_code == 201
    assert again.headers["idempotency-replayed"] == "true"
    assert ran.json() == again.json()
    assert [row["id"] for row in await home.everything()] == [ran.json()["id"]]
    assert (await home.http.post(f"{place}/end")).json()["state"] == "ended"
    assert (await home.http.post(f"{place}/run")).status_code == 409
    assert (await home.http.get("/v1/schedules", params={"state": "ended"})).json()["items"][0]["id"] == id_
    assert (await home.http.delete(place)).json() == {"id": id_, "removed": True}
    assert (await home.http.get(place)).status_code == 404


async def test_an_edit_is_seen_at_once(home: AppHarness) -> None:
    """Some fields, the others as they were."""
    id_ = (await add(home))["id"]
    changed = await home.http.patch(f"/v1/schedules/{id_}", json={"rule": {"daily": "18:00"}, "name": "evening"})

    assert changed.status_code == 200
    assert (changed.json()["name"], changed.json()["next_at"]) == ("evening", "2027-01-15T17:00:00.000Z")
    assert changed.json()["message"] == MESSAGE


async def test_a_preview_needs_no_schedule(home: AppHarness) -> None:
    """The next n firings with local times, and a note where a rule for the clocks applied."""
    body = {"rule": {"cron": "30 2 * * *"}, "timezone": "Europe/Berlin", "start": "2027-03-27", "n": 2}
    answer = (await home.http.post("/v1/schedules:preview", json=body)).json()

    assert answer["rule_in_words"] == "at 02:30 every day"
    assert [item["local"] for item in answer["items"]] == ["2027-03-27T02:30:00+01:00", "2027-03-28T03:00:00+02:00"]
    assert answer["items"][0]["note"] is None
    assert "does not exist" in answer["items"][1]["note"]
    assert (await home.http.get("/v1/schedules")).json()["items"] == []


async def test_a_preview_of_a_schedule_goes_on_from_where_it_stands(home: AppHarness) -> None:
    """As many as asked for, up to its end."""
    id_ = (await add(home, end="2027-01-18"))["id"]
    answer = (await home.http.get(f"/v1/schedules/{id_}/preview", params={"n": 10})).json()

    assert [item["local"][:10] for item in answer["items"]] == ["2027-01-16", "2027-01-17", "2027-01-18"]
    assert (await home.http.get(f"/v1/schedules/{id_}/preview", params={"n": 1000})).status_code == 422


BAD: list[Any] = [
    pytest.param({"timezone": "Europe/Berln"}, "timezone", "Europe/Berlin", id="unknown zone"),
    pytest.param({"rule": {"cron": "0 0 31 2 *"}}, "rule", "a day that its months have", id="31 February"),
    pytest.param({"start": "2027-02-02", "end": "2027-02-01"}, "end", "later", id="end before start"),
    pytest.param({"count": 0}, "count", "1 to", id="count 0"),
    pytest.param({"count": "many"}, "count", "10", id="count in words"),
    pytest.param({"message": MESSAGE | {"channel": "nope"}}, "message.channel", "out", id="unknown channel"),
    pytest.param({"rule": None}, "rule", "when", id="no rule"),
    pytest.param({"excluded_dates": "2027-01-01"}, "excluded_dates", "2026", id="excluded dates are no list"),
    pytest.param({"message": None, "broadcast": {"channel": "out"}}, None, "", id="broadcast to nobody"),
]


@in_one_house(("change", "field", "remedy"), BAD)
async def test_bad_input_gets_a_clear_answer_and_changes_nothing(
    home: AppHarness, change: dict[str, Any], field: str | None, remedy: str
) -> None:
    """One sentence, the field and the remedy; never a traceback."""
    answer: httpx.Response = await home.http.post("/v1/schedules", json=SCHEDULE | change)

    assert answer.status_code == 422, answer.text
    error = answer.json()["error"]
    assert field is None or error["field"] == field
    assert remedy in error["remedy"]
    assert (await home.http.get("/v1/schedules")).json()["items"] == []


@in_one_house("junk", [b"", b"[]", b"null", b"{", b'{"rule": []}', b'{"rule": {"cron": {}}}'])
async def test_junk_is_refused(home: AppHarness, junk: bytes) -> None:
    """Whatever comes, the answer is an envelope."""
    for path in ("/v1/schedules", "/v1/schedules:preview"):
        answer = await home.http.post(path, content=junk)
        assert answer.status_code in (400, 422)
        assert answer.json()["error"]["message"]


async def test_what_is_not_there_is_a_404(home: AppHarness) -> None:
    """For every call that names one."""
    for method, path in (
        ("GET", ""), ("PATCH", ""), ("DELETE", ""), ("POST", "/pause"), ("POST", "/resume"), ("POST", "/end"),
        ("POST", "/run"), ("GET", "/preview"), ("GET", "/occurrences"),
    ):  # fmt: skip
        body: object = {} if method == "PATCH" else None
        answer = await home.http.request(method, f"/v1/schedules/nope{path}", json=body)
        assert answer.status_code == 404, (method, path)


async def test_the_reference_of_the_machine_has_every_field(home: AppHarness) -> None:
    """What the description says can be sent is what is checked."""
    described = (await home.http.get("/openapi.json")).json()["paths"]["/v1/schedules"]["post"]
    properties = described["requestBody"]["content"]["application/json"]["schema"]["properties"]
    assert set(properties) == set(SCHEDULE_FIELDS)


# -- the command line


class Answer(NamedTuple):
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Tidings = Callable[..., Answer]


@pytest.fixture
def tidings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Tidings:
    """The program in this process; a folder of its own, nothing set by accident."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("TIDINGS_")]:
        monkeypatch.delenv(name)

    def call(*words: str) -> Answer:
        capfd.readouterr()
        code = run_safely(lambda **options: program(["schedules", *words], prog_name="tidings", **options))
        return Answer(code, *capfd.readouterr())

    return call


TO_ADA = ("--channel", "phone", "--to", "ada", "--text", "hi")


def test_a_schedule_from_the_command_line(tidings: Tidings) -> None:
    """Added, listed, shown, edited, run, logged, paused, resumed, ended, removed."""
    made = tidings("add", "--weekly", "mon, fri 09:00", "--timezone", "Europe/Berlin", *TO_ADA, "--json").json
    id_ = made["id"]
    assert made["rule"] == {"weekly": {"on": ["mon", "fri"], "at": ["09:00:00"]}}
    assert f"{id_}\tactive\t{made['next_at']}" in tidings("list").out
    assert "every Monday and Friday at 09:00" in tidings("show", id_).out
    changed = tidings("edit", id_, "--daily", "10:00", "--text", "bye", "--end", "2099-01-01", "--json").json
    assert (changed["message"]["text"], changed["rule_in_words"]) == ("bye", "every day at 10:00")
    assert tidings("edit", id_, "--end", "", "--json").json["end"] is None
    ran = tidings("run", id_, "--json").json
    assert ran["id"] in tidings("log", id_).out
    assert tidings("pause", id_).out.startswith(f"{id_} paused")
    assert tidings("resume", id_).out.startswith(f"{id_} resumed")
    assert tidings("end", id_).code == 0
    assert tidings("list", "--state", "active", "--json").json["items"] == []
    assert tidings("remove", id_).code == 0
    assert (tidings("show", id_).code, tidings("list", "--json").json["items"]) == (2, [])


def test_a_preview_from_the_command_line(tidings: Tidings) -> None:
    """Of a rule that is not saved, with the note; and of a schedule."""
    words = ("--cron", "30 2 * * *", "--timezone", "Europe/Berlin", "--start", "2027-03-28", "--number", "1")
    lines = tidings("preview", *words).out.splitlines()
    assert lines[1].startswith("2027-03-28T01:00:00.000Z\t2027-03-28T03:00:00+02:00\tclocks go forward")
    id_ = tidings("add", "--every", "1h", *TO_ADA, "--count", "2", "--json").json["id"]
    assert len(tidings("preview", id_, "--json").json["items"]) == 2


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("add", "--daily", "09:00", "--timezone", "Berlin", *TO_ADA), "Did you mean Europe/Berlin?"),
        (("add", "--cron", "0 0 31 2 *", *TO_ADA), "never fires"),
        (("add", "--daily", "09:00", "--every", "1h", *TO_ADA), "daily and every at once"),
        (("add", *TO_ADA), "the rule is empty"),
        (("add", "--daily", "09:00"), "message or broadcast is missing"),
        (("add", "--daily", "09:00", "--message", "{"), "--message is not JSON"),
        (("add", "--daily", "09:00", "--count", "0", *TO_ADA), "count is 0"),
        (("preview",), "no schedule and no rule are given"),
        (("preview", "x", "--every", "1h"), "both given"),
        (("show", "nope"), "there is no schedule nope"),
    ],
)
def test_a_wrong_call_is_refused_in_one_sentence(tidings: Tidings, words: tuple[str, ...], told: str) -> None:
    """Exit code 2, the problem and the remedy."""
    answer = tidings(*words)
    assert answer.code == 2
    assert told in answer.err
    assert len(answer.err.strip().splitlines()) == 1


# -- for real


@pytest.mark.crash
@pytest.mark.timeout(120)
def test_a_killed_process_loses_no_schedule_and_sends_nothing_twice(tmp_path: Path) -> None:
    """E1, E4: kill -9 in the middle, start again: every occurrence once, each message in the phone once."""
    phone = free_port()
    env = {"TIDINGS_SANDBOX_PORT": str(phone)}
    with serving(tmp_path, env=env) as first:
        place = f"{first.address('dashboard')}/v1/schedules"
        body = {
            "rule": {"every": "1s"},
            "catch_up": "all",
            "message": {"channel": "phone", "to": "ada", "text": "tick"},
        }
        id_ = post(place, body)["id"]
        until(lambda: get(f"{place}/{id_}")["runs"] >= 3, "three occurrences")
        first.kill()
    with serving(tmp_path, env=env) as second:
        place = f"{second.address('dashboard')}/v1/schedules/{id_}"
        before = get(place)["runs"]
        until(lambda: get(place)["runs"] >= before + 3, "three more")
        post(f"{place}/pause", {})
        log = get(f"{place}/occurrences?limit=1000")["items"]
        made = [line["created"] for line in log if line["outcome"] == "created"]
        sent = f"{second.address('dashboard')}/v1/messages?state=sent&limit=1000"
        until(lambda: {row["id"] for row in get(sent)["items"]} == set(made), "each of them sent")
        arrived = _arrived(second)

    assert len(made) == len(set(made)) == len({line["at"] for line in log})
    assert arrived == set(made)


def _arrived(engine: Serving) -> set[str]:
    """The messages that Ada's phone shows; one shown twice says in its history why it was sent again."""
    shown = get(f"{engine.address('sandbox')}/sandbox/conversations?channel=phone&to=ada")["messages"]
    for again in (line["id"] for line in shown if line["copy"] > 1):
        history = get(f"{engine.address('dashboard')}/v1/messages/{again}")["history"]
        assert any("its node died" in (line["detail"] or "") for line in history), history
    return {line["id"] for line in shown}


def _clock_ahead(length: str) -> dict[str, str]:
    """What makes a process see another time of day; its stopwatch goes on as always."""
    found = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
    if not found:
        pytest.skip("faketime is not installed: apt install faketime")
    return {"LD_PRELOAD": str(found[0]), "FAKETIME": length, "FAKETIME_DONT_FAKE_MONOTONIC": "1"}


@pytest.mark.crash
@pytest.mark.timeout(120)
def test_a_clock_set_back_one_hour_makes_no_occurrence_twice(tmp_path: Path) -> None:
    """E4, B13: a process whose clock is an hour ahead dies; the next, set right, repeats nothing."""
    env = {"TIDINGS_SANDBOX_PORT": str(free_port())}
    with serving(tmp_path, env=env | _clock_ahead("+1h")) as first:
        place = f"{first.address('dashboard')}/v1/schedules"
        tick = {"message": {"channel": "phone", "to": "ada", "text": "tick"}, "catch_up": "all"}
        id_ = post(place, {"rule": {"every": "1s"}, **tick})["id"]
        until(lambda: get(f"{place}/{id_}")["runs"] >= 3, "three occurrences")
        first.kill()
    with serving(tmp_path, env=env) as second:
        place = f"{second.address('dashboard')}/v1/schedules"
        other = post(place, {"rule": {"every": "1s"}, **tick})["id"]
        until(lambda: get(f"{place}/{other}")["runs"] >= 3, "the right clock goes on")
        for each in (id_, other):
            post(f"{place}/{each}/pause", {})
        logs = [get(f"{place}/{each}/occurrences?limit=1000")["items"] for each in (id_, other)]
        everything = get(f"{second.address('dashboard')}/v1/messages?limit=1000")["items"]
        arrived = _arrived(second)

    assert all(len(log) == len({line["at"] for line in log}) >= 3 for log in logs)
    assert sorted(row["id"] for row in everything) == sorted(line["created"] for log in logs for line in log)
    assert arrived <= {row["id"] for row in everything}
