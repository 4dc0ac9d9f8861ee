"""Write status, sent time and error of imported rows to the other system's table.

The rows of `import_rows` are the outbox: they are written with the messages, and stay due until the other
table has their latest state. An update sets columns by key, so repeating it after a crash changes nothing. One
process at a time writes a source. A source that does not answer is retried with exponential backoff; a row
that it rejects is recorded and does not delay the others.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ...kernel.clock import Clock
from ...model.errors import Invalid
from ...model.task import TaskState
from ...model.time import SECOND, iso, moment
from ...store.external_tables.port import ColumnValue, ExternalTable, RowUpdate
from ...store.external_tables.registry import open_table
from ...store.port import Row, Step, Store
from .settings import ImportSettings
from .timestamps import UNITS

PAGE = 200
POLL_INTERVAL = 1.0  # seconds
LEASE = 60 * SECOND  # a process that takes longer may be overtaken; what it then writes is written again
MAX_BACKOFF = 300 * SECOND
MAX_PROBLEM_LENGTH = 300
MAX_ERROR_LENGTH = 500
_log = logging.getLogger("tidings.imports")
_FINAL = {
    TaskState.DONE: "sent",
    TaskState.FAILED: "failed",
    TaskState.CANCELLED: "cancelled",
    TaskState.EXPIRED: "expired",
}
_FINAL_BROADCASTS = {"completed": "failed", "failed": "failed", "cancelled": "cancelled", "expired": "expired"}


class RowResult(NamedTuple):
    """The state of a row, and when to look at it again; None: when something changes it."""

    state: str
    sent_at: int | None = None
    error: str | None = None
    check_at: int | None = None


def row_result(row: Row, now: int) -> RowResult:
    """The result of an imported row, from its message, schedule or broadcast."""
    if row["kind"] == "schedule":
        is_over = row["schedule"] in (None, "ended")
        again = None if is_over else min(now + 300 * SECOND, (row["next_at"] or now) + 2 * SECOND)
        return RowResult("cancelled" if is_over else "imported", row["last_at"], row["problem"], again)
    state = row["state"]
    if state in _FINAL:
        word = "unknown" if row["unknown"] and state == TaskState.FAILED else _FINAL[state]
        if word == "sent":
            return RowResult(word, row["changed_at"])
        return RowResult(word, error=(row["detail"] or word)[:MAX_ERROR_LENGTH])
    if state is None and row["kind"] == "message":  # removed by the retention
        return RowResult(row["written"] or "expired")
    if state is None and row["broadcast"] in (None, *_FINAL_BROADCASTS):
        word = _FINAL_BROADCASTS.get(row["broadcast"], "cancelled")
        return RowResult(word, error=row["reason"] or "the recipient was not accepted")
    due = row["due_at"] or row["scheduled_at"] or now
    waited = max(0, now - due)
    return RowResult("imported", check_at=max(due, now + min(60 * SECOND, max(SECOND, waited // 4))))


def updated_columns(result: RowResult, settings: ImportSettings) -> dict[str, ColumnValue]:
    """The columns to set; a state whose word is empty leaves the status as it is."""
    unit = UNITS.get(settings.request.time)
    sent = result.sent_at
    values: dict[str, ColumnValue] = {
        "status": settings.words.get(result.state, result.state) or None,
        "sent_at": None if sent is None else moment(sent) if unit is None else sent // unit,
        "error": result.error,
    }
    return {
        column: values[field]
        for field, column in settings.write_back.items()
        if values[field] is not None or (field == "error" and result.state != "imported")
    }


class _DueRow(NamedTuple):
    row: Row
    result: RowResult
    columns: dict[str, ColumnValue]

    @property
    def is_changed(self) -> bool:
        """Whether the other table does not have this state yet."""
        return bool(self.columns) and (self.row["undone"] or self.row["written"] != _digest(self.result))


class WriteBackRelay:
    """An actor; one step writes one page of each source."""

    name = "write_back"

    def __init__(self, store: Store, clock: Clock, imports: Mapping[str, ImportSettings]) -> None:
        self._store = store
        self._clock = clock
        self._imports = {name: its for name, its in imports.items() if its.write_back}

    async def step(self) -> float:
        """Write what has changed."""
        full = False
        for row in await self._store.read("write_back_due", limit=PAGE):
            settings = self._imports.get(row["source"])
            if settings is None:
                continue
            lease = 0 if self._store.sole_worker else LEASE
            taken = await self._store.write([Step("write_back_take", {"source": row["source"], "lease": lease})])
            if taken[0]:
                full |= await self._relay(row, settings)
        return 0.0 if full else POLL_INTERVAL

    async def _relay(self, source: Row, settings: ImportSettings) -> bool:
        """Write one page of a source; returns whether there may be more."""
        name, now = source["source"], self._clock.now()
        page = await self._store.read("write_back_page", source=name, limit=PAGE)
        due = [_due(row, settings, now) for row in page]
        changed = [one for one in due if one.is_changed]
        try:
            problems = await self._update(settings, changed) if changed else {}
        except Exception as error:  # whatever the driver raises: visible, and retried
            problem = (str(error) or type(error).__name__)[:MAX_PROBLEM_LENGTH]
            delay = min(MAX_BACKOFF, SECOND << min(source["failures"], 20))
            _log.warning("write-back of %s failed, next attempt in %d s: %s", name, delay // SECOND, problem)
            await self._store.write([Step("write_back_failed", {"source": name, "problem": problem, "delay": delay})])
            return False
        steps = [step for one in due for step in _settled(one, problems.get(one.row["key"]), name, now)]
        steps.append(Step("write_back_done", {"source": name, "n": len(changed) - len(problems)}))
        await self._store.write(steps)
        return len(page) == PAGE

    async def _update(self, settings: ImportSettings, changed: Sequence[_DueRow]) -> dict[str, str]:
        """Update the other table; returns the problem of each row that could not be updated."""
        async with open_table(settings.url, settings.table, writable=True) as table:
            key = settings.request.key or table.primary
            if key is None:
                raise Invalid("the table has no single-column key", field="key", remedy="name one in the settings")
            changes = [(one.row["key"], one.columns) for one in changed]
            try:
                return _missing(changes, await table.update(key, changes))
            except Invalid:  # find the row that is rejected
                problems: dict[str, str] = {}
                for change in changes:
                    problems |= await _update_one(table, key, change)
                return problems


async def _update_one(table: ExternalTable, key: str, change: RowUpdate) -> dict[str, str]:
    try:
        return _missing([change], await table.update(key, [change]))
    except Invalid as error:
        return {change[0]: error.problem[:MAX_PROBLEM_LENGTH]}


def _missing(changes: Sequence[RowUpdate], found: set[str]) -> dict[str, str]:
    return {key: "the row does not exist any more" for key, _ in changes if key not in found}


def _due(row: Row, settings: ImportSettings, now: int) -> _DueRow:
    result = row_result(row, now)
    if not row["undone"]:
        return _DueRow(row, result, updated_columns(result, settings))
    status = settings.write_back.get("status")
    return _DueRow(row, result, {} if status is None or row["before"] is None else {status: row["before"]})


def _settled(one: _DueRow, problem: str | None, source: str, now: int) -> list[Step]:
    """The steps after an update. A row that changed meanwhile is written again, whatever this update wrote."""
    place = {"source": source, "key": one.row["key"], "version": one.row["version"]}
    if one.row["undone"] and problem is None:
        return [Step("import_restored", place)]
    again = one.result.check_at if problem is None else now + MAX_BACKOFF
    written = one.row["written"] if problem is not None else _digest(one.result)
    done = {**place, "written": written, "check_at": again, "problem": problem}
    return [Step("import_written", done), *([Step("import_recheck", place)] if one.is_changed else [])]


def _digest(result: RowResult) -> str:
    """What identifies a written state: a row whose digest is unchanged is not written again."""
    return " ".join(filter(None, (result.state, iso(result.sent_at), result.error)))


async def write_back_status(store: Store, *, tenant: str = "default", limit: int = 100) -> list[Row]:
    """State of the write-backs: what waits, what was written, what fails, and rows that were rejected."""
    found = []
    for row in await store.read("write_back_list", tenant=tenant, limit=limit):
        times = {name: iso(row[name]) for name in ("failing_since", "last_at")}
        times["next_at"] = iso(row["next_at"]) if row["failures"] else None
        rejected = await store.read("write_back_rejected", source=row["source"], limit=20) if row["rejected"] else []
        found.append({**row, **times, "rejected_rows": rejected})
    return found
