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
    from ..outbound.desk import Desk

Offer = tuple[str, str]  # a word, and what it is
Complete = Callable[[typer.Context, str], list[Offer]]

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


def _looked_up(look: Callable[[Desk], Awaitable[Sequence[Offer]]]) -> Complete:
    """Complete with what the database has; with nothing where there is none yet."""

    def offered(ctx: typer.Context, incomplete: str) -> list[Offer]:
        import asyncio

        async def work(chosen: Settings) -> Sequence[Offer]:
            async with asyncio.timeout(_PATIENCE), engine.opened(chosen) as app:
                return await look(app.desk)

        with suppress(Exception):
            chosen = _settings(ctx)
            if chosen.database_path is None or chosen.database_path.exists():
                return _fitting(engine.run(work(chosen)), incomplete)
        return []

    return offered


@_looked_up
async def messages(desk: Desk) -> list[Offer]:
    """The newest messages."""
    page = await desk.messages.page(limit=_FEW)
    return [(row["id"], f"{row['state']}, to {row['to']}") for row in page.items]


@_looked_up
async def dead_letters(desk: Desk) -> list[Offer]:
    """The newest dead letters."""
    page = await desk.messages.page(state="failed", limit=_FEW)
    return [(row["id"], f"{row['category']}, to {row['to']}") for row in page.items]


@_looked_up
async def broadcasts(desk: Desk) -> list[Offer]:
    """The newest broadcasts."""
    page = await desk.broadcasts.page(limit=_FEW)
    return [(row["id"], f"{row['state']}, {row['name'] or row['channel']}") for row in page.items]


@_looked_up
async def schedules(desk: Desk) -> list[Offer]:
    """The newest schedules."""
    page = await desk.schedules.page(limit=_FEW)
    return [(row["id"], f"{row['state']}, {row['name'] or row['rule_in_words']}") for row in page.items]


@_looked_up
async def templates(desk: Desk) -> list[Offer]:
    """Templates by name."""
    page = await desk.templates.page(limit=_FEW)
    return [(row["name"], f"version {row['version']}") for row in page.items]


@_looked_up
async def lists(desk: Desk) -> list[Offer]:
    """Lists by name."""
    page = await desk.audience.page(limit=_FEW)
    return [(row["name"], f"{row['members']} members") for row in page.items]


def _settings(ctx: typer.Context) -> Settings:
    given: dict[str, Any] = ctx.params
    config = given.get("config")
    return engine.settings(Path(config) if config else None, given.get("database"))


def _fitting(offers: Sequence[Offer], incomplete: str) -> list[Offer]:
    return [(word, output.flat(what)) for word, what in offers if word.startswith(incomplete)]
