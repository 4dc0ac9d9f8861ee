"""Uploads: the same rows however the bytes are cut, each with its number, and flat memory."""

from __future__ import annotations

import csv
import io
from collections.abc import AsyncIterator, Sequence
from itertools import pairwise
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.model.errors import Invalid, TidingsError, TooLarge
from tidings.outbound.contacts.uploads import MAX_UPLOAD_BYTES, UploadFormat, normalize_column, read_rows, upload_format

LARGEST = 10_000
MOST = 1000


async def cut(data: bytes, places: Sequence[int]) -> AsyncIterator[bytes]:
    """The bytes in pieces that end at these places."""
    edges = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    for start, end in pairwise(edges):
        yield data[start:end]


async def read(
    data: bytes,
    form: UploadFormat = "csv",
    places: Sequence[int] = (),
    *,
    most_lines: int = MOST,
    most_bytes: int = MAX_UPLOAD_BYTES,
) -> list[tuple[int, Any]]:
    """All rows; errors as what they say."""
    found = read_rows(cut(data, places), form, largest=LARGEST, most_lines=most_lines, most_bytes=most_bytes)
    return [(number, row.problem if isinstance(row, TidingsError) else row) async for number, row in found]


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
cells = st.lists(st.lists(texts, min_size=3, max_size=3), max_size=6)
cuts = st.lists(st.integers(0, 2000), max_size=8)


@given(table=cells, delimiter=st.sampled_from([",", ";", "\t"]), bom=st.booleans(), places=cuts)
async def test_what_was_written_as_csv_is_read_again(
    table: list[list[str]], delimiter: str, bom: bool, places: list[int]
) -> None:
    """Any text in any cell, each delimiter, with and without a mark at the start, cut anywhere."""
    file = io.StringIO()
    writer = csv.writer(file, delimiter=delimiter)
    writer.writerows([["Name", "E Mail", "note"], *table])
    data = (b"\xef\xbb\xbf" if bom else b"") + file.getvalue().encode()

    found = await read(data, places=places)

    whole = [(number, row) for number, row in enumerate(table, 2) if any(cell.strip() for cell in row)]
    assert found == [(number, dict(zip(("name", "e_mail", "note"), row, strict=True))) for number, row in whole]


@given(data=st.text(alphabet='a,;"\n\r é', max_size=60), places=cuts)
async def test_any_cut_gives_the_same_rows(data: str, places: list[int]) -> None:
    """Junk too: where the network cuts says nothing about what was written."""
    raw = ("h1,h2\n" + data).encode()

    assert await read(raw, places=places) == await read(raw)


@given(
    objects=st.lists(st.dictionaries(texts, st.one_of(texts, st.integers(0, 9), st.none())), max_size=6), places=cuts
)
async def test_what_was_written_as_ndjson_is_read_again(objects: list[dict[str, Any]], places: list[int]) -> None:
    """One object a line, nothing is renamed."""
    data = b"\n".join(orjson.dumps(item) for item in objects)

    assert await read(data, "ndjson", places) == list(enumerate(objects, 1))


async def test_a_quoted_field_may_run_over_lines_and_counts_as_one_row() -> None:
    """Rows are numbered as a spreadsheet shows them: the header is row 1, empty rows count."""
    data = b'name,note\r\nada,"one\r\ntwo ""2"""\r\n\r\n,\r\ngrace,short\r\n'

    assert await read(data) == [(2, {"name": "ada", "note": 'one\r\ntwo "2"'}), (5, {"name": "grace", "note": "short"})]


async def test_a_row_of_another_width_is_told_with_its_number_and_the_others_are_read() -> None:
    """Too few, too many; empty cells over the end, as spreadsheets leave them, are nothing."""
    found = [
        (number, row) async for number, row in read_rows(
            cut(b"name,timezone\nada\ngrace,UTC,x\nlin,UTC,,\n", ()), "csv", largest=LARGEST, most_lines=MOST
        )
    ]  # fmt: skip

    assert [number for number, _ in found] == [2, 3, 4]
    few, many, good = (row for _, row in found)
    assert isinstance(few, Invalid) and isinstance(many, Invalid)
    assert few.problem == "the row has 1 fields but the header has 2"
    assert many.remedy == "write one field for each of: name, timezone"
    assert good == {"name": "lin", "timezone": "UTC"}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b'"ada"x,1', "the row is not valid CSV"),
        (b"\xff\xfe,1", "the row is not UTF-8 (byte 1)"),
        (b"a\rb,1", "the row is not valid CSV"),
    ],
)
async def test_a_bad_row_is_told_and_what_follows_is_read(line: bytes, said: str) -> None:
    """One bad row never spoils the others."""
    (number, problem), good = await read(b"name,n\n" + line + b"\nada,2\n")

    assert (number, problem[: len(said)]) == (2, said)
    assert good == (3, {"name": "ada", "n": "2"})


async def test_a_quote_within_a_field_is_just_a_quote() -> None:
    """Only where a field begins does a quote open anything: 5" pipes do not swallow the rest."""
    assert await read(b'name,n\n5" pipe,1\nada,2\n') == [
        (2, {"name": '5" pipe', "n": "1"}),
        (3, {"name": "ada", "n": "2"}),
    ]


async def test_a_quote_that_is_never_closed_is_told() -> None:
    """At the end of the upload, with the row where it was opened."""
    found = await read(b'name,n\nada,1\n"grace,2\nlin,3\n')

    assert found == [(2, {"name": "ada", "n": "1"}), (3, "a quote is never closed")]


@pytest.mark.parametrize("form", ["csv", "ndjson"])
async def test_a_row_that_is_too_long_is_told_once_and_never_held(form: UploadFormat) -> None:
    """S17: however long it is, and wherever it is cut; what follows is read."""
    head, good = (b"name,n\n", b"ada,1\n") if form == "csv" else (b'{"n": 1}\n', b'{"name": "ada"}\n')

    async def long() -> AsyncIterator[bytes]:
        yield head
        for _ in range(500):
            yield b"x" * 1000
        yield b"\n" + good

    found = [item async for item in read_rows(long(), form, largest=LARGEST, most_lines=MOST)]

    bad, last = found[-2:]
    assert (bad[0], isinstance(bad[1], TooLarge)) == (2, True)
    assert last[0] == 3 and isinstance(last[1], dict) and last[1]["name"] == "ada"


async def test_a_quoted_field_that_is_too_long_is_told_and_its_end_is_found() -> None:
    """Many short lines within one pair of quotes are one row, and it has a limit."""
    data = b'name,n\n"' + b'a""b\n' * 3000 + b'",1\nada,2\n'

    found = await read(data)

    assert [number for number, _ in found] == [2, 3]
    assert "more than 10,000 bytes" in found[0][1]
    assert found[1][1] == {"name": "ada", "n": "2"}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "empty"),
        (b"\n\n", "empty"),
        (b",,\nada,1,2\n", "empty"),
        (b"name,,n\n", "column 2 has no name"),
        (b"Name, name \n", "the column 'name' is duplicated"),
        (b"\xff\xfen\x00", "not UTF-8"),
        (b'"name,n\nada,1\n', "never closed"),
        (b"x" * (LARGEST + 1), "more than 10,000 bytes"),
    ],
)
async def test_without_a_header_nothing_is_read(data: bytes, said: str) -> None:
    """What spoils the whole upload is raised, not told row by row."""
    with pytest.raises(TidingsError, match=said) as error:
        await read(data)

    assert error.value.remedy


@pytest.mark.parametrize("form", ["csv", "ndjson"])
async def test_too_many_rows_or_bytes_end_the_upload(form: UploadFormat) -> None:
    """Limits are enforced while reading, whatever was announced."""
    data = b"name\n" + b'"ada"\n' * 20 if form == "csv" else b'"ada"\n' * 20

    assert len(await read(data, form, most_lines=20)) == 20
    with pytest.raises(TooLarge, match="more than 19 lines"):
        await read(data, form, most_lines=19)
    with pytest.raises(TooLarge, match="more than 100 bytes"):
        await read(data, form, [50, 60], most_bytes=100)


async def test_a_line_of_ndjson_is_an_object_or_an_address() -> None:
    """Anything else is told with its line."""
    found = await read(b'\xef\xbb\xbf"ada"\n\n{"name": "x"}\n[1]\n{nonsense\n7\n', "ndjson")

    assert found[:2] == [(1, {"address": "ada"}), (3, {"name": "x"})]
    assert [number for number, _ in found[2:]] == [4, 5, 6]
    assert [problem[:11] for _, problem in found[2:]] == ["the line is"] * 3


@pytest.mark.parametrize(
    ("kind", "form"),
    [
        ("text/csv; charset=utf-8", "csv"),
        ("people.CSV", "csv"),
        ("/data/a.b.tsv", "csv"),
        ("application/x-ndjson", "ndjson"),
        ("people.jsonl", "ndjson"),
    ],
)
def test_the_form_is_told_by_type_or_name(kind: str, form: UploadFormat) -> None:
    """Of a request or a file."""
    assert upload_format(kind) == form


@pytest.mark.parametrize("kind", ["", "application/json", "people.xlsx", "csvfile/nothing"])
def test_another_form_is_refused(kind: str) -> None:
    """With what to use instead."""
    with pytest.raises(Invalid, match="neither CSV nor NDJSON") as error:
        upload_format(kind)
    assert "text/csv" in error.value.remedy


def test_names_of_columns_are_looked_up_in_one_form() -> None:
    """As people type headings, so programs need not guess."""
    assert [normalize_column(name) for name in (" First  Name ", "address.SMS", "E-Mail")] == [
        "first_name",
        "address.sms",
        "e-mail",
    ]
