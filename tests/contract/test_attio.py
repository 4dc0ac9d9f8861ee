"""Attio as others know it: its typed client, its OpenAPI document, its documentation (C13)."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from attio import SDK, errors

from tidings.migration.connectors import registry
from tidings.migration.connectors.attio import AttioTarget
from tidings.migration.connectors.port import ConnectorError, Fields
from tidings.sandbox.attio_routes import CALLS
from tidings.sandbox.attio_schema import LOCATION_PARTS, MEMBERS

from .channels.conftest import Sandbox, serving
from .foreign_openapi import described

KEY = "key-of-the-test"
NAME = {"first_name": "Ada", "last_name": "Lovelace", "full_name": "Ada Lovelace"}
PLACE = {**dict.fromkeys(LOCATION_PARTS), "locality": "London", "country_code": "GB", "latitude": "51.5"}
OWNER = "owner@own.example"


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    """An empty workspace without limits."""
    async with serving() as ready:
        async with httpx.AsyncClient(base_url=ready.url) as client:
            await client.post("/sandbox/attio", json={"reads_per_second": 10_000, "writes_per_second": 10_000})
        yield ready


@pytest.fixture
async def target(sandbox: Sandbox) -> AsyncIterator[AttioTarget]:
    """The adapter."""
    given = {"url": f"{sandbox.url}/attio", "key": KEY, "keys": {"deals": "affinity_id"}}
    made = registry.target("attio", given)
    assert isinstance(made, AttioTarget)
    yield made
    await made.close()


async def refused(call: Any) -> ConnectorError:
    with pytest.raises(ConnectorError) as caught:
        await call
    return caught.value


async def test_attios_typed_client_uses_every_route_of_the_sandbox(sandbox: Sandbox) -> None:
    """attio: its models are strict on required fields; they accept what the sandbox answers, errors included."""

    def work() -> dict[str, Any]:
        with SDK(server_url=f"{sandbox.url}/attio", oauth2=KEY) as sdk:
            records, entries, notes, tasks, meetings = sdk.records, sdk.entries, sdk.notes, sdk.tasks, sdk.meetings
            values = {"name": [NAME], "email_addresses": ["ada@acme.example"], "primary_location": [PLACE]}
            values |= {"phone_numbers": ["+44 20 1234 5678"], "affinity_id": ["7"]}
            person = records.put_v2_objects_object_records(
                object="people", matching_attribute="email_addresses", data={"values": values}
            ).data
            id_ = person.id.record_id
            company = records.post_v2_objects_object_records(
                object="companies", data={"values": {"domains": ["b.example"], "categories": ["SaaS"]}}
            ).data
            link = {"target_object": "companies", "target_record_id": company.id.record_id}
            records.patch_v2_objects_object_records_record_id_(
                object="people", record_id=id_, data={"values": {"company": [link]}}
            )
            records.put_v2_objects_object_records_record_id_(
                object="people", record_id=id_, data={"values": {"job_title": ["Countess"]}}
            )
            deal = {"name": ["Engine"], "stage": ["Lead"], "owner": [OWNER], "value": [5], "affinity_id": ["1"]}
            records.put_v2_objects_object_records(
                object="deals", matching_attribute="affinity_id", data={"values": deal}
            )
            with pytest.raises(errors.SDKError) as missing:
                records.post_v2_objects_object_records(object="deals", data={"values": {"name": ["No stage"]}})
            with pytest.raises(errors.SDKError) as conflict:
                records.post_v2_objects_object_records(object="people", data={"values": {"affinity_id": ["7"]}})
            with pytest.raises(errors.SDKError) as gone:
                records.get_v2_objects_object_records_record_id_(object="people", record_id=str(MEMBERS))
            of = {"parent_object": "people", "parent_record_id": id_}
            entry = entries.put_v2_lists_list_entries(
                list_id="pipeline", data={**of, "entry_values": {"stage": ["New"]}}
            ).data.id.entry_id
            entries.post_v2_lists_list_entries(list_id="pipeline", data={**of, "entry_values": {}})
            entries.patch_v2_lists_list_entries_entry_id_(
                list_id="pipeline", entry_id=entry, data={"entry_values": {"stage": ["Won"]}}
            )
            entries.put_v2_lists_list_entries_entry_id_(
                list_id="pipeline", entry_id=entry, data={"entry_values": {"stage": ["Lost"]}}
            )
            note = notes.post_v2_notes(
                data={**of, "title": "T", "format_": "plaintext", "content": "C"}
            ).data.id.note_id
            task = {"content": "Call", "format_": "plaintext", "deadline_at": None, "is_completed": False}
            linked = [{"target_object": "people", "target_record_id": id_}]
            made = tasks.post_v2_tasks(data={**task, "linked_records": linked, "assignees": []}).data.id.task_id
            at = {"datetime_": "2026-11-18T09:00:00Z", "timezone": None}
            guest = {"is_organizer": False, "status": "accepted", "email_address": "ada@acme.example"}
            meeting = {"title": "M", "description": "", "start": at, "end": at, "is_all_day": False}
            upload = {"file_name": "Offer.pdf", "content": b"%PDF", "content_type": "application/pdf"}
            file = sdk.files.post_v2_files_upload(file=upload, object="people", record_id=id_).data.id.file_id
            held = meetings.post_v2_meetings(
                data={**meeting, "participants": [guest], "linked_records": [{"object": "people", "record_id": id_}]}
            ).data.id.meeting_id
            found = {
                "person": records.get_v2_objects_object_records_record_id_(object="people", record_id=id_).data,
                "people": records.post_v2_objects_object_records_query(object="people", limit=10).data,
                "deals": records.post_v2_objects_object_records_query(object="deals").data,
                "on": records.get_v2_objects_object_records_record_id_entries(object="people", record_id=id_).data,
                "entry": entries.get_v2_lists_list_entries_entry_id_(list_id="pipeline", entry_id=entry).data,
                "entries": entries.post_v2_lists_list_entries_query(list_id="pipeline").data,
                "note": notes.patch_v2_notes_note_id_(note_id=note, data={"title": "T2"}).data,
                "notes": notes.get_v2_notes(parent_object="people", parent_record_id=id_).data,
                "one note": notes.get_v2_notes_note_id_(note_id=note).data,
                "tasks": tasks.get_v2_tasks(linked_object="people", linked_record_id=id_).data,
                "task": tasks.get_v2_tasks_task_id_(task_id=made).data,
                "meetings": meetings.get_v2_meetings(limit=50).data,
                "meeting": meetings.get_v2_meetings_meeting_id_(meeting_id=held).data,
                "file": sdk.files.get_v2_files_file_id_(file_id=file).data,
                "files": sdk.files.get_v2_files(object="people", record_id=id_, limit=200).data,
                "members": sdk.workspace_members.get_v2_workspace_members().data,
                "objects": sdk.objects.get_v2_objects().data,
                "lists": sdk.lists.get_v2_lists().data,
                "codes": [json.loads(one.value.body)["code"] for one in (missing, conflict, gone)],
            }
            for kind, name in (("objects", "deals"), ("lists", "pipeline")):
                place = {"target": kind, "identifier": name}
                found[kind + " attributes"] = sdk.attributes.get_v2_target_identifier_attributes(**place).data
                sdk.attributes.get_v2_target_identifier_attributes_attribute_statuses(**place, attribute="stage")
            for kind, name, attribute in (("objects", "companies", "categories"), ("lists", "pipeline", "affinity_id")):
                sdk.attributes.get_v2_target_identifier_attributes_attribute_options(
                    target=kind, identifier=name, attribute=attribute
                )
            entries.delete_v2_lists_list_entries_entry_id_(list_id="pipeline", entry_id=entry)
            notes.delete_v2_notes_note_id_(note_id=note)
            tasks.delete_v2_tasks_task_id_(task_id=made)
            sdk.files.delete_v2_files_file_id_(file_id=file)
            meetings.delete_v2_meetings_meeting_id_(meeting_id=held)
            records.delete_v2_objects_object_records_record_id_(object="people", record_id=id_)
            return found

    found = await asyncio.to_thread(work)
    assert found["codes"] == ["validation_type", "validation_type", "not_found"]
    assert (found["note"].title, found["entry"].entry_values["stage"][0].status.title) == ("T2", "Lost")
    assert (found["file"].name, found["file"].content_size, found["files"]) == ("Offer.pdf", 4, [found["file"]])
    person = found["person"].values
    assert person["name"][0].full_name == "Ada Lovelace" and person["primary_location"][0].latitude == "51.5"
    assert found["deals"][0].values["value"][0].currency_value == 5
    async with httpx.AsyncClient(base_url=sandbox.url) as client:
        counts = (await client.get("/sandbox/attio?counts")).json()["counts"]
    assert counts == {
        **{"people": 0, "companies": 2, "deals": 1, "lists/pipeline": 1},
        **{"notes": 0, "tasks": 0, "meetings": 0, "files": 0},
    }
    asked = {f"{one.method} {one.path.partition('?')[0]}" for one in sandbox.requests}
    routes = {f"{call.method} /attio/v2{re.sub(r'{[a-z]+}', '[^/]+', call.path)}" for call in CALLS}
    assert {route for route in routes if not any(re.fullmatch(route, one) for one in asked)} == set()


async def test_requests_of_the_adapter_and_answers_fit_attios_openapi_document(
    sandbox: Sandbox, target: AttioTarget
) -> None:
    """What the adapter sends in a migration and an undo; what the document is too old for is the client's part."""
    api = described("attio")
    company = await target.write("companies", "a.example", await target.canonical("companies", {"name": "A"}), None)
    fields = {"name": "Ada Lovelace", "company": company.id, "primary_location": PLACE}
    person = await target.write("people", "ada@a.example", await target.canonical("people", fields), None)
    await target.write("people", "ada@a.example", {"job_title": "Countess"}, person.id)
    deal = {"name": "Engine", "stage": "Lead", "owner": OWNER, "value": 5}
    await target.write("deals", "1", await target.canonical("deals", deal), None)
    of = {"parent_object": "people", "parent_record_id": person.id}
    entry = await target.write("lists/pipeline", "1", {**of, "stage": "New"}, None)
    note = {**of, "title": "T", "content": "C", "created_at": "2021-01-02T03:04:05Z"}
    items = [("notes", note), ("tasks", {**of, "content": "Call", "deadline_at": "2026-12-01T09:00:00Z"})]
    for type_, item in items:
        written = await target.write(type_, "1", item, None)
        assert [one.id for one in await target.find(type_, "1", item)] == [written.id]
        assert [one.id async for _, one in target.read_all(type_)] == [written.id]
        await target.erase(type_, written.id)
    assert [one.id for one in await target.find("lists/pipeline", "1", of)] == [entry.id]
    await target.erase("lists/pipeline", entry.id)
    assert [one async for one in target.read_all("lists/pipeline")] == []
    for type_ in ("people", "companies", "deals"):
        assert await target.attributes(type_)
        assert [written async for _, written in target.read_all(type_)]
    await target.erase("people", person.id)

    requests = [one for one in sandbox.requests if one.path.startswith("/attio/")]
    assert len(requests) > 25
    headers = {"authorization": f"Bearer {KEY}"}
    async with httpx.AsyncClient(base_url=f"{sandbox.url}/attio", headers=headers) as client:
        for one in requests:
            path = one.path.removeprefix("/attio")
            api.request(one.method, path, one.body)
            if one.method == "GET" or path.endswith("/query"):
                answer = await client.request(one.method, path, content=one.body)
                api.response(one.method, path.partition("?")[0], answer.status_code, answer.json())


@pytest.mark.parametrize(
    ("type_", "fields", "shown"),
    [
        ("people", {"name": "Lovelace, Ada"}, {"name": NAME}),
        ("people", {"name": "Ada Lovelace"}, {"name": NAME}),
        ("people", {"name": "Ada"}, {"name": {"first_name": "Ada", "last_name": "", "full_name": "Ada"}}),
        ("people", {"name": {"first_name": "Ada", "last_name": "Lovelace"}}, {"name": NAME}),
        (
            "people",
            {"primary_location": {"locality": "London", "country_code": "GB", "latitude": 51.5}},
            {"primary_location": PLACE},
        ),
        ("people", {"email_addresses": ["Ada@Acme.Example"]}, {"email_addresses": ["ada@acme.example"]}),
        ("deals", {"name": "D", "stage": "Won", "owner": OWNER.upper(), "value": {"currency_value": 7}}, {"value": 7}),
    ],
)
async def test_values_are_completed_so_that_attio_takes_them_and_are_read_back_the_same(
    type_: str, fields: Fields, shown: Fields, target: AttioTarget
) -> None:
    """A name has three parts and a location ten; verification sees no difference that is none."""
    key = "ada@acme.example" if type_ == "people" else "1"
    canonical = await target.canonical(type_, fields)
    written = await target.write(type_, key, canonical, None)
    (found,) = await target.find(type_, key, {})

    assert found.id == written.id and found.fields is not None
    assert {name: found.fields[name] for name in fields} == canonical
    assert {name: found.fields[name] for name in shown} == shown


@pytest.mark.parametrize(
    ("type_", "fields", "field"),
    [
        ("people", {"name": {"first_name": "Ada", "last_name": "Lovelace"}}, "name"),
        ("people", {"primary_location": {"locality": "London"}}, "primary_location"),
        ("people", {"primary_location": "London"}, "primary_location"),
        ("deals", {"name": "Engine", "stage": "Lead"}, "owner"),
        ("deals", {"name": "Engine", "owner": OWNER}, "stage"),
        ("deals", {"name": "Engine", "stage": "Lead", "owner": "nobody@own.example"}, "owner"),
        ("deals", {"name": "Engine", "stage": "Lead", "owner": OWNER, "value": "much"}, "value"),
    ],
)
async def test_the_sandbox_refuses_what_attio_refuses(
    type_: str, fields: Fields, field: str, target: AttioTarget
) -> None:
    """Attio's pages on names, locations and deals; the error names the attribute."""
    error = await refused(target.write(type_, "ada@acme.example", fields, None))
    assert (error.field, error.code) == (field, "validation_type")


async def test_an_owner_who_is_not_a_member_is_refused_before_anything_is_sent(target: AttioTarget) -> None:
    """The record is rejected with the field; Attio is asked for its members once."""
    error = await refused(target.canonical("deals", {"owner": "nobody@own.example"}))
    assert error.field == "owner" and "no workspace member" in error.reason


async def test_a_meeting_is_written_once_also_when_its_answer_is_lost(sandbox: Sandbox, target: AttioTarget) -> None:
    """Meetings have no key: one with the same title and start is taken for the same."""
    person = await target.write("people", "ada@acme.example", {}, None)
    meeting = {
        **{"title": "Lunch", "start": "2026-11-18T09:00:00Z", "end": "2026-11-18T10:00:00Z"},
        **{"participants": ["ada@acme.example"], "parent_object": "people", "parent_record_id": person.id},
    }
    sandbox.break_("lost", channel="attio", recipient="meetings", times=1)
    error = await refused(target.write("meetings", "1", meeting, None))
    again = await target.write("meetings", "1", meeting, None)
    other = await target.write("meetings", "2", {"title": "Lunch", "start": "2026-11-19T09:00:00Z"}, None)
    everything = [one async for _, one in target.read_all("meetings")]

    assert error.sent and again.id != other.id
    assert [one.id for one in everything] == [again.id, other.id]
    assert everything[0].fields is not None and everything[0].fields["participants"] == ["ada@acme.example"]
