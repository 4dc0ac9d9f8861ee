"""The pages of people, templates, subscriptions, roll-out, plans and settings, used by their forms."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tidings.dashboard import forms as typed
from tidings.dashboard.charts import charts
from tidings.model.errors import Invalid
from tidings.model.message import Message
from tidings.model.outcome import Done, Outcome, Reject, Unknown
from tidings.model.task import Category
from tidings.model.time import MINUTE
from tidings.outbound.trend_sampler import MinuteCounts, QueueSample, ThroughputTrend
from tidings.store.statements import load_statements

from .harness import KEY, AppHarness, house
from .test_dashboard import forms, read, text

both = pytest.mark.parametrize("home", ["sqlite", "postgres"], indirect=True)


@pytest.fixture
async def home(request: pytest.FixtureRequest, sqlite_url: str) -> AsyncIterator[AppHarness]:
    """An engine on SQLite, or on what the test names."""
    on_postgres = getattr(request, "param", "sqlite") == "postgres"
    async with house(request.getfixturevalue("postgres_url") if on_postgres else sqlite_url) as built:
        yield built


async def press(home: AppHarness, path: str, **form: str) -> str:
    """Send a form that leads on to a page; gives that page as it is read."""
    answer = await home.http.post(path, data=form)
    assert answer.status_code == 303, text(answer.text)
    return text(await read(home, answer.headers["location"]))


async def refused(home: AppHarness, path: str, **form: str) -> str:
    """Send a form with a mistake; gives the page that says so."""
    answer = await home.http.post(path, data=form)
    assert 400 <= answer.status_code < 500
    return str(answer.text)


async def contact(home: AppHarness, name: str, **more: Any) -> str:
    """Somebody with an address on `out`; gives the id."""
    made = await home.app.outbound.contacts.create({"name": name, "addresses": {"out": name.lower()}, **more})
    return str(made.answer["id"])


# -- the frame


EMPTY = {
    "/contacts": "No contacts yet",
    "/lists": "No lists yet",
    "/suppressions": "No suppressions",
    "/templates": "No templates yet",
    "/subscriptions": "No subscriptions yet",
    "/upcoming": "Nothing is scheduled for these days",
    "/dead": "No dead letters",
    "/schedules": "Create a schedule",
    "/broadcasts": "Create a broadcast",
}


async def test_every_empty_page_says_how_to_start(home: AppHarness) -> None:
    """First five minutes: no page is a dead end."""
    for path, words in EMPTY.items():
        assert words in text(await read(home, path)), path


async def test_the_navigation_links_every_page_and_marks_the_current_one(home: AppHarness) -> None:
    """Groups in one row, the pages of a group in the next; each link is a page that is there."""
    first = await read(home, "/")
    nav = re.search(r"<nav.*?</nav>", first, re.S)
    assert nav is not None
    for start in re.findall(r'href="([^"]+)"', nav[0]):
        inner = re.search(r'<nav class="within".*?</nav>', await read(home, start), re.S)
        assert inner is not None
        for path in re.findall(r'href="([^"]+)"', inner[0]):
            page = await read(home, path)
            assert re.search(rf'<a href="{path}" aria-current="page">', page), path
            assert "style=" not in page and "onclick" not in page


# -- people


async def test_a_contact_is_created_found_edited_and_deleted(home: AppHarness) -> None:
    """The card of a person, by forms alone."""
    shown = await press(
        home,
        "/contacts",
        name="Ada",
        tags="driver, volunteer",
        language="de",
        attributes="city = Bonn\nage = 36",
        **{"addresses.out": "ada"},
    )
    assert "Ada" in shown and "active ada out Messages" in shown
    id_ = (await home.app.outbound.contacts.page()).items[0]["id"]

    assert "Ada" in text(await read(home, "/contacts?tags=driver&language=de"))
    assert "No contacts found" in text(await read(home, "/contacts?tags=cook"))
    assert "Ada" in text(await read(home, "/contacts?address=ada"))
    assert "No contacts found" in text(await read(home, "/contacts?address=grace"))

    await press(home, f"/contacts/{id_}/edit", name="Ada L.", attributes="age = 37", **{"addresses.out": "al"})
    card = await home.app.outbound.contacts.show(id_)
    assert (card["name"], card["tags"], card["language"]) == ("Ada L.", [], None)
    assert (card["addresses"], card["attributes"]) == ({"out": "al"}, {"age": "37"})

    await home.http.post(f"/contacts/{id_}/remove")
    assert (await home.http.get(f"/contacts/{id_}")).status_code == 404


async def test_a_contact_form_error_is_shown_next_to_its_field(home: AppHarness) -> None:
    """What was typed stays, nothing was kept."""
    await contact(home, "Grace")
    taken = await refused(home, "/contacts", name="Ada", **{"addresses.out": "grace"})
    assert "belongs to another contact" in text(taken) and 'id="wrong-addresses.out"' in taken
    assert 'value="Ada"' in taken
    odd = await refused(home, "/contacts", name="Ada", attributes="just words")
    assert 'id="wrong-attributes"' in odd and "city = Bonn" in text(odd)
    assert len((await home.app.outbound.contacts.page()).items) == 1


async def test_a_suppression_is_shown_on_the_contact_and_on_the_list(home: AppHarness) -> None:
    """An opt-out and the way back, from the contact's page and from the list of opt-outs."""
    id_ = await contact(home, "Ada")

    assert "suppressed" in await press(home, f"/contacts/{id_}/opt-out", address="ada", channel="out")
    assert "ada" in text(await read(home, "/suppressions"))
    assert "active ada out" in await press(home, f"/contacts/{id_}/opt-in", address="ada", channel="out")

    assert "all channels" in await press(home, "/suppressions/add", address="bob", reason="asked by phone")
    assert "asked by phone" in text(await read(home, "/suppressions?address=bob"))
    assert "No suppressions" in await press(home, "/suppressions/remove", address="bob")
    assert "There is no channel" in text(await refused(home, "/suppressions/add", address="x", channel="nope"))


async def test_a_list_has_members_and_a_saved_filter_selects_them(home: AppHarness) -> None:
    """Created, filled, emptied, renamed and deleted with forms."""
    await contact(home, "Ada", tags=["driver"])
    shown = await press(home, "/lists", name="crew")
    assert "No members yet" in shown
    crew = (await home.app.outbound.audience.find("crew"))["id"]

    assert "Ada" in await press(home, f"/lists/{crew}/add", channel="out", address="ada")
    assert "create the contact first" in await press(home, f"/lists/{crew}/add", channel="out", address="zoe")
    member = (await home.app.outbound.audience.members(crew)).items[0]["id"]
    assert "No members yet" in await press(home, f"/lists/{crew}/drop", contact=member)
    assert "team" in await press(home, f"/lists/{crew}/rename", name="team")
    assert "saved filter" in await press(home, "/lists", name="drivers", tags_all="driver")
    listed = text(await read(home, "/lists"))
    assert "tags all driver" in listed and "0 members" in listed
    assert "team" not in await press(home, f"/lists/{crew}/remove")
    assert "already" in text(await refused(home, "/lists", name="drivers"))


# -- templates


async def test_a_template_is_previewed_saved_revised_and_retired(home: AppHarness) -> None:
    """What it says to somebody is seen before anything is sent."""
    await contact(home, "Ada")
    form = {"text": "Hello {{ contact.name }} in {{ town }}", "variables": "town = Bonn"}
    tried = (await home.http.post("/templates/preview", data=form)).json()["preview"]
    assert "Hello Ada Example in Bonn" in text(tried) and "Example values used for town" in text(tried)
    broken = (await home.http.post("/templates/preview", data={"text": "{{ nobody }}"})).json()["preview"]
    assert "nobody" in text(broken)

    shown = await press(home, "/templates", name="welcome", **form)
    assert "welcome version 1" in shown
    shown = await press(home, "/templates/welcome/revise", text="Bye {{ contact.name }}", variables="")
    assert "welcome version 2" in shown and "Bye Ada Example" in shown
    to_ada = text(await read(home, "/templates/welcome?channel=out&to=ada"))
    assert "Bye Ada" in to_ada and "Example" not in to_ada.split("Preview")[1].split("Retire")[0]
    assert "version 1 of 2" in text(await read(home, "/templates/welcome?version=1"))

    assert "Retired" in await press(home, "/templates/welcome/retire")
    assert "welcome" in text(await read(home, "/templates?retired=yes"))
    assert "New broadcast" in await press(home, "/templates/welcome/restore")
    bad = await refused(home, "/templates", name="bad name", text="x")
    assert 'id="wrong-name"' in bad


def test_template_variables_round_trip_through_the_form() -> None:
    """The small language of the form, both ways."""
    said = "name: text = Ada\ntable: number = 7\ntown: text? = Bonn\nnote: text?"
    declared = typed.parse_declarations(said)

    assert declared["name"] == {"type": "text", "example": "Ada"}
    assert declared["town"] == {"type": "text", "required": False, "default": "Bonn"}
    full = {name: {"required": True, "default": None, "example": None} | part for name, part in declared.items()}
    assert typed.format_declarations(full) == said
    with pytest.raises(Invalid, match="is not a variable"):
        typed.parse_declarations("what is this")


# -- subscriptions


async def test_a_subscription_shows_its_secret_once(sqlite_url: str) -> None:
    """S: made, tested, switched off and on, and given another secret; the secret is on no other page."""
    async with house(sqlite_url, events_private=True) as home:
        made = await home.http.post(
            "/subscriptions", data={"url": "http://127.0.0.1:9/hook", "events": "message.*, broadcast.*"}
        )
        secret = re.search(r"whsec_[A-Za-z0-9+/=]+", made.text)
        assert made.status_code == 200 and secret is not None
        id_ = (await home.app.outbound.subscriptions.page()).items[0]["id"]
        page = await read(home, f"/subscriptions/{id_}")
        assert secret[0] not in page and "whsec_" not in await read(home, "/subscriptions")

        assert "Test event queued" in await press(home, f"/subscriptions/{id_}/test")
        assert "No events are delivered" in await press(home, f"/subscriptions/{id_}/pause")
        assert "inactive" in await press(home, f"/subscriptions/{id_}/test")
        assert "Send test event" in await press(home, f"/subscriptions/{id_}/resume")
        again = await home.http.post(f"/subscriptions/{id_}/rotate")
        assert "whsec_" in again.text and secret[0] not in again.text
        assert "No subscriptions yet" in await press(home, f"/subscriptions/{id_}/remove")
        bad = await refused(home, "/subscriptions", url="http://127.0.0.1:9/", events="nothing.*")
        assert 'id="wrong-events"' in bad


# -- roll-out, channels, settings


async def test_a_rollout_is_changed_and_undone(home: AppHarness) -> None:
    """B14: a share, its reason, and one button back."""
    assert "all recipients" in text(await read(home, "/rollout"))
    shown = await press(home, "/rollout/out/set", mode="live", share="10", reason="first week")
    assert "live, 10 %" in shown and "first week" in shown and "Undo (back to live, 100 %)" in shown
    assert "live, 100 %" in await press(home, "/rollout/out/undo")
    assert "use 0 to 100 percent" in await press(home, "/rollout/out/set", mode="live", share="101")
    assert (await home.http.get("/rollout/nope")).status_code == 404


async def test_a_connection_test_sends_nothing(home: AppHarness) -> None:
    """Its account is asked for, and what came of it is said."""
    page = await home.http.post("/channels/out/test")

    assert page.status_code == 200 and 'role="status"' in page.text
    assert await home.everything() == []


async def test_settings_are_shown_and_secrets_are_not(sqlite_url: str) -> None:
    """S: what holds, where it was set, and what it is for; never a key."""
    async with (
        house(sqlite_url, api_keys=(KEY,), origins={"port": "--port"}) as home,
        home.client(authorization=f"Bearer {KEY}", accept="text/html") as browser,
    ):
        page = (await browser.get("/settings")).text

    assert KEY not in page
    assert "message_retention" in page and "retention of finished messages" in page
    assert "--port" in text(page) and "channels" in text(page).lower()


# -- what goes out


@both
async def test_upcoming_messages_schedules_and_broadcasts_are_listed_by_day(home: AppHarness) -> None:
    """Scheduled messages, firings of schedules and broadcasts, each on its day, also behind an order key."""
    for number in range(3):
        await home.accept(to=f"user-{number}", at="2027-01-16T09:00:00Z", ordering_key="line")
    await home.accept(to="dawn", at="2027-01-16T22:00:00Z")
    await home.app.outbound.schedules.create(
        {"name": "Morning", "rule": {"daily": "09:00"}, "count": 3,
         "message": {"channel": "out", "to": "ada", "text": "hi"}},
        timezone=home.app.settings.timezone,
    )  # fmt: skip
    await home.app.outbound.broadcast_creator.create(
        {"name": "News", "channel": "out", "text": "x", "addresses": ["a", "b"], "at": "2027-01-17T12:00:00Z"}
    )

    week = text(await read(home, "/upcoming"))
    day = text(await read(home, "/upcoming/2027-01-16"))

    assert re.search(r"Sat 16 Jan 4 messages schedule Morning 09:00", week), week
    assert re.search(r"Sun 17 Jan schedule Morning 09:00 broadcast News 12:00 · 2 on out", week), week
    assert week.count("Morning") == 3 and "Fri 22" not in week  # today, tomorrow and the day after: three in all
    assert [day.index(f"user-{n}") for n in range(3)] == sorted(day.index(f"user-{n}") for n in range(3))
    assert day.index("user-2") < day.index("dawn")
    assert "Nothing is scheduled" in text(await read(home, "/upcoming?from=2027-06-01"))
    assert (await home.http.get("/upcoming/soon")).status_code == 422


async def test_a_day_with_many_upcoming_messages_is_paginated(home: AppHarness) -> None:
    """Bounded: a hundred at a time, by the time they are due."""
    for number in range(130):
        await home.accept(to=f"user-{number:03}", **{"in": f"{60 + number}s"})
    first = await read(home, "/upcoming/2027-01-15")
    later = re.search(r'href="(/upcoming/2027-01-15\?since=\d+)" rel="next"', first)

    assert later is not None and "user-099" in first and "user-100" not in first
    rest = await read(home, later[1])
    assert "user-100" in rest and "user-129" in rest and "user-099" not in rest


# -- composing


SCHEDULE = {"kind": "weekly", "rule": "mon 09:00", "timezone": "Europe/Berlin", "creates": "message", "channel": "out"}


async def test_a_schedule_is_previewed_saved_and_changed(home: AppHarness) -> None:
    """A8: the next firings are seen before it is saved, and again before a change."""
    form = SCHEDULE | {"to": "ada", "text": "Good morning", "name": "Round", "excluded_dates": "2027-01-18"}
    ahead = (await home.http.post("/schedules/preview", data=form)).json()["preview"]
    assert "Mon 25 Jan 2027 09:00:00 CET" in text(ahead) and "18 Jan" not in text(ahead)
    seen = await home.http.post("/schedules", data=form | {"do": "preview"})
    assert seen.status_code == 200 and "Mon 25 Jan 2027" in text(seen.text)
    assert (await home.app.outbound.schedules.page()).items == []

    assert "Round" in await press(home, "/schedules", **form)
    made = (await home.app.outbound.schedules.page()).items[0]
    filled = await read(home, f"/schedules/{made['id']}/edit")
    assert 'value="mon 09:00"' in filled and "Good morning" in filled

    await press(
        home, f"/schedules/{made['id']}/edit", **form | {"rule": "tue 10:00", "excluded_dates": "", "text": "Hi"}
    )
    after = await home.app.outbound.schedules.show(made["id"])
    assert after["message"] == {"channel": "out", "to": "ada", "text": "Hi"}
    assert "Tue" in after["next"] and after["excluded_dates"] == []


async def test_a_schedule_form_error_is_shown_next_to_its_field(home: AppHarness) -> None:
    """What was typed stays, nothing was saved."""
    for change, field in (
        ({"rule": "someday 09:00"}, "rule"),
        ({"timezone": "Mars/Base"}, "timezone"),
        ({"to": ""}, "to"),
        ({"count": "many"}, "count"),
        ({"channel": "nope"}, "channel"),
    ):
        page = await refused(home, "/schedules", **SCHEDULE | {"to": "ada", "text": "hello there"} | change)
        assert f'id="wrong-{field}"' in page, field
        assert "hello there" in page
    assert (await home.app.outbound.schedules.page()).items == []


@both
async def test_a_broadcast_is_previewed_created_and_started(home: AppHarness) -> None:
    """B1: how many get it and what they read is seen first; nothing is made by looking."""
    for name in ("Ada", "Grace"):
        await contact(home, name, tags=["crew"])
    await home.app.outbound.audience.create({"name": "crew", "filter": {"tags_all": ["crew"]}})
    await home.app.outbound.templates.create({"name": "hello", "text": "Hello {{ contact.name }}"})
    form = {"channel": "out", "list": "crew", "template": "hello", "trigger": "MANUAL", "name": "News"}

    seen = text((await home.http.post("/broadcasts/preview", data=form)).json()["preview"])
    assert "2 recipients on out" in seen and "Hello Ada" in seen and "when you start it manually" in seen
    looked = await home.http.post("/broadcasts", data=form | {"do": "preview"})
    assert looked.status_code == 200
    assert (await home.app.outbound.broadcasts.page()).items == []

    page = await press(home, "/broadcasts", **form)
    assert "Start now (2)" in page
    id_ = (await home.app.outbound.broadcasts.page()).items[0]["id"]
    await home.http.post(f"/broadcasts/{id_}/trigger")
    await home.work()
    assert {item["text"] for item in await home.everything()} == {"Hello Ada", "Hello Grace"}


async def test_a_broadcast_to_typed_addresses_at_a_time(home: AppHarness) -> None:
    """One a line; a name that comes twice gets it once; a mistake is told and nothing is made."""
    form = {"channel": "out", "addresses": "ada\ngrace\nada", "text": "hi", "trigger": "SCHEDULED"}
    seen = text((await home.http.post("/broadcasts/preview", data=form | {"at": "in 2 h"})).json()["preview"])
    assert "2 recipients on out, 1 duplicate removed" in seen

    assert 'id="wrong-at"' in await refused(home, "/broadcasts", **form)
    assert 'id="wrong-per_second"' in await refused(home, "/broadcasts", **form | {"per_second": "quick"})
    assert "The recipients are missing" in text(
        await refused(home, "/broadcasts", channel="out", text="hi", trigger="MANUAL")
    )
    shown = await press(home, "/broadcasts", **form | {"at": "in 2 h", "canary": "1", "skip_bad": "yes"})
    assert "ready 0 of 2" in shown
    assert len((await home.app.outbound.broadcasts.page()).items) == 1


# -- dead letters


@both
async def test_dead_letters_are_retried_at_a_rate(home: AppHarness) -> None:
    """B7: a rate limit protects a provider that has just recovered."""
    home.script("out", lambda _message: Reject(Category.PERMANENT, "no such number"))
    for _ in range(3):
        await home.accept()
    await home.work()
    which = {"channel": "out", "category": "permanent", "unknown": "no"}

    done = await press(home, "/dead/retry", per_second="0.5", **which)

    assert "3 retried, 0.5 per second" in done
    due = sorted(item["next_attempt_at"] for item in await home.everything())
    assert [at[17:19] for at in due] == ["00", "02", "04"]
    assert "use 0.01 to 10,000" in await press(home, "/dead/retry", per_second="20000", **which)


async def test_selected_dead_letters_are_retried_or_discarded(home: AppHarness) -> None:
    """B7: those that were ticked and no others; what may arrive twice only when that is ticked too."""
    no: dict[str, Outcome] = {"out": Reject(Category.PERMANENT, "no"), "careful": Unknown("cut")}

    def answer(message: Message) -> Outcome:
        return no["careful" if message.recipient == "held" else "out"]

    home.script("out", answer)
    home.script("careful", answer)
    bad, worse = await home.accept(to="bad"), await home.accept(to="worse")
    held = await home.accept(to="held", channel="careful")
    await home.work()
    assert forms(await read(home, "/dead")) >= {"/dead/chosen/retry"}

    async def choose(action: str, **more: str) -> str:
        answer = await home.http.post(f"/dead/chosen/{action}", data={"id": [bad, held]} | more)
        return text(await read(home, answer.headers["location"]))

    assert "1 retried; 1 uncertain skipped" in await choose("retry")
    assert "1 retried; 1 no longer dead letters" in await choose("retry", unknown="yes")
    home.clock.advance(minutes=1)
    await home.work()
    assert "2 discarded" in await choose("discard")
    states = {id_: (await home.show(id_))["state"] for id_ in (bad, worse, held)}
    assert states == {bad: "cancelled", worse: "failed", held: "cancelled"}
    assert (await home.http.post("/dead/chosen/explode", data={})).status_code == 404


# -- charts


@both
async def test_the_overview_charts_the_last_15_minutes(home: AppHarness) -> None:
    """Due, lag, rate and success, drawn from what was counted."""
    home.script("out", lambda message: Reject(Category.PERMANENT, "no") if message.recipient == "bad" else Done())
    await home.accept(to="bad")
    for _ in range(3):
        await home.accept()
    await home.work()
    home.clock.advance(minutes=1)
    await home.act()
    await home.accept()
    home.clock.advance(seconds=30)

    page = await read(home, "/")

    assert "due now 1" in text(page) and "lag 30.0 s" in text(page) and "success 75%" in text(page)
    assert "sent per minute 2" in text(page)  # three in the minute before, half of which lies within sixty seconds
    assert page.count("<polyline") == 2 and page.count("<rect") >= 30
    assert 'aria-label="messages sent, at most 3 per minute in the last 15 minutes"' in page


def test_chart_points_stay_within_the_chart() -> None:
    """Pure: whatever the numbers are."""
    now = 1_000_000 * MINUTE
    samples = [QueueSample(now - 20 * MINUTE, 0, 0.0), QueueSample(now, 10_000, 7_300.0)]
    minutes = [MinuteCounts(now - (14 - n) * MINUTE, n, 2 * n) for n in range(15)]

    drawn = charts(ThroughputTrend(now, samples, minutes))

    points = [tuple(map(float, point.split(","))) for chart in drawn for point in chart.line.split()]
    assert all(0 <= x <= 300 and 0 <= y <= 48 for x, y in points)
    assert all(0 <= y <= 48 and y + height <= 48.1 for chart in drawn for _, y, height in chart.bars)
    assert [chart.figure for chart in drawn] == ["10,000", "2 h", "27", "50%"]


READS = (
    *(
        "upcoming_counts",
        "upcoming_page",
        "upcoming_ordered",
        "upcoming_ordered_page",
        "schedule_upcoming",
        "broadcast_upcoming",
    ),
    *("attempt_tally_minutes", "contact_page", "list_page", "list_count", "suppression_page", "template_page"),
    *("subscription_page", "schedule_page", "broadcast_page"),
)
TABLES = "tasks|messages|history|schedules|broadcasts|tallies|contacts|list_members|suppressions"


@both
async def test_list_page_queries_use_an_index(home: AppHarness) -> None:
    """Rule 17: no list walks through a table that grows."""
    store: Any = home.app.store
    for name in READS:
        statement = load_statements(store.dialect)[name]
        if store.dialect == "sqlite":
            rows = store._connection.execute(f"explain query plan {statement.sql}", (None,) * len(statement.names))
            plan = "\n".join(row[3] for row in rows)
            assert not re.search(rf"SCAN (?:{TABLES}|[tca])\b(?! USING)", plan), f"{name}:\n{plan}"
            continue
        nulls = ", ".join("null" for _ in statement.names)
        async with store._connection() as connection:
            await connection.execute(f"prepare p as {statement.sql}")
            found = await connection.fetch(f"explain execute p({nulls})" if nulls else "explain execute p")
            await connection.execute("deallocate p")
        plan = "\n".join(row[0] for row in found)
        assert not re.search(rf"Seq Scan on (?:{TABLES})", plan), f"{name}:\n{plan}"
