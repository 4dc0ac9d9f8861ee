"""Judging: what changes about the alerts, given what was seen and what is open. Pure.

A figure that could not be read says nothing: its alerts stay as they are. So do alerts of a rule that this
release does not know, as long as somebody else still sees them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ...model.time import HOUR, micros
from ...store.port import Row
from .rules import AlertRule


class Measurement(NamedTuple):
    """One figure of one subject ('' is the whole engine), and what to say where it is too high."""

    value: float
    problem: str
    subject: str = ""
    tenant: str = "default"


class NewAlert(NamedTuple):
    """An alert that is not there yet; raised at once where its rule waits for nothing."""

    rule: AlertRule
    reading: Measurement
    is_raised: bool


class OngoingAlert(NamedTuple):
    """An open alert whose condition still holds; raised now if it has held for long enough."""

    rule: AlertRule
    reading: Measurement
    row: Row
    is_raised: bool


class AlertChanges(NamedTuple):
    """What is to be written."""

    new: list[NewAlert]
    again: list[OngoingAlert]
    over: list[Row]  # were raised
    dropped: list[Row]  # were only pending


def decide_changes(
    rules: Iterable[AlertRule], figures: Mapping[str, Sequence[Measurement]], rows: Sequence[Row], now: int
) -> AlertChanges:
    """Compare what is seen with what is open."""
    verdict = AlertChanges([], [], [], [])
    known = {rule.name: rule for rule in rules}
    bad = {
        (rule.name, reading.subject): reading
        for rule in known.values()
        for reading in figures.get(rule.figure, ())
        if reading.value > rule.over
    }
    for row in rows:
        rule, reading = known.get(row["rule"]), bad.pop((row["rule"], row["subject"]), None)
        if rule is not None and reading is not None:
            held = now - row["first_at"] >= micros(rule.hold)
            verdict.again.append(OngoingAlert(rule, reading, row, row["state"] == "pending" and held))
        elif rule.figure in figures if rule is not None else now - row["last_at"] > HOUR:
            (verdict.over if row["state"] == "raised" else verdict.dropped).append(row)
    for (name, _), reading in bad.items():
        verdict.new.append(NewAlert(known[name], reading, not known[name].hold))
    return verdict
