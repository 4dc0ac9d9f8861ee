"""Compile a template and render it for each recipient within a budget. Pure.

The budget counts steps and characters rather than seconds, so the result is deterministic and a template bomb
ends in milliseconds without a thread or timeout.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import orjson
from jinja2 import Template, TemplateSyntaxError, UndefinedError

from ...model.errors import Invalid, TooLarge
from ..markup import HasMarkup, MarkupSpot
from .grammar import TemplateGrammar
from .jinja_sandbox import BUDGET_KEY, ENVIRONMENT, FILTERS, RenderBudget, RenderBudgetExceeded
from .variables import MAX_TEXT_SIZE, DeclaredVariables

MAX_SOURCE_SIZE = 64 * 1024
PARTS = ("text", "subject", "data")
CHOICE_FIELDS = ("parse_mode", "format")  # options that select the markup of the text


class CompiledTemplate:
    """A content whose strings are compiled templates."""

    def __init__(self, parts: Mapping[str, Any], declared: DeclaredVariables, *, uses_contact: bool) -> None:
        self._parts = parts
        self.declared = declared
        self.uses_contact = uses_contact

    def check(self, variables: Mapping[str, Any], *, strict: bool = True) -> None:
        """Raise Invalid for the first variable that is missing or has the wrong type."""
        self.declared.bind(variables, strict=strict)

    def render(
        self,
        variables: Mapping[str, Any],
        *,
        contact: Mapping[str, Any] | None = None,
        recipient: str = "",
        timezone: tzinfo = UTC,
        largest: int = MAX_TEXT_SIZE,
        strict: bool = True,
        channel: object = None,
    ) -> dict[str, Any]:
        """Render the content for one recipient; `zone` is the default time zone.

        Values are escaped where the channel interprets markup. `strict` rejects undeclared variables; rows of
        a file may have additional columns.
        """
        values = self.declared.bind(variables, strict=strict)
        run = RenderBudget(None, timezone) if contact is None else _run(contact, timezone)
        values["contact"] = {} if contact is None else contact
        values["recipient"] = recipient
        values[BUDGET_KEY] = run
        writer = _PartRenderer(values, largest, run, channel if isinstance(channel, HasMarkup) else None)
        writer.choose(self._parts.get("data"))
        return {name: writer.write(part, name) for name, part in self._parts.items()}


class _PartRenderer:
    """Renders the parts of one content within the size limit."""

    def __init__(self, values: dict[str, Any], room: int, run: RenderBudget, marks_up: HasMarkup | None) -> None:
        self._values = values
        self._largest = self._room = room
        self._run, self._marks_up = run, marks_up
        self._data: Mapping[str, object] = {}

    def choose(self, data: Any) -> None:
        """Prepare the `data` that the channel needs to select the markup of a part."""
        if self._marks_up is not None and isinstance(data, dict):
            options = {name: data[name] for name in CHOICE_FIELDS if isinstance(data.get(name), Template)}
            self._data = data | {name: self._fill(value, f"data.{name}") for name, value in options.items()}

    def write(self, part: Any, place: str, inside: Mapping[str, object] | None = None) -> Any:
        if isinstance(part, Template):
            markup = self._marks_up and self._marks_up.markup(MarkupSpot(place, inside or {}, self._data))
            self._run.escape = markup.escape if markup else None
            return self._fill(part, place)
        if isinstance(part, dict):
            return {name: self.write(value, f"{place}.{name}", part) for name, value in part.items()}
        if isinstance(part, list):
            return [self.write(value, f"{place}[{place_}]", inside) for place_, value in enumerate(part)]
        return part

    def _fill(self, template: Template, place: str) -> str:
        context = template.new_context(self._values, shared=True)
        pieces: list[str] = []
        room = self._room
        try:
            for piece in template.root_render_func(context):
                room -= len(piece)
                if room < 0:
                    raise TooLarge(
                        f"{place}: the template renders more than {self._largest:,} characters",
                        field=place,
                        remedy="shorten the template or its values",
                    )
                pieces.append(piece)
        except RenderBudgetExceeded:
            raise Invalid(
                f"{place}: the template exceeds its render budget", field=place, remedy="use fewer or shorter loops"
            ) from None
        except UndefinedError as error:
            raise Invalid(
                f"{place}: {error.message}", field=place, remedy='give a value, or a default: | default("…")'
            ) from None
        except (TypeError, ValueError, ArithmeticError) as error:
            raise Invalid(f"{place}: {error}", field=place, remedy="correct the template or the variable") from None
        self._room = room
        return "".join(pieces)


def compile_content(content: Mapping[str, Any], declared: DeclaredVariables) -> CompiledTemplate:
    """Check and compile `text`, `subject` and the strings of `data`; errors name the line."""
    size = _size(content)
    if size > MAX_SOURCE_SIZE:
        raise TooLarge(
            f"the template has {size:,} bytes", field="text", remedy=f"at most {MAX_SOURCE_SIZE:,} are accepted"
        )
    grammar = TemplateGrammar(declared.variables, FILTERS)
    parts = {name: _compiled(content[name], name, grammar) for name in PARTS if content.get(name) is not None}
    return CompiledTemplate(parts, declared, uses_contact=grammar.uses_contact)


def _size(content: Mapping[str, Any]) -> int:
    try:
        return len(orjson.dumps(content))
    except (TypeError, ValueError) as error:
        raise Invalid(
            f"the template cannot be written as JSON ({error})",
            field="text",
            remedy="use plain JSON values and valid text",
        ) from None


def _compiled(part: Any, place: str, grammar: TemplateGrammar) -> Any:
    if isinstance(part, str):
        return _template(part, place, grammar) if "{" in part else part
    if isinstance(part, dict):
        return {name: _compiled(value, f"{place}.{name}", grammar) for name, value in part.items()}
    if isinstance(part, list):
        return [_compiled(value, f"{place}[{number}]", grammar) for number, value in enumerate(part)]
    return part


def _template(source: str, place: str, grammar: TemplateGrammar) -> Template:
    try:
        grammar.read(ENVIRONMENT.lex(source), place)
        tree = grammar.admit(ENVIRONMENT.parse(source), place)
        return ENVIRONMENT.from_string(tree)
    except TemplateSyntaxError as error:
        raise Invalid(
            f"{place}, line {error.lineno}: {error.message}", field=place, remedy="correct the template"
        ) from None
    except (RecursionError, MemoryError, SyntaxError, ValueError, OverflowError):
        raise Invalid(
            f"{place}: the template is nested too deeply, or has a number that is too long",
            field=place,
            remedy="simplify it",
        ) from None


def _run(contact: Mapping[str, Any], timezone: tzinfo) -> RenderBudget:
    named = contact.get("timezone")
    try:
        own: tzinfo = ZoneInfo(named) if named else timezone
    except (ZoneInfoNotFoundError, ValueError, OSError):
        own = timezone
    return RenderBudget(contact.get("language"), own)
