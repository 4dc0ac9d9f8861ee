"""The doors as people and programs meet them: sign-in, buttons, other sites, rates, and the audit trail."""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
import typer.main

from tidings.access.caller import Caller, acting_as
from tidings.access.permissions import OPEN, READ
from tidings.access.tenant_scope import scope_to_tenant
from tidings.api.authorization import list_routes
from tidings.cli.command_audit import READ_ONLY_COMMANDS
from tidings.cli.program import full_program

from ..acceptance.harness import KEY, AppHarness, house

HERE = {"sec-fetch-site": "same-origin", "accept": "text/html"}


@pytest.fixture
async def home(sqlite_url: str) -> AsyncIterator[AppHarness]:
    """An engine behind a key."""
    async with house(sqlite_url, api_keys=(KEY,)) as made:
        made.http.headers["x-api-key"] = KEY
        yield made


async def make(home: AppHarness, role: str, **more: Any) -> str:
    """A new key."""
    answer = await home.http.post("/v1/keys", json={"name": role, "role": role, **more})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["key"])


async def trail(home: AppHarness, **which: Any) -> list[tuple[Any, ...]]:
    """What the audit trail says, oldest first."""
    await home.app.access.audit.close()
    found = (await home.http.get("/v1/audit", params={"tenant": "*", "limit": 1000, **which})).json()["items"]
    return [(one["actor"], one["action"], one["target"], one["status"]) for one in reversed(found)]


async def test_a_person_signs_in_with_a_key_and_sees_what_it_may(home: AppHarness) -> None:
    """S1, S2: a viewer is shown no button, an operator some, an admin all; the gate says the same."""
    id_ = await home.accept(**{"in": "1h"})
    forms = {}
    for role in ("viewer", "operator", "admin"):
        key = await make(home, role)
        async with home.client(**HERE) as browser:
            signed = await browser.post("/sign-in", data={"key": key, "next": "/messages"})
            assert signed.headers["location"] == "/messages"
            assert "lax" in signed.headers["set-cookie"].lower() and key not in signed.headers["set-cookie"]
            pages = [await browser.get(path) for path in (f"/messages/{id_}", "/contacts/new", "/channels", "/")]
            assert [page.status_code for page in pages] == [200] * 4
            forms[role] = [
                set(re.findall(r'method="post" action="([^"]+)"', page.text)) - {"/sign-out"} for page in pages
            ]
            cancelled = await browser.post(f"/messages/{id_}/cancel")
            assert cancelled.status_code == (403 if role == "viewer" else 303)
            if role == "viewer":
                assert "<h1>A key with the role viewer may not do this.</h1>" in cancelled.text
                assert "does not have permission" in pages[1].text
            links = [path for path in ("/keys", "/audit", "/settings") if f'href="{path}"' in pages[2].text]
            assert links == (["/keys", "/audit", "/settings"] if role == "admin" else [])
            await browser.post("/sign-out")
            assert (await browser.get("/messages")).status_code == 303

    assert forms["viewer"] == [set()] * 4
    assert f"/messages/{id_}/cancel" in forms["operator"][0] and "/contacts" in forms["operator"][1]


async def test_another_site_cannot_use_a_session(home: AppHarness) -> None:
    """S1: a cookie is good only together with a sign that the page is ours; a key needs none."""
    async with home.client() as browser:
        await browser.post("/sign-in", data={"key": KEY})
        for headers, status in (
            ({}, 403),
            ({"sec-fetch-site": "cross-site"}, 403),
            ({"sec-fetch-site": "same-site"}, 403),
            ({"origin": "https://evil.example"}, 403),
            ({"origin": "null"}, 403),
            ({"origin": "http://localhost"}, 303),
            ({"sec-fetch-site": "same-origin"}, 303),
        ):
            answer = await browser.post("/channels/out/pause", headers=headers)
            assert answer.status_code == status, headers
        assert (await browser.get("/messages")).status_code == 200
    assert (await home.http.post("/v1/channels/out/resume")).status_code == 200


async def test_repeated_wrong_keys_are_rate_limited(home: AppHarness) -> None:
    """S16: ten wrong keys a minute from one address; afterwards even the right one must wait."""
    for _ in range(10):
        assert (await home.client().post("/sign-in", data={"key": "wrong"})).status_code == 303
    answer = await home.client().post("/sign-in", data={"key": KEY})
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "60")
    home.clock.advance(61)
    assert (await home.client().post("/sign-in", data={"key": KEY})).headers["location"] == "/"


async def test_a_key_over_its_rate_limit_gets_retry_after(home: AppHarness) -> None:
    """S16: 429 with Retry-After and a code of its own; other keys go on."""
    one = home.client(**{"x-api-key": await make(home, "viewer", rate=2)})
    answers = [await one.get("/v1/messages") for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200, 200, 429, 429]
    assert answers[2].headers["retry-after"] == "1"
    assert answers[2].json()["error"]["code"] == "rate_limited"
    assert (await home.http.get("/v1/messages")).status_code == 200
    home.clock.advance(1)
    assert (await one.get("/v1/messages")).status_code == 200


async def test_every_change_leaves_exactly_one_line(home: AppHarness) -> None:
    """S22: also when it is refused or fails, from the API and from a page; looking leaves none."""
    viewer = home.client(**{"x-api-key": await make(home, "viewer", tenant="acme")})
    id_ = await home.accept(**{"in": "1h"})
    admin = (await home.app.access.authenticator.by_key(KEY)) or Caller("?")
    key_id = (await home.http.get("/v1/keys", params={"tenant": "acme"})).json()["items"][0]["id"]
    await home.http.post(f"/v1/messages/{id_}/cancel")
    await home.http.post(f"/v1/messages/{id_}/cancel")
    await home.http.post("/v1/messages", json={"channel": "none"})
    await home.http.post("/v1/templates:preview", json={"text": "x"})
    await viewer.post(f"/v1/messages/{id_}/cancel")
    await viewer.get("/v1/messages")
    await home.http.post("/v1/keys", json={"name": "", "role": "admin"})
    await home.http.post(f"/v1/keys/{key_id}/rotate")
    await home.http.post("/channels/out/pause", headers=HERE)

    assert sorted(await trail(home), key=str) == sorted(
        [
            (admin.who, "keys.create", key_id, None),
            (admin.who, "messages.accept", id_, 201),
            (admin.who, "messages.cancel", id_, 200),
            (admin.who, "messages.cancel", id_, 409),
            (admin.who, "messages.accept", None, 422),
            ("viewer", "messages.cancel", id_, 403),
            (admin.who, "keys.create", None, 422),
            (admin.who, "keys.rotate", key_id, None),
            (admin.who, "channels.pause", "out", 303),
        ],
        key=str,
    )
    assert [one[0] for one in await trail(home, actor="viewer")] == ["viewer"]
    page = await home.http.get("/audit", headers=HERE)
    assert "channels.pause" in page.text and "messages.cancel" in page.text


async def test_every_changing_route_is_noted(home: AppHarness) -> None:
    """S22: generated from the router; each answers something, and each leaves its line."""
    changing = [
        place for place in list_routes(home.api)
        if place.method not in ("GET", "HEAD") and place.rule.action not in (OPEN, READ)
    ]  # fmt: skip
    for place in changing:
        await home.http.request(place.method, re.sub(r"\{[^}]+\}", "nowhere", place.path), headers=HERE)

    told = await trail(home)
    assert len(told) == len(changing) > 100


async def test_keys_are_made_on_a_page_and_shown_once(home: AppHarness) -> None:
    """The secret stands on the page that answers, and on no other."""
    made = await home.http.post("/keys", data={"name": "billing", "role": "sender", "rate": "5"}, headers=HERE)
    key = re.search(r"tdk_[0-9a-z]{8}_[\w-]{43}", made.text)
    assert key is not None
    assert (await home.client(**{"x-api-key": key[0]}).get("/v1/messages")).status_code == 200
    listed = (await home.http.get("/keys", headers=HERE)).text
    assert "billing" in listed and key[0][:12] in listed and key[0] not in listed
    id_ = re.search(r'action="/keys/([^/]+)/revoke"', listed)
    assert id_ is not None
    wrong = await home.http.post("/keys", data={"name": "b", "role": "sender", "rate": "x"}, headers=HERE)
    assert wrong.status_code == 422 and "enter a whole number" in wrong.text.lower()
    assert (await home.http.post(f"/keys/{id_[1]}/revoke", headers=HERE)).headers["location"] == "/keys"
    assert (await home.client(**{"x-api-key": key[0]}).get("/v1/messages")).status_code == 401


async def test_no_key_reaches_a_log(home: AppHarness, caplog: pytest.LogCaptureFixture) -> None:
    """S9: a canary as key, cookie, query and body, through refusals and failures."""
    caplog.set_level(logging.DEBUG)
    key = await make(home, "viewer")
    one = home.client(**{"x-api-key": key}, cookie=f"tidings_session={key}")
    for path in ("/v1/messages", f"/v1/messages?token={key}", f"/v1/messages/{key}", f"/{key}", "/v1/keys"):
        answer = await one.get(path)
        await one.post(path, json={"key": key})
        assert key not in answer.text or path.endswith(key)
    secret, logged = key[13:], [record for record in caplog.records if record.name != "httpx"]  # the client's
    assert not [record for record in logged if secret in record.getMessage()]
    assert not [line for line in await trail(home) if secret in str(line)]


async def test_parts_of_the_engine_that_know_no_tenant_are_known(home: AppHarness) -> None:
    """S3: every method that a face can reach takes the tenant, or belongs to the whole engine."""
    engine = {"alerts", "callbacks", "channels", "clock", "figures", "lease", "overview", "rollout", "store"}
    free = set()
    for name in type(home.app.outbound).__slots__:
        part = getattr(home.app.outbound, name)
        for method in dir(part) if name not in engine else ():
            if not method.startswith("_") and callable(getattr(part, method)):
                code = getattr(getattr(part, method), "__code__", None)
                if code is not None and "tenant" not in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
                    free.add(f"{name}.{method}")

    # drafts and rows carry their tenant; the rest is asked by the engine itself, or of nobody's data
    assert free == {
        "messages.accept", "messages.knows", "messages.prepare", "schedules.foresee",
        "broadcast_creator.load_from_source", "broadcast_creator.prepare",
    }  # fmt: skip
    with acting_as(Caller("x", tenant="acme")):
        assert (await scope_to_tenant(home.app).outbound.messages.page()).items == []


async def test_a_method_that_was_looked_up_earlier_acts_for_the_caller_of_the_moment(home: AppHarness) -> None:
    """S3: a table of methods that is made when the program starts belongs to no tenant."""
    contacts = scope_to_tenant(home.app).outbound.contacts
    create, page = contacts.create, contacts.page
    with acting_as(Caller("x", tenant="acme")):
        await create({"name": "Ada", "addresses": {"out": "ada"}})
        assert [one["name"] for one in (await page()).items] == ["Ada"]

    assert (await page()).items == []


def test_every_command_that_only_looks_is_named() -> None:
    """S22: whatever is not named as looking is written down, so a new command cannot be forgotten."""
    known = {f"{group}.{word}" for group, one in typer.main.get_command(full_program()).commands.items()  # type: ignore[attr-defined]
             for word in getattr(one, "commands", {})}  # fmt: skip
    inside = {"conversations.conversation", "conversations.conversations", "conversations.replay", "log.log", "top.top"}
    named = {
        one
        for one in READ_ONLY_COMMANDS - inside
        if not one.startswith(("broadcast_recipients", "migrate", "schedules.log"))
    }

    assert named - known == set()
