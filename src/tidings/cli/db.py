"""`tidings db`: upgrade, check, back up, move and re-encrypt the database."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import engine, output
from .help import examples
from .options import AsJson, ConfigFile, Database, argument, option

if TYPE_CHECKING:
    from ..app import App
    from ..config import Settings

group = typer.Typer(help="Upgrade, check, back up, move and re-encrypt the database.", no_args_is_help=True)


@group.command(
    epilog=examples("tidings db upgrade", "tidings db upgrade --database postgresql://tidings@localhost/tidings")
)
def upgrade(as_json: AsJson = False, database: Database = None, config: ConfigFile = None) -> None:
    """Upgrade the schema to the version of this program. Make a backup first: it cannot be undone."""
    from ..model.errors import StoreUnusable

    chosen = engine.settings(config, database)

    async def work() -> None:
        try:
            await _open(chosen, upgrade=False)
            changed = False
        except StoreUnusable:
            with output.working("upgrading", is_shown=not as_json):
                await _open(chosen, upgrade=True)  # raises if an upgrade does not help
            changed = True
        _print(chosen, "upgraded" if changed else "current", as_json=as_json)

    engine.run(work())


@group.command(epilog=examples("tidings db check", "tidings db check --create"))
def check(
    create: Annotated[
        bool, typer.Option("--create", help="Create the schema if the database is new or empty.")
    ] = False,
    as_json: AsJson = False,
    database: Database = None,
    config: ConfigFile = None,
) -> None:
    """Check that the database is reachable, durable, undamaged and has the current schema."""
    chosen = engine.settings(config, database)
    if not create:
        _must_exist(chosen)

    async def work() -> None:
        with output.working("checking all pages", is_shown=not as_json):
            await _open(chosen, upgrade=False, create=create, check_keys=True)
        _print(chosen, "current", as_json=as_json)

    engine.run(work())


@group.command(epilog=examples("tidings db backup backups/tidings-2026-11-16.db"))
def backup(
    target: Annotated[Path, argument("PATH", "New file for the copy.")],
    as_json: AsJson = False,
    database: Database = None,
    config: ConfigFile = None,
) -> None:
    """Copy a SQLite database while it is in use. For PostgreSQL, print the pg_dump command."""
    chosen = engine.settings(config, database)
    _must_be_file(chosen, target)
    _must_exist(chosen)

    async def work() -> None:
        from ..app import build

        app = build(chosen)
        try:
            await app.store.open()
            with output.working("copying", is_shown=not as_json):
                await _copy(app, target)
        finally:
            await app.close()
        size = target.stat().st_size
        if as_json:
            output.say_json({"path": str(target), "bytes": size})
        else:
            output.say(("✓ ", "green"), f"wrote a consistent copy to {target} ({size:,} bytes)")

    engine.run(work())


@group.command(epilog=examples("tidings db move --to postgresql://tidings@localhost/tidings"))
def move(
    to: Annotated[str | None, option("URL", "Empty PostgreSQL database.", show_default=False)] = None,
    undo: Annotated[bool, typer.Option("--undo", help="Use the SQLite file again after a move.")] = False,
    as_json: AsJson = False,
    database: Database = None,
    config: ConfigFile = None,
) -> None:
    """Move a SQLite database to PostgreSQL in one transaction, compared row by row.

    Stop every process first. Afterwards the file is locked, so that nothing is sent twice.
    """
    from .database_move import move as run

    chosen = engine.settings(config, database)
    _must_exist(chosen)
    run(chosen, to, undo=undo, as_json=as_json)


@group.command(epilog=examples("tidings db reencrypt"))
def reencrypt(as_json: AsJson = False, database: Database = None, config: ConfigFile = None) -> None:
    """Encrypt every stored secret with the first of encryption_keys.

    To rotate, put a new key first, run this command, then remove the old key. Other processes can keep
    running. If it is interrupted, run it again.
    """
    chosen = engine.settings(config, database)
    _must_exist(chosen)

    async def work() -> None:
        async with engine.opened(chosen) as app:
            with output.working("encrypting", is_shown=not as_json) as status:
                key, changed = await app.cipher.reencrypt(lambda done: status(f"{done:,} secrets encrypted"))
        if as_json:
            output.say_json({"key": key, "changed": changed})
        else:
            output.say(("✓ ", "green"), f"all secrets are encrypted with the key {key} ({changed:,} changed)")

    engine.run(work())


async def _open(chosen: Settings, *, upgrade: bool, create: bool = True, check_keys: bool = False) -> None:
    from ..app import build
    from ..model.errors import StoreUnusable

    app = build(chosen)
    try:
        await app.store.open(upgrade=upgrade, create=create)
        damage = await app.store.damage()
        if damage:
            raise StoreUnusable(f"the database is damaged: {damage[0]}", remedy="restore a backup")
        if check_keys:
            await app.cipher.check()
    finally:
        await app.close()


async def _copy(app: App, target: Path) -> None:
    """Write to a temporary file first, so that an incomplete copy never has the final name."""
    from ..model.errors import Invalid

    partial = target.with_name(f"{target.name}.partial")
    store: Any = app.store
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        partial.touch(0o600)
        await store.backup(partial)
        partial.rename(target)
    except OSError as error:
        problem = f"{target} cannot be written ({error.strerror})"
        raise Invalid(problem, remedy="choose another path", field="PATH") from None
    finally:
        partial.unlink(missing_ok=True)


def _must_be_file(chosen: Settings, target: Path) -> None:
    from ..model.errors import Conflict

    if chosen.database_path is None:
        from ..config import mask_url

        command = f"pg_dump --format=custom --file={target} '{mask_url(chosen.database)}'"
        raise Conflict("PostgreSQL is backed up with pg_dump", remedy=f"run: {command}")
    if target.exists():
        raise Conflict(f"{target} already exists", remedy="choose another name, or move the file")


def _must_exist(chosen: Settings) -> None:
    """Raise NotFound if there is no database file, because opening would create one."""
    from ..model.errors import NotFound

    path = chosen.database_path
    if path is not None and not path.exists():
        raise NotFound(f"database {path} does not exist", remedy="check --database; tidings serve creates a new one")


def _print(chosen: Settings, word: str, *, as_json: bool) -> None:
    from ..config import mask_url

    url = mask_url(chosen.database)
    if as_json:
        output.say_json({"database": url, "schema": word})
    else:
        texts = {"upgraded": "was upgraded", "current": "is reachable and durable, and has the current schema"}
        output.say(("✓ ", "green"), f"{url} {texts[word]}")
