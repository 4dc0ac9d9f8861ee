"""Explain in one sentence why a message waits, or its outcome. Derived, never stored."""

from __future__ import annotations

from typing import Any, NamedTuple

import orjson

from ..kernel.task_actions import RESCHEDULED_PREFIX
from ..model.time import SECOND, iso
from ..store.port import Row, Store

_RECENT = 15 * SECOND  # a node not seen for longer is not counted as working


class Explanation(NamedTuple):
    """The answer, until when it holds (if known), and a remedy."""

    answer: str
    until: int | None = None
    remedy: str | None = None


_SOON = Explanation("due; it starts as soon as a slot is free")


async def load_explanation(store: Store, row: Row, history: list[Row], *, is_configured: bool = True) -> Explanation:
    """Explain one message now; `is_configured` tells whether this process knows its channel."""
    queues = {queue["name"]: queue for queue in await store.read("queue_list")}
    now = (await store.read("now"))[0]["now"]
    ahead = 0
    if row["state"] == "pending" and not row["head"]:
        counted = await store.read(
            "ordering_key_ahead", queue=row["channel"], ordering_key=row["ordering_key"], id=row["task"]
        )
        ahead = counted[0]["ahead"]
    nodes = [
        node for node in await store.read("node_list") if node["state"] == "live" and now - node["seen_at"] < _RECENT
    ]
    queue = queues.get(row["channel"]) if is_configured else None
    stuck = _stuck(nodes, row["channel"])
    return explain(row, queue, history, now=now, ahead=ahead, nodes=len(nodes), stuck=stuck)


def _stuck(nodes: list[Row], channel: str) -> str | None:
    """The problem that keeps a dispatcher from dispatching messages of this channel."""
    infos = [orjson.loads(node["info"]) for node in nodes]
    return next((info["broker"] for info in infos if channel in info.get("stuck", ())), None)


def explain(
    row: Row, queue: Row | None, history: list[Row], *, now: int, ahead: int, nodes: int, stuck: str | None = None
) -> Explanation:
    """The explanation, from values alone (pure)."""
    if row.get("broadcast_state") is not None:
        return _frozen(row)
    details = (entry["detail"] or "" for entry in reversed(history))
    last = next((detail for detail in details if detail and not detail.startswith(RESCHEDULED_PREFIX)), None)
    match row["state"]:
        case "done":
            doubt = " after an uncertain attempt, so the recipient may have it twice" if row["unknown"] else ""
            return Explanation(f"sent at {iso(row['changed_at'])} on attempt {row['attempts']}{doubt}")
        case "processing":
            return _at_work(row)
        case "failed":
            return _dead(row, last)
        case "cancelled":
            how = "cancelled" if row["cancel_requested"] else "skipped"
            return Explanation(f"{how} at {iso(row['changed_at'])}: {last or 'by hand'}")
        case "expired":
            return Explanation(f"expired at {iso(row['expires_at'])}: {last or 'it did not start in time'}")
    waiting = _waiting(row, queue, last, now=now, ahead=ahead, nodes=nodes)
    if waiting == _SOON and stuck is not None:
        return Explanation(
            f"due, but blocked: {stuck}", remedy="fix the problem; the message is then sent automatically"
        )
    return waiting


def _frozen(row: Row) -> Explanation:
    """A recipient that its broadcast has not fed yet."""
    broadcast, because = row["broadcast"], f" ({row['broadcast_reason']})" if row["broadcast_reason"] else ""
    match row["broadcast_state"]:
        case "loading":
            return Explanation(f"waits until the recipients of its broadcast {broadcast} are complete")
        case "ready" if row["broadcast_trigger"] != "manual":
            return Explanation(f"waits for the start of its broadcast {broadcast}", row["due_at"])
        case "ready":
            remedy = f"run: tidings broadcasts trigger {broadcast}"
            return Explanation(f"waits until its broadcast {broadcast} is triggered", remedy=remedy)
        case "running":
            return Explanation(f"waits for its turn in its broadcast {broadcast}")
        case "paused" | "failed" as state:
            remedy = f"fix the cause, then: tidings broadcasts resume {broadcast}"
            return Explanation(f"its broadcast {broadcast} is {state}{because}", remedy=remedy)
    return Explanation(f"its broadcast {broadcast} was {row['broadcast_state']}{because}")


def _at_work(row: Row) -> Explanation:
    asked = "; it will be cancelled unless this attempt succeeds" if row["cancel_requested"] else ""
    since = row["started_at"] or row["changed_at"]
    return Explanation(
        f"being sent by {row.get('holder') or 'a node'} since {iso(since)} (attempt {row['attempts']}){asked}"
    )


def _dead(row: Row, last: str | None) -> Explanation:
    if row["unknown"]:
        return Explanation(
            f"uncertain: it may or may not have been sent ({last})",
            remedy="ask the recipient, then `tidings dead retry` or `tidings dead discard`",
        )
    kind = f"{row['category']} error" if row["category"] else "error"
    return Explanation(
        f"failed permanently after {_attempts(row['attempts'])}: {kind}: {last}",
        remedy="fix the cause, then `tidings dead retry`, or `tidings dead discard`",
    )


def _waiting(row: Row, queue: Row | None, last: str | None, *, now: int, ahead: int, nodes: int) -> Explanation:
    if (lane := str(row.get("lane") or "")).startswith("~"):  # the pause queue of a broadcast
        remedy = f"resume it: tidings broadcasts resume {lane[1:]}"
        return Explanation(f"its broadcast {lane[1:]} is paused, or was stopped by its error limit", remedy=remedy)
    if not row["head"]:
        line = "an earlier message" if ahead <= 1 else f"{ahead} earlier messages"
        return Explanation(f"waits for {line} of the ordering key {row['ordering_key']!r}")
    if row["due_at"] > now:
        if row["attempts"] or row["throttles"]:
            tried = _attempts(row["attempts"]) if row["attempts"] else "throttled"
            return Explanation(f"{tried}, next attempt at {iso(row['due_at'])}: {last}", row["due_at"])
        if last is not None:
            return Explanation(f"waits until {iso(row['due_at'])}: {last}", row["due_at"])
        return Explanation(f"scheduled for {iso(row['due_at'])}", row["due_at"])
    blocked = None if queue is None else _channel_blocked(queue, now)
    if blocked is not None:
        return blocked
    if queue is None:
        return Explanation(
            f"no process serves the channel {row['channel']!r}", remedy="add it to the configuration of a node"
        )
    if not nodes:
        return Explanation("due, but no process is working", remedy="start one: tidings serve")
    return _SOON


def _attempts(count: int) -> str:
    return f"{count} attempt{'s' * (count != 1)}"


def _channel_blocked(queue: dict[str, Any], now: int) -> Explanation | None:
    """Why the whole channel starts nothing; None if it does."""
    name, until = queue["name"], queue["blocked_until"] or 0
    if queue["paused"]:
        remedy = f"fix the cause, then: tidings channels resume {name}"
        return Explanation(f"the channel {name!r} is paused: {queue['pause_reason']}", remedy=remedy)
    if queue["session_state"] == "logged_out":
        why_so = f"the session of the channel {name!r} has been logged out since {iso(queue['session_since'])}"
        remedy = f"link it again: tidings channels qr {name}"
        return Explanation(f"{why_so}: {queue['session_reason']}", remedy=remedy)
    if queue["session_state"] == "reconnecting":
        since = iso(queue["session_since"])
        return Explanation(f"the channel {name!r} has been reconnecting since {since}: {queue['session_reason']}")
    if until > now:
        return Explanation(f"the channel {name!r} waits until {iso(until)}: {queue['block_reason']}", until)
    if queue["opened_at"] is not None:
        return Explanation(f"the breaker of the channel {name!r} is half open: one probe decides")
    if queue["next_at"] is not None and queue["next_at"] > now:
        return Explanation(
            f"the rate limit of the channel {name!r} allows the next send at {iso(queue['next_at'])}", queue["next_at"]
        )
    return None
