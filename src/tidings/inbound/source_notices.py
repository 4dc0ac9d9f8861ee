"""Notices: what an admin must know about what comes in, written with the change it tells of.

By default a notice is an event for subscribers; pass other `NoticeSteps` to notify admins directly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import orjson

from ..store.port import Step

FAILING = "source.failing"
OVERRUN = "source.overrun"
GAP = "source.gap"
CHANGED = "inbox.changed"


class SourceNotice(NamedTuple):
    """One thing an admin must know, and what to do about it."""

    type: str
    tenant: str
    source: str
    problem: str
    remedy: str
    about: str = ""  # what is told once; the source, where nothing is said


NoticeSteps = Callable[[SourceNotice], Sequence[Step]]


def notice_event_steps(notice: SourceNotice) -> Sequence[Step]:
    """As an event: durable, retried, for everybody who listens."""
    body = {"source": notice.source, "problem": notice.problem, "remedy": notice.remedy}
    return [
        Step(
            "outbox_add",
            {
                "at": None, "tenant": notice.tenant, "type": notice.type, "subject": notice.source,
                "target": None, "body": orjson.dumps(body).decode(),
            },
        )
    ]  # fmt: skip
