"""Made-up messages of the broker: the vectors of the wire format, with something wrong in each."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from tidings.dispatch.claim_tokens import ClaimTokens
from tidings.dispatch.wire_format import Unreadable, decode_batch, decode_marker, decode_report

VECTORS = Path(__file__).parents[1] / "dispatch" / "vectors"
_ODD: tuple[Any, ...] = (
    None, True, -1, 0, 2**63, 2**64 - 1, 1e308, "", "x", "\u0000", "9" * 400, [], {}, [[]], [1], {"a": 1},
    [None], "NaN",
)  # fmt: skip


def _read_report(body: bytes) -> object:
    return ClaimTokens(b"secret").verify(decode_report(body))


READERS: dict[str, Callable[[bytes], object]] = {
    "batch": decode_batch, "report": _read_report, "marker": decode_marker
}  # fmt: skip


def broken_by_broker_messages(kind: str, *, cases: int, seed: int) -> list[str]:
    """What else than `Unreadable` readers raised, and for which body."""
    chance = random.Random(f"{kind}/{seed}")
    vector = orjson.loads((VECTORS / f"{kind}.json").read_bytes())
    found = []
    for _ in range(cases):
        body = _made_up(vector, chance)
        try:
            READERS[kind](body)
        except Unreadable:
            pass
        except Exception as error:  # the finding itself
            found.append(f"{error!r}: {body[:300]!r}")
    return found


def _made_up(vector: dict[str, Any], chance: random.Random) -> bytes:
    table = copy.deepcopy(vector)
    for _ in range(chance.randint(1, 3)):
        _spoil(table, chance)
    body = orjson.dumps(table)
    if chance.random() < 0.2:
        at = chance.randrange(len(body))
        body = body[:at] + chance.randbytes(chance.randrange(4)) + body[at + chance.randrange(3) :]
    return body


def _spoil(table: Any, chance: random.Random) -> None:
    """Change, remove or add one value, at any depth."""
    keys = list(table) if isinstance(table, dict) else list(range(len(table)))
    if not keys:
        return
    key = chance.choice(keys)
    if isinstance(table[key], dict | list) and chance.random() < 0.7:
        _spoil(table[key], chance)
    elif isinstance(table, dict) and chance.random() < 0.2:
        del table[key]
    else:
        table[key] = copy.deepcopy(chance.choice(_ODD))
