"""Outbox events and audit entries of jobs, written in the transaction of the change."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from ..model.errors import TidingsError
from ..store.port import Row, Step

if TYPE_CHECKING:
    from .connector_pool import OpenedJob


def event_for(of: OpenedJob, type_: str, reason: str | None) -> Step:
    return event_step({"tenant": of.tenant, "name": of.job.name}, type_, reason)


def event_step(row: Row, type_: str, reason: str | None) -> Step:
    """Return the step that emits an event about a job by its row."""
    name, body = row["name"], orjson.dumps({"migration": row["name"], "reason": reason}).decode()
    return Step(
        "outbox_add",
        {"at": None, "tenant": row["tenant"], "type": type_, "subject": name, "body": body, "target": None},
    )


def halt_steps(job: int, reason: str, until: int | None, tell: Step, place: int) -> list[Step]:
    """Return the steps that pause a job, with one event; `place` is the number of steps before them."""
    return [
        Step("job_pause", {"n": job, "reason": reason[:500], "until": until}),
        tell._replace(only_if=place),
        audit_step(job, "engine", "paused", reason)._replace(only_if=place),
    ]


def halt_for_error(job: int, row: Row, error: TidingsError) -> list[Step]:
    """Return the steps that pause a job because of an error in its definition or setup."""
    return halt_steps(job, str(error), None, event_step(row, "migration.paused", error.problem), 0)


def audit_step(job: int, actor: str, action: str, detail: str = "") -> Step:
    return Step("job_audit_add", {"job": job, "actor": actor[:200], "action": action, "detail": detail[:500]})
