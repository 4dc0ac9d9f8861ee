"""Runs named statements on a SQLite connection."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import apsw

from .port import OrderingKey, Row, Step, WriteConflict
from .statements import SqlStatement


class SqliteSteps:
    """Runs steps, as `PostgresSteps` does on PostgreSQL."""

    def __init__(self, sql: Mapping[str, SqlStatement], now: Callable[[], int]) -> None:
        self.sql = sql
        self._now = now
        self._columns: dict[str, list[str]] = {}  # of statements that have returned rows

    def rows(self, connection: apsw.Connection, name: str, params: Mapping[str, Any]) -> list[Row]:
        statement = self.sql[name]
        cursor = connection.execute(statement.sql, statement.bind({"now": self._now(), **params}))
        names = self._columns.get(name)
        if names is None:
            try:
                names = [column[0] for column in cursor.get_description()]
            except apsw.ExecutionCompleteError:  # no rows
                return []
            self._columns[name] = names
        return [dict(zip(names, row, strict=True)) for row in cursor]

    def run_all(self, connection: apsw.Connection, steps: Sequence[Step]) -> list[list[Row]]:
        """Run the steps in order. Raises WriteConflict if a needed step returns no rows."""
        done: list[list[Row]] = []
        for step in steps:
            wanted = step.only_if is None or done[step.only_if]
            done.append(self.rows(connection, step.name, step.params) if wanted else [])
            if step.needed and not done[-1]:
                raise WriteConflict(step.name)
        return done

    def pass_turn(self, connection: apsw.Connection, keys: Collection[OrderingKey], *, demote: bool) -> None:
        """Make the first task of each ordering key claimable; `demote`: another may have been first."""
        for name in ("demote", "promote") if demote else ("promote",):
            for queue, key in keys:
                connection.execute(self.sql[name].sql, (queue, key)).fetchall()


def int_array(numbers: Sequence[int]) -> Any:
    """Return a list as an SQLite array; it must live as long as its statement."""
    return apsw.carray(array("q", numbers or [-1]))  # an empty array has no address; no row has this id
