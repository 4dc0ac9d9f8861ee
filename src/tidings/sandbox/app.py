"""The sandbox as an application: providers, control routes and the phone page over one world."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from starlette.applications import Starlette
from starlette.routing import BaseRoute

from . import control, page
from .providers import PROVIDERS
from .senses import Senses
from .world import World


def create_sandbox(ledger_path: Path | None, *, senses: Senses | None = None) -> Starlette:
    """A ready application; its `state.world` is the world behind it. Without a path nothing outlives it."""
    world = World(ledger_path, senses)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        world.close()

    app = Starlette(routes=sandbox_routes(world), lifespan=lifespan)
    app.state.world = world
    return app


def sandbox_routes(world: World) -> Sequence[BaseRoute]:
    """The routes alone, for whoever puts the sandbox into an application of their own."""
    # The providers come first: they take the load, and routes are tried in order.
    found = [route for provider in PROVIDERS for route in provider(world)]
    return [*found, *control.routes(world), *page.routes(world)]
