"""Contact fields and filters. Pure."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.outbound.contacts.contact_fields import (
    ContactCard,
    ContactChange,
    apply_change,
    decode_card,
    encode_card,
    normalize_address,
)
from tidings.outbound.contacts.contact_filters import read_filter, serialize_filter
from tidings.outbound.contacts.service import StoredContact, plan_changes

ADA = ContactCard(
    "Ada", {"sms": "+1"}, "Europe/Berlin", "de-AT", ("donor", "vip"), {"city": "Bonn", "age": 36, "in": True}
)


@pytest.mark.parametrize(
    ("body", "is_meant"),
    [
        ({"tags_all": ["vip", "donor"]}, True),
        ({"tags_all": ["vip", "board"]}, False),
        ({"tags_any": ["board", "vip"]}, True),
        ({"tags_any": ["board"]}, False),
        ({"tags_none": ["board"]}, True),
        ({"tags_none": ["vip"]}, False),
        ({"language": "de"}, True),
        ({"language": "DE-at"}, True),
        ({"language": "d"}, None),
        ({"language": "de-CH"}, False),
        ({"timezone": "Europe/Berlin"}, True),
        ({"timezone": "UTC"}, False),
        ({"channel": "sms"}, True),
        ({"channel": "mail"}, False),
        ({"attributes": {"city": "Bonn", "age": "36", "in": "true"}}, True),
        ({"attributes": {"city": "Bonn", "age": 37}}, False),
        ({"attributes": {"country": "de"}}, False),
        ({"tags_all": ["vip"], "timezone": "UTC"}, False),
    ],
)
def test_a_filter_takes_those_it_means(body: dict[str, Any], is_meant: bool | None) -> None:
    """Each condition narrows it down; written out again it is the same filter."""
    if is_meant is None:
        with pytest.raises(Exception, match="not a language"):
            read_filter(body, ("sms", "mail"))
        return
    filter_ = read_filter(body, ("sms", "mail"))

    assert filter_.matches(ADA) is is_meant
    assert read_filter(serialize_filter(filter_), ("sms", "mail")) == filter_


words = st.text("abc", min_size=1, max_size=3)
cards = st.builds(
    ContactCard,
    words,
    st.dictionaries(st.sampled_from(["sms", "mail"]), words),
    st.sampled_from([None, "UTC"]),
    st.sampled_from([None, "de"]),
    st.frozensets(words).map(lambda tags: tuple(sorted(tags))),
    st.dictionaries(words, st.one_of(words, st.integers(0, 9), st.booleans())),
)
changes = st.builds(
    ContactChange,
    st.none() | words,
    st.dictionaries(st.sampled_from(["sms", "mail"]), words, min_size=1),
    st.none(),
    st.none(),
    st.none() | st.frozensets(words).map(tuple),
    st.dictionaries(words, words),
    st.booleans(),
)


@given(card=cards, change=changes)
def test_a_change_twice_is_a_change_once(card: ContactCard, change: ContactChange) -> None:
    """So an upload can be repeated."""
    once = apply_change(card, change)

    assert apply_change(once, change) == once


@given(card=cards)
def test_a_card_is_read_as_it_was_written(card: ContactCard) -> None:
    """Through the columns of the database and back."""
    addresses = "\n".join(f"{channel} {address}" for channel, address in card.addresses.items())

    assert decode_card({**encode_card(card), "addresses": addresses}) == card


@given(many=st.lists(changes, max_size=12))
def test_whatever_the_rows_say_an_address_has_one_owner(many: list[ContactChange]) -> None:
    """And a second time nothing is new: whoever was made is found by an address."""
    numbers = iter(range(1000))
    plan = plan_changes(many, {}, now=1, new_id=lambda: f"c{next(numbers)}")
    places = [(channel, address, known.id) for known in plan.new for channel, address in known.card.addresses.items()]

    assert len({place[:2] for place in places}) == len(places)
    assert all(known.card.addresses for known in plan.new)
    owners = {
        (channel, address): StoredContact(known.id, known.card, 1, 1)
        for known in plan.new
        for channel, address in known.card.addresses.items()
    }
    last = [change for change, kept in zip(many, plan.kept, strict=True) if kept.error is None][-1:]
    again = plan_changes(last, owners, now=2, new_id=lambda: "new")
    assert [kept.what for kept in again.kept] == ["unchanged"] * len(last)


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        (" Ada@Example.ORG ", "ada@example.org"),
        ("Ä@x.org", "Ä@x.org"),
        ("@Ada", "@Ada"),
        ("https://x.org/A@B", "https://x.org/A@B"),
        ("+49 170 1", "+49 170 1"),
    ],
)
def test_only_an_e_mail_address_is_written_small(said: str, kept: str) -> None:
    """Anything else may mean somebody else in other letters."""
    assert normalize_address(said) == kept
