"""A fleet process without the API: worker, scheduler, poller, dispatcher or transport."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

from ..app import App, TransportProcess, build, build_transport
from ..config import Settings
from ..dispatch.roles import ProcessRole, ProcessShare
from ..kernel.gc_tuning import tune_gc
from ..observability.events import Emit
from . import banner
from .engine import sync_clock
from .telemetry import Telemetry


async def run_roles(settings: Settings, share: ProcessShare, stop: asyncio.Event, telemetry: Telemetry) -> None:
    """Run the roles of this process until `stop` is set."""
    problem = app = transport = None
    async with AsyncExitStack() as stack:
        if share.works:
            app = build(settings, emit=telemetry.emit, share=share)
            stack.push_async_callback(app.close)
            app.workflows.ready()
            await app.open()
            await app.cipher.check()
            await sync_clock(app)
            await start_worker(app)
            problem = None if app.dispatcher is None else app.dispatcher.problem
        if ProcessRole.TRANSPORT in share.roles:
            transport = await start_transport(settings, share, stack, emit=telemetry.emit)
            problem = transport.transport.problem
        await telemetry.start(app, transport)
        banner.show_roles(settings, share, problem, telemetry.url)
        await stop.wait()


async def start_worker(app: App) -> None:
    """Start the worker; a dispatcher connects to its broker first."""
    if app.dispatcher is not None:
        await app.dispatcher.start()
    tune_gc()
    app.worker.start()


async def start_transport(
    settings: Settings, share: ProcessShare, stack: AsyncExitStack, *, emit: Emit
) -> TransportProcess:
    """Start a transport, and register its graceful stop."""
    process = build_transport(settings, share=share, emit=emit)
    stack.push_async_callback(process.close)
    await process.transport.start()
    return process
