"""What a drill is to do: which messages when, whom to kill when. Pure: one seed, one plan."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from typing import NamedTuple

from ..config import Settings

CHANNEL = "drill"
SETTINGS_FILE = "tidings.toml"  # in the drill's own folder

ATTEMPT_DEADLINE = 5.0  # seconds for one attempt
RECOVERY_GRACE = 5.0  # seconds after the lease within which a dead worker's messages should have gone out
DELAY = (0.0, 0.25)  # seconds that the receiver takes to answer, so that many are on their way at any moment
_AHEAD = 1.0  # seconds that a message is accepted before it is due, at the most
_EVERY = 4  # one message in so many is accepted ahead of its time, one kill in so many is the producer's


@dataclass(frozen=True, slots=True)
class DrillOptions:
    """How hard the drill is."""

    messages: int
    kills: int
    workers: int
    seconds: float
    on_unknown: str
    seed: int
    delay: tuple[float, float] = DELAY  # how long the receiver takes to answer
    aimed: bool = True  # at a worker that has something in hand; else at any


class PlannedMessage(NamedTuple):
    """One message: when it is to be accepted and when it is due, in seconds from the beginning."""

    ref: str
    accept: float
    due: float


class PlannedKill(NamedTuple):
    """One kill, when so many messages have been accepted."""

    after: int
    is_producer: bool


def plan_messages(messages: int, seconds: float, seed: int) -> list[PlannedMessage]:
    """Messages spread evenly; some are accepted a little before they are due."""
    chance = random.Random(seed)
    made = []
    for number in range(messages):
        accept = seconds * number / messages
        ahead = chance.uniform(0, _AHEAD) if number % _EVERY == 0 else 0.0
        made.append(PlannedMessage(f"drill-{number:06}", accept, accept + ahead))
    return made


def plan_kills(kills: int, messages: int, chance: random.Random) -> list[PlannedKill]:
    """One at a random moment of each part of the way; every fourth hits the producer."""
    return [
        PlannedKill(int(messages * (i + chance.uniform(0.2, 0.9)) / kills), i % _EVERY == _EVERY - 1)
        for i in range(kills)
    ]


def settings_file(settings: Settings, database: str, on_unknown: str) -> str:
    """What a drill's processes are set to: the user's own lease, beat and slots, and one channel."""
    return f"""\
database = {json.dumps(database)}
concurrency = {settings.concurrency}
node_timeout = {settings.node_timeout.total_seconds()}
heartbeat_interval = {settings.heartbeat_interval.total_seconds()}
poll_interval = {settings.poll_interval.total_seconds()}
quarantine_after = 100  # it is the drill that kills here, not a message
sandbox = false

[channels.{CHANNEL}]
kind = "sandbox"
on_unknown = "{on_unknown}"
deadline = {ATTEMPT_DEADLINE}
policy = "{CHANNEL}"

[policies.{CHANNEL}]
backoff = "fixed"
initial = "100ms"
max_attempts = 1000
"""
