"""The sandboxed Jinja environment: plain values, a few filters, and a render budget.

Every step that could take long first spends from the budget, counted in template nodes and characters, so
rendering is deterministic and needs no thread or timeout to be stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import tzinfo
from typing import Any, NoReturn

from jinja2 import StrictUndefined, Undefined, pass_context
from jinja2.runtime import Context, LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment

from .grammar import EACH_STEP, JOIN_STEP, LOOP_FIELDS, SEARCH_STEP, TESTS
from .localization import format_date, format_number, format_time
from .variables import MAX_NUMBER, MAX_TEXT_SIZE

MAX_WORK = 100_000  # template nodes executed by loops; 64 characters of text count as one
MAX_DIGITS = 9
BUDGET_KEY = " run"  # a context key that no template can spell


class RenderBudgetExceeded(Exception):
    """The render budget is exhausted."""


class RenderBudget:
    """The budget, language and time zone of one rendering."""

    __slots__ = ("escape", "language", "left", "timezone")

    def __init__(self, language: str | None, timezone: tzinfo) -> None:
        self.left = MAX_WORK
        self.language = language
        self.timezone = timezone
        self.escape: Callable[[str], str] | None = None  # of the current part

    def spend(self, steps: int) -> None:
        """Spend steps; raises RenderBudgetExceeded."""
        self.left -= steps
        if self.left < 0:
            raise RenderBudgetExceeded

    def spend_text(self, size: int) -> None:
        """Spend the cost of a text of this size; raises RenderBudgetExceeded."""
        if size > MAX_TEXT_SIZE:
            raise RenderBudgetExceeded
        self.spend(1 + size // 64)


class SafeText(str):
    """Text marked as safe: it is not escaped."""

    __slots__ = ()


class _SandboxedJinja(ImmutableSandboxedEnvironment):
    """Jinja that looks up plain values only, with bounded arithmetic."""

    intercepted_binops = frozenset(["+", "-", "*", "/", "//", "%"])

    def getattr(self, obj: Any, attribute: str) -> Any:
        """A field of an object, never a Python attribute."""
        return self.getitem(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        """A field of an object or an item of a list."""
        if isinstance(obj, dict | Mapping) and isinstance(argument, str) and argument in obj:
            return obj[argument]
        if type(obj) is LoopContext and argument in LOOP_FIELDS:
            return getattr(obj, argument)
        if isinstance(obj, list | tuple) and type(argument) is int and -len(obj) <= argument < len(obj):
            return obj[argument]
        return self.undefined(f"{str(argument)[:60]!r} is not defined for this recipient or item")

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Compute with bounded numbers; `+` also joins texts."""
        if operator == "+" and isinstance(left, str) and isinstance(right, str):
            _run_of(context).spend_text(len(left) + len(right))
            return left + right
        found = self.binop_table[operator](_a_number(left), _a_number(right))
        if abs(found) > MAX_NUMBER:
            raise ValueError("a number is too large")
        return found


def _run_of(context: Context) -> RenderBudget:
    run: RenderBudget = context.parent[BUDGET_KEY]
    return run


def _a_number(value: Any) -> int | float:
    if type(value) is int or type(value) is float:
        return value
    _refuse(value, "a number")


def _a_text(value: Any) -> str:
    return value if type(value) is str else _printed(value)


def _a_list(value: Any) -> list[Any] | tuple[Any, ...]:
    if isinstance(value, list | tuple):
        return value
    _refuse(value, "a list")


def _refuse(value: Any, wanted: str) -> NoReturn:
    if isinstance(value, Undefined):
        str(value)  # raises and names the undefined value
    kind = {dict: "an object", str: "text", list: "a list", bool: "true or false"}.get(type(value))
    raise TypeError(f"{wanted} is needed, not {kind or 'another value'}")


def _printed(value: Any) -> str:
    """A value as text; raises TypeError for lists and objects."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, Undefined | int | float):
        return str(value)
    _refuse(value, "text or a number")


@pass_context
def _put(context: Context, value: Any) -> str:
    """A value as output: escaped for the part's markup unless marked safe."""
    text, run = _printed(value), _run_of(context)
    if run.escape is None or isinstance(text, SafeText):
        return text
    run.spend_text(len(text))
    return run.escape(text)


def _safe(_context: Context, value: Any) -> SafeText:
    return SafeText(_a_text(value))


def _each(context: Context, value: Any, cost: int) -> list[Any] | tuple[Any, ...]:
    """The items of a loop; spends their cost first."""
    items = _a_list(value)
    _run_of(context).spend(1 + len(items) * cost)
    return items


def _join(context: Context, value: Any, between: str = "") -> str:
    pieces = [_a_text(item) for item in _a_list(value)]
    _run_of(context).spend_text(sum(map(len, pieces)) + len(_a_text(between)) * len(pieces))
    return _a_text(between).join(pieces)


def _within(context: Context, value: Any, where: Any) -> bool:
    if isinstance(where, str):
        _run_of(context).spend_text(4 * len(where))
        return _a_text(value) in where
    items = _a_list(where)
    _run_of(context).spend(len(items))
    return value in items


def _on_text(change: Callable[..., str]) -> Callable[..., str]:
    """A text filter that spends by the length of the text."""

    def apply(context: Context, value: Any, *more: Any) -> str:
        text = _a_text(value)
        _run_of(context).spend_text(len(text))
        return change(text, *more)

    return apply


def _truncate(text: str, length: Any = 100) -> str:
    room = _a_number(length)
    if not 1 <= room <= MAX_TEXT_SIZE:
        raise ValueError("truncate needs a length of at least 1")
    return text if len(text) <= room else text[: int(room) - 1].rstrip() + "…"


def _default(_context: Context, value: Any, instead: Any = "") -> Any:
    return instead if isinstance(value, Undefined) or value is None or value == "" else value


def _length(_context: Context, value: Any) -> int:
    return len(value) if isinstance(value, str) else len(_a_list(value))


def _end(place: int) -> Callable[[Context, Any], Any]:
    def pick(_context: Context, value: Any) -> Any:
        items = _a_list(value)
        return items[place] if items else None

    return pick


def _dated(context: Context, value: Any, form: Any = "day") -> str:
    run = _run_of(context)
    return format_date(_a_text(value), _a_text(form), run.language, run.timezone)


def _timed(context: Context, value: Any) -> str:
    return format_time(_a_text(value), _run_of(context).timezone)


def _counted(context: Context, value: Any, digits: Any = None) -> str:
    if digits is not None and (type(digits) is not int or not 0 <= digits <= MAX_DIGITS):
        raise ValueError(f"number takes 0 to {MAX_DIGITS} digits")
    return format_number(_a_number(value), digits, _run_of(context).language)


FILTERS: Mapping[str, Callable[..., Any]] = {
    "upper": _on_text(str.upper),
    "lower": _on_text(str.lower),
    "capitalize": _on_text(str.capitalize),
    "trim": _on_text(str.strip),
    "truncate": _on_text(_truncate),
    "default": _default,
    "join": _join,
    "length": _length,
    "first": _end(0),
    "last": _end(-1),
    "date": _dated,
    "time": _timed,
    "number": _counted,
    "safe": _safe,
}


def _environment(filters: Mapping[str, Callable[..., Any]]) -> _SandboxedJinja:
    made = _SandboxedJinja(
        undefined=StrictUndefined,
        finalize=_put,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        cache_size=0,
    )
    made.globals.clear()
    made.filters = {name: pass_context(work) for name, work in filters.items()}
    made.tests = {name: made.tests[name] for name in TESTS}
    return made


_STEPS: Mapping[str, Callable[..., Any]] = {EACH_STEP: _each, JOIN_STEP: _join, SEARCH_STEP: _within}
ENVIRONMENT = _environment({**FILTERS, **_STEPS})
