"""Placeholders: what stands for something, what is dropped, what is refused."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from tidings.wire.placeholders import DROPPED, UnresolvedPlaceholder, fill, fill_text, look_up, names

VALUES: dict[str, Any] = {
    "address": "+15551234567",
    "message": {"content": 'Say "hi"', "meta": {"n": 7, "list": [1, 2], "deep": {"x": "y"}, "empty": None}},
}


@pytest.mark.parametrize(
    ("template", "filled"),
    [
        ("{%address%}", "+15551234567"),
        ("{% address %}", "+15551234567"),
        ("to {%address%}!", "to +15551234567!"),
        ("{%message.meta.n%}", 7),
        ("n={%message.meta.n%}", "n=7"),
        ("{%message.meta.list%}", [1, 2]),
        ("l={%message.meta.list%}", "l=[1,2]"),
        ("{%message.meta.list.1%}", 2),
        ("{%message.meta.deep.x%}", "y"),
        ("{%message.meta.none%}", DROPPED),
        ("{%message.meta.empty%}", DROPPED),
        ("plain", "plain"),
        (5, 5),
        (None, None),
        ({"a": "{%message.meta.none%}", "b": {"c": "{%message.meta.none%}", "d": "x"}}, {"b": {"d": "x"}}),
        (["{%message.meta.none%}", "{%address%}", 1], ["+15551234567", 1]),
    ],
)
def test_a_value_that_is_only_a_placeholder_keeps_its_type_or_drops_its_key(template: object, filled: object) -> None:
    """As Connect's API transport does it."""
    assert fill(template, VALUES) == filled


@pytest.mark.parametrize("template", ["x {%message.meta.none%}", {"a": ["x {%message.meta.none%}"]}])
def test_half_a_sentence_is_refused(template: object) -> None:
    """A placeholder inside other text must stand for something."""
    with pytest.raises(UnresolvedPlaceholder, match=r"message\.meta\.none"):
        fill(template, VALUES)


def test_a_value_cannot_leave_its_place() -> None:
    """Filled values are not templates, and in a URL they are escaped."""
    values = {"address": "{%message.content%}/../?x=1&y=2#z", "message": {"content": "no"}}

    assert fill_text("/to/{%address%}", values, lambda text: quote(text, safe="")) == (
        "/to/%7B%25message.content%25%7D%2F..%2F%3Fx%3D1%26y%3D2%23z"
    )


@pytest.mark.parametrize("template", ["{%address", "{%%}", "{%a b%}", {"x": ["{%"]}])
def test_a_placeholder_that_cannot_be_read_is_found(template: object) -> None:
    """At the start, not when the first message is due."""
    with pytest.raises(ValueError, match="malformed placeholder"):
        list(names(template))


def test_all_names_are_found() -> None:
    """At any depth."""
    assert list(names({"a": "{%x%} {%y.z%}", "b": ["{%w%}", 1]})) == ["x", "y.z", "w"]


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("messages[0].id", "m-1"),
        ("messages.0.id", "m-1"),
        ("$.messages[0].id", "m-1"),
        ("messages[1].id", None),
        ("messages[x]", None),
        ("messages.-1", None),
        ("none.at.all", None),
        ("messages[0].id.more", None),
    ],
)
def test_a_path_leads_into_an_answer(path: str, found: object) -> None:
    """Or to nothing, without a surprise."""
    assert look_up({"messages": [{"id": "m-1"}]}, path) == found
