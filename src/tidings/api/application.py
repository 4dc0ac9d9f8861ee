"""create_api: all routes behind the middleware. The caller opens and closes the engine."""

from __future__ import annotations

from fastapi import FastAPI
from starlette.types import Receive, Scope, Send

from .. import __version__
from ..access.tenant_scope import scope_to_tenant
from ..app import App
from ..observability.metrics import Metrics
from . import errors, openapi
from .connect import routes as connect
from .middleware import AccessMiddleware
from .routes import (
    alerts,
    audit,
    broadcasts,
    bulk,
    calendar,
    callbacks,
    cases,
    channels,
    contacts,
    dead_letters,
    health,
    inbound_webhooks,
    inbox,
    keys,
    lists,
    log,
    messages,
    metrics,
    migrations,
    rollout,
    roster,
    schedules,
    sessions,
    sla,
    subscriptions,
    suppressions,
    templates,
)


class TidingsApi(FastAPI):
    """The HTTP application. Requests pass the access middleware before the framework."""

    access: AccessMiddleware

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request, or a lifespan event."""
        scope["app"] = self
        await self.access(scope, receive, send)


def create_api(app: App, metrics_: Metrics | None = None) -> TidingsApi:
    """Build the HTTP API of one engine; dashboard pages added to it pass the same middleware.

    `metrics_` are the counters of this process, if it has any.
    """
    settings, access = app.settings, app.access
    app = scope_to_tenant(app)  # routes act for their caller's tenant
    outbound = app.outbound
    calendar_ = settings.inbound.calendar
    largest = 3 * settings.max_body + 16_384  # escaped JSON can be three times as long
    api = TidingsApi(
        title="Tidings", version=__version__, docs_url=None, redoc_url=None, redirect_slashes=False,
        description="Every message, on time, once, and you can see why.",
    )  # fmt: skip
    for router in (
        messages.routes(outbound, settings.timezone),
        bulk.routes(outbound, settings.timezone, largest=largest, most=settings.max_bulk),
        broadcasts.routes(outbound, largest=largest, most=settings.max_bulk),
        dead_letters.routes(outbound),
        channels.routes(outbound),
        alerts.routes(outbound),
        log.routes(outbound),
        subscriptions.routes(outbound),
        templates.routes(outbound),
        schedules.routes(outbound, settings.timezone, largest=largest, most=settings.max_bulk),
        contacts.routes(outbound, largest=largest, most=settings.max_bulk),
        lists.routes(outbound),
        suppressions.routes(outbound, largest=largest, most=settings.max_bulk),
        health.routes(outbound),
        sla.routes(outbound),
        metrics.routes(outbound, metrics_ or Metrics()),
        rollout.routes(outbound, settings.timezone, largest=largest, most=settings.max_bulk),
        migrations.routes(app.migrations, most=settings.max_bulk),
        sessions.routes(access, is_https=settings.is_https),
        keys.routes(app.access),
        audit.routes(app.access),
        calendar.routes(app.shifts, access, feed_token=None if calendar_ is None else calendar_.feed_token),
        callbacks.routes(outbound),
        inbound_webhooks.routes(app.inbound),
        inbox.routes(app.inbound),
        cases.routes(app.workflows),
        roster.routes(app.inbound, largest=largest, most=settings.max_bulk),
        *([connect.routes(outbound)] if settings.compat == "connect" else []),
    ):
        api.routes.extend(router.routes)  # including a router would build every route twice
    errors.install(api)
    openapi.install(api)
    api.access = AccessMiddleware(
        super(TidingsApi, api).__call__, access=access, host=settings.host, new_id=app.clock.new_id, largest=largest,
        trusted_proxies=settings.trusted_proxies,
        body_seconds=settings.header_timeout.total_seconds(),
        unlimited=frozenset(
            {bulk.PATH, schedules.BULK, broadcasts.RECIPIENTS, rollout.REPORT, contacts.IMPORT, suppressions.IMPORT,
             callbacks.PATH, roster.IMPORT, migrations.REPAIRED}
        ),
    )  # fmt: skip
    return api
