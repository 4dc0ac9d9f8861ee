"""What Attio has no key for: notes, tasks, meetings and files, how each is written, read and recognized. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from .port import Attribute, Fields, invalid, parse_attributes

MAX_FILE = 50 << 20  # bytes


class AttioItem(NamedTuple):
    """One kind. `looked_up_by` is the field with which it is looked for before it is written."""

    path: str
    id: str
    attributes: Sequence[Attribute]
    written: Callable[[Fields], Mapping[str, Any]]
    read: Callable[[Mapping[str, Any]], Fields]
    same: Callable[[Mapping[str, Any], Fields], bool]
    changed: Callable[[Fields], Mapping[str, Any]] | None = None
    looked_up_by: str | None = None
    parent: Sequence[str] = ("linked_object", "linked_record_id")  # query parameters
    page: int = 50


def instant_of(value: object) -> datetime | None:
    """Parse a time to milliseconds, the precision that Attio keeps."""
    try:
        found = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    if found is None:
        return None
    found = found.replace(tzinfo=found.tzinfo or UTC).astimezone(UTC)
    return found.replace(microsecond=found.microsecond // 1000 * 1000)


def _squeezed(value: object) -> str:
    return " ".join(str(value or "").split())


def _written_note(fields: Fields) -> Mapping[str, Any]:
    return {"format": "plaintext", **fields}


def _changed_note(fields: Fields) -> Mapping[str, Any]:
    """Return what can be changed of a note: its parent and time stay."""
    return {name: value for name, value in _written_note(fields).items() if name in ("title", "format", "content")}


def _read_note(one: Mapping[str, Any]) -> Fields:
    fields = {name: one.get(name) for name in ("parent_object", "parent_record_id", "title", "created_at")}
    return {**fields, "content": one.get("content_plaintext")}


def _same_note(held: Mapping[str, Any], wanted: Fields) -> bool:
    """Return whether a note in Attio is the wanted one: title, text and, if given, its time."""
    markdown = wanted.get("format") == "markdown"
    text = held.get("content_markdown" if markdown else "content_plaintext")
    if (_squeezed(text), _squeezed(held.get("title"))) != (
        _squeezed(wanted.get("content")),
        _squeezed(wanted.get("title")),
    ):
        return False
    at = wanted.get("created_at")
    return at is None or instant_of(held.get("created_at")) == instant_of(at)


def _links(fields: Fields, object_: str, id_: str) -> list[dict[str, Any]]:
    """Return the parent as a list of linked records."""
    if fields.get("parent_record_id") is None:
        return []
    return [{object_: fields.get("parent_object"), id_: fields["parent_record_id"]}]


def _written_task(fields: Fields) -> Mapping[str, Any]:
    return {
        "content": fields.get("content"),
        "format": "plaintext",
        "deadline_at": fields.get("deadline_at"),
        "is_completed": fields.get("is_completed") is True,
        "linked_records": _links(fields, "target_object", "target_record_id"),
        "assignees": [],
    }


def _read_task(one: Mapping[str, Any]) -> Fields:
    link: Mapping[str, Any] = next(iter(one.get("linked_records") or ()), {})
    own = {name: one.get(name) for name in ("deadline_at", "is_completed", "parent_object")}
    return {**own, "content": one.get("content_plaintext"), "parent_record_id": link.get("target_record_id")}


def _same_task(held: Mapping[str, Any], wanted: Fields) -> bool:
    read = _read_task(held)
    is_same = _squeezed(read["content"]) == _squeezed(wanted.get("content"))
    return is_same and instant_of(read["deadline_at"]) == instant_of(wanted.get("deadline_at"))


def _written_meeting(fields: Fields) -> Mapping[str, Any]:
    """Return a meeting; Attio wants an end, so without one it ends when it begins."""
    start = {"datetime": fields.get("start"), "timezone": None}
    end = {"datetime": fields.get("end") or fields.get("start"), "timezone": None}
    people = [
        {"email_address": one, "status": "accepted", "is_organizer": False} for one in fields.get("participants") or ()
    ]
    return {
        "title": fields.get("title"),
        "description": fields.get("description") or "",
        "start": start,
        "end": end,
        "is_all_day": False,
        "participants": people,
        "linked_records": _links(fields, "object", "record_id"),
    }


def _read_meeting(one: Mapping[str, Any]) -> Fields:
    found = {name: (one.get(name) or {}).get("datetime") for name in ("start", "end")}
    found |= {name: one.get(name) for name in ("title", "description")}
    links = sorted(one.get("linked_records") or (), key=lambda link: link.get("object_slug") == "companies")
    link: Mapping[str, Any] = next(iter(links), {})  # Attio itself adds companies
    found |= {"parent_object": link.get("object_slug"), "parent_record_id": link.get("record_id")}
    return {**found, "participants": [person.get("email_address") for person in one.get("participants") or ()]}


def _same_meeting(held: Mapping[str, Any], wanted: Fields) -> bool:
    read = _read_meeting(held)
    is_same = _squeezed(read["title"]) == _squeezed(wanted.get("title"))
    return is_same and instant_of(read["start"]) == instant_of(wanted.get("start"))


def _file_form(fields: Fields) -> Mapping[str, Any]:
    return {"object": fields.get("parent_object"), "record_id": fields.get("parent_record_id")}


def _read_file(one: Mapping[str, Any]) -> Fields:
    parent = {"parent_object": one.get("object_slug"), "parent_record_id": one.get("record_id")}
    return {**parent, "name": one.get("name"), "size": one.get("content_size")}


def _same_file(held: Mapping[str, Any], wanted: Fields) -> bool:
    is_file = held.get("file_type") == "file"  # not a folder, nor a link to another storage
    return is_file and (held.get("name"), held.get("content_size")) == (wanted.get("name"), wanted.get("size"))


def canonical_file(fields: Fields) -> Fields:
    """Return the fields of a file with a name that fits into a form; raises VALIDATION if it is too large."""
    size = fields.get("size")
    if isinstance(size, int | float) and size > MAX_FILE:
        raise invalid(f"the file has {size:,} bytes: Attio accepts at most {MAX_FILE:,}", "size")
    return {**fields, "name": re.sub(r'[\x00-\x1f"/\\\x7f]', "_", str(fields.get("name") or ""))}


ITEMS: Mapping[str, AttioItem] = {
    "notes": AttioItem(
        "notes",
        "note_id",
        (
            *parse_attributes("parent_object! parent_record_id:reference! title! content! created_at:time"),
            Attribute("format", "select", options=("plaintext", "markdown")),
        ),
        _written_note,
        _read_note,
        _same_note,
        changed=_changed_note,
        looked_up_by="created_at",
        parent=("parent_object", "parent_record_id"),
    ),
    "tasks": AttioItem(
        "tasks",
        "task_id",
        parse_attributes("parent_object parent_record_id:reference content! deadline_at:time is_completed:boolean"),
        _written_task,
        _read_task,
        _same_task,
    ),
    "meetings": AttioItem(
        "meetings",
        "meeting_id",
        parse_attributes(
            "parent_object parent_record_id:reference title! description start:time! end:time participants:email*"
        ),
        _written_meeting,
        _read_meeting,
        _same_meeting,
        looked_up_by="start",
    ),
    "files": AttioItem(
        "files",
        "file_id",
        parse_attributes("parent_object! parent_record_id:reference! name! size:number!"),
        _file_form,
        _read_file,
        _same_file,
        parent=("object", "record_id"),
        page=200,
    ),
}
