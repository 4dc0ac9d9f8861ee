"""Records of the simulated Attio: objects with attributes, records, lists with entries, notes. No I/O.

It keeps Attio's rules: an upsert matches by a unique attribute, adds to multi-value attributes and replaces
others; a create rejects taken values; notes and plain list entries can be duplicated; a person's address
creates or links a company. Content is lost when the sandbox stops.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID

_DOMAIN = re.compile(r"(?=.{3,253}$)[a-z0-9-]+(\.[a-z0-9-]+)+", re.ASCII)
_EMAIL = re.compile(r"[^@\s]{1,64}@([a-z0-9-]+(?:\.[a-z0-9-]+)+)", re.ASCII)
_PHONE = re.compile(r"\+[1-9][0-9 ().-]{5,20}", re.ASCII)
_WORKSPACE = str(UUID(int=1))
_EVERYBODYS = frozenset({"gmail.com", "outlook.com", "hotmail.com", "yahoo.com", "icloud.com"})


class AttioError(Exception):
    """A request that Attio rejects: status, code, message."""

    def __init__(self, status: int, code: str, message: str, path: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.path = status, code, message, path


class AttioAttribute(NamedTuple):
    """An attribute of an object or a list."""

    slug: str
    type: str
    unique: bool = False
    many: bool = False
    required: bool = False
    options: tuple[str, ...] = ()

    def described(self) -> dict[str, Any]:
        """Return it as the API describes it."""
        return {
            "id": {"workspace_id": _WORKSPACE, "attribute_id": self.slug},
            "title": self.slug.replace("_", " ").title(),
            "api_slug": self.slug,
            "type": self.type,
            "is_unique": self.unique,
            "is_multiselect": self.many,
            "is_required": self.required,
            "is_writable": True,
            "is_archived": False,
        }


@dataclass(slots=True)
class AttioRecord:
    """A record or a list entry."""

    id: str
    created_at: str
    values: dict[str, list[Any]] = field(default_factory=dict)
    parent: tuple[str, str] | None = None  # of a list entry
    auto: bool = False  # created by Attio automatically


@dataclass(slots=True)
class AttioCollection:
    """An object or a list with its records. `taken` finds records by their unique values."""

    slug: str
    slots: dict[str, AttioAttribute]
    held: dict[str, AttioRecord] = field(default_factory=dict)
    taken: dict[tuple[str, str], str] = field(default_factory=dict)
    by_parent: dict[tuple[str, str], list[str]] = field(default_factory=dict)


def _shelf(slug: str, *slots: AttioAttribute) -> AttioCollection:
    return AttioCollection(slug, {slot.slug: slot for slot in slots})


def _objects() -> dict[str, AttioCollection]:
    people = _shelf(
        "people",
        AttioAttribute("name", "personal-name"),
        AttioAttribute("email_addresses", "email-address", unique=True, many=True),
        AttioAttribute("phone_numbers", "phone-number", many=True),
        AttioAttribute("company", "record-reference"),
        AttioAttribute("job_title", "text"),
        AttioAttribute("description", "text"),
        AttioAttribute("affinity_id", "text", unique=True),
    )
    companies = _shelf(
        "companies",
        AttioAttribute("name", "text"),
        AttioAttribute("domains", "domain", unique=True, many=True),
        AttioAttribute("description", "text"),
        AttioAttribute("categories", "select", many=True, options=("B2B", "SaaS", "Logistics")),
        AttioAttribute("affinity_id", "text", unique=True),
    )
    deals = _shelf(
        "deals",
        AttioAttribute("name", "text", required=True),
        AttioAttribute("stage", "status", options=("Lead", "In Progress", "Won", "Lost")),
        AttioAttribute("value", "number"),
        AttioAttribute("associated_company", "record-reference"),
        AttioAttribute("affinity_id", "text", unique=True),
    )
    return {shelf.slug: shelf for shelf in (people, companies, deals)}


def _lists() -> dict[str, AttioCollection]:
    stage = AttioAttribute("stage", "status", options=("New", "Contacted", "Won", "Lost"))
    return {"pipeline": _shelf("pipeline", stage, AttioAttribute("affinity_id", "text"))}


class AttioWorkspace:
    """The content of the workspace, and operations on it."""

    def __init__(self, wall: Callable[[], int]) -> None:
        self._wall = wall
        self._numbers = itertools.count(2)
        self.objects, self.lists = _objects(), _lists()
        self.notes: dict[str, dict[str, Any]] = {}
        self.notes_by_parent: dict[tuple[str, str], list[str]] = {}
        self.auto_companies = True

    def shelf(self, place: str, slug: str) -> AttioCollection:
        """Return an object or a list by its slug."""
        found = (self.objects if place == "objects" else self.lists).get(slug)
        if found is None:
            raise AttioError(404, "not_found", f'Could not find {place[:-1]} with slug/ID "{slug}".')
        return found

    def assert_record(self, shelf: AttioCollection, matching: str, given: Mapping[str, Any]) -> AttioRecord:
        """Upsert by a unique attribute."""
        slot = shelf.slots.get(matching)
        if slot is None or not slot.unique:
            reason = f'The attribute "{matching}" cannot be matched by: it is not unique.'
            raise AttioError(400, "filter_error", reason)
        values = self._checked(shelf, given)
        if not values.get(matching):
            reason = f'Required value for attribute "{matching}" is missing.'
            raise AttioError(400, "missing_value", reason, (matching,))
        ids = {shelf.taken.get((matching, _key(one))) for one in values[matching]} - {None}
        if len(ids) > 1:
            raise AttioError(400, "multiple_match_results", "More than one record matches.")
        if not ids:
            return self._create(shelf, values)
        held = shelf.held[str(ids.pop())]
        if slot.many:
            values[matching] = _united(held.values.get(matching, []), values[matching])
        self._change(shelf, held, values)
        return held

    def create_record(self, shelf: AttioCollection, given: Mapping[str, Any]) -> AttioRecord:
        """Create a record; taken unique values are rejected."""
        return self._create(shelf, self._checked(shelf, given))

    def change_record(self, shelf: AttioCollection, id_: str, given: Mapping[str, Any], *, append: bool) -> AttioRecord:
        """Update a record by id; multi-value attributes are extended or replaced."""
        held, values = self.held(shelf, id_), self._checked(shelf, given)
        if append:
            for name in values:
                if shelf.slots[name].many:
                    values[name] = _united(held.values.get(name, []), values[name])
        self._change(shelf, held, values)
        return held

    def held(self, shelf: AttioCollection, id_: str) -> AttioRecord:
        """Return a record or entry by its id."""
        found = shelf.held.get(id_)
        if found is None:
            raise AttioError(404, "not_found", f'Could not find record with ID "{id_}".')
        return found

    def delete_record(self, shelf: AttioCollection, id_: str) -> None:
        """Delete a record or entry."""
        held = self.held(shelf, id_)
        self._release(shelf, held, held.values)
        del shelf.held[id_]

    def query(self, shelf: AttioCollection, asked: Mapping[str, Any]) -> list[AttioRecord]:
        """Return records in creation order. A filter maps attributes to values."""
        wanted = asked.get("filter") or {}
        if not isinstance(wanted, dict):
            raise AttioError(400, "filter_error", "The filter is not an object.")
        for name in wanted:
            if name not in shelf.slots:
                raise AttioError(400, "filter_error", f'Cannot find attribute with slug/ID "{name}".', [name])
        limit, offset = _bound(asked.get("limit"), 500, 500), _bound(asked.get("offset"), 0, 10**9)
        if len(wanted) == 1 and shelf.slots[next(iter(wanted))].unique:
            ((name, value),) = wanted.items()
            id_ = shelf.taken.get((name, _key(value)))
            found: Iterator[AttioRecord] = iter([shelf.held[id_]] if id_ else [])
        else:
            found = (held for held in shelf.held.values() if _fits(held, wanted))
        return list(itertools.islice(found, offset, offset + limit))

    def add_entry(self, shelf: AttioCollection, given: Mapping[str, Any], *, assert_: bool) -> AttioRecord:
        """Add a record to a list: always, or once with `assert_`."""
        parent = self._parent(given)
        values = self._checked(shelf, given.get("entry_values") or {})
        there = shelf.by_parent.get(parent, []) if assert_ else []
        if len(there) > 1:
            raise AttioError(400, "multiple_match_results", "The record is on this list more than once.")
        if there:
            held = shelf.held[there[0]]
            self._change(shelf, held, values)
            return held
        held = self._create(shelf, values)
        held.parent = parent
        shelf.by_parent.setdefault(parent, []).append(held.id)
        return held

    def delete_note(self, id_: str) -> None:
        """Delete a note."""
        if id_ not in self.notes:
            raise AttioError(404, "not_found", "There is no such note.")
        note = self.notes.pop(id_)
        self.notes_by_parent[note["parent_object"], note["parent_record_id"]].remove(id_)

    def add_note(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Create a note; repeating the call creates another."""
        parent = self._parent(given)
        for name in ("title", "content"):
            if not isinstance(given.get(name), str):
                raise AttioError(400, "validation_type", f"{name} must be a text.", ("data", name))
        if given.get("format") not in ("plaintext", "markdown"):
            raise AttioError(400, "validation_type", "format must be plaintext/markdown.", ("data", "format"))
        at = given.get("created_at")
        note = {
            "id": {"workspace_id": _WORKSPACE, "note_id": self._new_id()},
            "parent_object": parent[0],
            "parent_record_id": parent[1],
            "title": given["title"],
            "content_plaintext": given["content"],
            "content_markdown": given["content"],
            "tags": [],
            "created_by_actor": {"type": "api-token", "id": _WORKSPACE},
            "created_at": self._past(at) if at is not None else self.now(),
        }
        self.notes[note["id"]["note_id"]] = note
        self.notes_by_parent.setdefault(parent, []).append(note["id"]["note_id"])
        return note

    def now(self) -> str:
        """The current time in Attio's format."""
        return _spelled(datetime.fromtimestamp(self._wall() / 1_000_000, UTC))

    def _past(self, at: object) -> str:
        try:
            found = datetime.fromisoformat(str(at)).astimezone(UTC)
        except ValueError:
            reason = "validation_type"
            raise AttioError(400, reason, "created_at is not a time.", ("data", "created_at")) from None
        if not 0 <= found.timestamp() <= self._wall() / 1_000_000:
            reason = "validation_type"
            raise AttioError(400, reason, "created_at must be between 1970 and now.", ("data", "created_at"))
        return _spelled(found)

    def _parent(self, given: Mapping[str, Any]) -> tuple[str, str]:
        shelf = self.shelf("objects", str(given.get("parent_object")))
        return shelf.slug, self.held(shelf, str(given.get("parent_record_id"))).id

    def _create(self, shelf: AttioCollection, values: dict[str, list[Any]]) -> AttioRecord:
        for slot in shelf.slots.values():
            if slot.required and not values.get(slot.slug):
                said = f'Required value for attribute "{slot.slug}" is missing.'
                raise AttioError(400, "missing_value", said, (slot.slug,))
        held = AttioRecord(self._new_id(), self.now())
        self._change(shelf, held, values)
        shelf.held[held.id] = held
        return held

    def _change(self, shelf: AttioCollection, held: AttioRecord, values: dict[str, list[Any]]) -> None:
        for name, given in values.items():
            for one in given if shelf.slots[name].unique else ():
                owner = shelf.taken.get((name, _key(one)), held.id)
                if owner != held.id:
                    said = f'The value "{_key(one)}" for attribute "{name}" conflicts with one in the system.'
                    raise AttioError(400, "uniqueness_conflict", said, (name,))
        self._release(shelf, held, values)
        if shelf.slug == "people" and self.auto_companies:
            self._link_company(held, values)
        for name, given in values.items():
            held.values[name] = given
            if shelf.slots[name].unique:
                shelf.taken |= {(name, _key(one)): held.id for one in given}

    def _release(self, shelf: AttioCollection, held: AttioRecord, names: Mapping[str, Any]) -> None:
        for name in names:
            if shelf.slots[name].unique:
                for one in held.values.get(name, []):
                    shelf.taken.pop((name, _key(one)), None)

    def _link_company(self, held: AttioRecord, values: dict[str, list[Any]]) -> None:
        """Link a person to the company of its email domain, which is created if needed."""
        found = _EMAIL.fullmatch(next(iter(values.get("email_addresses", [])), ""))
        if "company" in values or held.values.get("company") or not found or found[1] in _EVERYBODYS:
            return
        companies = self.objects["companies"]
        id_ = companies.taken.get(("domains", found[1]))
        if id_ is None:
            made = self._create(companies, {"domains": [found[1]]})
            made.auto, id_ = True, made.id
        values["company"] = [{"target_object": "companies", "target_record_id": id_}]

    def _checked(self, shelf: AttioCollection, given: object) -> dict[str, list[Any]]:
        if not isinstance(given, dict):
            raise AttioError(400, "validation_type", "values must be an object.", ("data", "values"))
        checked: dict[str, list[Any]] = {}
        for name, value in given.items():
            slot = shelf.slots.get(name)
            if slot is None:
                reason = "value_not_found"
                raise AttioError(400, reason, f'Cannot find attribute with slug/ID "{name}".', (name,))
            several = value if isinstance(value, list) else [] if value is None else [value]
            if len(several) > 1 and not slot.many:
                raise AttioError(400, "validation_type", f'The attribute "{name}" takes one value.', (name,))
            checked[name] = [self._value(slot, one) for one in several]
        return checked

    def _value(self, slot: AttioAttribute, value: Any) -> Any:
        match slot.type:
            case "record-reference":
                return self._reference(slot, value)
            case "select" | "status":
                if value not in slot.options:
                    said = f'Cannot find option "{value}" for attribute with slug/ID "{slot.slug}".'
                    raise AttioError(400, "value_not_found", said, (slot.slug,))
                return value
            case "personal-name" if isinstance(value, dict):
                return {part: str(value[part]) for part in ("first_name", "last_name", "full_name") if value.get(part)}
        inner = value if not isinstance(value, dict) else next(iter(value.values()), None)
        made = _scalar(slot.type, inner)
        if made is None:
            said = f'Invalid value was passed to attribute with slug "{slot.slug}".'
            raise AttioError(400, "validation_type", said, (slot.slug,))
        return made

    def _reference(self, slot: AttioAttribute, value: Any) -> dict[str, str]:
        shelf = self.objects.get(str(value.get("target_object"))) if isinstance(value, dict) else None
        id_ = value.get("target_record_id") if isinstance(value, dict) else None
        if shelf is not None and id_ is None:
            name = next((name for name in value if name in shelf.slots and shelf.slots[name].unique), "")
            wanted = value.get(name)
            id_ = shelf.taken.get((name, _key(wanted[0] if isinstance(wanted, list) and wanted else wanted)))
        if shelf is None or id_ not in shelf.held:
            said = f'Cannot find the record for attribute with slug/ID "{slot.slug}".'
            raise AttioError(400, "value_not_found", said, (slot.slug,))
        return {"target_object": shelf.slug, "target_record_id": str(id_)}

    def _new_id(self) -> str:
        return str(UUID(int=next(self._numbers)))


def _scalar(kind: str, value: Any) -> Any:
    """Return a value in Attio's stored form; None if it is invalid."""
    match kind:
        case "number":
            return value if isinstance(value, int | float) and not isinstance(value, bool) else None
        case "checkbox":
            return value if isinstance(value, bool) else None
        case "email-address" | "domain":
            form = _EMAIL if kind == "email-address" else _DOMAIN
            low = value.strip().lower() if isinstance(value, str) else ""
            return low if form.fullmatch(low) else None
        case "phone-number":
            return value if isinstance(value, str) and _PHONE.fullmatch(value) else None
        case "date" | "timestamp":
            try:
                datetime.fromisoformat(str(value))
            except ValueError:
                return None
            return str(value)
        case "personal-name":
            return {"full_name": value} if isinstance(value, str) else None
    return value if isinstance(value, str) and "\x00" not in value else None


def _key(value: Any) -> str:
    found = next(iter(value.values()), "") if isinstance(value, dict) else value
    return str(found).strip().lower()


def _united(before: Sequence[Any], more: Sequence[Any]) -> list[Any]:
    return [*before, *(one for one in more if one not in before)]


def _fits(held: AttioRecord, wanted: Mapping[str, Any]) -> bool:
    return all(_key(value) in map(_key, held.values.get(name, [])) for name, value in wanted.items())


def _bound(value: Any, usual: int, most: int) -> int:
    found = usual if value is None else int(value) if str(value).isdigit() else -1
    if not 0 <= found <= most:
        raise AttioError(400, "validation_type", f"limit or offset must be from 0 to {most}.")
    return found


def _spelled(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%S.%f") + "000Z"
