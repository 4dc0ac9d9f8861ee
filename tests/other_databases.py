"""Databases of other systems: a MariaDB server, and a server that speaks MongoDB's wire protocol.

No package index has a MongoDB server. The protocol is MockupDB's, which MongoDB's driver team wrote to test
drivers, and the queries are answered by mongomock; the client is the real pymongo.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import mockupdb
import mongomock
import pymysql

from .time_limits import Limit


def find_mariadb() -> str | None:
    """The server program, if it is installed with what sets up its data folder."""
    program = shutil.which("mariadbd", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")
    return program if shutil.which("mariadb-install-db") and shutil.which("my_print_defaults") else None


@contextmanager
def mariadb() -> Iterator[str]:
    """A MariaDB server on a socket of its own; yields a URL without a database."""
    program = find_mariadb()
    assert program is not None
    with tempfile.TemporaryDirectory(prefix="tidings-mariadb-") as folder:
        place, socket = Path(folder), f"{folder}/socket"
        subprocess.run(
            ["mariadb-install-db", "--no-defaults", f"--datadir={place}/data", "--skip-test-db",
             "--auth-root-authentication-method=normal", "--user=root"],
            check=True, capture_output=True,
        )  # fmt: skip
        server = subprocess.Popen(
            [program, "--no-defaults", f"--datadir={place}/data", f"--socket={socket}", "--skip-networking",
             "--user=root", f"--pid-file={place}/pid", "--innodb-buffer-pool-size=16M"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            _wait(socket)
            yield f"mysql://root@localhost/?unix_socket={socket}"
        finally:
            server.terminate()
            server.wait(60)


def _wait(socket: str) -> None:
    limit, looked = Limit(60), threading.Event()
    while True:
        try:
            pymysql.connect(user="root", unix_socket=socket).close()
            return
        except pymysql.OperationalError:
            assert not limit.is_over(), "MariaDB does not start"
            looked.wait(0.02)


class MongoServer:
    """Databases in memory, behind MongoDB's wire protocol."""

    def __init__(self) -> None:
        self.data: Any = mongomock.MongoClient()
        self.is_away = False
        self._server = mockupdb.MockupDB(auto_ismaster={"minWireVersion": 0, "maxWireVersion": 21})
        self._server.autoresponds(self._answer)

    def __enter__(self) -> MongoServer:
        self._server.run()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop()

    @property
    def url(self) -> str:
        """The URL of the database `crm`."""
        return f"mongodb://{self._server.host}:{self._server.port}/crm?serverSelectionTimeoutMS=2000"

    def _answer(self, request: Any) -> bool:
        if self.is_away:
            return bool(request.hangup())
        body = dict(request.doc)
        if next(iter(body)).lower() in ("hello", "ismaster"):
            return False  # answered by MockupDB
        database = self.data[body["$db"]]
        match next(iter(body)):
            case "listCollections":
                found = [{"name": name, "type": "collection"} for name in database.list_collection_names()]
                return bool(request.ok(cursor={"id": 0, "ns": "crm.$cmd.listCollections", "firstBatch": found}))
            case "find":
                name = body["find"]
                rows = database[name].find(body.get("filter", {}))
                rows = rows.sort(list(body.get("sort", {"_id": 1}).items())).limit(body.get("limit", 0))
                return bool(request.ok(cursor={"id": 0, "ns": f"crm.{name}", "firstBatch": list(rows)}))
            case "update":
                done = [database[body["update"]].update_one(one["q"], one["u"]) for one in body["updates"]]
                count = sum(one.matched_count for one in done)
                return bool(request.ok(n=count, nModified=sum(one.modified_count for one in done)))
        return bool(request.ok())
