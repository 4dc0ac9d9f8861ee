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

_FEW = 30  # of a list
_PATIENCE = 2.0  # seconds, also where a database does not answer


def channels(ctx: typer.Context, incomplete: str) -> list[Offer]:
    """Configured channels; no database is asked."""
    with suppress(Exception):
        return _fitting([(name, one.kind) for name, one in _settings(ctx).channels.items()], incomplete)
    return []


def messages(ctx: typer.Context, incomplete: str) -> list[Offer]:
    """The newest messages."""
    return _looked_up(ctx, incomplete, _messages)


def dead_letters(ctx: typer.Context, incomplete: str) -> list[Offer]:
    """The newest dead letters."""
    return _looked_up(ctx, incomplete, _dead_letters)


def broadcasts(ctx: typer.Context, incomplete: str) -> list[Offer]:
    """The newest broadcasts."""
    return _looked_up(ctx, incomplete, _broadcasts)


def schedules(ctx: typer.Context, incomplete: str) -> list[Offer]:
    """The newest schedules."""
    return _looked_up(ctx, incomplete, _schedules)


def templates(ctx: typer.Context, incomplete: str) -> list[Offer]:
    """Templates by name."""
    return _looked_up(ctx, incomplete, _templates)


def lists(ctx: typer.Context, incomplete: str) -> list[Offer]:
    """Lists by name."""
    return _looked_up(ctx, incomplete, _lists)


def one_of(*words: str) -> Callable[[str], list[str]]:
    """Words that are known beforehand, such as states."""

    def offered(incomplete: str) -> list[str]:
        return [word for word in words if word.startswith(incomplete)]

    return offered


async def _messages(desk: Desk) -> list[Offer]:
    page = await desk.messages.page(limit=_FEW)
    return [(row["id"], f"{row['state']}, to {row['to']}") for row in page.items]


async def _dead_letters(desk: Desk) -> list[Offer]:
    page = await desk.messages.page(state="failed", limit=_FEW)
    return [(row["id"], f"{row['category']}, to {row['to']}") for row in page.items]


async def _broadcasts(desk: Desk) -> list[Offer]:
    page = await desk.broadcasts.page(limit=_FEW)
    return [(row["id"], f"{row['state']}, {row['name'] or row['channel']}") for row in page.items]


async def _schedules(desk: Desk) -> list[Offer]:
    page = await desk.schedules.page(limit=_FEW)
    return [(row["id"], f"{row['state']}, {row['name'] or row['rule_in_words']}") for row in page.items]


async def _templates(desk: Desk) -> list[Offer]:
    page = await desk.templates.page(limit=_FEW)
    return [(row["name"], f"version {row['version']}") for row in page.items]


async def _lists(desk: Desk) -> list[Offer]:
    page = await desk.audience.page(limit=_FEW)
    return [(row["name"], f"{row['members']} members") for row in page.items]


def _looked_up(
    ctx: typer.Context, incomplete: str, look: Callable[[Desk], Awaitable[Sequence[Offer]]]
) -> list[Offer]:
    """What the database has; nothing where there is none yet."""
    import asyncio

    async def work(chosen: Settings) -> Sequence[Offer]:
        async with asyncio.timeout(_PATIENCE), engine.opened(chosen) as app:
            return await look(app.desk)

    with suppress(Exception):
        chosen = _settings(ctx)
        if chosen.database_path is None or chosen.database_path.exists():
            return _fitting(engine.run(work(chosen)), incomplete)
    return []


def _settings(ctx: typer.Context) -> Settings:
    given: dict[str, Any] = ctx.params
    config = given.get("config")
    return engine.settings(Path(config) if config else None, given.get("database"))


def _fitting(offers: Sequence[Offer], incomplete: str) -> list[Offer]:
    return [(word, output.flat(what)) for word, what in offers if word.startswith(incomplete)]
