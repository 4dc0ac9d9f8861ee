"""Every route under every role and tenant, generated from the router: each cell is as stated (S1-S3)."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from itertools import count as numbers
from itertools import product
from typing import Any

import httpx
import orjson
import pytest
import pytest_asyncio
from fastapi import FastAPI
from starlette.types import Message, Receive, Scope, Send

from tidings.access.caller import Caller
from tidings.access.permissions import AREAS, DEFAULT_TENANT, OPEN, Role, area_of
from tidings.api.authorization import RouteEntry, list_routes
from tidings.config import ChannelSettings, InboundSettings
from tidings.inbound.sources.settings import read_source
from tidings.inbound.workflow.settings import read as read_workflow
from tidings.model.time import SECOND, iso
from tidings.wire.webhook_signatures import parse_secret, signature_headers

from ..acceptance.harness import KEY, AppHarness, house

pytestmark = pytest.mark.asyncio(loop_scope="module")

MARK = "Zq7Foreign"  # stands in everything that the tenant default has
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
CREW = read_source("crew", {"kind": "webhook", "secrets": [SECRET]}, production=True)
TENANTS = (DEFAULT_TENANT, "acme")
_numbers = numbers()
ACTIONS = {"action": "cancel"}
BODIES: dict[str, dict[str, Any]] = {
    "PATCH /v1/broadcasts/{id}": {"per_second": 5},
    "PATCH /v1/subscriptions/{id}": {"active": False},
    "POST /v1/templates/{name}/versions": {"text": "x"},
    "PATCH /v1/schedules/{id}": {"name": "x"},
    "PATCH /v1/contacts/{id}": {"name": "x"},
    "PATCH /v1/lists/{list}": {"name": "x"},
    "POST /v1/lists/{list}/members": {"contacts": ["x"]},
    "POST /v1/lists/{list}/members/remove": {"contacts": ["x"]},
    "POST /v1/messages/{id}/reschedule": {"in": "1h"},
}


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def home(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[AppHarness]:
    """One engine behind a key for all tests of this file, with a source and workflows."""
    sqlite_url = f"sqlite:///{tmp_path_factory.mktemp('routes')}/tidings.db"
    workflow = read_workflow({"enabled": True, "admins": ["out:boss"], "runner": "plain"})
    inbound = InboundSettings(sources={"crew": CREW}, workflow=workflow)
    channels = {"crew": ChannelSettings("noop"), "out": ChannelSettings("noop")}
    async with house(sqlite_url, api_keys=(KEY,), inbound=inbound, channels=channels, compat="connect") as made:
        made.http.headers["x-api-key"] = KEY
        yield made


async def make(home: AppHarness, role: str, tenant: str = DEFAULT_TENANT, **more: Any) -> httpx.AsyncClient:
    """A caller with a new key."""
    body = {"name": f"{role} of {tenant} {next(_numbers)}", "role": role, "tenant": tenant, **more}
    answer = await home.http.post("/v1/keys", json=body)
    assert answer.status_code == 201, answer.text
    return home.client(**{"x-api-key": answer.json()["key"]})


def address(place: RouteEntry, **values: str) -> str:
    """A path of this place; what is not given leads nowhere."""
    path = re.sub(r"\{(\w+)(:\w+)?\}", lambda part: values.get(part[1], "nowhere"), place.path)
    return f"{path}?now=1" if path.endswith("/live") else path


def guarded(api: FastAPI) -> list[RouteEntry]:
    """Every place that asks for a key."""
    return [place for place in list_routes(api) if place.rule.action is not OPEN and place.method != "HEAD"]


async def test_every_route_states_its_rule_and_lies_in_an_area(home: AppHarness) -> None:
    """S2, S21: a route without a rule fails the build. Areas are what scopes name."""
    silent = [f"{place.method} {place.path}" for place in list_routes(home.api) if place.declared is None]
    assert silent == [], "write @allowed(...) below the route, or the action into its Way"

    known = {"", "docs", "live", "openapi.json", "when", "sign-in", "sign-out", "health", "callbacks",
             "inbound", "calendar.ics", "upcoming", "sla", "api"}  # fmt: skip
    firsts = {
        place.path.removeprefix("/v1").strip("/").partition("/")[0].partition(":")[0] for place in list_routes(home.api)
    }
    assert firsts - known - set(AREAS) == set()
    assert area_of("/v1/messages:bulk") == area_of("/messages/x") == "messages"


async def reached(_scope: Scope, _receive: Receive, send: Send) -> None:
    """Stands in for the routes: whoever gets here got through the gate."""
    await send({"type": "http.response.start", "status": 299, "headers": []})
    await send({"type": "http.response.body", "body": b"{}"})


async def ask(api: FastAPI, place: RouteEntry, key: str | None) -> tuple[int, dict[str, Any]]:
    """One bare request; a client would take ten times as long, and there are thousands."""
    path = address(place).partition("?")[0]
    shown = [] if key is None else [(b"x-api-key", key.encode())]
    scope = {"type": "http", "method": place.method, "path": path, "raw_path": path.encode(),
             "query_string": b"", "headers": [(b"host", b"localhost"), *shown], "client": ("10.1.2.3", 1),
             "scheme": "http", "http_version": "1.1", "server": ("localhost", 80)}  # fmt: skip
    told: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        told.append(message)

    await api(scope, receive, send)
    return told[0]["status"], orjson.loads(told[1]["body"])


async def test_each_role_does_what_the_table_says_and_no_more(
    home: AppHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S2, S3: route x role x tenant. Allowed cells get through, all others are refused unread."""
    cells = [(role, tenant, await make(home, role, tenant)) for role in Role for tenant in TENANTS]
    wrong = []
    with monkeypatch.context() as patched:
        patched.setattr(home.api.access, "_respond", lambda _match, *rest: reached(*rest))
        for (role, tenant, one), place in product(cells, guarded(home.api)):
            status, body = await ask(home.api, place, one.headers["x-api-key"])
            expected = 299 if Caller("x", role, tenant).passes(place.rule, place.area) else 403
            if status != expected or (status == 403 and body["error"]["code"] != "forbidden"):
                wrong.append(f"{role} of {tenant}, {place.method} {place.path}: {status}, not {expected}")

    assert wrong == []


async def test_what_belongs_to_the_engine_answers_its_admins(home: AppHarness) -> None:
    """Nothing fails inside; the other routes are asked below, by a stranger."""
    whole = [place for place in guarded(home.api) if place.rule.engine_wide and place.method == "GET"]
    answers = [(place.path, (await home.http.get(address(place))).status_code) for place in whole]

    assert [one for one in answers if one[1] in (401, 403, 405, 429) or one[1] >= 500] == []


async def test_a_scope_narrows_a_role(home: AppHarness) -> None:
    """A sender of messages cannot look at contacts; everything outside the area is refused."""
    one = await make(home, "admin", scopes=["messages"])

    assert (await one.get("/v1/messages")).status_code == 200
    for path in ("/v1/contacts", "/v1/keys", "/contacts", "/metrics", "/"):
        assert (await one.get(path)).status_code == 403


async def test_nobody_gets_in_without_a_key(home: AppHarness) -> None:
    """S1: none, an unknown and a wrong one get the same 401 on every route."""
    made = (await home.http.post("/v1/keys", json={"name": "a", "role": "admin"})).json()["key"]
    wrong, told = made[:-1] + ("a" if made[-1] != "a" else "b"), set()
    for place in guarded(home.api):
        home.clock.advance(13)  # under ten wrong keys a minute: none is refused unseen
        for key in (None, f"tdk_00000000_{'x' * 43}", wrong):
            status, body = await ask(home.api, place, key)
            assert status == 401, f"{place.method} {place.path}"
            told.add((body["error"]["code"], body["error"]["message"], body["error"]["remedy"]))

    assert len(told) == 1


async def fill(home: AppHarness) -> dict[str, dict[str, str]]:
    """One of everything for the tenant default; gives the parts of paths by area."""
    http = home.http

    async def post(path: str, body: dict[str, Any]) -> dict[str, Any]:
        answer = await http.post(path, json=body)
        assert answer.status_code < 300, answer.text
        found: dict[str, Any] = answer.json()
        return found

    message = {"channel": "out", "to": f"{MARK}-to", "text": MARK, "in": "1h"}
    sent = await post("/v1/messages", message)
    dead = await post("/v1/messages", {**message, "in": "1s", "text": f"dead {MARK}"})
    plan = {"name": MARK, "rule": {"daily": "09:00"}, "message": {"channel": "out", "to": MARK, "text": MARK}}
    schedule = await post("/v1/schedules", plan)
    broadcast = await post("/v1/broadcasts", {"name": MARK, "channel": "out", "text": MARK, "xref": MARK,
                                              "addresses": [f"{MARK}-1"], "trigger": "MANUAL"})  # fmt: skip
    await post("/v1/templates", {"name": MARK, "text": MARK})
    contact = await post("/v1/contacts", {"name": MARK, "addresses": {"out": f"{MARK}-c"}})
    await post("/v1/lists", {"name": MARK})
    await post("/v1/suppressions", {"address": f"{MARK}-s"})
    hook = await post("/v1/subscriptions", {"url": f"https://example.com/{MARK}", "events": ["*"]})
    key = await post("/v1/keys", {"name": MARK, "role": "viewer"})
    await http.put("/v1/roster", json={"sender": MARK, "name": MARK, "squad": "42"})
    said = {"id": "1", "conversation": MARK, "sender": MARK, "name": MARK, "text": f"we can cover sunday {MARK}"}
    body = orjson.dumps({**said, "at": iso(home.clock.now())})
    signed = signature_headers([parse_secret(SECRET)], "m1", home.clock.now() // SECOND, body)
    assert (await http.post("/inbound/crew", content=body, headers=signed)).status_code == 200
    heard = (await http.get("/v1/inbox")).json()["items"][0]
    return {
        "messages": {"id": sent["id"]},
        "dead": {"id": dead["id"]},
        "schedules": {"id": schedule["id"]},
        "broadcasts": {"id": broadcast["id"]},
        "templates": {"name": MARK},
        "contacts": {"id": contact["id"]},
        "lists": {"list": MARK, "id": MARK},
        "subscriptions": {"id": hook["id"]},
        "keys": {"id": key["id"]},
        "inbox": {"id": heard["id"]},
        "conversations": {"name": f"crew/{MARK}"},
    }


def said(place: RouteEntry) -> dict[str, Any]:
    """Something that this place would understand."""
    if place.path.endswith("/recipients") and place.method == "POST":
        return {"content": b"address\nada\n", "headers": {"content-type": "text/csv"}}
    if place.path.startswith("/v1/"):
        return {} if place.method == "GET" else {"json": BODIES.get(f"{place.method} {place.path}", {})}
    return {} if place.method == "GET" else {"data": {"at": "in 1 h", "name": "x", "text": "x"}}


async def test_what_is_made_belongs_to_the_callers_tenant(home: AppHarness) -> None:
    """S3-S5: messages, bulk, imports and repeated keys are the tenant's own; no body names another."""
    one, stranger = await make(home, "admin", "one"), await make(home, "admin", "two")
    body, twice = {"channel": "out", "to": "ada", "text": "hi", "in": "1h"}, {"idempotency-key": "k1"}
    ours = await one.post("/v1/messages", json=body, headers=twice)
    theirs = await stranger.post("/v1/messages", json=body, headers=twice)
    assert ours.json()["id"] != theirs.json()["id"] and "idempotency-replayed" not in theirs.headers
    for client in (one, stranger):
        lines = await client.post("/v1/messages:bulk", content=orjson.dumps(body), headers=twice)
        assert orjson.loads(lines.content.splitlines()[0])["id"]
    bob = b'{"name": "Bob", "addresses": {"out": "bob"}}'
    answer = await stranger.post("/v1/contacts:import", content=bob,
                        headers={"content-type": "application/x-ndjson"})  # fmt: skip
    assert b'"created":1' in answer.content, answer.text
    await stranger.post("/v1/suppressions:import", content=b'{"address": "eve"}\n',
                        headers={"content-type": "application/x-ndjson"})  # fmt: skip

    def count(answer: httpx.Response) -> int:
        return len(answer.json()["items"])

    for path, own, foreign in (("/v1/messages", 2, 2), ("/v1/contacts", 0, 1), ("/v1/suppressions", 0, 1)):
        assert (count(await one.get(path)), count(await stranger.get(path))) == (own, foreign), path
    for field in ("tenant", "state", "attempts"):
        assert (await stranger.post("/v1/messages", json={**body, field: "default"})).status_code == 422
    denied = await stranger.post("/v1/keys", json={"name": "x", "role": "admin", "tenant": "default"})
    assert (denied.status_code, denied.json()["error"]["field"]) == (422, "tenant")
    assert (await stranger.get("/v1/audit", params={"tenant": "default"})).status_code == 404


async def test_every_route_refuses_a_field_that_it_does_not_know(home: AppHarness) -> None:
    """S4: in a body and in a query, wherever the description lists fields; a hidden one changes nothing."""
    paths = (await home.http.get("/openapi.json")).json()["paths"]
    wrong, asked = [], 0
    for path, method, operation in ((path, *one) for path, ways in paths.items() for one in ways.items()):
        there = re.sub(r"\{\w+\}", "nowhere", path)
        calls: list[dict[str, Any]] = []
        if "application/json" in operation.get("requestBody", {}).get("content", {}):
            calls.append({"json": {"zq7": "default"}})
        if method == "get" and path.startswith("/v1/"):
            calls.append({"params": {"zq7": "default"}})
        for call in calls:
            answer, asked = await home.http.request(method, there, **call), asked + 1
            is_missing = answer.status_code == 404 and "{" in path  # the thing may be looked for first
            if not is_missing and (answer.status_code != 422 or "zq7" not in answer.text):
                wrong.append(f"{method} {path}: {answer.status_code} {answer.text[:200]}")

    assert asked > 60 and "\n".join(wrong) == ""


async def test_the_description_says_who_may_call_and_what_comes_back(home: AppHarness) -> None:
    """S21: a key, or none where the rule says so; each status that the gate itself may answer with."""
    document = (await home.http.get("/openapi.json")).json()
    schemes = set(document["components"]["securitySchemes"])
    assert [set(way) for way in document["security"]] == [{name} for name in sorted(schemes)]
    rules = {(place.method, place.path.replace(":path", "")): place.rule for place in list_routes(home.api)}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            is_open = rules[method.upper(), path].action is OPEN
            assert (operation.get("security") == []) is is_open, f"{method} {path}"
            asked = () if is_open else ("400", "401", "403", "413", "422", "429", "503")
            assert set(asked) <= set(operation["responses"]), f"{method} {path}"


async def test_an_unsupported_method_lists_the_supported_ones(home: AppHarness) -> None:
    """An open place says so to anybody; a path of its own is not taken for an id."""
    nobody = home.client()
    told = [
        (await nobody.post("/health"), "GET"),
        (await nobody.request("TRACE", "/inbound/crew"), "POST"),
        (await home.http.put("/v1/broadcasts/counts"), "GET"),
        (await home.http.put("/v1/broadcasts/x"), "GET, PATCH"),
    ]
    assert [(answer.status_code, answer.headers.get("allow")) for answer, _ in told] == [
        (405, allowed) for _, allowed in told
    ]
    assert (await nobody.put("/v1/broadcasts/x")).status_code == 401


async def test_null_stands_for_a_field_that_was_left_out_and_is_described_so(home: AppHarness) -> None:
    """One table serves both: what is described is taken, and nothing else."""
    document = (await home.http.get("/openapi.json")).json()
    entry = document["paths"]["/v1/roster"]["put"]["requestBody"]["content"]["application/json"]["schema"]
    assert entry["properties"]["source"]["type"] == ["string", "null"]
    assert entry["properties"]["squad"]["type"] == ["string", "integer"]
    body = {"sender": 1001, "name": "Bo", "squad": 42, "source": None}
    made = await home.http.put("/v1/roster", json=body)
    assert (made.status_code, made.json()["sender"], made.json()["squad"]) == (201, "1001", "42")
    for wrong in ({"squad": True}, {"name": 7}, {"squad": 4.2}, {"sender": None}):
        assert (await home.http.put("/v1/roster", json=body | wrong)).status_code == 422, wrong


async def test_the_audit_log_names_each_page_action_by_its_view(home: AppHarness) -> None:
    """An entry says what was done: `broadcasts.create`, not the name of a wrapper."""
    names = {(place.method, place.path): place.name for place in list_routes(home.api)}
    assert names["POST", "/broadcasts"] == names["POST", "/templates"] == "create"
    assert "respond" not in names.values()
