"""Records of the simulated Affinity: organizations, persons, opportunities, lists, entries and notes. No I/O.

Content depends only on the number, so tests know what must arrive. With `bad_every`, some persons are
defective so that a target rejects them (see `defective_persons`). Ids are unique.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

FIRST = ("Ada", "Grace", "Alan", "Edsger", "Barbara", "Donald", "Radia", "Ken", "Margaret", "Tim")
LAST = (*("Lovelace", "Hopper", "Turing", "Dijkstra", "Liskov"), *("Knuth", "Perlman", "Thompson", "Hamilton", "Lee"))
DEFECTS = ("no_email", "broken_email", "null_byte", "missing_company")
KINDS = ("organizations", "persons", "opportunities", "lists", "list_entries", "notes")

_BEGAN = datetime(2020, 1, 1, 9, 0, tzinfo=UTC)

Content = dict[str, list[dict[str, Any]]]


def generate_records(told: Mapping[str, int], bad_every: int) -> Content:
    """Generate the given number of records per kind; with `bad_every` n, every n-th person is defective."""
    organizations, persons = told.get("organizations", 0), told.get("persons", 0)
    content: Content = {kind: [] for kind in KINDS}
    content["organizations"] = [_organization(n) for n in range(1, organizations + 1)]
    content["persons"] = [_person(n, organizations, bad_every) for n in range(1, persons + 1)]
    content["opportunities"] = [_opportunity(n, organizations) for n in range(1, told.get("opportunities", 0) + 1)]
    content["lists"] = [
        {"id": 400_000 + n, "type": 0, "name": f"List {n}", "public": True, "owner_id": 1, "list_size": 0}
        for n in range(1, told.get("lists", 0) + 1)
    ]
    entries = told.get("list_entries", 0) if content["lists"] else 0
    content["list_entries"] = [_entry(n, persons, len(content["lists"])) for n in range(1, entries + 1)]
    content["notes"] = [_note(n, persons) for n in range(1, told.get("notes", 0) + 1)]
    return content


def _organization(n: int) -> dict[str, Any]:
    domain = f"company-{n}.example"
    return {
        "id": 100_000 + n,
        "name": f"Company {n}",
        "domain": domain,
        "domains": [domain],
        "global": False,
        "person_ids": [],
    }


def _person(n: int, organizations: int, bad_every: int) -> dict[str, Any]:
    first, last = FIRST[n % len(FIRST)], LAST[n // len(FIRST) % len(LAST)]
    company = (n - 1) % organizations + 1 if organizations else 0
    domain = f"company-{company}.example" if company else "people.example"
    email = f"person-{n}@{domain}"
    made: dict[str, Any] = {
        "id": 200_000 + n,
        "type": 0,
        "first_name": first,
        "last_name": last,
        "primary_email": email,
        "emails": [email],
        "organization_ids": [100_000 + company] if company else [],
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
    return {"organization_ids": [999_999]}


def defective_persons(persons: int, bad_every: int) -> dict[str, str]:
    """Return the defective persons by id, and what is wrong with each."""
    return (
        {str(200_000 + n): DEFECTS[n // bad_every % len(DEFECTS)] for n in range(bad_every, persons + 1, bad_every)}
        if bad_every
        else {}
    )


def _opportunity(n: int, organizations: int) -> dict[str, Any]:
    company = [100_000 + (n - 1) % organizations + 1] if organizations else []
    return {"id": 300_000 + n, "name": f"Deal {n}", "person_ids": [], "organization_ids": company, "list_entries": []}


def _entry(n: int, persons: int, lists: int) -> dict[str, Any]:
    return {
        "id": 500_000 + n,
        "list_id": 400_000 + (n - 1) % lists + 1,
        "creator_id": 1,
        "entity_id": 200_000 + (n - 1) % max(persons, 1) + 1,
        "created_at": _at(n),
    }


def _note(n: int, persons: int) -> dict[str, Any]:
    return {
        "id": 600_000 + n,
        "creator_id": 1,
        "person_ids": [200_000 + (n - 1) % max(persons, 1) + 1],
        "organization_ids": [],
        "opportunity_ids": [],
        "parent_id": None,
        "content": f"Note {n}: called, and was told to call again.",
        "type": 0,
        "is_meeting": False,
        "mentioned_person_ids": [],
        "created_at": _at(n),
        "updated_at": None,
    }


def _at(n: int) -> str:
    return (_BEGAN + timedelta(minutes=n)).isoformat()


def as_version_2(kind: str, one: Mapping[str, Any], *, with_fields: bool) -> dict[str, Any]:
    """Return a record as version 2 of the API returns it."""
    fields = {"fields": _fields(one)} if with_fields else {}
    match kind:
        case "persons":
            return {
                "id": one["id"],
                "firstName": one["first_name"],
                "lastName": one["last_name"],
                "primaryEmailAddress": one["primary_email"],
                "emailAddresses": one["emails"],
                "type": "external",
                **fields,
            }
        case "organizations":
            return {name: one[name] for name in ("id", "name", "domain", "domains")} | {"isGlobal": False} | fields
        case "list_entries":
            return {
                "id": one["id"],
                "listId": one["list_id"],
                "type": "person",
                "createdAt": one["created_at"].replace("+00:00", "Z"),
                "creatorId": one["creator_id"],
                "entity": {"id": one["entity_id"], **fields},
            }
        case "lists":
            return {"id": one["id"], "name": one["name"], "type": "person", "isPublic": True, "ownerId": 1}
        case "notes":
            content = {"html": f"<p>{one['content']}</p>"}
            at = one["created_at"].replace("+00:00", "Z")
            return {"id": one["id"], "type": "entities", "content": content, "creator": {"id": 1}, "createdAt": at}
    return {"id": one["id"], "name": one["name"], "listId": 0}


def _fields(one: Mapping[str, Any]) -> list[dict[str, Any]]:
    text = {"type": "text", "data": f"Value {one['id']}"}
    return [{"id": "field-1", "name": "Remark", "type": "global", "enrichmentSource": None, "value": text}]
