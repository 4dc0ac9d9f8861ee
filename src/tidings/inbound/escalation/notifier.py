"""The notifier: sends notices to the admins as outbound messages."""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from ...kernel.clock import Clock
from ...model.errors import CallerError
from ...store.port import Row, Step, Store, TableRows, WriteConflict
from ..reply_port import ReplyPort
from .reasons import format_escalation

PAGE = 50
LOOK = 1.0  # seconds between two steps


class AdminNotifier:
    """An actor; one step sends one page. A notice and its messages share one transaction."""

    name = "notifier"

    def __init__(self, store: Store, clock: Clock, reply_port: ReplyPort, admins: Sequence[str]) -> None:
        self._store = store
        self._clock = clock
        self._reply_port = reply_port
        self._admins = [admin.partition(":")[::2] for admin in admins]

    async def step(self) -> float:
        """Send new notices; returns the wait in seconds. Without admins, notices are only listed."""
        if not self._admins:
            return 60.0
        page = await self._store.read("notice_unsent", limit=PAGE)
        for row in page:
            await self._send(row)
        if page:
            await self._store.hint()
        return 0.0 if len(page) == PAGE else LOOK

    async def _send(self, row: Row) -> None:
        now = self._clock.now()
        case = await self._store.read("case_of_key", tenant=row["tenant"], key=row["key"])
        facts = orjson.loads(row["facts"]) | ({"case": case[0]["id"]} if case else {})
        text = format_escalation({**facts, "reason": row["reason"]})
        tasks, rows, problems = [], [], []
        for channel, to in self._admins:
            try:
                task, message = await self._reply_port.prepare(
                    channel, to, text, tenant=row["tenant"], ordering_key=f"notices:{to}", now=now
                )
            except CallerError as error:
                problems.append(f"{channel}:{to}: {error.problem}")
                continue
            tasks.append(task)
            rows.append(message)
        sent = {"id": row["id"], "at": now, "problem": "; ".join(problems)[:500] or None}
        made = [TableRows(self._reply_port.table, self._reply_port.columns, rows)] if rows else []
        try:
            await self._store.enqueue(tasks, *made, also=[Step("notice_sent", sent, needed=True)])
        except WriteConflict:
            return  # another process sent it
