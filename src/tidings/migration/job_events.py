"""Events of migration and its audit trail: written in the transaction of the change that they tell of."""

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
    """Something about a job."""
    return event_step(of.tenant, of.job.name, type_, reason)


def event_step(tenant: str, name: str, type_: str, reason: str | None) -> Step:
    """The same for whoever has no more than its name."""
    body = orjson.dumps({"migration": name, "reason": reason}).decode()
    return Step(
        "outbox_add",
        {"at": None, "tenant": tenant, "type": type_, "subject": name, "body": body, "target": None},
    )


def halt_steps(job: int, reason: str, until: int | None, tell: Step, place: int) -> list[Step]:
    """A job stops, once told; `place` is how many steps come before."""
    return [
        Step("job_pause", {"n": job, "reason": reason[:500], "until": until}),
        tell._replace(only_if=place),
        audit_step(job, "engine", "paused", reason)._replace(only_if=place),
    ]


def audit_step(job: int, actor: str, action: str, detail: str = "") -> Step:
    """A line of the audit trail."""
    return Step("job_audit_add", {"job": job, "actor": actor[:200], "action": action, "detail": detail[:500]})
