"""Words for people: states, moves and numbers as the pages say them. Pure."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from markupsafe import Markup, escape

from ..model import durations
from ..outbound.overview import MAX_COUNTED

Shown = dict[str, Any]

_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
_DAY = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)")

TONES = {
    "waiting": "calm",
    "retrying": "warn",
    "processing": "busy",
    "sent": "good",
    "failed": "bad",
    "unknown": "warn",
    "cancelled": "still",
    "expired": "still",
    "skipped": "still",
}
STAGES = {
    "loading": "calm",
    "new": "calm",
    "pending": "busy",
    "paused": "warn",
    "completed": "good",
    "failed": "bad",
}
UNKNOWN_OUTCOME_LABELS = {"resend": "is sent again", "ask": "is looked up", "hold": "is held for you"}
TILES = (
    ("waiting", "for their time or turn", "pending"),
    ("due", "could start now", "pending"),
    ("processing", "being sent", "processing"),
    ("sent", "in the last 15 min", "sent"),
    ("failed", "you decide", "failed"),
    ("unknown", "perhaps sent", "failed"),
)


class TimelineItem(NamedTuple):
    """One line of a message's timeline."""

    title: str
    tone: str
    at: str | None
    detail: str | None = None
    note: str | None = None


def state_word(message: Shown) -> str:
    """The state as a person would say it: a failure in doubt is held, a tried one that waits is retrying."""
    match message["state"]:
        case "pending":
            return "retrying" if message["attempts"] else "waiting"
        case "failed" if message["unknown"]:
            return "unknown"
        case state:
            return str(state)


def tone(message: Shown) -> str:
    """The colour of a state."""
    return TONES[state_word(message)]


def stage_tone(state: str) -> str:
    """The colour of a broadcast's state."""
    return STAGES.get(state, "still")


def recipient_tone(state: str) -> str:
    """The colour of what became of one recipient."""
    return TONES.get(state, "still")


def moment_of(message: Shown) -> str | None:
    """The time that matters most in a list: the next attempt, or when it ended."""
    at = message["next_attempt_at"] if message["state"] == "pending" else message["changed_at"]
    return str(at) if at is not None else None


def counted(number: int) -> str:
    """A number that was counted up to a bound only."""
    return f"{MAX_COUNTED:,}+" if number >= MAX_COUNTED else f"{number:,}"


def full(at: str | None, timezone: ZoneInfo) -> str:
    """A time in full, in the configured zone."""
    return "" if at is None else f"{datetime.fromisoformat(at).astimezone(timezone):%a %d %b %Y %H:%M:%S %Z}"


def day(text: str | None) -> str:
    """A day as people say it: 20261122 and 2026-11-22 are Sun 22 Nov 2026; anything else is left as it is."""
    found = _DAY.fullmatch(text or "")
    if found is None:
        return text or ""
    try:
        return f"{date(*map(int, found.groups())):%a %d %b %Y}"
    except ValueError:
        return found[0]


def system(name: str) -> str:
    """A system of a migration without tenant and hash: default/attio:07604e1af0ad/write is attio, write."""
    *_, kind, what = ["", *name.rsplit("/", 2)[-2:]]
    return ", ".join(part for part in (kind.partition(":")[0], what) if part)


def clock(at: str, timezone: ZoneInfo) -> str:
    """The time of day, in the configured zone."""
    return f"{datetime.fromisoformat(at).astimezone(timezone):%H:%M}"


def sentence(text: str, timezone: ZoneInfo = ZoneInfo("UTC")) -> Markup:
    """One or more clauses as a sentence, times as one says them; what stands in backticks is set as code."""
    text = _INSTANT.sub(lambda found: full(found[0], timezone), text)
    ended = text if text.endswith((".", "?", "!")) else f"{text}."
    return codes(ended[:1].upper() + ended[1:])


def codes(text: str) -> Markup:
    """A text in which what stands in backticks is set as code."""
    pieces = re.split(r"`([^`]+)`", text)
    return Markup("").join(
        Markup("<code>{}</code>").format(piece) if place % 2 else escape(piece)
        for place, piece in enumerate(pieces)
    )


def timeline(message: Shown) -> list[TimelineItem]:
    """All that happened to a message, oldest first, and what comes next."""
    told = [TimelineItem("Accepted", "still", message["accepted_at"], note=_asked_for(message))]
    begun: str | None = None
    for entry in message["history"]:
        told.append(_move(entry, begun))
        begun = entry["at"] if entry["to"] == "processing" else None
    told += [_receipt(fact) for fact in message["receipts"]]
    if message["state"] == "pending":
        title = "Next attempt" if message["attempts"] else "First attempt"
        told.append(TimelineItem(title, "next", message["next_attempt_at"]))
    return told


def _receipt(fact: Shown) -> TimelineItem:
    """What the provider told later."""
    note = f"{fact['category']} error" if fact["category"] else None
    titles = {"delivered": ("Delivered", "good"), "read": ("Read", "good")}
    title, tone = titles.get(fact["what"], ("Not delivered", "bad"))
    return TimelineItem(title, tone, fact["at"], fact["reason"], note)


def _asked_for(message: Shown) -> str | None:
    return "for later" if message["scheduled_at"] > message["accepted_at"] else None


def _move(entry: Shown, begun: str | None) -> TimelineItem:
    at, detail, attempt = entry["at"], entry["detail"], entry["attempt"]
    category = f"{entry['category']} error" if entry["category"] else None
    note = " · ".join(part for part in (category, _took(begun, at)) if part) or None
    match entry["from"], entry["to"]:
        case _, "processing":
            by = entry["node_name"] or f"node {entry['node']}"
            return TimelineItem(f"Attempt {attempt} began", "busy", at, detail, f"by {by}")
        case _, "sent":
            return TimelineItem("Sent", "good", at, detail, note)
        case "processing", "pending":
            title = f"Attempt {attempt} did not work" if category else "Put back"
            return TimelineItem(title, "warn", at, detail, note)
        case "processing", "failed":
            return TimelineItem(
                "Failed for good" if category else "Held: nobody knows whether it was sent",
                "bad",
                at,
                detail,
                note,
            )
        case "failed", "pending":
            return TimelineItem("Started afresh", "calm", at, detail)
        case origin, to if origin == to:
            return TimelineItem("News about it", "still", at, detail, note)
        case _, to:
            return TimelineItem(str(to).capitalize(), "still", at, detail, note)


def _took(begun: str | None, ended: str) -> str | None:
    if begun is None:
        return None
    took = datetime.fromisoformat(ended) - datetime.fromisoformat(begun)
    return f"took {durations.humanize(max(took, timedelta(0)))}"
