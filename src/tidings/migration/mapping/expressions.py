"""JMESPath expressions over a record, with a few text functions. No loops, no names, no I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import jmespath
from jmespath.exceptions import JMESPathError
from jmespath.functions import Functions, signature

from ...model.errors import Invalid

LONGEST = 1000
LARGEST = 10_000_000  # characters that a function may produce


class _TextFunctions(Functions):  # type: ignore[misc]  # the library has no types
    """Text functions that JMESPath lacks."""

    @signature({"types": ["string"]})  # type: ignore[untyped-decorator]
    def _func_lower(self, text: str) -> str:
        return text.lower()

    @signature({"types": ["string"]})  # type: ignore[untyped-decorator]
    def _func_upper(self, text: str) -> str:
        return text.upper()

    @signature({"types": ["string"]})  # type: ignore[untyped-decorator]
    def _func_trim(self, text: str) -> str:
        return text.strip()

    @signature({"types": ["string"]}, {"types": ["string"]})  # type: ignore[untyped-decorator]
    def _func_split(self, between: str, text: str) -> list[str]:
        return text.split(between) if between else text.split()

    @signature({"types": ["string"]}, {"types": ["string"]}, {"types": ["string"]})  # type: ignore[untyped-decorator]
    def _func_replace(self, text: str, old: str, new: str) -> str:
        if not old or text.count(old) * len(new) > LARGEST:
            raise ValueError("replace() needs a non-empty search text, and returns at most 10 MB")
        return text.replace(old, new)


_OPTIONS = jmespath.Options(custom_functions=_TextFunctions())


class ExpressionError(Exception):
    """The expression failed for this record."""


@dataclass(frozen=True, slots=True)
class Expression:
    """A compiled expression; two with the same text are equal."""

    text: str
    parsed: Any = field(compare=False, repr=False)

    @property
    def reads(self) -> frozenset[str]:
        """Names of the fields it reads, with their parents."""
        return frozenset(_fields(self.parsed.parsed))

    def search(self, fields: Mapping[str, Any]) -> Any:
        """Evaluate it for a record; None if nothing matches."""
        try:
            return self.parsed.search(fields, options=_OPTIONS)
        except (JMESPathError, ValueError, TypeError, ArithmeticError, AttributeError, RecursionError) as error:
            raise ExpressionError(" ".join(str(error).split())[:200] or type(error).__name__) from None


def compile_expression(text: str, place: str) -> Expression:
    """Compile an expression; raises Invalid with its place."""
    if not text.strip() or len(text) > LONGEST:
        problem = "is empty" if not text.strip() else f"has more than {LONGEST:,} characters"
        raise Invalid(f"{place} {problem}", field=place, remedy="write JMESPath such as emails[0].address")
    try:
        return Expression(text, jmespath.compile(text))
    except (JMESPathError, RecursionError) as error:
        reason = str(error).splitlines()[0][:200] if str(error) else "nested too deeply"
        remedy = "write JMESPath such as emails[0].address; put names with spaces in double quotes"
        raise Invalid(f"{place} is not a valid expression: {reason}", field=place, remedy=remedy) from None


def _fields(node: Mapping[str, Any]) -> Iterator[str]:
    if node["type"] == "field":
        yield node["value"]
    for child in node["children"]:
        if isinstance(child, Mapping) and "type" in child:
            yield from _fields(child)
