"""Query parameters: unknown ones are rejected, because a misspelled filter would silently return everything.

A dependency costs a quarter of a request, so only routes with parameters have it; the others reject any query
when they read their body.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Query, Request

from ..inputs.fields import hint
from ..model.errors import Invalid


async def reject_unknown(request: Request) -> None:
    """Raise Invalid for a parameter that the route does not have."""
    if not request.url.query:
        return
    route = request.scope["route"]
    known = {field.alias: field for field in route.dependant.query_params}
    for name, value in request.query_params.multi_items():
        if name not in known:
            raise Invalid(f"unknown parameter {name[:60]!r}", field=name[:60], remedy=hint(name, known))
        if not value.isprintable():
            raise Invalid(f"{name} contains control characters", field=name, remedy="remove them")


After = Annotated[str | None, Query(description="Cursor: `next` of the previous page.")]
State = Annotated[str | None, Query(description="Filter by state.")]
OtherTenant = Annotated[
    str | None, Query(description="Another tenant, or * for all. Only for keys of the tenant default.")
]
STRICT_QUERY = [Depends(reject_unknown)]


def reject_query(request: Request) -> None:
    """Reject query parameters of calls that take all parameters in the body."""
    if request.scope["query_string"]:
        name = request.url.query.partition("=")[0][:60]
        raise Invalid(f"unknown parameter {name!r}", field=name, remedy="put it into the body")
