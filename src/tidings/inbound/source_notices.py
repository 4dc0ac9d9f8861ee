"""Notices to admins about sources, written in the transaction that caused them.

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
IDENTITY = "inbox.identity_changed"


class SourceNotice(NamedTuple):
    """A problem that an admin should know, with its remedy."""

    type: str
    tenant: str
    source: str
    problem: str
    remedy: str
    about: str = ""  # the deduplication key; default: the source


NoticeSteps = Callable[[SourceNotice], Sequence[Step]]


def notice_event_steps(notice: SourceNotice) -> Sequence[Step]:
    """Return the steps that publish a notice as an event to all subscribers."""
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
