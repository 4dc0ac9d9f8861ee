"""What lies under deploy/ fits the program: the same rules, metrics that exist, commands that can be run."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import typer.main
import yaml

from tidings import config
from tidings.api import create_api
from tidings.app import build
from tidings.cli.program import full_program
from tidings.observability.metrics import Metrics
from tidings.outbound.alerts import prometheus_rules
from tidings.outbound.alerts.rules import RULES, AlertThresholds

from ..acceptance import program
from .pages import ROOT, named, page

DEPLOY = ROOT / "deploy"
RULES_FILE = DEPLOY / "prometheus" / "tidings.rules.yml"
NO_METRICS = {"sum", "max", "min", "by", "rate", "increase", "and", "or", "absent", "histogram_quantile"}
LABELS = {"le", "node", "channel", "category", "severity", "tenant", "outcome", "broker", "system"}
ELSEWHERE = dict.fromkeys(  # of PostgreSQL and RabbitMQ: tests/acceptance/test_fleet_metrics.py scrapes them
    ("tidings_database_connections", "tidings_database_connections_max",
     "tidings_broker_memory_bytes", "tidings_broker_memory_limit_bytes"), "gauge",
)  # fmt: skip


@pytest.fixture
async def metrics(tmp_path: Path) -> set[str]:
    """The names of everything that a scrape of a fresh engine tells, histograms with their parts."""
    app = build(config.load(environ={}, folder=tmp_path, flags={"database": f"sqlite:///{tmp_path}/t.db"}))
    await app.open()
    try:
        transport = httpx.ASGITransport(create_api(app, Metrics()))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as caller:
            text = (await caller.get("/metrics")).text
    finally:
        await app.close()
    told = ELSEWHERE | dict(re.findall(r"^# TYPE (\S+) (\w+)$", text, re.MULTILINE))
    return {
        part
        for name, kind in told.items()
        for part in ((f"{name}_bucket", f"{name}_count", f"{name}_sum") if kind == "histogram" else (name,))
    }


def alerts() -> dict[str, dict[str, Any]]:
    """The alerts of Prometheus by the name of their rule."""
    (group,) = yaml.safe_load(RULES_FILE.read_text())["groups"]
    return {rule["labels"]["rule"]: rule for rule in group["rules"]}


def names(expression: str) -> set[str]:
    """The metrics that an expression names."""
    bare = re.sub(r'"[^"]*"|\[[^\]]*\]|\$\w+', "", expression)
    return set(re.findall(r"[a-z_]{3,}", bare)) - NO_METRICS - LABELS


def panels() -> Iterator[dict[str, Any]]:
    """Those of the dashboard."""
    yield from json.loads((DEPLOY / "grafana" / "tidings.json").read_text())["panels"]


def test_prometheus_has_the_rules_of_the_engine() -> None:
    """Every one, with its severity, its time and its runbook; no other."""
    assert set(alerts()) == set(RULES)
    for name, rule in RULES.items():
        alert = alerts()[name]
        assert alert["labels"]["severity"] == rule.severity
        assert alert["for"] == f"{rule.hold.total_seconds() / 60:g}m"
        assert alert["annotations"]["runbook"] == f"tidings docs {rule.runbook}"


def test_the_file_of_rules_is_what_the_program_writes() -> None:
    """With the defaults; so its thresholds are the engine's own, and others' are written as easily."""
    assert RULES_FILE.read_text() == prometheus_rules.rules_file(AlertThresholds())
    assert alerts() == {one["labels"]["rule"]: one for one in prometheus_rules.prometheus_alerts(AlertThresholds())}


LIMITS = {
    "scheduler_silent": ("7m", "> 420 "),
    "overdue": (123_456_789, "> 123456789\n"),
    "late": ("12.5%", "> 0.125\n"),
    "errors": (0.07, "> 0.07\n"),
    "failures": (0.5, "> 0.5\n"),
    "queue_deep": (20_000, "> 20000\n"),
    "memory": (1, "> 1\n"),
    "job_stalled": ("2h", "> 0\n"),  # the engine itself counts how long
    "database_full": ("1GiB", "< 1073741824\n"),
    "database_slow": ("1500ms", "> 1.5\n"),
}


def test_every_threshold_of_the_settings_reaches_the_rules(tmp_path: Path) -> None:
    """Those of the file, in the units in which they are written there."""
    (tmp_path / "tidings.toml").write_text(
        "[alerts]\n" + "".join(f"{name} = {json.dumps(raw)}\n" for name, (raw, _) in LIMITS.items())
    )
    limits = config.load(environ={}, folder=tmp_path).alerts
    written = {one["labels"]["rule"]: one["expr"] + "\n" for one in prometheus_rules.prometheus_alerts(limits)}
    for name, (_, expected) in LIMITS.items():
        assert expected in written[name]


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed: make promtool")
def test_promtool_finds_nothing_wrong() -> None:
    """Neither in the rules nor in the configuration that names them."""
    settings = DEPLOY / "prometheus" / "prometheus.yml"
    for words in (["rules", str(RULES_FILE)], ["config", "--syntax-only", str(settings)]):
        done = subprocess.run(["promtool", "check", *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


async def test_every_metric_named_in_rules_and_dashboards_exists(metrics: set[str]) -> None:
    """In the rules and on the dashboard; and the reference has every metric there is."""
    expressions = [alert["expr"] for alert in alerts().values()]
    expressions += [target["expr"] for panel in panels() for target in panel["targets"]]
    for expression in expressions:
        assert names(expression) and names(expression) <= metrics, expression
    told = {re.sub(r"\{.*", "", name) for name in named(page("reference/metrics.md"), "name")}
    assert told == {re.sub(r"_(bucket|count|sum)$", "", name) for name in metrics}


def test_the_dashboard_shows_what_was_promised() -> None:
    """B11: queue depth, lag distribution, success rate, 95th-percentile lag."""
    shown = {panel["title"]: panel["targets"] for panel in panels()}
    assert {"Queue depth", "Lag distribution", "Success rate"} <= set(shown)
    assert any("quantile(0.95" in target["expr"] for target in shown["Lag: 50th and 95th percentile"])


def test_commands_of_the_units_and_manifests_can_be_run() -> None:
    """Each names a command of this program."""
    known = typer.main.get_command(full_program())
    lines = [
        line.partition("bin/tidings ")[2]
        for unit in (DEPLOY / "systemd").glob("*.service")
        for line in unit.read_text().splitlines()
        if line.startswith("Exec")
    ]
    manifests = list(yaml.safe_load_all((DEPLOY / "kubernetes" / "tidings.yaml").read_text()))
    containers = [
        container
        for manifest in manifests
        if manifest["kind"] in ("Deployment", "Job")
        for container in manifest["spec"]["template"]["spec"]["containers"]
    ]
    found = [line.split() for line in lines] + [container["args"] for container in containers]
    assert len(found) == 6
    for words in found:
        command: Any = known
        for word in words[:2]:
            command = command.commands[word] if hasattr(command, "commands") else command


def test_pods_are_probed_and_scraped_on_the_metrics_port() -> None:
    """A scrape of the API's port would need a key, and a worker has no other port."""
    manifests = list(yaml.safe_load_all((DEPLOY / "kubernetes" / "tidings.yaml").read_text()))
    settings = tomllib.loads(next(it for it in manifests if it["kind"] == "ConfigMap")["data"]["tidings.toml"])
    (policy,) = [it["spec"] for it in manifests if it["kind"] == "NetworkPolicy"]
    assert settings["metrics_port"] in {port["port"] for rule in policy["ingress"] for port in rule["ports"]}
    roles: list[str] = []
    for template in (it["spec"]["template"] for it in manifests if it["kind"] == "Deployment"):
        (container,) = template["spec"]["containers"]
        roles += container["args"][2::2]
        ports = {port["name"]: port["containerPort"] for port in container["ports"]}
        annotations = template["metadata"]["annotations"]
        assert ports["metrics"] == int(annotations["prometheus.io/port"]) == settings["metrics_port"]
        assert annotations["prometheus.io/path"] == "/metrics"
        for probe, path in (("readinessProbe", "/health/ready"), ("livenessProbe", "/health/live")):
            assert container[probe]["httpGet"] == {"path": path, "port": "metrics"}
    assert sorted(roles) == ["api", "poller", "scheduler", "worker"]


def test_the_settings_of_the_manifest_are_read(tmp_path: Path) -> None:
    """With the key that its first lines ask for."""
    manifests = yaml.safe_load_all((DEPLOY / "kubernetes" / "tidings.yaml").read_text())
    text = next(it for it in manifests if it["kind"] == "ConfigMap")["data"]["tidings.toml"]
    (tmp_path / "tidings.toml").write_text(text)
    environ = {"TIDINGS_API_KEYS": "0" * 64, "TIDINGS_DATABASE": "postgresql://tidings@db/tidings"}
    config.load(environ=environ, folder=tmp_path).check()


def test_files_that_others_read_can_be_parsed() -> None:
    """YAML and JSON, and every file that a compose file mounts is there."""
    for path in [*DEPLOY.rglob("*.yml"), *DEPLOY.rglob("*.yaml")]:
        assert list(yaml.safe_load_all(path.read_text())), path
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    for service in services.values():
        for volume in service.get("volumes", ()):
            place = volume.partition(":")[0]
            assert not place.startswith(".") or (DEPLOY / place).exists(), volume


def test_no_compose_file_has_a_default_password() -> None:
    """Every password comes from the environment, and without it nothing starts."""
    wanted = {"postgres": "POSTGRES_PASSWORD", "grafana": "GF_SECURITY_ADMIN_PASSWORD"}
    for path in (ROOT / "compose.yaml", DEPLOY / "compose.yaml"):
        assert ":-" not in path.read_text(), f"{path} has a default"
        for name, service in yaml.safe_load(path.read_text())["services"].items():
            given = service.get("environment", {})
            assert name not in wanted or ":?" in given[wanted[name]]
            if name.startswith("tidings"):
                assert ":?" in given["TIDINGS_API_KEYS"]
                assert service["cap_drop"] == ["ALL"] and service["read_only"] and service["tmpfs"] == ["/tmp"]


def test_the_image_says_whether_it_is_healthy() -> None:
    """By a route that there is, with what the image has: it has no curl."""
    (check,) = re.findall(r"HEALTHCHECK[^\[]*CMD (\[.*\])", (ROOT / "Dockerfile").read_text())
    program, flag, code = json.loads(check)
    assert (program, flag) == ("python", "-c") and "/health/live" in code
    compile(code, "HEALTHCHECK", "exec")


@pytest.mark.process
@pytest.mark.parametrize("database", ["sqlite", "postgres"])
def test_the_unit_starts_on_a_fresh_machine_and_again_after_that(
    database: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Its commands in order, as it starts them, with an empty state folder or an empty PostgreSQL database."""
    unit = [
        line.partition("=")[::2]
        for line in (DEPLOY / "systemd" / "tidings.service").read_text().splitlines()
        if "=" in line and line[0] != "#"
    ]
    etc, state = tmp_path / "etc", tmp_path / "state"
    etc.mkdir()
    state.mkdir(0o700)
    (etc / "tidings.toml").touch(0o640)
    environ = dict(word.split("=", 1) for name, value in unit if name == "Environment" for word in value.split())
    assert environ.pop("TIDINGS_CONFIG") == "/etc/tidings/tidings.toml"
    environ["TIDINGS_CONFIG"] = str(etc / "tidings.toml")
    if database == "postgres":
        environ["TIDINGS_DATABASE"] = request.getfixturevalue("bare_postgres_url")
    before = [value.partition("bin/tidings ")[2].split() for name, value in unit if name == "ExecStartPre"]
    (start,) = [value.partition("bin/tidings ")[2].split() for name, value in unit if name == "ExecStart"]
    assert before and start == ["serve"]
    for _ in range(2):
        for words in before:
            done = program.run(*words, folder=state, env=environ)
            assert done.returncode == 0, done.stderr
        with program.serving(state, env=environ) as served:
            assert program.get(f"{served.address('dashboard')}/health/ready")
            assert served.stop() == 0
    assert (state / "data" / "tidings.db").exists() == (database == "sqlite")


HARDENED = {
    "UMask": "0077",
    "StateDirectoryMode": "0700",
    "CapabilityBoundingSet": "",
    "NoNewPrivileges": "true",
    "ProtectSystem": "strict",
    "SystemCallFilter": "~@privileged",
    "MemoryDenyWriteExecute": "true",
    "RestrictSUIDSGID": "true",
}


@pytest.mark.parametrize("name", ["tidings.service", "tidings-backup.service"])
def test_the_units_can_do_nothing_but_their_work(name: str, tmp_path: Path) -> None:
    """Their files are their own, they have no capabilities and only the calls of a service."""
    unit = (DEPLOY / "systemd" / name).read_text()
    given = dict(line.partition("=")[::2] for line in unit.splitlines() if "=" in line and line[0] != "#")
    assert {key: given.get(key) for key in HARDENED} == HARDENED
    if shutil.which("systemd-analyze") is None:
        return
    words = ["systemd-analyze", "security", "--offline=true", "--threshold=20", "--no-pager"]
    done = subprocess.run([*words, str(DEPLOY / "systemd" / name)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-300:] + done.stderr


def test_the_pods_are_closed() -> None:
    """No token of the cluster, a root that cannot be written, a /tmp that can, and rules for the network."""
    manifests = list(yaml.safe_load_all((DEPLOY / "kubernetes" / "tidings.yaml").read_text()))
    templates = [it["spec"]["template"] for it in manifests if it["kind"] in ("Deployment", "Job")]
    (policy,) = [it["spec"] for it in manifests if it["kind"] == "NetworkPolicy"]
    (labels,) = [rule["values"] for rule in policy["podSelector"]["matchExpressions"]]
    assert policy["policyTypes"] == ["Ingress", "Egress"] and len(templates) == 3
    for template in templates:
        pod = template["spec"]
        assert template["metadata"]["labels"]["app"] in labels
        assert pod["automountServiceAccountToken"] is False
        assert {"name": "tmp", "emptyDir": {"sizeLimit": "1Gi"}} in pod["volumes"]
        for container in pod["containers"]:
            assert container["securityContext"]["readOnlyRootFilesystem"] is True
            assert {"name": "tmp", "mountPath": "/tmp"} in container["volumeMounts"]
    closed = [block["ipBlock"]["except"] for rule in policy["egress"] for block in rule.get("to", ())
              if "ipBlock" in block]  # fmt: skip
    assert {"169.254.0.0/16", "168.63.129.16/32", "10.0.0.0/8", "fc00::/7"} <= {one for some in closed for one in some}
