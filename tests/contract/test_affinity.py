"""Affinity as others know it: its typed client, its OpenAPI document, its documentation (C13)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from affinity import Affinity
from affinity.types import CompanyId, FieldType, FileId, ListId, PersonId

from tidings.migration.connectors import registry
from tidings.migration.connectors.affinity import API_VERSION
from tidings.migration.connectors.port import ConnectorError, RecordPage, RecordSource, SupportsCallEstimate
from tidings.sandbox import affinity_data
from tidings.sandbox.providers.affinity import CALLS

from .channels.conftest import Sandbox, serving
from .foreign_openapi import described

KEY = "key-of-the-test"
CONTENT = {
    **{"organizations": 5, "persons": 30, "opportunities": 4, "lists": 2, "list_entries": 8},
    **{"notes": 24, "activities": 15, "files": 7},
}


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    """The sandbox with some of everything."""
    async with serving() as ready:
        await fill(ready, **CONTENT)
        yield ready


async def fill(sandbox: Sandbox, **what: int) -> None:
    async with httpx.AsyncClient(base_url=sandbox.url) as client:
        (await client.post("/sandbox/affinity", json=what)).raise_for_status()


async def content(sandbox: Sandbox) -> Any:
    async with httpx.AsyncClient(base_url=sandbox.url) as client:
        return (await client.get("/sandbox/affinity")).json()["content"]


def source(sandbox: Sandbox, **more: Any) -> RecordSource:
    given = {"url": f"{sandbox.url}/affinity", "key": KEY, **more}
    return registry.source("affinity", given)


async def everything(reader: RecordSource, type_: str) -> list[RecordPage]:
    pages = [await reader.page(type_, None)]
    while pages[-1].cursor is not None:
        pages.append(await reader.page(type_, pages[-1].cursor))
    return pages


async def records(reader: RecordSource, type_: str) -> list[dict[str, Any]]:
    return [{**one.fields, "@id": one.id} for page in await everything(reader, type_) for one in page.records]


async def test_affinitys_typed_client_reads_every_route_of_the_sandbox(sandbox: Sandbox) -> None:
    """affinity-sdk: its models accept what the sandbox answers, in both versions."""

    def work() -> dict[str, Any]:
        with Affinity(
            api_key=KEY,
            v1_base_url=f"{sandbox.url}/affinity",
            v2_base_url=f"{sandbox.url}/affinity/v2",
            affinity_api_version=API_VERSION,
            allow_insecure_download_redirects=True,
        ) as client:
            return {
                "persons": list(client.persons.all(field_types=[FieldType.GLOBAL])),
                "companies": list(client.companies.all(field_types=[FieldType.GLOBAL])),
                "entries": list(client.lists.entries(ListId(400_001)).all(field_types=[FieldType.LIST])),
                "fields": client.lists.get_fields(ListId(400_001)),
                "person_fields": client.persons.get_fields(),
                "company_fields": client.companies.get_fields(),
                "persons_1": list(client.persons.search_all("")),
                "companies_1": list(client.companies.search_all("")),
                "opportunities_1": list(client.opportunities.search_all("")),
                "notes": list(client.notes.iter()),
                "meetings": list(client.interactions.iter_meetings()),
                "calls": list(client.interactions.iter_calls()),
                "emails": list(client.interactions.iter_emails()),
                "chat": list(client.interactions.iter_chat_messages()),
                "employers": client.persons.get_associated_company_ids(PersonId(200_007)),
                "staff": client.companies.get_associated_person_ids(CompanyId(100_002)),
                "limits": client.rate_limits.refresh(),
                "files": list(client.files.iter(person_id=PersonId(200_001))),
                "file": client.files.get(FileId(800_002)),
                "content": httpx.get(client.files.get_download_url(FileId(800_002)).url).content,
            }

    found = await asyncio.to_thread(work)
    counts = {name: len(value) for name, value in found.items() if isinstance(value, list)}
    assert (counts["persons"], counts["companies"]) == (30, 5)
    assert (counts["persons_1"], counts["companies_1"], counts["opportunities_1"]) == (30, 5, 4)
    assert (counts["entries"], counts["fields"], counts["notes"]) == (4, 5, 24)
    assert [counts[name] for name in ("meetings", "calls", "emails", "chat")] == [3, 3, 3, 3]
    assert found["persons"][0].fields.hidden_fields() == ["field-2"]
    assert found["employers"] == [100_003, 100_002] and 200_002 in found["staff"] and 200_006 not in found["staff"]
    assert [(one.name, one.person_id) for one in found["files"]] == [("Offer 1.pdf", 200_001)]
    assert (found["file"].company_id, found["file"].size, len(found["content"])) == (100_001, 1_000, 1_000)
    assert found["limits"].source == "endpoint" and found["limits"].org_monthly.limit == 100_000


async def test_sandbox_answers_fit_affinitys_openapi_document(sandbox: Sandbox) -> None:
    """Every route of version 2 that the document has, pages and errors; without a version header, as the document."""
    api = described("affinity-v2")
    headers = {"authorization": f"Bearer {KEY}"}
    judged = set()
    async with httpx.AsyncClient(base_url=f"{sandbox.url}/affinity", headers=headers) as client:
        for call in CALLS:
            path = call.path.replace("{list}", "400001").replace("{id}", "500001")
            if call.version == 1 or path in ("/v2/calls", "/v2/chat-messages"):
                continue  # the document is older than these two
            types = {"/v2/persons": ["global"], "/v2/companies": ["global"]}.get(path, [])
            types = ["global", "list"] if "/list-entries" in path else types
            limit = {} if "{id}" in call.path else {"limit": 3}
            answer = await client.get(path, params={"fieldTypes": types, **limit})
            api.request("GET", str(answer.request.url).removeprefix(f"{sandbox.url}/affinity"))
            api.response("GET", path, answer.status_code, answer.json())
            assert answer.status_code == 200 and answer.json().get("data", answer.json()), path
            judged.add(path)
        wrong = await client.get("/v2/persons", params={"fieldTypes": ["list"]})
        denied = await client.get("/v2/persons", headers={"authorization": "Bearer wrong"})
        absent = await client.get("/v2/lists/7/list-entries")
        await fill(sandbox, per_minute=0)
        throttled = await client.get("/v2/persons")
    assert len(judged) == 9
    for answer in (wrong, denied, absent, throttled):
        path = urlsplit(str(answer.request.url)).path.removeprefix("/affinity")
        api.response("GET", path, answer.status_code, answer.json())
    assert [one.status_code for one in (wrong, denied, absent, throttled)] == [400, 401, 404, 429]


async def test_lists_of_the_sandbox_omit_what_the_documentation_says_they_omit(sandbox: Sandbox) -> None:
    """Affinity's page on version 1: "Does not include the associated organization_ids or list_entries"."""
    async with httpx.AsyncClient(base_url=f"{sandbox.url}/affinity", auth=("", KEY)) as client:
        plain = (await client.get("/persons")).json()["persons"]
        asked = (await client.get("/persons", params={"with_current_organizations": "true"})).json()["persons"]
        alone = (await client.get("/persons/200007", params={"with_opportunities": "true"})).json()
        companies = (await client.get("/organizations")).json()["organizations"]
        company = (await client.get("/organizations/100002")).json()
        limits = [(await client.get("/v2/rate-limit", headers={"authorization": f"Bearer {KEY}"})).status_code]
    person = {"id", "type", "first_name", "last_name", "primary_email", "emails"}
    assert {name for one in plain for name in one} == person
    assert {name for one in asked for name in one} == person | {"current_organization_ids"}
    assert set(alone) == person | {"organization_ids", "opportunity_ids", "list_entries"}
    assert {name for one in companies for name in one} == {"id", "name", "domain", "domains", "global"}
    assert 200_007 in company["person_ids"] and limits == [404]


@pytest.mark.parametrize("custom_fields", [True, False])
async def test_the_adapters_requests_fit_affinitys_openapi_document(custom_fields: bool, sandbox: Sandbox) -> None:
    """Parameters of version 2 are those of each endpoint; the version is stated with every request."""
    api = described("affinity-v2")
    reader = source(sandbox, custom_fields=custom_fields, page_size=10)
    for type_ in ("persons", "organizations", "opportunities", "lists", "list_entries", "notes", "activities"):
        await reader.attributes(type_)
        await everything(reader, type_)
    await reader.close()
    asked = [one for one in sandbox.requests if one.path.startswith("/affinity/v2/")]
    for one in asked:
        if not one.path.startswith(("/affinity/v2/calls", "/affinity/v2/chat-messages")):
            api.request(one.method, one.path.removeprefix("/affinity"))
    assert {one.headers["x-affinity-api-version"] for one in asked} == {API_VERSION}
    assert any("fieldTypes=list" in one.path for one in asked) is custom_fields
    assert not any("fieldTypes=list" in one.path for one in asked if "/lists/" not in one.path)


async def test_relations_are_read_with_one_parameter_or_with_one_call_each(sandbox: Sandbox) -> None:
    """Person 200007 has left 100003 and works for 100002."""
    current = source(sandbox, custom_fields=False)
    complete = source(sandbox, custom_fields=False, relations="all")
    person = next(one for one in await records(current, "persons") if one["id"] == 200_007)
    exact = next(one for one in await records(complete, "persons") if one["id"] == 200_007)
    company = next(one for one in await records(complete, "organizations") if one["id"] == 100_002)
    names = [{one.name for one in await reader.attributes("persons") or ()} for reader in (current, complete)]
    calls = [(await reader.page("persons", None)).calls for reader in (current, complete)]
    assert isinstance(current, SupportsCallEstimate) and isinstance(complete, SupportsCallEstimate)
    estimates = [reader.calls_to_read("persons", 30) for reader in (current, complete)]
    await current.close()
    await complete.close()

    assert person["current_organization_ids"] == [100_002] and "organization_ids" not in person
    assert exact["organization_ids"] == [100_003, 100_002] and exact["current_organization_ids"] == [100_002]
    assert 200_007 in company["person_ids"]
    assert ["organization_ids" in one for one in names] == [False, True]
    assert calls == estimates == [1, 31]


async def test_relations_of_version_1_and_custom_fields_of_version_2_are_in_one_record(sandbox: Sandbox) -> None:
    """Attributes say what the records have; hidden and truncated values are reported, not read as empty."""
    reader = source(sandbox)
    page = await reader.page("persons", None)
    known = {one.name: one for one in await reader.attributes("persons") or ()}
    entries = await records(reader, "list_entries")
    columns = {one.name: one.type for one in await reader.attributes("list_entries/480000") or ()}
    await reader.close()

    for one in page.records:
        assert one.fields["field-1"] == f"Value {one.id}" and len(one.fields["current_organization_ids"]) == 1
        assert "field-2" not in one.fields and set(one.fields) <= {*known, "id"}
    assert page.records[1].fields["field-3"] == ["Tag 1", "Tag 2"] and known["field-3"].many
    assert len(page.notes) == 2 and page.calls == 2
    assert "field-2 (Salary) is hidden" in page.notes[0] and "field-3 (Tags) has 100 values or more" in page.notes[1]
    assert {name for one in entries for name in one} == {*columns, "id", "@id"} - {"field-2"}
    deal = next(one for one in entries if one["list_id"] == 480_000)
    assert (deal["field-10"], deal["field-11"], deal["entity"]["name"]) == ("In Progress", 1000.0, "Deal 1")
    assert (columns["field-10"], columns["field-11"], columns["entity"]) == ("select", "number", "json")


async def test_notes_have_their_text_and_replies_their_subjects(sandbox: Sandbox) -> None:
    """HTML becomes text; a reply has the subjects of the note that it answers."""
    reader = source(sandbox, page_size=10)
    notes = {one["id"]: one for one in await records(reader, "notes")}
    await reader.close()

    assert notes[600_010]["content_text"] == "Note 10: called, and was told to call again."
    assert notes[600_010]["person_ids"] == notes[600_011]["person_ids"] == [200_010]


async def test_a_list_without_the_relation_that_was_asked_for_is_an_error(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Never silence: were the parameter ignored, no link would be migrated."""
    monkeypatch.setattr(affinity_data, "_ASKED_FOR", {"no_longer": "current_organization_ids"})
    reader = source(sandbox)
    with pytest.raises(ConnectorError, match=r'current_organization_ids.*Set relations = "all"'):
        await reader.page("persons", None)
    await reader.close()


async def test_activities_are_read_kind_by_kind_with_what_all_of_them_have(sandbox: Sandbox) -> None:
    """Meetings, calls, emails and chat messages of version 2, reminders of version 1."""
    reader = source(sandbox, page_size=2)
    found = await records(reader, "activities")
    meetings = await records(reader, "activities/meetings")
    unknown = None
    try:
        await reader.page("activities/parties", None)
    except ConnectorError as error:
        unknown = error
    await reader.close()

    assert [one["activity"] for one in found[::3]] == ["meetings", "calls", "emails", "chat-messages", "reminders"]
    assert len({one["@id"] for one in found}) == 15
    assert [one["@id"] for one in meetings] == ["meetings/700001", "meetings/700006", "meetings/700011"]
    assert all(one["at"] and one["person_ids"] and one["emails"] for one in found)
    assert (found[0]["title"], found[0]["person_ids"]) == ("Meeting 1", [200_001])
    assert unknown is not None and "meetings, calls, emails" in unknown.reason
