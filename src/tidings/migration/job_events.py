"""Outbox events and audit entries of jobs, written in the transaction of the change."""

from __future__ import annotations

from typing import Protocol

import orjson

from ..store.port import Step
from .job_file import MigrationJob


class EventSubject(Protocol):
    """Whose event it is."""

    tenant: str

    @property
    def job(self) -> MigrationJob: ...


def event_for(of: EventSubject, type_: str, reason: str | None) -> Step:
    """Return the step that emits an event about a job."""
    return event_step(of.tenant, of.job.name, type_, reason)


def event_step(tenant: str, name: str, type_: str, reason: str | None) -> Step:
    """Return the step that emits an event about a job by its name."""
    body = orjson.dumps({"migration": name, "reason": reason}).decode()
    return Step(
        "outbox_add",
        {"at": None, "tenant": tenant, "type": type_, "subject": name, "body": body, "target": None},
    )


def halt_steps(job: int, reason: str, until: int | None, tell: Step, place: int) -> list[Step]:
    """Return the steps that pause a job, with one event; `place` is the number of steps before them."""
    return [
        Step("job_halt", {"n": job, "reason": reason[:500], "until": until}),
        tell._replace(only_if=place),
        audit_step(job, "engine", "paused", reason)._replace(only_if=place),
    ]


def audit_step(job: int, who: str, what: str, detail: str = "") -> Step:
    """Return the step that adds an audit entry."""
    return Step("job_audit_add", {"job": job, "who": who[:200], "what": what, "detail": detail[:500]})
