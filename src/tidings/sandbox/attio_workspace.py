"""Records of the simulated Attio: objects, lists with entries, notes, tasks, meetings and files. No I/O.

It keeps Attio's rules: an upsert matches by a unique attribute, adds to multi-value attributes and replaces
others; a create rejects taken values; notes, tasks, meetings, files and plain list entries can be duplicated; a
person's address creates or links a company. Content is lost when the sandbox stops.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from .attio_schema import (
    ACTOR,
    EMAIL,
    WORKSPACE,
    AttioAttribute,
    AttioCollection,
    AttioError,
    AttioRecord,
    invalid,
    standard_lists,
    standard_objects,
)

MAX_FILE = 50 << 20

_EVERYBODYS = frozenset({"gmail.com", "outlook.com", "hotmail.com", "yahoo.com", "icloud.com"})


class AttioWorkspace:
    """The content of the workspace, and operations on it."""

    def __init__(self, wall: Callable[[], int]) -> None:
        self._wall = wall
        self._numbers = itertools.count(2)
        self.objects, self.lists = standard_objects(), standard_lists()
        self.items: dict[str, dict[str, dict[str, Any]]] = {"notes": {}, "tasks": {}, "meetings": {}, "files": {}}
        self.digests: dict[str, str] = {}  # SHA-256 of files by id, which Attio does not return
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
            raise invalid(f'The attribute "{matching}" cannot be matched by: it is not unique.')
        values = self._checked(shelf, given)
        if not values.get(matching):
            raise invalid(f'Required value for attribute "{matching}" is missing.', matching)
        ids = {shelf.taken.get((matching, _key(one))) for one in values[matching]} - {None}
        if len(ids) > 1:
            raise invalid("More than one record matches.")
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
        if held.parent is not None:
            shelf.by_parent[held.parent].remove(id_)

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

    def delete_item(self, kind: str, id_: str) -> None:
        """Delete a note, task, meeting or file."""
        found = self.item(kind, id_)
        del self.items[kind][id_]
        if kind == "notes":
            self.notes_by_parent[found["parent_object"], found["parent_record_id"]].remove(id_)

    def change_note(self, id_: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """Change title and content of a note."""
        note = self.item("notes", id_)
        note["title"] = given.get("title", note["title"])
        text = given.get("content", note["content_plaintext"])
        note |= {"content_plaintext": text, "content_markdown": text}
        return note

    def add_note(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Create a note; repeating the call creates another."""
        parent = self._parent(given)
        for name in ("title", "content"):
            if not isinstance(given.get(name), str):
                raise invalid(f"{name} must be a text.", "data", name)
        if given.get("format") not in ("plaintext", "markdown"):
            raise invalid("format must be plaintext/markdown.", "data", "format")
        at = given.get("created_at")
        note = {
            "parent_object": parent[0],
            "parent_record_id": parent[1],
            "title": given["title"],
            "meeting_id": None,
            "content_plaintext": given["content"],
            "content_markdown": given["content"],
            "tags": [],
        }
        made = self._add("notes", "note_id", note, self._past(at) if at is not None else None)
        self.notes_by_parent.setdefault(parent, []).append(made["id"]["note_id"])
        return made

    def add_task(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Create a task; repeating the call creates another."""
        _require(given, "content", "format", "deadline_at", "is_completed", "linked_records", "assignees")
        links = [self._parent(_as_parent(one)) for one in given["linked_records"]]
        task = {
            "content_plaintext": given["content"],
            "deadline_at": given["deadline_at"],
            "is_completed": given["is_completed"] is True,
            "completed_at": self.now() if given["is_completed"] else None,
            "linked_records": [{"target_object_id": one, "target_record_id": id_} for one, id_ in links],
            "assignees": [],
        }
        return self._add("tasks", "task_id", task)

    def add_meeting(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Create a meeting; repeating the call creates another."""
        _require(given, "title", "description", "start", "end", "is_all_day", "participants")
        links = [self._parent(_as_parent(one)) for one in given.get("linked_records") or ()]
        people = [{"email_address": None, "name": None, **one} for one in given["participants"]]
        if any(set(one) != {"email_address", "name", "status", "is_organizer"} for one in people):
            raise invalid("A participant has a status and is_organizer.", "data")
        meeting = {name: given[name] for name in ("title", "description", "is_all_day")}
        for name in ("start", "end"):
            meeting[name] = given[name] if given["is_all_day"] else {"timezone": None, **given[name]}
        linked = [{"object_slug": one, "object_id": one, "record_id": id_} for one, id_ in links]
        return self._add("meetings", "meeting_id", {**meeting, "participants": people, "linked_records": linked})

    def add_file(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Store a file; repeating the call stores it again."""
        _require(given, "file", "object", "record_id")
        object_, record = self._parent(_as_parent(given))
        file = given["file"]
        if not isinstance(file, dict) or file["size"] > MAX_FILE:
            raise AttioError(413, "validation_type", "The file exceeds the limit of 50 MB.")
        parent = {"object_id": object_, "object_slug": object_, "record_id": record, "parent_folder_id": None}
        about = {"storage_provider": "attio", "file_type": "file", "name": file["name"]}
        about |= {"content_type": file["content_type"], "content_size": file["size"]}
        made = self._add("files", "file_id", {**parent, **about})
        self.digests[made["id"]["file_id"]] = file["sha256"]
        return made

    def _add(self, kind: str, name: str, item: Mapping[str, Any], at: str | None = None) -> dict[str, Any]:
        id_ = self._new_id()
        made = {
            "id": {"workspace_id": WORKSPACE, name: id_},
            **item,
            "created_by_actor": ACTOR,
            "created_at": at or self.now(),
        }
        self.items[kind][id_] = made
        return made

    def item(self, kind: str, id_: str) -> dict[str, Any]:
        """Return a note, task, meeting or file by its id."""
        if id_ not in self.items[kind]:
            raise AttioError(404, "not_found", f"There is no such {kind[:-1]}.")
        return self.items[kind][id_]

    def now(self) -> str:
        """The current time in Attio's format."""
        return _spelled(datetime.fromtimestamp(self._wall() / 1_000_000, UTC))

    def _past(self, at: object) -> str:
        try:
            found = datetime.fromisoformat(str(at)).astimezone(UTC)
        except ValueError:
            raise invalid("created_at is not a time.", "data", "created_at") from None
        if not 0 <= found.timestamp() <= self._wall() / 1_000_000:
            raise invalid("created_at must be between 1970 and now.", "data", "created_at")
        return _spelled(found)

    def _parent(self, given: Mapping[str, Any]) -> tuple[str, str]:
        shelf = self.shelf("objects", str(given.get("parent_object")))
        return shelf.slug, self.held(shelf, str(given.get("parent_record_id"))).id

    def _create(self, shelf: AttioCollection, values: dict[str, list[Any]]) -> AttioRecord:
        for slot in shelf.slots.values():
            if slot.required and not values.get(slot.slug):
                raise invalid(f'Required value for attribute "{slot.slug}" is missing.', slot.slug)
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
                    raise invalid(said, name)
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
        found = EMAIL.fullmatch(next(iter(values.get("email_addresses", [])), ""))
        if "company" in values or held.values.get("company") or not found or found[2] in _EVERYBODYS:
            return
        companies = self.objects["companies"]
        id_ = companies.taken.get(("domains", found[2]))
        if id_ is None:
            made = self._create(companies, {"domains": [found[2]]})
            made.auto, id_ = True, made.id
        values["company"] = [{"target_object": "companies", "target_record_id": id_}]

    def _checked(self, shelf: AttioCollection, given: object) -> dict[str, list[Any]]:
        if not isinstance(given, dict):
            raise invalid("values must be an object.", "data", "values")
        checked: dict[str, list[Any]] = {}
        for name, value in given.items():
            slot = shelf.slots.get(name)
            if slot is None:
                said = f'Cannot find attribute with slug/ID "{name}".'
                raise AttioError(400, "value_not_found", said, (name,))
            several = value if isinstance(value, list) else [] if value is None else [value]
            if len(several) > 1 and not slot.many:
                raise invalid(f'The attribute "{name}" takes one value.', name)
            is_reference = slot.type == "record-reference"
            checked[name] = [self._reference(slot, one) if is_reference else slot.stored(one) for one in several]
        return checked

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


def _as_parent(link: Mapping[str, Any]) -> dict[str, Any]:
    """Return a linked record in the form of a parent."""
    return {f"parent_{name}": link.get(f"target_{name}") or link.get(name) for name in ("object", "record_id")}


def _require(given: Mapping[str, Any], *names: str) -> None:
    for name in names:
        if name not in given:
            raise invalid(f"{name} is required.", "data", name)


def _key(value: Any) -> str:
    found = next(iter(value.values()), "") if isinstance(value, dict) else value
    return str(found).strip().lower()


def _united(before: Sequence[Any], more: Sequence[Any]) -> list[Any]:
    return [*before, *(one for one in more if one not in before)]


def _fits(held: AttioRecord, wanted: Mapping[str, Any]) -> bool:
    return all(_key(value) in map(_key, held.values.get(name, [])) for name, value in wanted.items())


def _bound(value: Any, usual: int, most: int) -> int:
    found = usual if value is None else int(value) if isinstance(value, int | float) else -1
    if not 0 <= found <= most:
        raise AttioError(400, "filter_error", f"limit or offset must be from 0 to {most}.")
    return found


def _spelled(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%S.%f") + "000Z"
