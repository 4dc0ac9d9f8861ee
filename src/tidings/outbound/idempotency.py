"""Idempotency keys: the same key and body get the first answer again; another body is refused.

The key is written in the transaction of what it created. A concurrent call with the same key is refused by
the store's try-lock.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NamedTuple

import orjson

from ..model.errors import Invalid
from ..model.time import micros
from ..store.port import IdempotencyRecord, Row, Step, Store

MAX_KEY_LENGTH = 255
KEEP_KEYS = micros(timedelta(hours=24))  # of all resources but messages


class CreateResult(NamedTuple):
    """The answer of a create call; `replayed` if the key had been answered before."""

    answer: Any
    replayed: bool = False


def idempotency_key(
    scope: str, key: str, said: object, answer: object, *, tenant: str, until: int
) -> IdempotencyRecord:
    """An idempotency record: the key, a digest of the request, and the answer to replay."""
    if not 0 < len(key) <= MAX_KEY_LENGTH or not key.isprintable():
        raise Invalid(
            "the idempotency key is empty or too long",
            field="Idempotency-Key",
            remedy=f"use 1 to {MAX_KEY_LENGTH} characters",
        )
    digest = hashlib.sha256(orjson.dumps(said, default=repr, option=orjson.OPT_SORT_KEYS)).hexdigest()
    return IdempotencyRecord(f"{tenant}/{scope}", key, digest, orjson.dumps(answer).decode(), until)


def optional_key(
    scope: str, key: str | None, said: object, answer: object, *, tenant: str, until: int
) -> IdempotencyRecord | None:
    """The record of a key, or None for a call without one."""
    return None if key is None else idempotency_key(scope, key, said, answer, tenant=tenant, until=until)


def replayed_answer(earlier: Row, once: IdempotencyRecord) -> Any:
    """The first answer; raises Invalid if the body differs."""
    if earlier["digest"] != once.digest:
        raise Invalid(
            f"the key {once.key!r} was used before with another body",
            field="Idempotency-Key",
            remedy="repeat the first body unchanged, or use a new key",
        )
    return orjson.loads(earlier["answer"])


async def create_once(store: Store, steps: Sequence[Step], answer: Any, key: IdempotencyRecord | None) -> CreateResult:
    """Write the steps; with a key, exactly once."""
    done = await store.enqueue([], once=key, also=steps)
    if done.earlier is not None and key is not None:
        return CreateResult(replayed_answer(done.earlier, key), replayed=True)
    return CreateResult(answer)


async def find_replay(store: Store, key: IdempotencyRecord | None) -> CreateResult | None:
    """The earlier answer to this key, looked up before validation."""
    if key is None:
        return None
    earlier = await store.read("idempotency_key_find", scope=key.scope, key=key.key)
    return CreateResult(replayed_answer(earlier[0], key), replayed=True) if earlier else None
