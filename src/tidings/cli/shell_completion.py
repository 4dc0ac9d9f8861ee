"""Shell completion of names and ids from the settings and the database. Errors complete to nothing."""

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

Completion = tuple[str, str]  # a word and its description

_FEW = 30  # rows
_TIMEOUT = 2.0  # seconds


def channels(ctx: typer.Context, incomplete: str) -> list[Completion]:
    """Complete the names of configured channels, without the database."""
    with suppress(Exception):
        return _matching([(name, one.kind) for name, one in _settings(ctx).channels.items()], incomplete)
    return []


def one_of(*words: str) -> Callable[[str], list[str]]:
    """Complete one of these words."""

    def complete(incomplete: str) -> list[str]:
        return [word for word in words if word.startswith(incomplete)]

    return complete


def _from_database(
    read: Callable[[OutboundService], Awaitable[Any]], key: str, words: Callable[[output.Row], str]
) -> Callable[[typer.Context, str], list[Completion]]:
    """Complete from the first rows that `read` returns; from nothing if the database does not exist."""

    def complete(ctx: typer.Context, incomplete: str) -> list[Completion]:
        import asyncio

        async def work(chosen: Settings) -> list[Completion]:
            async with asyncio.timeout(_TIMEOUT), engine.opened(chosen) as app:
                return [(row[key], words(row)) for row in (await read(app.outbound)).items]

        with suppress(Exception):
            chosen = _settings(ctx)
            if chosen.database_path is None or chosen.database_path.exists():
                return _matching(engine.run(work(chosen)), incomplete)
        return []

    return complete


messages = _from_database(
    lambda service: service.messages.page(limit=_FEW), "id", lambda row: f"{row['state']}, to {row['to']}"
)
dead_letters = _from_database(
    lambda service: service.messages.page(state="failed", limit=_FEW),
    "id",
    lambda row: f"{row['category']}, to {row['to']}",
)
broadcasts = _from_database(
    lambda service: service.broadcasts.page(limit=_FEW),
    "id",
    lambda row: f"{row['state']}, {row['name'] or row['channel']}",
)
schedules = _from_database(
    lambda service: service.schedules.page(limit=_FEW),
    "id",
    lambda row: f"{row['state']}, {row['name'] or row['rule_in_words']}",
)
templates = _from_database(
    lambda service: service.templates.page(limit=_FEW), "name", lambda row: f"version {row['version']}"
)
lists = _from_database(
    lambda service: service.audience.page(limit=_FEW), "name", lambda row: f"{row['members']} members"
)


def _settings(ctx: typer.Context) -> Settings:
    given: dict[str, Any] = ctx.params
    config = given.get("config")
    return engine.settings(Path(config) if config else None, given.get("database"))


def _matching(found: Sequence[Completion], incomplete: str) -> list[Completion]:
    return [(word, output.flat(what)) for word, what in found if word.startswith(incomplete)]
