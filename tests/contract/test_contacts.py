"""Contacts, lists and opt-outs on both databases, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from tidings.kernel.clock import ManualClock
from tidings.model.errors import Conflict, Invalid, NotFound, StoreUnavailable, TidingsError
from tidings.outbound.contacts.bulk_import import BulkImportProgress, ContactColumns, import_contacts, import_opt_outs
from tidings.outbound.contacts.contact_fields import ContactChange
from tidings.outbound.contacts.contact_filters import ContactFilter
from tidings.outbound.contacts.contact_lists import ContactListService
from tidings.outbound.contacts.service import ContactService
from tidings.outbound.contacts.suppressions import SuppressionService
from tidings.outbound.contacts.uploads import NumberedRow, read_rows
from tidings.store.port import Step, Store, WriteConflict

from .kernel_harness import KernelHarness

CHANNELS = ("main", "mail")


@pytest.fixture
def contacts(store: Store, clock: ManualClock) -> ContactService:
    return ContactService(store, clock, CHANNELS)


@pytest.fixture
def audience(store: Store, clock: ManualClock, contacts: ContactService) -> ContactListService:
    return ContactListService(store, clock, contacts)


@pytest.fixture
def suppressions(store: Store, clock: ManualClock) -> SuppressionService:
    return SuppressionService(store, clock, CHANNELS)


ADA = {
    "name": "Ada",
    "addresses": {"main": "+491701", "mail": "Ada@Example.org"},
    "timezone": "Europe/Berlin",
    "language": "de",
    "tags": ["vip", "donor", "vip"],
    "attributes": {"city": "Bonn", "age": 36, "member": True},
}


async def everybody(contacts: ContactService) -> list[dict[str, Any]]:
    return (await contacts.page(limit=1000)).items


# -- one contact


async def test_a_contact_is_kept_as_it_was_written(contacts: ContactService) -> None:
    """Names, addresses per channel, zone, language, tags and attributes (issue 3, part 4)."""
    made = (await contacts.create(ADA)).answer

    assert made == await contacts.show(made["id"])
    assert made["addresses"] == {"mail": "ada@example.org", "main": "+491701"}
    assert made["tags"] == ["donor", "vip"]
    assert made["attributes"] == {"age": 36, "city": "Bonn", "member": True}
    assert (made["name"], made["timezone"], made["language"]) == ("Ada", "Europe/Berlin", "de")
    assert await contacts.at("mail", "ADA@example.org") == made
    assert await contacts.at("main", "ada@example.org") is None


async def test_an_address_belongs_to_one_contact(contacts: ContactService, clock: ManualClock) -> None:
    """A second contact with it is refused with who has it, and nothing is written."""
    ada = (await contacts.create(ADA)).answer
    clock.advance(1)

    with pytest.raises(Conflict, match=ada["id"]):
        await contacts.create({"name": "Eve", "addresses": {"main": "+491701"}})
    eve = (await contacts.create({"name": "Eve", "addresses": {"main": "+492"}})).answer
    with pytest.raises(Conflict, match=ada["id"]):
        await contacts.edit(eve["id"], {"addresses": {"main": "+491701"}, "name": "Mallory"})

    assert await everybody(contacts) == [eve, ada]


async def test_a_change_leaves_alone_what_it_does_not_name(contacts: ContactService, clock: ManualClock) -> None:
    """What is given replaces, an empty text takes away; attributes and addresses one by one."""
    ada = (await contacts.create(ADA)).answer
    clock.advance(1)

    changed = await contacts.edit(
        ada["id"],
        {"timezone": "", "addresses": {"mail": None, "main": "+1"}, "attributes": {"age": 37, "city": ""}, "tags": []},
    )

    assert changed == await contacts.show(ada["id"])
    assert changed == ada | {
        "timezone": None,
        "addresses": {"main": "+1"},
        "attributes": {"age": 37, "member": True},
        "tags": [],
        "changed_at": changed["changed_at"],
    }
    assert changed["changed_at"] > ada["changed_at"]
    assert await contacts.at("main", "+491701") is None


async def test_a_change_that_changes_nothing_writes_nothing(contacts: ContactService, clock: ManualClock) -> None:
    """Also its time of change stays."""
    ada = (await contacts.create(ADA)).answer
    clock.advance(1)

    assert await contacts.edit(ada["id"], ADA) == ada


async def test_put_finds_the_contact_by_any_of_its_addresses(contacts: ContactService) -> None:
    """New where nobody has one of them, changed where somebody has, refused where two have."""
    ada, is_new = await contacts.put(ADA)
    assert is_new
    changed, is_new = await contacts.put({"name": "Countess", "addresses": {"mail": "ada@example.org"}})
    assert (changed["id"], changed["name"], is_new) == (ada["id"], "Countess", False)
    assert changed["addresses"] == ada["addresses"]
    await contacts.put({"addresses": {"main": "+2"}})

    with pytest.raises(Conflict, match="different contacts"):
        await contacts.put({"addresses": {"mail": "ada@example.org", "main": "+2"}})
    with pytest.raises(Invalid, match="no address"):
        await contacts.put({"name": "nobody"})


async def test_a_contact_that_is_removed_is_gone_with_its_addresses_and_places(
    contacts: ContactService, audience: ContactListService
) -> None:
    """Its address is free again."""
    ada = (await contacts.create(ADA)).answer
    list_ = (await audience.create({"name": "all"})).answer
    await audience.add("all", [ada["id"]])

    await contacts.remove(ada["id"])

    with pytest.raises(NotFound):
        await contacts.remove(ada["id"])
    assert (await audience.show(list_["id"]))["members"] == 0
    assert (await contacts.create(ADA)).answer["id"] != ada["id"]


@pytest.mark.parametrize(
    ("body", "field", "remedy"),
    [
        ({"timezone": "Europe/Berln"}, "timezone", "Europe/Berlin"),
        ({"timezone": "Berlin"}, "timezone", "Europe/Berlin"),
        ({"language": "german please"}, "language", "pt-BR"),
        ({"addresses": {"mian": "+1"}}, "addresses.mian", "'main'"),
        ({"addresses": {"main": 17}}, "addresses.main", "quotes"),
        ({"addresses": {"main": "a\0b"}}, "addresses.main", "printable"),
        ({"addresses": {"main": "x" * 513}}, "addresses.main", "512"),
        ({"name": "two\nlines"}, "name", "printable"),
        ({"tags": ["a;b"]}, "tags", "none of"),
        ({"tags": [{}]}, "tags", "none of"),
        ({"tags": [f"t{n}" for n in range(101)]}, "tags", "100"),
        ({"attributes": {"a": [1]}}, "attributes.a", "a string"),
        ({"attributes": {"": 1}}, "attributes.", "1 to 64"),
        ({"attributes": {"big": "x" * 5000}}, "attributes.big", "4,096"),
        ({"nmae": "Ada"}, "nmae", "'name'"),
    ],
)
async def test_bad_input_is_refused_with_its_field_and_what_to_do(
    contacts: ContactService, body: dict[str, Any], field: str, remedy: str
) -> None:
    """And nothing is changed."""
    with pytest.raises(TidingsError) as error:
        await contacts.create(body)

    assert error.value.field == field
    assert remedy in error.value.remedy
    assert await everybody(contacts) == []


async def test_the_same_key_gives_the_first_answer_again(
    contacts: ContactService, audience: ContactListService
) -> None:
    """B4: nothing twice, another body is refused, also when what was made has changed since."""
    first = await contacts.create(ADA, key="k1")
    await contacts.edit(first.answer["id"], {"name": "Countess"})
    again = await contacts.create(ADA, key="k1")

    assert (again.answer, again.replayed) == (first.answer, True)
    with pytest.raises(Invalid, match="another body"):
        await contacts.create({"name": "Eve"}, key="k1")
    made = await audience.create({"name": "all"}, key="k1")
    assert (await audience.create({"name": "all"}, key="k1")) == made._replace(replayed=True)


async def test_fifty_at_once_make_one_contact(contacts: ContactService) -> None:
    """B4: the unique address decides; the others are told who has it, or find the contact made."""
    told = await asyncio.gather(*(contacts.create(ADA) for _ in range(50)), return_exceptions=True)
    assert [type(one) for one in told if isinstance(one, BaseException)] == [Conflict] * 49

    put = await asyncio.gather(*(contacts.put({"addresses": {"main": "+5"}}) for _ in range(50)))

    assert sum(is_new for _, is_new in put) == 1
    assert len({row["id"] for row, _ in put}) == 1
    assert len(await everybody(contacts)) == 2


async def test_changes_at_the_same_time_are_all_kept(contacts: ContactService) -> None:
    """None is lost although all read the same card first; whoever comes second decides anew."""
    ada = (await contacts.create({"addresses": {"main": "+1"}})).answer

    async def note(n: int) -> None:
        for _ in range(50):
            try:
                await contacts.edit(ada["id"], {"attributes": {f"a{n}": n}})
                return
            except StoreUnavailable:
                continue

    await asyncio.gather(*(note(n) for n in range(8)))

    assert (await contacts.show(ada["id"]))["attributes"] == {f"a{n}": n for n in range(8)}


async def test_a_contact_that_somebody_else_changed_meanwhile_is_not_overwritten(
    contacts: ContactService, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check at the end of the transaction undoes all of it; the second decision sees the other change."""
    ada = (await contacts.create(ADA)).answer
    write, is_first = store.write, True

    async def late(steps: Sequence[Step]) -> Any:
        nonlocal is_first
        if is_first and steps[-1].name == "contact_check":
            is_first = False
            await contacts.edit(ada["id"], {"attributes": {"city": "Köln"}})
            with pytest.raises(WriteConflict):
                await write(steps)
            raise WriteConflict
        return await write(steps)

    monkeypatch.setattr(store, "write", late)
    changed = await contacts.edit(ada["id"], {"name": "Countess"})

    assert (changed["name"], changed["attributes"]["city"]) == ("Countess", "Köln")


async def test_pages_go_through_everybody_and_a_filter_takes_whom_it_means(contacts: ContactService) -> None:
    """Newest first, each once, also over the edge of a page."""
    changes = [ContactChange(f"n{n}", {"main": f"+{n}"}, tags=("even",) if n % 2 == 0 else ("odd",)) for n in range(25)]
    await contacts.keep(changes)
    names, after = [], None
    while True:
        page = await contacts.page(ContactFilter(tags_any=frozenset({"even"})), limit=4, after=after)
        names += [item["name"] for item in page.items]
        if (after := page.next) is None:
            break

    assert sorted(names) == sorted(f"n{n}" for n in range(0, 25, 2))
    with pytest.raises(Invalid, match="invalid cursor"):
        await contacts.page(after="\n")


# -- lists


async def test_a_list_has_members_and_a_filter_finds_them_anew(
    contacts: ContactService, audience: ContactListService, clock: ManualClock
) -> None:
    """Both are gone through in the same way, for those with an address on the channel."""
    ids = []
    for body in (
        ADA,
        {"name": "Eve", "addresses": {"main": "+2"}, "tags": ["donor"], "attributes": {"city": "Bonn"}},
        {"name": "Lin", "addresses": {"mail": "lin@x.org"}, "tags": ["donor"]},
    ):
        ids.append((await contacts.create(body)).answer["id"])
        clock.advance(1)
    ada, eve, lin = ids
    await audience.create({"name": "three"})
    assert await audience.add("three", [ada, eve, lin, ada]) == 3
    assert await audience.add("three", [ada]) == 0
    await audience.create({"name": "donors", "filter": {"tags_all": ["donor"], "channel": "main"}})

    found = [one async for one in audience.recipients("three", "main")]

    assert [(one.address, one.contact, one.timezone) for one in found] == [
        ("+491701", ada, "Europe/Berlin"),
        ("+2", eve, None),
    ]
    assert found[0].variables == {"name": "Ada", "age": 36, "city": "Bonn", "member": True}
    assert found[0].card["language"] == "de"
    assert [one.contact async for one in audience.recipients("donors", "main")] == [ada, eve]
    assert [one.contact async for one in audience.recipients("three", "main", after=ada)] == [eve]
    await contacts.edit(ada, {"tags": []})
    assert [one["id"] for one in (await audience.members("donors")).items] == [eve]
    assert await audience.drop("three", [ada, "nobody"]) == 1
    assert (await audience.show("three"))["members"] == 2


async def test_going_through_a_list_takes_pages(
    contacts: ContactService, audience: ContactListService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule 17: bounded queries; each member once, whatever the size of a page."""
    monkeypatch.setattr("tidings.outbound.contacts.contact_lists.PAGE", 7)
    list_ = (await audience.create({"name": "many"})).answer["id"]
    await audience.create({"name": "tagged", "filter": {"tags_any": ["x"]}})
    changes = [ContactChange(addresses={"main": f"+{n}"}, tags=("x",) if n % 3 == 0 else ()) for n in range(50)]
    await contacts.keep(changes, list_=list_)

    assert {one.address async for one in audience.recipients("many", "main")} == {f"+{n}" for n in range(50)}
    assert len([one async for one in audience.recipients("tagged", "main")]) == 17
    ids, after = [], None
    while True:
        page = await audience.members("tagged", limit=5, after=after)
        ids += [item["id"] for item in page.items]
        if (after := page.next) is None:
            break
    assert len(ids) == len(set(ids)) == 17

    await audience.remove("many")
    with pytest.raises(NotFound):
        await audience.show(list_)
    assert await contacts._store.read("list_members", list=list_, after="", limit=10) == []
    assert len(await everybody(contacts)) == 50


async def test_what_a_list_cannot_be_is_refused(contacts: ContactService, audience: ContactListService) -> None:
    """A name twice, an unknown contact, members for a filter, a filter for everybody by mistake."""
    await audience.create({"name": "all"})
    await audience.create({"name": "berlin", "filter": {"timezone": "Europe/Berlin"}})

    with pytest.raises(Conflict, match="'all' already"):
        await audience.create({"name": "all"})
    with pytest.raises(Conflict, match="'all' already"):
        await audience.edit("berlin", {"name": "all"})
    with pytest.raises(NotFound, match="nobody"):
        await audience.add("all", ["nobody"])
    with pytest.raises(Conflict, match="saved filter"):
        await audience.add("berlin", ["x"])
    with pytest.raises(Conflict, match="with members"):
        await audience.edit("all", {"filter": {"timezone": "UTC"}})
    with pytest.raises(Invalid, match="empty"):
        await audience.create({"name": "x", "filter": {}})
    with pytest.raises(Invalid, match="time zone") as error:
        await audience.create({"name": "x", "filter": {"timezone": "Europe/Berln"}})
    assert "Europe/Berlin" in error.value.remedy
    with pytest.raises(Invalid, match="unknown field"):
        await audience.create({"name": "x", "filter": {"tag": ["a"]}})
    assert [item["name"] for item in (await audience.page()).items] == ["all", "berlin"]
    renamed = await audience.edit("berlin", {"name": "capital", "filter": {"timezone": "UTC"}})
    assert (renamed["name"], renamed["filter"]) == ("capital", {"timezone": "UTC"})


# -- uploads


def upload(text: str) -> Any:
    """An upload that can be read again."""

    def read() -> AsyncIterator[NumberedRow]:
        async def pieces() -> AsyncIterator[bytes]:
            yield text.encode()

        return read_rows(pieces(), "csv", largest=100_000, most_lines=10_000)

    return read


async def taken(
    text: str, contacts: ContactService, *, names: Any = None, **more: Any
) -> tuple[dict[str, int], list[Any]]:
    columns = ContactColumns(CHANNELS, names=names, channel=more.pop("channel", None), is_table=True)
    told: list[BulkImportProgress] = [
        progress async for progress in import_contacts(upload(text), contacts, columns, **more)
    ]
    counts: dict[str, int] = {}
    for progress in told:
        for what, n in progress.counts.items():
            counts[what] = counts.get(what, 0) + n
    bad = [(n, e.field, e.problem, e.remedy) for progress in told for n, e in progress.bad]
    return {what: n for what, n in counts.items() if n}, bad


PEOPLE = """Name;Address.Main;address.mail;Timezone;language;Tags;City
Ada;+1;ada@x.org;Europe/Berlin;de;vip | donor;Bonn
Eve;+2;;;;;
Lin;;lin@x.org;Asia/Tokio;ja;;
;;;UTC;;;
Bob;+3;;;;;Köln
"""


async def test_an_upload_is_imported_row_by_row_and_bad_rows_are_reported(contacts: ContactService) -> None:
    """Row, field and what to do, with near matches of an unknown zone; the good ones are taken."""
    counts, bad = await taken(PEOPLE, contacts)

    assert counts == {"created": 3, "refused": 2}
    assert [(n, field) for n, field, _, _ in bad] == [(4, "timezone"), (5, "address")]
    assert "Asia/Tokyo" in bad[0][3]
    ada = await contacts.at("main", "+1")
    assert ada is not None
    assert (ada["name"], ada["tags"], ada["attributes"]) == ("Ada", ["donor", "vip"], {"city": "Bonn"})


async def test_an_upload_can_be_repeated_without_doubling(contacts: ContactService) -> None:
    """Found by address: the second time nothing is new, an empty cell takes nothing away, tags are added."""
    await taken(PEOPLE, contacts)
    ada = await contacts.at("main", "+1")
    assert ada is not None
    await contacts.edit(ada["id"], {"tags": ["board"], "name": "Countess"})

    counts, _ = await taken("name,address.main,tags,city\n,+1,vip,\n,+2,,\nZoe,+9,,\n", contacts)

    assert counts == {"created": 1, "changed": 1, "unchanged": 1}
    again = await contacts.at("main", "+1")
    assert again is not None
    assert (again["name"], again["tags"], again["attributes"]) == ("Countess", ["board", "vip"], {"city": "Bonn"})
    assert (await taken(PEOPLE, contacts))[0].get("created") is None


async def test_the_same_person_twice_in_an_upload_is_one_contact(contacts: ContactService) -> None:
    """Also when the second row knows them by the address that the first one brought."""
    counts, bad = await taken(
        "name,address.main,address.mail\nAda,+1,\n,+1,ada@x.org\nCountess,,ada@x.org\n,+7,ada@x.org\n", contacts
    )

    assert (counts, bad) == ({"created": 1, "changed": 3}, [])
    (only,) = await everybody(contacts)
    assert (only["name"], only["addresses"]) == ("Countess", {"main": "+7", "mail": "ada@x.org"})


async def test_a_row_that_means_two_people_is_refused(contacts: ContactService) -> None:
    """Nobody is merged by guessing."""
    counts, bad = await taken("address.main,address.mail\n+1,\n,ada@x.org\n+1,ada@x.org\n", contacts)

    assert counts == {"created": 2, "refused": 1}
    assert bad[0][:2] == (4, "addresses")


async def test_all_or_nothing_takes_nothing_when_one_row_is_bad(
    contacts: ContactService, audience: ContactListService
) -> None:
    """The bad rows are all told; without them everything is taken."""
    list_ = (await audience.create({"name": "new"})).answer["id"]
    counts, bad = await taken(PEOPLE, contacts, all_or_nothing=True, list_=list_)
    assert (counts, [n for n, *_ in bad]) == ({"refused": 2}, [4, 5])
    assert await everybody(contacts) == []

    good = "".join(line + "\n" for n, line in enumerate(PEOPLE.splitlines(), 1) if n not in (4, 5))
    counts, bad = await taken(good, contacts, all_or_nothing=True, list_=list_)

    assert (counts, bad) == ({"created": 3}, [])
    assert (await audience.show("new"))["members"] == 3


async def test_a_dry_run_says_what_would_happen_and_writes_nothing(contacts: ContactService) -> None:
    """The same counts as the real one."""
    assert (await taken(PEOPLE, contacts, dry_run=True))[0] == {"created": 3, "refused": 2}
    assert await everybody(contacts) == []


async def test_columns_can_be_called_otherwise(contacts: ContactService) -> None:
    """A mapping, or the channel of a plain column `address`."""
    await taken("Mobile Number,Who\n+1,Ada\n", contacts, names={"address.main": "mobile number", "name": "who"})
    await taken("address\neve@x.org\n", contacts, channel="mail")

    assert {(item["name"], *item["addresses"].values()) for item in await everybody(contacts)} == {
        ("Ada", "+1"),
        ("", "eve@x.org"),
    }


@pytest.mark.parametrize(
    ("text", "names", "said"),
    [
        ("name\nAda\n", None, "the address is missing"),
        ("address\n+1\n", None, "channel of the addresses"),
        ("address.mian\n+1\n", None, "no channel 'mian'"),
        ("address.main\n+1\n", {"name": "who"}, "no column 'who'"),
        ("address.main\n+1\n", {"nmae": "x"}, "unknown column target"),
    ],
)
async def test_columns_that_cannot_be_understood_stop_the_upload(
    contacts: ContactService, text: str, names: Any, said: str
) -> None:
    """Once for all rows, before any is taken."""
    with pytest.raises(Invalid, match=said):
        await taken(text, contacts, names=names)
    assert await everybody(contacts) == []


async def test_two_uploads_of_one_file_at_the_same_time_make_each_contact_once(contacts: ContactService) -> None:
    """Whoever comes second finds them made, and decides anew."""
    text = "address.main,n\n" + "".join(f"+{n},{n}\n" for n in range(1200))

    told = await asyncio.gather(*(taken(text, contacts) for _ in range(4)))

    assert sum(counts.get("created", 0) for counts, _ in told) == 1200
    assert [bad for _, bad in told] == [[], [], [], []]
    first = await contacts.page(limit=1000)
    rest = await contacts.page(limit=1000, after=first.next)
    assert len(first.items) + len(rest.items) == 1200


# -- opt-outs


async def test_a_message_accepted_before_the_opt_out_is_skipped_and_says_why(
    store: Store, clock: ManualClock, suppressions: SuppressionService
) -> None:
    """Checked at send time: the reason is in its history and in `why`; removed, the next one goes out."""
    world = await KernelHarness(store, clock).open()
    early = await world.send("ada", at=clock.now() + 60_000_000)
    other = await world.send("eve", at=clock.now() + 60_000_000)
    await suppressions.create({"address": "ada", "channel": "main", "reason": "asked by phone"})
    clock.advance(61)
    await world.step()

    shown = await world.show(early)
    assert shown["state"] == "skipped"
    assert "asked by phone" in shown["history"][-1]["detail"]
    assert "asked by phone" in (await world.why(early)).answer
    assert world.channel.ids == [other]

    await suppressions.remove("ada", "main")
    late = await world.send("ada")
    await world.step()
    assert (await world.show(late))["state"] == "sent"
    assert (await world.show(early))["state"] == "skipped"


@pytest.mark.parametrize(
    ("out", "to", "is_sent"),
    [
        ({"address": "ada"}, "ada", False),
        ({"address": "ada", "channel": "main"}, "ada", False),
        ({"address": "ada", "channel": "mail"}, "ada", True),
        ({"address": " Ada@Example.org"}, "aDa@example.ORG", False),
        ({"address": "ÄDA@example.org"}, "Äda@example.org", False),
        ({"address": "ADA"}, "ada", True),
        ({"address": "https://x.org/@Ada"}, "https://x.org/@ada", True),
        ({"address": "https://x.org/@Ada"}, "https://x.org/@Ada", False),
    ],
)
async def test_an_opt_out_is_of_one_address_on_one_channel_or_all(
    store: Store, clock: ManualClock, suppressions: SuppressionService, out: dict[str, str], to: str, is_sent: bool
) -> None:
    """An e-mail address is the same in capitals, anything else is taken as it is written."""
    world = await KernelHarness(store, clock).open()
    await suppressions.create(out)
    await world.send(to)
    await world.step()

    assert bool(world.channel.sent) is is_sent


async def test_opting_out_twice_is_one_opt_out(suppressions: SuppressionService, clock: ManualClock) -> None:
    """The first reason and time stay; the way back is one removal."""
    first = (await suppressions.create({"address": "ada", "reason": "first"})).answer
    clock.advance(5)
    assert (await suppressions.create({"address": "ada", "reason": "second"})).answer == first
    await suppressions.create({"address": "ada", "channel": "main"})

    assert [row["channel"] for row in (await suppressions.page(address="ada")).items] == [None, "main"]
    await suppressions.remove("ada")
    with pytest.raises(NotFound, match="all channels") as error:
        await suppressions.remove("ada")
    assert "main" in error.value.remedy
    await suppressions.remove("ada", "main")
    with pytest.raises(NotFound, match="has not opted out"):
        await suppressions.remove("ada", "main")


async def test_many_opt_outs_come_in_by_upload_and_out_by_pages(suppressions: SuppressionService) -> None:
    """Bad rows are told; a repeat adds nothing; pages go through all of them."""
    text = "address,channel,reason\na@x.org,mail,bounced\nA@X.org,mail,\nada,,\n,main,\neve,mian,\n" + "".join(
        f"p{n},main,\n" for n in range(10)
    )

    async def take() -> BulkImportProgress:
        (progress,) = [one async for one in import_opt_outs(upload(text)(), suppressions)]
        return progress

    first, again = await take(), await take()

    assert first.counts == {"created": 12, "unchanged": 1, "refused": 2}
    assert again.counts == {"created": 0, "unchanged": 13, "refused": 2}
    assert [(n, error.field) for n, error in first.bad] == [(5, "address"), (6, "channel")]
    seen, after = [], None
    while True:
        page = await suppressions.page(limit=5, after=after)
        seen += [(row["address"], row["channel"]) for row in page.items]
        if (after := page.next) is None:
            break
    assert seen == sorted({("a@x.org", "mail"), ("ada", None), *((f"p{n}", "main") for n in range(10))})
    for junk in ("", "x", "!!", "bnVsbA", "WzEsMl0"):
        with pytest.raises(Invalid, match="invalid cursor"):
            await suppressions.page(after=junk)


async def test_a_contact_that_is_removed_stays_opted_out(
    contacts: ContactService, suppressions: SuppressionService
) -> None:
    """Forgetting somebody must not make them reachable again."""
    ada = (await contacts.create(ADA)).answer
    await suppressions.create({"address": "+491701"})
    await contacts.remove(ada["id"])

    assert len((await suppressions.page(address="+491701")).items) == 1
