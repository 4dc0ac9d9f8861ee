"""The shift calendar: what a day says, its week on every face, its history, undo and feed (D11)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from datetime import date as Date
from html import unescape
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tidings import config
from tidings.app import build
from tidings.inbound.calendar import settings
from tidings.inbound.calendar.builtin import BuiltinCalendar
from tidings.inbound.calendar.day_grid import (
    bounds,
    clock,
    command_problem,
    day_of,
    gaps,
    line,
    shifts,
    touched_slots,
    undo_commands,
)
from tidings.inbound.calendar.http import problem_of, read_day
from tidings.inbound.calendar.ical import feed, fold
from tidings.inbound.calendar.service import monday, read_week, week_name
from tidings.inbound.calendar.settings import CalendarSettings
from tidings.inbound.domain import CalendarCommand, ShiftAction, slot
from tidings.model.errors import Invalid, Misconfigured
from tidings.model.time import SECOND
from tidings.store.port import Store

from ..acceptance.harness import KEY, AppHarness, house

DATE = "20270115"  # a Friday; the clock of a house stands on that day
NIGHT = CalendarCommand(ShiftAction.ADD, "34", DATE, "1800", "0600")
BODY = {"action": "add", "squad": "34", "date": DATE, "start": "1800", "end": "0600", "who": "Ada"}


@pytest.fixture
async def home(request: pytest.FixtureRequest, sqlite_url: str) -> AsyncIterator[AppHarness]:
    """An engine on SQLite, or on what the test names."""
    on_postgres = getattr(request, "param", "sqlite") == "postgres"
    async with house(request.getfixturevalue("postgres_url") if on_postgres else sqlite_url) as built:
        yield built


both = pytest.mark.parametrize("home", ["sqlite", "postgres"], indirect=True)


async def ask(home: AppHarness, **more: str) -> dict[str, Any]:
    """A change through the API, done."""
    answer = await home.http.post("/v1/calendar/changes", json=BODY | more)
    assert answer.status_code == 202, answer.text
    await home.work()
    shown: dict[str, Any] = (await home.http.get(answer.headers["location"])).json()
    return shown


# -- what a day says


def test_every_half_hour_has_its_place() -> None:
    """From 0600 on; a night shift belongs to the day it starts, and 0600 as an end is the last (D10)."""
    assert [clock(place) for place in (0, 24, 36, 47, 48)] == ["0600", "1800", "0000", "0530", "0600"]
    assert all(slot(clock(place)) == place for place in range(48))
    assert bounds(NIGHT) == (24, 48)
    assert bounds(NIGHT._replace(start="0600")) == (0, 48)
    assert len(NIGHT.slots) == 24


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"squad": " "}, "squad"),
        ({"date": "20270230"}, "YYYYMMDD"),
        ({"date": "2027-01-15"}, "YYYYMMDD"),
        ({"start": "2460"}, "HHMM"),
        ({"start": "6pm"}, "HHMM"),
        ({"start": "1815"}, "grid of 30"),
        ({"end": "1200"}, "not after the start"),
        ({"start": "1800", "end": "1800"}, "not after the start"),
    ],
)
def test_an_invalid_command_is_explained(change: dict[str, Any], said: str) -> None:
    """Each with its own reason; what is on the grid passes (D10)."""
    problem = command_problem(NIGHT._replace(**change), grid=30)
    assert problem is not None and said in problem
    assert command_problem(NIGHT, grid=30) is None
    assert command_problem(NIGHT._replace(start="1830"), grid=30) is None
    assert "grid of 60" in str(command_problem(NIGHT._replace(start="1830"), grid=60))


def test_gaps_are_the_hours_without_any_crew() -> None:
    """Marked as without a crew is a gap too."""
    day = day_of(DATE, {"34": "c" * 24 + "n" * 24, "35": "." * 40 + "c" * 8})
    assert [(run.first, run.last) for run in gaps(day)] == [(24, 40)]
    assert [(run.mark, run.first, run.last) for run in shifts(day, "34")] == [("c", 0, 24), ("n", 24, 48)]
    assert gaps(day_of(DATE, {})) == [(".", 0, 48)]


def test_undo_commands_restore_each_run() -> None:
    """One command for each run of half hours that were alike."""
    assert undo_commands(NIGHT, "cccc" + "n" * 4 + "." * 16) == [
        CalendarCommand(ShiftAction.ADD, "34", DATE, "1800", "2000"),
        CalendarCommand(ShiftAction.NO_CREW, "34", DATE, "2000", "2200"),
        CalendarCommand(ShiftAction.REMOVE, "34", DATE, "2200", "0600"),
    ]


def test_weeks_are_named_as_by_iso_8601() -> None:
    """By name or by any day; turns of the year included."""
    assert read_week("2027-W02") == read_week("2027-01-15") == read_week("20270111") == Date(2027, 1, 11)
    assert week_name(Date(2027, 1, 1)) == "2026-W53"
    assert monday(Date(2027, 1, 17)) == Date(2027, 1, 11)
    for wrong in ("2027-W54", "soon", "2027-13-01"):
        with pytest.raises(Invalid, match="2027-W03"):
            read_week(wrong)


# -- the built-in calendar


async def test_a_repeated_idempotency_key_changes_nothing(store: Store) -> None:
    """Whatever came between (D11)."""
    calendar = BuiltinCalendar(store)
    first = await calendar.apply(NIGHT, "k1")
    await calendar.apply(NIGHT._replace(action=ShiftAction.NO_CREW), "k2")
    assert await calendar.apply(NIGHT, "k1") == first
    assert touched_slots(await calendar.day(DATE), NIGHT) == "n" * 24
    (kept,) = await store.read("shift_change_of", keys='["k2"]')
    assert (kept["was"], kept["became"]) == ("." * 24 + "c" * 24, "." * 24 + "n" * 24)


async def test_preview_shows_the_result_of_apply(store: Store) -> None:
    """And changes nothing; what is off the grid is refused by both doors."""
    calendar = BuiltinCalendar(store)
    seen = await calendar.preview(NIGHT)
    assert line(await calendar.day(DATE), "34") == "." * 48
    await calendar.apply(NIGHT, "k1")
    assert line(await calendar.day(DATE), "34") == line(seen, "34")
    assert (await calendar.apply(NIGHT._replace(start="1815"), "k2")).accepted is False


# -- the faces


@both
async def test_a_manual_change_goes_through_the_ledger(home: AppHarness) -> None:
    """Asked, done, confirmed; seen in the week and in the history (D11)."""
    done = await ask(home)
    assert (done["state"], done["before"], done["after"]) == ("confirmed", "." * 24, "c" * 24)
    week = (await home.http.get("/v1/calendar", params={"week": "2027-W02"})).json()
    assert (week["week"], week["previous"], week["next"]) == ("2027-W02", "2027-W01", "2027-W03")
    friday = week["days"][4]
    assert friday["squads"]["34"] == [{"start": "1800", "end": "0600", "crew": True}]
    assert friday["gaps"] == [{"start": "0600", "end": "1800", "crew": False}]
    page = (await home.http.get("/v1/calendar/changes", params={"day": "2027-01-15"})).json()
    assert [(item["id"], item["who"]) for item in page["items"]] == [(done["id"], "Ada")]
    assert (await home.http.get("/v1/calendar/changes", params={"day": "20270116"})).json()["items"] == []


@both
async def test_a_change_is_undone_through_the_ledger_and_only_once(home: AppHarness) -> None:
    """What was comes back; a second time is refused, and so is what was changed since (D11)."""
    await ask(home, action="no_crew", start="2000", end="2200")
    done = await ask(home)
    url = f"/v1/calendar/changes/{done['id']}/undo"
    at_once = await asyncio.gather(home.http.post(url), home.http.post(url))
    assert {answer.status_code for answer in at_once} <= {202, 409}
    await home.work()
    friday = (await home.http.get("/v1/calendar", params={"week": DATE})).json()["days"][4]
    assert friday["squads"]["34"] == [{"start": "2000", "end": "2200", "crew": False}]
    again = await home.http.post(url)
    assert again.status_code == 409 and "has already been undone" in again.text
    items = (await home.http.get("/v1/calendar/changes")).json()["items"]
    undoing = [item for item in items if item["undoes"] == done["id"]]
    assert len(undoing) == 3 and {item["state"] for item in undoing} == {"confirmed"}


async def test_undo_is_refused_after_a_later_change(home: AppHarness) -> None:
    """Said with what to do; nothing changes."""
    done = await ask(home)
    await ask(home, action="remove", start="2000", end="2200")
    answer = await home.http.post(f"/v1/calendar/changes/{done['id']}/undo")
    assert answer.status_code == 409
    assert "have been changed since" in answer.text
    assert (await home.http.post("/v1/calendar/changes/none/undo")).status_code == 404


async def test_an_invalid_change_is_refused_with_its_field(home: AppHarness) -> None:
    """One sentence with a remedy, and nothing is planned (D10)."""
    for body, field in (
        ({"squad": "99"}, "squad"),
        ({"action": "dance"}, "action"),
        ({"date": "yesterday"}, "date"),
        ({"start": "1815"}, "start"),
        ({"end": "1200"}, "end"),
        ({"end": None}, "end"),
        ({"colour": "red"}, "colour"),
        ({"who": "A\x00B"}, "who"),
    ):
        answer = await home.http.post("/v1/calendar/changes", json={**BODY, **body})
        assert answer.status_code == 422, answer.text
        assert answer.json()["error"]["field"] == field
    assert (await home.http.get("/v1/calendar/changes")).json()["items"] == []


async def test_a_repeated_key_asks_once(home: AppHarness) -> None:
    """The same Idempotency-Key and body: the same change; another body is refused."""
    key = {"Idempotency-Key": "k-1"}
    first = await home.http.post("/v1/calendar/changes", json=BODY, headers=key)
    second = await home.http.post("/v1/calendar/changes", json=BODY, headers=key)
    assert first.json()["id"] == second.json()["id"]
    other = await home.http.post("/v1/calendar/changes", json=BODY | {"squad": "35"}, headers=key)
    assert other.status_code == 409
    assert len((await home.http.get("/v1/calendar/changes")).json()["items"]) == 1


async def test_the_page_shows_a_week_with_its_gaps(home: AppHarness) -> None:
    """Squads and days, the night on the day it starts, gaps marked, weeks that can be linked to."""
    done = await ask(home)
    html = (await home.http.get("/calendar?week=2027-W02")).text
    text = " ".join(unescape(re.sub(r"<[^>]*>", " ", html)).split())
    assert "Shifts, 2027-W02" in text and "Fri 15 Jan" in text
    assert "1800–0600" in text and "Gaps" in text
    assert html.count('class="gap"') == 7 and "2027-W01" in html and 'rel="next"' in html
    assert f'action="/calendar/changes/{done["id"]}/undo?week=2027-W02"' in html
    answer = await home.http.post(f"/calendar/changes/{done['id']}/undo?week=2027-W02")
    assert (answer.status_code, answer.headers["location"]) == (303, "/calendar?week=2027-W02")
    await home.work()
    again = await home.http.post(f"/calendar/changes/{done['id']}/undo")
    assert "has+already+been+undone" in again.headers["location"]
    assert (await home.http.get("/calendar?week=soon")).status_code == 422


async def test_the_feed_is_for_those_with_its_token_or_a_key(sqlite_url: str) -> None:
    """Calendar programs send no headers; everybody else is turned away."""
    token = "feed-0123456789abcdef"
    chosen = config.InboundSettings(calendar=CalendarSettings(feed_token=token))
    async with house(sqlite_url, api_keys=(KEY,), inbound=chosen) as home:
        assert (await home.http.get("/calendar.ics")).status_code == 401
        assert (await home.http.get("/calendar.ics?token=wrong")).status_code == 401
        answer = await home.http.get(f"/calendar.ics?token={token}")
        assert (answer.status_code, answer.headers["content-type"]) == (200, "text/calendar; charset=utf-8")
        assert answer.text.startswith("BEGIN:VCALENDAR\r\nVERSION:2.0\r\n")
        assert (await home.client(**{"x-api-key": KEY}).get("/calendar.ics?squad=34")).status_code == 200
        assert (await home.http.get(f"/calendar.ics?token={token}&squad=99")).status_code == 404
        assert (await home.http.get("/calendar")).status_code == 401, "the token opens the feed alone"


def test_a_feed_has_stable_ids_and_true_instants() -> None:
    """A lengthened shift is the same event; nights over a change of clocks have their true length."""
    timezone = ZoneInfo("Europe/Berlin")
    short = feed(
        "shifts", [day_of("20270327", {"34": "." * 24 + "c" * 12 + "." * 12})], ["34"], timezone=timezone, now=0
    )
    long = feed("shifts", [day_of("20270327", {"34": "." * 24 + "c" * 24})], ["34"], timezone=timezone, now=SECOND)
    uid = re.findall(r"UID:(.+)\r\n", short)
    assert uid == re.findall(r"UID:(.+)\r\n", long) == ["20270327-1800-34@shifts.tidings"]
    assert "DTSTART:20270327T170000Z\r\nDTEND:20270328T040000Z\r\n" in long, "eleven hours in that night"
    assert all(len(piece.encode()) <= 75 for piece in fold("ä" * 200))
    assert "".join(fold("ä" * 200)).replace(" ", "") == "ä" * 200


# -- the calendar behind an address


def test_both_error_formats_of_the_calendar_are_errors() -> None:
    """And so is anything that does not say success."""
    assert problem_of({"success": True, "changeId": "b1"}) is None
    assert problem_of({"status": "error", "message": "no"}) == "no"
    assert problem_of({"success": False, "error": "never"}) == "never"
    assert problem_of({}) == "no success reported"
    assert problem_of({"success": "true"}) is not None


def test_a_days_segments_become_half_hours() -> None:
    """Inactive squads are marked as without a crew; a night goes on to 0600."""
    segments = [{"start_time": "18:00", "end_time": "06:00", "squads": [{"id": 34}, {"id": 35, "active": False}]}]
    day = read_day(DATE, {"day": DATE, "shifts": [{"segments": segments}]})
    assert (line(day, "34"), line(day, "35")) == ("." * 24 + "c" * 24, "." * 24 + "n" * 24)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"kind": "google"}, "inbound.calendar.kind"),
        ({"kind": "http"}, "inbound.calendar.url: missing"),
        ({"kind": "http", "url": "http://10.0.0.1/"}, "allow_private"),
        ({"kind": "http", "url": "https://calendar.example/?a=b"}, "has a query"),
        ({"url": "https://calendar.example/"}, "built-in"),
        ({"grid": 15}, "30 or 60"),
        ({"squads": []}, "list of names"),
        ({"feed_token": "short"}, "16 characters"),
        ({"sqads": ["1"]}, "Did you mean 'squads'"),
    ],
)
def test_settings_that_cannot_work_are_refused(options: dict[str, Any], said: str) -> None:
    """Naming the option and its remedy."""
    with pytest.raises(Misconfigured, match=re.escape(said)):
        settings.read(options)


def test_no_channel_may_have_the_calendars_name(tmp_path: Path) -> None:
    """Its queue is the is reserved."""
    channels = {"calendar": config.ChannelSettings("noop")}
    with pytest.raises(Misconfigured, match="is reserved"):
        build(config.Settings(database=f"sqlite:///{tmp_path}/t.db", channels=channels))


def test_settings_come_from_the_file_and_secrets_stay_hidden(tmp_path: Path) -> None:
    """[inbound.calendar], over it the environment."""
    file = tmp_path / "tidings.toml"
    file.write_text('[inbound.calendar]\nkind = "http"\nurl = "https://calendar.example/"\nsquads = [34, 35]\n')
    environ = {"TIDINGS_INBOUND__CALENDAR__TOKEN": "canary-token"}
    chosen = config.load(file, environ=environ)
    assert chosen.inbound.calendar is not None
    assert (chosen.inbound.calendar.squads, chosen.inbound.calendar.grid) == (("34", "35"), 60)
    assert chosen.inbound.calendar.token == "canary-token"
    assert chosen.describe()["inbound"]["calendar"]["token"] == "***"
    assert "canary-token" not in repr(chosen) + str(chosen.describe())
