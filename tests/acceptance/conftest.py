"""Databases of other systems, for imports and write-backs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ..other_databases import MongoServer, find_mariadb, mariadb


@pytest.fixture(scope="session")
def mariadb_server() -> Iterator[str]:
    """The URL of a MariaDB server, without a database."""
    if find_mariadb() is None:
        pytest.skip("no MariaDB: install mariadb-server-core")
    with mariadb() as url:
        yield url


@pytest.fixture
def mongo() -> Iterator[MongoServer]:
    """A server that speaks MongoDB's wire protocol, with an empty database."""
    with MongoServer() as server:
        yield server
