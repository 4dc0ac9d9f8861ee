"""Messages: one content for one recipient on one channel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Message(NamedTuple):
    """What a channel gets to send. `id` is the same on every try, so a receiver can tell duplicates."""

    id: str
    tenant: str
    channel: str
    recipient: str
    content: Mapping[str, Any]  # text, and optionally subject and data
    accepted_at: int
    attempt: int = 1
    retry_in: int | None = (
        None  # between two tries, where its sender wants it so; otherwise the policy decides
    )

    @property
    def text(self) -> str:
        """The words to be said; empty when the content is data only."""
        return str(self.content.get("text") or "")


class Draft(NamedTuple):
    """What somebody wants sent, checked in shape but not yet accepted. A tuple, for there are many."""

    channel: str
    to: str
    text: str = ""
    subject: str | None = None
    data: Mapping[str, Any] | None = None
    at: int | None = None  # None = now
    priority: int = 5
    ordering_key: str | None = None
    expires_at: int | None = None
    max_attempts: int | None = None
    tenant: str = "default"
    template: str | None = None  # by name or id; rendered when the draft is accepted
    template_version: int | None = None  # None = the newest
    variables: Mapping[str, Any] | None = None
    said: str | None = None  # the request as it came, by which a repeated call is known; None = these fields
