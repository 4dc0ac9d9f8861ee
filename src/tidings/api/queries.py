"""Queries: a parameter nobody knows is refused, because a misspelt filter would silently show everything."""

from __future__ import annotations

from fastapi import Request

from ..model.errors import Invalid
from ..outbound.fields import hint


async def refuse_unknown(request: Request) -> None:
    """A dependency of every route under /v1."""
    if not request.url.query:
        return
    route = request.scope["route"]
    known = {field.alias: field for field in route.dependant.query_params}
    for name, value in request.query_params.multi_items():
        if name not in known:
            raise Invalid(f"unknown parameter {name[:60]!r}", field=name[:60], remedy=hint(name, known))
        if not value.isprintable():
            raise Invalid(f"{name} has control characters", field=name, remedy="leave them out")
