"""Every role of a fleet exports metrics and health checks, as started by the real command (B9, C9, C10)."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import httpx
import pytest

from tidings.api.metrics_application import create_metrics_application
from tidings.model.errors import StoreUnavailable
from tidings.observability.events import TasksExpired
from tidings.observability.metrics import Metrics
from tidings.testing.rabbitmq import RabbitBroker

from ..dispatch.cleaning import clean
from ..encryption import KEY
from ..launcher import fork_server
from .program import PATIENCE, Serving, environment, free_port, post, run, until

pytestmark = [pytest.mark.timeout(180), pytest.mark.xdist_group("rabbitmq")]
CHANNELS = '[channels.mail]\nkind = "noop"\n\n[channels.phone]\nkind = "noop"\n'
GRAFANA = Path(__file__).parents[2] / "deploy" / "grafana" / "tidings.json"


@contextmanager
def running(folder: Path, *words: str, env: Mapping[str, str]) -> Iterator[Serving]:
    """`tidings serve` with these options and a free metrics port, until the block ends."""
    words = ("serve", "--no-sandbox", "--metrics-port", "0", *words)
    process = fork_server().start("tidings.cli", *words, cwd=folder, env=environment(env))
    try:
        yield Serving(process)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait(PATIENCE)


def metrics_url(served: Serving) -> str:
    served.hears("/metrics")
    (url,) = re.findall(r"http://\S+(?=/metrics)", "\n".join(served.told))
    return str(url)


def exposition(url: str) -> str:
    with urlopen(f"{url}/metrics", timeout=PATIENCE) as answer:
        return str(answer.read().decode())


def scraped(url: str) -> dict[str, float]:
    """All samples by name and labels."""
    lines = [line for line in exposition(url).splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


@contextmanager
def management_of(broker: RabbitBroker) -> Iterator[str]:
    """The URL of the broker's management plug-in, which is off afterwards: other tests restart the broker."""
    port = free_port()
    assert broker._home is not None
    plugins = broker._home / "plugins"
    plugins.write_text("[rabbitmq_management].\n")
    listen = f'application:set_env(rabbitmq_management, tcp_config, [{{port, {port}}}, {{ip, "127.0.0.1"}}])'
    broker.control("eval", f'{listen}, rabbit_plugins:ensure("{plugins}").')
    try:
        yield f"http://guest:guest@127.0.0.1:{port}"
    finally:
        plugins.write_text("[].\n")
        broker.control("eval", f'rabbit_plugins:ensure("{plugins}").')


def status(url: str) -> int:
    try:
        with urlopen(url, timeout=PATIENCE) as answer:
            return int(answer.status)
    except HTTPError as error:
        return error.code


def test_every_role_exports_metrics_and_health_checks(tmp_path: Path, postgres_url: str, rabbit: RabbitBroker) -> None:
    """A message through a worker and one through a transport: each process shows its part, and StatsD gets it."""
    asyncio.run(clean(rabbit.url, "phone"))
    (tmp_path / "tidings.toml").write_text(CHANNELS)
    with ExitStack() as stack:
        management = stack.enter_context(management_of(rabbit))
        statsd = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        statsd.bind(("127.0.0.1", 0))
        statsd.settimeout(PATIENCE)
        env = {
            "TIDINGS_DATABASE": postgres_url,
            "TIDINGS_BROKER": rabbit.url,
            "TIDINGS_BROKER_MANAGEMENT": management,
            "TIDINGS_BROKER_CHANNELS": "phone",
            "TIDINGS_ENCRYPTION_KEYS": KEY,
            "TIDINGS_HEARTBEAT_INTERVAL": "500ms",
            "TIDINGS_STATSD": f"127.0.0.1:{statsd.getsockname()[1]}",
        }
        roles = {"api": ("api",), "scheduler": ("scheduler", "poller"), "worker": ("worker",),
                 "dispatcher": ("dispatcher",), "transport": ("transport",)}  # fmt: skip
        fleet = {
            name: stack.enter_context(
                running(tmp_path, *(word for role in some for word in ("--role", role)),
                        *(("--port", "0") if name == "api" else ()), env=env)
            )
            for name, some in roles.items()
        }  # fmt: skip
        urls = {name: metrics_url(served) for name, served in fleet.items()}
        fleet["api"].hears("Press Ctrl-C")
        api = fleet["api"].address("dashboard")
        for channel in ("mail", "phone"):
            post(f"{api}/v1/messages", {"channel": channel, "to": "ada", "text": "hello"})

        def count(name: str, metric: str) -> float:
            return scraped(urls[name])[metric]

        until(lambda: count("worker", "tidings_messages_succeeded_total") == 1, "the worker's message")
        until(lambda: count("dispatcher", "tidings_messages_succeeded_total") == 1, "the dispatcher's message")
        until(lambda: count("transport", "tidings_transport_attempts_total") == 1, "the transport's attempt")

        def timed() -> list[str]:
            return [name for name in scraped(urls["api"]) if re.match(r"tidings_worker_attempt_seconds.*p99", name)]

        until(lambda: len(timed()) == 2, "the durations of the worker and the dispatcher")
        pushed = ""
        for words in ("messages_succeeded_total:1|c", "database_connections:", "broker_memory_bytes."):
            while f"tidings.{words}" not in pushed:
                pushed += statsd.recv(65_536).decode() + "\n"

        found = {name: scraped(url) for name, url in urls.items()}
        for name, url in urls.items():
            assert (status(f"{url}/health/live"), status(f"{url}/health/ready")) == (200, 200), name
            assert found[name]["tidings_process_cpu_seconds_total"] > 0
            assert all(metric.startswith("tidings_") for metric in found[name])
        assert found["api"]["tidings_nodes_live"] == found["scheduler"]["tidings_nodes_live"] == 3
        for name in ("api", "scheduler"):
            assert 0 < found[name]["tidings_database_connections"] < found[name]["tidings_database_connections_max"]
            assert any(sample.startswith("tidings_worker_cpu_ratio") for sample in found[name])
            memory = {sample: found[name][sample] for sample in found[name] if "broker_memory" in sample}
            assert len(memory) == 2 and all(value > 1 << 20 for value in memory.values())
        assert found["worker"]['tidings_tenant_attempts_total{outcome="succeeded",tenant="default"}'] == 1
        assert "tidings_nodes_live" not in found["worker"] | found["transport"]  # they cost the database nothing

        texts = [exposition(url) for url in urls.values()]
        exported = {name for text in texts for name in re.findall(r"^# TYPE (\S+)", text, re.MULTILINE)}
        for panel in json.loads(GRAFANA.read_text())["panels"]:
            for target in panel["targets"]:
                named = re.findall(r"tidings_\w+?(?=_bucket|_count|_sum|\W)", target["expr"] + " ")
                assert named and set(named) <= exported, panel["title"]
        if promtool := shutil.which("promtool"):
            for text in texts:
                done = subprocess.run(
                    [promtool, "check", "metrics"], input=text, capture_output=True, text=True, check=False
                )
                assert (done.returncode, done.stdout + done.stderr) == (0, "")

        assert [served.stop() for served in fleet.values()] == [0] * len(fleet)


def test_a_transport_without_its_broker_is_alive_and_not_ready(tmp_path: Path) -> None:
    """Liveness must not restart it: it connects when the broker is back."""
    (tmp_path / "tidings.toml").write_text(CHANNELS)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        env = {"TIDINGS_BROKER": f"amqp://guest:guest@127.0.0.1:{closed.getsockname()[1]}/"}
        with running(tmp_path, "--role", "transport", env=env) as served:
            url = metrics_url(served)
            assert (status(f"{url}/health/live"), status(f"{url}/health/ready")) == (200, 503)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--role", "worker", "--port", "8162"), "--port has no effect without the role api"),
        (("--role", "worker", "--host", "0.0.0.0"), "--host has no effect without the role api"),
        (("--port", "8162", "--metrics-port", "8162"), "port and metrics_port are both 8162"),
    ],
)
def test_a_port_without_effect_is_refused(tmp_path: Path, words: tuple[str, ...], problem: str) -> None:
    """With a remedy, and before anything is created."""
    done = run("serve", *words, folder=tmp_path)
    assert done.returncode == 2 and problem in done.stderr, done.stderr
    assert not list(tmp_path.iterdir())


async def test_metrics_without_a_database_are_the_counters_alone() -> None:
    """A scrape during an outage must not report the gauges of the last one."""
    metrics = Metrics()
    metrics.take(TasksExpired(2))
    reachable = True

    async def gauges() -> None:
        if not reachable:
            raise StoreUnavailable("no answer", remedy="check it")
        metrics.gauge("nodes_live", "Live nodes.", {(): 3})

    application = create_metrics_application(metrics, [], gauges)
    transport = httpx.ASGITransport(application)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as caller:
        assert "tidings_nodes_live 3.0" in (await caller.get("/metrics")).text
        reachable = False
        text = (await caller.get("/metrics")).text
        assert "tidings_nodes_live" not in text and "tidings_messages_expired_total 2.0" in text
        reachable = True
        assert "tidings_nodes_live 3.0" in (await caller.get("/metrics")).text
