"""The inbox: what came in is kept, handled in order, and its state always has a reason (D2, D3, D14)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tidings.inbound.admission import SenderLookup, admit, find_impersonation
from tidings.inbound.domain import ConversationMessage, IncomingKind, IncomingMessage, Speaker
from tidings.inbound.inbox import STATES
from tidings.inbound.ingestion import IngestionFailed
from tidings.inbound.message_handler import (
    FOREIGN_CHANGE,
    MARKED,
    NO_WORKFLOW,
    MessageChange,
    NoWorkflowProcessor,
    end_message_step,
    may_change,
)
from tidings.inbound.sources.settings import SourceSettings
from tidings.kernel.clock import ManualClock
from tidings.kernel.pruner import Pruner, RetentionPolicy
from tidings.model.errors import Conflict, Invalid, NotFound
from tidings.model.outcome import Done, Outcome, Reject, Retry
from tidings.model.task import Category
from tidings.model.time import HOUR, SECOND
from tidings.store.port import Store, WriteConflict

from .inbox_node import ADA, BEN, CREW, InboxNode, said
from .test_sources import refuse_poison

OTHER_GROUP = "sent in a group that does not belong to this source"


@pytest.fixture
async def world(store: Store, clock: ManualClock) -> InboxNode:
    """A node that hears the crew."""
    return await InboxNode(store, clock).open()


async def test_a_duplicate_inbound_message_is_one_row_and_one_task(world: InboxNode) -> None:
    """Unique by source and platform id: in one page, later, from another source (D2)."""
    one = said(1, world.second())
    await world.take(one, one)
    await world.take(one, said(2, world.second()))
    other = SourceSettings("other", "groupme", group="9", token="t" * 16)
    await world.take(one._replace(source="other"), source=other)

    assert [(row["source"], row["platform_id"]) for row in await world.all()] == [
        ("crew", "1"), ("crew", "2"), ("other", "1"),
    ]  # fmt: skip
    await world.drain()
    assert len(world.hears.items) == 3


async def test_a_message_is_stored_and_shown_with_its_history(world: InboxNode) -> None:
    """Tenant, conversation, sender, text, times, the payload as it came, every move (D14)."""
    text = "Crew für Samstag 🚒 " + "x" * 10_000 + "\x00 \ud800"
    await world.take(said(1, world.second(), text, raw={"a": [1, "\x00"]}, reply_to="0", attachments=2))
    await world.drain()

    row = await world.inbox.show((await world.all())[0]["id"])

    assert row["text"] == text.replace("\x00", "\ufffd").replace("\ud800", "?")
    assert (row["conversation"], row["chat"], row["sender"], row["name"]) == ("crew/9", "9", ADA, "Ada")
    assert (row["reply_to"], row["attachments"], row["attempts"]) == ("0", 2, 1)
    assert row["raw"] == {"a": [1, "\ufffd"]}
    assert (row["state"], row["reason"]) == ("done", "heard")
    assert [step["state"] for step in row["history"]] == ["processing", "done"]
    assert world.hears.items[0].speaker == Speaker(ADA, "Ada", "42", "member")


async def test_without_workflows_a_message_is_done_and_says_so(world: InboxNode) -> None:
    """The default is a behaviour of its own."""
    item = ConversationMessage("", "", "", "", "", Speaker("", "", "", ""), "", 0)
    assert await NoWorkflowProcessor().work(item) == Done(NO_WORKFLOW)


async def test_messages_of_one_conversation_go_one_at_a_time_in_order(world: InboxNode) -> None:
    """A failed one is tried three times with a delay and holds its conversation; another flows (D3)."""
    failing = {"1": 3}

    def script(item: ConversationMessage) -> Outcome:
        if failing.get(item.platform_id, 0) > 0:
            failing[item.platform_id] -= 1
            return Retry(Category.TEMPORARY, "the calendar is down")
        return Done()

    world.hears.script = script
    await world.take(*(said(n, world.second()) for n in (1, 2, 3)))
    elsewhere = SourceSettings("crew", "telegram", token="t" * 16)
    await world.take(said(9, world.second(), conversation="7"), source=elsewhere)
    states = {row["platform_id"]: row["state"] for row in await world.all()}
    assert states == {"1": "pending", "2": "received", "3": "received", "9": "pending"}

    await world.drain()
    assert [item.platform_id for item in world.hears.items] == ["1", "9"]
    await world.step(seconds=34)
    assert [item.attempt for item in world.hears.items if item.platform_id == "1"] == [1, 2]
    await world.step(seconds=60)
    assert len(world.hears.items) == 3, "the second wait is longer"
    await world.step(seconds=73)
    assert world.hears.items[-1].is_last_try
    await world.drain()

    assert [item.platform_id for item in world.hears.items] == ["1", "9", "1", "1", "2", "3"]
    one = (await world.all())[0]
    assert (one["state"], one["reason"], one["attempts"]) == ("failed", "the calendar is down", 3)
    told = [row for row in await world.store.read("outbox_page", limit=10) if row["type"] == "inbox.failed"]
    assert [row["subject"] for row in told] == [one["id"]], "an admin is told, once"


async def test_a_failed_message_can_be_retried(world: InboxNode) -> None:
    """With all its tries; nothing else can be retried."""
    world.hears.script = lambda _item: Reject(Category.PERMANENT, "no such squad")
    await world.take(said(1, world.second()))
    await world.drain()
    id_ = (await world.all(state="failed"))[0]["id"]
    world.hears.script = lambda _item: Done("booked")

    assert (await world.inbox.retry(id_))["state"] == "pending"
    await world.drain()

    row = await world.inbox.show(id_)
    assert (row["state"], row["reason"]) == ("done", "booked")
    with pytest.raises(Conflict, match="the message is done"):
        await world.inbox.retry(id_)
    with pytest.raises(NotFound):
        await world.inbox.retry("nobody")
    with pytest.raises(Invalid, match="unknown state 'lost'"):
        await world.inbox.page(state="lost")


async def test_a_message_older_than_a_day_expires_with_a_reason(world: InboxNode) -> None:
    """By the platform's time: on arrival, or when its turn comes too late; nothing is deleted (D2)."""
    old = world.second() - 25 * HOUR
    await world.take(said(1, old), said(2, world.second()))
    first, second = await world.all()
    assert (first["state"], second["state"]) == ("expired", "pending")
    assert first["reason"] == "it was older than 1 d on arrival"

    await world.step(seconds=25 * 3600)

    assert world.hears.items == []
    second = (await world.all())[1]
    assert (second["state"], second["reason"]) == (
        "expired", "it expired before it was handled",
    )  # fmt: skip
    assert (await world.inbox.show(second["id"]))["history"][-1]["state"] == "expired"


async def test_the_inbox_outlives_its_tasks(world: InboxNode) -> None:
    """The kernel forgets what ended long ago; the inbox keeps it with its state and reason (D2)."""
    await world.take(said(1, world.second()))
    await world.drain()
    await world.take(said(2, world.second()))
    await world.step(seconds=25 * 3600)
    world.clock.advance(hours=24 * 100)
    retention = RetentionPolicy(history=timedelta(days=30), ended=timedelta(days=90))
    pruner = Pruner(
        world.store,
        world.clock,
        retention,
        emit=world.events.append,
        me=lambda: world.worker.node.id,
        contents=("prune_message",),
    )
    assert (await pruner.step()).tasks == 2

    assert [(row["state"], row["reason"]) for row in await world.all()] == [
        ("done", "heard"),
        ("expired", "it expired before it was handled"),
    ]


async def test_a_message_ended_with_its_effects_is_not_handled_again(world: InboxNode) -> None:
    """The process dies between the handler's transaction and the settling: the second run does nothing."""
    await world.take(said(1, world.second()))
    world.hears.script = lambda _item: Retry(Category.TEMPORARY, "died here")
    await world.step()
    item = world.hears.items[0]
    await world.store.write([end_message_step(item, "booked")])
    with pytest.raises(WriteConflict):
        await world.store.write([end_message_step(item, "booked twice")])

    await world.step(seconds=40)

    assert len(world.hears.items) == 1
    row = (await world.all())[0]
    assert (row["state"], row["reason"]) == ("done", "booked")


async def test_edits_and_deletes_mark_the_original(world: InboxNode) -> None:
    """What waits is handled as it reads now, or not at all; the rows stay (reference, section 8)."""
    world.hears.script = lambda item: Done(item.text)
    await world.take(said(1, world.second()), said(2, world.second()), said(3, world.second()))
    later = world.second(5)
    await world.take(
        said(11, later, "message 2, mended", kind=IncomingKind.EDIT, original="2"),
        said(12, later, "", kind=IncomingKind.DELETE, original="3"),
        said(13, later, "of nothing", kind=IncomingKind.EDIT, original="99"),
    )
    await world.drain()

    rows = {row["platform_id"]: row for row in await world.all()}
    assert [item.text for item in world.hears.items] == ["message 1", "message 2, mended"]
    assert rows["2"]["text"] == "message 2", "what was said first is kept"
    assert (rows["3"]["state"], rows["3"]["reason"]) == (
        "skipped", "its sender deleted it before it was handled",
    )  # fmt: skip
    assert {(rows[n]["state"], rows[n]["reason"]) for n in ("11", "12", "13")} == {("done", MARKED)}


@pytest.mark.parametrize(
    "stranger", [{"sender": "77"}, {"conversation": "10"}, {"sender": ""}], ids=["author", "chat", "nobody"]
)
async def test_an_edit_of_another_persons_message_is_recorded_and_ignored(
    world: InboxNode, stranger: dict[str, Any]
) -> None:
    """An edit counts for its author's own message in its own conversation, before and after it is handled."""
    await world.take(said(1, world.second()))
    for number in (11, 12):
        await world.take(
            said(number, world.second(number), "forged", kind=IncomingKind.EDIT, original="1")._replace(**stranger)
        )
        await world.drain()

    rows = {row["platform_id"]: row for row in await world.all()}
    assert [item.text for item in world.hears.items] == ["message 1"]
    reason = OTHER_GROUP if "conversation" in stranger else FOREIGN_CHANGE
    assert {(rows[n]["state"], rows[n]["reason"]) for n in ("11", "12")} == {("skipped", reason)}
    assert await changes(world) == []


@pytest.mark.parametrize("stranger", [{"sender": "77"}, {"conversation": "10"}], ids=["author", "chat"])
async def test_a_deletion_of_another_persons_message_is_recorded_and_ignored(
    world: InboxNode, stranger: dict[str, Any]
) -> None:
    """The message is handled, and nobody is told that it was deleted."""
    await world.take(said(1, world.second()))
    for number in (11, 12):
        forged = said(number, world.second(number), "", kind=IncomingKind.DELETE, original="1")
        await world.take(forged._replace(**stranger))
        await world.drain()

    rows = {row["platform_id"]: row for row in await world.all()}
    assert [item.text for item in world.hears.items] == ["message 1"]
    reason = OTHER_GROUP if "conversation" in stranger else FOREIGN_CHANGE
    assert {(rows[n]["state"], rows[n]["reason"]) for n in ("11", "12")} == {("skipped", reason)}
    assert await changes(world) == []


@pytest.mark.parametrize(
    ("sender", "chat", "text", "may"),
    [
        ("ada", "9", "new", True),
        ("ada", "9", None, True),
        ("", "9", None, True),
        ("", "9", "new", False),
        ("bob", "9", None, False),
        ("ada", "10", "new", False),
        ("", "10", None, False),
    ],
)
def test_authors_may_edit_and_delete_their_own_messages(sender: str, chat: str, text: str | None, may: bool) -> None:
    """Also on a source that reads several groups."""
    change = MessageChange(2, "id", "default", "crew", f"crew/{chat}", chat, "1", text, 0, sender=sender)

    assert may_change(change, {"sender": "ada", "chat": "9"}) is may


async def test_a_deletion_whose_author_the_platform_does_not_name_counts(world: InboxNode) -> None:
    """In the message's own conversation."""
    await world.take(said(1, world.second()))
    await world.take(said(11, world.second(1), "", kind=IncomingKind.DELETE, original="1", sender=""))
    await world.drain()

    assert world.hears.items == []


async def test_a_change_of_a_handled_message_notifies_once(world: InboxNode) -> None:
    """Nobody acts on it by himself: people are told, and only then (reference, section 8)."""
    await world.take(said(1, world.second()), said(2, world.second()))
    await world.take(said(10, world.second(1), "in time", kind=IncomingKind.EDIT, original="2"))
    await world.drain()
    assert await changes(world) == [], "it was handled as it read then"

    late = world.second(5)
    await world.take(
        said(11, late, "message 1, mended", kind=IncomingKind.EDIT, original="1"),
        said(12, late, "in time", kind=IncomingKind.EDIT, original="2"),
        said(13, late, "", kind=IncomingKind.DELETE, original="1"),
        said(14, late + SECOND, "", kind=IncomingKind.DELETE, original="1"),
    )
    edited, deleted = await changes(world)
    assert "new text: 'message 1, mended'" in edited
    assert "Ada deleted a message; it had already been handled (message 1)" in deleted
    assert "check whether its result is still wanted" in deleted


async def changes(world: InboxNode) -> list[str]:
    """What subscribers hear of changes that came too late."""
    rows = await world.store.read("outbox_page", limit=50)
    return [row["body"] for row in rows if row["type"] == "inbox.changed"]


async def test_an_edit_of_a_message_in_progress_is_too_late(world: InboxNode) -> None:
    """The text was read already, so the change is told."""

    async def edit(item: ConversationMessage) -> Outcome:
        await world.take(said(11, world.second(1), "another", kind=IncomingKind.EDIT, original="1"))
        return Done(item.text)

    world.hears.work = edit  # type: ignore[method-assign]
    await world.take(said(1, world.second()))
    await world.drain()

    assert (await world.all())[0]["reason"] == "message 1"
    assert len(await changes(world)) == 1


async def test_a_skipped_message_can_be_retried_once_its_sender_is_known(world: InboxNode) -> None:
    """Behind what its conversation has in line; by a second person at once, once (D2, D5)."""
    await world.take(said(1, world.second(), sender="4711", name="Cy"), said(2, world.second()))
    id_ = (await world.all(state="skipped"))[0]["id"]
    with pytest.raises(Conflict, match="4711 is not on the roster") as refused:
        await world.inbox.retry(id_)
    assert "tidings roster add 4711" in refused.value.remedy
    await world.roster.put({"sender": "4711", "name": "Cy", "squad": "43"})

    assert (await world.inbox.retry(id_))["state"] == "received"
    with pytest.raises(Conflict, match="the message is received"):
        await world.inbox.retry(id_)
    await world.drain()

    assert [item.platform_id for item in world.hears.items] == ["2", "1"]
    assert (await world.inbox.show(id_))["state"] == "done"


async def test_an_expired_message_can_be_retried(world: InboxNode) -> None:
    """On arrival or in the line: a person's word gives it another day."""
    await world.take(said(1, world.second() - 25 * HOUR), said(2, world.second()))
    await world.step(seconds=25 * 3600)
    for row in await world.all(state="expired"):
        await world.inbox.retry(row["id"])
    await world.drain()
    assert [item.platform_id for item in world.hears.items] == ["1", "2"]


@pytest.mark.parametrize(
    ("more", "reason", "remedy"),
    [
        ({"kind": IncomingKind.SYSTEM}, "sent by the platform", "only messages from people"),
        ({"own": True}, "sent by a bot", "ask a person on the roster to send it"),
        ({"conversation": "8"}, "sent in a group that does not belong", "configure a source for that group"),
        ({"text": "{{@Ben}} no crew"}, "it was sent on behalf of someone else", "without the name in front"),
        ({"kind": IncomingKind.EDIT, "original": "7", "own": True}, "sent by a bot", "ask a person"),
    ],
)
async def test_messages_that_must_not_be_handled_cannot_be_retried(
    world: InboxNode, more: dict[str, Any], reason: str, remedy: str
) -> None:
    """A person's retry goes no further than the rules of the roster, and says what helps instead (D5)."""
    await world.take(said(1, world.second(), **more))
    id_ = (await world.all())[0]["id"]
    with pytest.raises(Conflict, match=f"the message is skipped: {reason}") as refused:
        await world.inbox.retry(id_)
    assert remedy in refused.value.remedy
    assert (await world.all())[0]["state"] == "skipped"


async def test_an_expired_edit_cannot_be_retried(world: InboxNode) -> None:
    """It belongs to a message; what is meant now is said anew (D2)."""
    await world.take(said(1, world.second() - 25 * HOUR, "repaired", kind=IncomingKind.EDIT, original="7"))
    with pytest.raises(Conflict, match="it only changes another message") as refused:
        await world.inbox.retry((await world.all())[0]["id"])
    assert "send a new message" in refused.value.remedy


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"kind": IncomingKind.SYSTEM}, "sent by the platform"),
        ({"own": True}, "sent by a bot"),
        ({"sender": "4711"}, "unknown sender 4711: not on the roster"),
        ({"sender": ""}, "unknown sender without an id: not on the roster"),
        ({"conversation": "8"}, "sent in a group that does not belong to this source"),
    ],
)
async def test_messages_not_from_people_are_skipped_with_a_reason(
    world: InboxNode, more: dict[str, Any], reason: str
) -> None:
    """System, bot and unknown senders, by ids and never by names (D2, D5, D16)."""
    await world.take(said(1, world.second(), name="Ada", **more))
    row = (await world.all())[0]
    assert (row["state"], row["reason"], row["attempts"]) == ("skipped", reason, 0)
    await world.drain()
    assert world.hears.items == []


async def test_our_own_messages_are_recognized_by_their_id(world: InboxNode, clock: ManualClock) -> None:
    """An account's message comes back in the list under the key that we gave it (D2)."""
    from .kernel_harness import KernelHarness

    outbound = KernelHarness(world.store, clock)
    id_ = await outbound.send()
    await world.take(said(1, world.second(), key=id_), said(2, world.second(), key=f"{id_}.2"), said(3, world.second()))
    assert [(row["state"], row["reason"]) for row in await world.all()] == [
        ("skipped", "sent by Tidings itself"),
        ("skipped", "sent by Tidings itself"),
        ("pending", None),
    ]


async def test_a_sender_removed_from_the_roster_is_skipped(world: InboxNode) -> None:
    """Authority is looked up when the message is handled."""
    await world.take(said(1, world.second(), sender=BEN))
    await world.roster.remove(BEN)
    await world.drain()
    assert (await world.all())[0]["reason"] == "1002 is no longer on the roster"
    assert world.hears.items == []


async def test_a_failed_webhook_is_raised_and_notifies_after_three(world: InboxNode) -> None:
    """The platform calls again, because it is not told that all is well (D15)."""
    await refuse_poison(world.store)
    for n in range(1, 5):
        with pytest.raises(IngestionFailed, match="could not be written"):
            await world.take(said(1, world.second()), said(2, world.second(), "poison"))
        assert len(world.notices) == (n >= 3)
    assert [row["platform_id"] for row in await world.all()] == ["1"]
    assert (await world.source())["failures"] == 4
    await world.take(said(3, world.second()))
    assert (await world.source())["failures"] == 0


async def test_a_long_list_is_read_in_pages(world: InboxNode) -> None:
    """Newest first, by state, source, conversation and sender."""
    await world.take(*(said(n, world.second(), sender=BEN if n % 2 else ADA) for n in range(1, 8)))
    first = await world.inbox.page(limit=3)
    second = await world.inbox.page(limit=3, after=first.next)
    third = await world.inbox.page(limit=3, after=second.next)
    got = [row["platform_id"] for page in (first, second, third) for row in page.items]
    assert got == ["7", "6", "5", "4", "3", "2", "1"]
    assert third.next is None
    assert len(await world.all(sender=BEN)) == 4
    assert len(await world.all(conversation="crew/9", state="received")) == 6
    assert await world.all(tenant="other") == []
    assert all(row["state"] in STATES for row in await world.all())


# -- speaking for somebody else


TESTING = SourceSettings("crew", "groupme", group="9", token="t" * 16, allow_speaking_for=True, testers=(ADA,))


async def test_impersonation_by_a_tester_is_logged(store: Store, clock: ManualClock) -> None:
    """`{{@name}}`: only where the source allows it, by a named tester, on a test system (D5)."""
    world = await InboxNode(store, clock, production=False).open()
    await world.take(said(1, world.second(), "{{@ben}} no crew on Sunday"), source=TESTING)
    await world.take(said(2, world.second(), "{{@nobody}} hello"), source=TESTING)
    await world.take(said(3, world.second(), "{{@Ben}} hello", sender=BEN), source=TESTING)
    await world.take(said(4, world.second(), "{{@Ben}} hello"), source=CREW)
    await world.drain()

    assert [(item.text, item.speaker.name, item.sender) for item in world.hears.items] == [
        ("no crew on Sunday", "Ben", ADA)
    ]
    rows = await world.all()
    assert rows[0]["speaks_for"] == BEN
    assert [row["reason"] for row in rows[1:]] == [
        "nobody on the roster is named 'nobody'",
        "its sender is not a tester",
        "this source does not allow impersonation",
    ]
    log = (await world.roster.log()).items
    assert [(line["what"], line["sender"]) for line in log[:4]] == [
        ("refused", ADA), ("refused", BEN), ("refused", ADA), ("spoke_for", ADA),
    ]  # fmt: skip
    assert "as Ben (1002): no crew on Sunday" in str(log[3]["detail"])


def test_impersonation_is_disabled_in_production() -> None:
    """Whatever the source says."""
    known = SenderLookup(Speaker(ADA, "Ada", "42", "member"), named=(Speaker(BEN, "Ben", "43", "member"),))
    one = IncomingMessage("crew", "1", "9", ADA, "Ada", "{{@Ben}} hello", 10 * SECOND)
    filed = admit(one, TESTING, known, now=20 * SECOND, production=True)
    assert (filed.ended, filed.reason) == ("skipped", "impersonation is disabled in production")
    assert filed.note is not None
    assert admit(one, TESTING, known, now=20 * SECOND, production=False).speaks_for == BEN


@pytest.mark.parametrize("text", ["@ben hi", "{{ben}} hi", "hello {{@ben}}", "{{@}} hi", "{{@a{b}}} hi"])
def test_impersonation_needs_the_mark_at_the_start(text: str) -> None:
    """Anything else is plain text."""
    assert find_impersonation(text) is None
