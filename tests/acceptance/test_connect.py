"""The compatibility mode `connect`: requests as Connect's public npm client (@rumsan/connect 1.0.0) makes them.

The requests below were recorded from that client against a local listener; only ids and keys differ. Its
`formatResponse` takes the body's `data`, so every answer is `{"success": true, "data": ...}`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tidings.config import ChannelSettings
from tidings.model.message import Message
from tidings.model.outcome import Done, Outcome, Reject
from tidings.model.task import Category

from .harness import KEY, AppHarness, house

OWN = {"x-api-key": KEY}
AXIOS = {"accept": "application/json, text/plain, */*", "user-agent": "axios/1.21.1"}
IMMEDIATE = (
    '{"transport":"phone","message":{"content":"Flood warning","meta":{"subject":"Warning"}},"addresses":["ada","bob"],'
    '"maxAttempts":3,"trigger":"IMMEDIATE","webhook":"","options":{},"xref":"ward-1"}'
)
SCHEDULED = (
    '{"transport":"phone","message":{"content":"Later"},"addresses":["ada"],"maxAttempts":1,"trigger":"SCHEDULED",'
    '"options":{"scheduledTimestamp":"2030-01-15T08:00:00.000Z","attemptIntervalMinutes":"15,60,120"},"xref":"ward-1"}'
)
MANUAL = (
    '{"transport":"phone","message":{"content":"By hand"},"addresses":["ada"],"maxAttempts":1,"trigger":"MANUAL",'
    '"options":{}}'
)


@pytest.fixture(params=["sqlite", "postgres"])
async def home(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[AppHarness]:
    """An engine in compatibility mode, behind a key."""
    url = f"sqlite:///{tmp_path}/tidings.db"
    if request.param == "postgres":
        url = request.getfixturevalue("postgres_url")
    channels = {"phone": ChannelSettings("noop")}
    async with house(url, api_keys=(KEY,), channels=channels, compat="connect") as made:
        yield made


def client(home: AppHarness, key: str = KEY) -> httpx.AsyncClient:
    """The client with `apiClient.appId = KEY`."""
    return home.client(**AXIOS, **{"app-id": key})


async def post(http: httpx.AsyncClient, body: str) -> dict[str, Any]:
    answer = await http.post("/api/v1/broadcasts", content=body, headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["success"]) == (201, True), answer.text
    found: dict[str, Any] = answer.json()["data"]
    return found


async def get(http: httpx.AsyncClient, path: str) -> Any:
    answer = await http.get(f"/api/v1/{path}")
    assert (answer.status_code, answer.json()["success"]) == (200, True), answer.text
    return answer.json()["data"]


async def statuses(http: httpx.AsyncClient, cuid: str) -> dict[str, str]:
    return {row["address"]: row["status"] for row in await get(http, f"sessions/{cuid}/broadcasts?page=1")}


def scripted(message: Message) -> Outcome:
    return Reject(Category.PERMANENT, "number is blocked") if message.recipient == "bob" else Done("SM1")


async def work(home: AppHarness, seconds: float = 0) -> None:
    home.clock.advance(seconds)
    for _ in range(3):
        await home.work()


async def test_a_session_goes_through_connects_states(home: AppHarness) -> None:
    """POST /broadcasts, GET /sessions/:cuid, GET /broadcasts/:cuid, then a retry of the failed (B1)."""
    home.script("phone", scripted)
    async with client(home) as http:
        made = await post(http, IMMEDIATE)
        assert (made["triggerType"], made["totalAddresses"], made["xref"], made["transport"]) == (
            "IMMEDIATE", 2, "ward-1", "phone",
        )  # fmt: skip
        assert made["message"] == {"content": "Flood warning", "meta": {"subject": "Warning"}}
        cuid = made["cuid"]
        assert await statuses(http, cuid) == {"ada": "SCHEDULED", "bob": "SCHEDULED"}
        assert (await get(http, f"sessions/{cuid}"))["status"] == "PENDING"

        await work(home)
        await work(home, 5)
        assert await statuses(http, cuid) == {"ada": "SUCCESS", "bob": "FAIL"}
        shown = await get(http, f"sessions/{cuid}")
        assert (shown["status"], shown["addresses"], shown["endedAt"] is not None) == (
            "COMPLETED",
            ["ada", "bob"],
            True,
        )
        assert shown["stats"] == {"SCHEDULED": 0, "PENDING": 0, "SUCCESS": 1, "FAIL": 1, "TOTAL": 2}
        (failed,) = await get(http, f"sessions/{cuid}/broadcasts?status=FAIL")
        one = await get(http, f"broadcasts/{failed['cuid']}")
        assert (one["session"], one["address"], one["status"], one["isComplete"]) == (cuid, "bob", "FAIL", True)
        assert "number is blocked" in one["disposition"]["error"]
        assert one["Session"]["cuid"] == cuid

        assert await get(http, f"sessions/{cuid}/trigger?include_failed=undefined") == {"isComplete": True, "count": 0}
        home.script("phone", lambda _: Done("SM2"))
        assert await get(http, f"sessions/{cuid}/trigger?include_failed=true") == {"isComplete": False, "count": 1}
        await work(home, 2)
        assert await statuses(http, cuid) == {"ada": "SUCCESS", "bob": "SUCCESS"}
        counts = await http.post("/api/v1/sessions/broadcast-counts", json={"sessions": [cuid]})
        assert counts.json()["data"] == {"SCHEDULED": 0, "PENDING": 0, "SUCCESS": 2, "FAIL": 0, "TOTAL": 2}


async def test_scheduled_and_manual_sessions_wait(home: AppHarness) -> None:
    """A scheduled one for its time, which may have passed; a manual one for the trigger call, which is audited."""
    async with client(home) as http:
        later, by_hand = await post(http, SCHEDULED), await post(http, MANUAL)
        past = await post(http, SCHEDULED.replace("2030", "2020"))
        assert later["options"] == {"scheduledTimestamp": "2030-01-15T08:00:00.000Z", "attemptIntervalMinutes": "15"}
        assert (later["status"], by_hand["status"], past["status"]) == ("NEW", "NEW", "PENDING")
        await work(home)
        assert await statuses(http, later["cuid"]) == {"ada": "SCHEDULED"}
        assert await statuses(http, by_hand["cuid"]) == {"ada": "SCHEDULED"}
        assert await statuses(http, past["cuid"]) == {"ada": "SUCCESS"}

        assert await get(http, f"sessions/{by_hand['cuid']}/trigger?include_failed=false") == {
            "isComplete": False, "count": 1,
        }  # fmt: skip
        await work(home)
        assert await statuses(http, by_hand["cuid"]) == {"ada": "SUCCESS"}
        await home.app.access.audit.close()
        entries = (await http.get("/v1/audit", headers=OWN)).json()["items"]
        assert [entry["target"] for entry in entries if entry["action"] == "broadcasts.trigger"] == [by_hand["cuid"]]
        assert len([entry for entry in entries if entry["action"] == "broadcasts.create"]) == 3


async def test_lists_have_numbered_pages_and_filters(home: AppHarness) -> None:
    """GET /broadcasts and GET /sessions with page, perPage, xref, status and address."""
    async with client(home) as http:
        for _ in range(3):
            await post(http, IMMEDIATE)
        await post(http, MANUAL)
        answer = (await http.get("/api/v1/broadcasts?page=2&perPage=4&xref=ward-1")).json()
        assert len(answer["data"]) == 2
        assert answer["meta"] == {
            "total": 6, "lastPage": 2, "currentPage": 2, "perPage": 4, "prev": 1, "next": None,
        }  # fmt: skip
        assert {row["address"] for row in await get(http, "broadcasts?address=AD")} == {"ada"}
        assert len(await get(http, "sessions?xref=ward-1")) == 3
        assert len(await get(http, "sessions?sort=createdAt&order=desc&page=1&perPage=3")) == 3
        await work(home)
        assert await get(http, "broadcasts/status-count") == {"success": 6, "fail": 0, "pending": 1, "total": 7}


async def test_bad_requests_name_the_field_and_change_nothing(home: AppHarness) -> None:
    """With the error envelope of the native API."""
    async with client(home) as http:
        for body, field in (
            (IMMEDIATE.replace('"phone"', '"sms"'), "channel"),
            (IMMEDIATE.replace('["ada","bob"]', "[]"), "addresses"),
            (IMMEDIATE.replace("IMMEDIATE", "SOON"), "trigger"),
            (SCHEDULED.replace('"scheduledTimestamp":"2030-01-15T08:00:00.000Z",', ""), "options.scheduledTimestamp"),
            (SCHEDULED.replace("2030-01-15T08:00:00.000Z", "tomorrow"), "options.scheduledTimestamp"),
            (SCHEDULED.replace("scheduledTimestamp", "scheduledTime"), "options.scheduledTime"),
            (SCHEDULED.replace("15,60,120", "often"), "options.attemptIntervalMinutes"),
        ):
            answer = await http.post("/api/v1/broadcasts", content=body, headers={"content-type": "application/json"})
            assert (answer.status_code, answer.json()["error"]["field"]) == (422, field), answer.text
        for path, status in (("sessions/nothing", 404), ("broadcasts/nothing", 404), ("broadcasts?status=DONE", 200)):
            assert (await http.get(f"/api/v1/{path}")).status_code == status
        assert (await http.get("/api/v1/sessions?startDate=2024-01-01")).status_code == 422
        assert await get(http, "sessions") == []


async def test_the_same_authentication_tenants_and_idempotency_apply(home: AppHarness) -> None:
    """`app-id` carries an API key and nothing else does instead; a tenant sees only its own sessions."""
    async with client(home) as http, client(home, "wrong") as stranger, home.client(**AXIOS) as nobody:
        mine = await post(http, MANUAL)
        key = await http.post("/v1/keys", json={"name": "acme", "role": "sender", "tenant": "acme"}, headers=OWN)
        async with client(home, key.json()["key"]) as other, home.client(authorization=f"Bearer {KEY}") as bearer:
            assert (await other.get(f"/api/v1/sessions/{mine['cuid']}")).status_code == 404
            assert (await other.get(f"/api/v1/sessions/{mine['cuid']}/trigger")).status_code == 404
            assert await get(other, "sessions") == []
            assert (await post(other, MANUAL))["app"] == "acme"
            assert (await get(bearer, f"sessions/{mine['cuid']}"))["app"] == "default"
        for caller in (stranger, nobody):
            assert (await caller.get("/api/v1/sessions")).status_code == 401
        assert (await home.client(**{"app-id": KEY}).get("/v1/broadcasts")).status_code == 401  # only for these routes
        viewer = await http.post("/v1/keys", json={"name": "eye", "role": "viewer"}, headers=OWN)
        async with client(home, viewer.json()["key"]) as reading:
            assert (await reading.get(f"/api/v1/sessions/{mine['cuid']}/trigger")).status_code == 403
            assert (await reading.get(f"/api/v1/sessions/{mine['cuid']}")).status_code == 200
        headers = {"idempotency-key": "k1", "content-type": "application/json"}
        twice = [await http.post("/api/v1/broadcasts", content=MANUAL, headers=headers) for _ in range(2)]
        assert twice[0].json() == twice[1].json()
        assert twice[1].headers["idempotency-replayed"] == "true"


async def test_the_routes_exist_only_in_compatibility_mode(tmp_path: Path) -> None:
    """Without the setting the paths are unknown."""
    async with house(f"sqlite:///{tmp_path}/tidings.db") as home:
        assert (await home.http.get("/api/v1/sessions")).status_code == 404
