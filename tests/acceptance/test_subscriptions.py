"""Subscriptions through every face: the API, the command line, and a real process with a real receiver."""

from __future__ import annotations

import json
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import Webhook

from .harness import AppHarness, house, in_one_house
from .program import post, run, serving, until

BODY = {"url": "https://example.com/hooks", "events": ["message.*", "broadcast.completed"]}


@pytest.fixture(params=["sqlite", "postgres"])
async def home(request: pytest.FixtureRequest) -> AsyncIterator[AppHarness]:
    """An engine with its API."""
    async with house(request.getfixturevalue(f"{request.param}_url")) as made:
        yield made


async def test_a_subscription_lives_through_the_api(home: AppHarness) -> None:
    """Made with its secret, listed without, changed, rotated, tested, removed."""
    made = await home.http.post("/v1/subscriptions", json=BODY)
    assert made.status_code == 201
    one = made.json()
    assert made.headers["location"] == f"/v1/subscriptions/{one['id']}"
    assert one["secret"].startswith("whsec_")
    assert (one["url"], one["events"], one["active"]) == (BODY["url"], BODY["events"], True)

    listed = (await home.http.get("/v1/subscriptions")).json()
    assert [row["id"] for row in listed["items"]] == [one["id"]]
    shown = (await home.http.get(f"/v1/subscriptions/{one['id']}")).json()
    assert "secret" not in shown and one["secret"] not in str(listed)

    changed = await home.http.patch(f"/v1/subscriptions/{one['id']}", json={"events": ["*"], "active": False})
    assert (changed.json()["events"], changed.json()["active"]) == (["*"], False)
    refused = await home.http.post(f"/v1/subscriptions/{one['id']}/test")
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "conflict")
    await home.http.patch(f"/v1/subscriptions/{one['id']}", json={"active": True})
    assert (await home.http.post(f"/v1/subscriptions/{one['id']}/test")).status_code == 202

    rotated = (await home.http.post(f"/v1/subscriptions/{one['id']}/rotate")).json()
    assert rotated["secret"].startswith("whsec_") and rotated["secret"] != one["secret"]
    assert (await home.http.delete(f"/v1/subscriptions/{one['id']}")).json()["removed"] is True
    for method, path in (("GET", ""), ("PATCH", ""), ("DELETE", ""), ("POST", "/rotate"), ("POST", "/test")):
        body = {"active": True} if method == "PATCH" else None
        gone = await home.http.request(method, f"/v1/subscriptions/{one['id']}{path}", json=body)
        assert (gone.status_code, gone.json()["error"]["code"]) == (404, "not_found"), path


async def test_the_same_call_with_the_same_key_is_answered_as_before(home: AppHarness) -> None:
    """B4: on every creating POST."""
    headers = {"Idempotency-Key": "k1"}
    first = await home.http.post("/v1/subscriptions", json=BODY, headers=headers)
    again = await home.http.post("/v1/subscriptions", json=BODY, headers=headers)
    other = await home.http.post("/v1/subscriptions", json=BODY | {"events": ["*"]}, headers=headers)

    assert first.json() == again.json()
    assert ("idempotency-replayed" in first.headers, again.headers["idempotency-replayed"]) == (False, "true")
    assert other.status_code == 422


@in_one_house(
    ("body", "field"),
    [
        ({}, "url"),
        ({"url": "http://127.0.0.1/x", "events": ["*"]}, "url"),
        ({"url": 7, "events": ["*"]}, "url"),
        ({"url": "https://example.com", "events": ["massage.*"]}, "events"),
        ({"url": "https://example.com", "events": {}}, "events"),
        ({"url": "https://example.com", "event": ["*"]}, "event"),
    ],
)
async def test_bad_input_is_one_clear_sentence(home: AppHarness, body: dict[str, Any], field: str) -> None:
    """Naming the field and the remedy; nothing is written."""
    answer = await home.http.post("/v1/subscriptions", json=body)
    error = answer.json()["error"]

    assert (answer.status_code, error["field"], bool(error["remedy"])) == (422, field, True)
    assert (await home.http.get("/v1/subscriptions")).json()["items"] == []
    nothing = await home.http.patch("/v1/subscriptions/x", json={})
    assert nothing.status_code == 422


async def test_pages_of_subscriptions_follow_each_other(home: AppHarness) -> None:
    """Newest first; `next` is where the following page begins."""
    ids = []
    for _ in range(5):
        home.clock.advance(1)
        ids.append((await home.http.post("/v1/subscriptions", json=BODY)).json()["id"])
    seen: list[str] = []
    after = None
    while True:
        params = {"limit": 2} | ({"after": after} if after else {})
        page = (await home.http.get("/v1/subscriptions", params=params)).json()
        seen += [row["id"] for row in page["items"]]
        after = page["next"]
        if after is None:
            break

    assert seen == ids[::-1]


def test_the_command_line_does_the_same(tmp_path: Path) -> None:
    """Add, list, show, edit, pause, resume, rotate, test, remove."""
    words = ("subscriptions", "add", "--url", BODY["url"], "-e", "message.*", "--json")
    made = json.loads(run(*map(str, words), folder=tmp_path).stdout)
    id_ = made["id"]

    assert made["secret"].startswith("whsec_")
    assert f"{id_}\ton\tmessage.*\t{BODY['url']}\t" in run("subscriptions", "list", folder=tmp_path).stdout
    edited = run("subscriptions", "edit", id_, "-e", "*", "--json", folder=tmp_path)
    assert json.loads(edited.stdout)["events"] == ["*"]
    run("subscriptions", "pause", id_, folder=tmp_path)
    assert "state\toff" in run("subscriptions", "show", id_, folder=tmp_path).stdout
    off = run("subscriptions", "test", id_, folder=tmp_path)
    assert (off.returncode, "tidings subscriptions resume" in off.stderr) == (2, True)
    run("subscriptions", "resume", id_, folder=tmp_path)
    assert run("subscriptions", "test", id_, folder=tmp_path).returncode == 0
    rotated = run("subscriptions", "rotate", id_, folder=tmp_path).stdout
    assert "secret\twhsec_" in rotated and made["secret"] not in rotated
    assert run("subscriptions", "remove", id_, folder=tmp_path).returncode == 0
    assert run("subscriptions", "show", id_, folder=tmp_path).returncode == 2


@contextmanager
def hooks() -> Iterator[tuple[str, list[tuple[dict[str, str], bytes]]]]:
    """A receiver as a user would write it."""
    got: list[tuple[dict[str, str], bytes]] = []

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            got.append((dict(self.headers), body))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Hook)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", got
    finally:
        server.shutdown()
        server.server_close()


def test_a_running_engine_tells_a_real_receiver(tmp_path: Path) -> None:
    """Verified with the public library of Standard Webhooks; the secret is not in the log (S7)."""
    with hooks() as (url, got), serving(tmp_path, env={"TIDINGS_EVENTS_PRIVATE": "true"}) as served:
        page = served.address("dashboard")
        made = post(f"{page}/v1/subscriptions", {"url": url, "events": ["message.*"]})
        until(lambda: tell(page, got), "an event")
        headers, body = got[0]
        told = Webhook(made["secret"]).verify(body, headers)

        assert told["type"] == "message.sent"
        assert told["data"]["to"] == "ada"
        assert made["secret"] not in "\n".join([*served.told, *served.logged])


def tell(page: str, got: list[Any]) -> bool:
    """Send until the node has heard of the subscription: at most a second."""
    if not got:
        post(f"{page}/v1/messages", {"channel": "console", "to": "ada", "text": "hello"})
    return bool(got)


@pytest.mark.parametrize("database", ["sqlite_url", "postgres_url"])
async def test_events_of_schedules_and_broadcasts_name_what_they_created(
    database: str, request: pytest.FixtureRequest
) -> None:
    """A message says of which schedule or broadcast it is; a broadcast's end goes to its own webhook too."""
    with hooks() as (url, got):
        async with house(request.getfixturevalue(database), events_private=True) as home:
            await home.http.post("/v1/subscriptions", json={"url": f"{url}/all", "events": ["*"]})
            await home.act()
            schedule = {
                "rule": {"every": "1h"}, "count": 1,
                "message": {"channel": "out", "to": "ada", "text": "hello"},
            }  # fmt: skip
            made = (await home.http.post("/v1/schedules", json=schedule)).json()
            broadcast = {
                "name": "Flood", "channel": "out", "addresses": ["bob", "eve"], "text": "water", "xref": "x1",
                "trigger": "IMMEDIATE", "webhook": f"{url}/own",
            }  # fmt: skip
            begun = (await home.app.outbound.broadcast_creator.create(broadcast)).answer
            for _ in range(4):
                home.clock.advance(3601)
                await home.work()

            told = [json.loads(body) for _, body in got]
            sent = {one["data"]["to"]: one["data"] for one in told if one["type"] == "message.sent"}
            assert (sent["ada"]["schedule"], sent["ada"]["broadcast"]) == (made["id"], None)
            assert (sent["bob"]["broadcast"], sent["eve"]["xref"]) == (begun["id"], "x1")
            types = [one["type"] for one in told]
            assert types.count("broadcast.completed") == 2  # to the subscription, and to its own webhook
            assert types.count("schedule.ended") == 1
