"""Rows of an upload and inline addresses find their contacts; what is refused leaves nothing behind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson
import pytest

from tidings.kernel.clock import ManualClock
from tidings.model.errors import Invalid, NotFound, StoreUnavailable
from tidings.outbound.broadcasts import recipient_snapshot
from tidings.outbound.contacts.suppressions import SuppressionService
from tidings.store.port import Row, Step, Store

from .broadcast_harness import BroadcastHarness, people, stream

UPLOAD = {"channel": "main", "recipients": "upload"}
GREETING = {
    "name": "greeting",
    "text": "{{ contact.name | default('you') }}: {{ city }}, {{ when | date }}",
    "variables": {"city": "text", "when": {"type": "date", "default": "2027-01-15"}},
}


@pytest.fixture
async def house(store: Store, clock: ManualClock) -> BroadcastHarness:
    """An open house that knows Ada and Bob, and has a template that greets."""
    made = BroadcastHarness(store, clock, channels=("main", "other"))
    await made.open()
    await made.templates.create(GREETING)
    await known(made, "ada", language="de", timezone="Asia/Tokyo", attributes={"city": "Bonn"})
    await known(made, "bob@example.org", name="Bob", attributes={"city": "Ulm"})
    return made


async def known(house: BroadcastHarness, address: str, channel: str = "main", **card: Any) -> str:
    """A contact with this address."""
    body = {"name": address.title(), "addresses": {channel: address}} | card
    return str((await house.contacts.create(body)).answer["id"])


async def uploading(house: BroadcastHarness, **fields: Any) -> str:
    """A broadcast that waits for its rows."""
    return str((await house.broadcast_creator.create(UPLOAD | {"template": "greeting"} | fields)).answer["id"])


def texts(house: BroadcastHarness) -> dict[str, str]:
    """Who was told what."""
    return {message.recipient: message.text for message in house.channel.sent}


async def test_rows_of_an_upload_get_the_contact_who_has_their_address(house: BroadcastHarness) -> None:
    """The template sees the contact and its language; what the row says wins, unless empty."""
    id_ = await uploading(house)
    rows = [
        {"address": " ada", "city": ""},
        {"address": "Bob@Example.org", "city": "Rome"},
        {"address": "eve", "city": "Paris"},
    ]
    await house.broadcast_creator.upload(id_, stream(*rows))
    await house.run()

    assert texts(house) == {
        "ada": "Ada: Bonn, 15. Januar 2027",
        "bob@example.org": "Bob: Rome, 15 January 2027",
        "eve": "you: Paris, 15 January 2027",
    }
    roll = {row["address"]: row for row in await house.roll(id_)}
    assert roll["ada"]["contact"] == (await house.contacts.at("main", "ada") or {})["id"]
    assert roll["bob@example.org"]["variables"] == {"name": "Bob", "city": "Rome"}
    assert roll["eve"]["contact"] is None


async def test_a_variable_that_neither_row_nor_contact_has_refuses_all(house: BroadcastHarness) -> None:
    """Told with its row before anything is sent; once it is there, the same rows are taken."""
    id_, rows = await uploading(house), ["ada", "eve"]
    with pytest.raises(Invalid, match=r"row 2: the variable 'city' is missing"):
        await house.broadcast_creator.upload(id_, stream(*rows))
    await house.run(seconds=5)
    assert not house.to

    await known(house, "eve", attributes={"city": "Paris"})
    assert (await house.broadcast_creator.upload(id_, stream(*rows)))["total"] == 2


async def test_inline_addresses_are_matched_in_the_preview_and_when_it_is_made(house: BroadcastHarness) -> None:
    """The page shows what will be read, and exactly that is sent."""
    body = {"channel": "main", "template": "greeting", "addresses": ["ada", {"to": "bob@example.org"}]}
    foreseen = await house.broadcast_creator.foresee(body)
    await house.broadcast_creator.create(body)
    await house.run()

    assert [sample["text"] for sample in foreseen["samples"]] == list(texts(house).values())
    assert texts(house)["ada"] == "Ada: Bonn, 15. Januar 2027"


async def test_a_contact_of_another_channel_or_tenant_is_not_taken(house: BroadcastHarness) -> None:
    """An address belongs to a channel of a tenant."""
    await known(house, "eve", "other", attributes={"city": "Paris"})
    await house.contacts.create(
        {"name": "Eve", "addresses": {"main": "eve"}, "attributes": {"city": "Oslo"}}, tenant="them"
    )
    with pytest.raises(Invalid, match="'city' is missing"):
        await house.cast("eve", text=None, template="greeting")


async def test_contacts_bring_their_time_zone_unless_the_row_has_one(house: BroadcastHarness) -> None:
    """A row is sent by its contact's clock, as a member of a list is."""
    await known(house, "york", timezone="America/New_York")
    rows = ["ada", {"address": "york", "timezone": "Europe/Berlin"}, "eve"]
    id_ = await house.cast(*rows, at="2027-01-15T18:00:00Z", recipient_timezone=True, timezone="UTC")

    parts = (await house.look(id_))["parts"]
    assert {part["timezone"]: part["starts_at"][11:16] for part in parts} == {
        "Asia/Tokyo": "09:00", "Europe/Berlin": "17:00", None: "18:00",
    }  # fmt: skip


async def test_a_contact_who_opted_out_is_skipped(house: BroadcastHarness) -> None:
    """Judged when it would be sent, for rows as for lists."""
    await SuppressionService(house.store, house.clock, ["main"]).create({"address": "ada", "reason": "enough"})
    id_ = await house.cast("ada", "bob@example.org")
    await house.run()

    assert await house.counts(id_) == {"sent": 1, "skipped": 1}


async def test_one_look_up_asks_for_a_whole_batch_and_lists_need_none(
    house: BroadcastHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A million rows are matched by some hundred statements, not by a million."""
    monkeypatch.setattr(type(house.store), "bulk", 40)
    asked: list[str] = []
    read = house.store.read

    async def counting(name: str, **params: Any) -> list[Row]:
        asked.append(name)
        return await read(name, **params)

    monkeypatch.setattr(house.store, "read", counting)
    id_ = await uploading(house, template=None, text="hello")
    await house.broadcast_creator.upload(id_, stream(*people(95)))
    assert asked.count("contact_reached") == 3

    asked.clear()
    await house.audience.create({"name": "all", "filter": {"channel": "main"}})
    await house.cast(addresses=None, list="all")
    assert "contact_reached" not in asked


async def test_a_broken_upload_goes_on_though_its_contacts_have_changed(
    house: BroadcastHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B4: it is told by what its rows say, and those that are in stay as they were frozen."""
    monkeypatch.setattr(type(house.store), "bulk", 1)
    id_ = await uploading(house)

    async def cut() -> Any:
        yield 1, {"address": "ada"}
        raise StoreUnavailable("the line went dead")

    with pytest.raises(StoreUnavailable):
        await house.broadcast_creator.upload(id_, cut())
    for address in ("ada", "bob@example.org"):
        contact = await house.contacts.at("main", address)
        assert contact is not None
        await house.contacts.edit(contact["id"], {"attributes": {"city": "Rome"}})
    await house.broadcast_creator.upload(id_, stream("ada", "bob@example.org"))
    await house.run()

    assert [text.split(",")[0] for text in texts(house).values()] == ["Ada: Bonn", "Bob: Rome"]


# -- refused

BY_LIST = {"channel": "main", "template": "greeting", "list": "flawed"}


async def flawed(house: BroadcastHarness, n: int) -> str:
    """A list of so many contacts, of whom only the last has no city; its id."""
    ids = []
    for number, address in enumerate(people(n)):
        house.clock.advance(0.01)
        ids.append(await known(house, address, attributes={"city": "Bonn"} if number < n - 1 else {}))
    await house.audience.create({"name": "flawed"})
    await house.audience.add("flawed", ids)
    return ids[-1]


async def traces(house: BroadcastHarness) -> tuple[list[Row], int]:
    """Broadcasts that are there, and recipients of any."""
    asked = orjson.dumps([*people(50), "ada", "eve"]).decode()
    rows = [
        row
        for group_id in range(1, 6)
        for row in await house.store.read("group_known", group_id=group_id, recipients=asked)
    ]
    return (await house.broadcasts.page()).items, len(rows)


async def test_a_refused_list_leaves_nothing_and_its_key_is_free_again(
    house: BroadcastHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B4: no broadcast, no recipients of earlier chunks, nothing told; mended, the same call makes it."""
    monkeypatch.setattr(type(house.store), "bulk", 10)
    monkeypatch.setattr(recipient_snapshot, "PAGE", 7)
    last = await flawed(house, 25)
    for _ in range(2):
        with pytest.raises(Invalid, match="row 25: the variable 'city' is missing"):
            await house.broadcast_creator.create(BY_LIST, key="k")
        assert await traces(house) == ([], 0)
    assert await house.outbox() == []

    await house.contacts.edit(last, {"attributes": {"city": "Ulm"}})
    await house.broadcast_creator.create(BY_LIST, key="k")
    await house.run()
    assert len(house.to) == 25


async def test_a_list_that_is_empty_or_not_there_leaves_nothing(house: BroadcastHarness) -> None:
    """A clear answer and no row, under one key."""
    await house.audience.create({"name": "none"})
    body = {"channel": "main", "text": "hi", "list": "none"}
    with pytest.raises(Invalid, match="no recipients"):
        await house.broadcast_creator.create(body, key="k")
    with pytest.raises(NotFound, match="no list"):
        await house.broadcast_creator.create(body | {"list": "nope"}, key="k")

    assert await traces(house) == ([], 0)


async def test_a_death_while_it_is_taken_back_leaves_one_that_says_why(
    house: BroadcastHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between two pages: it is cancelled, sends nothing, and the key makes a new one."""
    monkeypatch.setattr(type(house.store), "bulk", 10)
    last, write = await flawed(house, 25), house.store.write

    async def dying(steps: Sequence[Step]) -> Any:
        if steps[0].name == "group_withdraw":
            raise StoreUnavailable("gone")
        return await write(steps)

    monkeypatch.setattr(house.store, "write", dying)
    with pytest.raises(StoreUnavailable):
        await house.broadcast_creator.create(BY_LIST, key="k")
    monkeypatch.undo()
    (found,), _ = await traces(house)
    assert (found["state"], "'city' is missing" in found["reason"]) == ("cancelled", True)
    await house.run(seconds=5)
    assert not house.to

    await house.contacts.edit(last, {"attributes": {"city": "Ulm"}})
    await house.broadcast_creator.create(BY_LIST, key="k")
    await house.run()
    assert sorted(house.to) == people(25)


async def test_an_upload_that_was_begun_can_be_taken_back(
    house: BroadcastHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What one command makes and fills, and cannot fill, leaves nothing; what is frozen is left alone."""
    monkeypatch.setattr(type(house.store), "bulk", 1)
    made = await house.broadcast_creator.create(UPLOAD | {"template": "greeting"}, key="k")
    with pytest.raises(Invalid):
        await house.broadcast_creator.upload(made.answer["id"], stream("ada", "eve"))
    await house.broadcast_creator.withdraw(made.answer["id"], reason="row 2", key="k")
    assert await traces(house) == ([], 0)

    frozen = await house.cast("ada")
    await house.broadcast_creator.withdraw(frozen, reason="too late")
    assert (await house.look(frozen))["total"] == 1
