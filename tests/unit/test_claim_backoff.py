"""Claim backoff: when all nodes hear the same hint, they do not query the database at the same time."""

from __future__ import annotations

from tidings.kernel.claim_backoff import ClaimBackoff
from tidings.kernel.clock import ManualClock


class Certain(ManualClock):
    """Chance always gives its most."""

    def chance(self) -> float:
        """Just under one."""
        return 0.999


def test_a_node_that_is_alone_waits_for_nobody() -> None:
    """Without company there is nobody to let go first, however often nothing was found."""
    stagger = ClaimBackoff(Certain(), lambda: False)
    for _ in range(10):
        stagger.note(found=False)
    assert (stagger.seconds(), stagger.late()) == (0.0, 0.0)


def test_whoever_found_something_last_follows_the_next_hint_at_once() -> None:
    """Within 3 ms, and punctually where the instant is known."""
    stagger = ClaimBackoff(Certain(), lambda: True)
    stagger.note(found=False)
    stagger.note(found=True)
    assert 0 < stagger.seconds() <= 0.003
    assert stagger.late() == 0.0


def test_empty_claims_back_off_up_to_a_tenth_of_a_second() -> None:
    """So that a quiet fleet costs little more than one node; and it is never long."""
    stagger = ClaimBackoff(Certain(), lambda: True)
    waits = []
    for _ in range(12):
        stagger.note(found=False)
        waits.append(stagger.late())
    assert waits == sorted(waits)
    assert waits[0] < waits[3] < waits[-1] < 0.1


def test_a_node_with_an_empty_claim_stays_in_backoff_until_it_claims_something() -> None:
    """Then a look is worth more than a claim; alone, nobody is ever behind."""
    stagger, alone = ClaimBackoff(Certain(), lambda: True), ClaimBackoff(Certain(), lambda: False)
    assert not stagger.is_behind
    for one in (stagger, alone):
        one.note(found=False)
    assert stagger.is_behind and not alone.is_behind
    stagger.note(found=True)
    assert not stagger.is_behind
