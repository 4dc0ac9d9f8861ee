"""The notifier: makes messages to the admins of what they are to be told, through our own engine."""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from ...kernel.clock import Clock
from ...model.errors import CallerError
from ...store.port import Row, Step, Store, TableRows, WriteConflict
from ..reply_port import ReplyPort
from .reasons import format_escalation

PAGE = 50
LOOK = 1.0  # seconds between two looks


class AdminNotifier:
    """An actor; one step tells one page. A notice and its messages are one transaction."""

    name = "notifier"

    def __init__(self, store: Store, clock: Clock, voice: ReplyPort, admins: Sequence[str]) -> None:
        self._store = store
        self._clock = clock
        self._voice = voice
        self._admins = [admin.partition(":")[::2] for admin in admins]

    async def step(self) -> float:
        """Tell what is new. Without admins notices wait, and are listed all the same."""
        if not self._admins:
            return 60.0
        page = await self._store.read("notice_unsent", limit=PAGE)
        for row in page:
            await self._tell(row)
        if page:
            await self._store.hint()
        return 0.0 if len(page) == PAGE else LOOK

    async def _tell(self, row: Row) -> None:
        now = self._clock.now()
        case = await self._store.read("case_of_key", tenant=row["tenant"], key=row["key"])
        facts = orjson.loads(row["facts"]) | ({"case": case[0]["id"]} if case else {})
        text = format_escalation({**facts, "reason": row["reason"]})
        tasks, rows, problems = [], [], []
        for channel, to in self._admins:
            try:
                task, message = await self._voice.prepare(
                    channel, to, text, tenant=row["tenant"], ordering_key=f"notices:{to}", now=now
                )
            except CallerError as error:
                problems.append(f"{channel}:{to}: {error.problem}")
                continue
            tasks.append(task)
            rows.append(message)
        sent = {"id": row["id"], "at": now, "problem": "; ".join(problems)[:500] or None}
        made = [TableRows(self._voice.table, self._voice.columns, rows)] if rows else []
        try:
            await self._store.enqueue(tasks, *made, also=[Step("notice_sent", sent, needed=True)])
        except WriteConflict:
            return  # somebody else told it
