"""Tokens of dispatched claims: made with a secret of the database, which every dispatcher shares."""

from __future__ import annotations

import asyncio

from tidings.dispatch.claim_tokens import ClaimTokens
from tidings.dispatch.wire_format import ReportedOutcome, TransportReport
from tidings.model.outcome import Done
from tidings.store.port import Store

from ..encryption import cipher


async def test_all_dispatchers_of_a_database_check_the_same_tokens(store: Store) -> None:
    """Those that start at once, and one that is started again: whoever comes first makes the secret."""
    first, second, later = ClaimTokens(), ClaimTokens(), ClaimTokens()
    await asyncio.gather(first.load(store, cipher(store)), second.load(store, cipher(store)))
    await later.load(store, cipher(store))
    report = TransportReport("phone", "t", outcomes=[ReportedOutcome((7, 2, first.of("phone", 7, 2)), Done(), 1.0)])

    assert [tokens.verify(report) for tokens in (first, second, later)] == [(report, 0)] * 3


async def test_a_token_holds_for_one_claim_on_one_channel_of_one_database(store: Store) -> None:
    """Another claim, task or channel, another database, and a token that is no text of ours are refused."""
    tokens = ClaimTokens()
    await tokens.load(store, cipher(store))
    token = tokens.of("phone", 7, 2)
    entries = [
        ("phone", (7, 3, token)), ("phone", (8, 2, token)), ("mail", (7, 2, token)), ("phone", (7, 2, "")),
        ("phone", (7, 2, "ü" * 32)), ("phone", (7, 2, ClaimTokens().of("phone", 7, 2))),
    ]  # fmt: skip

    for channel, key in entries:
        report = TransportReport(channel, "t", started=[key], outcomes=[ReportedOutcome(key, Done(), 1.0)])
        assert tokens.verify(report) == (TransportReport(channel, "t", [], [], []), 1), key
