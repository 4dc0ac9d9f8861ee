"""Why: what a message is waiting for, or what became of it, in one sentence. Derived, never stored."""

from __future__ import annotations

from typing import Any, NamedTuple

import orjson

from ..kernel.task_actions import RESCHEDULED_PREFIX
from ..model.time import SECOND, iso
from ..store.port import Row, Store

_RECENT = 15 * SECOND  # a node not seen for longer is not counted as working


class Explanation(NamedTuple):
    """The answer, until when it holds (if that is known), and what a person can do."""

    answer: str
    until: int | None = None
    remedy: str | None = None


_SOON = Explanation("due; it starts as soon as a slot is free")


async def load_explanation(
    store: Store, row: Row, history: list[Row], *, is_configured: bool = True
) -> Explanation:
    """Explain one message as it stands now; `is_configured` says whether its channel is known here."""
    queues = {queue["name"]: queue for queue in await store.read("queue_list")}
    now = (await store.read("now"))[0]["now"]
    ahead = 0
    if row["state"] == "pending" and not row["head"]:
        counted = await store.read(
            "ordering_key_ahead", queue=row["channel"], ordering_key=row["ordering_key"], id=row["task"]
        )
        ahead = counted[0]["ahead"]
    nodes = [
        node
        for node in await store.read("node_list")
        if node["state"] == "live" and now - node["seen_at"] < _RECENT
    ]
    queue = queues.get(row["channel"]) if is_configured else None
    stuck = _stuck(nodes, row["channel"])
    return explain(row, queue, history, now=now, ahead=ahead, nodes=len(nodes), stuck=stuck)


def _stuck(nodes: list[Row], channel: str) -> str | None:
    """What a dispatcher says that keeps it from giving away messages of this channel."""
    said = [orjson.loads(node["info"]) for node in nodes]
    return next((info["broker"] for info in said if channel in info.get("stuck", ())), None)


def explain(
    row: Row,
    queue: Row | None,
    history: list[Row],
    *,
    now: int,
    ahead: int,
    nodes: int,
    stuck: str | None = None,
) -> Explanation:
    """The reason, from values alone."""
    if row.get("broadcast_state") is not None:
        return _frozen(row)
    told = (entry["detail"] or "" for entry in reversed(history))
    last = next((detail for detail in told if detail and not detail.startswith(RESCHEDULED_PREFIX)), None)
    match row["state"]:
        case "done":
            doubt = " after an attempt in doubt, so the recipient may have it twice" if row["unknown"] else ""
            return Explanation(f"sent at {iso(row['changed_at'])} on try {row['attempts']}{doubt}")
        case "processing":
            return _at_work(row)
        case "failed":
            return _dead(row, last)
        case "cancelled":
            how = "cancelled" if row["cancel_requested"] else "skipped"
            return Explanation(f"{how} at {iso(row['changed_at'])}: {last or 'by hand'}")
        case "expired":
            return Explanation(
                f"expired at {iso(row['expires_at'])}: {last or 'its time ran out before it could start'}"
            )
    waiting = _waiting(row, queue, last, now=now, ahead=ahead, nodes=nodes)
    if waiting == _SOON and stuck is not None:
        return Explanation(f"due, and waits: {stuck}", remedy="mend that; it then goes out by itself")
    return waiting


def _frozen(row: Row) -> Explanation:
    """A message that its broadcast has not taken up yet."""
    broadcast, because = row["broadcast"], f" ({row['broadcast_reason']})" if row["broadcast_reason"] else ""
    match row["broadcast_state"]:
        case "loading":
            return Explanation(f"waits until the recipients of its broadcast {broadcast} are complete")
        case "new" if row["due_at"] is not None:
            return Explanation(f"waits for the start of its broadcast {broadcast}", row["due_at"])
        case "pending":
            return Explanation(f"waits for its turn in its broadcast {broadcast}")
        case "paused" | "failed" as state:
            remedy = f"mend the cause, then: tidings broadcasts resume {broadcast}"
            return Explanation(f"its broadcast {broadcast} is {state}{because}", remedy=remedy)
    return Explanation(f"its broadcast {broadcast} was {row['broadcast_state']}{because}")


def _at_work(row: Row) -> Explanation:
    asked = "; it will end as cancelled unless this attempt sends it" if row["cancel_requested"] else ""
    since = row["started_at"] or row["changed_at"]
    return Explanation(
        f"being sent by {row.get('holder') or 'a node'} since {iso(since)} (try {row['attempts']}){asked}"
    )


def _dead(row: Row, last: str | None) -> Explanation:
    if row["unknown"]:
        return Explanation(
            f"held: nobody can say whether it was sent ({last})",
            remedy="ask the recipient, then `tidings dead retry` or `tidings dead discard`",
        )
    kind = f"{row['category']} error" if row["category"] else "error"
    return Explanation(
        f"failed for good, tried {_times(row['attempts'])}: {kind}: {last}",
        remedy="mend the cause, then `tidings dead retry`, or `tidings dead discard`",
    )


def _waiting(
    row: Row, queue: Row | None, last: str | None, *, now: int, ahead: int, nodes: int
) -> Explanation:
    if (lane := str(row.get("lane") or "")).startswith("~"):  # where a broadcast sets aside what is open
        remedy = f"to go on: tidings broadcasts resume {lane[1:]}"
        return Explanation(f"its broadcast {lane[1:]} is paused, or was stopped by errors", remedy=remedy)
    if not row["head"]:
        line = "an earlier message" if ahead <= 1 else f"{ahead} earlier messages"
        return Explanation(f"waits for {line} of the order key {row['ordering_key']!r}")
    if row["due_at"] > now:
        if row["attempts"] or row["throttles"]:
            tried = f"tried {_times(row['attempts'])}" if row["attempts"] else "asked to wait"
            return Explanation(f"{tried}, next try at {iso(row['due_at'])}: {last}", row["due_at"])
        if last is not None:
            return Explanation(f"waits until {iso(row['due_at'])}: {last}", row["due_at"])
        return Explanation(f"scheduled for {iso(row['due_at'])}", row["due_at"])
    standing = None if queue is None else _standing(queue, now)
    if standing is not None:
        return standing
    if queue is None:
        return Explanation(
            f"no process serves the channel {row['channel']!r}",
            remedy="add it to the configuration of a node",
        )
    if not nodes:
        return Explanation("due, but no process is working", remedy="start one: tidings serve")
    return _SOON


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _standing(queue: dict[str, Any], now: int) -> Explanation | None:
    """What keeps a whole channel from starting anything."""
    name, until = queue["name"], queue["blocked_until"] or 0
    if queue["paused"]:
        remedy = f"mend the cause, then: tidings channels resume {name}"
        return Explanation(f"the channel {name!r} is paused: {queue['pause_reason']}", remedy=remedy)
    if queue["session_state"] == "logged_out":
        why_so = f"the session of the channel {name!r} is logged out since {iso(queue['session_since'])}"
        remedy = f"link it again: tidings channels qr {name}"
        return Explanation(f"{why_so}: {queue['session_reason']}", remedy=remedy)
    if queue["session_state"] == "reconnecting":
        since = iso(queue["session_since"])
        return Explanation(f"the channel {name!r} is reconnecting since {since}: {queue['session_reason']}")
    if until > now:
        return Explanation(f"the channel {name!r} waits until {iso(until)}: {queue['block_reason']}", until)
    if queue["opened_at"] is not None:
        return Explanation(f"the breaker of the channel {name!r} is half open: one probe decides")
    if queue["next_at"] is not None and queue["next_at"] > now:
        return Explanation(
            f"the rate of the channel {name!r} allows the next send at {iso(queue['next_at'])}",
            queue["next_at"],
        )
    return None
