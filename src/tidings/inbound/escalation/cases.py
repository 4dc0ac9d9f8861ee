"""Cases: what a person takes over, answers, gives back or closes.

    open ─claim─▶ claimed ─answer─▶ answered ─hand back, close─▶ closed

While a case is claimed or answered its holder has the conversation, and the bot is silent in it. Every move
names the state it expects and changes case, workflow and kept message in one transaction.
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
from ..workflow.repository import flow_row
from ..workflow.settings import WorkflowSettings
from ..workflow.state_machine import WorkflowTrigger, next_stage
from ..workflow.timers import release
from .reasons import REASONS

STATES = ("open", "claimed", "answered", "closed")
VERDICTS = ("related", "new")
_LAST = "\x7f"  # behind every id
_LONGEST_NAME = 120
_TRANSCRIPT = 30


class Cases:
    """All that faces may do with cases and notices."""

    def __init__(self, store: Store, clock: Clock, settings: WorkflowSettings, voice: ReplyPort) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._voice = voice

    async def page(
        self,
        *,
        tenant: str = "default",
        state: str | None = None,
        reason: str | None = None,
        limit: int = 50,
        after: str | None = None,
    ) -> Page:
        """Cases, newest first: those that are not closed, or of one state. Reviews only where asked for."""
        if state is not None and state not in STATES:
            raise Invalid(
                f"there is no state {state!r}", field="state", remedy=f"use one of: {', '.join(STATES)}"
            )
        if reason is not None and reason not in REASONS:
            known = ", ".join(name for name, it in REASONS.items() if it.opens_case)
            raise Invalid(f"there is no reason {reason!r}", field="reason", remedy=f"use one of: {known}")
        asked: dict[str, Any] = {
            "tenant": tenant, "reason": reason or "", "before": after or _LAST, "limit": page_size(limit)
        }  # fmt: skip
        if state is None:
            rows = await self._store.read("case_open_page", **asked)
        else:
            rows = await self._store.read("case_page", state=state, **asked)
        return Page([described(row) for row in rows], rows[-1]["id"] if len(rows) == limit else None)

    async def show(self, id_: str, *, tenant: str = "default") -> Row:
        """One case with the last lines of its conversation."""
        row = await self._find(id_, tenant)
        last = await self._store.read(
            "handled_message_newest", tenant=tenant, conversation=row["conversation"], limit=_TRANSCRIPT
        )
        lines = [
            {
                "at": iso(hearing["sent_at"]),
                "name": orjson.loads(hearing["speaker"])["name"],
                "squad": hearing["squad"],
                "text": hearing["text"],
                "decision": hearing["decision"],
                "replies": [
                    fact["text"] for fact in orjson.loads(hearing["facts"]) if fact["what"] == "said"
                ],
            }
            for hearing in reversed(last)
        ]
        return {**described(row), "lines": lines}

    async def claim(self, id_: str, by: str, *, tenant: str = "default") -> Row:
        """Take a case: from now on the bot is silent in its conversation."""
        by = by.strip()
        if not by or len(by) > _LONGEST_NAME or not by.isprintable():
            raise Invalid("there is no name", field="by", remedy="say who takes it")
        row = await self._find(id_, tenant)
        if row["state"] != "open":
            holder = f" by {row['claimed_by']}" if row["claimed_by"] else ""
            raise Conflict(f"the case is {row['state']}{holder}", remedy="only an open case can be taken")
        until = self._clock.now() + micros(self._settings.idle)
        await self._move(row, "claimed", by, until, "claimed", {"by": by})
        return await self.show(id_, tenant=tenant)

    async def answer(self, id_: str, text: str, *, tenant: str = "default") -> Row:
        """Say something to the group in the bot's place."""
        row = await self._find(id_, tenant)
        if row["state"] not in ("claimed", "answered"):
            raise Conflict(
                f"the case is {row['state']}", remedy=f"take it first: tidings cases claim {id_} --by NAME"
            )
        now = self._clock.now()
        source, chat = await self._place(row)
        task, message = await self._voice.prepare(
            self._settings.replies.get(source, source),
            chat,
            text,
            tenant=tenant,
            ordering_key=row["conversation"],
            now=now,
            in_chat=True,
        )
        flow = await self._flow(row)
        spoken = Utterance(row["claimed_by"], None, now, text, is_ours=True)
        steps = [self._flow_step(flow.said(spoken), now)] if flow is not None else []
        rows = TableRows(self._voice.table, self._voice.columns, [message])
        until = now + micros(self._settings.idle)
        said = {"by": row["claimed_by"], "text": text}
        own = self._steps(row, "answered", row["claimed_by"], until, "answered", said)
        await self._once(self._store.enqueue([task], rows, also=[*own, *steps]))
        await self._store.hint()
        return await self.show(id_, tenant=tenant)

    async def hand_back(self, id_: str, *, verdict: str | None = None, tenant: str = "default") -> Row:
        """Give the conversation back to the bot. A held message needs a word on what it is."""
        row = await self._find(id_, tenant)
        self._not_closed(row)
        if verdict is not None and verdict not in VERDICTS:
            raise Invalid(f"{verdict!r} is no word on it", field="verdict", remedy="use related or new")
        now, kept = self._clock.now(), await self._kept(row)
        if kept is not None and verdict is None:
            raise Invalid(
                "the bot does not know what the held message is",
                field="verdict",
                remedy="say whether it is related to the open request, or new",
            )
        steps = self._steps(row, "closed", row["claimed_by"], None, "handed_back", {"verdict": verdict})
        flow = await self._flow(row)
        if flow is not None:
            stage = next_stage(flow.stage, WorkflowTrigger.HANDED_BACK)
            steps.append(self._flow_step(replace(flow, stage=stage, attempts={}), now))
        if kept is not None:
            await self._once(release(self._store, kept, now=now, verdict=verdict, also=steps))
        else:
            await self._once(self._store.write(steps))
        await self._store.hint()
        return await self.show(id_, tenant=tenant)

    async def close(self, id_: str, *, note: str = "", tenant: str = "default") -> Row:
        """It is dealt with: the workflow ends, and a held message is not worked through."""
        row = await self._find(id_, tenant)
        self._not_closed(row)
        now = self._clock.now()
        steps = self._steps(row, "closed", row["claimed_by"], None, "closed", {"note": note[:500]})
        flow = await self._flow(row)
        if flow is not None:
            steps.append(
                self._flow_step(replace(flow, stage=next_stage(flow.stage, WorkflowTrigger.CLOSED)), now)
            )
        if await self._kept(row) is not None:
            dropped = {"message": row["message"], "decision": "by_hand", "at": now}
            steps.append(Step("handled_message_drop", {**dropped, "reason": "a person has dealt with it"}))
        await self._once(self._store.write(steps))
        await self._store.hint()
        return await self.show(id_, tenant=tenant)

    # -- notices

    async def notices(self, *, tenant: str = "default", limit: int = 50, after: str | None = None) -> Page:
        """What the admins were told, newest first."""
        rows = await self._store.read(
            "notice_page", tenant=tenant, before=after or _LAST, limit=page_size(limit)
        )
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
        """Somebody has seen a notice: the same thing is told anew if it comes again."""
        seen = {"id": id_, "tenant": tenant, "by_whom": by[:_LONGEST_NAME], "at": self._clock.now()}
        if not (await self._store.write([Step("notice_acknowledge", seen)]))[0]:
            raise NotFound(
                f"there is no notice {id_} that waits to be acknowledged", remedy="see: tidings cases notices"
            )

    # -- what they are made of

    async def _find(self, id_: str, tenant: str) -> Row:
        rows = await self._store.read("case_find", id=id_, tenant=tenant)
        if not rows:
            raise NotFound(f"there is no case {id_}", remedy="see: tidings cases list")
        return rows[0]

    async def _flow(self, row: Row) -> Workflow | None:
        """The open workflow of a case."""
        if row["workflow"] is None:
            return None
        rows = await self._store.read("workflow_find", id=row["workflow"], tenant=row["tenant"])
        return read(rows[0]) if rows and rows[0]["closed_at"] is None else None

    async def _kept(self, row: Row) -> Row | None:
        """The message that is held because of this case."""
        if row["reason"] != "held" or row["message"] is None:
            return None
        rows = await self._store.read("handled_message_find", message=row["message"])
        return rows[0] if rows and rows[0]["deferred"] == "unclear" else None

    async def _place(self, row: Row) -> tuple[str, str]:
        """Where its conversation is: source and chat."""
        last = await self._store.read(
            "handled_message_newest", tenant=row["tenant"], conversation=row["conversation"], limit=1
        )
        if not last:
            raise Conflict("nothing was said in its conversation yet", remedy="answer on the platform itself")
        speaker = orjson.loads(last[0]["speaker"])
        return speaker["source"], speaker["chat"]

    def _not_closed(self, row: Row) -> None:
        if row["state"] == "closed":
            raise Conflict("the case is closed", remedy="see: tidings cases list")

    async def _move(
        self, row: Row, state: str, by: str | None, until: int | None, what: str, facts: Row
    ) -> None:
        await self._once(self._store.write(self._steps(row, state, by, until, what, facts)))

    def _steps(
        self, row: Row, state: str, by: str | None, until: int | None, what: str, facts: Row
    ) -> list[Step]:
        now = self._clock.now()
        move = {
            "id": row["id"],
            "expected": row["state"],
            "state": state,
            "claimed_by": by,
            "deadline_at": until,
            "at": now,
        }
        line = {
            "tenant": row["tenant"],
            "conversation": row["conversation"],
            "workflow": row["workflow"],
            "message": row["message"],
            "at": now,
            "what": f"case_{what}",
            "facts": orjson.dumps({"case": row["id"], **facts}).decode(),
        }
        return [Step("case_move", move, needed=True), Step("step_add", line)]

    def _flow_step(self, flow: Workflow, now: int) -> Step:
        return Step("workflow_move", flow_row(flow, now, idle=micros(self._settings.idle)), needed=True)

    async def _once(self, work: Any) -> None:
        try:
            await work
        except WriteConflict:
            raise Conflict("somebody else has just changed it", remedy="look again and repeat") from None


def described(row: Row) -> Row:
    """A case as people see it."""
    facts = orjson.loads(row["facts"])
    return {
        **{
            name: row[name]
            for name in ("id", "state", "reason", "conversation", "workflow", "message", "times")
        },
        "issue": facts.get("issue"),
        "squad": facts.get("squad"),
        "speaker": facts.get("speaker"),
        "text": facts.get("text"),
        "claimed_by": row["claimed_by"],
        "to_do": _to_do(row),
        **{name: iso(row[name]) for name in ("opened_at", "deadline_at", "changed_at", "closed_at")},
    }


def _to_do(row: Row) -> str | None:
    """What a person does next about a case."""
    if row["state"] == "closed":
        return None
    if row["state"] != "open" and row["reason"] != "held":
        back = f"give it back: tidings cases handback {row['id']}, or close it"
        return f"answer: tidings cases answer {row['id']} --text TEXT; then {back}"
    reason = REASONS.get(row["reason"])
    return reason.remedy.replace("CASE", row["id"]) if reason else None


def case_reasons() -> Sequence[str]:
    """The reasons that open cases."""
    return [name for name, reason in REASONS.items() if reason.opens_case]
