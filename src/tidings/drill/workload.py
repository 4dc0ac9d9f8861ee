"""Which messages to send and which processes to kill, and when. Pure: one seed gives one plan."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from typing import NamedTuple

from ..config import Settings

CHANNEL = "drill"
SETTINGS_FILE = "tidings.toml"  # in the drill's folder

ATTEMPT_DEADLINE = 5.0  # seconds for one attempt
RECOVERY_GRACE = 5.0  # seconds after the lease within which a dead worker's messages should be sent
DELAY = (0.0, 0.25)  # seconds until the receiver answers, so that many messages are in flight
_AHEAD = 1.0  # seconds that a message is accepted before it is due at most
_EVERY = 4  # one message in 4 is accepted early, one kill in 4 hits the producer


@dataclass(frozen=True, slots=True)
class DrillOptions:
    messages: int
    kills: int
    workers: int
    seconds: float
    on_unknown: str
    seed: int
    delay: tuple[float, float] = DELAY  # seconds until the receiver answers
    aimed: bool = True  # kill workers with messages in flight; else any


class PlannedMessage(NamedTuple):
    """One message: when it is accepted and when it is due, in seconds from the start."""

    ref: str
    accept: float
    due: float


class PlannedKill(NamedTuple):
    """One kill, after a number of accepted messages."""

    after: int
    is_producer: bool


def plan_messages(messages: int, seconds: float, seed: int) -> list[PlannedMessage]:
    """Return messages spread evenly; some are accepted shortly before they are due."""
    chance = random.Random(seed)
    made = []
    for number in range(messages):
        accept = seconds * number / messages
        ahead = chance.uniform(0, _AHEAD) if number % _EVERY == 0 else 0.0
        made.append(PlannedMessage(f"drill-{number:06}", accept, accept + ahead))
    return made


def plan_kills(kills: int, messages: int, chance: random.Random) -> list[PlannedKill]:
    """Return one kill at a random moment of each part of the drill; every fourth hits the producer."""
    return [
        PlannedKill(int(messages * (i + chance.uniform(0.2, 0.9)) / kills), i % _EVERY == _EVERY - 1)
        for i in range(kills)
    ]


def settings_file(settings: Settings, database: str, on_unknown: str) -> str:
    """Return the settings of a drill's processes: the user's lease, heartbeat and slots, and one channel."""
    return f"""\
database = {json.dumps(database)}
concurrency = {settings.concurrency}
node_timeout = {settings.node_timeout.total_seconds()}
heartbeat_interval = {settings.heartbeat_interval.total_seconds()}
poll_interval = {settings.poll_interval.total_seconds()}
quarantine_after = 100  # the drill kills here, not a message
sandbox = false

[channels.{CHANNEL}]
kind = "sandbox"
on_unknown = "{on_unknown}"
deadline = {ATTEMPT_DEADLINE}
policy = "{CHANNEL}"

[policies.{CHANNEL}]
backoff = "fixed"
initial_delay = "100ms"
max_attempts = 1000
"""
