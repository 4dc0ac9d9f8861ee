"""Making: what a schedule makes at an instant, prepared so that it can be written with the occurrence itself.

A maker judges and prepares; it writes nothing. Whoever asked writes all of it in one transaction, or none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol
from zoneinfo import ZoneInfo

from ...inputs.fields import Field, hint
from ...model.errors import Invalid, TidingsError
from ...model.task import NewTask
from ...store.port import Step
from ..draft_parser import MESSAGE_FIELDS as OF_A_MESSAGE
from ..draft_parser import DraftParser
from ..messages import MessageService

_OF_ITS_TIME = ("at", "in", "expires_at")  # the schedule says when
SCHEDULED_MESSAGE_FIELDS: Mapping[str, Field] = {
    name: field for name, field in OF_A_MESSAGE.items() if name not in _OF_ITS_TIME
}


class Occurrence(NamedTuple):
    """Which occurrence something is made for; `expires_at` only where it is made up for, late."""

    schedule: str
    at: int
    now: int
    tenant: str = "default"
    expires_at: int | None = None


class PreparedOccurrence(NamedTuple):
    """What is to be written: the id it will have, rows of messages with their tasks, and further steps."""

    id: str
    tasks: Sequence[NewTask] = ()
    rows: Sequence[tuple[Any, ...]] = ()  # of `messages`, one for each task
    steps: Sequence[Step] = ()


class OccurrenceBuilder(Protocol):
    """Turns the body of a schedule into something that can be written."""

    async def prepare(self, body: Mapping[str, Any], occasion: Occurrence) -> PreparedOccurrence:
        """Raises one of ours (channel gone, bad template ...) when it cannot be made."""


class MessageOccurrenceBuilder:
    """Makes one message: the fields of a draft, without a time of its own."""

    def __init__(self, messages: MessageService) -> None:
        self._messages = messages

    async def prepare(self, body: Mapping[str, Any], occasion: Occurrence) -> PreparedOccurrence:
        """The message of one occurrence. Its own expiry wins over the schedule's grace."""
        for name in body:
            if name in _OF_ITS_TIME:
                raise Invalid(
                    f"{name} has no place in a schedule",
                    field=name,
                    remedy="the schedule says when; use expires_in for how late it may go out",
                )
            if name not in SCHEDULED_MESSAGE_FIELDS:
                raise Invalid(
                    f"unknown field {name[:60]!r}",
                    field=name[:60],
                    remedy=hint(name, SCHEDULED_MESSAGE_FIELDS),
                )
        reading = DraftParser(now=occasion.at, timezone=_UTC)  # so that a length counts from the occurrence
        draft = reading.draft(dict(body))._replace(at=occasion.at, tenant=occasion.tenant)
        own_expiry = draft.expires_at is not None
        if not own_expiry:
            draft = draft._replace(expires_at=occasion.expires_at)
        task, row = await self._messages.prepare(draft, occasion.now)
        quota = await self._messages.check_quota(occasion.tenant, occasion.now)
        return PreparedOccurrence(row[2], [task], [(*row[:-1], own_expiry)], quota)


_UTC = ZoneInfo("UTC")


def nested_error(field: str, error: TidingsError) -> TidingsError:
    """The same error, said of a field inside another."""
    inner = f"{field}.{error.field}" if error.field else field
    return type(error)(error.problem, remedy=error.remedy, field=inner)
