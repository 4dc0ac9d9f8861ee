"""Systems that records come from and go to: pages, a write twice, lost answers, limits, errors (C13)."""

from __future__ import annotations

import asyncio
import csv as standard_csv
import re
import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
import sqlalchemy as sa

from tidings.migration.connectors import attio as attio_connector
from tidings.migration.connectors import ndjson, options, registry
from tidings.migration.connectors.confined_paths import FileSettings, confined_path
from tidings.migration.connectors.file_source import FileSource
from tidings.migration.connectors.port import (
    ConnectorError,
    ErrorKind,
    Fields,
    Record,
    RecordPage,
    RecordSource,
    RecordTarget,
    SupportsBulk,
    SupportsErase,
    SupportsQuota,
    TargetRecord,
    UnreadableRecord,
    WriteStrategy,
)
from tidings.model.errors import Misconfigured

from .channels.conftest import Sandbox, serving
from .receiver import answer, hang_up_in_body, receiving

pytestmark = pytest.mark.slow

KEY = "key-of-the-test"


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    """All pretend systems behind one address."""
    async with serving() as ready:
        yield ready


async def told(sandbox: Sandbox, system: str, **what: Any) -> Any:
    """Tell a pretend system what to hold and to bear."""
    async with httpx.AsyncClient(base_url=sandbox.url) as client:
        answer = await client.post(f"/sandbox/{system}", json=what)
    assert answer.status_code == 201, answer.text
    return answer.json()


async def content(sandbox: Sandbox, system: str) -> Any:
    """What a pretend system holds."""
    async with httpx.AsyncClient(base_url=sandbox.url) as client:
        return (await client.get(f"/sandbox/{system}")).json()["content"]


async def pages_of(source: RecordSource, type_: str) -> list[RecordPage]:
    """All pages, in order."""
    pages = [await source.page(type_, None)]
    while pages[-1].cursor is not None:
        pages.append(await source.page(type_, pages[-1].cursor))
    return pages


def ids(pages: list[RecordPage]) -> list[str]:
    return [record.id for page in pages for record in page.records]


async def trouble_of(call: Any) -> ConnectorError:
    with pytest.raises(ConnectorError) as caught:
        await call
    return caught.value


def attio(sandbox: Sandbox, **more: Any) -> RecordTarget:
    return registry.target("attio", {"url": f"{sandbox.url}/attio", "key": KEY, **more})


def affinity(sandbox: Sandbox, version: str = "1", **more: Any) -> RecordSource:
    """With version 2, records have their custom fields."""
    given = {"url": f"{sandbox.url}/affinity", "key": KEY, "custom_fields": version == "2", **more}
    return registry.source("affinity", given)


# -- every source: pages are complete, stable, and can be gone on with by another process


async def an_affinity(version: str, sandbox: Sandbox, _: Path) -> tuple[Callable[[], RecordSource], str, list[str]]:
    await told(sandbox, "affinity", persons=25)
    size = 10
    return (lambda: affinity(sandbox, version, page_size=size), "persons", [str(200_001 + n) for n in range(25)])


async def some_entries(version: str, sandbox: Sandbox, _: Path) -> tuple[Callable[[], RecordSource], str, list[str]]:
    await told(sandbox, "affinity", persons=4, lists=3, list_entries=20)
    held = (await content(sandbox, "affinity"))["list_entries"]
    wanted = [str(one["id"]) for one in sorted(held, key=lambda one: (one["list_id"], one["id"]))]
    return lambda: affinity(sandbox, version, page_size=3), "list_entries", wanted


async def an_http(_: str, sandbox: Sandbox, __: Path) -> tuple[Callable[[], RecordSource], str, list[str]]:
    await told(sandbox, "affinity", persons=25)
    given = {
        "url": f"{sandbox.url}/affinity/{{%type%}}",
        "token": KEY,
        "records": "persons",
        "paging": "cursor",
        "cursor": "next_page_token",
        "parameter": "page_token",
        "size_parameter": "page_size",
        "page_size": 10,
    }
    return lambda: registry.source("http", given), "persons", [str(200_001 + n) for n in range(25)]


async def a_table(_: str, __: Sandbox, path: Path) -> tuple[Callable[[], RecordSource], str, list[str]]:
    with sqlite3.connect(path / "old.db") as old:
        old.execute("create table people (id integer primary key, name text, at timestamp)")
        old.executemany("insert into people values (?, ?, ?)", [(n * 3, f"Ada {n}", None) for n in range(25)])
    given = {"url": f"sqlite:///{path / 'old.db'}", "page_size": 10}
    return lambda: registry.source("sql", given), "people", [str(n * 3) for n in range(25)]


async def a_csv(_: str, __: Sandbox, path: Path) -> tuple[Callable[[], RecordSource], str, list[str]]:
    with (path / "people.csv").open("w", newline="", encoding="utf-8-sig") as file:
        writer = standard_csv.writer(file)
        writer.writerow(["id", "name"])
        writer.writerows([n, f'line\nbreak, {n} "said"'] for n in range(2_345))
    return lambda: registry.source("csv", {"path": str(path)}), "people", [str(n) for n in range(2_345)]


async def an_ndjson(_: str, __: Sandbox, path: Path) -> tuple[Callable[[], RecordSource], str, list[str]]:
    lines = [orjson.dumps({"id": n, "name": f"Ada {n}"}) for n in range(2_345)]
    (path / "people.ndjson").write_bytes(b"\n".join(lines))
    return lambda: registry.source("ndjson", {"path": str(path)}), "people", [str(n) for n in range(2_345)]


@pytest.mark.parametrize(
    ("make", "version"),
    [
        (an_affinity, "1"),
        (an_affinity, "2"),
        (some_entries, "1"),
        (some_entries, "2"),
        (an_http, ""),
        (a_table, ""),
        (a_csv, ""),
        (an_ndjson, ""),
    ],
)
async def test_pages_are_complete_and_the_same_cursor_gives_the_same_records(
    make: Any, version: str, sandbox: Sandbox, tmp_path: Path
) -> None:
    """C13: every record once, in a stable order; a process that starts anew goes on with a stored cursor."""
    fresh, type_, wanted = await make(version, sandbox, tmp_path)
    source = fresh()

    pages = await pages_of(source, type_)
    await source.close()
    other = fresh()
    again = await other.page(type_, pages[0].cursor)
    await other.close()

    assert ids(pages) == wanted
    assert len(pages) > 2
    assert again == pages[1]


# -- every target: once by its key, whatever is sent again


async def test_a_repeated_attio_upsert_creates_one_record(sandbox: Sandbox) -> None:
    """C13: Attio finds by the unique attribute; its own id, once known, does the same."""
    target = attio(sandbox, keys={"people": "affinity_id"})
    name = {"first_name": "Ada", "last_name": "Lovelace", "full_name": "Ada Lovelace"}
    fields = {"name": name, "email_addresses": ["ada@acme.example"]}

    first = await target.write("people", "7", fields, None)
    second = await target.write("people", "7", {**fields, "job_title": "Countess"}, None)
    third = await target.write("people", "7", {**fields, "job_title": "Countess"}, first.id)
    (found,) = await target.find("people", "7", {})
    await target.close()

    assert target.strategy("people") is WriteStrategy.UPSERT
    assert first.id == second.id == third.id == found.id
    assert found.fields is not None
    assert found.fields["email_addresses"] == ["ada@acme.example"]
    assert found.fields["name"] == fields["name"]
    people = (await content(sandbox, "attio"))["people"]
    assert [one["values"]["job_title"] for one in people] == [["Countess"]]


async def test_a_link_leads_to_a_record_of_its_object_and_is_read_back_as_an_id(sandbox: Sandbox) -> None:
    """C13: a map gives the target's id alone; Attio wants to know of which object."""
    await told(sandbox, "attio", attributes={"people": [{"api_slug": "mentor", "type": "record-reference"}]})
    target = attio(sandbox, references={"mentor": "people"})
    company = await target.write("companies", "acme.example", {}, None)
    boss = await target.write("people", "boss@acme.example", {"company": company.id}, None)

    await target.write("people", "ada@acme.example", {"company": company.id, "mentor": boss.id}, None)
    (found,) = await target.find("people", "ada@acme.example", {})
    await target.close()

    assert found.fields is not None
    assert (found.fields["company"], found.fields["mentor"]) == (company.id, boss.id)


async def test_a_note_with_an_unknown_outcome_is_found_by_content(sandbox: Sandbox) -> None:
    """C13, F61: the answer is lost after the note was made; a look at its parent finds it."""
    target = attio(sandbox)
    parent = await target.write("companies", "acme.example", {"name": "Acme"}, None)
    note = {"parent_object": "companies", "parent_record_id": parent.id, "title": "Call", "content": "Said  yes."}
    dated = {**note, "created_at": "2021-03-04T05:06:07.089+02:00"}
    sandbox.break_("lost", channel="attio", recipient="notes", times=1)

    trouble = await trouble_of(target.write("notes", "1", dated, None))
    found = await target.find("notes", "1", dated)
    again = await target.write("notes", "1", dated, None)
    other = await target.find("notes", "1", {**dated, "created_at": "2021-03-04T05:06:08Z"})
    await target.close()

    assert trouble.sent
    assert target.strategy("notes") is WriteStrategy.RECONCILE
    assert [one.id for one in found] == [again.id]
    assert other == []
    assert len((await content(sandbox, "attio"))["notes"]) == 1


async def test_notes_without_a_time_are_written_as_often_as_they_are_asked_for(sandbox: Sandbox) -> None:
    """Two notes of the same words may both be meant: only whoever keeps a ledger can tell."""
    target = attio(sandbox)
    parent = await target.write("companies", "acme.example", {}, None)
    note = {"parent_object": "companies", "parent_record_id": parent.id, "title": "Call", "content": "Hello"}

    written = [await target.write("notes", str(n), note, None) for n in range(2)]
    found = await target.find("notes", "0", note)
    read = [key async for key, _ in target.read_all("notes")]
    changed = await target.write("notes", "0", {**note, "content": "Hello again"}, written[0].id)
    after = await target.find("notes", "0", {**note, "content": "Hello again"})
    await target.close()

    assert {one.id for one in found} == {one.id for one in written}
    assert len(read) == 2
    assert [one.id for one in after] == [changed.id] == [written[0].id]


async def test_a_record_is_on_a_list_once(sandbox: Sandbox) -> None:
    """C13: an entry is asserted by its parent; a list where it stands twice is named."""
    target = attio(sandbox)
    parent = await target.write("companies", "acme.example", {}, None)
    entry = {"parent_object": "companies", "parent_record_id": parent.id, "stage": "New"}

    first = await target.write("lists/pipeline", "1", entry, None)
    second = await target.write("lists/pipeline", "1", {**entry, "stage": "Won"}, None)
    found = await target.find("lists/pipeline", "1", entry)
    everything = [written async for _, written in target.read_all("lists/pipeline")]
    wrong = await trouble_of(target.write("lists/pipeline", "1", {**entry, "stage": "Elsewhere"}, None))
    await target.close()

    assert first.id == second.id
    assert found == [TargetRecord(first.id)]
    assert [one.fields for one in everything] == [{**entry, "stage": "Won"}]
    assert (wrong.failure, wrong.field) == (ErrorKind.VALIDATION, "stage")


@pytest.mark.parametrize("kind", ["csv", "ndjson"])
async def test_a_file_has_each_key_once_also_with_two_writers(kind: str, tmp_path: Path) -> None:
    """C13: the same again changes nothing, a change replaces; another process sees what the first wrote."""
    one, two = (registry.target(kind, {"path": str(tmp_path / "out")}) for _ in range(2))
    fields: Fields = {"name": 'Ada "the first"\nLovelace', "city": "London"}

    await one.write("people", "1", fields, None)
    before = (tmp_path / "out" / f"people.{kind}").read_bytes()
    await two.write("people", "1", fields, "1")
    unchanged = (tmp_path / "out" / f"people.{kind}").read_bytes()
    assert isinstance(two, SupportsBulk)
    results = await two.write_many("people", [("2", fields, None), ("1", {**fields, "city": "Paris"}, "1")])
    await one.write("people", "3", {"city": "Rome"}, None)
    found = await one.find("people", "1", {})
    everything = {key: written.fields async for key, written in two.read_all("people")}
    await one.close()

    assert before == unchanged
    assert [one.id for one in results if isinstance(one, TargetRecord)] == ["2", "1"]
    assert [one.fields for one in found] == [{"id": "1", **fields, "city": "Paris"}]
    assert {key: (value or {})["city"] for key, value in everything.items()} == {
        "2": "London",
        "1": "Paris",
        "3": "Rome",
    }


@pytest.mark.parametrize("kind", ["csv", "ndjson", "sql", "attio"])
async def test_erasing_a_record_is_idempotent(kind: str, tmp_path: Path, sandbox: Sandbox) -> None:
    """The way back: by the target's own id; one that is gone already is as good as deleted."""
    with sqlite3.connect(tmp_path / "there.db") as there:
        there.execute("create table companies (id text primary key, name text)")
    options = {"path": str(tmp_path / "out")}
    if kind == "sql":
        options = {"url": f"sqlite:///{tmp_path / 'there.db'}"}
    target = attio(sandbox) if kind == "attio" else registry.target(kind, options)
    assert isinstance(target, SupportsErase)
    written = [await target.write("companies", f"{n}.example", {"name": f"C{n}"}, None) for n in range(3)]

    for _ in range(2):
        await target.erase("companies", written[1].id)

    left = [one.fields["name"] async for _, one in target.read_all("companies") if one.fields]
    assert left == ["C0", "C2"] and await target.find("companies", "1.example", {}) == []
    again = await target.write("companies", "1.example", {"name": "C1"}, None)
    assert [one.id for one in await target.find("companies", "1.example", {})] == [again.id]
    if kind == "attio":
        parent = {"parent_object": "companies", "parent_record_id": again.id}
        note = {**parent, "title": "Call", "content": "Hello"}
        made = await target.write("notes", "1", note, None)
        for _ in range(2):
            await target.erase("notes", made.id)
        assert await target.find("notes", "1", note) == []
    await target.close()


@pytest.mark.parametrize(("kind", "torn"), [("csv", b'2,"half'), ("ndjson", b'{"id":"2","na')])
async def test_a_torn_last_line_is_removed_and_a_whole_one_is_kept(kind: str, torn: bytes, tmp_path: Path) -> None:
    """F60: nobody was told that it was written; what a person left without a line end is no such line."""
    path = tmp_path / f"people.{kind}"
    target = registry.target(kind, {"path": str(path)})
    await target.write("people", "1", {"name": "Ada"}, None)
    whole = path.read_bytes().rstrip(b"\r\n")
    for tail in (whole, whole + b"\n" + torn):
        path.write_bytes(tail)
        fresh = registry.target(kind, {"path": str(path)})

        await fresh.write("people", "2", {"name": "Grace"}, None)

        keys = [key async for key, _ in fresh.read_all("people")]
        assert keys == ["1", "2"]


# -- what a file can have wrong with it


async def test_bad_lines_are_named_and_the_rest_is_read(tmp_path: Path) -> None:
    """Bad input: null bytes, a field of 50 MB, names that come twice, numbers and texts for no database."""
    path = tmp_path / "people.ndjson"
    with path.open("wb") as file:
        file.write(b'{"id": 1, "name": "Ada"}\n')
        file.write(b'{"id": 2, "name": "\\u0000"}\n{"id": 3, "id": 4}\n')
        file.write(b'{"id": 5, "name": "' + b"x" * (50 << 20) + b'"}\n')
        file.write(b'{"id": 6, "n": 99999999999999999999999}\n{"id": 7, "n": NaN}\n[8]\n{"id": \n\xff\n')
        file.write(b'{"id": 9, "name": "\\ud800"}\n{"name": "nobody"}\n' + b"[" * 100_000 + b"\n")
        file.write(b'{"id": 10, "name": "Grace"}\n')
    source = registry.source("ndjson", {"path": str(path)})

    pages = await pages_of(source, "people")

    assert ids(pages) == ["1", "10"]
    unreadable = {one.id: one for page in pages for one in page.unreadable}
    assert list(unreadable) == ["2", *(f"line {n}" for n in (3, 4, 5, 6, 7, 8, 9)), "9", "line 11", "line 12"]
    assert (unreadable["2"].field, unreadable["2"].reason) == ("name", "'name' has a null byte (line 2)")
    assert unreadable["line 3"].field == "id"
    assert "over 1048576 bytes" in unreadable["line 4"].reason


async def test_bad_rows_are_named_and_the_rest_is_read(tmp_path: Path) -> None:
    """The same for CSV, where a value may go on over line ends."""
    path = tmp_path / "people.csv"
    with path.open("wb") as file:
        file.write(b'id,name\r\n1,Ada\r\n2,a\x00b\r\n3,x,y\r\n4,5" pipe\r\n')
        file.write(b'5,"' + b"x\n" * 100_000 + b'"\r\n6,"a"b\r\n7,\xff\r\n\r\n8,"two\nlines"\r\n9,"never closed\r\n')
    source = registry.source("csv", {"path": str(path), "max_record": 65_536})

    pages = await pages_of(source, "people")

    assert ids(pages) == ["1", "4", "8"]
    assert [one.id for page in pages for one in page.unreadable][:2] == ["2", "line 4"]
    assert len([one for page in pages for one in page.unreadable]) == 6
    assert pages[-1].unreadable[-1].reason.startswith("a quote is never closed")


@pytest.mark.parametrize(("head", "field"), [(b"id,name,name\n", "name"), (b"name,city\n", "id"), (b"", None)])
async def test_an_unusable_csv_header_is_reported(head: bytes, field: str | None, tmp_path: Path) -> None:
    """Bad input: a missing column, one that is there twice, nothing at all."""
    (tmp_path / "people.csv").write_bytes(head)
    source = registry.source("csv", {"path": str(tmp_path)})

    trouble = await trouble_of(source.page("people", None))
    missing = await trouble_of(source.page("companies", None))

    assert (trouble.failure, trouble.field) == (ErrorKind.VALIDATION, field)
    assert missing.failure is ErrorKind.NOT_FOUND


async def test_parsing_a_page_of_a_file_yields_to_the_event_loop(tmp_path: Path) -> None:
    """Calls under way do not wait for a thousand lines; a thread that parsed them made all wait."""
    file = tmp_path / "people.ndjson"
    file.write_text("".join(f'{{"id": "{n}"}}\n' for n in range(1000)))
    turns, seen = 0, set[int]()

    class Watched(ndjson.NdjsonFormat):
        def parse(self, raw: bytes, head: Sequence[str] | None) -> Fields:
            seen.add(turns)
            return super().parse(raw, head)

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(others())
    settings = FileSettings(str(file))
    page = await FileSource("ndjson", confined_path(settings), Watched(settings)).page("people", None)
    beside.cancel()

    assert len(page.records) == 1000
    assert len(seen) >= 10, "in slices, on the loop's own thread"


async def test_a_file_that_changes_during_the_read_is_detected(tmp_path: Path) -> None:
    """Bad input: a source changing underneath."""
    path = tmp_path / "people.ndjson"
    path.write_bytes(b"".join(b'{"id": %d}\n' % n for n in range(1_500)))
    source = registry.source("ndjson", {"path": str(path)})
    page = await source.page("people", None)
    path.write_bytes(path.read_bytes()[12:])

    trouble = await trouble_of(source.page("people", page.cursor))

    assert trouble.failure is ErrorKind.PERMANENT
    assert "changed" in trouble.reason


# -- any SQL database


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database of somebody else's, by its URL."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'other.db'}"
    pytest.importorskip("psycopg")
    url: str = request.getfixturevalue("postgres_url")
    return url.replace("postgresql://", "postgresql+psycopg://", 1)


async def test_sql_upserts_are_idempotent_and_a_bad_row_leaves_the_others(database: str) -> None:
    """C13: an upsert by the key; a column that is unknown, a value too many, a wrong type are named."""
    engine = sa.create_engine(database)
    with engine.begin() as connection:
        connection.execute(sa.text("create table people (id integer primary key, name text not null, at date)"))
        connection.execute(sa.text("create table pairs (a integer, b integer)"))
        connection.execute(sa.text("insert into pairs values (1, 1), (1, 2)"))
    options = {"url": database, "keys": {"pairs": "a"}}
    target, source = registry.target("sql", options), registry.source("sql", options)

    await target.write("people", "1", {"name": "Ada", "at": "2021-02-03"}, None)
    assert isinstance(target, SupportsBulk)
    results = await target.write_many(
        "people",
        [
            ("1", {"name": "Countess"}, "1"),
            ("2", {"name": None}, None),
            ("3", {"name": "Grace", "colour": "red"}, None),
            ("four", {"name": "Alan"}, None),
            ("5", {"name": "Edsger"}, None),
        ],
    )
    everything = {key: written.fields async for key, written in target.read_all("people")}
    unclear = [await trouble_of(call) for call in (source.page("pairs", None), target.write("pairs", "1", {}, None))]
    nowhere = await trouble_of(source.page("ships", None))
    counted = await source.count("people")
    for one in (target, source):
        await one.close()
    engine.dispose()

    ways = [one.failure if isinstance(one, ConnectorError) else one.id for one in results]
    assert ways == ["1", ErrorKind.VALIDATION, ErrorKind.VALIDATION, ErrorKind.VALIDATION, "5"]
    assert everything == {
        "1": {"id": 1, "name": "Countess", "at": "2021-02-03"},
        "5": {"id": 5, "name": "Edsger", "at": None},
    }
    assert [one.field for one in unclear] == ["keys", "keys"]
    assert nowhere.failure is ErrorKind.NOT_FOUND
    assert counted == 2


# -- any HTTP API


@pytest.mark.parametrize("paging", ["page", "link"])
async def test_pages_are_counted_or_linked(paging: str) -> None:
    """C13: until a page is empty, or no next one is named; a link elsewhere does not get the token."""
    async with receiving() as receiver:
        given = {"url": f"{receiver.url}/people?sort=id", "paging": paging, "id": "uid", "token": KEY}
        source = registry.source("http", given)
        first, last = (b'[{"uid": 1}, {"uid": 2}]', b'[{"uid": 3}]')
        following = '</people?after=2>; rel="next", </people>; rel="first"'
        receiver.script(answer(200, first, link=following), answer(200, last))
        if paging == "page":
            receiver.script(answer(200, b"[]"))

        pages = await pages_of(source, "people")
        receiver.script(answer(200, first, link='<http://elsewhere.example/>; rel="next"'), answer(200, b"{}"))
        if paging == "link":
            elsewhere = await trouble_of(source.page("people", None))
            assert elsewhere.failure is ErrorKind.PERMANENT
            no_list = await trouble_of(source.page("people", None))
            assert no_list.field == "records"
        await source.close()

    asked = [request.path for request in receiver.requests]
    assert ids(pages) == ["1", "2", "3"]
    assert receiver.requests[0].headers["authorization"] == f"Bearer {KEY}"
    if paging == "page":
        assert asked == [f"/people?sort=id&page={n}" for n in (1, 2, 3)]
    else:
        assert asked[:2] == ["/people?sort=id", "/people?after=2"]


async def test_a_write_is_a_success_when_the_rule_says_so() -> None:
    """C13: by the status, or by what the answer says; what cannot be read is in doubt."""
    async with receiving() as receiver:
        given = {
            "url": f"{receiver.url}/{{%type%}}/{{%key%}}",
            "method": "PUT",
            "body": {"full": "{%name%}", "note": "{%remark%}", "city": "{%city%}!"},
            "key_header": "idempotency-key",
            "success": {"status": "done"},
            "target_id": "data.id",
        }
        target = registry.target("http", given)
        receiver.script(
            answer(200, b'{"status": "done", "data": {"id": 9}}'),
            answer(200, b'{"status": "error"}'),
            hang_up_in_body,
            answer(503),
        )

        written = await target.write("people", "a/b", {"name": "Ada", "city": "London"}, None)
        missing = await trouble_of(target.write("people", "1", {"name": "Ada"}, None))
        refused = await trouble_of(target.write("people", "1", {"city": "Rome"}, None))
        torn = await trouble_of(target.write("people", "1", {"city": "Rome"}, None))
        busy = await trouble_of(target.write("people", "1", {"city": "Rome"}, None))
        await target.close()

    assert target.strategy("people") is WriteStrategy.UPSERT
    assert written.id == "9"
    assert (receiver.requests[0].path, receiver.requests[0].json) == (
        "/people/a%2Fb",
        {"full": "Ada", "city": "London!"},
    )
    assert receiver.requests[0].headers["idempotency-key"] == "a/b"
    assert (missing.failure, missing.field) == (ErrorKind.VALIDATION, "city")
    assert (refused.failure, refused.sent) == (ErrorKind.VALIDATION, False)
    assert (torn.failure, torn.sent) == (ErrorKind.AMBIGUOUS, True)
    assert (busy.failure, busy.sent) == (ErrorKind.SERVER, True)


async def test_many_records_in_one_body_have_an_answer_each() -> None:
    """C13: by their place in the answer; without a way to look, a doubt is a person's."""
    async with receiving() as receiver:
        given = {"url": f"{receiver.url}/bulk", "bulk": 100, "bulk_in": "items", "results": "results"}
        target = registry.target("http", {**given, "success": {"ok": "True"}, "body": {"n": "{%n%}", "t": "n {%n%}"}})
        receiver.script(answer(200, b'{"results": [{"ok": true, "id": "x"}, {"ok": false}]}'))

        given_records = [("1", {"n": 1}, None), ("0", {}, None), ("2", {"n": 2}, None)]
        assert isinstance(target, SupportsBulk)
        first, bad, second = await target.write_many("people", given_records)
        doubt = await trouble_of(target.find("people", "1", {}))
        await target.close()

    assert receiver.requests[0].json == {"items": [{"n": 1, "t": "n 1"}, {"n": 2, "t": "n 2"}]}
    assert isinstance(bad, ConnectorError) and bad.field == "n"
    assert first == TargetRecord("x")
    assert isinstance(second, ConnectorError) and second.failure is ErrorKind.VALIDATION
    assert (target.strategy("people"), target.limits.bulk) == (WriteStrategy.RECONCILE, 100)
    assert (doubt.failure, doubt.field) == (ErrorKind.PERMANENT, "find_url")


async def test_what_is_there_is_asked_for_before_it_is_created() -> None:
    """C13: a find_url makes it search first; 404 says that it is not there."""
    async with receiving() as receiver:
        given = {"url": f"{receiver.url}/people", "find_url": f"{receiver.url}/people?mail={{%mail%}}"}
        target = registry.target("http", given)
        receiver.script(answer(404), answer(200, b'[{"id": 5, "mail": "a b"}]'))

        found = [await target.find("people", "1", {"mail": "a b"}) for _ in range(2)]
        await target.close()

    assert target.strategy("people") is WriteStrategy.SEARCH
    assert found == [[], [TargetRecord("5", {"id": 5, "mail": "a b"})]]
    assert receiver.requests[0].path == "/people?mail=a%20b"


# -- errors, each as what it is


@pytest.mark.parametrize(
    ("fault", "failure", "sent"),
    [
        ({"kind": "500"}, ErrorKind.SERVER, True),
        ({"kind": "lost"}, ErrorKind.TEMPORARY, True),
        ({"kind": "cut"}, ErrorKind.TEMPORARY, True),
        ({"kind": "slow", "seconds": 1.5}, ErrorKind.TIMEOUT, True),
        ({"kind": "429", "seconds": 7}, ErrorKind.RATE_LIMIT, False),
        ({"kind": "html"}, ErrorKind.SERVER, True),
        ({"kind": "error", "code": "concurrent_write_conflict"}, ErrorKind.TEMPORARY, False),
        ({"kind": "error", "code": "merge_in_progress"}, ErrorKind.TEMPORARY, False),
        ({"kind": "error", "code": "unauthorized"}, ErrorKind.CREDENTIALS, False),
        ({"kind": "error", "code": "billing_error"}, ErrorKind.PERMISSION, False),
        ({"kind": "error", "code": "quota_exceeded"}, ErrorKind.QUOTA, False),
        ({"kind": "404"}, ErrorKind.NOT_FOUND, False),
        ({"kind": "error", "code": "422"}, ErrorKind.VALIDATION, False),
    ],
    ids=str,
)
async def test_attio_errors_are_classified(
    fault: dict[str, Any], failure: ErrorKind, sent: bool, sandbox: Sandbox
) -> None:
    """C3: each error has its kind, and says whether the write may have happened."""
    target = attio(sandbox, deadline="0.5 s" if fault["kind"] == "slow" else "10 s")
    sandbox.break_(**fault, channel="attio", recipient="companies")

    trouble = await trouble_of(target.write("companies", "acme.example", {"name": "Acme"}, None))
    await target.close()

    assert (trouble.failure, trouble.sent) == (failure, sent)
    if failure is ErrorKind.RATE_LIMIT:
        assert trouble.wait is not None
        assert timedelta(seconds=4) < trouble.wait <= timedelta(seconds=8)


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"colour": "red"}, "colour"),
        ({"categories": ["Nonsense"]}, "categories"),
        ({"name": 7}, "name"),
        ({"domains": ["no domain"]}, "domains"),
    ],
)
async def test_a_refused_value_names_its_field(fields: Fields, field: str, sandbox: Sandbox) -> None:
    """C3: an unknown attribute, an option that is not there, a wrong type, a broken key."""
    target = attio(sandbox)

    trouble = await trouble_of(target.write("companies", "acme.example", fields, None))
    schema = await target.attributes("companies")
    unknown = await trouble_of(target.write("ships", "1", {}, None))
    await target.close()

    assert (trouble.failure, trouble.field, trouble.sent) == (ErrorKind.VALIDATION, field, False)
    assert {one.name: one.options for one in schema or ()}["categories"] == ("B2B", "SaaS", "Logistics")
    assert unknown.field == "keys"


@pytest.mark.parametrize("version", ["1", "2"])
async def test_affinitys_monthly_quota_is_distinguished_from_a_rate_limit(version: str, sandbox: Sandbox) -> None:
    """C3: both quotas answer 429; only the headers tell a minute from a month."""
    await told(sandbox, "affinity", persons=3, per_minute=int(version))
    source = affinity(sandbox, version)
    await source.page("persons", None)

    minute = await trouble_of(source.page("persons", None))
    await told(sandbox, "affinity", per_minute=900, per_month=1)
    month = await trouble_of(source.page("persons", None))
    assert isinstance(source, SupportsQuota)
    quota = await source.quota()
    await source.close()

    assert minute.failure is ErrorKind.RATE_LIMIT
    assert minute.wait is not None and minute.wait <= timedelta(minutes=1)
    assert month.failure is ErrorKind.QUOTA
    assert month.wait is not None and month.wait > timedelta(minutes=1)
    assert (quota.limit, quota.remaining) == (1, 0)


@pytest.mark.parametrize("version", ["1", "2"])
async def test_wrong_credentials_are_said_at_once_and_never_shown(version: str, sandbox: Sandbox) -> None:
    """C3, S9: no retry, and no key in what is said; a fault of theirs is told as such."""
    wrong = affinity(sandbox, version, key="a-wrong-secret")
    source = affinity(sandbox, version)
    sandbox.break_("error", code="403", channel="affinity", times=1)

    refused = await trouble_of(wrong.page("persons", None))
    forbidden = await trouble_of(source.page("persons", None))
    unknown = await trouble_of(source.page("ships", None))
    sandbox.break_("lost", channel="affinity", times=1)
    lost = await trouble_of(source.page("persons", None))
    await wrong.close()
    await source.close()

    assert refused.failure is ErrorKind.CREDENTIALS
    assert "secret" not in refused.reason
    assert forbidden.failure is ErrorKind.PERMISSION
    assert unknown.field == "type"
    assert (lost.failure, lost.sent) == (ErrorKind.TEMPORARY, False)


async def test_a_refused_connection_is_certainly_not_sent() -> None:
    """C3: a connection that was never made is safe to try again."""
    target = registry.target("attio", {"url": "http://127.0.0.1:9", "key": KEY, "deadline": "2 s"})

    trouble = await trouble_of(target.write("companies", "acme.example", {}, None))
    await target.close()

    assert (trouble.failure, trouble.sent) == (ErrorKind.TEMPORARY, False)


async def test_a_next_page_elsewhere_does_not_get_the_key(sandbox: Sandbox) -> None:
    """An answer cannot send the credentials to another address."""
    await told(sandbox, "affinity", persons=30, lists=1, list_entries=30)
    by_name = sandbox.url.replace("127.0.0.1", "localhost")
    source = registry.source("affinity", {"url": f"{by_name}/affinity/../affinity", "key": KEY, "page_size": 10})

    trouble = await trouble_of(source.page("list_entries/400001", None))
    await source.close()

    assert trouble.failure is ErrorKind.PERMANENT


# -- limits


async def test_what_is_over_the_limit_is_refused_with_a_date_and_was_not_done(sandbox: Sandbox) -> None:
    """C3: the connector states the limit that the system holds; a 429 was not processed."""
    target = attio(sandbox)
    assert (target.limits.reads_per_second, target.limits.writes_per_second) == (100, 25)
    assert attio(sandbox, writes_per_second=5).limits.writes_per_second == 5

    await told(sandbox, "attio", writes_per_second=1)

    calls = [target.write("companies", f"c{n}.example", {}, None) for n in range(20)]
    results = await asyncio.gather(*calls, return_exceptions=True)
    await target.close()

    refused = [one for one in results if isinstance(one, ConnectorError)]
    assert {one.failure for one in refused} == {ErrorKind.RATE_LIMIT}
    assert all(one.wait is not None and one.wait <= timedelta(seconds=2) for one in refused)
    assert len((await content(sandbox, "attio"))["companies"]) == 20 - len(refused)


async def test_everything_in_attio_can_be_read_back_by_its_key(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For verification: all pages, each record with the key under which it was written."""
    monkeypatch.setattr(attio_connector, "_RECORDS", 3)
    target = attio(sandbox)
    for n in range(7):
        await target.write("companies", f"c{n}.example", {"name": f"C {n}"}, None)

    found = {key: written.fields async for key, written in target.read_all("companies")}
    await target.close()

    assert found == {f"c{n}.example": {"domains": [f"c{n}.example"], "name": f"C {n}"} for n in range(7)}


async def test_a_persons_address_makes_a_company_as_attio_does_it(sandbox: Sandbox) -> None:
    """What the real one does behind one's back, the pretend one does too, and says so."""
    target = attio(sandbox)

    await target.write("people", "ada@acme.example", {}, None)
    await target.close()

    (made,) = (await content(sandbox, "attio"))["companies"]
    assert (made["auto"], made["values"]) == (True, {"domains": ["acme.example"]})


async def test_content_is_made_by_number_with_bad_records_that_are_named(sandbox: Sandbox) -> None:
    """The pretend Affinity says which of its records are bad, so that a test knows what must be refused."""
    made = await told(sandbox, "affinity", organizations=3, persons=100, notes=7, bad_every=50)
    source = affinity(sandbox)

    pages = await pages_of(source, "persons")
    persons = [record for page in pages for record in page.records]
    held = (await content(sandbox, "affinity"))["persons"]
    await told(sandbox, "affinity", persons=8, bad_every=2)
    (unreadable,) = (await source.page("persons", None)).unreadable
    await source.close()

    assert made["counts"]["persons"] == 100
    assert made["bad"] == 2
    assert (unreadable.id, unreadable.field) == ("200004", "last_name")
    listed = {name: value for name, value in held[0].items() if name != "organization_ids"}
    assert persons[0] == Record("persons", "200001", listed)


# -- the registry


@pytest.mark.parametrize(
    ("kind", "given", "field", "words"),
    [
        ("atio", {}, "kind", "Did you mean 'attio'?"),
        ("attio", {}, "key", "Add key to the target"),
        ("attio", {"key": KEY, "colour": "red"}, "colour", "unknown option"),
        ("attio", {"key": KEY, "url": "http://api.attio.com"}, "url", "https"),
        ("attio", {"key": "two\nlines"}, "key", "printable ASCII"),
        ("affinity", {"key": KEY}, "kind", "cannot be a target"),
        ("csv", {"path": "x.csv", "delimiter": "::"}, "delimiter", "one character"),
        ("sql", {"url": "nonsense://x"}, "url", "install the driver"),
        ("http", {"url": "https://{%host%}/x"}, "url", "host"),
        ("http", {"url": "https://a.example/{%key%}", "bulk": 5}, "bulk", "names one record"),
    ],
)
def test_a_wrong_option_is_named_with_its_remedy(kind: str, given: dict[str, object], field: str, words: str) -> None:
    """Nothing is guessed, and no credential is repeated."""
    with pytest.raises(Misconfigured) as caught:
        registry.target(kind, given)

    assert caught.value.field == field
    assert words in str(caught.value)
    assert KEY not in str(caught.value)


class _Entry:
    name, value = "ours", "elsewhere:CONNECTOR"

    def __init__(self, brought: object) -> None:
        self.load = lambda: brought


def test_another_package_can_bring_a_connector(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One entry point, judged like our own."""
    brought = registry.CONNECTORS["ndjson"]
    monkeypatch.setattr(registry, "entry_points", lambda **_: [_Entry(brought)])
    assert registry.source("ours", {"path": str(tmp_path)}).kind == "ndjson"

    monkeypatch.setattr(registry, "entry_points", lambda **_: [_Entry(object())])
    with pytest.raises(Misconfigured, match="is not a Connector"):
        registry.source("ours", {})


def test_every_connector_says_which_options_are_secret() -> None:
    """S9: whoever reads a job insists on references for these."""
    assert all(isinstance(one, options.Connector) for one in registry.CONNECTORS.values())
    assert {name for name, one in registry.CONNECTORS.items() if "key" in one.secrets} == {"affinity", "attio"}
    assert UnreadableRecord("people", "1", "why").field is None


def test_every_connector_option_is_documented() -> None:
    """The page has each connector, each with its own options and no others."""
    page = (Path(__file__).parents[2] / "docs/how-to/connectors.md").read_text(encoding="utf-8")
    parts = dict(re.findall(r"^## `(\w+)`$(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL))

    told = {name: set(re.findall(r"^\| `(\w+)` \|", part, re.MULTILINE)) for name, part in parts.items()}

    assert told == {name: set(one.options) for name, one in registry.CONNECTORS.items()}
