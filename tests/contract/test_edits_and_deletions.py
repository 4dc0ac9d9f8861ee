"""Edits and deletes of messages that were worked through: people hear what was done and what was not."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from tidings.inbound.domain import IncomingKind
from tidings.inbound.workflow.graph import ReadDay
from tidings.inbound.workflow.replay import MemoryWorkflowRepository, ReplayClock, changed, replay
from tidings.inbound.workflow.service import source_notice_steps
from tidings.kernel.clock import ManualClock
from tidings.store.port import Step, Store
from tidings.store.sqlite import SqliteStore

from .shift_harness import FRI, SAT, SUN, Squad
from .test_pipeline_crashes import Gone, Mortal, reborn

NIGHT, FREE = "." * 24 + "c" * 24, "." * 48
DONE = "Done:\n✓ a crew for 34, Sat 16 Jan 1800-0600"
STAYS = (
    "Ann's message was {} after I acted on it. Nothing has been undone:\n"
    "✓ a crew for 34, Sat 16 Jan 1800-0600\n"
    "If you need something else, please send a new message."
)


@pytest.fixture
async def quick(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Store]:
    """One store, for what writes nothing that the others do not write on both."""
    made = SqliteStore(tmp_path / "tidings.db", now=clock.now, inline=True)
    await made.open()
    yield made
    await made.close()


async def said(squad: Squad, *lines: tuple[str, str]) -> list[str]:
    """Lines with the ids m1, m2 and so on."""
    return await squad.talk(*lines)


async def edits(squad: Squad, original: str, text: str, *, who: str = "ann") -> list[str]:
    """Somebody edits a message; gives what the bot says to it."""
    before = len(squad.chat)
    await squad.hears(who, text, kind=IncomingKind.EDIT, original=original)
    await squad.settle(seconds=1)
    return squad.chat[before:]


async def deletes(squad: Squad, original: str) -> list[str]:
    """A message is deleted; on some platforms nobody says by whom."""
    before = len(squad.chat)
    await squad.hears("", "", kind=IncomingKind.DELETE, original=original)
    await squad.settle(seconds=1)
    return squad.chat[before:]


async def test_an_edit_or_deletion_of_an_executed_request_is_reported(store: Store, clock: ManualClock) -> None:
    """The group and an admin hear what was done; nothing is undone or booked by itself (D11, D12)."""
    squad = await Squad(store, clock).open()
    await said(squad, ("ann", f"add {SAT} 1800-0600"))

    assert await edits(squad, "m1", f"add {SUN} 1800-0600") == [STAYS.format("edited")]
    assert await deletes(squad, "m1") == [STAYS.format("deleted")]

    assert (await squad.day(SAT, "34"), await squad.day(SUN, "34")) == (NIGHT, FREE)
    assert await squad.decisions() == ["started", "changed", "changed"]
    (page,) = squad.pages  # the second one is counted, not told again
    assert f"new text: 'add {SUN} 1800-0600'" in page
    assert "nothing was undone: a crew for 34, Sat 16 Jan 1800-0600: done" in page
    assert f"Last message: add {SAT} 1800-0600" in page and "User: Ann" in page


async def test_an_edit_that_asks_for_the_same_is_ignored(quick: Store, clock: ManualClock) -> None:
    """A slip of the pen that was mended is nobody's business."""
    squad = await Squad(quick, clock).open()
    await said(squad, ("ann", f"add {SAT} 1800-0600"))

    assert await edits(squad, "m1", f"please add 34 {SAT} 1800-0600 thanks", who="ann") != []
    assert await edits(squad, "m1", f"Add {SAT} 1800-0600!") == []
    assert await edits(squad, "m1", f"add {SAT} 1800-0600 thanks") == []


async def test_an_edit_of_an_open_request_replaces_it(store: Store, clock: ManualClock) -> None:
    """Nothing was done yet: what is written now counts, and the old day is asked for no more."""
    squad = await Squad(store, clock).open()
    await said(squad, ("ann", f"add {SAT}"))

    answers = await edits(squad, "m1", f"add {SUN} 1800-0600")

    assert answers == ["Done:\n✓ a crew for 34, Sun 17 Jan 1800-0600"]
    assert (await squad.day(SAT, "34"), await squad.day(SUN, "34")) == (FREE, NIGHT)
    assert await squad.states() == ["cancelled", "completed"]
    assert await deletes(squad, "m1") == [STAYS.format("deleted").replace("Sat 16", "Sun 17")]


async def test_an_open_request_that_is_edited_away_or_deleted_is_dropped(quick: Store, clock: ManualClock) -> None:
    """Nobody else had a word in it."""
    squad = await Squad(quick, clock).open()
    await said(squad, ("ann", f"add {SAT}"))
    assert await deletes(squad, "m1") == ["OK, I have dropped the request."]
    await said(squad, ("ann", f"add {SUN}"))
    assert await edits(squad, "m3", "who wants pizza?") == ["OK, I have dropped the request."]

    assert await squad.states() == ["cancelled", "cancelled"]
    assert await said(squad, ("abe", "1800-0600")) == []


async def test_a_deletion_does_not_drop_a_request_that_others_answered(quick: Store, clock: ManualClock) -> None:
    """A squad owns its requests; the speaker is told how to drop it (D6)."""
    squad = await Squad(quick, clock).open()
    await said(squad, ("ann", f"add {SAT}"), ("abe", "1800"))

    assert await deletes(squad, "m1") == [
        "Ann's message was deleted, but the request is still open (a crew for 34 on Sat 16 Jan from 1800). "
        "Say 'never mind' to drop it, or tell me what you need instead."
    ]
    assert await edits(squad, "m2", "1900-0600", who="abe") == ["Done:\n✓ a crew for 34, Sat 16 Jan 1900-0600"]


async def test_an_edit_that_becomes_a_request_is_handled(quick: Store, clock: ManualClock) -> None:
    """Nothing had come of it, so it counts as newly said; by whoever is on the roster still (D5)."""
    squad = await Squad(quick, clock).open()
    await said(squad, ("ann", "ad crew"), ("ben", "morning"), ("ann", f"add 99 {FRI} 1800-0600"))
    assert await edits(squad, "m1", f"add {SAT} 1800-0600") == [DONE]
    assert await edits(squad, "m1", f"add {SUN} 1800-0600") == [STAYS.format("edited")]
    assert await deletes(squad, "m2") == []
    await squad.roster.remove("ann")

    assert await edits(squad, "m3", f"add {SUN} 1800-0600") == []
    assert await squad.day(SUN, "34") == FREE


async def test_a_queued_message_is_handled_with_its_edited_text(store: Store, clock: ManualClock) -> None:
    """Kept, edited, then worked through; or deleted, and never (D8)."""
    squad = await Squad(store, clock).open()
    await store.write([Step("queue_pause", {"name": "calendar", "reason": "a test"})])
    lines = (
        ("ann", f"add {FRI} 1800-0600"), ("abe", f"add {SAT} 0600-1800"), ("ada", f"add {SUN} 0600-1800"),
    )  # fmt: skip
    await said(squad, *lines)
    assert await squad.decisions() == ["started", "queued", "queued"]

    assert await edits(squad, "m2", f"add {SAT} 1800-0600", who="abe") == []
    assert await deletes(squad, "m3") == []
    [told] = await edits(squad, "m1", f"add {SUN} 1800-0600")
    await store.write([Step("queue_resume", {"name": "calendar"})])
    await squad.settle(seconds=1)
    await squad.settle(seconds=1)

    assert "✗ a crew for 34, Fri 15 Jan 1800-0600 (in progress)" in told, "it is not called done"
    assert (await squad.day(SAT, "34"), await squad.day(SUN, "34")) == (NIGHT, FREE)


async def test_edits_get_no_reply_while_a_person_holds_the_conversation(quick: Store, clock: ManualClock) -> None:
    """The admin is told all the same (D12)."""
    squad = await Squad(quick, clock).open()
    await said(squad, ("ann", f"add {SAT} 1800-0600"), ("ben", f"add {FRI}"), ("bea", "what?"), ("ben", "what?"))
    (case,) = (await squad.cases.page()).items
    await squad.cases.claim(case["id"], "Grace")

    assert await deletes(squad, "m1") == []
    assert "a message was deleted after it had been acted on" in squad.pages[-1]


async def test_a_crash_at_any_commit_of_an_edit_reports_once(quick: Store, clock: ManualClock) -> None:
    """None missing, none doubled (D11, E1)."""
    squad = await Squad(quick, clock).open()
    await said(squad, ("ann", f"add {SAT} 1800-0600"), ("ben", f"add {SAT}"))
    await squad.hears("ann", f"add {SUN} 1800-0600", kind=IncomingKind.EDIT, original="m1")
    await squad.hears("ben", f"add {SUN} 1800-0600", kind=IncomingKind.EDIT, original="m2")
    for left in range(12):
        mortal = Mortal(quick)
        await reborn(squad, mortal)
        mortal.left = left
        with suppress(Gone):
            await squad.settle(seconds=1)
        await reborn(squad, quick)
        for _ in range(2):
            await squad.worker.reaper.step()
            await squad.settle(seconds=60)

    texts = list({message.id: message.text for message in squad.channels["chat"].sent}.values())
    assert texts.count(STAYS.format("edited")) == 1
    assert texts.count("Done:\n✓ a crew for 42, Sun 17 Jan 1800-0600") == 1
    assert await squad.states() == ["completed", "cancelled", "completed"]


async def test_a_replay_of_edits_gives_the_same_result(quick: Store, clock: ManualClock) -> None:
    """What stood in the place of something else does so again; what came too late changes nothing."""
    squad = await Squad(quick, clock).open()
    await said(squad, ("ann", f"add {SAT}"))
    await edits(squad, "m1", f"add {SUN} 1800-0600")
    await edits(squad, "m1", f"add {FRI} 1800-0600")
    await said(squad, ("ben", f"add {SAT}"))
    await deletes(squad, "m4")
    await said(squad, ("bea", "1800-0600"))

    from tidings.inbound.pipeline import Pipeline

    def make(book: MemoryWorkflowRepository, then: ReplayClock, read_day: ReadDay) -> Pipeline:
        plain = replace(squad.settings, runner="plain")
        return Pipeline(book, then, plain, rules=squad.rules, interpreter=squad.mind, read_day=read_day)

    compared = await replay(quick, "crew/g1", make, squad.settings)
    assert len(compared) == 4 and changed(compared) == []


def test_late_changes_are_reported_by_edits_and_not_by_sources(clock: ManualClock) -> None:
    """An admin is told once, with what was done; subscribers hear of every change."""
    from tidings.inbound.source_notices import CHANGED, SourceNotice
    from tidings.inbound.workflow.settings import WorkflowSettings

    steps = source_notice_steps(WorkflowSettings(enabled=True), clock)(
        SourceNotice(CHANGED, "default", "crew", "p", "r")
    )
    assert [step.name for step in steps] == ["outbox_add"]
