"""Rendering: what a template may say, what is refused when it is saved, and that no bomb goes off."""

from __future__ import annotations

import gc
import threading
import time
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.time_limits import Limit

from tidings.model.errors import CallerError, Invalid, TooLarge
from tidings.outbound.templates.renderer import MAX_SOURCE_SIZE, CompiledTemplate, compile_content
from tidings.outbound.templates.variables import MAX_TEXT_SIZE, MAX_VALUES_SIZE, parse_declarations

VARIABLES = {
    "name": "text",
    "amount": {"type": "number", "default": 5},
    "due": {"type": "date", "required": False},
    "sure": {"type": "boolean", "required": False},
    "items": {"type": "list", "required": False},
}
CONTACT = {
    "name": "Bea",
    "timezone": "Asia/Kathmandu",
    "language": "de",
    "tags": ["a", "b"],
    "attributes": {"city": "Ulm"},
}
QUICK = 0.5  # seconds


def compiled(text: str, variables: object = None, **more: Any) -> CompiledTemplate:
    """A template with these variables, or with a few of each type."""
    return compile_content({"text": text, **more}, parse_declarations(VARIABLES if variables is None else variables))


def said(text: str, /, contact: dict[str, Any] | None = None, **values: Any) -> str:
    """What a template says."""
    return str(compiled(text).render({"name": "Ada", **values}, contact=contact, recipient="+49")["text"])


# -- what it says


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain words, 100 % { } safe", "plain words, 100 % { } safe"),
        ("Hello {{ name }}!", "Hello Ada!"),
        ("{{ name|upper }} {{ name|lower }} {{ ' x '|trim }}", "ADA ada x"),
        ("{{ amount * 2 + 1 }} {{ 7 // 2 }} {{ 7 % 4 }} {{ -amount }}", "11 3 3 -5"),
        ("{{ name ~ '-' ~ amount }} {{ name + '!' }}", "Ada-5 Ada!"),
        ("{% if sure %}yes{% elif amount > 3 %}many{% else %}no{% endif %}", "many"),
        ("{{ 'a' if amount == 5 else 'b' }}{{ 'c' if amount == 6 }}", "a"),
        ("{{ items|default(['x'])|join(', ') }}", "x"),
        ("{{ due|default('some day') }} {{ due }}|", "some day |"),
        ("{{ recipient }}", "+49"),
        ("{% if 'd' in name and 'z' not in name %}in{% endif %}", "in"),
        ("{{ 'a long sentence'|truncate(7) }}", "a long…"),
        ("{{ name|length }} {{ ['x', 'y']|first }} {{ ['x', 'y']|last }}", "3 x y"),
        ("a\n{% if true %}\n  b\n{% endif %}\nc\n", "a\n  b\nc\n"),
        ("{# a remark #}{{ '{{' }}", "{{"),
        ("{{ name is defined }}", "true"),
        ("<b>{{ '<&>' }}</b>", "<b><&></b>"),
    ],
)
def test_a_template_says_what_it_should(text: str, expected: str) -> None:
    """Issue 3, part 5: gaps, choices, arithmetic, a small set of filters; nothing is escaped, channels do."""
    assert said(text) == expected


def test_loops_go_through_lists() -> None:
    """Plain values and flat objects, with the place of each; nothing when there is nothing."""
    text = (
        "{% for item in items %}{{ loop.index }}/{{ loop.length }} {{ item.what }}"
        "{% if not loop.last %}, {% endif %}{% else %}none{% endfor %}"
    )

    assert said(text, items=[{"what": "bread"}, {"what": "milk"}]) == "1/2 bread, 2/2 milk"
    assert said(text, items=[]) == "none"
    assert (
        said("{% for a in items if a > 1 %}{% for b in items %}{{ a * b }} {% endfor %}{% endfor %}", items=[1, 2])
        == "2 4 "
    )


def test_dates_and_numbers_follow_the_recipient() -> None:
    """In the contact's language and zone; a language that is not listed gets what nobody misreads."""
    text = "{{ due|date }} {{ due|time }} {{ amount|number(2) }}"
    values: dict[str, Any] = {"due": "2027-01-15T20:00:00Z", "amount": 1234567.891}

    assert said(text, **values) == "15 January 2027 20:00 1,234,567.89"
    assert said(text, CONTACT, **values) == "16. Januar 2027 01:45 1.234.567,89"
    assert said(text, CONTACT | {"language": "pt-BR"}, **values).startswith("16 de janeiro de 2027")
    assert said(text, CONTACT | {"language": "xx"}, **values) == "2027-01-16 01:45 1234567.89"
    assert (
        said("{{ due|date('full') }} {{ due|date('short') }}", due="2027-01-15") == "Friday, 15 January 2027 2027-01-15"
    )
    assert said("{{ amount|number }}", amount=1234) == "1,234"


def test_the_contact_is_known() -> None:
    """Its name, tags and attributes; what is not there is told, unless there is a default."""
    assert (
        said("{{ contact.name }} {{ contact.attributes.city }} {{ contact.tags|join('+') }}", CONTACT) == "Bea Ulm a+b"
    )
    assert said("{{ contact.attributes.age|default('?') }}", CONTACT) == "?"
    for contact in (None, CONTACT):
        with pytest.raises(Invalid, match="'age' is not defined"):
            said("{{ contact.attributes.age }}", contact)


def test_subject_and_the_strings_of_data_have_gaps_too() -> None:
    """Names and other values stay as they are."""
    content = {"subject": "For {{ name }}", "data": {"{{ name }}": ["{{ amount }}", 1, None, {"x": "{{ name }}"}]}}
    made = compile_content({"text": "x", **content}, parse_declarations(VARIABLES)).render({"name": "Ada"})

    assert made == {"text": "x", "subject": "For Ada", "data": {"{{ name }}": ["5", 1, None, {"x": "Ada"}]}}


# -- variables


@pytest.mark.parametrize(
    ("values", "field", "problem"),
    [
        ({}, "variables.name", "'name' is missing"),
        ({"name": ""}, "variables.name", "'name' is missing"),
        ({"name": None}, "variables.name", "'name' is missing"),
        ({"nam": "x"}, "variables.name", "'name' is missing"),
        ({"name": 5}, "variables.name", "not a string"),
        ({"name": "x", "amount": "five"}, "variables.amount", "not a number"),
        ({"name": "x", "amount": True}, "variables.amount", "not a number"),
        ({"name": "x", "amount": float("inf")}, "variables.amount", "not a number"),
        ({"name": "x", "amount": 10**16}, "variables.amount", "not a number"),
        ({"name": "x", "due": "2027-02-30"}, "variables.due", "not a date"),
        ({"name": "x", "due": "2027-01-15T09:00"}, "variables.due", "not a date"),
        ({"name": "x", "sure": "perhaps"}, "variables.sure", "not true or false"),
        ({"name": "x", "items": [[1]]}, "variables.items", "not a list"),
        ({"name": "x", "items": ["x"] * 1001}, "variables.items", "not a list"),
        ({"name": "x", "more": 1}, "variables.more", "no variable 'more'"),
    ],
)
def test_what_is_given_is_checked_before_anything_is_sent(values: dict[str, Any], field: str, problem: str) -> None:
    """Issue 3, part 5: a variable that is missing, of the wrong type or unknown is refused by its name."""
    with pytest.raises(Invalid, match=problem) as error:
        compiled("{{ name }}").check(values)

    assert error.value.field == field
    assert error.value.remedy


def test_a_row_of_a_file_may_have_other_columns_and_writes_everything_as_text() -> None:
    """Numbers and yes or no as text are understood; unknown names are passed over when asked."""
    row = {"name": "Ada", "amount": "12.50", "sure": "Yes", "shoe size": "9"}

    made = compiled("{{ amount + 1 }} {{ sure }}").render(row, strict=False)

    assert made["text"] == "13.5 true"


def test_values_that_are_too_large_are_refused() -> None:
    """All texts together."""
    with pytest.raises(TooLarge):
        compiled("{{ name }}").check({"name": "x" * (MAX_VALUES_SIZE + 1)})


@pytest.mark.parametrize(
    "variables",
    [
        [], "x", {"1st": "text"}, {"a b": "text"}, {"_a": "text"}, {"contact": "text"}, {"loop": "text"},
        {"self": "text"}, {"for": "text"}, {"é": "text"}, {"x" * 65: "text"}, {"a": "word"}, {"a": 5},
        {"a": {"typ": "text"}}, {"a": {"type": ["text"]}}, {"a": {"required": "yes"}},
        {"a": {"required": True, "default": "x"}}, {"a": {"type": "number", "default": "many"}},
        {"a": {"type": "date", "example": "soon"}}, {f"v{n}": "text" for n in range(101)},
    ],
    ids=str,
)  # fmt: skip
def test_a_declaration_that_means_nothing_is_refused(variables: object) -> None:
    """Names, types, defaults and examples are checked when the template is saved."""
    with pytest.raises(Invalid) as error:
        parse_declarations(variables)

    assert str(error.value.field).startswith("variables")


# -- what is refused when it is saved


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{{ nam }}", "'nam' is not declared"),
        ("line\n{{ stranger }}", "line 2: the variable 'stranger'"),
        ("{% for x in items %}{% endfor %}{{ x }}", "'x' is not declared"),
        ("{% for x in x %}{% endfor %}", "'x' is not declared"),
        ("{% for name in items %}{% endfor %}", "loop variable 'name'"),
        ("{{ contact.nam }}", "unknown field of a contact 'nam'"),
        ("{{ name|uper }}", "unknown filter 'uper'"),
        ("{{ name|upper(x=1) }}", "named filter arguments"),
        ("{{ name is odd }}", "unknown test 'odd'"),
        ("{{ name", "line 1"),
        ("{% nonsense %}", "nonsense"),
        ("{{ range(10) }}", "calls"),
        ("{{ name.upper() }}", "calls"),
        ("{{ 2 ** 3 }}", "power"),
        ("{% set x = 1 %}", "set"),
        ("{% set x %}a{% endset %}", "set"),
        ("{% include 'x' %}", "include"),
        ("{% import 'x' as y %}", "import"),
        ("{% from 'x' import y %}", "import"),
        ("{% extends 'x' %}", "extends"),
        ("{% block x %}{% endblock %}", "block"),
        ("{% macro m() %}{{ m() }}{% endmacro %}", "macro"),
        ("{% call x() %}{% endcall %}", "callblock"),
        ("{% filter upper %}{% endfilter %}", "filterblock"),
        ("{% with x = 1 %}{% endwith %}", "with"),
        ("{% autoescape true %}{% endautoescape %}", "autoescape"),
        ("{% for x in items recursive %}{% endfor %}", "recursive"),
        ("{{ name[1:2] }}", "slice"),
        ("{{ {'a': 1} }}", "dict"),
        ("{{ loop.cycle }}", "'loop' is not declared"),
        ("{% for x in items %}{{ loop.changed }}{% endfor %}", "unknown field of a loop"),
        ("{{ 9999999999999999 }}", "too large"),
        ("{{ 1e999 }}", "too large"),
        ("{{ self }}", "'self' is not declared"),
    ],
)
def test_what_templates_do_not_have_is_refused_when_saved(text: str, problem: str) -> None:
    """Issue 3, part 5: an undeclared variable, and every part of Jinja that could run away or look around."""
    with pytest.raises(Invalid, match=problem) as error:
        compiled(text)

    assert error.value.field == "text"
    assert error.value.remedy


def test_the_place_within_data_is_named() -> None:
    """So that one finds it."""
    with pytest.raises(Invalid) as error:
        compiled("x", data={"rows": [{"cell": "{{ nope }}"}]})

    assert error.value.field == "data.rows[0].cell"


# -- what is refused when it is rendered


@pytest.mark.parametrize(
    "text",
    [
        "{{ name.__class__ }}", "{{ name['__class__'] }}", "{{ items.append }}", "{{ ''.__class__.__mro__ }}",
        "{{ contact.attributes.__class__ }}", "{{ contact.attributes.items }}",
        "{{ contact.attributes.get }}",
        "{{ (1).real }}", "{{ name.format }}", "{{ items[99] }}", "{{ items['x'] }}", "{{ name[0] }}",
        "{% for x in items %}{{ loop['_iterator'] }}{% endfor %}",
        "{% for x in items %}{{ loop }}{% endfor %}",
        "{{ items }}", "{{ contact }}", "{{ contact.attributes }}", "{{ name * 3 }}", "{{ '%9999d' % 1 }}",
        "{{ items + items }}", "{{ items * 3 }}", "{{ 1 / 0 }}", "{{ 1 % 0 }}", "{{ 1 < 'a' }}",
        "{{ -name }}",
        "{% for c in name %}{% endfor %}", "{% for a, b in items %}{% endfor %}", "{{ name|date }}",
        "{{ name|number }}", "{{ amount|number(10) }}", "{{ amount|number('x') }}", "{{ name|truncate(0) }}",
        "{{ name|join }}", "{{ '2027-01-15'|time }}", "{{ '2027-01-15'|date('odd') }}",
        "{{ 999999999999999 * 999999999999999 }}", "{{ name|upper('x') }}", "{{ amount|length }}",
        "{{ 'x' in 5 }}", "{{ items in name }}",
    ],
)  # fmt: skip
def test_nothing_but_plain_values_can_be_reached(text: str) -> None:
    """No attribute of Python's, no method, no text made of a list: a clear answer instead."""
    with pytest.raises(CallerError) as error:
        said(text, CONTACT, items=["a"])

    assert str(error.value.field) == "text"
    assert "object at 0x" not in str(error.value)


# -- bombs

BIG = "x" * 60_000
LIST = list(range(1000))
BOMBS = {
    "range": "{% for i in range(1000000000) %}{% endfor %}",
    "nested loops": "{% for a in items %}{% for b in items %}{% for c in items %}" + "{% endfor %}" * 3,
    "nested loops with output": "{% for a in items %}{% for b in items %}{{ name }}{% endfor %}{% endfor %}",
    "filtered loop": "{% for a in items if a < 0 %}{% for b in items %}{% endfor %}{% endfor %}"
    + "{% for a in items %}{% for b in items if b < 0 %}x{% endfor %}{% endfor %}",
    "a long body": "{% for a in items %}" + "{% if a %}{% endif %}" * 1500 + "{% endfor %}",
    "many loops": "{% for a in items %}{% endfor %}" * 1000,
    "repeated text": "{{ 'x' * 1000000000 }}",
    "repeated variable": "{{ name * 1000000000 }}",
    "format width": "{{ '%1000000000d' % 1 }}",
    "format method": "{{ '{:>1000000000}'.format(1) }}",
    "center": "{{ 'x'|center(1000000000) }}",
    "indent": "{{ name|indent(1000000000) }}",
    "power": "{{ 9 ** 9 ** 9 }}",
    "products": "{{ " + "*".join(["999999999999999"] * 40) + " }}",
    "tall number": "{{ " + "9" * 60_000 + " }}",
    "long number": "{{ " + "9" * 4000 + " }}",
    "hex number": "{{ 0x" + "f" * 60_000 + " }}",
    "shift of signs": "{{ " + "-" * 60_000 + "1 }}",
    "joined": "{{ " + "~".join(["name"] * 900) + " }}",
    "joined in a loop": "{% for a in items %}{{ name ~ name ~ name }}{% endfor %}",
    "joined pairs": "{% if " + " and ".join(["(name ~ name) == (name ~ name)"] * 400) + " %}x{% endif %}",
    "added": "{{ " + "+".join(["name"] * 50) + " }}",
    "join filter": "{{ items|join(name) }}",
    "printed": "{{ name }}" * 2000,
    "filters": "{% if name" + "|upper|lower" * 20 + " %}{% endif %}" * 1,
    "many filters": "{% if name|upper %}{% endif %}" * 1500,
    "searches": "{% if '" + "x" * 100 + "y' in name %}{% endif %}" * 400,
    "searches in a loop": "{% for a in items %}{% if 'xxxxxxxxxxy' in name %}{% endif %}{% endfor %}",
    "comparisons": "{% for a in items %}" + "{% if name == name %}{% endif %}" * 20 + "{% endfor %}",
    "parentheses": "{{ " + "(" * 30_000 + "1" + ")" * 30_000 + " }}",
    "brackets": "{{ " + "[" * 30_000 + "]" * 30_000 + " }}",
    "sums": "{{ " + "+".join(["1"] * 30_000) + " }}",
    "nots": "{{ " + "not " * 15_000 + "1 }}",
    "attributes": "{{ contact" + ".attributes" * 5000 + " }}",
    "subscripts": "{{ contact" + "[0]" * 15_000 + " }}",
    "chained filters": "{{ name" + "|upper" * 9000 + " }}",
    "nested ifs": "{% if 1 %}" * 1500 + "x" + "{% endif %}" * 1500,
    "nested fors": "{% for a in items %}" * 1200 + "{% endfor %}" * 1200,
    "else ifs": "{% if 0 %}" + "{% elif 0 %}" * 5000 + "{% endif %}",
    "conditions": "{{ " + "1 if 0 else " * 4000 + "2 }}",
    "comparison chain": "{{ " + "<".join(["1"] * 30_000) + " }}",
    "empty gaps": "{{ '' }}" * 8000,
    "unclosed": "{{" * 30_000,
    "braces": "{" * 60_000,
    "remarks": "{#" * 30_000,
    "raw": "{% raw %}" * 7000,
    "quotes": "{{ '" + "\\\\" * 25_000 + "",
    "dashes": "{%-" * 20_000,
    "blanks": " " * 30_000 + "{{ 1 }}" + " " * 30_000,
    "macro": "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "recursive loop": "{% for a in [[1]] recursive %}{{ loop(a) }}{% endfor %}",
    "doubling": "{% set a = name %}" + "{% set a = a ~ a %}" * 1000,
    "namespace": "{% set n = namespace(a=name) %}{% for i in items %}{% set n.a = n.a ~ n.a %}{% endfor %}",
    "cycler": "{{ cycler(*items) }}{{ lipsum(100000) }}",
}


@pytest.mark.parametrize("text", BOMBS.values(), ids=BOMBS.keys())
def test_a_bomb_does_not_go_off(text: str) -> None:
    """Issue 3, bad input: it ends at once, with a clear answer or a small result, on this very thread."""
    threads = threading.active_count()
    gc.disable()  # the heap of all the other tests is not what is timed here
    limit = Limit(QUICK, clock=time.thread_time)
    try:
        made = said(text, CONTACT, name=BIG, items=LIST)
    except CallerError as error:
        assert error.problem and error.remedy
        assert len(str(error)) < 1000
    else:
        assert len(made) <= MAX_TEXT_SIZE
    finally:
        over = limit.is_over()
        gc.enable()
    assert not over
    assert threading.active_count() == threads


def test_many_strings_of_data_are_bounded_together() -> None:
    """A bomb that is spread out is still one."""
    with pytest.raises(Invalid, match="more than"):
        compiled("x", data={str(n): "{{ name }}" * 60 for n in range(60)})


def test_a_source_that_is_too_large_is_refused() -> None:
    """Before anything of it is read."""
    with pytest.raises(TooLarge):
        compiled("x" * (MAX_SOURCE_SIZE + 1))


def test_the_output_has_a_limit_over_all_parts() -> None:
    """Subject and data count, too."""
    made = compile_content({"text": "{{ name }}", "subject": "{{ name }}"}, parse_declarations({"name": "text"}))

    assert made.render({"name": "x" * 50}, largest=100)["subject"] == "x" * 50
    with pytest.raises(TooLarge, match="more than 100"):
        made.render({"name": "x" * 51}, largest=100)


PIECES = st.sampled_from(
    [
        "{{", "}}", "{%", "%}", " name", " items", " for x in", " endfor", " if", " endif", " else", "|upper",
        "|join", "(", ")", "[", "]", "+", "*", "~", " in ", "'", '"', "1", "9e9", ".", ",", " x",
        " loop.index", " contact", ".name", "==", "-", "{#", "#}", "\n", "\\", "é", "\x00", " range",
        " set x =", " macro m()", " raw", " not",
    ]
)  # fmt: skip


@given(st.lists(PIECES, max_size=40))
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_text_either_renders_or_is_refused(pieces: list[str]) -> None:
    """No junk gets past the two kinds of answers."""
    try:
        said("".join(pieces), CONTACT, items=[1, {"a": "b"}])
    except CallerError as error:
        assert error.problem


@given(st.text(max_size=200), st.integers(-(10**15), 10**15), st.lists(st.text(max_size=5), max_size=5))
@settings(max_examples=100, deadline=None)
def test_values_are_never_read_as_templates(name: str, amount: int, items: list[str]) -> None:
    """What a recipient is called cannot do anything."""
    text = "{{ name }}|{{ amount }}|{{ items|join('/') }}"
    values = {"name": name or "x", "amount": amount, "items": items}

    assert compiled(text).render(values)["text"] == f"{name or 'x'}|{amount}|{'/'.join(items)}"
