"""The port through which replies and notices become outbound messages."""

from __future__ import annotations

from typing import Any, Protocol

from ..model.task import NewTask


class ReplyPort(Protocol):
    """Prepares outbound messages for the caller's transaction; implemented in `app`."""

    table: str
    columns: tuple[str, ...]

    async def prepare(
        self, channel: str, to: str, text: str, *, tenant: str, ordering_key: str, now: int, in_chat: bool = False
    ) -> tuple[NewTask, tuple[Any, ...]]:
        """Return the task and the row of one message; raises CallerError if it cannot be sent.

        `in_chat`: `to` is the platform's id of a chat, not of a person.
        """
