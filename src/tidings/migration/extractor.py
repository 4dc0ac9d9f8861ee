"""The extractor: reads sources page by page. The records of a page and its cursor are one transaction.

One reader per job and type at a time, by a lease on the type's row; every page names the cursor that it
follows, so whoever was taken over writes nothing. Records that come again are noticed and said.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, NamedTuple

import orjson

from ..kernel.clock import Clock
from ..model.errors import CallerError, Misconfigured, TidingsError
from ..model.time import SECOND, micros
from ..store.port import Row, Step, Store, WriteConflict
from .connector_pool import ConnectorPool, OpenedJob
from .connectors.port import ConnectorError, ErrorKind, Record, RecordPage, RecordSource, RecordState
from .crosswalk import json_parameter
from .error_policy import DEFAULT_WAIT, QUOTA_WAIT, error_fingerprint
from .job_events import event_for, event_step, halt_steps
from .jobs import JobState
from .mapping.lint import missing_columns
from .mapping.rules import TypeMap
from .rate_limits import Sleep

LEASE = 40 * SECOND  # longer than a page takes
TYPES = 8  # types that one node reads at once
PAGES = 20  # pages of one step
LONGEST = 2.0  # seconds after which no other page is begun: others wait to be read
IDLE = 1.0
LARGEST = 16_000_000  # characters of one record

_AGAIN = " (again, "
_HALTS = frozenset({ErrorKind.CREDENTIALS, ErrorKind.PERMISSION, ErrorKind.PERMANENT, ErrorKind.VALIDATION})


class ExtractedPage(NamedTuple):
    """A page, as it is written: rows for `job_record_add`, and how many came again just the same."""

    rows: list[dict[str, Any]]
    again: int
    clashes: int  # came again with other values


def page_rows(page: RecordPage, type_: str, known: dict[str, str | None], place: int) -> ExtractedPage:
    """The rows of a page. `known` are those of this round already, with their content. Pure."""
    rows: list[dict[str, Any]] = []
    seen, again, clashes = dict(known), 0, 0
    for number, record in enumerate(page.records):
        id_ = record.id
        raw, flaw = encode_record(record)
        if id_ in seen and seen[id_] == raw:
            again += 1
            continue
        if id_ in seen:
            clashes += 1
            reason = f"{type_} {id_}: the source has this id again, with other values (rule: id)"
            rows.append(
                _set_aside(type_, f"{id_}{_AGAIN}{place + number})", raw, reason, "id", "duplicate_id")
            )
            continue
        seen[id_] = raw
        if flaw is not None:
            rows.append(_set_aside(type_, id_, None, f"{type_} {id_}: {flaw}", None, "unreadable"))
        else:
            rows.append({"id": id_, "state": RecordState.EXTRACTED.value, "raw": raw})
    for spoiled in page.spoiled:
        if spoiled.id in seen:
            again += 1
            continue
        seen[spoiled.id] = None
        reason = f"{type_} {spoiled.id}: {spoiled.reason}"
        rows.append(_set_aside(type_, spoiled.id, None, reason, spoiled.field, None))
    return ExtractedPage(rows, again, clashes)


def encode_record(record: Record) -> tuple[str | None, str | None]:
    """A record as it is kept, or what is wrong with it."""
    try:
        raw = orjson.dumps(record.fields, default=str).decode()
    except (TypeError, ValueError, RecursionError) as error:
        return None, f"it cannot be kept as JSON ({error})"[:300]
    if "\\u0000" in raw:
        return None, "it has a null byte"
    if len(raw) > LARGEST:
        return None, f"it has {len(raw):,} characters, at most {LARGEST:,} can be kept"
    return raw, None


def source_id_of(id_: str) -> str:
    """What the source calls a record; one whose id came again is kept under a name of its own."""
    return id_.partition(_AGAIN)[0]


def _set_aside(
    type_: str, id_: str, raw: str | None, reason: str, field: str | None, code: str | None
) -> dict[str, Any]:
    mark = error_fingerprint(ErrorKind.VALIDATION, type_, field, code, reason.partition(": ")[2])
    return {
        "id": id_,
        "state": RecordState.REJECTED.value,
        "raw": raw,
        "failure": ErrorKind.VALIDATION.value,
        "field": field,
        "fingerprint": mark,
        "reason": reason[:1000],
    }


class Extractor:
    """An actor; one step reads some pages of every type that is open and free."""

    name = "extractor"

    def __init__(
        self, store: Store, clock: Clock, connections: ConnectorPool, *, sleep: Sleep = asyncio.sleep
    ) -> None:
        self._store = store
        self._clock = clock
        self._connections = connections
        self._sleep = sleep
        self._me = clock.new_id()

    async def step(self) -> float:
        """Read; gives the seconds until the next look."""
        due = await self._store.read("job_type_due", reader=self._me, limit=TYPES)
        if not due:
            return IDLE
        await asyncio.gather(*(self._read(row) for row in due))
        return 0.0

    async def _read(self, due: Row) -> None:
        """Some pages of one type."""
        row = (await self._store.read("job_row", n=due["job"]))[0]
        give_up = self._clock.monotonic() + LONGEST
        try:
            async with self._connections.use(due["job"], row["version"]) as opened:
                for _ in range(PAGES):
                    if not await self._page(opened, due, row["state"]) or self._clock.monotonic() >= give_up:
                        return
        except WriteConflict:
            return  # somebody else reads it, or the job was stopped
        except (Misconfigured, CallerError) as error:
            await self._halt(due, row["tenant"], row["name"], error)

    async def _page(self, opened: OpenedJob, due: Row, state: str) -> bool:
        """One page; True: there is another."""
        lease = {"job": due["job"], "type": due["type"], "reader": self._me, "lease": LEASE}
        taken = (await self._store.write([Step("job_type_take", lease)]))[0]
        if not taken:
            return False
        row, type_ = taken[0], opened.job.type(due["type"])
        try:
            expected = row["expected"]
            if row["cursor"] is None and expected is None:
                expected = await opened.source.count(type_.source)
            await self._wait_for_turn(opened)
            page = await opened.source.page(type_.source, row["cursor"])
            if row["cursor"] is None and state == JobState.RUNNING:
                await _refuse_missing(opened.source, type_, page)
        except ConnectorError as trouble:
            await self._failed(opened, due, row, trouble)
            return False
        known = await self._known(due, row, page)
        taken_in = page_rows(page, due["type"], known, row["extracted"] + row["seen_again"])
        note = _note(due["type"], row, taken_in, page, expected)
        move = {**lease, "cursor": page.cursor, "seen": row["cursor"], "expected": expected, "note": note}
        counts = {"n": len(taken_in.rows), "again": taken_in.again, "is_last": page.cursor is None}
        steps = [Step("job_type_page", {**move, **counts, "round": due["round"]}, needed=True)]
        if taken_in.rows:
            where = {"job": due["job"], "type": due["type"], "round": due["round"]}
            steps.append(Step("job_record_add", {**where, "rows": json_parameter(taken_in.rows)}))
        await self._store.write(steps)
        return page.cursor is not None

    async def _wait_for_turn(self, opened: OpenedJob) -> None:
        """Within what the source bears."""
        if opened.source.limits.reads_per_second is None and opened.job.caps.reads_per_second is None:
            return
        await opened.reads.turn(self._sleep)

    async def _known(self, due: Row, row: Row, page: RecordPage) -> dict[str, str | None]:
        """Those of a page that came before; there can be none before the first page was written."""
        if row["cursor"] is None:
            return {}
        ids = json_parameter([*(one.id for one in page.records), *(one.id for one in page.spoiled)])
        rows = await self._store.read(
            "job_record_known", job=due["job"], type=due["type"], round=due["round"], ids=ids
        )
        return {found["source_id"]: found["raw"] for found in rows}

    async def _failed(self, opened: OpenedJob, due: Row, row: Row, trouble: ConnectorError) -> None:
        """Again later; or the job stops, because the source does not let it in or is not what it was."""
        now, failure = self._clock.now(), trouble.failure
        wait, spent = trouble.wait, 0
        halts = failure in _HALTS or failure is ErrorKind.NOT_FOUND
        if failure is ErrorKind.QUOTA:
            halts, wait = True, wait or QUOTA_WAIT
        elif not halts and wait is None:
            rule = opened.job.retry.rule(failure)
            spent = 1
            if rule is None or row["attempts"] + 1 >= rule.max_attempts:
                halts = True
            else:
                wait = rule.delay(row["attempts"] + 1, chance=self._clock.chance())
        due_at = now + micros(wait or DEFAULT_WAIT)
        where = {"job": due["job"], "type": due["type"], "reader": self._me}
        problem = f"{due['type']} cannot be read: {trouble.reason}"[:500]
        steps = [Step("job_type_failed", {**where, "spent": spent, "due_at": due_at, "problem": problem})]
        if halts:
            until = due_at if failure is ErrorKind.QUOTA else None
            steps += halt_steps(
                due["job"], f"{failure}: {problem}", until, event_for(opened, "migration.paused", problem), 1
            )
        await self._store.write(steps)

    async def _halt(self, due: Row, tenant: str, name: str, error: TidingsError) -> None:
        await self._store.write(
            halt_steps(
                due["job"], str(error), None, event_step(tenant, name, "migration.paused", error.problem), 0
            )
        )


async def _refuse_missing(source: RecordSource, type_: TypeMap, page: RecordPage) -> None:
    """A run without a plan stops before its first record where the map names fields that are not there."""
    named = await source.attributes(type_.source)
    if named is None:
        return  # only the records show them, and not each of them all
    there = {one.name for one in named}.union(*(record.fields for record in page.records))
    missing = list(missing_columns(type_, sorted(there)))
    if missing:
        first = f"{missing[0].field}: {missing[0].text} ({missing[0].remedy})"
        more = f" (and {len(missing) - 1} more)" if missing[1:] else ""
        remedy = "Mend the map, or plan it and approve the plan"
        raise ConnectorError(ErrorKind.VALIDATION, f"{first}{more}. {remedy}", field=missing[0].field)


def _note(type_: str, row: Row, taken: ExtractedPage, page: RecordPage, expected: int | None) -> str | None:
    """What was noticed about the source: it changed while it was read."""
    told_of: Sequence[str] = ()
    if taken.clashes:
        told_of = [f"{taken.clashes} ids came again with other values"]
    elif taken.again:
        told_of = [f"{taken.again} records came again: the source changed while it was read"]
    elif page.cursor is None and expected is not None:
        given = row["extracted"] + len(taken.rows)
        if given != expected:
            told_of = [f"the source said {expected:,} and gave {given:,}: it changed while it was read"]
    return f"{type_}: {told_of[0]}" if told_of else None
