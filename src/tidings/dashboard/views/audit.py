"""The audit trail: who did what, when, to what, from where."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from ...access.caller import current
from ...access.desk import AccessDesk
from ...access.rules import ADMIN, DEFAULT_TENANT
from ..forms import chosen
from ..frame import Frame, Way

PAGE = 100


def ways(access: AccessDesk, frame: Frame) -> list[Way]:
    """Its route."""

    async def page(request: Request) -> Response:
        """What was changed or tried, newest first."""
        wanted = chosen(request, "who", "what", "tenant", "after")
        runs_engine = current().tenant == DEFAULT_TENANT
        of = wanted.get("tenant", "*") if runs_engine else None
        found = await access.audit.page(
            who=wanted.get("who"), what=wanted.get("what"), of=of, limit=PAGE, after=wanted.get("after")
        )
        return frame.listing("audit.html", found, wanted, runs_engine=runs_engine)

    return [Way("GET", "/audit", page, ADMIN)]
