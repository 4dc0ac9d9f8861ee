"""Diagnosis: what a doctor would say of this engine, each finding with its remedy.

The judgements are functions of values; `run_checks` only gathers. It changes nothing: a database that is not
there yet is not made, and a schema that is old is not touched. Wrong is what a person must mend; worth
knowing is what mends itself, or may become wrong.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from .app import App, build
from .config import Settings, mask_url
from .kernel.clock import DriftLevel, classify_drift
from .kernel.heartbeats import is_dispatcher
from .model.durations import humanize
from .model.errors import TidingsError
from .model.time import SECOND, iso
from .outbound.dead_letters import DeadLetters
from .outbound.health import node_problems

OVERDUE_AFTER = timedelta(seconds=60)  # later than this counts as late
LOW_DISK = 1 << 30
MIN_DISK = 64 << 20
MAX_COUNTED = 1000  # of one channel and priority; beyond, 'at least'

Row = Mapping[str, Any]


class FindingSeverity(StrEnum):
    """How much a finding matters."""

    FINE = "fine"
    NOTE = "note"
    WRONG = "wrong"


class DoctorFinding(NamedTuple):
    """One thing that was looked at."""

    check: str
    grade: FindingSeverity
    what: str
    remedy: str = ""


class ChannelStatus(NamedTuple):
    """Whether a channel sends; if not, why, and until when where that is known."""

    word: str  # ready, paused, waiting, breaker open, half open
    reason: str | None = None
    until: int | None = None


class ChannelBacklog(NamedTuple):
    """What is due on one channel: how many, as far as counted, and since when."""

    messages: int
    since: int


async def run_checks(settings: Settings) -> list[DoctorFinding]:
    """Look at everything; what cannot be looked at any more because of a finding is left out."""
    findings = [check_settings(settings), *_on_place(settings)]
    path = settings.database_path
    is_missing = path is not None and not path.exists()
    if is_missing or any(finding.grade is FindingSeverity.WRONG for finding in findings[1:]):
        return [*findings, *check_listen_address(settings, has_admin=False)] if is_missing else findings
    try:
        app = build(settings)
    except TidingsError as error:
        return [*findings, DoctorFinding("settings", FindingSeverity.WRONG, error.problem, error.remedy)]
    try:
        return findings + await _on_database(app)
    finally:
        await app.close()


async def _on_database(app: App) -> list[DoctorFinding]:
    where = mask_url(app.settings.database)
    try:
        await app.store.open()
        await app.cipher.check()
    except TidingsError as error:
        return [DoctorFinding("database", FindingSeverity.WRONG, error.problem, error.remedy)]
    good = DoctorFinding(
        "database", FindingSeverity.FINE, f"{where} answers, is durable, and has the schema of this program"
    )
    asked = app.clock.monotonic()
    now: int = (await app.store.read("now"))[0]["now"]
    app.clock.learn(now, asked, app.clock.monotonic())
    nodes = await app.store.read("node_list")
    queues = await app.store.read("queue_list")
    waiting = {queue["name"]: found for queue in queues if (found := await _waiting(app, queue["name"]))}
    replication = [] if app.store.sole_worker else await app.store.read("replication")
    is_worked_on = not app.store.may_work() if app.store.sole_worker else None
    return [
        good,
        *(finding for row in replication for finding in check_standbys(row)),
        *check_listen_address(app.settings, has_admin=await app.access.authenticator.has_admin()),
        check_clock(app.clock.drift(), seen=(await app.store.read("clock_high"))[0]["high"], now=now),
        *check_clock_change((await app.store.read("clock_affected", at=now))[0], now=now),
        *check_nodes(nodes, is_worked_on=is_worked_on, lease=app.settings.node_timeout, now=now),
        *check_broker(nodes, app.settings.dispatched),
        *check_channels(queues, app.settings.channels, now=now),
        *check_backlog(waiting, queues, is_worked_on=_is_worked_on(is_worked_on, nodes), now=now),
        check_dead_letters(await DeadLetters(app.store).groups()),
    ]


async def _waiting(app: App, queue: str) -> ChannelBacklog | None:
    """What is due on one channel, by the index that claims use."""
    count, since = 0, 0
    for priority in range(10):
        due = await app.store.read(
            "overdue", queue=queue, priority=priority, from_due=0, after=0, limit=MAX_COUNTED
        )
        if due:
            count, since = count + len(due), min(since or due[0]["due_at"], due[0]["due_at"])
    return ChannelBacklog(count, since) if count else None


def _is_worked_on(lock: bool | None, nodes: Sequence[Row]) -> bool:
    return any(node["state"] == "live" for node in nodes) if lock is None else lock


def _on_place(settings: Settings) -> list[DoctorFinding]:
    """The folder and the disk under a SQLite file."""
    path = settings.database_path
    if path is None:
        return []
    folder = path.parent
    if not path.exists():
        can_make = os.access(_nearest(folder), os.W_OK | os.X_OK)
        if not can_make:
            return [check_folder(folder, writable=False)]
        remedy = "tidings serve makes it"
        return [DoctorFinding("database", FindingSeverity.NOTE, f"there is no database {path} yet", remedy)]
    writable = os.access(folder, os.W_OK | os.X_OK) and os.access(path, os.W_OK)
    return [check_folder(folder, writable=writable), check_disk(folder, shutil.disk_usage(folder).free)]


def _nearest(folder: Path) -> Path:
    """The folder itself, or the first above it that is there."""
    return next(place for place in (folder, *folder.absolute().parents) if place.exists())


# -- judgements, from values alone


def check_settings(settings: Settings) -> DoctorFinding:
    """Whether these settings may be served."""
    try:
        settings.check()
    except TidingsError as error:
        return DoctorFinding("settings", FindingSeverity.WRONG, error.problem, error.remedy)
    changed = ", ".join(sorted(settings.origins)) or "nothing"
    return DoctorFinding("settings", FindingSeverity.FINE, f"understood; set by you: {changed}")


def check_listen_address(settings: Settings, *, has_admin: bool) -> list[DoctorFinding]:
    """Whether it may listen where the settings say; nothing to tell where it may."""
    try:
        settings.require_key_unless_local(has_admin=has_admin)
    except TidingsError as error:
        return [DoctorFinding("access", FindingSeverity.WRONG, error.problem, error.remedy)]
    return []


def check_folder(folder: Path, *, writable: bool) -> DoctorFinding:
    """A database needs its folder: the log and the locks lie beside the file."""
    if writable:
        return DoctorFinding("folder", FindingSeverity.FINE, f"{folder} can be written")
    remedy = "check the owner, the mode and the mount of its folder, or choose another --database"
    return DoctorFinding("folder", FindingSeverity.WRONG, f"{folder} cannot be written", remedy)


def check_disk(folder: Path, free: int) -> DoctorFinding:
    """Room for what is to come."""
    room = f"{free / (1 << 30):,.1f} GiB" if free >= 1 << 30 else f"{free / (1 << 20):,.0f} MiB"
    if free < MIN_DISK:
        remedy = "free some space: soon nothing can be accepted"
        return DoctorFinding("disk", FindingSeverity.WRONG, f"only {room} free under {folder}", remedy)
    if free < LOW_DISK:
        return DoctorFinding(
            "disk", FindingSeverity.NOTE, f"{room} free under {folder}", "think of more space"
        )
    return DoctorFinding("disk", FindingSeverity.FINE, f"{room} free under {folder}")


def check_standbys(row: Row) -> list[DoctorFinding]:
    """Whether an acknowledged message survives a failover to a standby; nothing where there is none."""
    if not row["standbys"]:
        return []
    count, how = f"standbys: {row['standbys']}", "see docs/how-to/postgresql.md#failover"
    if row["names"] and row["commits"] != "local" and row["synchronous"]:
        return [DoctorFinding("standby", FindingSeverity.FINE, f"{count}, synchronous: {row['synchronous']}")]
    if row["names"] and row["commits"] != "local" and row["hidden"]:
        what = f"{count}; this role may not see whether one of them is synchronous"
        return [
            DoctorFinding("standby", FindingSeverity.NOTE, what, "GRANT pg_monitor TO it, then look again")
        ]
    what = f"{count}, all asynchronous: a failover may lose the newest acknowledged messages"
    return [DoctorFinding("standby", FindingSeverity.NOTE, what, how)]


def check_clock(drift: timedelta, *, seen: int, now: int) -> DoctorFinding:
    """The machine's clock against the database's, or against the last time the database has seen."""
    behind = timedelta(microseconds=max(0, seen - now))
    worst = max((drift, behind), key=abs)
    apart = f"this machine's clock and the database's are {humanize(abs(worst))} apart"
    if worst is behind and behind:
        apart = f"the clock was set back: it is {humanize(behind)} behind the latest time in the database"
    match classify_drift(worst):
        case DriftLevel.UNHEALTHY:
            return DoctorFinding(
                "clock", FindingSeverity.WRONG, apart, "set the clocks by NTP (timedatectl set-ntp true)"
            )
        case DriftLevel.NOTED:
            return DoctorFinding(
                "clock", FindingSeverity.NOTE, apart, "set the clocks by NTP (timedatectl set-ntp true)"
            )
        case DriftLevel.FINE:
            return DoctorFinding(
                "clock", FindingSeverity.FINE, f"agrees with the database's (to {humanize(abs(worst))})"
            )


def check_clock_change(found: Row, *, now: int) -> list[DoctorFinding]:
    """What keeps the times that it got while the clock was ahead; nothing to tell where that was not so."""
    if not found["messages"] and not found["schedules"]:
        return []
    ahead = humanize(timedelta(seconds=(max(found["accepted_at"], found["ran_at"]) - now) // SECOND))
    kept = (
        f"{found['messages']:,} messages and {found['schedules']:,} schedules wait for times set before that"
    )
    remedy = (
        "a working process sends at once what was due at once; change another: tidings messages reschedule"
    )
    return [
        DoctorFinding("clock", FindingSeverity.NOTE, f"the clock was set back by {ahead}: {kept}", remedy)
    ]


def check_nodes(
    nodes: Sequence[Row], *, is_worked_on: bool | None, lease: timedelta, now: int
) -> list[DoctorFinding]:
    """Who works. `is_worked_on` tells of a file's work lock; None where any number may work."""
    live = [node for node in nodes if node["state"] == "live"]
    silent = [node for node in live if now - node["seen_at"] > 2 * lease / timedelta(microseconds=1)]
    if is_worked_on is False:
        live, silent = [], live
    at_work = [node for node in live if node not in silent]
    findings: list[DoctorFinding] = []
    if at_work or is_worked_on:
        names = ", ".join(node["name"] for node in at_work) or "a process that is just starting"
        lock = " and holds the work lock" if is_worked_on else ""
        verb = "work" if len(at_work) > 1 else "works"
        findings.append(DoctorFinding("nodes", FindingSeverity.FINE, f"{names} {verb}{lock}"))
    else:
        remedy = "start one: tidings serve"
        findings.append(DoctorFinding("nodes", FindingSeverity.NOTE, "no process is working", remedy))
    for node in [*silent, *(node for node in nodes if node["state"] == "dead")]:
        since = humanize(timedelta(microseconds=max(0, now - node["seen_at"])))
        what = f"{node['name']} has been silent for {since}"
        remedy = "nothing to do: the next process that works takes over what it held"
        findings.append(DoctorFinding("nodes", FindingSeverity.NOTE, what, remedy))
    return findings


def check_broker(nodes: Sequence[Row], dispatched: Collection[str]) -> list[DoctorFinding]:
    """Whether what goes by RabbitMQ can go; nothing where nothing does."""
    if not dispatched:
        return []
    if not any(node["state"] == "live" and is_dispatcher(dict(node)) for node in nodes):
        what = f"no dispatcher runs, and {', '.join(sorted(dispatched))} goes by RabbitMQ"
        return [
            DoctorFinding("broker", FindingSeverity.NOTE, what, "start one: tidings serve --role dispatcher")
        ]
    remedy = "mend that; until then what is due waits, and nothing is lost"
    said = [
        DoctorFinding("broker", FindingSeverity.WRONG, trouble, remedy) for trouble in node_problems(nodes)
    ]
    used = {orjson.loads(node["info"]).get("broker_at") for node in nodes if node["state"] == "live"} - {None}
    at = f" ({', '.join(sorted(used))})" if used else ""
    return said or [DoctorFinding("broker", FindingSeverity.FINE, f"every dispatcher reaches RabbitMQ{at}")]


def channel_status(queue: Row, now: int) -> ChannelStatus:
    """How one channel stands."""
    until = queue["blocked_until"] or 0
    if queue["paused"]:
        return ChannelStatus("paused", queue["pause_reason"])
    if queue["session_state"] not in (None, "connected"):
        return ChannelStatus(queue["session_state"].replace("_", " "), queue["session_reason"])
    if queue["opened_at"] is not None:
        if until > now:
            return ChannelStatus("breaker open", f"{queue['failures']} failures in a row", until)
        return ChannelStatus("half open", "one probe decides")
    if until > now:
        return ChannelStatus("waiting", queue["block_reason"], until)
    return ChannelStatus("ready")


def check_channels(queues: Iterable[Row], configured: Iterable[str], *, now: int) -> list[DoctorFinding]:
    """What keeps whole channels from sending."""
    known, findings, ready = set(configured), list[DoctorFinding](), list[str]()
    for queue in queues:
        name, stands = queue["name"], channel_status(queue, now)
        until = f" until {iso(stands.until)}" if stands.until else ""
        if stands.word == "paused":
            remedy = f"mend the cause, then: tidings channels resume {name}"
            findings.append(
                DoctorFinding("channels", FindingSeverity.WRONG, f"{name} is paused: {stands.reason}", remedy)
            )
        elif stands.word == "logged out":
            remedy = f"link it again: tidings channels qr {name}"
            findings.append(
                DoctorFinding(
                    "channels", FindingSeverity.WRONG, f"{name} is logged out: {stands.reason}", remedy
                )
            )
        elif stands.word != "ready":
            remedy = "it tries again by itself; if it does not recover, look at the other side"
            what = f"{name}: {stands.word}{until} ({stands.reason})"
            findings.append(DoctorFinding("channels", FindingSeverity.NOTE, what, remedy))
        elif name in known:
            ready.append(name)
    if ready:
        findings.insert(0, DoctorFinding("channels", FindingSeverity.FINE, f"ready: {', '.join(ready)}"))
    return findings


def check_backlog(
    waiting: Mapping[str, ChannelBacklog], queues: Iterable[Row], *, is_worked_on: bool, now: int
) -> list[DoctorFinding]:
    """Messages that should have gone out by now, on channels that nothing else keeps back."""
    ready = {queue["name"] for queue in queues if channel_status(queue, now).word == "ready"}
    late = {
        name: found
        for name, found in waiting.items()
        if name in ready and now - found.since > OVERDUE_AFTER / timedelta(microseconds=1)
    }
    if not late:
        return [DoctorFinding("messages", FindingSeverity.FINE, "none is overdue")]
    remedy = "give it more slots, or start another process" if is_worked_on else "start one: tidings serve"
    findings: list[DoctorFinding] = []
    for name, found in late.items():
        least = "at least " if found.messages >= MAX_COUNTED else ""
        oldest = humanize(timedelta(seconds=(now - found.since) // SECOND))
        what = f"{least}{found.messages:,} overdue on {name}, the oldest by {oldest}"
        findings.append(DoctorFinding("messages", FindingSeverity.WRONG, what, remedy))
    return findings


def check_dead_letters(groups: Sequence[Row]) -> DoctorFinding:
    """Dead letters wait for a person, so they are wrong until one has decided."""
    count = sum(group["count"] for group in groups)
    if not count:
        return DoctorFinding("dead letters", FindingSeverity.FINE, "none")
    doubt = sum(group["count"] for group in groups if group["unknown"])
    what = f"{count:,} waiting for a person" + (f", {doubt:,} of them in doubt" if doubt else "")
    remedy = "see: tidings dead groups; then tidings dead retry, or tidings dead discard"
    return DoctorFinding("dead letters", FindingSeverity.WRONG, what, remedy)
