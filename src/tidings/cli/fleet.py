"""A process of a fleet that serves no pages: workers, schedulers, pollers, dispatchers and transports."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

from ..app import App, Carrier, build, build_carrier
from ..config import Settings
from ..dispatch.roles import Role, Share
from ..kernel.garbage import look_less_often
from ..observability.events import Emit
from . import banner
from .engine import learn_time


async def work(settings: Settings, share: Share, stop: asyncio.Event, *, emit: Emit) -> None:
    """Take this share of the work until asked to stop."""
    problem = None
    async with AsyncExitStack() as stack:
        if share.works:
            app = build(settings, emit=emit, share=share)
            stack.push_async_callback(app.close)
            app.workflows.ready()
            await app.open()
            await app.cipher.check()
            await learn_time(app)
            await begin(app)
            problem = None if app.office is None else app.office.problem
        if Role.TRANSPORT in share.roles:
            problem = (await carry(settings, share, stack, emit=emit)).transport.problem
        banner.show_roles(settings, share, problem)
        await stop.wait()


async def begin(app: App) -> None:
    """Start to work; a dispatcher talks to its broker first."""
    if app.office is not None:
        await app.office.start()
    look_less_often()
    app.worker.start()


async def carry(settings: Settings, share: Share, stack: AsyncExitStack, *, emit: Emit) -> Carrier:
    """Start a transport, and have it stopped in order."""
    carrier = build_carrier(settings, share=share, emit=emit)
    stack.push_async_callback(carrier.close)
    await carrier.transport.start()
    return carrier
