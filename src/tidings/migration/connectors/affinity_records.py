"""Attributes, values and errors of Affinity. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from html.parser import HTMLParser
from typing import Any, Final

from .api_client import ApiRefusal
from .port import Attribute, ConnectorError, ErrorKind, parse_attributes

MONTH: Final = 31 * 86_400  # seconds
NESTED: Final = 100  # values of one field, and entries of one preview, that a response has at most
_ATTENDING = ("from", "organizer", "attendeesPreview", "toParticipantsPreview", "ccParticipantsPreview")
_HTML = (2, 3)  # types of notes that are HTML
_ENTITY_TYPES = {"person": 0, "company": 1, "opportunity": 8}

# `name:kind`, with `*` for a list and `!` for a value that is always there.
_ATTRIBUTES: Mapping[str, str] = {
    "persons": "first_name last_name primary_email:email emails:email* type:number current_organization_ids:reference*",
    "organizations": "name! domain domains* global:boolean",
    "opportunities": "name! person_ids:reference* organization_ids:reference* list_entries:json*",
    "lists": "name! type:number public:boolean owner_id:reference creator_id:reference list_size:number",
    "list_entries": "list_id:reference! entity_id:reference! entity_type:number creator_id:reference created_at:time "
    "entity:json",
    "notes": "content! content_text! person_ids:reference* organization_ids:reference* opportunity_ids:reference* "
    "parent_id:reference creator_id:reference type:number created_at:time updated_at:time is_meeting:boolean "
    "mentioned_person_ids:reference*",
    "activities": "activity! at:time title person_ids:reference* emails:email*",
    "files": "name! size:number! person_id:reference organization_id:reference opportunity_id:reference "
    "uploader_id:reference created_at:time",
}
_OF_KIND: Mapping[str, str] = {
    "meetings": "startTime:time endTime:time allDay:boolean",
    "calls": "startTime:time endTime:time allDay:boolean",
    "emails": "sentAt:time subject direction:select",
    "chat-messages": "sentAt:time direction:select",
    "reminders": "content due_date:time completed_at:time status:number",
}
ACTIVITIES: Sequence[str] = tuple(_OF_KIND)
_OWN = {"persons": "organization_ids:reference*", "organizations": "person_ids:reference*"}
_KINDS = {"number": "number", "formula-number": "number", "datetime": "time", "dropdown": "select"}
_KINDS |= {"ranked-dropdown": "select", "person": "reference", "company": "reference", "location": "json"}


def attributes_of(type_: str, kind: str | None, *, alone: bool) -> list[Attribute]:
    """Return the built-in attributes of a type or kind; `alone`: each record is read by a call of its own."""
    more = _OWN.get(type_, "") if alone else ""
    if type_ == "activities":
        more = " ".join(dict.fromkeys(" ".join(_OF_KIND[one] for one in ([kind] if kind else _OF_KIND)).split()))
    return parse_attributes(f"{_ATTRIBUTES[type_]} {more}")


def field_attribute(one: Mapping[str, Any]) -> Attribute:
    """Convert the description of a custom field."""
    kind = str(one.get("valueType") or "text")
    many = kind.endswith("-multi")
    return Attribute(str(one.get("id")), _KINDS.get(kind.removesuffix("-multi"), "text"), many=many)


def with_field_values(row: dict[str, Any], fields: object, notes: set[str]) -> dict[str, Any]:
    """Return a record with its custom fields by id; hidden and truncated ones are reported in `notes`."""
    for field in fields if isinstance(fields, list) else ():
        id_, value = str(field.get("id")), field.get("value")
        data = value.get("data") if isinstance(value, dict) else None
        if field.get("type") == "hidden":
            notes.add(f"{id_} ({field.get('name')}) is hidden from this API key and was not read")
            continue
        if isinstance(data, list) and len(data) >= NESTED:
            notes.add(f"{id_} ({field.get('name')}) has {NESTED} values or more in some records; the rest was not read")
        row[id_] = _flat(data)
    return row


def _flat(data: Any) -> Any:
    """Return a field's value: the text of an option, the id of a person or company."""
    if isinstance(data, list):
        return [_flat(one) for one in data]
    if not isinstance(data, dict):
        return data
    found = next((name for name in ("text", "calculatedValue", "id") if name in data), None)
    return data if found is None or "sentAt" in data or "startTime" in data else data[found]


def with_columns(one: Mapping[str, Any], notes: set[str]) -> dict[str, Any]:
    """Return a list entry of version 2 under the names of version 1, with the columns of its list."""
    entity = dict(one.get("entity") or {})
    row = {"id": one.get("id"), "list_id": one.get("listId"), "creator_id": one.get("creatorId")}
    row |= {"entity_id": entity.get("id"), "entity_type": _ENTITY_TYPES.get(str(one.get("type")))}
    row |= {"created_at": one.get("createdAt")}
    return with_field_values({**row, "entity": entity}, entity.pop("fields", None), notes)


def with_note_text(row: Mapping[str, Any]) -> dict[str, Any]:
    content = row.get("content")
    return {**row, "content_text": plain_text(content) if row.get("type") in _HTML else content}


def activity(kind: str, row: Mapping[str, Any], notes: set[str]) -> dict[str, Any]:
    """Return an activity with what all kinds have: time, title, persons and addresses."""
    if kind == "reminders":
        people = [row["person"]] if isinstance(row.get("person"), dict) else []
        emails = [one.get("primary_email") for one in people]
    else:
        attending = [one for name in _ATTENDING for one in _previewed(row.get(name), name, notes)]
        people = [one["person"] for one in attending if isinstance(one.get("person"), dict)]
        people += _previewed(row.get("participantsPreview"), "participantsPreview", notes)
        emails = [one.get("emailAddress") for one in attending]
        emails += [one.get("primaryEmailAddress") for one in people]
    return {
        **row,
        "activity": kind,
        "at": row.get("startTime") or row.get("sentAt") or row.get("due_date"),
        "title": row.get("title") or row.get("subject") or row.get("content"),
        "person_ids": list(dict.fromkeys(one["id"] for one in people if one.get("type") not in (1, "internal"))),
        "emails": [one for one in dict.fromkeys(emails) if one],
    }


def _previewed(held: object, name: str, notes: set[str]) -> list[dict[str, Any]]:
    """Return the entries of a preview, or the one entry that it is."""
    if not isinstance(held, dict):
        return []
    if "data" not in held:
        return [held]
    data = [one for one in held["data"] or [] if isinstance(one, dict)]
    if (held.get("totalCount") or 0) > len(data):
        notes.add(f"{name} has more than {len(data)} entries in some records; the rest was not read")
    return data


class _PlainText(HTMLParser):
    """Collects the text of HTML; blocks begin on a new line."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag in ("p", "br", "li", "div") and self.parts:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        self.parts.append(data)


def plain_text(html: object) -> str:
    parser = _PlainText()
    parser.feed(html if isinstance(html, str) else "")
    parser.close()
    return "".join(parser.parts).strip()


def explain(refusal: ApiRefusal) -> ConnectorError:
    """Map Affinity's error to ours. Only a header tells an exhausted month from a short rate limit."""
    message, field, code = _error_of(refusal.body)
    if refusal.status == 429:
        if refusal.answer.header("x-ratelimit-limit-org-remaining") == "0":
            reset = _seconds(refusal.answer.header("x-ratelimit-limit-org-reset"))
            reason = "the monthly quota is used up"
            return refusal.to_error(ErrorKind.QUOTA, said=reason, code=code, wait=reset)
        wait = _seconds(refusal.answer.header("x-ratelimit-limit-user-reset"))
        return refusal.to_error(said=message, code=code, wait=refusal.wait or wait)
    return refusal.to_error(said=message, field=field, code=code)


def _error_of(body: Any) -> tuple[str, object, object]:
    """Return message, field and code of an error, in any of its shapes."""
    found = body
    if isinstance(found, dict):
        found = found.get("errors") or found.get("message")
    if isinstance(found, list):
        found = found[0] if found else None
    if isinstance(found, dict):
        return str(found.get("message") or ""), found.get("param"), found.get("code")
    return (found if isinstance(found, str) else ""), None, None


def _seconds(value: str | None) -> timedelta | None:
    if value is None or not value.isascii() or not value.isdigit():
        return None
    return timedelta(seconds=min(int(value[:12]), MONTH))
