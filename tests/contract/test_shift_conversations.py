"""The rules in the whole pipeline: people talk as they do, and the calendar is right afterwards."""

from __future__ import annotations

from tidings.inbound.language.rule_interpreter import RuleInterpreter
from tidings.kernel.clock import ManualClock
from tidings.store.port import Store

from .shift_harness import FRI, SAT, SUN, Squad


async def test_a_chat_by_several_speakers_ends_in_the_right_calendar(store: Store, clock: ManualClock) -> None:
    """D6, D7, D10: requests, noise, a question answered by another member, two squads."""
    squad = await Squad(store, clock, rules=RuleInterpreter()).open()

    await squad.talk(
        ("ann", "we have a crew tonight"),
        ("ben", "thanks for covering last night!"),
        ("ann", "we can cover saturday"),
        ("ben", "42 has a crew sunday 6p-6a"),
        ("abe", "till 9? who ate my sandwich"),
        ("abe", "night"),
        ("bea", "scratch our sunday 0000-0600"),
        ("ann", "don't remove us tonight"),
    )

    assert await squad.day(FRI, "34") == "." * 24 + "c" * 24
    assert await squad.day(SAT, "34") == "." * 24 + "c" * 24
    assert await squad.day(SUN, "42") == "." * 24 + "c" * 12 + "." * 12


async def test_an_uncertain_request_is_executed_only_after_confirmation(store: Store, clock: ManualClock) -> None:
    """D7: two things in one breath are read back; another member's yes is enough, and a no drops it."""
    squad = await Squad(store, clock, rules=RuleInterpreter()).open()

    asked = await squad.talk(("ann", "no crew saturday night but we can do sunday night, add us"))

    assert "I understood:" in asked[-1] and "no crew for 34, Sat 16 Jan 1800-0600" in asked[-1]
    assert await squad.day(SUN, "34") == "." * 48
    await squad.talk(("abe", "yes"))
    assert await squad.day(SAT, "34") == "." * 24 + "n" * 24
    assert await squad.day(SUN, "34") == "." * 24 + "c" * 24

    await squad.talk(("ben", "no crew saturday night but we can do sunday night, add us"), ("bea", "nope"))

    assert await squad.day(SUN, "42") == "." * 48
