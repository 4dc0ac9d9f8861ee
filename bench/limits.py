"""Raw limits: what the databases do when nothing but SQL stands in the way.

The same life as a message's (rows in, claim a batch, complete it, two history rows each) without fences,
slots, retries or Python objects. An engine can only come near these figures.
"""

from __future__ import annotations

import io
import os
import sqlite3
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw
import asyncpg

from .calls import serve
from .figures import spread
from .payload import encoded

CAP = 120  # seconds after which a loop gives up


@dataclass(frozen=True, slots=True)
class Load:
    """Rows for one table: its name, its columns in order, and a value per column and row."""

    table: str
    columns: Sequence[str]
    rows: Iterable[Sequence[Any]]


# ---- SQLite --------------------------------------------------------------------------------------

SQLITE_DDL = """
create table msg(id integer primary key, queue text not null default 'default',
  status text not null default 'pending', priority int not null default 0, due_at real not null,
  attempt int not null default 0, payload text not null, locked_by text, locked_at real, finished_at real);
create index msg_claim on msg(priority, due_at) where status = 'pending';
create table hist(id integer primary key, msg_id int not null, status text not null, at real not null,
  worker text);
"""
SQLITE_CLAIM = """
update msg set status = 'running', attempt = attempt + 1, locked_by = 'w', locked_at = ? where id in
 (select id from msg where status = 'pending' and due_at <= ? order by priority, due_at limit ?)
returning id, payload"""
SQLITE_DONE = "update msg set status = 'done', finished_at = ? where id = ? and status = 'running'"
SQLITE_HISTORY = "insert into hist(msg_id, status, at, worker) values(?, ?, ?, 'w')"


def sqlite(path: str, n: int, batch: int = 1_000, library: str = "apsw") -> dict[str, Any]:
    """Drain n rows in batches on a new file, WAL and synchronous FULL, through `apsw` or `sqlite3`."""
    connection, version = _open_sqlite(path, library)
    rows = [(time.time(), encoded(number)) for number in range(n)]
    began = time.perf_counter()
    for start in range(0, n, batch):
        connection.execute("begin immediate")
        connection.executemany("insert into msg(due_at, payload) values(?, ?)", rows[start : start + batch])
        connection.execute("commit")
    insert = n / (time.perf_counter() - began)
    began = time.perf_counter()
    while _sqlite_batch(connection, batch) and time.perf_counter() - began < CAP:
        pass
    seconds = time.perf_counter() - began
    done = connection.execute("select count(*) from msg where status = 'done'").fetchone()[0]
    history = connection.execute("select count(*) from hist").fetchone()[0]
    connection.close()
    return {
        "per_s": round(n / seconds, 1),
        "insert_per_s": round(insert, 1),
        "verified": (done, history) == (n, 2 * n),
        "sqlite": version,
    }


def _open_sqlite(path: str, library: str) -> tuple[Any, str]:
    """Both libraries' connections have the few methods that we need under the same names."""
    connection: Any
    if library == "apsw":
        connection, version = apsw.Connection(path), apsw.sqlite_lib_version()
    else:
        connection, version = sqlite3.connect(path, isolation_level=None), sqlite3.sqlite_version
    connection.execute("pragma journal_mode = wal").fetchall()
    connection.execute("pragma synchronous = full")
    connection.execute("pragma cache_size = -200000")
    for statement in filter(str.strip, SQLITE_DDL.split(";")):
        connection.execute(statement)
    return connection, version


def _sqlite_batch(connection: Any, batch: int) -> int:
    """Claim one batch, then complete it: two transactions, two history rows per message."""
    now = time.time()
    connection.execute("begin immediate")
    ids = [row[0] for row in connection.execute(SQLITE_CLAIM, (now, now, batch)).fetchall()]
    connection.executemany(SQLITE_HISTORY, [(id_, "running", now) for id_ in ids])
    connection.execute("commit")
    if ids:
        now = time.time()
        connection.execute("begin immediate")
        connection.executemany(SQLITE_DONE, [(now, id_) for id_ in ids])
        connection.executemany(SQLITE_HISTORY, [(id_, "done", now) for id_ in ids])
        connection.execute("commit")
    return len(ids)


# ---- PostgreSQL ----------------------------------------------------------------------------------

POSTGRES_DDL = """
create table lim_msg(
  id bigint generated always as identity primary key,
  queue text not null default 'default', status text not null default 'pending',
  priority smallint not null default 0, due_at timestamptz not null default now(),
  attempt int not null default 0, payload jsonb not null,
  locked_by text, locked_at timestamptz, finished_at timestamptz) with (fillfactor = 80);
create index lim_msg_claim on lim_msg(priority, due_at, id) where status = 'pending';
create table lim_hist(
  id bigint generated always as identity primary key, msg_id bigint not null,
  status text not null, at timestamptz not null default clock_timestamp(), worker text);
"""
# `= any(array(...))` and not `in (...)`: the planner then takes the primary key for certain.
POSTGRES_CLAIM = """
update lim_msg set status = 'running', attempt = attempt + 1, locked_by = 'w', locked_at = now()
where id = any(array(select id from lim_msg where status = 'pending' and due_at <= now()
  order by priority, due_at, id limit $1 for update skip locked))
returning id, payload::text"""
POSTGRES_DONE = """
update lim_msg m set status = 'done', finished_at = now()
from unnest($1::bigint[]) u(id) where m.id = u.id and m.status = 'running'"""


async def postgres(dsn: str, n: int, batch: int = 1_000) -> dict[str, Any]:
    """Drain n rows in batches over one connection: claim, history by COPY, complete, history by COPY."""
    connection = await asyncpg.connect(dsn)
    await connection.execute(POSTGRES_DDL)
    rows = [(encoded(number),) for number in range(n)]
    began = time.perf_counter()
    await connection.copy_records_to_table("lim_msg", records=rows, columns=["payload"])
    insert = n / (time.perf_counter() - began)
    del rows
    await connection.execute("vacuum analyze lim_msg")
    await connection.execute("checkpoint")
    began = time.perf_counter()
    while await _postgres_batch(connection, batch) and time.perf_counter() - began < CAP:
        pass
    seconds = time.perf_counter() - began
    done = await connection.fetchval("select count(*) from lim_msg where status = 'done'")
    history = await connection.fetchval("select count(*) from lim_hist")
    await connection.close()
    return {"per_s": round(n / seconds, 1), "insert_per_s": round(insert, 1), "verified": (done, history) == (n, 2 * n)}


async def _postgres_batch(connection: asyncpg.Connection, batch: int) -> int:
    async with connection.transaction():
        ids = [row[0] for row in await connection.fetch(POSTGRES_CLAIM, batch)]
        await _history(connection, ids, "running")
    if ids:
        async with connection.transaction():
            await connection.execute(POSTGRES_DONE, ids)
            await _history(connection, ids, "done")
    return len(ids)


async def _history(connection: asyncpg.Connection, ids: Sequence[int], status: str) -> None:
    records = [(id_, status, "w") for id_ in ids]
    await connection.copy_records_to_table("lim_hist", records=records, columns=["msg_id", "status", "worker"])


async def copy(dsn: str, ddl: str, loads: Sequence[Load]) -> dict[str, Any]:
    """Raw COPY into given tables with their indexes, one transaction; counted in rows of the first table.

    Twice: from Python rows made beforehand (`per_s`, what a client can do), and from bytes in PostgreSQL's
    own binary format (`bytes_per_s`, what the server can do). An empty `ddl` takes the tables as they are.
    """
    connection = await asyncpg.connect(dsn)
    await connection.execute(ddl)
    rows = [list(load.rows) for load in loads]
    await connection.execute("checkpoint")
    began = time.perf_counter()
    async with connection.transaction():
        for load, records in zip(loads, rows, strict=True):
            await connection.copy_records_to_table(load.table, records=records, columns=load.columns)
    from_rows = time.perf_counter() - began
    dumps = [await _dump(connection, load) for load in loads]
    await connection.execute(f"truncate {', '.join(load.table for load in loads)} cascade")
    await connection.execute("checkpoint")
    began = time.perf_counter()
    async with connection.transaction():
        for load, dump in zip(loads, dumps, strict=True):
            await connection.copy_to_table(load.table, source=dump, columns=load.columns, format="binary")
    from_bytes = time.perf_counter() - began
    counts = [await connection.fetchval(f"select count(*) from {load.table}") for load in loads]
    await connection.close()
    return {
        "per_s": round(len(rows[0]) / from_rows, 1),
        "bytes_per_s": round(len(rows[0]) / from_bytes, 1),
        "verified": counts == [len(records) for records in rows],
        "rows": dict(zip([load.table for load in loads], counts, strict=True)),
    }


async def _dump(connection: asyncpg.Connection, load: Load) -> io.BytesIO:
    dump = io.BytesIO()
    await connection.copy_from_table(load.table, output=dump, columns=load.columns, format="binary")
    dump.seek(0)
    return dump


def sample_loads(n: int) -> list[Load]:
    """Rows for the tables of POSTGRES_DDL: a stand-in where no engine's schema is at hand."""
    return [Load("lim_msg", ("payload",), ((encoded(number),) for number in range(n)))]


async def copy_sample(dsn: str, n: int) -> dict[str, Any]:
    """Raw COPY of n rows into the table of the raw pipeline."""
    return await copy(dsn, POSTGRES_DDL, sample_loads(n))


# ---- The disk ------------------------------------------------------------------------------------


def disk(folder: str, writes: int = 200) -> dict[str, Any]:
    """Milliseconds for one 4 KB write made durable: the floor under every commit."""
    path = Path(folder) / "fdatasync.probe"
    samples: list[float] = []
    with path.open("wb", buffering=0) as file:
        for _ in range(writes):
            began = time.perf_counter()
            file.write(b"x" * 4096)
            os.fdatasync(file.fileno())
            samples.append((time.perf_counter() - began) * 1e3)
    path.unlink()
    return {"fdatasync_ms": spread(samples, digits=3)}


if __name__ == "__main__":
    serve([sqlite, postgres, copy_sample, disk])
