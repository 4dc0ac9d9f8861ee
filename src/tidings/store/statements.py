"""Statements: one named SQL file each, with named parameters turned into the database's own numbered ones.

`both/` serves both databases; a file of the same name under the dialect's own folder is used instead.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

_NAME = re.compile(r"(?<![:\w]):([a-z_]+)")
_COMMENT = re.compile(r"--[^\n]*\n")
_MARK = {"postgres": "$", "sqlite": "?"}


class SqlStatement(NamedTuple):
    """SQL with numbered parameters, and the names they stand for."""

    name: str
    sql: str
    names: tuple[str, ...]

    def bind(self, params: Mapping[str, Any]) -> tuple[Any, ...]:
        """The values in the statement's own order; a missing one is a mistake of the caller."""
        return tuple([params[name] for name in self.names])


@cache
def load_statements(dialect: str) -> Mapping[str, SqlStatement]:
    """All statements of a dialect, by name."""
    found: dict[str, SqlStatement] = {}
    for folder in ("both", dialect):
        for file in (files(__package__) / "sql" / folder).iterdir():
            if file.name.endswith(".sql"):
                name = file.name.removesuffix(".sql")
                found[name] = compile_statement(name, file.read_text(), _MARK[dialect])
    return found


def compile_statement(name: str, text: str, mark: str) -> SqlStatement:
    """Number the parameters of one statement in the order of their first use."""
    names: list[str] = []

    def number(match: re.Match[str]) -> str:
        if match[1] not in names:
            names.append(match[1])
        return f"{mark}{names.index(match[1]) + 1}"

    return SqlStatement(name, _NAME.sub(number, _COMMENT.sub("", text)).strip(), tuple(names))
