"""The voice: what inbound says to people, as messages that are written with everything else."""

from __future__ import annotations

from typing import Any, Protocol

from ..model.task import NewTask


class ReplyPort(Protocol):
    """Makes replies ready to be written with everything else; given by whoever joins the domains."""

    table: str
    columns: tuple[str, ...]

    async def prepare(
        self,
        channel: str,
        to: str,
        text: str,
        *,
        tenant: str,
        ordering_key: str,
        now: int,
        in_chat: bool = False,
    ) -> tuple[NewTask, tuple[Any, ...]]:
        """One message with its task; raises one of ours when it cannot be sent.

        `in_chat`: `to` is the platform's id of a chat, and not of a person.
        """
