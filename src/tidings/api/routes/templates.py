"""Templates: save, look at, try, retire. Editing makes a new version; those before stay."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from ...access.rules import OPERATE, READ, allowed
from ...outbound.desk import Desk
from ...outbound.templating.templates import CONTENT, FIELDS, PREVIEW, TRIAL
from ..bodies import CONFLICT, MISSING, PROBLEMS, answer, created, parse, read_fields, read_json, takes
from ..queries import CHECKED, After, refuse_any


def routes(desk: Desk) -> APIRouter:
    """Everything under /v1/templates; a template is named by its name or its id."""
    router = APIRouter(prefix="/v1/templates", tags=["templates"], responses=PROBLEMS)
    templates = desk.templates

    @router.post("", status_code=201, openapi_extra=takes(FIELDS, keyed=True), responses=CONFLICT)
    @allowed(OPERATE)
    async def create(request: Request) -> Response:
        """Save a new template. What it cannot render is refused now."""
        key = request.headers.get("idempotency-key")
        made = await templates.create(await read_json(request), key=key)
        return created(made, f"/v1/templates/{made.answer['name']}")

    @router.get("", dependencies=CHECKED)
    @allowed(READ)
    async def page(*, retired: bool = False, limit: int = 50, after: After = None) -> Response:
        """Templates by name."""
        return answer((await templates.page(retired=retired, limit=limit, after=after))._asdict())

    @router.post(":preview", openapi_extra=takes(TRIAL))
    @allowed(READ)
    async def trial(request: Request) -> Response:
        """What a template that is not saved would say."""
        return answer(await templates.trial(await read_json(request)))

    @router.get("/{name}", responses=MISSING, dependencies=CHECKED)
    @allowed(READ)
    async def show(name: str, version: int | None = None) -> Response:
        """One template with what its newest version says, or another."""
        return answer(await templates.show(name, version=version))

    @router.post(
        "/{name}/versions",
        status_code=201,
        openapi_extra=takes(CONTENT, keyed=True),
        responses=MISSING | CONFLICT,
    )
    @allowed(OPERATE)
    async def revise(name: str, request: Request) -> Response:
        """Save the next version. Whatever was made of those before stays as it is."""
        key = request.headers.get("idempotency-key")
        made = await templates.revise(name, await read_json(request), key=key)
        return created(made, f"/v1/templates/{made.answer['name']}")

    @router.get("/{name}/versions", responses=MISSING, dependencies=CHECKED)
    @allowed(READ)
    async def versions(name: str, limit: int = 50, after: After = None) -> Response:
        """All that it has said, newest first."""
        return answer((await templates.versions(name, limit=limit, after=after))._asdict())

    @router.post(
        "/{name}/preview", responses=MISSING | CONFLICT, openapi_extra=takes(PREVIEW, required=False)
    )
    @allowed(READ)
    async def preview(name: str, request: Request) -> Response:
        """What it would say to somebody; nothing is sent."""
        refuse_any(request)
        raw = await request.body()
        return answer(await templates.preview(name, parse(raw) if raw.strip() else {}))

    @router.post("/{name}/retire", responses=MISSING)
    @allowed(OPERATE)
    async def retire(name: str, request: Request) -> Response:
        """Nothing new is made of it from now on."""
        await read_fields(request, {})
        return answer(await templates.retire(name))

    @router.post("/{name}/restore", responses=MISSING)
    @allowed(OPERATE)
    async def restore(name: str, request: Request) -> Response:
        """Bring a retired one back."""
        await read_fields(request, {})
        return answer(await templates.restore(name))

    return router
