"""Cases: human handoff of conversations, and the acknowledgement of notices.

    open ─claim─▶ claimed ─answer─▶ answered ─hand back, close─▶ closed

While a case is claimed or answered, its holder has the conversation and the bot does not reply. Every
transition checks the expected state and changes case, workflow and deferred message in one transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import orjson

from ...inputs.pagination import Page, page_size
from ...kernel.clock import Clock
from ...model.errors import Conflict, Invalid, NotFound
from ...model.time import iso, micros
from ...store.port import Row, Step, Store, TableRows, WriteConflict
from ..domain import Utterance
from ..reply_port import ReplyPort
from ..workflow.instance import Workflow, read
from ..workflow.repository import journal_step, prepare_reply, workflow_step
from ..workflow.settings import WorkflowSettings
from ..workflow.state_machine import WorkflowTrigger, next_stage
from ..workflow.timers import release
from .reasons import REASONS

STATES = ("open", "claimed", "answered", "closed")
VERDICTS = ("related", "new")
_LAST = "\x7f"  # sorts after every id
_LONGEST_NAME = 120
_TRANSCRIPT = 30


class Cases:
    """Lists, claims, answers and closes cases; lists and acknowledges notices."""

    def __init__(self, store: Store, clock: Clock, settings: WorkflowSettings, reply_port: ReplyPort) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._reply_port = reply_port

    async def page(
        self,
        *,
        tenant: str = "default",
        state: str | None = None,
        reason: str | None = None,
        limit: int = 50,
        after: str | None = None,
    ) -> Page:
        """List cases, newest first: all that are not closed, or one state. Reviews only if asked for."""
        if state is not None and state not in STATES:
            raise Invalid(f"unknown state {state!r}", field="state", remedy=f"use one of: {', '.join(STATES)}")
        if reason is not None and reason not in REASONS:
            known = ", ".join(case_reasons())
            raise Invalid(f"unknown reason {reason!r}", field="reason", remedy=f"use one of: {known}")
        asked: dict[str, Any] = {
            "tenant": tenant, "reason": reason or "", "before": after or _LAST, "limit": page_size(limit)
        }  # fmt: skip
        if state is not None:
            asked["state"] = state
        rows = await self._store.read("case_open_page" if state is None else "case_page", **asked)
        return Page([described(row) for row in rows], rows[-1]["id"] if len(rows) == limit else None)

    async def show(self, id_: str, *, tenant: str = "default") -> Row:
        """Show one case with the last lines of its conversation."""
        row = await self._find(id_, tenant)
        last = await self._store.read(
            "handled_message_newest", tenant=tenant, conversation=row["conversation"], limit=_TRANSCRIPT
        )
        lines = [
            {
                "at": iso(handled["sent_at"]),
                "name": orjson.loads(handled["speaker"])["name"],
                "squad": handled["squad"],
                "text": handled["text"],
                "decision": handled["decision"],
                "replies": [fact["text"] for fact in orjson.loads(handled["facts"]) if fact["what"] == "said"],
            }
            for handled in reversed(last)
        ]
        return {**described(row), "lines": lines}

    async def claim(self, id_: str, by: str, *, tenant: str = "default") -> Row:
        """Claim a case; the bot stops replying in its conversation."""
        by = by.strip()
        if not by or len(by) > _LONGEST_NAME or not by.isprintable():
            remedy = f"use 1 to {_LONGEST_NAME} printable characters"
            raise Invalid("the name is missing or invalid", field="by", remedy=remedy)
        row = await self._find(id_, tenant)
        if row["state"] != "open":
            holder = f" by {row['claimed_by']}" if row["claimed_by"] else ""
            raise Conflict(f"the case is {row['state']}{holder}", remedy="only an open case can be claimed")
        until = self._clock.now() + micros(self._settings.idle_timeout)
        await self._once(self._store.write(self._steps(row, "claimed", by, until, "claimed", {"by": by})))
        return await self.show(id_, tenant=tenant)

    async def answer(self, id_: str, text: str, *, tenant: str = "default") -> Row:
        """Reply to the chat in place of the bot."""
        row = await self._find(id_, tenant)
        if row["state"] not in ("claimed", "answered"):
            raise Conflict(f"the case is {row['state']}", remedy=f"claim it first: tidings cases claim {id_} --by NAME")
        now = self._clock.now()
        to = {"tenant": tenant, "conversation": row["conversation"], **await self._place(row)}
        task, message = await prepare_reply(self._reply_port, self._settings, to, text, now)
        flow = await self._flow(row)
        spoken = Utterance(row["claimed_by"], None, now, text, is_ours=True)
        steps = [workflow_step(flow.said(spoken), now, self._settings)] if flow is not None else []
        rows = TableRows(self._reply_port.table, self._reply_port.columns, [message])
        until = now + micros(self._settings.idle_timeout)
        said = {"by": row["claimed_by"], "text": text}
        own = self._steps(row, "answered", row["claimed_by"], until, "answered", said)
        await self._once(self._store.enqueue([task], rows, also=[*own, *steps]))
        await self._store.hint()
        return await self.show(id_, tenant=tenant)

    async def hand_back(self, id_: str, *, verdict: str | None = None, tenant: str = "default") -> Row:
        """Hand the conversation back to the bot. A held message needs a verdict."""
        row = await self._find(id_, tenant)
        self._not_closed(row)
        if verdict is not None and verdict not in VERDICTS:
            raise Invalid(f"unknown verdict {verdict!r}", field="verdict", remedy="use related or new")
        now, kept = self._clock.now(), await self._kept(row)
        if kept is not None and verdict is None:
            raise Invalid(
                "the held message needs a verdict", field="verdict", remedy="use related (to the open request) or new"
            )
        steps = self._steps(row, "closed", row["claimed_by"], None, "handed_back", {"verdict": verdict})
        flow = await self._flow(row)
        if flow is not None:
            stage = next_stage(flow.stage, WorkflowTrigger.HANDED_BACK)
            steps.append(workflow_step(replace(flow, stage=stage, attempts={}), now, self._settings))
        if kept is not None:
            await self._once(release(self._store, kept, now=now, verdict=verdict, also=steps))
        else:
            await self._once(self._store.write(steps))
        await self._store.hint()
        return await self.show(id_, tenant=tenant)

    async def close(self, id_: str, *, note: str = "", tenant: str = "default") -> Row:
        """Close a case: its workflow ends, and a held message is dropped."""
        row = await self._find(id_, tenant)
        self._not_closed(row)
        now = self._clock.now()
        steps = self._steps(row, "closed", row["claimed_by"], None, "closed", {"note": note[:500]})
        flow = await self._flow(row)
        if flow is not None:
            stage = next_stage(flow.stage, WorkflowTrigger.CLOSED)
            steps.append(workflow_step(replace(flow, stage=stage), now, self._settings))
        if await self._kept(row) is not None:
            dropped = {"message": row["message"], "decision": "by_hand", "at": now}
            steps.append(Step("handled_message_drop", {**dropped, "reason": "a person has dealt with it"}))
        await self._once(self._store.write(steps))
        await self._store.hint()
        return await self.show(id_, tenant=tenant)

    # -- notices

    async def notices(self, *, tenant: str = "default", limit: int = 50, after: str | None = None) -> Page:
        """List the notices to the admins, newest first."""
        rows = await self._store.read("notice_page", tenant=tenant, before=after or _LAST, limit=page_size(limit))
        items = [
            {
                **{name: row[name] for name in ("id", "reason", "times", "problem", "acknowledged_by")},
                **{name: iso(row[name]) for name in ("at", "last_at", "sent_at", "acknowledged_at")},
                **orjson.loads(row["facts"]),
            }
            for row in rows
        ]
        return Page(items, rows[-1]["id"] if len(rows) == limit else None)

    async def acknowledge(self, id_: str, by: str, *, tenant: str = "default") -> None:
        """Acknowledge a notice; the same problem then creates a new one."""
        seen = {"id": id_, "tenant": tenant, "by_whom": by[:_LONGEST_NAME], "at": self._clock.now()}
        if not (await self._store.write([Step("notice_acknowledge", seen)]))[0]:
            raise NotFound(f"no unacknowledged notice {id_}", remedy="see: tidings cases notices")

    # -- helpers

    async def _find(self, id_: str, tenant: str) -> Row:
        rows = await self._store.read("case_find", id=id_, tenant=tenant)
        if not rows:
            raise NotFound(f"unknown case {id_}", remedy="see: tidings cases list")
        return rows[0]

    async def _flow(self, row: Row) -> Workflow | None:
        """Return the open workflow of a case."""
        if row["workflow"] is None:
            return None
        rows = await self._store.read("workflow_find", id=row["workflow"], tenant=row["tenant"])
        return read(rows[0]) if rows and rows[0]["closed_at"] is None else None

    async def _kept(self, row: Row) -> Row | None:
        """Return the message that waits for the verdict on this case."""
        if row["reason"] != "held" or row["message"] is None:
            return None
        rows = await self._store.read("handled_message_find", message=row["message"])
        return rows[0] if rows and rows[0]["deferred"] == "unclear" else None

    async def _place(self, row: Row) -> dict[str, str]:
        """Return the source and chat of its conversation."""
        last = await self._store.read(
            "handled_message_newest", tenant=row["tenant"], conversation=row["conversation"], limit=1
        )
        if not last:
            raise Conflict("its conversation has no handled message", remedy="answer on the platform itself")
        speaker = orjson.loads(last[0]["speaker"])
        return {"source": speaker["source"], "chat": speaker["chat"]}

    def _not_closed(self, row: Row) -> None:
        if row["state"] == "closed":
            raise Conflict("the case is closed", remedy="see: tidings cases list")

    def _steps(self, row: Row, state: str, by: str | None, until: int | None, what: str, facts: Row) -> list[Step]:
        now = self._clock.now()
        move = {
            "id": row["id"], "expected": row["state"], "state": state, "claimed_by": by,
            "deadline_at": until, "at": now,
        }  # fmt: skip
        entry = journal_step(row, now, f"case_{what}", {"case": row["id"], **facts})
        return [Step("case_move", move, needed=True), entry]

    async def _once(self, work: Any) -> None:
        try:
            await work
        except WriteConflict:
            raise Conflict("the case changed in the meantime", remedy="check it and try again") from None


def described(row: Row) -> Row:
    """Return the public fields of a case."""
    facts = orjson.loads(row["facts"])
    return {
        **{name: row[name] for name in ("id", "state", "reason", "conversation", "workflow", "message", "times")},
        **{name: facts.get(name) for name in ("issue", "squad", "speaker", "text")},
        "claimed_by": row["claimed_by"],
        "to_do": _to_do(row),
        **{name: iso(row[name]) for name in ("opened_at", "deadline_at", "changed_at", "closed_at")},
    }


def _to_do(row: Row) -> str | None:
    """Return the next action for a person."""
    if row["state"] == "closed":
        return None
    if row["state"] != "open" and row["reason"] != "held":
        back = f"hand it back: tidings cases handback {row['id']}, or close it"
        return f"answer: tidings cases answer {row['id']} --text TEXT; then {back}"
    reason = REASONS.get(row["reason"])
    return reason.remedy.replace("CASE", row["id"]) if reason else None


def case_reasons() -> Sequence[str]:
    """Return the reasons that open cases."""
    return [name for name, reason in REASONS.items() if reason.opens_case]
