"""Lines of NDJSON: the fast reader is used only where it reads what the careful one would (C13)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.migration.connectors import ndjson
from tidings.migration.connectors.confined_paths import FileSettings
from tidings.migration.connectors.ndjson import NdjsonFormat
from tidings.migration.connectors.record_validation import InvalidRecord

NAMES = st.sampled_from(["id", "a", "b", 'say "', 'x":', "ü", "a b"])
PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(['":', '" :'])
SPACES = st.sampled_from(["", " ", "\t", "  "])


@st.composite
def lines(draw: st.DrawFn) -> bytes:
    """Objects as people write them: names may come twice, blanks anywhere."""

    def value(depth: int) -> str:
        kind = draw(st.integers(0, 3)) if depth else 0
        if kind == 1:
            return "[" + ",".join(value(depth - 1) for _ in range(draw(st.integers(0, 2)))) + "]"
        return record(depth - 1) if kind == 2 else json.dumps(draw(PLAIN), ensure_ascii=draw(st.booleans()))

    def record(depth: int) -> str:
        pairs = [
            f"{draw(SPACES)}{json.dumps(draw(NAMES))}{draw(SPACES)}:{draw(SPACES)}{value(depth)}{draw(SPACES)}"
            for _ in range(draw(st.integers(0, 4)))
        ]
        return "{" + ",".join(pairs) + "}"

    return record(2).encode(errors="surrogatepass")


def said(parse: Callable[[], Any]) -> str:
    """What was read, with its types; or what was said of it."""
    try:
        return repr(parse())
    except InvalidRecord as flaw:
        return f"{flaw.reason} {flaw.field} {flaw.id}"


@given(lines())
def test_the_fast_reader_reads_what_the_careful_one_reads(raw: bytes) -> None:
    """C13: no name is lost, no number changed, no error worded otherwise."""
    form = NdjsonFormat(FileSettings("people"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ndjson, "_plainly", lambda _: None)
        careful = said(lambda: form.parse(raw, None))
    assert said(lambda: form.parse(raw, None)) == careful


def test_a_plain_line_is_read_fast_and_a_doubtful_one_is_not() -> None:
    """C13: a name twice, a blank before a colon, many digits."""
    assert ndjson._plainly(b'{"id": "7", "tags": [{"a": 1}]}\n') == {"id": "7", "tags": [{"a": 1}]}
    for doubtful in (
        b'{"id":"7","id":"8"}',
        b'{"id" :"7","id":"8"}',
        b'{"id":12345678901234567890}',
        b"[" * 2000,
        b'{"id":"7","deep":' + b"[" * 1010 + b"]" * 1010 + b"}",
        b'{"id":"\\u0000"}',
    ):
        assert ndjson._plainly(doubtful) is None, doubtful[:40]
