"""The roster: who may speak, by id; every change is written down (D5)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tidings.inbound.domain import Speaker
from tidings.inbound.roster import Roster, RosterEntry, read_person
from tidings.model.errors import Invalid, NotFound
from tidings.outbound.contacts import uploads
from tidings.store.port import Store

from .inbox_node import CREW


@pytest.fixture
async def roster(store: Store) -> Roster:
    """An empty roster; two sources are configured."""
    return Roster(store, ("crew", "other"))


async def take(roster: Roster, text: bytes, **more: Any) -> tuple[dict[str, int], list[tuple[int, str]]]:
    """Import a file; gives the counts and the bad rows."""

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(text), 7):
            yield text[start : start + 7]

    rows = uploads.read_rows(pieces(), "csv", largest=10_000, most_lines=100_000)
    counts: dict[str, int] = {}
    bad: list[tuple[int, str]] = []
    async for progress in roster.take(rows, **more):
        for what, n in progress.counts.items():
            counts[what] = counts.get(what, 0) + n
        bad += [(number, str(error)) for number, error in progress.bad]
    return counts, bad


async def test_an_entry_is_added_changed_and_removed(roster: Roster) -> None:
    """Each with a line of the log."""
    ada = {"sender": "1001", "name": "Ada", "squad": "42"}
    assert (await roster.put(ada))[1] == "created"
    assert (await roster.put(ada))[1] == "unchanged"
    assert (await roster.put({**ada, "role": "Officer"}))[1] == "changed"
    shown = (await roster.page()).items
    assert shown == [{"sender": "1001", "name": "Ada", "squad": "42", "role": "officer", "source": None}]
    await roster.remove("1001")
    assert (await roster.page()).items == []
    log = (await roster.log(sender="1001")).items
    assert [line["what"] for line in log] == ["removed", "changed", "added"]
    with pytest.raises(NotFound, match="not on the roster"):
        await roster.remove("1001")


async def test_a_roster_entry_for_one_source_has_precedence(roster: Roster) -> None:
    """The same person may have another squad elsewhere."""
    await roster.put({"sender": "1001", "name": "Ada", "squad": "42"})
    await roster.put({"sender": "1001", "name": "Ada", "squad": "54", "source": "crew"})
    await roster.put({"sender": "1001", "name": "Ada", "squad": "34", "source": "other"})
    found = await roster.speakers(CREW, ["1001", "4711", "1001"])
    assert found == {"1001": Speaker("1001", "Ada", "54", "member")}
    with pytest.raises(NotFound, match="all sources"):
        await roster.remove("1001", "elsewhere")
    await roster.remove("1001", "crew")
    assert (await roster.speakers(CREW, ["1001"]))["1001"].squad == "42"


async def test_a_roster_import_reports_invalid_rows(roster: Roster) -> None:
    """Good rows are in, bad ones are told by number and field; the same file again changes nothing."""
    text = (
        b"\xef\xbb\xbfsender;name;squad;role\r\n"
        b"1001;Ada;42;admin\r\n"
        b"1002;;43;\r\n"  # 3: no name
        b"1003;Cem;43;captain\r\n"  # 4: no such role
        b"1004;Dora\r\n"  # 5: too few fields
        b'1005;"Eve ""E"" Evans";54;\r\n'
        b"1006;\xff\xfe;54;member\r\n"  # 7: not UTF-8
        b"1001;Ada;42;admin\r\n"
        b"\r\n"
        b"1007;" + b"x" * 300 + b";54;member\r\n"  # 10: too long
    )
    counts, bad = await take(roster, text, dry_run=True)
    assert (await roster.page()).items == [], "a rehearsal writes nothing"
    assert (await roster.log()).items == []
    assert counts["created"] == 2

    counts, bad = await take(roster, text)

    assert (counts["created"], counts["unchanged"], counts["refused"]) == (2, 1, 5)
    assert [number for number, _ in bad] == [3, 4, 5, 7, 10]
    for (_, error), part in zip(
        bad, ("name", "use one of: member, officer, admin", "2 fields", "UTF-8", "name"), strict=True
    ):
        assert part in error
    assert [row["name"] for row in (await roster.page()).items] == ["Ada", 'Eve "E" Evans']
    counts, _ = await take(roster, text)
    assert (counts.get("created", 0), counts["unchanged"]) == (0, 3)


async def test_a_file_without_the_right_columns_is_refused_row_by_row(roster: Roster) -> None:
    """The remedy names the column."""
    counts, bad = await take(roster, b"id,nam,squad\n1,Ada,42\n")
    assert counts["refused"] == 1
    assert "unknown field 'id'" in bad[0][1]


async def test_a_thousand_people_are_read_in_pages(roster: Roster) -> None:
    """By name; a squad alone, too."""
    rows = b"".join(b"%d,P%04d,%d\n" % (n, n, 42 + n % 2) for n in range(1200))
    counts, _ = await take(roster, b"sender,name,squad\n" + rows)
    assert counts["created"] == 1200
    first = await roster.page(limit=1000)
    second = await roster.page(limit=1000, after=first.next)
    assert [row["name"] for row in (*first.items, *second.items)] == [f"P{n:04d}" for n in range(1200)]
    assert second.next is None
    assert len((await roster.page(squad="43", limit=1000)).items) == 600
    with pytest.raises(Invalid, match="invalid cursor"):
        await roster.page(after="junk!")


def test_an_entry_is_read_with_a_remedy_for_each_mistake() -> None:
    """Numbers are texts, roles are a closed list, an unknown source is named."""
    assert read_person({"sender": 1001, "name": "Ada", "squad": 42}) == RosterEntry("1001", "Ada", "42")
    for body, part in (
        ({"name": "Ada", "squad": "42"}, "sender is missing"),
        ({"sender": "1", "name": "A\x07", "squad": "42"}, "not printable"),
        ({"sender": "1", "name": "Ada", "squad": "42", "source": "nowhere"}, "use one of: crew"),
        ({"sender": "1", "name": "Ada", "squad": True}, "squad is not a string"),
        ([], "not a JSON object"),
    ):
        with pytest.raises(Invalid) as error:
            read_person(body, ("crew",))
        assert part in str(error.value)
