"""Diagnosis: what a doctor would say of this engine, each finding with its remedy.

The judgements are functions of values; `examine` only gathers. It changes nothing: a database that is not
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
from .kernel.clock import Drift, judge_drift
from .kernel.nodes import is_dispatcher
from .model.durations import spell
from .model.errors import TidingsError
from .model.time import SECOND, iso
from .outbound.dead import DeadLetters
from .outbound.health import troubles

LATE = timedelta(seconds=60)  # later than this counts as late
ROOM_NOTED = 1 << 30
ROOM_NEEDED = 64 << 20
COUNTED = 1000  # of one channel and priority; beyond, 'at least'

Row = Mapping[str, Any]


class Grade(StrEnum):
    """How much a finding matters."""

    FINE = "fine"
    NOTE = "note"
    WRONG = "wrong"


class Finding(NamedTuple):
    """One thing that was looked at."""

    check: str
    grade: Grade
    what: str
    remedy: str = ""


class Standing(NamedTuple):
    """Whether a channel sends; if not, why, and until when where that is known."""

    word: str  # ready, paused, waiting, breaker open, half open
    reason: str | None = None
    until: int | None = None


class Waiting(NamedTuple):
    """What is due on one channel: how many, as far as counted, and since when."""

    messages: int
    since: int


async def examine(settings: Settings) -> list[Finding]:
    """Look at everything; what cannot be looked at any more because of a finding is left out."""
    findings = [on_settings(settings), *_on_place(settings)]
    path = settings.database_path
    is_missing = path is not None and not path.exists()
    if is_missing or any(finding.grade is Grade.WRONG for finding in findings[1:]):
        return [*findings, *on_door(settings, has_admin=False)] if is_missing else findings
    try:
        app = build(settings)
    except TidingsError as error:
        return [*findings, Finding("settings", Grade.WRONG, error.problem, error.remedy)]
    try:
        return findings + await _on_database(app)
    finally:
        await app.close()


async def _on_database(app: App) -> list[Finding]:
    where = mask_url(app.settings.database)
    try:
        await app.store.open()
        await app.cipher.check()
    except TidingsError as error:
        return [Finding("database", Grade.WRONG, error.problem, error.remedy)]
    good = Finding("database", Grade.FINE, f"{where} answers, is durable, and has the schema of this program")
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
        *(finding for row in replication for finding in on_standbys(row)),
        *on_door(app.settings, has_admin=await app.access.door.has_admin()),
        on_clock(app.clock.drift(), seen=(await app.store.read("clock_high"))[0]["high"], now=now),
        *on_clock_back((await app.store.read("clock_affected", at=now))[0], now=now),
        *on_nodes(nodes, is_worked_on=is_worked_on, lease=app.settings.lease, now=now),
        *on_broker(nodes, app.settings.dispatched),
        *on_channels(queues, app.settings.channels, now=now),
        *on_waiting(waiting, queues, is_worked_on=_is_worked_on(is_worked_on, nodes), now=now),
        on_dead(await DeadLetters(app.store).groups()),
    ]


async def _waiting(app: App, queue: str) -> Waiting | None:
    """What is due on one channel, by the index that claims use."""
    count, since = 0, 0
    for priority in range(10):
        due = await app.store.read(
            "overdue", queue=queue, priority=priority, from_due=0, after=0, limit=COUNTED
        )
        if due:
            count, since = count + len(due), min(since or due[0]["due_at"], due[0]["due_at"])
    return Waiting(count, since) if count else None


def _is_worked_on(lock: bool | None, nodes: Sequence[Row]) -> bool:
    return any(node["state"] == "live" for node in nodes) if lock is None else lock


def _on_place(settings: Settings) -> list[Finding]:
    """The folder and the disk under a SQLite file."""
    path = settings.database_path
    if path is None:
        return []
    folder = path.parent
    if not path.exists():
        can_make = os.access(_nearest(folder), os.W_OK | os.X_OK)
        if not can_make:
            return [on_folder(folder, writable=False)]
        remedy = "tidings serve makes it"
        return [Finding("database", Grade.NOTE, f"there is no database {path} yet", remedy)]
    writable = os.access(folder, os.W_OK | os.X_OK) and os.access(path, os.W_OK)
    return [on_folder(folder, writable=writable), on_disk(folder, shutil.disk_usage(folder).free)]


def _nearest(folder: Path) -> Path:
    """The folder itself, or the first above it that is there."""
    return next(place for place in (folder, *folder.absolute().parents) if place.exists())


# -- judgements, from values alone


def on_settings(settings: Settings) -> Finding:
    """Whether these settings may be served."""
    try:
        settings.check()
    except TidingsError as error:
        return Finding("settings", Grade.WRONG, error.problem, error.remedy)
    changed = ", ".join(sorted(settings.origins)) or "nothing"
    return Finding("settings", Grade.FINE, f"understood; set by you: {changed}")


def on_door(settings: Settings, *, has_admin: bool) -> list[Finding]:
    """Whether it may listen where the settings say; nothing to tell where it may."""
    try:
        settings.refuse_open_door(has_admin=has_admin)
    except TidingsError as error:
        return [Finding("access", Grade.WRONG, error.problem, error.remedy)]
    return []


def on_folder(folder: Path, *, writable: bool) -> Finding:
    """A database needs its folder: the log and the locks lie beside the file."""
    if writable:
        return Finding("folder", Grade.FINE, f"{folder} can be written")
    remedy = "check the owner, the mode and the mount of its folder, or choose another --database"
    return Finding("folder", Grade.WRONG, f"{folder} cannot be written", remedy)


def on_disk(folder: Path, free: int) -> Finding:
    """Room for what is to come."""
    room = f"{free / (1 << 30):,.1f} GiB" if free >= 1 << 30 else f"{free / (1 << 20):,.0f} MiB"
    if free < ROOM_NEEDED:
        remedy = "free some space: soon nothing can be accepted"
        return Finding("disk", Grade.WRONG, f"only {room} free under {folder}", remedy)
    if free < ROOM_NOTED:
        return Finding("disk", Grade.NOTE, f"{room} free under {folder}", "think of more space")
    return Finding("disk", Grade.FINE, f"{room} free under {folder}")


def on_standbys(row: Row) -> list[Finding]:
    """Whether an acknowledged message survives a failover to a standby; nothing where there is none."""
    if not row["standbys"]:
        return []
    count, how = f"standbys: {row['standbys']}", "see docs/how-to/postgresql.md#failover"
    if row["names"] and row["commits"] != "local" and row["synchronous"]:
        return [Finding("standby", Grade.FINE, f"{count}, synchronous: {row['synchronous']}")]
    if row["names"] and row["commits"] != "local" and row["hidden"]:
        what = f"{count}; this role may not see whether one of them is synchronous"
        return [Finding("standby", Grade.NOTE, what, "GRANT pg_monitor TO it, then look again")]
    what = f"{count}, all asynchronous: a failover may lose the newest acknowledged messages"
    return [Finding("standby", Grade.NOTE, what, how)]


def on_clock(drift: timedelta, *, seen: int, now: int) -> Finding:
    """The machine's clock against the database's, or against the last time the database has seen."""
    behind = timedelta(microseconds=max(0, seen - now))
    worst = max((drift, behind), key=abs)
    apart = f"this machine's clock and the database's are {spell(abs(worst))} apart"
    if worst is behind and behind:
        apart = f"the clock was set back: it is {spell(behind)} behind the latest time in the database"
    match judge_drift(worst):
        case Drift.UNHEALTHY:
            return Finding("clock", Grade.WRONG, apart, "set the clocks by NTP (timedatectl set-ntp true)")
        case Drift.NOTED:
            return Finding("clock", Grade.NOTE, apart, "set the clocks by NTP (timedatectl set-ntp true)")
        case Drift.FINE:
            return Finding("clock", Grade.FINE, f"agrees with the database's (to {spell(abs(worst))})")


def on_clock_back(found: Row, *, now: int) -> list[Finding]:
    """What keeps the times that it got while the clock was ahead; nothing to tell where that was not so."""
    if not found["messages"] and not found["schedules"]:
        return []
    ahead = spell(timedelta(seconds=(max(found["accepted_at"], found["ran_at"]) - now) // SECOND))
    kept = (
        f"{found['messages']:,} messages and {found['schedules']:,} schedules wait for times set before that"
    )
    remedy = (
        "a working process sends at once what was due at once; change another: tidings messages reschedule"
    )
    return [Finding("clock", Grade.NOTE, f"the clock was set back by {ahead}: {kept}", remedy)]


def on_nodes(nodes: Sequence[Row], *, is_worked_on: bool | None, lease: timedelta, now: int) -> list[Finding]:
    """Who works. `is_worked_on` tells of a file's work lock; None where any number may work."""
    live = [node for node in nodes if node["state"] == "live"]
    silent = [node for node in live if now - node["seen_at"] > 2 * lease / timedelta(microseconds=1)]
    if is_worked_on is False:
        live, silent = [], live
    at_work = [node for node in live if node not in silent]
    findings: list[Finding] = []
    if at_work or is_worked_on:
        names = ", ".join(node["name"] for node in at_work) or "a process that is just starting"
        lock = " and holds the work lock" if is_worked_on else ""
        verb = "work" if len(at_work) > 1 else "works"
        findings.append(Finding("nodes", Grade.FINE, f"{names} {verb}{lock}"))
    else:
        remedy = "start one: tidings serve"
        findings.append(Finding("nodes", Grade.NOTE, "no process is working", remedy))
    for node in [*silent, *(node for node in nodes if node["state"] == "dead")]:
        since = spell(timedelta(microseconds=max(0, now - node["seen_at"])))
        what = f"{node['name']} has been silent for {since}"
        remedy = "nothing to do: the next process that works takes over what it held"
        findings.append(Finding("nodes", Grade.NOTE, what, remedy))
    return findings


def on_broker(nodes: Sequence[Row], dispatched: Collection[str]) -> list[Finding]:
    """Whether what goes by RabbitMQ can go; nothing where nothing does."""
    if not dispatched:
        return []
    if not any(node["state"] == "live" and is_dispatcher(dict(node)) for node in nodes):
        what = f"no dispatcher runs, and {', '.join(sorted(dispatched))} goes by RabbitMQ"
        return [Finding("broker", Grade.NOTE, what, "start one: tidings serve --role dispatcher")]
    remedy = "mend that; until then what is due waits, and nothing is lost"
    said = [Finding("broker", Grade.WRONG, trouble, remedy) for trouble in troubles(nodes)]
    used = {orjson.loads(node["info"]).get("broker_at") for node in nodes if node["state"] == "live"} - {None}
    at = f" ({', '.join(sorted(used))})" if used else ""
    return said or [Finding("broker", Grade.FINE, f"every dispatcher reaches RabbitMQ{at}")]


def standing(queue: Row, now: int) -> Standing:
    """How one channel stands."""
    until = queue["parked_until"] or 0
    if queue["paused"]:
        return Standing("paused", queue["pause_reason"])
    if queue["link"] not in (None, "connected"):
        return Standing(queue["link"].replace("_", " "), queue["link_why"])
    if queue["opened_at"] is not None:
        if until > now:
            return Standing("breaker open", f"{queue['failures']} failures in a row", until)
        return Standing("half open", "one probe decides")
    if until > now:
        return Standing("waiting", queue["park_reason"], until)
    return Standing("ready")


def on_channels(queues: Iterable[Row], configured: Iterable[str], *, now: int) -> list[Finding]:
    """What keeps whole channels from sending."""
    known, findings, ready = set(configured), list[Finding](), list[str]()
    for queue in queues:
        name, stands = queue["name"], standing(queue, now)
        until = f" until {iso(stands.until)}" if stands.until else ""
        if stands.word == "paused":
            remedy = f"mend the cause, then: tidings channels resume {name}"
            findings.append(Finding("channels", Grade.WRONG, f"{name} is paused: {stands.reason}", remedy))
        elif stands.word == "logged out":
            remedy = f"link it again: tidings channels qr {name}"
            findings.append(
                Finding("channels", Grade.WRONG, f"{name} is logged out: {stands.reason}", remedy)
            )
        elif stands.word != "ready":
            remedy = "it tries again by itself; if it does not recover, look at the other side"
            what = f"{name}: {stands.word}{until} ({stands.reason})"
            findings.append(Finding("channels", Grade.NOTE, what, remedy))
        elif name in known:
            ready.append(name)
    if ready:
        findings.insert(0, Finding("channels", Grade.FINE, f"ready: {', '.join(ready)}"))
    return findings


def on_waiting(
    waiting: Mapping[str, Waiting], queues: Iterable[Row], *, is_worked_on: bool, now: int
) -> list[Finding]:
    """Messages that should have gone out by now, on channels that nothing else keeps back."""
    ready = {queue["name"] for queue in queues if standing(queue, now).word == "ready"}
    late = {
        name: found
        for name, found in waiting.items()
        if name in ready and now - found.since > LATE / timedelta(microseconds=1)
    }
    if not late:
        return [Finding("messages", Grade.FINE, "none is overdue")]
    remedy = "give it more slots, or start another process" if is_worked_on else "start one: tidings serve"
    findings: list[Finding] = []
    for name, found in late.items():
        least = "at least " if found.messages >= COUNTED else ""
        oldest = spell(timedelta(seconds=(now - found.since) // SECOND))
        what = f"{least}{found.messages:,} overdue on {name}, the oldest by {oldest}"
        findings.append(Finding("messages", Grade.WRONG, what, remedy))
    return findings


def on_dead(groups: Sequence[Row]) -> Finding:
    """Dead letters wait for a person, so they are wrong until one has decided."""
    count = sum(group["count"] for group in groups)
    if not count:
        return Finding("dead letters", Grade.FINE, "none")
    doubt = sum(group["count"] for group in groups if group["unknown"])
    what = f"{count:,} waiting for a person" + (f", {doubt:,} of them in doubt" if doubt else "")
    remedy = "see: tidings dead groups; then tidings dead retry, or tidings dead discard"
    return Finding("dead letters", Grade.WRONG, what, remedy)
