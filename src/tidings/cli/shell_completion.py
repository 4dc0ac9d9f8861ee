"""What the tabulator key offers: names and ids from the settings and the database.

Whatever goes wrong here is silence: a shell that is completing has no place for an error.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from . import engine, output

if TYPE_CHECKING:
    from ..config import Settings
    from ..outbound.service import OutboundService

Offer = tuple[str, str]  # a word, and what it is

_FEW = 30  # of a list
_PATIENCE = 2.0  # seconds, also where a database does not answer


def channels(ctx: typer.Context, incomplete: str) -> list[Offer]:
    """Configured channels; no database is asked."""
    with suppress(Exception):
        return _fitting([(name, one.kind) for name, one in _settings(ctx).channels.items()], incomplete)
    return []


def one_of(*words: str) -> Callable[[str], list[str]]:
    """Words that are known beforehand, such as states."""

    def offered(incomplete: str) -> list[str]:
        return [word for word in words if word.startswith(incomplete)]

    return offered


def _looked_up(
    read: Callable[[OutboundService], Awaitable[Any]], key: str, words: Callable[[output.Row], str]
) -> Callable[[typer.Context, str], list[Offer]]:
    """Complete with the first rows that the database has; with nothing where there is none yet."""

    def offered(ctx: typer.Context, incomplete: str) -> list[Offer]:
        import asyncio

        async def work(chosen: Settings) -> list[Offer]:
            async with asyncio.timeout(_PATIENCE), engine.opened(chosen) as app:
                return [(row[key], words(row)) for row in (await read(app.desk)).items]

        with suppress(Exception):
            chosen = _settings(ctx)
            if chosen.database_path is None or chosen.database_path.exists():
                return _fitting(engine.run(work(chosen)), incomplete)
        return []

    return offered


messages = _looked_up(
    lambda desk: desk.messages.page(limit=_FEW), "id", lambda row: f"{row['state']}, to {row['to']}"
)
dead_letters = _looked_up(
    lambda desk: desk.messages.page(state="failed", limit=_FEW),
    "id",
    lambda row: f"{row['category']}, to {row['to']}",
)
broadcasts = _looked_up(
    lambda desk: desk.broadcasts.page(limit=_FEW),
    "id",
    lambda row: f"{row['state']}, {row['name'] or row['channel']}",
)
schedules = _looked_up(
    lambda desk: desk.schedules.page(limit=_FEW),
    "id",
    lambda row: f"{row['state']}, {row['name'] or row['rule_in_words']}",
)
templates = _looked_up(
    lambda desk: desk.templates.page(limit=_FEW), "name", lambda row: f"version {row['version']}"
)
lists = _looked_up(
    lambda desk: desk.audience.page(limit=_FEW), "name", lambda row: f"{row['members']} members"
)


def _settings(ctx: typer.Context) -> Settings:
    given: dict[str, Any] = ctx.params
    config = given.get("config")
    return engine.settings(Path(config) if config else None, given.get("database"))


def _fitting(offers: Sequence[Offer], incomplete: str) -> list[Offer]:
    return [(word, output.flat(what)) for word, what in offers if word.startswith(incomplete)]
