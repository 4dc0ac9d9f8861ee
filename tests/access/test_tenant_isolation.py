"""Two tenants: a stranger asks every route for everything that another tenant has (S3).

Routes come from the router itself, actions from the modules that answer them: one that is added without a
probe fails here. The owner's own calls prove that the probes would find what is there.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import orjson
import pytest
from fastapi import FastAPI
from starlette.routing import Route

from tidings.access.permissions import OPEN
from tidings.api.authorization import RouteEntry, list_routes

from ..acceptance.harness import KEY, AppHarness, house
from .holdings import CANARY, NAME, NDJSON, Ids, Owner, rows_of, settings

STRANGER = "acme"
MESSAGE = {"channel": "out", "to": "x", "template": NAME, "in": "1h"}
CSV = {"content": b"address\nada\n", "headers": {"content-type": "text/csv"}}
FORM = {"at": "in 1 h", "name": NAME, "text": "x", "channel": "out", "to": "x", "template": NAME, "by": "Eve",
        "address": f"{NAME}-s", "sender": NAME, "source": "crew", "squad": "1", "contacts": f"{NAME}-c",
        "list": NAME, "url": "https://example.org/x", "role": "viewer", "reason": "x",
        "rows": '{"type": "people", "id": "2", "fields": {"name": "x"}}'}  # fmt: skip
REMOVES = frozenset({"remove", "revoke", "delete"})
NO_IDS = frozenset({"action", "day"})  # parts of paths that name nothing of a tenant's


def ndjson(body: object) -> dict[str, Any]:
    """A line of an upload."""
    return {"content": orjson.dumps(body), "headers": NDJSON}


# What a stranger sends where the path alone says nothing, or a body is needed to get as far as the thing.
BODIES: dict[str, dict[str, Any]] = {
    "POST /v1/messages": {"json": MESSAGE},
    "POST /v1/messages:bulk": ndjson(MESSAGE),
    "POST /v1/messages/{id}/reschedule": {"json": {"in": "1h"}},
    "POST /v1/broadcasts": {"json": {"name": "x", "channel": "out", "text": "x", "list": NAME}},
    "POST /v1/broadcasts/{id}/recipients": CSV,
    "PATCH /v1/broadcasts/{id}": {"json": {"per_second": 5}},
    "POST /v1/dead/retry": {"json": {}},
    "POST /v1/dead/discard": {"json": {}},
    "POST /v1/channels/{name}/secret": {"json": {"to": "https://example.com/x"}},
    "POST /v1/subscriptions": {"json": {"url": "https://example.org/x", "events": ["*"]}},
    "PATCH /v1/subscriptions/{id}": {"json": {"active": False}},
    "POST /v1/templates": {"json": {"name": NAME, "text": "x"}},
    "POST /v1/templates:preview": {"json": {"text": "x"}},
    "POST /v1/templates/{name}/versions": {"json": {"text": "x"}},
    "POST /v1/schedules": {"json": {"name": "x", "rule": {"daily": "09:00"}, "message": {"channel": "out",
                                    "to": "x", "template": NAME}}},
    "POST /v1/schedules:preview": {"json": {"rule": {"daily": "09:00"}}},
    "POST /v1/schedules:bulk": ndjson({"name": "x", "rule": {"daily": "09:00"}, "message": {"channel": "out",
                                       "to": "x", "template": NAME}}),
    **{f"POST /v1/schedules:{verb}": {"json": {"all": True}} for verb in ("pause", "resume", "end", "remove")},
    "PATCH /v1/schedules/{id}": {"json": {"name": "x"}},
    "POST /v1/contacts": {"json": {"name": "x", "addresses": {"out": f"{NAME}-c"}}},
    "PUT /v1/contacts": {"json": {"name": "y", "addresses": {"out": f"{NAME}-c"}}},
    "PATCH /v1/contacts/{id}": {"json": {"name": "x"}},
    "POST /v1/contacts:import": ndjson({"name": "z", "addresses": {"out": f"{NAME}-c"}}),
    "POST /v1/lists": {"json": {"name": NAME}},
    "PATCH /v1/lists/{list}": {"json": {"name": NAME}},
    "POST /v1/lists/{list}/members": {"json": {"contacts": ["{contact}"]}},
    "POST /v1/lists/{list}/members/remove": {"json": {"contacts": ["{contact}"]}},
    "POST /v1/suppressions": {"json": {"address": f"{NAME}-s"}},
    "DELETE /v1/suppressions": {"params": {"address": f"{NAME}-s"}},
    "POST /v1/suppressions:import": ndjson({"address": f"{NAME}-s"}),
    "POST /v1/keys": {"json": {"name": NAME, "role": "viewer"}},
    "PUT /v1/roster": {"json": {"sender": NAME, "name": "x", "squad": "1", "source": "crew"}},
    "DELETE /v1/roster": {"params": {"sender": NAME, "source": "crew"}},
    "POST /v1/roster:import": ndjson({"sender": NAME, "name": "x", "squad": "1", "source": "crew"}),
    "POST /v1/cases/{id}/claim": {"json": {"by": "Eve"}},
    "POST /v1/notices/{id}/acknowledge": {"json": {"by": "Eve"}},
    "POST /v1/cases/{id}/answer": {"json": {"text": "x"}},
    "GET /v1/broadcasts/reports": {"params": {"xref": NAME}},
    "GET /v1/inbox": {"params": {"sender": NAME}},
    "GET /v1/roster/log": {"params": {"sender": NAME}},
    "GET /v1/migrations/{id}/crosswalk/{type}": {"params": {"source_id": NAME}},
    "POST /v1/migrations/{id}/repaired": ndjson({"type": "people", "id": "2", "fields": {"name": "x"}}),
}  # fmt: skip


class Probe(NamedTuple):
    """One call of one route."""

    place: RouteEntry
    action: str | None

    def __str__(self) -> str:
        return f"{self.place.method} {self.place.path}" + (f" ({self.action})" if self.action else "")

    @property
    def names_a_thing(self) -> bool:
        """Whether its path leads to something that belongs to a tenant."""
        return bool(set(re.findall(r"\{(\w+)", self.place.path)) - NO_IDS)

    @property
    def removes(self) -> bool:
        """Whether the owner would not find its thing afterwards."""
        return self.place.method == "DELETE" or self.action in REMOVES

    @property
    def order(self) -> tuple[bool, bool, bool]:
        """Calls that create something of the stranger's own come last: it must be found by none before."""
        is_bare = self.place.method != "GET" and not self.names_a_thing
        return is_bare, self.removes != is_bare, self.place.method != "GET"

    async def send(self, client: httpx.AsyncClient, ids: Ids) -> httpx.Response:
        """Call it with the owner's ids."""
        parts = {**ids.get(self.place.area, {}), **({"action": self.action} if self.action else {})}
        path = re.sub(r"\{(\w+)(:\w+)?\}", lambda part: parts.get(part[1], "1"), self.place.path)
        given = dict(BODIES.get(f"{self.place.method} {self.place.path}", {}))
        if "json" in given:
            contact = ids["contacts"]["id"].encode()
            given["json"] = orjson.loads(orjson.dumps(given["json"]).replace(b"{contact}", contact))
        if path == "/v1/broadcasts/counts":
            given["params"] = {"ids": ids["broadcasts"]["id"]}
        elif path.endswith("/live"):
            given["params"] = {"now": "1"}
        elif not path.startswith("/v1/") and self.place.method != "GET":
            given["data"] = {**FORM, "id": ids["dead"]["id"]}
        return await client.request(self.place.method, path, **given)


def _actions(views: type) -> dict[str, None]:
    """The actions that a class of views knows: by `match`, comparison, or as the known ones of `pick_action`."""
    found: list[ast.expr | None] = []
    for node in ast.walk(ast.parse(inspect.getsource(views))):
        match node:
            case ast.MatchValue(value=value) | ast.Compare(left=ast.Name(id="action"), comparators=[value]):
                found.append(value)
            case ast.Call(func=ast.Name(id="pick_action"), args=[_, _, *known]):
                found += known
    words = (one.value for one in found if isinstance(one, ast.Constant) and isinstance(one.value, str))
    return dict.fromkeys(words)


def probes(api: FastAPI) -> Iterator[Probe]:
    """Every route that asks for a key, and every action of it, as its views match them."""
    endpoints = {
        (method, route.path): route.endpoint
        for route in api.routes
        if isinstance(route, Route)
        for method in route.methods or ()
    }
    for place in list_routes(api):
        if place.rule.action is OPEN or place.method == "HEAD":
            continue
        actions: list[str | None] = [None]
        if "{action}" in place.path:
            view: Any = inspect.unwrap(endpoints[place.method, place.path])
            actions = [*_actions(type(view.__self__))]
            assert actions, f"{place.path}: its views match no action"
        yield from (Probe(place, action) for action in actions)


def is_gone(answer: httpx.Response) -> bool:
    """Whether it is told that there is no such thing, by the status or in the words of a page."""
    words = ('{"trouble":"there is no', '{"trouble":"unknown ')
    return answer.status_code == 404 or any(word in answer.text for word in words)


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest) -> str:
    """Both databases."""
    return str(request.getfixturevalue(f"{request.param}_url"))


async def client_of(home: AppHarness, tenant: str) -> httpx.AsyncClient:
    """An admin of a tenant."""
    body = {"name": f"admin of {tenant}", "role": "admin", "tenant": tenant}
    return home.client(**{"x-api-key": (await home.http.post("/v1/keys", json=body)).json()["key"]})


async def test_a_stranger_reaches_nothing_of_another_tenant_by_any_route(database: str, tmp_path: Path) -> None:
    """S3: 403 for what is the engine's, 404 for every id, nothing in any listing, and no row changes."""
    async with house(database, api_keys=(KEY,), **settings(tmp_path / "files")) as home:
        home.http.headers["x-api-key"] = KEY
        ids = await Owner(home).fill(tmp_path / "files")
        stranger = await client_of(home, STRANGER)
        every = sorted(probes(home.api), key=lambda probe: probe.order)
        assert unprobed(every, ids) == [], "add its thing to holdings.py, or its body to BODIES"
        before, wrong = await rows_of(database, STRANGER), []
        for probe in every:
            answer = await probe.send(stranger, ids)
            wrong += [f"{probe}: {said}: {answer.status_code} {answer.text[:300]}" for said in faults(probe, answer)]
        assert "\n".join(wrong) == ""
        after = await rows_of(database, STRANGER)
        changed = {name: [*(before[name] - after[name])] for name in before if before[name] - after[name]}
        assert changed == {}, "rows of the owner changed"
        added = [row for name in after for row in after[name] - before[name] if "('tenant'," in row]
        assert added == [], "the owner got new rows"
        hidden = await unproven(home, every, ids)
        assert "\n".join(hidden) == "", "the owner does not find its own thing, so this probe proves nothing"


def unprobed(every: list[Probe], ids: Ids) -> list[str]:
    """Routes that a stranger cannot be sent to: no thing for their path, or no body."""
    missing = []
    for place in {probe.place for probe in every if not probe.place.rule.engine_wide}:
        parts = set(re.findall(r"\{(\w+)", place.path)) - {"action"} - set(ids.get(place.area, {}))
        is_bare = place.method != "GET" and "{" not in place.path and place.path.startswith("/v1/")
        if parts and place.area != "channels":
            missing.append(f"{place.method} {place.path}: no {sorted(parts)}")
        if is_bare and f"{place.method} {place.path}" not in BODIES:
            missing.append(f"{place.method} {place.path}: no body")
    return sorted(missing)


def faults(probe: Probe, answer: httpx.Response) -> Iterator[str]:
    """What is wrong with the answer that a stranger got."""
    if answer.status_code >= 500:
        yield "failed"
    if CANARY in answer.text:
        yield "a leak"
    if probe.place.rule.engine_wide:
        if answer.status_code != 403:
            yield "not forbidden"
    elif probe.names_a_thing and probe.place.area != "channels" and not is_gone(answer):
        yield "found"
    elif probe.place.method == "GET" and NAME in answer.text and not is_gone(answer):
        yield "listed"


async def unproven(home: AppHarness, every: list[Probe], ids: Ids) -> list[str]:
    """Probes whose thing the owner does not find either, and areas of which no listing shows it."""
    missing: dict[str, str] = {}
    found: set[str] = set()
    shown: set[str] = set()
    for probe in every:
        place = probe.place
        if place.rule.engine_wide or probe.removes or (place.method != "GET" and not probe.names_a_thing):
            continue
        answer = await probe.send(home.http, ids)
        what = f"{place.method} {place.path.removeprefix('/v1')} {probe.action or ''}"  # API and page are one
        if not is_gone(answer) or not probe.names_a_thing or place.area == "channels":
            found.add(what)
        else:
            missing[what] = f"{probe}: {answer.status_code} {answer.text[:200]}"
        if CANARY in answer.text:
            shown.add(place.area)
    return [said for what, said in missing.items() if what not in found] + sorted(set(ids) - shown - {"channels"})
