"""Dead letters of a job: rejected, failed and conflicting records, by cause and record by record."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import orjson

from ..store.port import Store
from .jobs import FailureCause, JobView
from .record_states import FINAL_STATES, RecordState

_PAGE, _CAUSES = 500, 200
_LISTED = FINAL_STATES | {RecordState.WAITING, RecordState.UNKNOWN}


async def causes_of(store: Store, view: JobView) -> list[FailureCause]:
    """Return dead letters and waiting or uncertain records by cause, the most frequent first."""
    rows = await store.read("job_causes", job=view.n, round=view.round, limit=_CAUSES)
    names = ("fingerprint", "type", "failure", "field")
    return [
        FailureCause(
            **{name: row[name] for name in names}, state=RecordState(row["state"]), count=row["n"],
            example=row["source_id"], reason=row["reason"] or "",
        )
        for row in rows
        if row["state"] in _LISTED
    ]  # fmt: skip


async def dead_letters(
    store: Store, view: JobView, fingerprint: str | None, type_: str | None
) -> AsyncIterator[dict[str, Any]]:
    """Yield dead letters with their source fields, cause by cause and page by page."""
    which = {"job": view.n, "round": view.round, "type": type_, "limit": _PAGE}
    async for cause in failure_causes(store, view.n, fingerprint):
        after = 0
        while rows := await store.read("job_dead_page", **which, fingerprint=cause, after=after):
            for row in rows:
                same = {name: row[name] for name in ("failure", "field", "reason", "fingerprint")}
                fields = None if row["raw"] is None else orjson.loads(row["raw"])
                id_, state = row["source_id"], row["state"]
                yield {"type": row["type"], "id": id_, "state": state, **same, "fields": fields}
            after = rows[-1]["seq"]


async def failure_causes(store: Store, job: int, fingerprint: str | None) -> AsyncIterator[str]:
    """Yield the given cause, or all causes of a job, so that no page has to skip other causes."""
    if fingerprint is not None:
        yield fingerprint
        return
    cause = ""
    while (cause := (await store.read("job_cause_next", job=job, after=cause))[0]["cause"]) is not None:
        yield cause
