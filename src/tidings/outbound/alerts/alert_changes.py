"""Decide which alerts are new, ongoing or resolved, from measurements and open alerts. Pure.

Alerts whose measurement could not be read stay unchanged, and so do alerts of a rule that this release does
not know while another process still updates them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ...model.time import HOUR, micros
from ...store.port import Row
from .rules import AlertRule


class Measurement(NamedTuple):
    """The value of one subject ('' is the whole engine), and the problem text if it is too high."""

    value: float
    problem: str
    subject: str = ""
    tenant: str = "default"


class SeenAlert(NamedTuple):
    """A rule's condition; `is_raised` if it has just lasted for the hold time."""

    rule: AlertRule
    reading: Measurement
    row: Row  # of the open alert; empty for a new one
    is_raised: bool


class AlertChanges(NamedTuple):
    """The changes to write."""

    new: list[SeenAlert]
    again: list[SeenAlert]
    over: list[Row]  # raised, now resolved
    dropped: list[Row]  # pending, never raised


def decide_changes(
    rules: Iterable[AlertRule], figures: Mapping[str, Sequence[Measurement]], rows: Sequence[Row], now: int
) -> AlertChanges:
    """Compare the measurements with the open alerts."""
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
            verdict.again.append(SeenAlert(rule, reading, row, row["state"] == "pending" and held))
        elif rule.figure in figures if rule is not None else now - row["last_at"] > HOUR:
            (verdict.over if row["state"] == "raised" else verdict.dropped).append(row)
    for (name, _), reading in bad.items():
        verdict.new.append(SeenAlert(known[name], reading, {}, not known[name].hold))
    return verdict
