"""Validate a draft (channel, size, recipient, expiry, priority) before anything is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import orjson

from ..kernel.clock import Clock
from ..model import durations
from ..model.errors import Invalid, TooLarge
from ..model.message import Draft
from ..model.task import NewTask
from ..model.time import MINUTE, SECOND, iso, micros
from .channels.base import Channel
from .events import event_types
from .idempotency import MAX_KEY_LENGTH
from .tenant_quotas import TenantQuotas

MESSAGE_KIND = "message"
MESSAGE_COLUMNS = (
    "accepted_at", "scheduled_at", "id", "tenant", "channel", "recipient", "content", "own_expiry",
)  # fmt: skip
MAX_SCHEDULE_AHEAD = 10 * 366 * 86_400 * SECOND  # ten years ahead
PAST_TOLERANCE = 5 * MINUTE  # for clocks that differ and requests that are slow
MAX_RECIPIENT_LENGTH = 512


@dataclass(frozen=True, slots=True)
class MessageLimits:
    """Limits for accepted messages."""

    grace: timedelta = timedelta(hours=24)  # messages overdue by more than this expire
    max_body: int = 256 * 1024
    keep_keys: timedelta = timedelta(hours=24)
    tenants: TenantQuotas = field(default_factory=TenantQuotas)


class MessageValidator:
    """Validates drafts against the configured channels and limits."""

    def __init__(self, clock: Clock, channels: Mapping[str, Channel], rules: MessageLimits) -> None:
        self._clock = clock
        self._channels = channels
        self._max_body = rules.max_body
        self._grace = micros(rules.grace)
        self._tenants = rules.tenants

    def knows(self, channel: str) -> bool:
        """Whether the channel is configured in this process."""
        return channel in self._channels

    def prepare(self, draft: Draft, now: int, id_: str | None = None) -> tuple[NewTask, tuple[Any, ...]]:
        """Return the draft's task and its row of MESSAGE_COLUMNS; raises Invalid with field and remedy."""
        channel = self._channels.get(draft.channel)
        if channel is None:
            known = ", ".join(sorted(self._channels.keys() - {event_types.EVENTS_CHANNEL})) or "none"
            raise Invalid(
                f"there is no channel {draft.channel!r}", field="channel", remedy=f"configured channels: {known}"
            )
        self._tenants.check_channel(draft.tenant, draft.channel)
        content = _content(draft)
        kept = encode_content(content)
        _check(draft, kept, now, self._max_body)
        channel.check(draft.to, content)
        due = now if draft.at is None else draft.at
        if draft.refuses_past:
            check_not_past(due, now)
        expires = draft.expires_at
        own_expiry = expires is not None
        if expires is None:
            expires = (due if due > now else now) + self._grace
        elif expires <= max(due, now):
            raise Invalid(
                f"the message would expire at {iso(expires)}, before it is due at {iso(max(due, now))}",
                field="expires_at",
                remedy="give a later expiry, or leave it out",
            )
        ordering_key = draft.ordering_key
        if ordering_key is None and channel.traits.in_order:
            ordering_key = draft.to
        task = NewTask(
            draft.channel, MESSAGE_KIND, due, draft.tenant, draft.priority, ordering_key, expires, draft.max_attempts
        )
        id_ = id_ or self._clock.new_id()
        return task, (now, due, id_, draft.tenant, draft.channel, draft.to, kept, own_expiry)


def _content(draft: Draft) -> dict[str, Any]:
    content: dict[str, Any] = {"text": draft.text}
    if draft.subject is not None:
        content["subject"] = draft.subject
    if draft.data is not None:
        content["data"] = draft.data
    return content


def check_line(text: str, field: str, longest: int) -> str:
    """The stripped text; raises Invalid if it is empty, too long or has control characters."""
    if not text.strip() or len(text) > longest or not text.isprintable():
        raise Invalid(
            f"{field} is empty, too long or has control characters",
            field=field,
            remedy=f"use 1 to {longest} printable characters",
        )
    return text.strip()


def check_not_past(at: int, now: int) -> None:
    """Raise Invalid if the time is past by more than PAST_TOLERANCE."""
    if at < now - PAST_TOLERANCE:
        ago = durations.humanize(timedelta(microseconds=now - at))
        remedy = 'check the date; to send it at once, say "past": "send" (CLI: --past send)'
        raise Invalid(f"{iso(at)} was {ago} ago", field="at", remedy=remedy)


def check_size(content: str, max_body: int, field: str = "text") -> None:
    """Raise TooLarge if the encoded content exceeds the setting max_body."""
    if len(content) * 4 > max_body and (size := len(content.encode())) > max_body:  # a character has at most 4 bytes
        remedy = f"at most {max_body:,} are accepted (setting max_body)"
        raise TooLarge(f"the message has {size:,} bytes", field=field, remedy=remedy)


def encode_content(content: Mapping[str, Any]) -> str:
    """Encode a content as stored JSON; raises Invalid."""
    try:
        return orjson.dumps(content).decode()
    except (TypeError, ValueError) as error:
        raise Invalid(
            f"the content cannot be written as JSON ({error})",
            field="data",
            remedy="use plain JSON values and valid text",
        ) from error


def _check(draft: Draft, encoded: str, now: int, max_body: int) -> None:
    """Check the fields that do not depend on the channel."""
    if not draft.to.strip():
        raise Invalid("the recipient is empty", field="to", remedy="give the recipient's address")
    if len(draft.to) > MAX_RECIPIENT_LENGTH or not draft.to.isprintable():
        raise Invalid(
            "the recipient is too long or has control characters",
            field="to",
            remedy=f"use at most {MAX_RECIPIENT_LENGTH} printable characters",
        )
    if not draft.text and not draft.data:
        raise Invalid("the message is empty", field="text", remedy="give a text, or data")
    check_size(encoded, max_body)
    if not 0 <= draft.priority <= 9:
        raise Invalid(f"priority is {draft.priority}", field="priority", remedy="use 0 (first) to 9 (last)")
    if draft.max_attempts is not None and not 1 <= draft.max_attempts <= 1000:
        raise Invalid(f"max_attempts is {draft.max_attempts}", field="max_attempts", remedy="use 1 to 1000")
    if draft.ordering_key is not None and not (
        0 < len(draft.ordering_key) <= MAX_KEY_LENGTH and draft.ordering_key.isprintable()
    ):
        remedy = f"use 1 to {MAX_KEY_LENGTH} printable characters"
        raise Invalid("ordering_key is empty, too long or has control characters", field="ordering_key", remedy=remedy)
    if draft.at is not None and draft.at > now + MAX_SCHEDULE_AHEAD:
        raise Invalid(f"{iso(draft.at)} is more than ten years ahead", field="at", remedy="give an earlier time")
