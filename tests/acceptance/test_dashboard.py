"""The dashboard: what a user sees and can do, with and without JavaScript."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from datetime import timedelta
from html import unescape
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

import tidings.dashboard
from tidings.dashboard import template_filters
from tidings.dashboard.live_updates import KEEP_ALIVE, LiveStreams, SharedFragments
from tidings.kernel.clock import ManualClock
from tidings.model.errors import StoreUnavailable
from tidings.model.message import Message
from tidings.model.outcome import Done, Outcome, Reject, Retry, Unknown
from tidings.model.task import Category
from tidings.store.statements import load_statements

from .harness import KEY, AppHarness, house, in_one_house

both = pytest.mark.parametrize("home", ["sqlite", "postgres"], indirect=True)
HERE = Path(tidings.dashboard.__file__).parent


@pytest.fixture
async def home(request: pytest.FixtureRequest, sqlite_url: str) -> AsyncIterator[AppHarness]:
    """An engine on SQLite, or on what the test names."""
    on_postgres = getattr(request, "param", "sqlite") == "postgres"
    async with house(request.getfixturevalue("postgres_url") if on_postgres else sqlite_url) as built:
        yield built


def text(html: str) -> str:
    """What a person reads: no tags, single spaces."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", html)).split())


async def read(home: AppHarness, path: str) -> str:
    """A page that is there."""
    answer = await home.http.get(path)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    return str(answer.text)


def forms(html: str) -> set[str]:
    """Where the forms of a page lead."""
    return set(re.findall(r'<form[^>]* action="([^"]+)"', html))


# -- the overview


async def test_an_empty_overview_shows_how_to_send_the_first_message(home: AppHarness) -> None:
    """First five minutes: a form, and a line to copy."""
    page = text(await read(home, "/"))

    assert "No messages yet" in page
    assert 'tidings send --channel careful --to ada --text "hello" --in 10s' in page
    assert "start it again: the message is still delivered" in page
    assert "1 process running" in page


@both
async def test_the_overview_shows_message_counts(home: AppHarness) -> None:
    """Waiting, due, processing, sent, failed and uncertain, each with its number."""
    home.script("out", lambda message: Reject(Category.PERMANENT, "no") if message.recipient == "bad" else Done())
    home.script("careful", lambda _message: Unknown("the line went dead"))
    for to in ("bad", "good", "good"):
        await home.accept(to=to)
    await home.accept(channel="careful")
    await home.work()
    await home.accept(**{"in": "1h"})
    await home.accept()

    page = text(await read(home, "/"))

    for tile in ("waiting 1", "due 1", "processing 0", "sent 2", "failed 1", "uncertain 1"):
        assert f"{tile} " in page


async def test_the_overview_warns_when_no_process_is_running(home: AppHarness) -> None:
    """Messages are accepted and wait; the page says how to start a process."""
    await home.app.worker.node.leave()

    assert "No process is running" in text(await read(home, "/"))


async def test_channels_show_their_state_and_a_pause_or_resume_button(home: AppHarness) -> None:
    """A paused channel can be resumed, an open one paused."""
    answer = await home.http.post("/channels/out/pause")
    assert answer.headers["location"] == "/"
    page = await read(home, "/")

    assert "out noop paused Resume paused by hand" in text(page)
    assert "/channels/out/resume" in forms(page) and "/channels/out/pause" not in forms(page)
    assert "/channels/careful/pause" in forms(page)

    await home.http.post("/channels/out/resume")
    assert "/channels/out/pause" in forms(await read(home, "/"))
    assert (await home.http.post("/channels/out/explode")).status_code == 404
    assert (await home.http.post("/channels/nope/pause")).status_code == 404


async def test_user_input_is_escaped_on_every_page(home: AppHarness) -> None:
    """Texts, recipients and errors are shown as they are, on every page."""
    evil = "<script>alert(1)</script>"
    home.script("out", lambda _message: Reject(Category.PERMANENT, f"no {evil}"))
    id_ = await home.accept(to=f"<b>{evil}", text=evil, subject=evil, data={"x": evil}, ordering_key=evil)
    await home.work()

    for path in ("/", "/messages", f"/messages/{id_}", "/dead", f"/messages?to={evil}", f"/?accepted={id_}"):
        page = await read(home, path)
        assert "<script>alert" not in page and "<b><script>" not in page
    fragments = (await home.http.get("/live?now=1")).json()
    assert "<script>alert" not in "".join(fragments.values())


# -- composing


@both
async def test_a_message_is_sent_with_the_form(home: AppHarness) -> None:
    """The time in words is told back in full."""
    form = {"channel": "out", "to": "ada", "text": "hello", "at": "in 10 min"}

    answer = await home.http.post("/messages", data=form)

    assert answer.status_code == 303
    page = text(await read(home, answer.headers["location"]))
    assert "Accepted for ada: Fri 15 Jan 2027 08:10:00 UTC (2027-01-15T08:10:00Z), in 10 min." in page
    assert [item["to"] for item in await home.everything()] == ["ada"]


async def test_pressing_send_twice_sends_once(home: AppHarness) -> None:
    """B4: the form carries a key of its own."""
    key = re.search(r'name="key" value="([^"]+)"', await read(home, "/"))
    assert key is not None
    form = {"channel": "out", "to": "ada", "text": "hello", "at": "in 10 min", "key": key[1]}

    for _ in range(2):
        assert (await home.http.post("/messages", data=form)).status_code == 303
        home.clock.advance(seconds=1)

    assert len(await home.everything()) == 1


@in_one_house(
    ("change", "problem"),
    [
        ({"at": "tomorrow 25:00"}, "has no valid time of day"),
        ({"at": "2027-01-16T09:00"}, "has no time zone"),
        ({"to": " "}, "to is missing"),
        ({"channel": "nope"}, "there is no channel 'nope'"),
        ({"text": ""}, "the message is empty"),
    ],
)
async def test_a_form_error_is_shown_next_to_its_field(home: AppHarness, change: dict[str, str], problem: str) -> None:
    """What was typed stays, nothing was accepted."""
    form = {"channel": "out", "to": "grace", "text": "a long letter", "at": "in 10 min"} | change

    answer = await home.http.post("/messages", data=form)

    assert answer.status_code == 422
    page = answer.text
    assert problem in text(page)
    assert 'aria-invalid="true"' in page
    assert form["to"].strip() in page and form["text"] in page
    assert await home.everything() == []


async def test_the_interpreted_time_is_shown_while_typing(home: AppHarness) -> None:
    """Words and ISO, or what is wrong with them."""
    right = (await home.http.get("/when", params={"text": "tomorrow 9am"})).json()
    wrong = (await home.http.get("/when", params={"text": "tomorrow"})).json()

    assert right["when"].startswith("Sat 16 Jan 2027 09:00:00 UTC")
    assert "no valid time of day" in wrong["problem"]


# -- one message


@both
async def test_a_message_page_shows_its_timeline(home: AppHarness) -> None:
    """A7: every attempt with its time, node, result and duration; and why it stands where it stands."""
    outcomes: list[Outcome] = [Retry(Category.TEMPORARY, "the line is busy", after=timedelta(minutes=1)), Done("abc")]
    home.script("out", lambda _message: outcomes.pop(0))
    id_ = await home.accept(text="see you at nine", subject="Tonight", data={"table": 7})
    await home.work()

    waiting = text(await read(home, f"/messages/{id_}"))
    assert "Accepted" in waiting and "Attempt 1 started by " in waiting
    assert "Attempt 1 failed temporary error · took 0 s" in waiting
    assert "the line is busy" in waiting and "Next attempt" in waiting
    assert "retrying" in waiting and "next attempt at Fri 15 Jan 2027 08:01:00 UTC" in waiting
    for part in ("see you at nine", "Tonight", '"table": 7'):
        assert part in waiting

    home.clock.advance(minutes=1)
    await home.work()
    done = text(await read(home, f"/messages/{id_}"))
    assert "Attempt 2 started" in done and "Sent at Fri 15 Jan 2027 08:01:00 UTC on attempt 2" in done
    assert "receipt abc" in done
    assert "This message is final" in done


@both
async def test_a_message_page_offers_only_allowed_actions(home: AppHarness) -> None:
    """A6: the buttons follow the state."""
    outcomes: dict[str, Outcome] = {"ok": Done(), "bad": Reject(Category.PERMANENT, "no"), "doubt": Unknown("cut")}

    def answer(message: Message) -> Outcome:
        return outcomes[message.recipient]

    home.script("out", answer)
    home.script("careful", answer)
    sent, failed = await home.accept(to="ok"), await home.accept(to="bad")
    held = await home.accept(to="doubt", channel="careful")
    await home.work()
    waiting = await home.accept(**{"in": "1h"})

    async def verbs(id_: str) -> set[str]:
        page = await read(home, f"/messages/{id_}")
        return {form.rpartition("/")[2] for form in forms(page) if form.startswith("/messages/")}

    assert await verbs(waiting) == {"reschedule", "cancel"}
    assert await verbs(sent) == set()
    assert await verbs(failed) == {"retry", "discard"}
    assert await verbs(held) == {"retry", "discard"}
    assert "may be delivered twice" in await read(home, f"/messages/{held}")
    assert "may be delivered twice" not in await read(home, f"/messages/{failed}")


async def test_reschedule_cancel_retry_and_discard_buttons_work(home: AppHarness) -> None:
    """Reschedule, cancel, retry, discard; each leads back to the message."""
    home.script("out", lambda _message: Reject(Category.PERMANENT, "no"))
    id_ = await home.accept(**{"in": "1h"})

    async def press(verb: str, **form: str) -> str:
        answer = await home.http.post(f"/messages/{id_}/{verb}", data=form)
        assert (answer.status_code, answer.headers["location"]) == (303, f"/messages/{id_}")
        return str((await home.show(id_))["state"])

    assert await press("reschedule", at="now") == "pending"
    await home.work()
    assert await press("retry") == "pending"
    await home.work()
    assert await press("discard") == "cancelled"


async def test_an_action_that_comes_too_late_changes_nothing_and_shows_why(home: AppHarness) -> None:
    """A6: the state may have moved on since the page was drawn."""
    id_ = await home.accept()
    await home.work()

    answer = await home.http.post(f"/messages/{id_}/cancel")

    assert "has already been sent" in text(await read(home, answer.headers["location"]))
    assert (await home.show(id_))["state"] == "sent"
    bad_time = await home.http.post(f"/messages/{id_}/reschedule", data={"at": "soonish"})
    assert "soonish" in text(await read(home, bad_time.headers["location"]))


async def test_a_missing_message_gets_an_error_page(home: AppHarness) -> None:
    """404, with a way back."""
    for method, path in (("GET", "/messages/nothing"), ("POST", "/messages/nothing/cancel")):
        answer = await home.http.request(method, path)
        assert answer.status_code == 404
        assert "There is no message nothing" in text(answer.text)
        assert 'href="/"' in answer.text
    id_ = await home.accept()
    assert (await home.http.post(f"/messages/{id_}/explode")).status_code == 404


# -- lists


async def test_messages_are_listed_and_filtered(home: AppHarness) -> None:
    """By state, channel and recipient; older ones on the next page."""
    for number in range(60):
        await home.accept(to=f"user-{number}", **{"in": "1h"})
    first = await read(home, "/messages?state=pending")
    older = re.search(r'href="(/messages\?[^"]+)" rel="next"', first)
    assert older is not None
    second = await read(home, unescape(older[1]))

    assert "user-59" in first and "user-9" not in text(first)
    assert "user-9" in second and "user-59" not in second
    assert "No messages found" in text(await read(home, "/messages?channel=console"))
    assert "user-7" in text(await read(home, "/messages?to=user-7"))
    assert (await home.http.get("/messages?state=odd")).status_code == 422


@both
async def test_dead_letters_are_grouped_by_cause(home: AppHarness) -> None:
    """B7: how many, why, since when; retry and discard with their number on the button."""
    home.script("out", lambda _message: Reject(Category.PERMANENT, "no such number"))
    home.script("careful", lambda _message: Unknown("the line went dead"))
    for _ in range(3):
        await home.accept()
    await home.accept(channel="careful", to="grace")
    await home.work()

    page = text(await read(home, "/dead"))
    assert "3 permanent on out no such number" in page
    assert "Retry (3)" in page and "Discard (3)" in page
    assert "1 uncertain on careful It is unknown whether these were sent" in page
    assert "Retry anyway (1)" in page
    only = text(await read(home, "/dead?channel=careful&unknown=yes"))
    assert "grace careful" in only and "ada out" not in only

    which = {"channel": "out", "category": "permanent", "unknown": "no"}
    done = await home.http.post("/dead/retry", data=which)
    assert "3 retried." in text(await read(home, done.headers["location"]))
    gone = await home.http.post("/dead/discard", data={"channel": "careful", "unknown": "yes"})
    assert "1 discarded." in text(await read(home, gone.headers["location"]))
    assert "No dead letters" in text(await read(home, "/dead"))
    assert sorted(item["state"] for item in await home.everything()) == ["cancelled"] + ["pending"] * 3
    assert (await home.http.post("/dead/explode", data=which)).status_code == 404


async def test_dead_letters_with_uncertain_delivery_are_not_retried_by_default(home: AppHarness) -> None:
    """B7: what may arrive twice is never sent again by accident."""
    home.script("careful", lambda _message: Unknown("the line went dead"))
    await home.accept(channel="careful")
    await home.work()

    await home.http.post("/dead/retry", data={"channel": "careful"})

    assert [item["state"] for item in await home.everything()] == ["failed"]


# -- live


async def test_live_fragments_can_be_polled(home: AppHarness) -> None:
    """The fallback where a stream cannot be held."""
    id_ = await home.accept(to="ada")

    home_now = (await home.http.get("/live?now=1")).json()
    message_now = (await home.http.get(f"/messages/{id_}/live?now=1")).json()

    assert home_now.keys() == {"trouble", "trend", "counts", "rows", "channels", "nodes"}
    assert "ada" in home_now["rows"]
    assert message_now.keys() == {"trouble", "status", "actions", "timeline", "facts"}
    for path, fragments in (("/", home_now), (f"/messages/{id_}", message_now)):
        page = await read(home, path)
        assert all(f'id="{name}"' in page for name in fragments)  # each has its place


async def test_a_live_stream_sends_all_fragments_once_and_then_changes() -> None:
    """At most once a second, only fragments that differ, and a sign of life now and then."""
    rounds = 0
    pages: list[dict[str, str]] = [{"a": "1", "b": "1"}, {"a": "1", "b": "1"}, {"a": "2", "b": "1"}]

    async def render() -> dict[str, str]:
        return pages[min(rounds, 2)]

    async def pause(seconds: float) -> bool:
        nonlocal rounds
        assert seconds == 1
        rounds += 1
        return rounds > 2 + KEEP_ALIVE

    sent = [piece async for piece in LiveStreams(pause).stream(render)]

    assert sent[0] == b"retry: 1000\n\n"
    assert [orjson.loads(piece.removeprefix(b"data: ")) for piece in sent[1:3]] == [
        {"trouble": "", "a": "1", "b": "1"},
        {"a": "2"},
    ]
    assert sent[3:] == [b": keep-alive\n\n"]


async def test_a_live_stream_reports_an_error_and_continues() -> None:
    """A database that does not answer is said on the page, and forgotten when it is back."""
    rounds = 0

    async def render() -> dict[str, str]:
        if rounds == 1:
            raise StoreUnavailable("the <database> does not answer", remedy="wait")
        return {"a": "1"}

    async def pause(_seconds: float) -> bool:
        nonlocal rounds
        rounds += 1
        return rounds == 3

    sent = [piece async for piece in LiveStreams(pause).stream(render)]

    assert [orjson.loads(piece.removeprefix(b"data: ")) for piece in sent[1:]] == [
        {"trouble": "", "a": "1"},
        {"trouble": "the &lt;database&gt; does not answer. wait"},
        {"trouble": ""},
    ]


async def test_closing_the_dashboard_ends_live_streams(home: AppHarness) -> None:
    """E8: an open page does not hold up the stop."""
    async with home.client(accept="text/event-stream") as browser:
        home.pages.close()
        answer = await browser.get("/live")

    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"  # no new stream any more

    live = LiveStreams()

    async def render() -> dict[str, str]:
        return {"a": "1"}

    stream = live.stream(render)
    await anext(stream)
    await anext(stream)
    live.close()
    assert [piece async for piece in stream] == []


async def test_live_fragments_are_rendered_once_a_second_for_all_readers() -> None:
    """The first page is the same for everybody."""
    clock, reads = ManualClock(), 0

    async def render() -> dict[str, str]:
        nonlocal reads
        reads += 1
        return {"a": str(reads)}

    shared = SharedFragments(render, clock)
    assert [await shared() for _ in range(5)] == [{"a": "1"}] * 5
    clock.advance(seconds=1)
    assert await shared() == {"a": "2"}
    assert reads == 2


READS = (
    *("counts", "counts_due", "message_newest", "message_window", "message_ended", "message_to"),
    *("sent_page", "sent_below", "dead_page", "dead_groups", "dead_batch", "overdue"),
)


@both
async def test_dashboard_queries_use_an_index(home: AppHarness) -> None:
    """Rule 17: a page that is looked at all day must not walk through a table that grows."""
    store: Any = home.app.store
    for name in READS:
        statement = load_statements(store.dialect)[name]
        if store.dialect == "sqlite":
            rows = store._connection.execute(f"explain query plan {statement.sql}", (None,) * len(statement.names))
            plan = "\n".join(row[3] for row in rows)
            assert not re.search(r"SCAN (t|m|h|tasks|messages|history)\b(?! USING)", plan), f"{name}:\n{plan}"
            continue
        nulls = ", ".join("null" for _ in statement.names)
        async with store._connection() as connection:
            await connection.execute(f"prepare p as {statement.sql}")
            found = await connection.fetch(f"explain execute p({nulls})" if nulls else "explain execute p")
            await connection.execute("deallocate p")
        plan = "\n".join(row[0] for row in found)
        assert not re.search(r"Seq Scan on (tasks|messages|history)", plan), f"{name}:\n{plan}"
        assert "Filter: (due_at <=" not in plan and "Filter: (t.due_at <=" not in plan, f"{name}:\n{plan}"


# -- labels


@pytest.mark.parametrize(
    ("state", "attempts", "unknown", "word"),
    [
        ("pending", 0, False, "waiting"),
        ("pending", 2, False, "retrying"),
        ("processing", 1, False, "processing"),
        ("sent", 1, False, "sent"),
        ("failed", 3, False, "failed"),
        ("failed", 1, True, "uncertain"),
        ("cancelled", 0, False, "cancelled"),
        ("expired", 0, False, "expired"),
    ],
)
def test_every_message_state_has_a_label_and_a_color(state: str, attempts: int, unknown: bool, word: str) -> None:
    """Displayed states: retrying and uncertain are derived."""
    message: dict[str, Any] = {"state": state, "attempts": attempts, "unknown": unknown}

    assert template_filters.state_word(message) == word
    assert template_filters.tone(word) in {"calm", "warn", "busy", "good", "bad", "still"}


def test_a_bounded_count_is_marked_with_a_plus() -> None:
    """Rule 17: counted up to ten thousand."""
    assert [template_filters.counted(number) for number in (0, 9_999, 10_000)] == ["0", "9,999", "10,000+"]


def test_code_in_a_sentence_is_set_as_code() -> None:
    """Remedies name commands; everything is escaped."""
    assert template_filters.sentence("start `tidings serve` & <wait>") == (
        "Start <code>tidings serve</code> &amp; &lt;wait&gt;."
    )


# -- base template, static files, sign-in


async def _pages(home: AppHarness) -> list[httpx.Response]:
    id_ = await home.accept()
    paths = ("/", "/messages", f"/messages/{id_}", "/dead", "/docs", "/sign-in")
    return [await home.http.get(path) for path in paths]


async def test_pages_load_nothing_from_the_internet(home: AppHarness) -> None:
    """Every file is our own, and a policy holds the browser to it."""
    for page in await _pages(home):
        assert page.status_code == 200
        addresses = re.findall(r'(?:src|href|action)="([^"]*)"', page.text)
        assert all(re.match(r"/(?!/)|#", address) for address in addresses), addresses
        assert "style=" not in page.text and "onclick" not in page.text
        policy = page.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy
        assert page.headers["cache-control"] == "no-store"
    for file in (HERE / "static").iterdir():
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", file.read_text()), file


async def test_static_files_are_cached_until_they_change(home: AppHarness) -> None:
    """Their addresses carry what is in them."""
    addresses = re.findall(r'(?:src|href)="(/static/[^"]+)"', await read(home, "/"))
    assert len(set(addresses)) == 3
    for address in addresses:
        answer = await home.http.get(address)
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]
    assert (await home.http.get("/static/../build.py")).status_code == 404


async def test_the_api_reference_page_lists_every_route(home: AppHarness) -> None:
    """Without a script and without the internet."""
    page = text(await read(home, "/docs"))

    for path in home.api.openapi()["paths"]:
        assert path in page
    assert "ordering_key string messages with the same ordering key are sent one at a time, in order" in page


async def test_the_sign_in_form_is_shown_where_keys_are_required(sqlite_url: str) -> None:
    """S1: a form for the key, its own words for a wrong one, and a way out."""
    async with house(sqlite_url, api_keys=(KEY,)) as home, home.client(accept="text/html") as browser:
        page = await browser.get("/sign-in?wrong=1&next=/dead")
        assert "Invalid API key" in text(page.text)
        assert 'name="next" value="/dead"' in page.text
        assert (await browser.get("/static/dashboard.css")).status_code == 200

        await browser.post("/sign-in", data={"key": KEY})
        assert "/sign-out" in forms((await browser.get("/")).text)
        await browser.post("/sign-out")
        assert (await browser.get("/")).status_code == 303
