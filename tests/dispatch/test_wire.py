"""The wire format, held by its vectors: a transport in another language reads and writes the same (B15)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from tidings.dispatch.wire_format import (
    Unreadable,
    decode_batch,
    decode_marker,
    decode_report,
    encode_batch,
    encode_marker,
    encode_report,
)
from tidings.model.outcome import Retry, Unknown
from tidings.model.task import Category

VECTORS = Path(__file__).parent / "vectors"


def vector(name: str) -> Any:
    return orjson.loads((VECTORS / f"{name}.json").read_bytes())


def test_a_batch_is_read_and_written_as_its_vector_says() -> None:
    """Every field survives the way there and back, whatever the language of its text."""
    batch = decode_batch((VECTORS / "batch.json").read_bytes())

    assert batch[:4] == ("phone", True, 5000, 30_000)
    assert [(item.id, item.claim, item.ask) for item in batch.items] == [(17, 3, False), (18, 1, True)]
    assert batch.items[1].message.text == "🥐"
    assert vector("batch") == orjson.loads(encode_batch(batch))


def test_a_report_is_read_and_written_as_its_vector_says() -> None:
    """All seven outcomes, what has started, and every reason to give something back."""
    report = decode_report((VECTORS / "report.json").read_bytes())

    assert isinstance(report.outcomes[2].outcome, Retry)
    assert report.outcomes[2].outcome.category is Category.THROTTLING
    assert Unknown("no answer within 30 s", session_failed=True) == report.outcomes[7].outcome
    assert vector("report") == orjson.loads(encode_report(report))


def test_a_marker_is_read_and_written_as_its_vector_says() -> None:
    """Its number, and who sent it."""
    assert decode_marker((VECTORS / "marker.json").read_bytes()) == (5, 12)
    assert vector("marker") == orjson.loads(encode_marker(5, 12))


@pytest.mark.parametrize("body", vector("unreadable")["batch"])
def test_a_batch_that_cannot_be_read_is_refused_with_a_reason(body: str) -> None:
    """Never guessed at: it goes to the dead letters (F45, R9)."""
    with pytest.raises(Unreadable, match=r"."):
        decode_batch(body.encode())


@pytest.mark.parametrize("body", vector("unreadable")["report"])
def test_a_report_that_cannot_be_read_is_refused_with_a_reason(body: str) -> None:
    """Its tasks are still in hand, and their bounds decide."""
    with pytest.raises(Unreadable, match=r"."):
        decode_report(body.encode())
