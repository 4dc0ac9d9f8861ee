"""Queries: a parameter nobody knows is refused, because a misspelt filter would silently show everything.

A dependency costs a quarter of a request, so only routes that have parameters carry it; the others refuse any
query where they read their body.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Query, Request

from ..inputs.fields import hint
from ..model.errors import Invalid


async def _refuse_unknown(request: Request) -> None:
    if not request.url.query:
        return
    route = request.scope["route"]
    known = {field.alias: field for field in route.dependant.query_params}
    for name, value in request.query_params.multi_items():
        if name not in known:
            raise Invalid(f"unknown parameter {name[:60]!r}", field=name[:60], remedy=hint(name, known))
        if not value.isprintable():
            raise Invalid(f"{name} has control characters", field=name, remedy="leave them out")


After = Annotated[str | None, Query(description="the `next` of the page before")]
STRICT_QUERY = [Depends(_refuse_unknown)]


def reject_query(request: Request) -> None:
    """For calls whose parameters are all in the body."""
    if request.scope["query_string"]:
        name = request.url.query.partition("=")[0][:60]
        raise Invalid(f"unknown parameter {name!r}", field=name, remedy="write it into the body")
