"""Audit of requests: every request that changes something leaves one audit entry, whatever its result."""

from __future__ import annotations

from starlette.types import Message, Send

from ..access.audit import AuditLog, audit_entry
from ..access.caller import Caller
from ..access.permissions import OPEN, READ, SEND
from ..model.errors import TidingsError
from .authorization import RouteMatch


class RequestAudit:
    """Audits one request. The entry is written before the response; that of a new message soon after it."""

    def __init__(self, log: AuditLog, match: RouteMatch, caller: Caller, request_id: str) -> None:
        self._log = log
        self._match = match
        self._caller = caller
        self._request_id = request_id
        self._is_due = match.has_effect and match.rule.action not in (OPEN, READ)

    def before(self, send: Send) -> Send:
        """Wrap `send` so that the entry is written before the response starts."""
        if not self._is_due:
            return send

        async def respond(message: Message) -> None:
            if message["type"] == "http.response.start":
                await self._write(message["status"], created=_created_id(dict(message["headers"])))
            await send(message)

        return respond

    async def failed(self, error: Exception) -> None:
        """Write the entry of a request that raised an error."""
        await self._write(error.status if isinstance(error, TidingsError) else 500)

    async def _write(self, status: int, *, created: str | None = None) -> None:
        match = self._match
        if not self._is_due or (match.rule.writes_audit and status < 400):
            return
        self._is_due = False
        target = match.target or created
        entry = audit_entry(self._caller, match.what, target=target, status=status, request=self._request_id)
        if match.rule.action is SEND:
            self._log.note_soon(entry)
        else:
            await self._log.note(entry)


def _created_id(headers: dict[bytes, bytes]) -> str | None:
    """Return the id of the created resource from the Location header."""
    location = headers.get(b"location", b"").decode("latin-1")
    return location.rpartition("/")[2] if location.startswith("/v1/") else None
