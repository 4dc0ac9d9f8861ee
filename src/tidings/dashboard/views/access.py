"""API keys, which are shown once, and the audit log."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from ...access.caller import current_caller
from ...access.permissions import ADMIN, AREAS, DEFAULT_TENANT, Role
from ...model.errors import TidingsError
from ..forms import Form, integer, query_values, split_words
from ..renderer import Views, get, post
from ..responses import next_page_query, redirect, redirect_on_error, unknown_action

PAGE = 50
AUDIT_PAGE = 100


class ApiKeyViews(Views):
    """API keys: list, create, rotate and revoke. A secret is shown once."""

    @get("/keys", ADMIN)
    async def page(self, request: Request) -> Response:
        """List keys, newest first."""
        return await self._page(request, problem=request.query_params.get("problem"))

    @post("/keys", ADMIN, writes_audit=True)
    async def create(self, request: Request, form: Form) -> Response:
        """Create a key; the response shows it once."""
        try:
            body: dict[str, Any] = {
                name: form[name] for name in ("name", "role", "tenant", "expires_in") if name in form
            }
            body |= {"scopes": split_words(form.get("scopes", "")), "rate": integer(form, "rate")}
            made = await self._app.access.keys.create(body)
        except TidingsError as error:
            return await self._page(request, form, error)
        return await self._page(request, made=made)

    @post("/keys/{id}/{action}", ADMIN, writes_audit=True)
    async def act(self, request: Request, form: Form, id_: str, action: str) -> Response:
        """Rotate or revoke a key."""
        with redirect_on_error("/keys"):
            match action:
                case "rotate":
                    return await self._page(request, made=await self._app.access.keys.rotate(id_))
                case "revoke":
                    await self._app.access.keys.revoke(id_)
                case _:
                    raise unknown_action(action)
        return redirect("/keys")

    async def _page(
        self, request: Request, form: Form | None = None, error: TidingsError | None = None, **shown: Any
    ) -> Response:
        runs_engine = current_caller().tenant == DEFAULT_TENANT
        after = query_values(request, "after").get("after")
        found = await self._app.access.keys.page(of="*" if runs_engine else None, limit=PAGE, after=after)
        return self._renderer.form(
            "keys.html",
            form,
            error,
            items=found.items,
            more=next_page_query(found),
            roles=list(Role),
            areas=AREAS,
            runs_engine=runs_engine,
            is_open=await self._app.access.authenticator.is_open(),
            **shown,
        )


class AuditLogViews(Views):
    """The audit log: who changed what, when, and from where."""

    @get("/audit", ADMIN)
    async def page(self, request: Request) -> Response:
        """List audit entries, newest first."""
        asked = query_values(request, "actor", "action", "tenant", "after")
        runs_engine = current_caller().tenant == DEFAULT_TENANT
        filters: dict[str, Any] = {name: asked.get(name) for name in ("actor", "action", "after")}
        of = asked.get("tenant", "*") if runs_engine else None
        found = await self._app.access.audit.page(of=of, limit=AUDIT_PAGE, **filters)
        return self._renderer.listing("audit.html", found, asked, runs_engine=runs_engine)
