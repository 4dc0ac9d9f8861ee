"""Verification on real files: planted differences are found, each with its reason, and nothing else is."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tidings.migration.connectors import registry
from tidings.migration.connectors.port import TargetRecord, WriteStrategy
from tidings.migration.external_sort import SortedRuns
from tidings.migration.job_file import MigrationJob, read_job
from tidings.migration.mapping.mapper import Mapper
from tidings.migration.record_states import RecordState
from tidings.migration.verification import verify
from tidings.migration.verification_report import LISTED, DifferenceCode, RecordDifference, VerificationReport

PEOPLE: dict[str, Any] = {
    "from": "persons",
    "group": "country",
    "skip": "archived",
    "fields": {
        "name": {"path": "full_name", "required": True},
        "mail": {"path": "mail", "type": "email", "secret": True},
        "since": {"path": "since", "type": "time"},
        "tags": {"path": "tags", "many": True},
        "company": {"path": "company", "reference": "companies"},
    },
}


class Known:
    """What the job knows: its crosswalk, and where some records stand."""

    def __init__(self, states: Mapping[str, tuple[RecordState, str]] | None = None) -> None:
        self.crosswalk = {("companies", "1"): "c1", ("notes", "1"): "n1", ("notes", "2"): "n2"}
        self._states = states or {}

    async def targets(self, asked: Sequence[tuple[str, str]]) -> Mapping[tuple[str, str], str]:
        return {link: self.crosswalk[link] for link in asked if link in self.crosswalk}

    async def states(self, type_: str, ids: Sequence[str]) -> Mapping[str, tuple[RecordState, str]]:
        return {id_: self._states[id_] for id_ in ids if id_ in self._states}

    async def repairs(self, type_: str) -> AsyncIterator[tuple[str, str]]:
        return
        yield

    async def repaired_fields(self, type_: str, ids: Sequence[str]) -> Mapping[str, Any]:
        return {}


class VerifyHarness:
    """A source and a target in files, and a job between them."""

    def __init__(self, folder: Path) -> None:
        self.there, self.here = folder / "source", folder / "target"
        self.there.mkdir()
        self.here.mkdir()
        self.write(self.there, "organizations", [{"id": "1", "name": "Acme"}])
        self.write(self.here, "companies", [{"id": "1", "name": "Acme"}])
        self.write(self.there, "persons", [])
        self.types: dict[str, Any] = {
            "companies": {"from": "organizations", "fields": {"name": "name"}},
            "people": PEOPLE,
        }
        self.more: dict[str, Any] = {}

    @staticmethod
    def write(folder: Path, name: str, rows: Iterable[object]) -> None:
        lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
        (folder / f"{name}.ndjson").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    def job(self) -> MigrationJob:
        sides = {
            side: {"kind": "ndjson", "path": str(path)}
            for side, path in (("source", self.there), ("target", self.here))
        }
        return read_job({"name": "move", "types": self.types, **sides, **self.more})

    async def verify(self, known: Known | None = None, target: Any = None, **more: Any) -> VerificationReport:
        job = self.job()
        source = registry.source(job.source.kind, job.source.options)
        target = target or registry.target(job.target.kind, job.target.options)
        return await verify(job, source, target, Mapper(job.types), known or Known(), **more)


@pytest.fixture
def world(tmp_path: Path) -> VerifyHarness:
    """Companies that are the same on both sides; people are up to the test."""
    return VerifyHarness(tmp_path)


def person(id_: str, **more: Any) -> dict[str, Any]:
    plain = {"id": id_, "full_name": f"P{id_}", "mail": f"p{id_}@example.org", "country": "DE"}
    return {**plain, "since": "2026-01-01T10:00:00+01:00", "tags": ["a", "b"], "company": 1, **more}


def moved(id_: str, **more: Any) -> dict[str, Any]:
    plain = {"id": id_, "name": f"P{id_}", "mail": f"p{id_}@EXAMPLE.org", "company": "c1"}
    return {**plain, "since": "2026-01-01T09:00:00.000000000Z", "tags": ["b", "a"], "own": "x", **more}


def told(report: VerificationReport, type_: str = "people") -> dict[str | None, tuple[DifferenceCode, bool]]:
    (one,) = [one for one in report.types if one.type == type_]
    return {found.source_id or found.target_id: (found.code, found.explained) for found in one.listed}


async def test_verification_treats_equal_values_in_other_forms_as_equal(world: VerifyHarness) -> None:
    """Zones, nanoseconds, capitals of a domain, the order of tags, fields of the target's own: no noise."""
    world.write(world.there, "persons", [person("1"), person("2", country="FR")])
    world.write(world.here, "people", [moved("2"), moved("1")])

    report = await world.verify()

    assert report.passed and report.unexplained == 0
    people = report.types[1]
    assert (people.source, people.target, people.same, people.listed) == (2, 2, 2, [])
    assert people.groups == {name: {"source": 1, "target": 1, "same": 1} for name in ("DE", "FR")}
    assert report.text().startswith("passed")


async def test_a_link_that_was_left_out_and_never_written_fails_verification(world: VerifyHarness) -> None:
    """`unresolved = "leave"` writes the record without the link: no field differs, but a link is lost."""
    leave = {"path": "company", "reference": "companies", "unresolved": "leave"}
    world.types["people"] = {**PEOPLE, "fields": {**PEOPLE["fields"], "company": leave}}
    world.write(world.there, "persons", [person("1"), person("2", company=7), person("3", company=None)])
    lost = {name: value for name, value in moved("2").items() if name != "company"}
    alone = {name: value for name, value in moved("3").items() if name != "company"}
    world.write(world.here, "people", [moved("1"), lost, alone])

    report = await world.verify()

    people = report.types[1]
    assert (people.same, people.listed, people.relations) == (3, [], {"company": {"source": 2, "target": 1}})
    assert not report.passed and report.unexplained == 1
    assert "relation company: source 2, target 1, 1 lost" in report.text()
    assert report.plainly()["types"][1]["relations"] == people.relations


async def test_each_planted_difference_is_found_with_its_reason(world: VerifyHarness) -> None:
    """Missing, different, extra, waiting, rejected, failed, skipped: each has a code of its own."""
    world.write(
        world.there,
        "persons",
        [
            person("same"),
            person("gone"),
            person("other", full_name="New"),
            person("bad", mail="canary-mail"),
            person("old", archived=True),
            person("orphan", company=9),
            person("late"),
            person("refused"),
            person("undead", archived=True),
            '{"id": "torn", "full_name": ',
        ],
    )
    rows = [moved("same"), moved("other", mail="canary-theirs@example.org"), moved("stranger"), moved("undead")]
    world.write(world.here, "people", rows)
    states = {"late": (RecordState.FAILED, "5xx, 5 tries"), "refused": (RecordState.REJECTED, "409 taken")}
    heard: list[RecordDifference] = []

    report = await world.verify(Known(states), tell=heard.append)

    assert told(report) == {
        "gone": (DifferenceCode.MISSING, False),
        "other": (DifferenceCode.DIFFERENT, False),
        "bad": (DifferenceCode.REJECTED, True),
        "old": (DifferenceCode.SKIPPED, True),
        "orphan": (DifferenceCode.WAITING, False),
        "late": (DifferenceCode.FAILED, False),
        "refused": (DifferenceCode.REJECTED, True),
        "undead": (DifferenceCode.EXTRA, False),
        "line 10": (DifferenceCode.REJECTED, True),
        "stranger": (DifferenceCode.EXTRA, False),
    }
    (other,) = [one for one in heard if one.code is DifferenceCode.DIFFERENT]
    assert [change.field for change in other.changes] == ["name", "mail"]
    assert (other.changes[0].expected, other.changes[0].found) == ('"New"', '"Pother"')
    assert not report.passed and report.unexplained == 6
    people = report.types[1]
    assert (people.source, people.target, people.same) == (10, 4, 1)
    assert len(heard) == people.counts.total() == 10
    both = report.text() + json.dumps(report.plainly())
    assert "canary" not in both and "5xx, 5 tries" in both


async def test_verification_reports_duplicates_on_either_side(world: VerifyHarness) -> None:
    """C8: nothing is doubled silently; two records of the source with one key are told, too."""
    world.types["people"] = {**PEOPLE, "key": "code"}
    world.write(world.there, "persons", [person("1", code="x"), person("2", code="x"), person("3", code="y")])
    third = {"name": "P3", "mail": "p3@example.org"}
    rows = [moved("x", name="P1", mail="p1@example.org"), moved("y", **third), moved("y", **third, own="again")]
    world.write(world.here, "people", rows)

    report = await world.verify()

    codes = [(one.code, one.key, one.explained) for one in report.types[1].listed]
    assert codes == [(DifferenceCode.DUPLICATE_KEY, "x", False), (DifferenceCode.DOUBLED, "y", False)]


async def test_verification_explains_types_not_migrated_and_extra_records(world: VerifyHarness) -> None:
    """Left by decision is counted with its reason and does not spoil parity."""
    world.write(world.there, "persons", [person("1")])
    world.write(world.here, "people", [moved("1"), moved("before")])
    world.types["people"] = {**PEOPLE, "extra": True}
    world.more = {"not_migrated": {"interactions": "mailboxes are connected again"}}

    report = await world.verify()

    assert report.passed and told(report) == {"before": (DifferenceCode.EXTRA, True)}
    assert report.plainly()["not_migrated"] == {
        "interactions": {"reason": "mailboxes are connected again", "count": None}
    }
    assert "interactions: not migrated by decision (?): mailboxes" in report.text()


class Notes:
    """A target that knows no keys of ours, like a CRM's notes."""

    kind = "notes"

    def __init__(self, rows: Mapping[str, Mapping[str, Any] | None]) -> None:
        self._rows = rows

    def strategy(self, type_: str) -> WriteStrategy:
        return WriteStrategy.RECONCILE

    async def read_all(self, type_: str) -> AsyncIterator[tuple[str, TargetRecord]]:
        for id_, fields in self._rows.items():
            yield "made of its content", TargetRecord(id_, fields)


async def test_records_without_keys_are_matched_through_the_crosswalk(world: VerifyHarness) -> None:
    """A note that was written twice is an extra that nobody can explain; one that was not is missing."""
    world.types = {"notes": {"fields": {"text": "text"}}}
    world.write(world.there, "notes", [{"id": str(n), "text": f"t{n}"} for n in (1, 2, 3)])
    rows = {"n1": {"text": "t1"}, "n2": {"text": "changed"}, "twin": {"text": "t1"}}

    report = await world.verify(target=Notes(rows))

    assert told(report, "notes") == {
        "2": (DifferenceCode.DIFFERENT, False),
        "3": (DifferenceCode.MISSING, False),
        "twin": (DifferenceCode.EXTRA, False),
    }
    only_there = await world.verify(target=Notes({"n1": None, "n2": None}))
    assert told(only_there, "notes") == {"3": (DifferenceCode.MISSING, False)}
    assert "does not return fields" in only_there.types[0].notes[0]


async def test_verification_sorts_many_records_on_disk(world: VerifyHarness) -> None:
    """C7: however little fits into memory, every difference is counted; the list stops at its bound."""
    many = 2200
    world.write(world.there, "persons", [person(str(n)) for n in range(many)])
    order = random.Random(7).sample(range(many), many)
    world.write(world.here, "people", [moved(str(n)) for n in order if n % 2])

    report = await world.verify(largest_run=50_000)

    people = report.types[1]
    assert (people.same, people.counts[DifferenceCode.MISSING]) == (many // 2, many // 2)
    assert len(people.listed) == LISTED and people.plainly()["not_listed"] == many // 2 - LISTED
    assert f"and {many // 2 - LISTED:,} more" in report.text()


def test_external_sort_returns_every_row_by_key_in_order() -> None:
    """Whatever is in a key or a row, and however small the runs are."""
    keys = ["b", "a", "\n", "\t", "ä", "a", "", "\ud800", "b", "long" * 100]

    with SortedRuns(largest=200) as runs:
        for place, key in enumerate(keys):
            runs.add(key, place, {"x": ["\n\t", None, 1.5]})
        found = [(key, [row[0] for row in rows]) for key, rows in runs.groups()]

    assert found == [(key, [n for n, one in enumerate(keys) if one == key]) for key in sorted(set(keys))]
