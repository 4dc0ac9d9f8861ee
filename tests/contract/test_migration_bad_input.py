"""Bad input of migrations: named, quarantined or refused, and nothing half written (C3, C4)."""

from __future__ import annotations

import sqlite3
from typing import Any

import pytest

from tidings.migration.connectors.port import Attribute, ConnectorError, ErrorKind, Fields
from tidings.migration.jobs import JobState
from tidings.migration.record_states import RecordState
from tidings.model.errors import Invalid

from .migration_harness import Moving

STAGE = {"path": "stage", "type": "select", "values": {"new": "Lead", "won": "Customer"}}
FIELDS: dict[str, Any] = {
    "name": {"path": "name", "required": True, "max_length": 20},
    "mail": {"path": "mail", "type": "email"},
    "since": {"path": "since", "type": "date"},
    "size": {"path": "size", "type": "number"},
    "stage": STAGE,
    "company": {"path": "company", "reference": "companies"},
}
TYPES: dict[str, Any] = {"companies": {"fields": {"name": "name"}}, "people": {"key": "mail", "fields": FIELDS}}


def person(number: int, **more: Any) -> dict[str, Any]:
    good = {"name": f"P{number}", "mail": f"p{number}@x.org", "since": "2026-01-02", "size": 3}
    return {"id": str(number), **good, "stage": "new", "company": 1, **more}


BAD: dict[str, tuple[Any, str]] = {  # id: the row, and what is said about it
    "0": ({**person(0), "name": None}, "it is required"),
    "50": (person(50, name="x" * 21), "max_length"),
    "100": (person(100, mail="nope"), "email"),
    "150": (person(150, since="31.02.2026"), "date"),
    "200": (person(200, size="a lot"), "number"),
    "250": (person(250, stage="lost"), "values"),
    "300": (person(300, company=7), "companies"),
    "350": (person(350, mail="p1@x.org"), "already used by people"),
    "400": (person(400, name="a\x00b"), "null byte"),
    "450": (person(449, name="other"), "duplicate id"),
    "500": (person(500, about="x" * 2_000_000), "it is over"),
    "550": ('{"id": "550", "name": ', "not JSON"),
    "600": (person(600), "HTTP 422: taken"),
    "650": (person(650), "HTTP 500"),
}


async def test_bad_records_become_dead_letters_and_the_others_are_migrated(moving: Moving) -> None:
    """C4: each is named with its rule, grouped by cause; the batch goes on; a repair touches only those."""
    moving.give("companies", [{"id": "1", "name": "C1"}])
    moving.give("people", [BAD.get(str(n), (person(n),))[0] for n in range(700)])

    def fault(_type: str, _key: str, fields: Fields) -> ConnectorError | None:
        if fields["name"] == "P600":
            return ConnectorError(ErrorKind.VALIDATION, "HTTP 422: taken", field="name", code="422")
        return ConnectorError(ErrorKind.SERVER, "HTTP 500", sent=True) if fields["name"] == "P650" else None

    moving.books.fault = fault
    id_ = await moving.run(TYPES)

    status = await moving.migrations.status(id_)
    assert status.job.state is JobState.COMPLETED and status.job.reason == "14 dead letters"
    assert status.counts[RecordState.WRITTEN] == 687
    causes = await moving.migrations.dead(id_)
    assert [cause.count for cause in causes] == [1] * 14, causes
    for id_of, (_, says) in BAD.items():
        told = [cause.reason for cause in causes if says in cause.reason]
        assert told, (id_of, says, [cause.reason for cause in causes])
    assert len(moving.books.content("people")) == 686

    moving.books.fault = lambda *_: None
    writes = moving.books.writes

    async def mended() -> Any:
        number = 1000
        async for one in moving.migrations.export(id_):
            number += 1
            yield "people", one["id"], person(number)

    assert await moving.migrations.replay(id_, by="anna", repaired=mended()) == 14
    assert (await moving.drive(id_)).reason is None
    assert moving.books.writes - writes == 14
    assert (await moving.migrations.status(id_)).counts == {RecordState.WRITTEN: 701}
    assert (await moving.migrations.verify(id_)).passed

    writes = moving.books.writes
    await moving.migrations.run(id_, by="anna")
    await moving.drive(id_)
    assert moving.books.writes == writes, "a second run writes nothing"


async def test_a_column_that_is_not_there_stops_the_run_before_its_first_record(moving: Moving) -> None:
    """Missing column: named with the nearest one; a plan that says so may be approved all the same."""
    (moving.folder / "people.csv").write_text("id,name,mail\n1,Ada,ada@x.org\n")
    csv = {"kind": "csv", "path": str(moving.folder)}
    types = {"people": {"fields": {"name": "name", "mail": "mial"}}}

    id_ = await moving.run(types, source=csv)

    view = await moving.migrations.find(id_)
    assert view.state is JobState.PAUSED and moving.books.writes == 0
    assert "the source has no field 'mial' (Did you mean 'mail'?)" in (view.reason or "")
    assert (await moving.migrations.status(id_)).read == 0

    planned = await moving.create(types, source=csv, name="planned")
    await moving.migrations.plan(planned, by="anna")
    await moving.drive(planned)
    assert any("'mial'" in note for note in (await moving.migrations.plan_report(planned)).notes)
    await moving.migrations.approve(planned, by="anna")
    await moving.migrations.run(planned, by="anna")
    assert (await moving.drive(planned)).state is JobState.COMPLETED
    assert moving.books.content("people") == [{"name": "Ada"}]


async def test_records_with_an_unknown_target_attribute_become_dead_letters(moving: Moving) -> None:
    """Unknown target attribute: nothing is sent, one cause for all of them, the nearest name is said."""
    moving.give("people", [{"id": str(n), "name": f"P{n}", "tel": "1"} for n in range(40)])
    moving.books.known = [Attribute("name", "text"), Attribute("phone", "text")]

    id_ = await moving.run({"people": {"fields": {"name": "name", "phnoe": "tel"}}})

    (cause,) = await moving.migrations.dead(id_)
    assert cause.count == 40 and "no such attribute: did you mean 'phone'?" in cause.reason
    assert (await moving.migrations.find(id_)).state is JobState.FAILED and moving.books.writes == 0


async def test_a_record_over_the_size_limit_becomes_a_dead_letter(moving: Moving) -> None:
    """50 MB field: the record is refused with its length, and its neighbours are written."""
    path = moving.folder / "people.db"
    with sqlite3.connect(path) as database:
        database.execute("create table people (id integer primary key, name text)")
        database.execute(
            "insert into people values (1, 'A'), (2, replace(hex(zeroblob(25000000)), '0', 'x')), (3, 'C')"
        )
    database.close()

    id_ = await moving.run({"people": {"fields": {"name": "name"}}}, source={"kind": "sql", "url": f"sqlite:///{path}"})

    (cause,) = await moving.migrations.dead(id_)
    assert (cause.count, cause.example) == (1, "2") and "characters, the limit" in cause.reason, cause
    assert moving.books.content("people") == [{"name": "A"}, {"name": "C"}]


async def test_cyclic_record_types_are_rejected_with_their_names(moving: Moving) -> None:
    """Cyclic relation: nothing is kept, and the remedy opens the circle."""
    boss, firm = {"path": "boss", "reference": "people"}, {"path": "firm", "reference": "companies"}
    types = {"companies": {"fields": {"boss": boss}}, "people": {"fields": {"firm": firm}}}
    with pytest.raises(Invalid, match=r"companies → people → companies.*unresolved = \"leave\""):
        await moving.create(types)
    assert await moving.migrations.page() == []
