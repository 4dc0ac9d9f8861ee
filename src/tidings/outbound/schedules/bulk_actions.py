"""Many schedules in one call: create them from rows; pause, resume, end or remove those that match a filter.

Rows are created one chunk per transaction. An invalid row is reported and skipped. With an idempotency key
an interrupted call can be repeated: chunks that were created return their first answer.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import orjson

from ...inputs.fields import hint
from ...model.errors import CallerError, Conflict, Invalid, NotFound, TidingsError
from ...store.port import Step, Store
from ..draft_parser import MESSAGE_FIELDS
from ..idempotency import create_once, find_replay
from ..messages import BulkLineResult
from .recurrence import RULE_KINDS
from .request_parser import SCHEDULE_FIELDS
from .schedule_filters import find_schedules, parse_selection
from .service import ScheduleService

CHUNK = 500  # schedules per transaction
MAX_CHANGED = 10_000  # schedules changed by one call
ACTIONS = {"pause": ("active",), "resume": ("paused",), "end": ("active", "paused"), "remove": None}
_LISTS = ("tags", "excluded_dates")
_MESSAGE_COLUMNS = ("channel", "to", "text", "subject", "template", "priority", "ordering_key", "expires_in")


NumberedSchedule = tuple[int, Mapping[str, Any] | TidingsError]


class BulkChange(NamedTuple):
    """The result of an action: schedules that match, that were changed, and whether there are more."""

    matched: int
    changed: int
    more: bool


class ScheduleBulk:
    """Actions on many schedules."""

    def __init__(self, schedules: ScheduleService, store: Store) -> None:
        self._schedules = schedules
        self._store = store

    async def create_many(
        self,
        rows: AsyncIterator[NumberedSchedule],
        *,
        timezone: ZoneInfo,
        key: str | None = None,
        dry_run: bool = False,
        tenant: str = "default",
    ) -> AsyncIterator[list[BulkLineResult]]:
        """Create a schedule from each row, or only validate it; yields the results chunk by chunk."""
        chunk: list[NumberedSchedule] = []
        async for row in rows:
            chunk.append(row)
            if len(chunk) == CHUNK:
                yield await self._create(chunk, timezone, key, dry_run, tenant)
                chunk = []
        if chunk:
            yield await self._create(chunk, timezone, key, dry_run, tenant)

    async def _create(
        self, chunk: list[NumberedSchedule], timezone: ZoneInfo, key: str | None, dry_run: bool, tenant: str
    ) -> list[BulkLineResult]:
        place = None if key is None else f"{key}#{chunk[0][0]}"
        said = [repr(row) if isinstance(row, TidingsError) else row for _, row in chunk]
        earlier = await find_replay(self._store, self._schedules.once("schedules.bulk", place, said, None, tenant))
        if earlier is not None:
            return _replayed(earlier.answer)
        lines, steps = list[BulkLineResult](), list[Step]()
        for number, row in chunk:
            try:
                if isinstance(row, TidingsError):
                    raise row
                step, shown = await self._schedules.prepare(body_of(row), timezone=timezone, tenant=tenant)
            except CallerError as error:
                lines.append(BulkLineResult(number, None, error))
                continue
            steps.append(step)
            lines.append(BulkLineResult(number, shown["id"]))
        if dry_run:
            return lines
        answer = [
            [line.number, line.id, line.error and [line.error.problem, line.error.remedy, line.error.field]]
            for line in lines
        ]
        once = self._schedules.once("schedules.bulk", place, said, answer, tenant)
        made = await create_once(self._store, steps, answer, once)
        await self._store.hint()
        return _replayed(made.answer) if made.replayed else lines

    async def change(self, action: str, body: object, *, tenant: str = "default") -> BulkChange:
        """Apply an action to the schedules that match; those it does not fit are left alone."""
        if action not in ACTIONS:
            raise NotFound(f"there is no action {action[:40]!r}", remedy=f"use {', '.join(ACTIONS)}")
        wanted, is_dry_run = parse_selection(body)
        origins = ACTIONS[action]
        matched = changed = 0
        after: str | None = None
        while matched < MAX_CHANGED:
            page = await find_schedules(self._store, wanted, limit=CHUNK, after=after, tenant=tenant)
            for row in page.items:
                if origins is not None and row["state"] not in origins:
                    continue
                matched += 1
                changed += not is_dry_run and await self._change(action, row["id"], tenant)
            if page.next is None:
                return BulkChange(matched, changed, more=False)
            after = page.next
        return BulkChange(matched, changed, more=True)

    async def _change(self, action: str, id_: str, tenant: str) -> bool:
        try:
            await getattr(self._schedules, action)(id_, tenant=tenant)
        except (Conflict, NotFound):  # changed meanwhile, or it has no run left
            return False
        return True


def body_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """The request of an uploaded row: as in the API, or the columns of a CSV file with the rule by its kind."""
    if "rule" in row or "message" in row or "broadcast" in row:
        return dict(row)
    given = {name: value for name, value in row.items() if value not in ("", None)}
    body: dict[str, Any] = {"rule": {kind: given.pop(kind) for kind in RULE_KINDS if kind in given}}
    message = {name: given.pop(name) for name in _MESSAGE_COLUMNS if name in given}
    for name, value in given.items():
        if name in SCHEDULE_FIELDS:
            body[name] = [part.strip() for part in value.split(",")] if name in _LISTS else _whole(name, value)
        elif name == "variables" and isinstance(value, str):
            message[name] = _json(value)
        else:
            known = {**dict.fromkeys(RULE_KINDS), **SCHEDULE_FIELDS, **{n: MESSAGE_FIELDS[n] for n in _MESSAGE_COLUMNS}}
            raise Invalid(f"unknown column {name[:60]!r}", field=name[:60], remedy=hint(name, known))
    if "priority" in message:
        message["priority"] = _whole("count", message["priority"])
    return {**body, "message": message}


def _whole(name: str, value: Any) -> Any:
    return int(value) if name == "count" and isinstance(value, str) and value.strip().isdecimal() else value


def _json(cell: str) -> Any:
    try:
        return orjson.loads(cell)
    except orjson.JSONDecodeError as error:
        raise Invalid(f"variables is not JSON ({error})", field="variables", remedy='write {"name": "Ada"}') from None


def _replayed(answer: list[list[Any]]) -> list[BulkLineResult]:
    """The results of an earlier call."""
    return [
        BulkLineResult(number, id_, None if error is None else Invalid(error[0], remedy=error[1], field=error[2]))
        for number, id_, error in answer
    ]
