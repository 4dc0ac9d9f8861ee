"""People: cases that are claimed, answered, handed back and closed; notices that are told once (D12)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tidings.inbound.domain import Extraction, InterpreterContext
from tidings.inbound.pipeline import Pipeline
from tidings.inbound.workflow.graph import ReadDay
from tidings.inbound.workflow.replay import MemoryWorkflowRepository, ReplayClock, changed, replay
from tidings.kernel.clock import ManualClock
from tidings.model.errors import Conflict, Invalid, NotFound
from tidings.store.port import Store

from .shift_harness import SAT, SUN, PlainMind, Squad

QUESTION = "Which hours (a crew for 34 on Sat 16 Jan)? For example, 1800-0600 or 'night'."
DONE = "Done:\n✓ a crew for 34, Sat 16 Jan 1800-0600"


async def unclear(store: Store, clock: ManualClock) -> tuple[Squad, str]:
    """A squad whose request a person was called for, and the case."""
    squad = await Squad(store, clock).open()
    await squad.talk(("ann", f"add {SAT}"), ("abe", "what?"), ("ann", "what?"))
    return squad, (await squad.cases.page()).items[0]["id"]


async def test_the_bot_does_not_reply_while_a_person_holds_the_conversation(store: Store, clock: ManualClock) -> None:
    """Claim, answer, hand back; requests said meanwhile are worked through afterwards, talk is not."""
    squad, case = await unclear(store, clock)
    shown = await squad.cases.claim(case, "Eve")
    assert (shown["state"], shown["claimed_by"]) == ("claimed", "Eve")
    before = len(squad.chat)

    await squad.talk(("ben", f"add {SUN} 0600-1200"), ("abe", "hello"), ("abe", "1800-0600"))
    assert squad.chat[before:] == []
    assert (await squad.decisions())[-3:] == ["kept", "noise", "noise"]

    await squad.cases.answer(case, "Do you mean the night?")
    await squad.settle(seconds=1)
    assert squad.chat[before:] == ["Do you mean the night?"]

    await squad.cases.hand_back(case)
    await squad.settle(seconds=1)
    assert squad.chat[before + 1 :] == ["Done:\n✓ a crew for 42, Sun 17 Jan 0600-1200"]
    assert (await squad.states())[0] == "waiting_for_input"
    assert await squad.talk(("abe", "1800-0600")) == [DONE]
    assert (await squad.cases.show(case))["state"] == "closed"


async def test_case_transitions_depend_on_the_state(store: Store, clock: ManualClock) -> None:
    """Each refusal says what to do; nothing is changed by it."""
    squad, case = await unclear(store, clock)
    with pytest.raises(Conflict, match="claim it first: tidings cases claim"):
        await squad.cases.answer(case, "hi")
    with pytest.raises(Invalid, match="the name is missing or invalid"):
        await squad.cases.claim(case, " ")
    await squad.cases.claim(case, "Eve")
    with pytest.raises(Conflict, match="claimed by Eve"):
        await squad.cases.claim(case, "Mal")
    with pytest.raises(NotFound, match="tidings cases list"):
        await squad.cases.show("nonsense")
    await squad.cases.close(case, note="entered by hand")
    with pytest.raises(Conflict, match="closed"):
        await squad.cases.hand_back(case)
    assert (await squad.states(), (await squad.cases.page()).items) == (["cancelled"], [])


async def test_concurrent_claims_of_a_case_succeed_once(store: Store, clock: ManualClock) -> None:
    """A transition checks the expected state, so the second claim raises Conflict."""
    squad, case = await unclear(store, clock)
    row = await squad.cases._find(case, "default")
    await squad.cases.claim(case, "Eve")
    with pytest.raises(Conflict, match="the case changed in the meantime"):
        steps = squad.cases._steps(row, "claimed", "Mal", None, "claimed", {})
        await squad.cases._once(store.write(steps))
    assert (await squad.cases.show(case))["claimed_by"] == "Eve"


async def test_a_held_message_needs_a_verdict(store: Store, clock: ManualClock) -> None:
    """Handed back as new it opens its own workflow; closed it is left alone (D7)."""
    from .test_pipeline import Silent, Unsure

    squad = await Squad(store, clock, rules=Unsure(), mind=Silent("model")).open()
    await squad.talk(("ann", f"add {SAT}"), ("abe", f"add {SUN} 0600-1200"), ("ann", "hello"))
    talk, other = (await squad.cases.page()).items
    with pytest.raises(Invalid, match="needs a verdict"):
        await squad.cases.hand_back(other["id"])
    await squad.cases.hand_back(other["id"], verdict="new")
    await squad.cases.close(talk["id"])
    await squad.settle(seconds=1)

    assert squad.chat[1:] == ["Done:\n✓ a crew for 34, Sun 17 Jan 0600-1200"]
    assert await squad.decisions() == ["started", "started", "by_hand"]


async def test_a_notice_is_sent_once_until_it_is_acknowledged(store: Store, clock: ManualClock) -> None:
    """Deduplicated and acknowledged; a case that nobody takes is told again, once (D12)."""
    squad, case = await unclear(store, clock)
    await squad.talk(("abe", "what?"), ("abe", "what?"))
    assert len(squad.pages) == 1 and case in squad.pages[0]
    (notice,) = (await squad.cases.notices()).items
    assert notice["times"] == 3

    await squad.settle(seconds=3601)
    await squad.settle(seconds=3601)
    assert len(squad.pages) == 2 and "a case was not claimed in time" in squad.pages[1]

    await squad.cases.acknowledge(notice["id"], "Eve")
    with pytest.raises(NotFound):
        await squad.cases.acknowledge(notice["id"], "Eve")
    await squad.talk(("abe", "what?"))
    assert len(squad.pages) == 3


async def test_an_idle_claimed_case_is_reopened(store: Store, clock: ManualClock) -> None:
    """Held for longer than the idle time: told, and the bot goes on (no trap)."""
    squad, case = await unclear(store, clock)
    await squad.cases.claim(case, "Eve")
    await squad.talk(("ben", f"add {SUN} 1800-0600"))
    await squad.settle(seconds=86_401)
    await squad.settle(seconds=1)

    assert (await squad.cases.show(case))["state"] == "open"
    assert squad.chat[-1] == "Done:\n✓ a crew for 42, Sun 17 Jan 1800-0600"


async def test_a_replay_shows_what_would_change_and_writes_nothing(store: Store, clock: ManualClock) -> None:
    """A past conversation offline: the same mind changes nothing, another one is seen in commands."""
    squad = await Squad(store, clock).open()
    await squad.talk(
        ("ann", f"add {SAT}"), ("ben", "hello"), ("abe", "1800-0600"), ("ben", f"add {SAT} 0600-1200"),
        ("ann", f"add {SAT} 1800-2200"),
    )  # fmt: skip
    handled_messages = await squad.handled_messages()

    class Other(PlainMind):
        async def extract(self, scene: InterpreterContext) -> Extraction:
            found = await super().extract(scene)
            return found._replace(requests=[r._replace(end="2200" if r.end else None) for r in found.requests])

    for mind, differing in ((PlainMind(), []), (Other(), ["1800-0600", f"add {SAT} 0600-1200"])):

        def make(
            book: MemoryWorkflowRepository, then: ReplayClock, read_day: ReadDay, mind: PlainMind = mind
        ) -> Pipeline:
            plain = replace(squad.settings, runner="plain")
            return Pipeline(book, then, plain, rules=mind, interpreter=mind, read_day=read_day)

        compared = await replay(store, "crew/g1", make, squad.settings)
        assert [each.text for each in changed(compared)] == differing
    assert await squad.handled_messages() == handled_messages


@pytest.mark.parametrize("last", ["1800-0600", "never mind"])
async def test_an_unclaimed_case_is_closed_when_the_squad_clarifies_it(
    store: Store, clock: ManualClock, last: str
) -> None:
    """D12: nobody is called for what was made clear, or dropped, meanwhile; who holds a case keeps it."""
    squad = await Squad(store, clock).open()
    await squad.talk(("ann", f"add {SAT}"), ("abe", "what?"), ("ann", "what?"))
    assert [case["reason"] for case in (await squad.cases.page()).items] == ["unclear"]

    await squad.talk(("abe", last))

    assert (await squad.cases.page()).items == []
    assert (await squad.cases.page(state="closed")).items[0]["to_do"] is None
