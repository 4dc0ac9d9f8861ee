"""Template filters: state labels and colors, times, numbers, and the timeline of a message. Pure."""

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

TONES = {  # any other state is "still"
    **dict.fromkeys(("waiting", "loading", "ready"), "calm"),
    **dict.fromkeys(("processing", "pending", "running"), "busy"),
    **dict.fromkeys(("sent", "completed"), "good"),
    **dict.fromkeys(("retrying", "uncertain", "paused"), "warn"),
    "failed": "bad",
}
UNKNOWN_OUTCOME_LABELS = {"resend": "resend", "ask": "ask the provider", "hold": "hold for review"}
TILES = (
    ("waiting", "scheduled or queued", "/messages?state=pending"),
    ("due", "ready to send", "/messages?state=pending"),
    ("processing", "being sent", "/messages?state=processing"),
    ("sent", "in the last 15 min", "/messages?state=sent"),
    ("failed", "retry or discard", "/dead"),
    ("unknown", "may have been sent", "/dead"),
)


class TimelineItem(NamedTuple):
    """One entry of a message's timeline."""

    title: str
    tone: str
    at: str | None
    detail: str | None = None
    note: str | None = None


def state_word(message: Shown) -> str:
    """Return the displayed state: `retrying` after an attempt, `uncertain` for an unknown outcome."""
    match message["state"]:
        case "pending":
            return "retrying" if message["attempts"] else "waiting"
        case "failed" if message["unknown"]:
            return "uncertain"
        case state:
            return str(state)


def state_label(state: str) -> str:
    """Return the displayed name of a recipient's state or of a count."""
    return "uncertain" if state == "unknown" else state


def channel_label(channel: Shown) -> str:
    """Return the displayed state of a channel."""
    return str(channel["state"]).replace("_", " ")


def tone(state: str) -> str:
    """Return the color class of a displayed state."""
    return TONES.get(state_label(state), "still")


def moment_of(message: Shown) -> str | None:
    """Return the time shown in a list: of the next attempt, or of the last change."""
    at = message["next_attempt_at"] if message["state"] == "pending" else message["changed_at"]
    return str(at) if at is not None else None


def counted(number: int) -> str:
    """Format a count that stops at MAX_COUNTED."""
    return f"{MAX_COUNTED:,}+" if number >= MAX_COUNTED else f"{number:,}"


def full(at: str | None, timezone: ZoneInfo) -> str:
    """Format date and time in the configured time zone."""
    return "" if at is None else f"{datetime.fromisoformat(at).astimezone(timezone):%a %d %b %Y %H:%M:%S %Z}"


def day(text: str | None) -> str:
    """Format a date: 20261122 and 2026-11-22 become Sun 22 Nov 2026; other texts are returned unchanged."""
    found = _DAY.fullmatch(text or "")
    if found is None:
        return text or ""
    try:
        return f"{date(*map(int, found.groups())):%a %d %b %Y}"
    except ValueError:
        return found[0]


def system(name: str) -> str:
    """Shorten the name of a migration system: default/attio:07604e1af0ad/write becomes attio, write."""
    *_, kind, access = ["", *name.rsplit("/", 2)[-2:]]
    return ", ".join(part for part in (kind.partition(":")[0], access) if part)


def clock(at: str, timezone: ZoneInfo) -> str:
    """Format the time of day in the configured time zone."""
    return f"{datetime.fromisoformat(at).astimezone(timezone):%H:%M}"


def sentence(text: str, timezone: ZoneInfo = ZoneInfo("UTC")) -> Markup:
    """Format a text as a sentence: capitalized, with a full stop, local times, and backticks as code."""
    text = _INSTANT.sub(lambda found: full(found[0], timezone), text)
    ended = text if text.endswith((".", "?", "!")) else f"{text}."
    return codes(ended[:1].upper() + ended[1:])


def codes(text: str) -> Markup:
    """Escape a text and mark up backticks as code."""
    pieces = re.split(r"`([^`]+)`", text)
    return Markup("").join(
        Markup("<code>{}</code>").format(piece) if index % 2 else escape(piece) for index, piece in enumerate(pieces)
    )


def timeline(message: Shown) -> list[TimelineItem]:
    """Return everything that happened to a message, oldest first, and its next attempt."""
    note = "scheduled" if message["scheduled_at"] > message["accepted_at"] else None
    items = [TimelineItem("Accepted", "still", message["accepted_at"], note=note)]
    started: str | None = None
    for entry in message["history"]:
        items.append(_transition(entry, started))
        started = entry["at"] if entry["to"] == "processing" else None
    items += [_receipt(receipt) for receipt in message["receipts"]]
    if message["state"] == "pending":
        title = "Next attempt" if message["attempts"] else "First attempt"
        items.append(TimelineItem(title, "next", message["next_attempt_at"]))
    return items


def _receipt(receipt: Shown) -> TimelineItem:
    """Format a later delivery report of the provider."""
    note = f"{receipt['category']} error" if receipt["category"] else None
    titles = {"delivered": ("Delivered", "good"), "read": ("Read", "good")}
    title, tone = titles.get(receipt["what"], ("Not delivered", "bad"))
    return TimelineItem(title, tone, receipt["at"], receipt["reason"], note)


def _transition(entry: Shown, started: str | None) -> TimelineItem:
    at, detail, attempt = entry["at"], entry["detail"], entry["attempt"]
    category = f"{entry['category']} error" if entry["category"] else None
    note = " · ".join(part for part in (category, _took(started, at)) if part) or None
    match entry["from"], entry["to"]:
        case _, "processing":
            by = entry["node_name"] or f"node {entry['node']}"
            return TimelineItem(f"Attempt {attempt} started", "busy", at, detail, f"by {by}")
        case _, "sent":
            return TimelineItem("Sent", "good", at, detail, note)
        case "processing", "pending":
            title = f"Attempt {attempt} failed" if category else "Returned to the queue"
            return TimelineItem(title, "warn", at, detail, note)
        case "processing", "failed":
            title = "Failed permanently" if category else "Uncertain: it is unknown whether it was sent"
            return TimelineItem(title, "bad", at, detail, note)
        case "failed", "pending":
            return TimelineItem("Retried", "calm", at, detail)
        case origin, to if origin == to:
            return TimelineItem("Updated", "still", at, detail, note)
        case _, to:
            return TimelineItem(str(to).capitalize(), "still", at, detail, note)


def _took(started: str | None, ended: str) -> str | None:
    if started is None:
        return None
    took = datetime.fromisoformat(ended) - datetime.fromisoformat(started)
    return f"took {durations.humanize(max(took, timedelta(0)))}"


FILTERS = (state_word, state_label, channel_label, tone, moment_of, counted, timeline, codes, day, system)
FILTERS_WITH_TIME_ZONE = (sentence, full, clock)
