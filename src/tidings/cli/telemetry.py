"""Telemetry of a `serve` process, whatever its roles: log, metrics, StatsD, OpenTelemetry, and the metrics port."""

from __future__ import annotations

import asyncio
from functools import partial

from ..api.metrics_application import Check, Gauges, create_metrics_application, refresh_gauges
from ..api.routes.health import readiness_problem
from ..api.routes.metrics import read_gauges
from ..app import App, TransportProcess
from ..config import Settings
from ..dispatch.broker_memory import BrokerMemoryReader
from ..dispatch.dispatcher_runtime import DispatcherRuntime
from ..dispatch.roles import ProcessRole, ProcessShare
from ..dispatch.transport import Transport
from ..model.errors import Invalid
from ..observability.events import Emit
from ..observability.log import configure_library_logs, fan_out, log_sink
from ..observability.metrics import Metrics
from ..observability.otel import OtelSink
from ..observability.statsd import StatsdSink
from .http_server import HttpServer
from .ports import accept_on, bind, display_host, port_of

_REMEDY = "stop the other process, or choose another port with --metrics-port"
_PUSH_INTERVAL = 10.0  # seconds between two pushes of gauges to StatsD, its usual flush interval
_READS_DATABASE = frozenset({ProcessRole.API, ProcessRole.SCHEDULER})  # enough for a fleet
_READS_BROKER = _READS_DATABASE | {ProcessRole.DISPATCHER}


def check_addresses(settings: Settings, share: ProcessShare) -> None:
    """Raise Invalid for --port or --host without effect, and for two uses of one port."""
    if ProcessRole.API in share.roles:
        if settings.metrics_port and settings.metrics_port == settings.port:
            problem = f"port and metrics_port are both {settings.port}"
            raise Invalid(problem, remedy="change one of them, or scrape /metrics of the API", field="metrics_port")
        return
    for name in ("port", "host") if settings.metrics_port is None else ("port",):
        if settings.origins.get(name) == f"--{name}":
            raise Invalid(
                f"--{name} has no effect without the role api: this process serves no API",
                remedy=f"remove --{name}, add --role api, or use --metrics-port for metrics and health checks",
                field=name,
            )


class Telemetry:
    """The sinks of one process, and its optional port with /metrics, /health/live and /health/ready."""

    def __init__(self, settings: Settings, share: ProcessShare, *also: Emit) -> None:
        self._settings = settings
        self._share = share
        self.metrics = Metrics()
        self.log = log_sink(settings.log)
        configure_library_logs(settings.log)
        port = settings.metrics_port
        self._listening = None if port is None else bind(settings.host, port, remedy=_REMEDY)
        self._statsd = [StatsdSink(*settings.statsd)] if settings.statsd else []
        self._sinks: list[StatsdSink | OtelSink] = [*self._statsd, *([OtelSink()] if settings.otel else [])]
        self.emit = fan_out(self.log, self.metrics.take, *(sink.take for sink in self._sinks), *also)
        url = settings.broker_management if share.roles & _READS_BROKER else None
        self._broker = None if url is None else BrokerMemoryReader(url)
        self._pushing: asyncio.Task[None] | None = None
        self._checks: list[Check] = []
        self._gauges: Gauges | None = None
        self._server: HttpServer | None = None

    @property
    def url(self) -> str | None:
        """Where the metrics are; None without a metrics port."""
        if self._listening is None:
            return None
        return f"http://{display_host(self._settings.host)}:{port_of(self._listening)}/metrics"

    async def start(self, app: App | None, transport: TransportProcess | None) -> None:
        """Serve the metrics port, if there is one. The process is ready when these parts are."""
        if app is not None:
            self._checks.append(partial(readiness_problem, app.outbound))
            self._gauges = partial(self._read_gauges, app)
        if self._statsd:
            self._pushing = asyncio.create_task(self._push_gauges())
        if self._listening is None:
            return
        for part in (None if app is None else app.dispatcher, None if transport is None else transport.transport):
            if part is not None:
                self._checks.append(partial(_broker_problem, part))
        application = create_metrics_application(self.metrics, self._checks, self._gauges)
        self._server = HttpServer(application, self._listening)
        accept_on(self._listening, remedy=_REMEDY)
        await self._server.begin()

    async def _read_gauges(self, app: App) -> None:
        if self._share.roles & _READS_DATABASE:
            await read_gauges(app.outbound, self.metrics)
        if self._broker is not None:
            used: dict[tuple[str, ...], float] = {}
            limit: dict[tuple[str, ...], float] = {}
            for node, memory in (await self._broker.read()).items():
                used[(node,)], limit[(node,)] = memory
            self.metrics.gauge("broker_memory_bytes", "Memory in use by a RabbitMQ node.", used, "broker")
            self.metrics.gauge("broker_memory_limit_bytes", "Memory at which it blocks publishers.", limit, "broker")

    async def _push_gauges(self) -> None:
        """Send all gauges to StatsD periodically, as a scrape would read them."""
        while True:
            await refresh_gauges(self.metrics, self._gauges)
            for sink in self._statsd:
                sink.push_gauges(self.metrics.gauges())
            await asyncio.sleep(_PUSH_INTERVAL)

    async def close(self) -> None:
        """Send what is left, and close the sinks and the port."""
        if self._pushing is not None:
            self._pushing.cancel()
        if self._server is not None:
            await self._server.end()
        if self._broker is not None:
            await self._broker.close()
        if self._listening is not None:
            self._listening.close()
        for sink in self._sinks:
            sink.close()


async def _broker_problem(part: DispatcherRuntime | Transport) -> str | None:
    return None if part.problem is None else "RabbitMQ does not answer"  # the log has the reason, with its host
