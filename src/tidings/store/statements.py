"""SQL statements: one named file each; named parameters become the database's numbered ones.

`both/` serves both databases; a file of the same name in the dialect's folder takes precedence.
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
    """SQL with numbered parameters, and their names."""

    name: str
    sql: str
    names: tuple[str, ...]

    def bind(self, params: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return the values in the statement's order. Raises KeyError if one is missing."""
        return tuple([params[name] for name in self.names])


@cache
def load_statements(dialect: str) -> Mapping[str, SqlStatement]:
    """Return all statements of a dialect, by name."""
    found: dict[str, SqlStatement] = {}
    for folder in ("both", dialect):
        for file in (files(__package__) / "sql" / folder).iterdir():
            if file.name.endswith(".sql"):
                name = file.name.removesuffix(".sql")
                found[name] = compile_statement(name, file.read_text(), _MARK[dialect])
    return found


def compile_statement(name: str, text: str, mark: str) -> SqlStatement:
    """Number the parameters of one statement in order of their first use."""
    names: list[str] = []

    def number(match: re.Match[str]) -> str:
        if match[1] not in names:
            names.append(match[1])
        return f"{mark}{names.index(match[1]) + 1}"

    return SqlStatement(name, _NAME.sub(number, _COMMENT.sub("", text)).strip(), tuple(names))
