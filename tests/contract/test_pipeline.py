"""What becomes of a message: each row of the decision table (D16), on both databases, with several speakers."""

from __future__ import annotations

import pytest

from tidings.kernel.clock import ManualClock
from tidings.store.port import Store

from .squad import FRI, SAT, SUN, PlainMind, Squad

NIGHT = "." * 24 + "c" * 24


@pytest.fixture(params=["plain", "langgraph"])
def how(request: pytest.FixtureRequest) -> str:
    """Both runners of the graph."""
    return str(request.param)


async def test_a_complete_request_is_done_once_and_summed_up(
    store: Store, clock: ManualClock, how: str
) -> None:
    """Valid: ready, executing, completed once all commands are confirmed; then a summary (D10, D11, D16)."""
    squad = await Squad(store, clock, how=how).open()
    said = await squad.talk(("ann", f"add {SAT} 1800-0600"))

    assert said == ["Done:\n✓ a crew for 34, Sat 16 Jan 1800-0600"]
    assert await squad.day(SAT, "34") == NIGHT
    assert await squad.states() == ["completed"]
    assert await squad.decisions() == ["started"]
