"""PgBouncer in front of PostgreSQL: session pooling by the documented recipe, transaction pooling refused."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import asyncpg
import pytest

from tidings.model.errors import StoreUnusable
from tidings.store.postgres import PostgresStore
from tidings.store.postgres_server import SESSION_SETTINGS
from tidings.testing import PostgresCluster

from ..time_limits import until

PROGRAM = shutil.which("pgbouncer") or shutil.which("/usr/sbin/pgbouncer")
PAGE = Path(__file__).parents[2] / "docs/how-to/postgresql.md"

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no PgBouncer: install pgbouncer")


def recipe(text: str) -> tuple[str, list[str]]:
    """The startup parameters and the statements for the role that the page gives."""
    ignored = re.search(r"ignore_startup_parameters = (\S+)", text)
    assert ignored is not None
    return ignored[1], re.findall(r"ALTER ROLE tidings IN DATABASE tidings (SET .*);", text)


@contextmanager
def pooler(server: str, mode: str, ignored: str) -> Iterator[str]:
    """A PgBouncer of this test's own in front of a server; gives the URL behind it."""
    parts = urlsplit(server)
    folder = parse_qs(parts.query)["host"][0]
    name = parts.path.lstrip("/")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        settings = Path(place, "pgbouncer.ini")
        settings.write_text(
            f"[databases]\n{name} = host={folder} dbname={name} user=tidings\n"
            f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n"
            f"auth_type = any\npool_mode = {mode}\nignore_startup_parameters = {ignored}\n"
            f"[users]\n"
        )
        as_nobody = ["-u", "nobody"] if os.geteuid() == 0 else []
        process = subprocess.Popen(
            [str(PROGRAM), "-q", *as_nobody, str(settings)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        try:
            yield f"postgresql://tidings@127.0.0.1:{port}/{name}"
        finally:
            process.kill()
            process.communicate()


async def opened(url: str) -> PostgresStore:
    """A store behind a pooler, once the pooler listens."""
    parts = urlsplit(url)

    def listens() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex((parts.hostname or "", parts.port or 0)) == 0

    assert await until(listens), "PgBouncer does not listen"
    store = PostgresStore(url, connections=4)
    await store.open()
    return store


async def test_session_pooling_works_by_the_recipe_of_the_page(postgres: PostgresCluster, postgres_url: str) -> None:
    """The page's own settings, typed as they stand there."""
    ignored, statements = recipe(PAGE.read_text())
    name = urlsplit(postgres_url).path.lstrip("/")
    connection = await asyncpg.connect(postgres_url)
    for statement in statements:
        await connection.execute(f'ALTER DATABASE "{name}" {statement}')
    await connection.close()
    with pooler(postgres_url, "session", ignored) as url:
        store = await opened(url)
        assert (await store.read("now"))[0]["now"] > 0
        await store.close()


async def test_transaction_pooling_is_refused_at_the_start(postgres_url: str) -> None:
    """Otherwise the engine would say that it works, and deliver nothing."""
    ignored, _ = recipe(PAGE.read_text())
    with pooler(postgres_url, "transaction", ignored) as url:
        with pytest.raises(StoreUnusable, match="transaction pooling") as refused:
            await opened(url)
        assert "pool_mode = session" in refused.value.remedy


def test_the_recipe_names_every_setting_that_the_engine_sends() -> None:
    """A setting that is missing there keeps the engine from starting behind PgBouncer."""
    ignored, statements = recipe(PAGE.read_text())
    sent = {*SESSION_SETTINGS, "search_path"} - {"application_name"}

    assert set(ignored.split(",")) == sent
    assert {statement.split()[1] for statement in statements} == sent
