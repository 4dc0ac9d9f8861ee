"""Mapping: each rule, every sort of junk, hashes, order and lint (C4)."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.migration.connectors.port import Attribute, ConnectorError, ErrorKind, Record
from tidings.migration.mapping.content_hash import canonical_json, content_digest
from tidings.migration.mapping.dependency_order import waves
from tidings.migration.mapping.lint import lint, observed_attributes
from tidings.migration.mapping.map_parser import read_type
from tidings.migration.mapping.mapped_record import MappedRecord, RejectedRecord, schema_mismatch
from tidings.migration.mapping.mapper import Mapper
from tidings.migration.mapping.rules import FieldKind, TypeMap
from tidings.migration.record_states import RecordState
from tidings.model.errors import Invalid


def type_map(name: str = "people", *, hooks: bool = True, **raw: Any) -> TypeMap:
    return read_type(name, {"fields": {"name": "name"}, **raw}, allow_hooks=hooks)


def mapped(rule: object, fields: Mapping[str, Any], known: Mapping[tuple[str, str], str] | None = None) -> Any:
    """One field `x` of one record, through its rule."""
    mapper = Mapper([read_type("people", {"fields": {"x": rule}}, allow_hooks=False)])
    return mapper.map(Record("people", "17", fields), lambda type_, id_: (known or {}).get((type_, id_)))


def value(rule: object, given_value: Any) -> Any:
    made = mapped(rule, {"x": given_value})
    assert isinstance(made, MappedRecord), made
    return made.fields["x"]


def refusal(rule: object, given_value: Any) -> RejectedRecord:
    made = mapped(rule, {"x": given_value})
    assert isinstance(made, RejectedRecord), made
    return made


@pytest.mark.parametrize(
    ("kind", "given_value", "expected"),
    [
        ("text", "Ada", "Ada"),
        ("text", 7, "7"),
        ("text", 7.0, "7"),
        ("text", 2**70, str(2**70)),
        ("text", True, "true"),
        ("number", " 12.50 ", 12.5),
        ("number", "1e3", 1000),
        ("number", Decimal("3.10"), 3.1),
        ("number", 0, 0),
        ("boolean", "Yes", True),
        ("boolean", 0, False),
        ("date", "2026-11-16", "2026-11-16"),
        ("date", "2026-11-16T00:00:00Z", "2026-11-16"),
        ("date", date(2026, 11, 16), "2026-11-16"),
        ("time", "2026-11-16T09:00:00+01:00", "2026-11-16T08:00:00Z"),
        ("time", "2026-11-16T09:00:00.123456789Z", "2026-11-16T09:00:00.123456Z"),
        ("time", datetime(2026, 11, 16, 9, tzinfo=UTC), "2026-11-16T09:00:00Z"),
        ("email", " Ada.L@Example.ORG ", "Ada.L@example.org"),
        ("phone", "+49 (0) 30 / 123-4567", "+49301234567"),
        ("phone", "0049 30 1234567", "+49301234567"),
        ("url", "https://example.org/a?b=c", "https://example.org/a?b=c"),
        ("select", " lead ", "lead"),
        ("json", {"a": [1, {"b": None}]}, {"a": [1, {"b": None}]}),
    ],
)
def test_each_type_has_one_form(kind: str, given_value: Any, expected: Any) -> None:
    """C4: what the target gets does not depend on how the source wrote it."""
    assert value({"type": kind}, given_value) == expected


@pytest.mark.parametrize(
    ("kind", "junk", "said"),
    [
        ("text", "a\0b", "null byte at position 1"),
        ("text", "a\ud800", "a lone surrogate"),
        ("text", "x" * 50_000_000, "50,000,000 characters"),
        ("text", {"a": 1}, "an object"),
        ("text", ["a"], "a list"),
        ("text", b"\xff", "bytes"),
        ("text", float("nan"), "finite"),
        ("number", "1,234", "thousands"),
        ("number", "1_000", "not a number"),
        ("number", "٣", "not a number"),
        ("number", True, "true or false"),
        ("number", float("inf"), "finite"),
        ("number", "0.12345678901234567890123", "more digits"),
        ("number", "1e999", "more digits"),
        ("number", 2**64, "64 bits"),
        ("text", 10**5000, "64 bits"),
        ("json", {"a": Decimal("1E+1000000")}, "too large"),
        ("boolean", "perhaps", "neither"),
        ("date", "03/04/2026", "format"),
        ("date", "2026-02-30", "not a time"),
        ("date", "2026-11-16T23:30:00Z", "time of day"),
        ("time", "2026-11-16T09:00:00", "no time zone"),
        ("time", 1_700_000_000, "epoch"),
        ("time", "0001-01-01T00:00:00+14:00", "years"),
        ("email", "ada@", "email"),
        ("email", "a..b@example.org", "email"),
        ("email", "Ada <ada@example.org>", "email"),
        ("phone", "030 1234567", "country"),
        ("phone", "call me", "country"),
        ("url", "example.org", "https://"),
        ("url", "javascript:alert(1)", "https://"),
        ("url", "https://[bad", "https://"),
        ("json", {"a": "\0"}, "null byte"),
        ("json", {"a": {1, 2}}, "cannot be written as JSON"),
    ],
    ids=lambda value: value[:20] if isinstance(value, str) else type(value).__name__,
)
def test_junk_is_refused_with_record_field_value_and_rule(kind: str, junk: Any, said: str) -> None:
    """C4: one bad record is named in full and short, and only it."""
    found = refusal({"type": kind}, junk)

    assert (found.type, found.id, found.field, found.rule) == ("people", "17", "x", kind)
    assert (found.failure, found.state) == (ErrorKind.VALIDATION, RecordState.REJECTED)
    assert said in found.reason
    assert len(str(found)) < 400 and "\0" not in str(found) and "\n" not in str(found)


def test_a_secret_field_is_redacted() -> None:
    """S9: what the map marks as secret does not reach the log."""
    found = refusal({"type": "email", "secret": True}, "canary-4711")

    assert "canary-4711" not in str(found)


def test_a_path_goes_down_and_a_whole_name_comes_first() -> None:
    """Columns of a file may have blanks and dots in their names."""
    fields = {"a": {"b": [{"c": "deep"}]}, "First Name": "Ada", "a.b": "whole"}

    assert mapped("a.b.0.c", fields).fields == {"x": "deep"}
    assert mapped("First Name", fields).fields == {"x": "Ada"}
    assert mapped("a.b", fields).fields == {"x": "whole"}
    assert mapped("a.b.9.c", {"a": {"b": []}}).fields == {}
    assert mapped("@id", {}).fields == {"x": "17"}


def test_a_constant_and_a_default_fill_what_the_source_lacks() -> None:
    """An empty text is nothing, zero and false are something."""
    assert mapped({"constant": 5, "type": "number"}, {}).fields == {"x": 5}
    assert mapped({"default": "none"}, {"x": ""}).fields == {"x": "none"}
    assert mapped({"default": 3, "type": "number"}, {"x": 0}).fields == {"x": 0}


def test_an_expression_reads_the_record_and_its_failure_is_reported() -> None:
    """JMESPath, with functions for texts; an error is the record's, not the batch's."""
    both = {"expression": "join(' ', [first, last])"}

    assert mapped(both, {"first": "Ada", "last": "L"}).fields == {"x": "Ada L"}
    assert mapped(
        {"expression": "emails[?primary].address | [0] | lower(@)"},
        {"emails": [{"address": "A@B.C"}, {"address": "D@E.F", "primary": True}]},
    ).fields == {"x": "d@e.f"}
    found = mapped(both, {"first": "Ada", "last": None})
    assert found.rule == "expression" and "join" in found.reason


def test_an_option_that_is_not_mapped_is_an_error_unless_there_is_a_star() -> None:
    """An unknown option must not turn into a text quietly."""
    table = {"type": "select", "values": {"new": "Lead", "2": "Won"}}

    assert value(table, "new") == "Lead"
    assert value(table, 2) == "Won"
    assert refusal(table, "lost").rule == "values"
    assert value({**table, "values": {"new": "Lead", "*": "Other"}}, "lost") == "Other"
    assert value({**table, "many": True}, ["new", 2]) == ["Lead", "Won"]
    assert refusal({"type": "select", "options": ["a"]}, "b").rule == "select"


def test_what_is_missing_is_left_cleared_refused_or_skipped() -> None:
    """on_missing, each word of it; required says the nearest field that is there."""
    assert mapped("x", {"x": None}).fields == {}
    assert mapped({"on_missing": "clear"}, {"x": ""}).fields == {"x": None}
    skipped = mapped({"on_missing": "skip"}, {})
    assert (skipped.state, skipped.failure) == (RecordState.SKIPPED, None)
    found = mapped({"path": "emial", "required": True}, {"email": "a@b.c"})
    assert found.rule == "required" and "did you mean 'email'" in found.reason


def test_a_bad_value_may_be_left_out_or_replaced_but_never_silently() -> None:
    """on_error, each word of it."""
    left = mapped({"type": "email", "on_error": "leave"}, {"x": "junk"})
    replaced = mapped({"type": "number", "on_error": "default", "default": 0}, {"x": "many"})

    assert left.fields == {} and left.lost[0].field == "x" and left.lost[0].value == '"junk"'
    assert replaced.fields == {"x": 0} and replaced.lost
    assert mapped({"type": "email", "on_error": "skip"}, {"x": "junk"}).state is RecordState.SKIPPED


def test_times_are_read_in_the_zone_and_form_that_the_rule_says() -> None:
    """A time without a zone is a guess, unless the map says where it was written."""
    berlin = {"type": "time", "timezone": "Europe/Berlin"}

    assert value(berlin, "2026-07-01T09:00:00") == "2026-07-01T07:00:00Z"
    assert value({**berlin, "format": "%d.%m.%Y %H:%M"}, "01.07.2026 09:00") == "2026-07-01T07:00:00Z"
    assert value({"type": "time", "format": "epoch_ms"}, 1_500) == "1970-01-01T00:00:01.500000Z"
    assert value({"type": "date", "format": "%d.%m.%Y"}, "01.07.2026") == "2026-07-01"
    assert value({"type": "date", "timezone": "Asia/Tokyo"}, "2026-11-16T23:30:00Z") == "2026-11-17"


LINK = {"reference": "companies", "path": "company"}


def types(**unresolved: str) -> Mapper:
    companies = read_type("companies", {"fields": {"name": "name"}}, allow_hooks=False)
    return Mapper([companies, read_type("people", {"fields": {"x": {**LINK, **unresolved}}}, allow_hooks=False)])


def test_a_link_goes_through_the_crosswalk_and_waits_where_the_other_end_is_missing() -> None:
    """Company before contact; unresolved is a wait, not a fault."""
    record = Record("people", "1", {"company": 7})

    assert types().references(record) == [("companies", "7")]
    found = types().map(record, lambda _type, _id: "t7")
    assert isinstance(found, MappedRecord)
    assert found.fields == {"x": "t7"}
    assert found.relations[0] == ("x", "companies", "7", "t7")
    waiting = types().map(record, lambda _type, _id: None)
    assert isinstance(waiting, RejectedRecord)
    assert (waiting.failure, waiting.state) == (ErrorKind.DEPENDENCY, RecordState.WAITING)
    later = types(unresolved="leave").map(record, lambda _type, _id: None)
    assert isinstance(later, MappedRecord) and later.fields == {} and later.relations[0].target_id is None
    never = types(unresolved="refuse").map(record, lambda _type, _id: None)
    assert isinstance(never, RejectedRecord) and never.state is RecordState.REJECTED


def test_a_record_is_known_by_its_key() -> None:
    """Without a key nothing could be written only once."""
    mapper = Mapper([type_map(key="code")])

    known = mapper.map(Record("people", "1", {"code": " A7 "}), lambda _t, _i: None)
    assert isinstance(known, MappedRecord) and known.key == "A7"
    for junk in ({}, {"code": ""}, {"code": "  "}, {"code": ["a"]}, {"code": "x" * 501}):
        found = mapper.map(Record("people", "1", junk), lambda _t, _i: None)
        assert isinstance(found, RejectedRecord) and found.rule == "key", junk


def shout(record: Record, fields: dict[str, Any]) -> dict[str, Any] | None:
    """The hook of these tests."""
    match fields.get("name"):
        case "nobody":
            return None
        case "bad":
            raise ConnectorError(ErrorKind.VALIDATION, "not this one", field="name")
        case "bug":
            raise KeyError("oops")
        case "wrong":
            return {"name": object()}
        case "list":
            return []  # type: ignore[return-value]
    return {**fields, "loud": str(fields["name"]).upper(), "of": record.id}


def test_a_hook_has_the_last_word_and_its_errors_are_errors_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """C5: what a hook raises on purpose keeps its kind; any other exception is no bad data."""
    monkeypatch.setitem(sys.modules, "own_hooks", SimpleNamespace(shout=shout))
    mapper = Mapper([type_map(hook="own_hooks:shout")])

    def run(name: str) -> Any:
        return mapper.map(Record("people", "1", {"name": name}), lambda _t, _i: None)

    assert run("ada").fields == {"name": "ada", "loud": "ADA", "of": "1"}
    assert run("nobody").state is RecordState.SKIPPED
    assert (run("bad").failure, run("bad").field) == (ErrorKind.VALIDATION, "name")
    for name in ("bug", "wrong", "list"):
        assert run(name).failure is ErrorKind.PROGRAM, name
    assert run("bug").fingerprint == run("bug").fingerprint
    for missing in ("no_such_module:f", "json:no_such"):
        with pytest.raises(Invalid) as caught:
            Mapper([type_map(hook=missing)])
        assert caught.value.remedy


def test_a_record_may_be_left_out_by_an_expression() -> None:
    """Left out by decision is not an error."""
    mapper = Mapper([type_map(skip="archived || starts_with(name, 'test')")])

    found = mapper.map(Record("people", "1", {"name": "test 1"}), lambda _t, _i: None)
    assert isinstance(found, RejectedRecord) and found.state is RecordState.SKIPPED and found.failure is None


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)


@settings(max_examples=50)
@given(st.dictionaries(st.text(max_size=4), plain, max_size=6), st.randoms(use_true_random=False))
def test_a_hash_does_not_depend_on_the_order_of_keys_or_on_a_way_through_json(
    fields: dict[str, Any], chance: Any
) -> None:
    """A second run of the same job writes nothing (C8), so equal content must have equal hashes."""
    names = list(fields)
    chance.shuffle(names)

    assert content_digest({name: fields[name] for name in names}) == content_digest(fields)
    assert content_digest(json.loads(json.dumps(fields))) == content_digest(fields)
    assert content_digest({**fields, "nothing at all": None}) == content_digest(fields)


@given(st.integers(-(2**53), 2**53))
def test_a_hash_does_not_depend_on_the_form_of_a_number(number: int) -> None:
    """1, 1.0 and 1.00 are one number; 1 and "1" and true are not one value."""
    assert content_digest(number) == content_digest(float(number)) == content_digest(Decimal(f"{number}.00"))
    assert content_digest(number) != content_digest(str(number))
    assert (
        len({canonical_json(1), canonical_json(True), canonical_json("1"), canonical_json([1]), canonical_json(1.5)})
        == 5
    )


@given(
    st.dictionaries(st.text(max_size=5), st.text(max_size=9) | st.booleans() | st.integers() | st.none(), max_size=5)
)
def test_fast_and_slow_canonical_json_are_identical(fields: dict[str, Any]) -> None:
    """C8: a hash that was kept by an older version is still the hash of the same content."""
    slowly = json.dumps(
        {name: one for name, one in fields.items() if one is not None}, sort_keys=True, separators=(",", ":")
    )
    assert canonical_json(fields) == slowly


@pytest.mark.parametrize(
    ("raw", "field", "said"),
    [
        ({"pth": "a"}, "types.people.fields.x.pth", "did you mean 'path'"),
        ({"path": "a", "constant": 1}, "types.people.fields.x.constant", "combined with path"),
        ({"type": "strng"}, "types.people.fields.x.type", "use one of"),
        ({"expression": "a[?"}, "types.people.fields.x.expression", "not a valid expression"),
        ({"expression": "[" * 900}, "types.people.fields.x.expression", "not a valid expression"),
        ({"type": "reference"}, "types.people.fields.x.reference", "name the record type"),
        ({"type": "number", "default": "few"}, "types.people.fields.x.default", "not a number"),
        ({"on_error": "default"}, "types.people.fields.x.on_error", "no default"),
        ({"required": True, "on_missing": "skip"}, "types.people.fields.x.on_missing", "required"),
        ({"timezone": "UTC"}, "types.people.fields.x.timezone", "text"),
        ({"type": "time", "timezone": "Berlin"}, "types.people.fields.x.timezone", "Europe/Berlin"),
        ({"type": "date", "format": "dd.mm"}, "types.people.fields.x.format", "%d.%m.%Y"),
        ({"values": {}}, "types.people.fields.x.values", "empty"),
        ({"values": {"a": ["b"]}}, "types.people.fields.x.values", "plain value"),
        ({"many": "yes"}, "types.people.fields.x.many", "true or false"),
        ({"max_length": 0}, "types.people.fields.x.max_length", "an integer"),
        ([1], "types.people.fields.x", "not a table"),
    ],
)
def test_a_rule_that_is_not_understood_is_refused_by_its_place(raw: object, field: str, said: str) -> None:
    """Bad input: one sentence with the field and the remedy."""
    with pytest.raises(Invalid) as caught:
        read_type("people", {"fields": {"x": raw}}, allow_hooks=False)

    assert caught.value.field == field and said in str(caught.value) and caught.value.remedy


def test_types_run_in_waves_and_a_cycle_is_named() -> None:
    """Companies before people before notes; a circle is named, and opened by a second pass."""

    def linked(name: str, to: str, **more: str) -> TypeMap:
        return type_map(name, fields={"x": {"reference": to, **more}})

    notes, people, companies = linked("notes", "people"), linked("people", "companies"), type_map("companies")
    circle = [people, linked("companies", "people"), notes]

    assert waves([notes, people, companies]) == [["companies"], ["people"], ["notes"]]
    assert waves([linked("people", "people")]) == [["people"]]
    with pytest.raises(Invalid, match="people → companies → people"):
        waves(circle)
    assert waves([people, linked("companies", "people", unresolved="leave")]) == [["companies"], ["people"]]
    assert [finding.code for finding in lint(circle, {}, {})] == ["cyclic_relation"]


def codes(one: TypeMap, there: list[Attribute], here: list[Attribute]) -> set[tuple[str, str, str | None]]:
    found = lint([one], {one.name: there}, {one.name: here})
    assert all(finding.remedy and str(finding) for finding in found)
    return {(finding.level.value, finding.code, finding.field) for finding in found}


def test_lint_finds_what_a_map_would_lose() -> None:
    """Unmapped fields and options, lost timestamps, narrowing, unknown attributes."""
    one = type_map(
        ignore=["score"],
        fields={
            "name": "nmae",
            "stage": {"path": "status", "type": "select", "values": {"new": "Lead", "old": "Gone"}},
            "born": {"path": "seen", "type": "date", "timezone": "UTC"},
            "mail": "emails",
            "nick": "alias",
        },
    )
    there = [
        Attribute("name", "text"), Attribute("alias", "text"), Attribute("score", "number"),
        Attribute("status", "select", options=["new", "old", "lost"]),
        Attribute("seen", "time"), Attribute("created_at", "time"), Attribute("emails", "text", many=True),
    ]  # fmt: skip
    here = [
        Attribute("name", "text", required=True), Attribute("stage", "select", options=["Lead"]),
        Attribute("born", "date"), Attribute("mail", "text"), Attribute("owner", "text", required=True),
    ]  # fmt: skip

    assert codes(one, there, here) == {
        ("error", "missing_column", "name"),
        ("error", "unmapped_option", "stage"),
        ("error", "unknown_option", "stage"),
        ("error", "unknown_attribute", "nick"),
        ("error", "required_attribute", "owner"),
        ("warning", "required_attribute", "name"),
        ("warning", "unmapped_field", "name"),
        ("warning", "lost_timestamp", "created_at"),
        ("warning", "type_narrowing", "born"),
        ("warning", "type_narrowing", "mail"),
    }


def test_lint_is_silent_about_a_map_that_loses_nothing() -> None:
    """No noise: what is mapped by path, expression, key or skip, or ignored, is not told."""
    one = type_map(
        key="code",
        skip="archived",
        ignore=["score"],
        fields={"name": {"expression": "join(' ', [first, last])", "required": True}},
    )
    records = [Record("people", "1", {"code": "a", "archived": False, "first": "A", "last": "B", "score": 1})]

    assert codes(one, observed_attributes(records), [Attribute("name", "text", required=True)]) == set()


def test_a_mapped_record_is_checked_against_the_targets_attributes() -> None:
    """The plan says what the target would refuse, before it is asked."""
    here = {"stage": Attribute("stage", "select", options=["Lead"]), "name": Attribute("name", "text", required=True)}

    def found(**fields: Any) -> str | None:
        refused = schema_mismatch("people", "1", MappedRecord("1", fields, ""), here)
        return None if refused is None else refused.rule

    assert found(name="Ada", stage="Lead") is None
    assert found(name="Ada", stage="Won") == "options"
    assert found(stage="Lead") == "required"
    assert found(name="Ada", nmae="x") == "attribute"
    assert found(name=["Ada"]) == "many"


junk = st.one_of(
    plain,
    st.floats(),
    st.text(alphabet="0123456789+-.:TZe@/ aé٣\0\ud800", max_size=25),
    st.dates(),
    st.datetimes(timezones=st.sampled_from([None, UTC])),
    st.decimals(),
    st.binary(max_size=3),
    st.integers(),
    st.sampled_from(["2026-01-01T24:00:00Z", "9999-12-31T23:59:59-12:00", "+" * 9, "1e-999", "https://:0", "a@b.c"]),
)


@given(st.sampled_from(sorted(set(FieldKind) - {FieldKind.REFERENCE})), st.booleans(), st.none() | st.just("UTC"), junk)
def test_junk_never_gets_past_the_mapper_and_what_is_made_stays_as_it_is(
    kind: str, many: bool, timezone: str | None, given_value: Any
) -> None:
    """A refusal or a value, never a traceback; made again it is the same, or verification would cry wolf."""
    rule: dict[str, Any] = {"type": kind, "many": many}
    if timezone is not None and kind in ("date", "time"):
        rule["timezone"] = timezone
    mapper = Mapper([read_type("people", {"fields": {"x": rule}}, allow_hooks=False)])

    made = mapper.map(Record("people", "1", {"x": given_value}), lambda _t, _i: None)

    if isinstance(made, RejectedRecord):
        assert made.reason and "\n" not in str(made)
    else:
        json.dumps(made.fields).encode("ascii")
        assert mapper.normalised("people", made.fields)["x"] == made.fields.get("x")
