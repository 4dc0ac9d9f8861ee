"""Prepare the message of an occurrence, to be written in the scheduler's transaction.

A builder validates and prepares; the caller writes everything in one transaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol
from zoneinfo import ZoneInfo

from ...inputs.fields import Field, hint
from ...model.errors import Invalid, TidingsError
from ...model.task import NewTask
from ...store.port import Step
from ..draft_parser import MESSAGE_FIELDS as ALL_MESSAGE_FIELDS
from ..draft_parser import DraftParser
from ..messages import MessageService

_TIME_FIELDS = ("at", "in", "past", "expires_at")  # set by the schedule
SCHEDULED_MESSAGE_FIELDS: Mapping[str, Field] = {
    name: field for name, field in ALL_MESSAGE_FIELDS.items() if name not in _TIME_FIELDS
}


class Occurrence(NamedTuple):
    """An occurrence of a schedule, or an import; `expires_at` is set only for a late one."""

    schedule: str | None
    at: int
    now: int
    tenant: str = "default"
    expires_at: int | None = None


class PreparedOccurrence(NamedTuple):
    """What to write: the new id, message rows with their tasks, and further steps."""

    id: str
    tasks: Sequence[NewTask] = ()
    rows: Sequence[tuple[Any, ...]] = ()  # of `messages`, one for each task
    steps: Sequence[Step] = ()


class OccurrenceBuilder(Protocol):
    """Prepares the message or broadcast of a schedule."""

    async def prepare(self, body: Mapping[str, Any], occurrence: Occurrence) -> PreparedOccurrence:
        """Prepare one occurrence; raises a TidingsError if it cannot be created."""


class MessageOccurrenceBuilder:
    """Prepares one message from draft fields without a time."""

    def __init__(self, messages: MessageService) -> None:
        self._messages = messages

    async def prepare(self, body: Mapping[str, Any], occurrence: Occurrence) -> PreparedOccurrence:
        """Prepare the message; its own expiry wins over the schedule's catch-up window."""
        for name in body:
            if name in _TIME_FIELDS:
                raise Invalid(
                    f"{name} is not allowed in a schedule",
                    field=name,
                    remedy="the schedule sets the time; use expires_in to limit how late it may be sent",
                )
            if name not in SCHEDULED_MESSAGE_FIELDS:
                raise Invalid(
                    f"unknown field {name[:60]!r}", field=name[:60], remedy=hint(name, SCHEDULED_MESSAGE_FIELDS)
                )
        reading = DraftParser(now=occurrence.at, timezone=_UTC)  # durations count from the occurrence
        draft = reading.draft(dict(body))._replace(at=occurrence.at, tenant=occurrence.tenant, refuses_past=False)
        own_expiry = draft.expires_at is not None
        if not own_expiry:
            draft = draft._replace(expires_at=occurrence.expires_at)
        task, row = await self._messages.prepare(draft, occurrence.now)
        quota = await self._messages.check_quota(occurrence.tenant, occurrence.now)
        return PreparedOccurrence(row[2], [task], [(*row[:-1], own_expiry)], quota)


_UTC = ZoneInfo("UTC")


def nested_error(field: str, error: TidingsError) -> TidingsError:
    """The same error for a nested field."""
    inner = f"{field}.{error.field}" if error.field else field
    return type(error)(error.problem, remedy=error.remedy, field=inner)
