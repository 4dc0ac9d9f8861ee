"""Confines: what a template meets while it is rendered. Plain values, a few filters, and a budget.

Every step that could take long asks the budget first, in parts of the template and characters rather than in
seconds; so what is refused once is refused always, and nothing needs a thread or a clock to be stopped.
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

MAX_WORK = 100_000  # parts of a template that loops run through; 64 characters of a text count as one
MAX_DIGITS = 9
BUDGET_KEY = " run"  # a name that no template can spell: who is written to, and what may still be done


class RenderBudgetExceeded(Exception):
    """The budget is used up."""


class RenderBudget:
    """One rendering: its budget, and the language and zone to write in."""

    __slots__ = ("escape", "language", "left", "timezone")

    def __init__(self, language: str | None, timezone: tzinfo) -> None:
        self.left = MAX_WORK
        self.language = language
        self.timezone = timezone
        self.escape: Callable[[str], str] | None = None  # of the part that is being written

    def spend(self, steps: int) -> None:
        """Ask before so many steps are taken."""
        self.left -= steps
        if self.left < 0:
            raise RenderBudgetExceeded

    def spend_text(self, size: int) -> None:
        """Ask before a text of this size is made or gone through."""
        if size > MAX_TEXT_SIZE:
            raise RenderBudgetExceeded
        self.spend(1 + size // 64)


class SafeText(str):
    """A text that its author vouches for: it goes in as it is."""

    __slots__ = ()


class _SandboxedJinja(ImmutableSandboxedEnvironment):
    """Jinja with nothing in it: things are looked up in plain values only, and arithmetic is bounded."""

    intercepted_binops = frozenset(["+", "-", "*", "/", "//", "%"])

    def getattr(self, obj: Any, attribute: str) -> Any:
        """A field of an object; never an attribute of Python's."""
        return self.getitem(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        """A field of an object or an item of a list."""
        if isinstance(obj, dict | Mapping) and isinstance(argument, str) and argument in obj:
            return obj[argument]
        if type(obj) is LoopContext and argument in LOOP_FIELDS:
            return getattr(obj, argument)
        if isinstance(obj, list | tuple) and type(argument) is int and -len(obj) <= argument < len(obj):
            return obj[argument]
        return self.undefined(f"{str(argument)[:60]!r} is not known of this recipient or item")

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Numbers of a sane size; texts may be added."""
        if operator == "+" and isinstance(left, str) and isinstance(right, str):
            _run_of(context).spend_text(len(left) + len(right))
            return left + right
        found = self.binop_table[operator](_a_number(left), _a_number(right))
        if abs(found) > MAX_NUMBER:
            raise ValueError("a number gets too large")
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
        str(value)  # raises, and says what is not there
    kind = {dict: "an object", str: "a text", list: "a list", bool: "true or false"}.get(type(value))
    raise TypeError(f"{kind or 'something else'} stands where {wanted} is needed")


def _printed(value: Any) -> str:
    """What is put into the text; a list or an object is nothing that could be read."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, Undefined | int | float):
        return str(value)
    _refuse(value, "a text or a number")


@pass_context
def _put(context: Context, value: Any) -> str:
    """A value as it goes into the text: escaped for the part's markup, unless it is marked safe."""
    text, run = _printed(value), _run_of(context)
    if run.escape is None or isinstance(text, SafeText):
        return text
    run.spend_text(len(text))
    return run.escape(text)


def _safe(_context: Context, value: Any) -> SafeText:
    return SafeText(_a_text(value))


def _each(context: Context, value: Any, cost: int) -> list[Any] | tuple[Any, ...]:
    """The items of a loop, paid for beforehand."""
    items = _a_list(value)
    _run_of(context).spend(1 + len(items) * cost)
    return items


def _joined(context: Context, value: list[Any]) -> str:
    return _join(context, value)


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
    """A filter of texts that is paid for by the length of the text."""

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


_STEPS: Mapping[str, Callable[..., Any]] = {EACH_STEP: _each, JOIN_STEP: _joined, SEARCH_STEP: _within}
ENVIRONMENT = _environment({**FILTERS, **_STEPS})
