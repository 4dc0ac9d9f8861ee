"""A clock that was set back: what was to happen at once, or a while later, must not wait until it catches up.

The database's time went back if it is behind the latest time that the database has seen. Instants that were
counted from that time move by the difference, in one transaction: what was accepted to be sent at once, waits
between attempts, rate-limit slots, breakers, throttled channels, leases. Instants that people gave stay: a
message for 09:00 is not sent before 09:00, and an occurrence of a schedule that was made is not made again.
"""

from __future__ import annotations

from ..model.task import NodeId
from ..model.time import SECOND, micros
from ..observability.events import ClockSetBack, Emit
from ..store.port import Step, Store
from .clock import NOTED_DRIFT

_MOVED = (
    "clock_back_tasks", "clock_back_marks", "clock_back_queues", "clock_back_rate_limits",
    "clock_back_recipient_rate_limits",
    "clock_back_maintenance", "clock_back_destinations", "clock_back_broadcasts", "clock_back_sources",
    "clock_back_model_endpoints", "clock_back_api_keys", "clock_back_jobs", "clock_back_job_types",
    "clock_back_job_systems", "clock_back_job_records",
)  # fmt: skip


async def apply_clock_change(store: Store, me: NodeId, emit: Emit) -> None:
    """Move what was counted from a later time, if the clock was set back since."""
    [seen] = await store.read("clock_high")
    back, least = seen["high"] - seen["now"], micros(NOTED_DRIFT)
    if back <= least:
        return
    known = {"at": seen["now"], "back": back, "least": least, "me": me}
    steps = [Step("clock_back", known), *(Step(name, known, only_if=0) for name in _MOVED)]
    first, tasks, *_ = await store.write(steps)
    if first:
        emit(ClockSetBack(back / SECOND, len(tasks)))
