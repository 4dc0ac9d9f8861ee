"""Routes of the simulated Attio: each parses its request, works on the workspace and returns the answer's data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from .attio_schema import ACTOR, MEMBERS, WORKSPACE, AttioCollection, AttioError, AttioRecord, invalid
from .attio_workspace import AttioWorkspace
from .provider_endpoint import ProviderRequest

_BEGAN = "2020-01-01T00:00:00.000000000Z"

UPLOAD = "/files/upload"

Work = Callable[[AttioWorkspace, ProviderRequest], Any]


class AttioRoute(NamedTuple):
    """One route: whether it counts as a write, and its function."""

    path: str
    method: str
    writes: bool
    work: Work


def _data(asked: ProviderRequest) -> Mapping[str, Any]:
    found = (asked.fields or {}).get("data")
    if not isinstance(found, dict):
        raise invalid("Body payload validation error.", "data")
    return found


def _shelf(content: AttioWorkspace, asked: ProviderRequest) -> AttioCollection:
    if "list" in asked.path:
        return content.shelf("lists", asked.path["list"])
    return content.shelf("objects", asked.path["object"])


def _assert(content: AttioWorkspace, asked: ProviderRequest) -> Any:
    shelf, matching = _shelf(content, asked), asked.query.get("matching_attribute", "")
    return _record(shelf, content.assert_record(shelf, matching, _data(asked).get("values") or {}))


def _create(content: AttioWorkspace, asked: ProviderRequest) -> Any:
    shelf = _shelf(content, asked)
    return _record(shelf, content.create_record(shelf, _data(asked).get("values") or {}))


def _changed(content: AttioWorkspace, asked: ProviderRequest, *, append: bool) -> Any:
    shelf, data = _shelf(content, asked), _data(asked)
    values = data.get("entry_values" if "list" in asked.path else "values") or {}
    return _record(shelf, content.change_record(shelf, asked.path["id"], values, append=append))


def _get(content: AttioWorkspace, asked: ProviderRequest) -> Any:
    shelf = _shelf(content, asked)
    return _record(shelf, content.held(shelf, asked.path["id"]))


def _delete(content: AttioWorkspace, asked: ProviderRequest) -> Any:
    content.delete_record(_shelf(content, asked), asked.path["id"])
    return {}


def _delete_item(content: AttioWorkspace, asked: ProviderRequest, *, kind: str) -> Any:
    content.delete_item(kind, asked.path["id"])
    return {}


def _item(content: AttioWorkspace, asked: ProviderRequest, *, kind: str) -> Any:
    return content.item(kind, asked.path["id"])


def _tasks(content: AttioWorkspace, asked: ProviderRequest) -> Any:
    found = [one for one in content.items["tasks"].values() if _is_linked(one, asked.query)]
    start = int(asked.query.get("offset", "0"))
    return found[start : start + int(asked.query.get("limit", "500"))]


def _meetings(content: AttioWorkspace, asked: ProviderRequest) -> Any:
    """Return a page of meetings; the cursor is the place of the next."""
    found = [one for one in content.items["meetings"].values() if _is_linked(one, asked.query)]
    return _cursor_page(found, asked.query.get("cursor", "0"), int(asked.query.get("limit", "50")))


def _files(content: AttioWorkspace, asked: ProviderRequest) -> Any:
    """Return a page of the files of one record; the cursor is the place of the next."""
    parent = asked.query.get("object"), asked.query.get("record_id")
    size = asked.query.get("limit", "50")
    if None in parent or not size.isdigit() or not 1 <= int(size) <= 200:
        raise invalid("object and record_id are required, and limit must be from 1 to 200.")
    found = [one for one in content.items["files"].values() if (one["object_slug"], one["record_id"]) == parent]
    return _cursor_page(found, asked.query.get("cursor", "0"), int(size))


def _cursor_page(found: Sequence[Any], cursor: str, size: int) -> dict[str, Any]:
    start = int(cursor)
    after = str(start + size) if start + size < len(found) else None
    return {"data": found[start : start + size], "pagination": {"next_cursor": after}}


def _is_linked(one: Mapping[str, Any], query: Mapping[str, str]) -> bool:
    wanted, links = query.get("linked_record_id"), one["linked_records"]
    return wanted is None or wanted in [link.get("target_record_id") or link.get("record_id") for link in links]


def _query(content: AttioWorkspace, asked: ProviderRequest) -> Any:
    shelf = _shelf(content, asked)
    return [_record(shelf, one) for one in content.query(shelf, asked.fields or {})]


def _entries_of(content: AttioWorkspace, asked: ProviderRequest) -> Any:
    parent, start = (asked.path["object"], asked.path["id"]), int(asked.query.get("offset", "0"))
    found = [
        {"list_id": slug, "list_api_slug": slug, "entry_id": id_, "created_at": shelf.held[id_].created_at}
        for slug, shelf in content.lists.items()
        for id_ in shelf.by_parent.get(parent, ())
    ]
    return found[start : start + int(asked.query.get("limit", "100"))]


def _entry(content: AttioWorkspace, asked: ProviderRequest, *, assert_: bool) -> Any:
    shelf = _shelf(content, asked)
    return _record(shelf, content.add_entry(shelf, _data(asked), assert_=assert_))


def _notes(content: AttioWorkspace, asked: ProviderRequest) -> Any:
    limit, offset = (asked.query.get(name, usual) for name, usual in (("limit", "10"), ("offset", "0")))
    if not (limit.isdigit() and offset.isdigit() and 1 <= int(limit) <= 50):
        raise invalid("limit must be from 1 to 50.")
    notes = content.items["notes"]
    ids: Sequence[str] = list(notes)
    if "parent_record_id" in asked.query:
        parent = (asked.query.get("parent_object", ""), asked.query["parent_record_id"])
        ids = content.notes_by_parent.get(parent, [])
    return [notes[id_] for id_ in ids[int(offset) : int(offset) + int(limit)]]


def _attributes(content: AttioWorkspace, asked: ProviderRequest) -> Any:
    shelf = _shelf(content, asked)
    return [slot.described(shelf.slug) for slot in shelf.slots.values()]


def _options(content: AttioWorkspace, asked: ProviderRequest) -> Any:
    slot = _shelf(content, asked).slots.get(asked.path["attribute"])
    if slot is None:
        said = f'Could not find attribute with slug/ID "{asked.path["attribute"]}".'
        raise AttioError(404, "not_found", said)
    return [slot.option(_shelf(content, asked).slug, title) for title in slot.options]


def _described_object(slug: str) -> dict[str, Any]:
    noun = slug.replace("_", " ").title()
    ids = {"workspace_id": WORKSPACE, "object_id": slug}
    return {"id": ids, "api_slug": slug, "singular_noun": noun, "plural_noun": noun, "created_at": _BEGAN}


def _described_list(slug: str) -> dict[str, Any]:
    ids, access = {"workspace_id": WORKSPACE, "list_id": slug}, {"workspace_access": "full-access"}
    about = {"api_slug": slug, "name": slug.title(), "parent_object": ["people"], "workspace_member_access": []}
    return {"id": ids, **about, **access, "created_by_actor": ACTOR, "created_at": _BEGAN}


def _members(content: AttioWorkspace, asked: ProviderRequest) -> Any:
    return [
        {
            "id": {"workspace_id": WORKSPACE, "workspace_member_id": id_},
            "first_name": "Olga",
            "last_name": "Owner",
            "avatar_url": None,
            "email_address": address,
            "access_level": "admin",
            "created_at": _BEGAN,
        }
        for address, id_ in MEMBERS.items()
    ]


def _record(shelf: AttioCollection, held: AttioRecord) -> dict[str, Any]:
    values = {
        name: [shelf.slots[name].shown(shelf.slug, one, held.created_at) for one in given]
        for name, given in held.values.items()
    }
    if held.parent is not None:
        ids = {"workspace_id": WORKSPACE, "list_id": shelf.slug, "entry_id": held.id}
        parent = {"parent_object": held.parent[0], "parent_record_id": held.parent[1]}
        return {"id": ids, **parent, "created_at": held.created_at, "entry_values": values}
    ids = {"workspace_id": WORKSPACE, "object_id": shelf.slug, "record_id": held.id}
    url = f"https://app.attio.com/sandbox/{shelf.slug}/{held.id}"
    return {"id": ids, "created_at": held.created_at, "web_url": url, "values": values}


_OBJECT, _LIST = "/objects/{object}", "/lists/{list}"

CALLS: Sequence[AttioRoute] = (
    AttioRoute(f"{_OBJECT}/records", "PUT", True, _assert),
    AttioRoute(f"{_OBJECT}/records", "POST", True, _create),
    AttioRoute(f"{_OBJECT}/records/query", "POST", False, _query),
    AttioRoute(f"{_OBJECT}/records/{{id}}/entries", "GET", False, _entries_of),
    *(
        AttioRoute(f"{place}/attributes{rest}", "GET", False, work)
        for place in (_OBJECT, _LIST)
        for rest, work in (("", _attributes), ("/{attribute}/options", _options), ("/{attribute}/statuses", _options))
    ),
    *(
        AttioRoute(f"{place}/{{id}}", method, method != "GET", work)
        for place in (f"{_OBJECT}/records", f"{_LIST}/entries")
        for method, work in (
            ("GET", _get),
            ("PUT", partial(_changed, append=False)),
            ("PATCH", partial(_changed, append=True)),
            ("DELETE", _delete),
        )
    ),
    AttioRoute(f"{_LIST}/entries", "POST", True, partial(_entry, assert_=False)),
    AttioRoute(f"{_LIST}/entries", "PUT", True, partial(_entry, assert_=True)),
    AttioRoute(f"{_LIST}/entries/query", "POST", False, _query),
    AttioRoute("/notes", "GET", False, _notes),
    AttioRoute("/notes", "POST", True, lambda content, asked: content.add_note(_data(asked))),
    AttioRoute(
        "/notes/{id}", "PATCH", True, lambda content, asked: content.change_note(asked.path["id"], _data(asked))
    ),
    AttioRoute("/tasks", "GET", False, _tasks),
    AttioRoute("/tasks", "POST", True, lambda content, asked: content.add_task(_data(asked))),
    AttioRoute("/meetings", "GET", False, _meetings),
    AttioRoute("/meetings", "POST", True, lambda content, asked: content.add_meeting(_data(asked))),
    AttioRoute("/files", "GET", False, _files),
    AttioRoute(UPLOAD, "POST", True, lambda content, asked: content.add_file(asked.fields or {})),
    *(
        AttioRoute(f"/{kind}/{{id}}", method, method == "DELETE", partial(work, kind=kind))
        for kind in ("notes", "tasks", "meetings", "files")
        for method, work in (("GET", _item), ("DELETE", _delete_item))
    ),
    AttioRoute("/workspace_members", "GET", False, _members),
    AttioRoute("/objects", "GET", False, lambda content, _: [_described_object(slug) for slug in content.objects]),
    AttioRoute("/lists", "GET", False, lambda content, _: [_described_list(slug) for slug in content.lists]),
)
