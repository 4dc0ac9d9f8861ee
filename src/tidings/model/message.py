"""Messages: one content for one recipient on one channel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Message(NamedTuple):
    """A message to send. `id` is the same in every attempt, so receivers can detect duplicates."""

    id: str
    tenant: str
    channel: str
    recipient: str
    content: Mapping[str, Any]  # text, and optionally subject and data
    accepted_at: int
    attempt: int = 1
    retry_in: int | None = None  # microseconds between attempts; None: the policy decides
    scheduled_at: int = 0

    @property
    def text(self) -> str:
        """The text; empty if the content is data only."""
        return str(self.content.get("text") or "")


class Draft(NamedTuple):
    """A message to be accepted, checked in shape. A tuple, because there are many."""

    channel: str
    to: str
    text: str = ""
    subject: str | None = None
    data: Mapping[str, Any] | None = None
    at: int | None = None  # None: now
    priority: int = 5
    ordering_key: str | None = None
    expires_at: int | None = None
    max_attempts: int | None = None
    tenant: str = "default"
    template: str | None = None  # by name or id; rendered when the draft is accepted
    template_version: int | None = None  # None: the newest
    variables: Mapping[str, Any] | None = None
    refuses_past: bool = False  # a due time in the past is an error, as in requests
    said: str | None = None  # the original request, to detect repeated calls; None: these fields
