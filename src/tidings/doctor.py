"""The doctor: checks an engine and reports findings, each with its remedy.

The checks are functions of values; `run_checks` only gathers them. It changes nothing: a missing database
is not created, and an old schema is not upgraded. `error` findings need a person; `warning` findings resolve
automatically, or may become wrong.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from .app import App, build
from .config import Settings, mask_url
from .inbound.llm.endpoint import ModelEndpoint
from .inbound.llm.settings import ModelSettings
from .kernel.clock import DriftLevel, classify_drift
from .kernel.heartbeats import is_dispatcher
from .model.durations import humanize
from .model.errors import TidingsError
from .model.time import SECOND, iso, moment
from .outbound.channels.session import HasSessionStorage, SessionStorage
from .outbound.dead_letters import DeadLetters
from .outbound.health import node_problems

OVERDUE_AFTER = timedelta(seconds=60)  # older due messages are overdue
LOW_DISK = 1 << 30
MIN_DISK = 64 << 20
MODEL_NOTICE = timedelta(days=90)  # before a model's shutdown
MAX_COUNTED = 1000  # per channel and priority; beyond it 'at least'

Row = Mapping[str, Any]


class FindingSeverity(StrEnum):
    """Severity of a finding."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


class DoctorFinding(NamedTuple):
    """The result of one check."""

    check: str
    status: FindingSeverity
    message: str
    remedy: str = ""


def _fine(check: str, what: str) -> DoctorFinding:
    return DoctorFinding(check, FindingSeverity.OK, what)


def _note(check: str, what: str, remedy: str) -> DoctorFinding:
    return DoctorFinding(check, FindingSeverity.WARNING, what, remedy)


def _wrong(check: str, what: str, remedy: str) -> DoctorFinding:
    return DoctorFinding(check, FindingSeverity.ERROR, what, remedy)


class ChannelStatus(NamedTuple):
    """Whether a channel sends; if not, why, and until when if that is known."""

    word: str  # ready, paused, waiting, breaker open, half open
    reason: str | None = None
    until: int | None = None


class ChannelBacklog(NamedTuple):
    """Due messages of one channel: how many, as far as counted, and since when."""

    messages: int
    since: int


async def run_checks(settings: Settings) -> list[DoctorFinding]:
    """Run all checks, except those that an earlier finding makes impossible."""
    findings = [check_settings(settings), *_check_location(settings)]
    path = settings.database_path
    is_missing = path is not None and not path.exists()
    if is_missing or any(finding.status is FindingSeverity.ERROR for finding in findings[1:]):
        return [*findings, *check_listen_address(settings, has_admin=False)] if is_missing else findings
    try:
        app = build(settings)
    except TidingsError as error:
        return [*findings, _wrong("settings", error.problem, error.remedy)]
    try:
        return findings + await _check_database(app)
    finally:
        await app.close()


async def _check_database(app: App) -> list[DoctorFinding]:
    where = mask_url(app.settings.database)
    try:
        await app.store.open()
        await app.cipher.check()
    except TidingsError as error:
        return [_wrong("database", error.problem, error.remedy)]
    good = _fine("database", f"{where} responds, is durable, and has the current schema")
    asked = app.clock.monotonic()
    now: int = (await app.store.read("now"))[0]["now"]
    app.clock.learn(now, asked, app.clock.monotonic())
    nodes = await app.store.read("node_list")
    queues = await app.store.read("queue_list")
    waiting = {queue["name"]: found for queue in queues if (found := await _backlog(app, queue["name"]))}
    replication = [] if app.store.sole_worker else await app.store.read("replication")
    is_worked_on = not app.store.may_work() if app.store.sole_worker else None
    return [
        good,
        *(finding for row in replication for finding in check_standbys(row)),
        *check_listen_address(app.settings, has_admin=await app.access.authenticator.has_admin()),
        check_clock(app.clock.drift(), seen=(await app.store.read("clock_high"))[0]["high"], now=now),
        *check_clock_change((await app.store.read("clock_affected", at=now))[0], now=now),
        *check_nodes(nodes, is_worked_on=is_worked_on, node_timeout=app.settings.node_timeout, now=now),
        *check_broker(nodes, app.settings.dispatched),
        *check_channels(queues, app.settings.channels, now=now),
        *await _check_session_storage(app),
        *check_backlog(waiting, queues, is_worked_on=_is_worked_on(is_worked_on, nodes), now=now),
        check_dead_letters(await DeadLetters(app.store).groups()),
        *await _check_model(app.settings.inbound.model, now=now),
    ]


async def _check_model(settings: ModelSettings | None, *, now: int) -> list[DoctorFinding]:
    if settings is None:
        return []
    endpoint = ModelEndpoint(settings, now=lambda: now)
    try:
        ends, today = await endpoint.shutdown_dates(), moment(now).date()
        models = sorted({settings.small, settings.large})
        return [check_model_date(model, ends.get(model), today=today) for model in models]
    except TidingsError as error:
        return [_note("model", error.problem, "check inbound.model; until then the rules answer")]
    finally:
        await endpoint.close()


async def _backlog(app: App, queue: str) -> ChannelBacklog | None:
    """Return the due messages of one channel, by the index that claims use."""
    count, since = 0, 0
    for priority in range(10):
        due = await app.store.read("overdue", queue=queue, priority=priority, from_due=0, after=0, limit=MAX_COUNTED)
        if due:
            count, since = count + len(due), min(since or due[0]["due_at"], due[0]["due_at"])
    return ChannelBacklog(count, since) if count else None


async def _check_session_storage(app: App) -> list[DoctorFinding]:
    """Check whether each linked session survives a restart of its server."""
    stored = {name: channel for name, channel in app.channels.items() if isinstance(channel, HasSessionStorage)}
    return [
        check_session_storage(name, channel.session_dir, await channel.storage(), now=app.clock.wall())
        for name, channel in stored.items()
    ]


def _is_worked_on(lock: bool | None, nodes: Sequence[Row]) -> bool:
    return any(node["state"] == "live" for node in nodes) if lock is None else lock


def _check_location(settings: Settings) -> list[DoctorFinding]:
    """Check the folder and the disk of a SQLite file."""
    path = settings.database_path
    if path is None:
        return []
    folder = path.parent
    if not path.exists():
        can_make = os.access(_nearest(folder), os.W_OK | os.X_OK)
        if not can_make:
            return [check_folder(folder, writable=False)]
        remedy = "tidings serve creates it"
        return [_note("database", f"there is no database {path} yet", remedy)]
    writable = os.access(folder, os.W_OK | os.X_OK) and os.access(path, os.W_OK)
    return [check_folder(folder, writable=writable), check_disk(folder, shutil.disk_usage(folder).free)]


def _nearest(folder: Path) -> Path:
    """Return the folder itself, or its closest existing parent."""
    return next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())


# -- checks of values


def check_settings(settings: Settings) -> DoctorFinding:
    """Check whether the settings are valid."""
    try:
        settings.check()
    except TidingsError as error:
        return _wrong("settings", error.problem, error.remedy)
    changed = ", ".join(sorted(settings.origins)) or "nothing"
    return _fine("settings", f"valid; set by you: {changed}")


def check_listen_address(settings: Settings, *, has_admin: bool) -> list[DoctorFinding]:
    """Check whether it may listen on the configured address; no finding if it may."""
    try:
        settings.require_key_unless_local(has_admin=has_admin)
    except TidingsError as error:
        return [_wrong("access", error.problem, error.remedy)]
    return []


def check_folder(folder: Path, *, writable: bool) -> DoctorFinding:
    """Check that the folder is writable: SQLite creates its log and locks there."""
    if writable:
        return _fine("folder", f"{folder} is writable")
    remedy = "check the owner, mode and mount of its folder, or use another --database"
    return _wrong("folder", f"{folder} is not writable", remedy)


def check_disk(folder: Path, free: int) -> DoctorFinding:
    """Check the free disk space."""
    room = f"{free / (1 << 30):,.1f} GiB" if free >= 1 << 30 else f"{free / (1 << 20):,.0f} MiB"
    if free < MIN_DISK:
        remedy = "free some space: soon no message can be accepted"
        return _wrong("disk", f"only {room} free under {folder}", remedy)
    if free < LOW_DISK:
        return _note("disk", f"{room} free under {folder}", "consider more space")
    return _fine("disk", f"{room} free under {folder}")


def check_model_date(model: str, end: str | None, *, today: date) -> DoctorFinding:
    """Check whether a model is shut down, or soon will be; `end` is its date in ISO 8601."""
    remedy = "set inbound.model.small and large to current models"
    if end is None or end > (today + MODEL_NOTICE).isoformat():
        return _fine("model", f"{model}: shutdown on {end}" if end else f"{model}: no shutdown announced")
    if end > today.isoformat():
        return _note("model", f"{model} will be shut down on {end}", remedy)
    return _wrong("model", f"{model} was shut down on {end}", remedy)


def check_standbys(row: Row) -> list[DoctorFinding]:
    """Check whether acknowledged messages survive a failover; no finding without standbys."""
    if not row["standbys"]:
        return []
    count, how = f"standbys: {row['standbys']}", "see: tidings docs postgresql#failover"
    if row["names"] and row["commits"] != "local" and row["synchronous"]:
        return [_fine("standby", f"{count}, synchronous: {row['synchronous']}")]
    if row["names"] and row["commits"] != "local" and row["hidden"]:
        what = f"{count}; this role may not see whether one of them is synchronous"
        return [_note("standby", what, "GRANT pg_monitor TO the role, then run the doctor again")]
    what = f"{count}, all asynchronous: a failover may lose the newest acknowledged messages"
    return [_note("standby", what, how)]


def check_clock(drift: timedelta, *, seen: int, now: int) -> DoctorFinding:
    """Compare the machine's clock with the database's, and with the latest time that it has recorded."""
    behind = timedelta(microseconds=max(0, seen - now))
    worst = max((drift, behind), key=abs)
    apart = f"this machine's clock and the database's are {humanize(abs(worst))} apart"
    if worst is behind and behind:
        apart = f"the clock was set back: it is {humanize(behind)} behind the latest time in the database"
    match classify_drift(worst):
        case DriftLevel.UNHEALTHY:
            return _wrong("clock", apart, "synchronize the clocks with NTP (timedatectl set-ntp true)")
        case DriftLevel.NOTED:
            return _note("clock", apart, "synchronize the clocks with NTP (timedatectl set-ntp true)")
        case DriftLevel.FINE:
            return _fine("clock", f"agrees with the database's (to {humanize(abs(worst))})")


def check_clock_change(found: Row, *, now: int) -> list[DoctorFinding]:
    """Report messages and schedules with times from before the clock was set back; usually none."""
    if not found["messages"] and not found["schedules"]:
        return []
    ahead = humanize(timedelta(seconds=(max(found["accepted_at"], found["ran_at"]) - now) // SECOND))
    kept = f"{found['messages']:,} messages and {found['schedules']:,} schedules wait for times set before that"
    remedy = "a working process sends immediate messages now; change others: tidings messages reschedule"
    return [_note("clock", f"the clock was set back by {ahead}: {kept}", remedy)]


def check_nodes(
    nodes: Sequence[Row], *, is_worked_on: bool | None, node_timeout: timedelta, now: int
) -> list[DoctorFinding]:
    """Check which nodes work. `is_worked_on`: whether a file's work lock is held; None on PostgreSQL."""
    live = [node for node in nodes if node["state"] == "live"]
    silent = [node for node in live if now - node["seen_at"] > 2 * node_timeout / timedelta(microseconds=1)]
    if is_worked_on is False:
        live, silent = [], live
    at_work = [node for node in live if node not in silent]
    findings: list[DoctorFinding] = []
    if at_work or is_worked_on:
        names = ", ".join(node["name"] for node in at_work) or "a process that is just starting"
        lock = " and holds the work lock" if is_worked_on else ""
        verb = "work" if len(at_work) > 1 else "works"
        findings.append(_fine("nodes", f"{names} {verb}{lock}"))
    else:
        remedy = "start one: tidings serve"
        findings.append(_note("nodes", "no process is working", remedy))
    for node in [*silent, *(node for node in nodes if node["state"] == "dead")]:
        since = humanize(timedelta(microseconds=max(0, now - node["seen_at"])))
        what = f"{node['name']} has been silent for {since}"
        remedy = "nothing to do: another working process recovers its messages"
        findings.append(_note("nodes", what, remedy))
    return findings


def check_broker(nodes: Sequence[Row], dispatched: Collection[str]) -> list[DoctorFinding]:
    """Check whether dispatched channels can send; no finding if there are none."""
    if not dispatched:
        return []
    if not any(node["state"] == "live" and is_dispatcher(dict(node)) for node in nodes):
        what = f"no dispatcher is running for {', '.join(sorted(dispatched))}"
        return [_note("broker", what, "start one: tidings serve --role dispatcher")]
    remedy = "fix the connection; until then due messages wait, and nothing is lost"
    problems = [_wrong("broker", problem, remedy) for problem in node_problems(nodes)]
    used = {orjson.loads(node["info"]).get("broker_at") for node in nodes if node["state"] == "live"} - {None}
    at = f" ({', '.join(sorted(used))})" if used else ""
    return problems or [_fine("broker", f"every dispatcher reaches RabbitMQ{at}")]


def channel_status(queue: Row, now: int) -> ChannelStatus:
    """Return the status of one channel."""
    until = queue["blocked_until"] or 0
    if queue["paused"]:
        return ChannelStatus("paused", queue["pause_reason"])
    if queue["session_state"] not in (None, "connected"):
        return ChannelStatus(queue["session_state"].replace("_", " "), queue["session_reason"])
    if queue["opened_at"] is not None:
        if until > now:
            return ChannelStatus("breaker open", f"{queue['failures']} failures in a row", until)
        return ChannelStatus("half open", "waiting for one probe")
    if until > now:
        return ChannelStatus("waiting", queue["block_reason"], until)
    return ChannelStatus("ready")


def check_channels(queues: Iterable[Row], configured: Iterable[str], *, now: int) -> list[DoctorFinding]:
    """Check which channels cannot send."""
    known, findings, ready = set(configured), list[DoctorFinding](), list[str]()
    for queue in queues:
        name, status = queue["name"], channel_status(queue, now)
        until = f" until {iso(status.until)}" if status.until else ""
        if status.word == "paused":
            remedy = f"fix the cause, then run: tidings channels resume {name}"
            findings.append(_wrong("channels", f"{name} is paused: {status.reason}", remedy))
        elif status.word == "logged out":
            remedy = f"link it again: tidings channels qr {name}"
            findings.append(_wrong("channels", f"{name} is logged out: {status.reason}", remedy))
        elif status.word != "ready":
            remedy = "it retries automatically; if it does not recover, check the receiver"
            what = f"{name}: {status.word}{until} ({status.reason})"
            findings.append(_note("channels", what, remedy))
        elif name in known:
            ready.append(name)
    if ready:
        findings.insert(0, _fine("channels", f"ready: {', '.join(ready)}"))
    return findings


def check_session_storage(name: str, folder: Path | None, storage: SessionStorage | None, *, now: int) -> DoctorFinding:
    """Check what the server of a session persists: without it, a new container must be linked again."""
    how = "mount a volume there, back it up, and set session_dir; see: tidings docs whatsapp-session"
    if folder is not None:
        try:
            files = [entry.stat().st_mtime for entry in os.scandir(folder)]
        except OSError as error:
            remedy = "correct session_dir, or make the folder readable"
            return _wrong("sessions", f"{name}: {folder} cannot be read ({error.strerror})", remedy)
        if not files:
            return _wrong("sessions", f"{name}: {folder} is empty", "mount the server's volume there")
        age = humanize(timedelta(seconds=max(0, now // SECOND - round(max(files)))))
        return _fine("sessions", f"{name}: its session is in {folder}, last changed {age} ago")
    if storage is None:
        return _note("sessions", f"{name}: the server does not say where it keeps its session", how)
    if storage.is_database:
        return _fine("sessions", f"{name}: the server keeps its session in a database ({storage.place})")
    return _note("sessions", f"{name}: the server keeps its session in the folder {storage.place}", how)


def check_backlog(
    waiting: Mapping[str, ChannelBacklog], queues: Iterable[Row], *, is_worked_on: bool, now: int
) -> list[DoctorFinding]:
    """Check for overdue messages on channels that can send."""
    ready = {queue["name"] for queue in queues if channel_status(queue, now).word == "ready"}
    late = {
        name: found
        for name, found in waiting.items()
        if name in ready and now - found.since > OVERDUE_AFTER / timedelta(microseconds=1)
    }
    if not late:
        return [_fine("messages", "none is overdue")]
    remedy = "raise its concurrency, or start another process" if is_worked_on else "start one: tidings serve"
    findings: list[DoctorFinding] = []
    for name, found in late.items():
        least = "at least " if found.messages >= MAX_COUNTED else ""
        oldest = humanize(timedelta(seconds=(now - found.since) // SECOND))
        what = f"{least}{found.messages:,} overdue on {name}, the oldest by {oldest}"
        findings.append(_wrong("messages", what, remedy))
    return findings


def check_dead_letters(groups: Sequence[Row]) -> DoctorFinding:
    """Check for dead letters: they need a person's decision."""
    count = sum(group["count"] for group in groups)
    if not count:
        return _fine("dead letters", "none")
    uncertain = sum(group["count"] for group in groups if group["unknown"])
    what = f"{count:,} waiting for a person" + (f", {uncertain:,} of them uncertain" if uncertain else "")
    remedy = "see: tidings dead groups; then tidings dead retry, or tidings dead discard"
    return _wrong("dead letters", what, remedy)
