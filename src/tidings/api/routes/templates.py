"""Templates, their versions and previews. Saved versions never change."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from ...access.permissions import OPERATE, READ, requires
from ...outbound.service import OutboundService
from ...outbound.templates.service import CONTENT_FIELDS, PREVIEW_FIELDS, TEMPLATE_FIELDS, UNSAVED_PREVIEW_FIELDS
from ..bodies import created_response, json_response, page_response, parse_json, read_fields, read_json
from ..openapi_responses import CONFLICT, ERROR_RESPONSES, NOT_FOUND, action_options, body_schema, create_options
from ..query_parameters import STRICT_QUERY, After, reject_query


def routes(outbound: OutboundService) -> APIRouter:
    """Return the routes under /v1/templates; `{name}` is the name or the id of a template."""
    router = APIRouter(prefix="/v1/templates", tags=["templates"], responses=ERROR_RESPONSES)
    templates = outbound.templates

    @router.post("", **create_options(TEMPLATE_FIELDS))
    @requires(OPERATE)
    async def create(request: Request) -> Response:
        """Create a template. One that cannot be rendered is rejected."""
        key = request.headers.get("idempotency-key")
        made = await templates.create(await read_json(request), key=key)
        return created_response(made, f"/v1/templates/{made.answer['name']}")

    @router.get("", dependencies=STRICT_QUERY)
    @requires(READ)
    async def page(*, retired: bool = False, limit: int = 50, after: After = None) -> Response:
        """List templates by name."""
        return page_response(await templates.page(retired=retired, limit=limit, after=after))

    @router.post(":preview", openapi_extra=body_schema(UNSAVED_PREVIEW_FIELDS))
    @requires(READ)
    async def preview_draft(request: Request) -> Response:
        """Render a template without saving it."""
        return json_response(await templates.trial(await read_json(request)))

    @router.get("/{name}", responses=NOT_FOUND, dependencies=STRICT_QUERY)
    @requires(READ)
    async def show(name: str, version: int | None = None) -> Response:
        """Show one template with its latest version, or with another."""
        return json_response(await templates.show(name, version=version))

    @router.post(
        "/{name}/versions",
        status_code=201,
        openapi_extra=body_schema(CONTENT_FIELDS, keyed=True),
        responses=NOT_FOUND | CONFLICT,
    )
    @requires(OPERATE)
    async def revise(name: str, request: Request) -> Response:
        """Create a new version. Messages from earlier versions do not change."""
        key = request.headers.get("idempotency-key")
        made = await templates.revise(name, await read_json(request), key=key)
        return created_response(made, f"/v1/templates/{made.answer['name']}")

    @router.get("/{name}/versions", responses=NOT_FOUND, dependencies=STRICT_QUERY)
    @requires(READ)
    async def versions(name: str, limit: int = 50, after: After = None) -> Response:
        """List all versions, newest first."""
        return page_response(await templates.versions(name, limit=limit, after=after))

    @router.post("/{name}/preview", **action_options(PREVIEW_FIELDS))
    @requires(READ)
    async def preview(name: str, request: Request) -> Response:
        """Render a template for a recipient without sending it."""
        reject_query(request)
        raw = await request.body()
        return json_response(await templates.preview(name, parse_json(raw) if raw.strip() else {}))

    @router.post("/{name}/retire", responses=NOT_FOUND)
    @requires(OPERATE)
    async def retire(name: str, request: Request) -> Response:
        """Retire a template, so that it cannot be used for new messages."""
        await read_fields(request, {})
        return json_response(await templates.retire(name))

    @router.post("/{name}/restore", responses=NOT_FOUND)
    @requires(OPERATE)
    async def restore(name: str, request: Request) -> Response:
        """Restore a retired template."""
        await read_fields(request, {})
        return json_response(await templates.restore(name))

    return router
