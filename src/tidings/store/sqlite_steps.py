"""Named statements on a connection to a SQLite file, one after the other."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import apsw

from .port import OrderingKey, Row, Step, WriteConflict
from .statements import SqlStatement


class SqliteSteps:
    """Runs them, as `Steps` does on PostgreSQL."""

    def __init__(self, sql: Mapping[str, SqlStatement], now: Callable[[], int]) -> None:
        self.sql = sql
        self._now = now
        self._columns: dict[str, list[str]] = {}  # of statements that have given rows

    def rows(self, connection: apsw.Connection, name: str, params: Mapping[str, Any]) -> list[Row]:
        """One statement."""
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
        """One by one; Outrun where one that is needed finds nothing."""
        done: list[list[Row]] = []
        for step in steps:
            wanted = step.only_if is None or done[step.only_if]
            done.append(self.rows(connection, step.name, step.params) if wanted else [])
            if step.needed and not done[-1]:
                raise WriteConflict(step.name)
        return done

    def pass_turn(self, connection: apsw.Connection, keys: Collection[OrderingKey], *, demote: bool) -> None:
        """The first of each line comes next; `demote`: another may have been first so far."""
        for name in ("demote", "promote") if demote else ("promote",):
            for queue, key in keys:
                connection.execute(self.sql[name].sql, (queue, key)).fetchall()


def int_array(numbers: Sequence[int]) -> Any:
    """A list as SQLite takes it in one piece: an array in memory, alive as long as its statement."""
    return apsw.carray(array("q", numbers or [-1]))  # an empty one has no address; no row has this id
