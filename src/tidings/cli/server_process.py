"""The `serve` process: startup order, signals, graceful shutdown.

Ports are bound first, but the API accepts no connection before the database was opened and checked. On
shutdown the API stops accepting while the worker finishes or releases its messages; the phone stops last,
because messages may still be on their way to it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import AsyncExitStack, redirect_stdout
from dataclasses import replace
from pathlib import Path

from ..api import create_api
from ..app import build
from ..config import Settings
from ..dashboard import add_dashboard
from ..dispatch.roles import ProcessRole, ProcessShare
from ..wire.connection_limits import ConnectionLimits, connection_budget, sandbox_connections
from . import banner, fleet
from .engine import sync_clock
from .http_server import HttpServer
from .ports import accept_on, bind, port_of
from .process_recycler import Recycler
from .sandbox_phone import SandboxPhone, is_sandbox_needed, ledger_of, mail_port_of
from .telemetry import Telemetry, check_addresses

_REMEDY = "stop the other process, or choose another port with --port"


async def serve(settings: Settings, share: ProcessShare, *, config: Path | None) -> int:
    """Run until a signal or the recycler stops the process; return the exit code."""
    check_addresses(settings, share)
    stop = _stop_signal()
    recycler = Recycler(settings.max_messages_per_process, settings.max_memory_per_process, stop.set)
    telemetry = Telemetry(settings, share, recycler.take)
    watching = asyncio.create_task(recycler.watch(telemetry.log))
    with redirect_stdout(sys.stdout if settings.log_output == "stderr" else sys.stderr):  # the log may have it alone
        try:
            if ProcessRole.API in share.roles:
                await _serve(settings, share, stop, telemetry, config=config)
            else:
                await fleet.run_roles(settings, share, stop, telemetry)
        finally:
            watching.cancel()
            await telemetry.close()
        banner.stopped()
    return recycler.code


async def _serve(
    settings: Settings, share: ProcessShare, stop: asyncio.Event, telemetry: Telemetry, *, config: Path | None
) -> None:
    works = share.works
    path = settings.database_path
    if path is not None and not path.exists():
        settings.require_key_unless_local(has_admin=False)  # before a file is created
    async with AsyncExitStack() as stack:  # closed in reverse order
        listening = bind(settings.host, settings.port, remedy=_REMEDY)
        stack.callback(listening.close)
        settings = replace(settings, port=port_of(listening))
        phone = None
        if is_sandbox_needed(settings):
            phone = SandboxPhone(
                settings.sandbox_port,
                ledger_of(settings),
                mail_port=mail_port_of(settings),
                connections=sandbox_connections(settings.concurrency),
            )
        if phone is not None:
            stack.push_async_callback(phone.stop)
            settings = replace(settings, sandbox_port=phone.port)
        app = build(settings, emit=telemetry.emit, share=share)
        stack.push_async_callback(app.close)
        if works:
            app.workflows.ready()
        await app.open()
        await app.cipher.check()
        settings.require_key_unless_local(has_admin=await app.access.authenticator.has_admin())
        await app.access.authenticator.remember_configured()
        await sync_clock(app)
        if phone is not None:
            await phone.start()
        api = create_api(app, telemetry.metrics)
        dashboard = add_dashboard(api, app)
        server = HttpServer(api, listening, _limits(settings))
        accept_on(listening, remedy=_REMEDY)
        serving = await server.begin()
        if works:
            await fleet.start_worker(app)
        else:
            app.worker.start_observers()
        transport = None
        if ProcessRole.TRANSPORT in share.roles:
            transport = await fleet.start_transport(settings, share, stack, emit=telemetry.emit)
        await telemetry.start(app, transport)
        is_open = await app.access.authenticator.is_open()
        banner.show(app, phone, telemetry.url, share=share, config=config, is_open=is_open)
        await _first(stop, serving)
        dashboard.close()
        await asyncio.gather(server.end(), app.worker.stop())


def _limits(settings: Settings) -> ConnectionLimits:
    return ConnectionLimits(
        settings.max_header,
        settings.header_timeout.total_seconds(),
        connection_budget(settings.max_connections, concurrency=settings.concurrency),
    )


def _stop_signal() -> asyncio.Event:
    """Return an event that the first signal sets; the second signal exits immediately."""
    stop = asyncio.Event()

    def on_signal(number: int) -> None:
        if stop.is_set():
            os._exit(128 + number)
        stop.set()
        banner.stopping()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        try:
            loop.add_signal_handler(number, on_signal, number)
        except NotImplementedError:  # Windows
            signal.signal(number, lambda got, _: loop.call_soon_threadsafe(on_signal, got))
    return stop


async def _first(stop: asyncio.Event, serving: asyncio.Task[None]) -> None:
    """Wait for a signal; raise if the server ends before that."""
    signalled = asyncio.create_task(stop.wait())
    await asyncio.wait({signalled, serving}, return_when=asyncio.FIRST_COMPLETED)
    signalled.cancel()
    if serving.done():
        serving.result()
