"""The ASGI application of the sandbox: providers, control routes and the phone page over one simulator."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from starlette.applications import Starlette
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Lifespan, Receive, Scope, Send

from . import control_routes, phone_page
from .access import LOCAL, SandboxAccess
from .environment import SandboxEnvironment
from .providers import PROVIDERS
from .providers.smtp import SmtpServer
from .simulator import SandboxSimulator


def create_sandbox(
    ledger_path: Path | None,
    *,
    environment: SandboxEnvironment | None = None,
    mail: socket.socket | None = None,
    access: SandboxAccess = LOCAL,
) -> Starlette:
    """Create the application; `state.world` is its simulator. Without a ledger path nothing is persisted.

    `mail` is a listening socket on which the simulated mail server accepts mail while the application runs.
    """
    world = SandboxSimulator(ledger_path, environment, access)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        letters = SmtpServer(world)
        if mail is not None:
            await letters.start(mail)
        yield
        await letters.stop()
        world.close()

    app = _SandboxApp(access, routes=sandbox_routes(world), lifespan=lifespan)
    app.state.world = world
    return app


class _SandboxApp(Starlette):
    """Dispatches bare provider endpoints without routing and middleware, which would cost a drill as much as
    the request itself."""

    def __init__(self, access: SandboxAccess, routes: Sequence[BaseRoute], lifespan: Lifespan[Starlette]) -> None:
        super().__init__(routes=routes, lifespan=lifespan)
        self._access = access
        self._bare: dict[tuple[object, object], ASGIApp] = {
            (method, route.path): route.app
            for route in routes
            if isinstance(route, Route) and route.app is route.endpoint and not route.param_convertors
            for method in route.methods or ()
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refused = self._access.refusal(scope) if scope["type"] == "http" else None
        bare = self._bare.get((scope.get("method"), scope.get("path")))
        await (refused or bare or super().__call__)(scope, receive, send)


def sandbox_routes(world: SandboxSimulator) -> Sequence[BaseRoute]:
    """Return the routes alone, for embedding the sandbox into another application."""
    # Providers come first: they take the load, and routes are matched in order.
    found = [route for provider in PROVIDERS for route in provider(world)]
    return [*found, *control_routes.routes(world), *phone_page.routes(world)]
