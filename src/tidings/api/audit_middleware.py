"""Noting: a request that changes something leaves one line in the audit trail, however it ends."""

from __future__ import annotations

from starlette.types import Message, Send

from ..access.audit import AuditLog, audit_entry
from ..access.caller import Caller
from ..access.permissions import OPEN, READ, SEND
from ..model.errors import TidingsError
from .authorization import RouteMatch

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


class RequestAudit:
    """Of one request. The line is written before the caller is told; that of a made message soon after."""

    def __init__(self, trail: AuditLog, found: RouteMatch, caller: Caller, request_id: str) -> None:
        self._trail = trail
        self._found = found
        self._caller = caller
        self._request_id = request_id
        place = found.place
        self._is_due = (
            place is not None and place.method not in SAFE_METHODS and found.rule.action not in (OPEN, READ)
        )

    def before(self, send: Send) -> Send:
        """A way out on which the answer's status is noted first."""
        if not self._is_due:
            return send

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                await self._note(message["status"], made=_made(dict(message["headers"])))
            await send(message)

        return answer

    async def failed(self, error: Exception) -> None:
        """It came to nothing."""
        await self._note(error.status if isinstance(error, TidingsError) else 500)

    async def _note(self, status: int, *, made: str | None = None) -> None:
        found = self._found
        if not self._is_due or (found.rule.noted and status < 400):
            return
        self._is_due = False
        target = found.target or made
        told = audit_entry(self._caller, found.what, target=target, status=status, request=self._request_id)
        if found.rule.action is SEND:
            self._trail.note_soon(told)
        else:
            await self._trail.note(told)


def _made(headers: dict[bytes, bytes]) -> str | None:
    """The id of what was made: the API tells where it is."""
    place = headers.get(b"location", b"").decode("latin-1")
    return place.rpartition("/")[2] if place.startswith("/v1/") else None
