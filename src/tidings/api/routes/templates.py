"""Templates: save, look at, try, retire. Editing makes a new version; those before stay."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from ...access.permissions import OPERATE, READ, requires
from ...outbound.service import OutboundService
from ...outbound.templates.service import (
    CONTENT_FIELDS,
    PREVIEW_FIELDS,
    TEMPLATE_FIELDS,
    UNSAVED_PREVIEW_FIELDS,
)
from ..bodies import (
    CONFLICT,
    ERROR_RESPONSES,
    NOT_FOUND,
    body_schema,
    created_response,
    json_response,
    parse_json,
    read_fields,
    read_json,
)
from ..query_parameters import STRICT_QUERY, After, reject_query


def routes(desk: OutboundService) -> APIRouter:
    """Everything under /v1/templates; a template is named by its name or its id."""
    router = APIRouter(prefix="/v1/templates", tags=["templates"], responses=ERROR_RESPONSES)
    templates = desk.templates

    @router.post(
        "", status_code=201, openapi_extra=body_schema(TEMPLATE_FIELDS, keyed=True), responses=CONFLICT
    )
    @requires(OPERATE)
    async def create(request: Request) -> Response:
        """Save a new template. What it cannot render is refused now."""
        key = request.headers.get("idempotency-key")
        made = await templates.create(await read_json(request), key=key)
        return created_response(made, f"/v1/templates/{made.answer['name']}")

    @router.get("", dependencies=STRICT_QUERY)
    @requires(READ)
    async def page(*, retired: bool = False, limit: int = 50, after: After = None) -> Response:
        """Templates by name."""
        return json_response((await templates.page(retired=retired, limit=limit, after=after))._asdict())

    @router.post(":preview", openapi_extra=body_schema(UNSAVED_PREVIEW_FIELDS))
    @requires(READ)
    async def trial(request: Request) -> Response:
        """What a template that is not saved would say."""
        return json_response(await templates.trial(await read_json(request)))

    @router.get("/{name}", responses=NOT_FOUND, dependencies=STRICT_QUERY)
    @requires(READ)
    async def show(name: str, version: int | None = None) -> Response:
        """One template with what its newest version says, or another."""
        return json_response(await templates.show(name, version=version))

    @router.post(
        "/{name}/versions",
        status_code=201,
        openapi_extra=body_schema(CONTENT_FIELDS, keyed=True),
        responses=NOT_FOUND | CONFLICT,
    )
    @requires(OPERATE)
    async def revise(name: str, request: Request) -> Response:
        """Save the next version. Whatever was made of those before stays as it is."""
        key = request.headers.get("idempotency-key")
        made = await templates.revise(name, await read_json(request), key=key)
        return created_response(made, f"/v1/templates/{made.answer['name']}")

    @router.get("/{name}/versions", responses=NOT_FOUND, dependencies=STRICT_QUERY)
    @requires(READ)
    async def versions(name: str, limit: int = 50, after: After = None) -> Response:
        """All that it has said, newest first."""
        return json_response((await templates.versions(name, limit=limit, after=after))._asdict())

    @router.post(
        "/{name}/preview",
        responses=NOT_FOUND | CONFLICT,
        openapi_extra=body_schema(PREVIEW_FIELDS, required=False),
    )
    @requires(READ)
    async def preview(name: str, request: Request) -> Response:
        """What it would say to somebody; nothing is sent."""
        reject_query(request)
        raw = await request.body()
        return json_response(await templates.preview(name, parse_json(raw) if raw.strip() else {}))

    @router.post("/{name}/retire", responses=NOT_FOUND)
    @requires(OPERATE)
    async def retire(name: str, request: Request) -> Response:
        """Nothing new is made of it from now on."""
        await read_fields(request, {})
        return json_response(await templates.retire(name))

    @router.post("/{name}/restore", responses=NOT_FOUND)
    @requires(OPERATE)
    async def restore(name: str, request: Request) -> Response:
        """Bring a retired one back."""
        await read_fields(request, {})
        return json_response(await templates.restore(name))

    return router
