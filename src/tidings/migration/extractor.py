"""The extractor: reads sources page by page (an actor).

A page's records and the next cursor are committed in one transaction. Each job and type has one reader at a
time, by a lease on the type's row; every page names the cursor it follows, so a reader that lost its lease
writes nothing. Duplicate source ids are detected and noted.
"""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

import orjson

from ..kernel.clock import Clock
from ..model.errors import CallerError, Misconfigured
from ..model.time import SECOND, micros
from ..store.port import Row, Step, Store, WriteConflict
from .connector_pool import ConnectorPool, OpenedJob
from .connectors.port import ConnectorError, ErrorKind, Record, RecordPage, RecordSource
from .crosswalk import to_json
from .error_policy import DEFAULT_WAIT, QUOTA_WAIT, error_fingerprint
from .job_events import event_for, halt_for_error, halt_steps
from .jobs import JobState
from .mapping.lint import missing_columns
from .mapping.rules import TypeMap
from .rate_limits import Sleep
from .record_states import RecordState

LEASE = 40 * SECOND  # longer than one page takes
TYPES = 8  # types read concurrently per node
PAGES = 20  # pages per step
LONGEST = 2.0  # seconds after which no further page is started, so that others are read too
IDLE = 1.0
LARGEST = 16_000_000  # characters per record

_AGAIN = " (again, "
_HALTS = frozenset({ErrorKind.CREDENTIALS, ErrorKind.PERMISSION, ErrorKind.PERMANENT, ErrorKind.VALIDATION})


class ExtractedPage(NamedTuple):
    """The rows of a page for `job_record_add`, and how many records were exact duplicates."""

    rows: list[dict[str, Any]]
    again: int
    clashes: int  # duplicate ids with other values


def page_rows(page: RecordPage, type_: str, known: dict[str, str | None], place: int) -> ExtractedPage:
    """Return the rows of a page. `known` are earlier records of this round with their content. Pure."""
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
            reason = f"{type_} {id_}: duplicate id with other values (rule: id)"
            rows.append(_rejected_row(type_, f"{id_}{_AGAIN}{place + number})", raw, reason, "id", "duplicate_id"))
            continue
        seen[id_] = raw
        if flaw is not None:
            rows.append(_rejected_row(type_, id_, None, f"{type_} {id_}: {flaw}", None, "unreadable"))
        else:
            rows.append({"id": id_, "state": RecordState.EXTRACTED.value, "raw": raw})
    for unreadable in page.unreadable:
        if unreadable.id in seen:
            again += 1
            continue
        seen[unreadable.id] = None
        reason = f"{type_} {unreadable.id}: {unreadable.reason}"
        rows.append(_rejected_row(type_, unreadable.id, None, reason, unreadable.field, None))
    return ExtractedPage(rows, again, clashes)


def encode_record(record: Record) -> tuple[str | None, str | None]:
    """Encode a record for storage; return the JSON, or what is wrong with it."""
    try:
        raw = orjson.dumps(record.fields, default=str).decode()
    except (TypeError, ValueError, RecursionError) as error:
        return None, f"it cannot be stored as JSON ({error})"[:300]
    if "\\u0000" in raw:
        return None, "it has a null byte"
    if len(raw) > LARGEST:
        return None, f"it has {len(raw):,} characters, the limit is {LARGEST:,}"
    return raw, None


def source_id_of(id_: str) -> str:
    """Return the id in the source; duplicates are stored under a suffixed id."""
    return id_.partition(_AGAIN)[0]


def _rejected_row(
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
    """An actor; one step reads some pages of every type that is open and not leased."""

    name = "extractor"

    def __init__(self, store: Store, clock: Clock, connections: ConnectorPool, *, sleep: Sleep = asyncio.sleep) -> None:
        self._store, self._clock, self._connections, self._sleep = store, clock, connections, sleep
        self._me = clock.new_id()

    async def step(self) -> float:
        """Read pages; return the seconds until the next step."""
        due = await self._store.read("job_type_due", reader=self._me, limit=TYPES)
        if not due:
            return IDLE
        await asyncio.gather(*(self._read(row) for row in due))
        return 0.0

    async def _read(self, due: Row) -> None:
        row = (await self._store.read("job_row", n=due["job"]))[0]
        give_up = self._clock.monotonic() + LONGEST
        try:
            async with self._connections.use(due["job"], row["version"]) as opened:
                for _ in range(PAGES):
                    if not await self._page(opened, due, row["state"]) or self._clock.monotonic() >= give_up:
                        return
        except WriteConflict:
            return  # another reader has the lease, or the job was stopped
        except (Misconfigured, CallerError) as error:
            await self._store.write(halt_for_error(due["job"], row, error))

    async def _page(self, opened: OpenedJob, due: Row, state: str) -> bool:
        """Read one page; return whether there is another."""
        lease = {"job": due["job"], "type": due["type"], "reader": self._me, "lease": LEASE}
        taken = (await self._store.write([Step("job_type_take", lease)]))[0]
        if not taken:
            return False
        row, type_ = taken[0], opened.job.type(due["type"])
        try:
            expected = row["expected"]
            if row["cursor"] is None and expected is None:
                expected = await opened.source.count(type_.source)
            await opened.reads.wait_for_slot(self._sleep)
            page = await opened.source.page(type_.source, row["cursor"])
            if row["cursor"] is None and state == JobState.RUNNING:
                await _refuse_missing(opened.source, type_, page)
        except ConnectorError as error:
            await self._failed(opened, due, row, error)
            return False
        known = await self._known(due, row, page)
        extracted = page_rows(page, due["type"], known, row["extracted"] + row["seen_again"])
        note = _note(due["type"], row, extracted, page, expected)
        move = {**lease, "cursor": page.cursor, "seen": row["cursor"], "expected": expected, "note": note}
        counts = {"n": len(extracted.rows), "again": extracted.again, "is_last": page.cursor is None}
        steps = [Step("job_type_page", {**move, **counts, "round": due["round"]}, needed=True)]
        if extracted.rows:
            where = {"job": due["job"], "type": due["type"], "round": due["round"]}
            steps.append(Step("job_record_add", {**where, "rows": to_json(extracted.rows)}))
        await self._store.write(steps)
        await opened.reads.wait_for_slot(self._sleep, page.calls - 1)  # calls beyond the first, after the fact
        return page.cursor is not None

    async def _known(self, due: Row, row: Row, page: RecordPage) -> dict[str, str | None]:
        """Return the stored records of a page by id; none before the first page."""
        if row["cursor"] is None:
            return {}
        ids = to_json([*(one.id for one in page.records), *(one.id for one in page.unreadable)])
        rows = await self._store.read("job_record_known", job=due["job"], type=due["type"], round=due["round"], ids=ids)
        return {found["source_id"]: found["raw"] for found in rows}

    async def _failed(self, opened: OpenedJob, due: Row, row: Row, error: ConnectorError) -> None:
        """Schedule a retry; or pause the job if the source rejects it or has changed."""
        now, failure = self._clock.now(), error.failure
        wait, spent = error.wait, 0
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
        problem = f"{due['type']} cannot be read: {error.reason}"[:500]
        steps = [Step("job_type_failed", {**where, "spent": spent, "due_at": due_at, "problem": problem})]
        if halts:
            until = due_at if failure is ErrorKind.QUOTA else None
            event = event_for(opened, "migration.paused", problem)
            steps += halt_steps(due["job"], f"{failure}: {problem}", until, event, 1)
        await self._store.write(steps)


async def _refuse_missing(source: RecordSource, type_: TypeMap, page: RecordPage) -> None:
    """Stop an unplanned run before its first record if the map names missing fields."""
    named = await source.attributes(type_.source)
    if named is None:
        return  # only the records show them, and not every record has all
    there = {one.name for one in named}.union(*(record.fields for record in page.records))
    missing = list(missing_columns(type_, sorted(there)))
    if missing:
        first = f"{missing[0].field}: {missing[0].text} ({missing[0].remedy})"
        more = f" (and {len(missing) - 1} more)" if missing[1:] else ""
        remedy = "Fix the map, or plan the job and approve the plan"
        raise ConnectorError(ErrorKind.VALIDATION, f"{first}{more}. {remedy}", field=missing[0].field)


def _note(type_: str, row: Row, taken: ExtractedPage, page: RecordPage, expected: int | None) -> str | None:
    """Return a note about a source that changed during the read."""
    noted: str | None = None
    if taken.clashes:
        noted = f"{taken.clashes} duplicate ids with other values"
    elif taken.again:
        noted = f"{taken.again} duplicate records: the source changed during the read"
    elif page.notes:
        noted = "; ".join(page.notes)[:500]
    elif page.cursor is None and expected is not None:
        given = row["extracted"] + len(taken.rows)
        if given != expected:
            noted = f"the source counted {expected:,} and returned {given:,}: it changed during the read"
    return None if noted is None else f"{type_}: {noted}"
