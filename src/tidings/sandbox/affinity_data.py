"""Records of the simulated Affinity, and how each version of its API shows them. No I/O.

Content depends only on the number, so tests know what must arrive. With `bad_every`, some persons are
defective so that a target rejects them (see `defective_persons`). Ids are unique. Lists omit what the
documentation says they omit: a person's organizations and an organization's persons are only in the answer for
that one record, and the current organizations also in a list that asks for them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

FIRST = ("Ada", "Grace", "Alan", "Edsger", "Barbara", "Donald", "Radia", "Ken", "Margaret", "Tim")
LAST = (*("Lovelace", "Hopper", "Turing", "Dijkstra", "Liskov"), *("Knuth", "Perlman", "Thompson", "Hamilton", "Lee"))
DEFECTS = ("no_email", "broken_email", "null_byte", "missing_company")
KINDS = ("organizations", "persons", "opportunities", "lists", "list_entries", "notes", "activities", "files")
FILE_SIZE = 1_000  # bytes, unless set
EVENTS = ("meetings", "calls", "emails", "chat-messages")
ACTIVITIES = (*EVENTS, "reminders")
STATUSES = ("Lead", "In Progress", "Won", "Lost")
HIDDEN_SINCE = "2026-07-15"  # the first version of the API that marks hidden fields
DEALS = 480_000  # the list that has the opportunities

_BEGAN = datetime(2020, 1, 1, 9, 0, tzinfo=UTC)
_OWN = ("organization_ids", "person_ids", "list_entries")  # only in the answer for one record
_ASKED_FOR = {"with_current_organizations": "current_organization_ids", "with_opportunities": "opportunity_ids"}
_FILE_OF = ("person_id", "organization_id", "opportunity_id")
_USER = {"id": 1, "type": 1, "first_name": "Una", "last_name": "User", "primary_email": "una@own.example"}

Content = dict[str, list[dict[str, Any]]]


def generate_records(told: Mapping[str, int], bad_every: int) -> Content:
    """Generate the given number of records per kind; with `bad_every` n, every n-th person is defective."""
    organizations, persons, deals = (told.get(kind, 0) for kind in KINDS[:3])
    content: Content = {kind: [] for kind in KINDS}
    content["persons"] = [_person(n, organizations, bad_every) for n in range(1, persons + 1)]
    staff: dict[int, list[int]] = {}
    for person in content["persons"]:
        for id_ in person["organization_ids"]:
            staff.setdefault(id_, []).append(person["id"])
    content["organizations"] = [_organization(n, staff) for n in range(1, organizations + 1)]
    content["opportunities"] = [_opportunity(n, organizations) for n in range(1, deals + 1)]
    content["lists"] = [_list(400_000 + n, f"List {n}", 0) for n in range(1, told.get("lists", 0) + 1)]
    entries = told.get("list_entries", 0) if content["lists"] else 0
    content["list_entries"] = [_entry(n, persons, len(content["lists"])) for n in range(1, entries + 1)]
    if deals:
        content["lists"].append(_list(DEALS, "Deals", 8))
        content["list_entries"] += [entry for deal in content["opportunities"] for entry in deal["list_entries"]]
    content["notes"] = [_note(n, persons) for n in range(1, told.get("notes", 0) + 1)]
    content["activities"] = [_activity(n, content["persons"]) for n in range(1, told.get("activities", 0) + 1)]
    parents = [(kind, content[f"{kind[:-3]}s" if kind != "opportunity_id" else "opportunities"]) for kind in _FILE_OF]
    size = told.get("file_size", FILE_SIZE)
    content["files"] = [_file(n, [one for one in parents if one[1]], size) for n in range(1, told.get("files", 0) + 1)]
    return content


def _list(id_: int, name: str, kind: int) -> dict[str, Any]:
    return {
        "id": id_, "type": kind, "name": name, "public": True, "owner_id": 1, "creator_id": 1, "list_size": 0,
    }  # fmt: skip


def _organization(n: int, staff: Mapping[int, Sequence[int]]) -> dict[str, Any]:
    domain = f"company-{n}.example"
    return {
        "id": 100_000 + n,
        "name": f"Company {n}",
        "domain": domain,
        "domains": [domain],
        "global": False,
        "person_ids": list(staff.get(100_000 + n, ())),
    }


def _person(n: int, organizations: int, bad_every: int) -> dict[str, Any]:
    first, last = FIRST[n % len(FIRST)], LAST[n // len(FIRST) % len(LAST)]
    company = (n - 1) % organizations + 1 if organizations else 0
    domain = f"company-{company}.example" if company else "people.example"
    email = f"person-{n}@{domain}"
    current = [100_000 + company] if company else []
    former = [100_000 + company % organizations + 1] if organizations > 1 and n % 7 == 0 else []
    made: dict[str, Any] = {
        "id": 200_000 + n,
        "type": 0,
        "first_name": first,
        "last_name": last,
        "primary_email": email,
        "emails": [email],
        "organization_ids": [*former, *current],
        "current_organization_ids": current,
    }
    if bad_every and n % bad_every == 0:
        made |= _spoilt(DEFECTS[n // bad_every % len(DEFECTS)])
    return made


def _spoilt(way: str) -> dict[str, Any]:
    match way:
        case "no_email":
            return {"primary_email": None, "emails": []}
        case "broken_email":
            return {"primary_email": "not an address", "emails": ["not an address"]}
        case "null_byte":
            return {"last_name": "Null\x00Byte"}
    return {"organization_ids": [999_999], "current_organization_ids": [999_999]}


def defective_persons(persons: int, bad_every: int) -> dict[str, str]:
    """Return the defective persons by id, and what is wrong with each."""
    return (
        {str(200_000 + n): DEFECTS[n // bad_every % len(DEFECTS)] for n in range(bad_every, persons + 1, bad_every)}
        if bad_every
        else {}
    )


def _opportunity(n: int, organizations: int) -> dict[str, Any]:
    company = [100_000 + (n - 1) % organizations + 1] if organizations else []
    entry = {"id": 550_000 + n, "list_id": DEALS, "creator_id": 1, "entity_id": 300_000 + n, "entity_type": 8}
    return {
        "id": 300_000 + n,
        "name": f"Deal {n}",
        "person_ids": [],
        "organization_ids": company,
        "list_entries": [{**entry, "created_at": _at(n)}],
    }


def _entry(n: int, persons: int, lists: int) -> dict[str, Any]:
    return {
        "id": 500_000 + n,
        "list_id": 400_000 + (n - 1) % lists + 1,
        "creator_id": 1,
        "entity_id": _someone(n, persons),
        "entity_type": 0,
        "created_at": _at(n),
    }


def _note(n: int, persons: int) -> dict[str, Any]:
    """Every tenth note is HTML, every eleventh a reply, which has no subjects of its own."""
    text = f"Note {n}: called, and was told to call again."
    is_reply = n % 11 == 0
    return {
        "id": 600_000 + n,
        "creator_id": 1,
        "person_ids": [] if is_reply else [_someone(n, persons)],
        "organization_ids": [],
        "opportunity_ids": [],
        "parent_id": 600_000 + n - 1 if is_reply else None,
        "content": f"<p>{text}</p>" if n % 10 == 0 else text,
        "type": 2 if n % 10 == 0 else 0,
        "is_meeting": False,
        "mentioned_person_ids": [],
        "created_at": _at(n),
        "updated_at": None,
    }


def _activity(n: int, persons: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Activities take turns: a meeting, a call, an email, a chat message, a reminder."""
    kind = ACTIVITIES[(n - 1) % len(ACTIVITIES)]
    person = persons[(n - 1) % len(persons)] if persons else None
    base = {"id": 700_000 + n, "kind": kind, "person": person}
    if kind == "reminders":
        state = {"type": 0, "status": 1, "reset_type": None, "reminder_days": None, "completed_at": None}
        people = {"creator": _person_1(_USER), "owner": _person_1(_USER), "completer": None}
        subject = {"person": _person_1(person) if person else None, "organization": None, "opportunity": None}
        words = {"content": f"Reminder {n}", "due_date": _at(n + 60), "created_at": _at(n)}
        return {**base, "shown": {"id": 700_000 + n, **state, **people, **subject, **words}}
    times = {"createdAt": _instant(n), "updatedAt": None, "loggingType": "automated"}
    attending = _preview([_attendee(_USER), *([_attendee(person)] if person else [])])
    own: dict[str, Any] = {"title": f"Meeting {n}", "startTime": _instant(n), "endTime": _instant(n + 30)}
    own |= {"allDay": False, "creator": None, "organizer": _attendee(_USER), "attendeesPreview": attending}
    if kind == "calls":
        own |= {"title": f"Call {n}", "loggingType": "manual"}
        del own["organizer"]
    elif kind == "emails":
        own = {"subject": f"Mail {n}", "sentAt": _instant(n), "direction": "sent", "from": _attendee(_USER)}
        own |= {"toParticipantsPreview": _preview(attending["data"][1:]), "ccParticipantsPreview": _preview([])}
    elif kind == "chat-messages":
        own = {"sentAt": _instant(n), "direction": "sent", "creator": _person_data(_USER), "loggingType": "manual"}
        own["participantsPreview"] = _preview([_person_data(person)] if person else [])
    return {**base, "shown": {"id": 700_000 + n, **times, **own}}


def _file(n: int, parents: Sequence[tuple[str, Sequence[Mapping[str, Any]]]], size: int) -> dict[str, Any]:
    """Files take turns: one of a person, one of an organization, one of an opportunity."""
    parent = dict[str, Any].fromkeys(_FILE_OF)
    if parents:
        name, held = parents[(n - 1) % len(parents)]
        parent[name] = held[(n - 1) // len(parents) % len(held)]["id"]
    about = {"id": 800_000 + n, "name": f"Offer {n}.pdf", "size": size}
    return {**about, **parent, "created_at": _at(n), "uploader_id": 1}


def file_content(one: Mapping[str, Any]) -> bytes:
    """Return the content of a file, which depends on its id and size."""
    line, size = f"%PDF of file {one['id']}\n".encode(), int(one["size"])
    return (line * (size // len(line) + 1))[:size]


def _someone(n: int, persons: int) -> int:
    return 200_000 + (n - 1) % max(persons, 1) + 1


def _at(n: int) -> str:
    return (_BEGAN + timedelta(minutes=n)).isoformat()


def _instant(n: int) -> str:
    return _at(n).replace("+00:00", "Z")


def _person_1(one: Mapping[str, Any]) -> dict[str, Any]:
    plain = {name: one[name] for name in ("id", "type", "first_name", "last_name", "primary_email")}
    return {**plain, "emails": [one["primary_email"]]}


def _person_data(one: Mapping[str, Any]) -> dict[str, Any]:
    names = {"id": one["id"], "firstName": one["first_name"], "lastName": one["last_name"]}
    kind = "internal" if one["type"] == 1 else "external"
    return {**names, "primaryEmailAddress": one["primary_email"], "type": kind}


def _attendee(one: Mapping[str, Any]) -> dict[str, Any]:
    return {"emailAddress": one["primary_email"], "person": _person_data(one)}


def _preview(data: Sequence[Any]) -> dict[str, Any]:
    return {"data": list(data[:100]), "totalCount": len(data)}


def as_version_1(kind: str, one: Mapping[str, Any], query: Mapping[str, str], *, alone: bool) -> dict[str, Any]:
    """Return a record as version 1 lists it, or returns it `alone`."""
    if kind == "activities":
        return dict(one["shown"])
    if kind not in ("persons", "organizations"):
        return dict(one)
    shown = {name: value for name, value in one.items() if alone or name not in _OWN}
    for parameter, name in _ASKED_FOR.items():
        value = shown.pop(name, [])
        if query.get(parameter) == "true" and not (kind == "organizations" and name == "current_organization_ids"):
            shown[name] = value
    return {**shown, "list_entries": []} if alone else shown


def as_version_2(
    kind: str, one: Mapping[str, Any], types: Collection[str], version: str, entity: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return a record as version 2 of the API returns it, with the fields of these types."""
    fields = {"fields": _fields(one, types, version)} if types and kind != "list_entries" else {}
    match kind:
        case "persons":
            data = {**_person_data(one), "emailAddresses": one["emails"]}
            return {**data, **fields}
        case "organizations":
            return {name: one[name] for name in ("id", "name", "domain", "domains")} | {"isGlobal": False} | fields
        case "list_entries":
            whole, of = entity or {"id": one["entity_id"]}, "opportunity" if one["entity_type"] == 8 else "person"
            shown = as_version_2("persons" if of == "person" else "opportunities", whole, (), version)
            shown |= {"fields": _fields(one, types, version)} if types else {}
            ids = {"id": one["id"], "listId": one["list_id"], "type": of, "creatorId": one["creator_id"]}
            return {**ids, "createdAt": one["created_at"].replace("+00:00", "Z"), "entity": shown}
        case "activities":
            return dict(one["shown"])
    return {"id": one["id"], "name": one["name"], "listId": DEALS}


def field_metadata(kind: str) -> list[dict[str, Any]]:
    """Return the fields that version 2 describes, for entities or for list entries."""
    known = [("field-1", "Remark", "global", "text"), ("field-2", "Salary", "global", "number")]
    known.append(("field-3", "Tags", "global", "dropdown-multi"))
    if kind == "list_entries":
        known += [("field-10", "Status", "list", "ranked-dropdown"), ("field-11", "Amount", "list", "number")]
    names = ("id", "name", "type", "valueType")
    return [{**dict(zip(names, one, strict=True)), "enrichmentSource": None} for one in known]


def _fields(one: Mapping[str, Any], types: Collection[str], version: str) -> list[dict[str, Any]]:
    """Return the values of fields. The salary is hidden, and every thousandth record has too many tags."""
    n = one["id"] % 10_000
    tags = [{"dropdownOptionId": i + 1, "text": f"Tag {i + 1}"} for i in range(100 if n % 1000 == 13 else n % 4)]
    status = {"dropdownOptionId": n % 4 + 1, "text": STATUSES[n % 4], "rank": n % 4, "color": None}
    data: dict[str, Any] = {"field-1": f"Value {one['id']}", "field-2": None, "field-3": tags}
    data |= {"field-10": status, "field-11": n * 1000.0}
    found = []
    for field in field_metadata("list_entries"):
        if field["type"] in types:
            value = {"type": field.pop("valueType"), "data": data[field["id"]]}
            hidden = {"type": "hidden"} if field["id"] == "field-2" and version >= HIDDEN_SINCE else {}
            found.append({**field, "value": value, **hidden})
    return found
