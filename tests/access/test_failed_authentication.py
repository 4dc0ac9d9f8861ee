"""Failed authentication: audited, counted, logged, and limited by key prefix and client address (S1, S16)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tidings.api import create_api
from tidings.api.proxies import ClientAddresses
from tidings.config import InboundSettings, Settings
from tidings.config.parsers import InvalidSetting, networks
from tidings.inbound.calendar import settings as calendar
from tidings.observability.events import AuthenticationFailed, AuthenticationLimited, Event
from tidings.observability.metrics import Metrics

from ..acceptance.harness import KEY, AppHarness, house
from ..acceptance.program import serving

PROXY = "10.0.0.1"


@pytest.fixture(params=["sqlite_url", "postgres_url"])
async def home(request: pytest.FixtureRequest) -> AsyncIterator[AppHarness]:
    """An engine behind a key and a trusted proxy, on either database."""
    url = request.getfixturevalue(request.param)
    async with house(url, api_keys=(KEY,), trusted_proxies=(f"{PROXY}/32",)) as made:
        made.http.headers["x-api-key"] = KEY
        yield made


def at(home: AppHarness, address: str, key: str = "", **headers: str) -> httpx.AsyncClient:
    """A caller from this address."""
    shown = {"x-api-key": key} if key else {}
    transport = httpx.ASGITransport(home.api, client=(address, 1))
    return httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=shown | headers)


def a_key(number: int) -> str:
    """A key that does not exist."""
    return f"tdk_{number:08d}_{'x' * 43}"


async def make(home: AppHarness) -> str:
    """A key that works."""
    answer = await home.http.post("/v1/keys", json={"name": "ada", "role": "viewer"})
    return str(answer.json()["key"])


async def lines(home: AppHarness) -> list[dict[str, Any]]:
    """What the trail says of failures, newest first."""
    await home.app.access.audit.close()
    found = await home.http.get("/v1/audit", params={"action": "authentication.failed", "limit": 1000})
    items: list[dict[str, Any]] = found.json()["items"]
    return items


async def test_a_wrong_key_leaves_a_line_in_the_audit_trail(home: AppHarness) -> None:
    """From where, with which prefix, and at which face; never the secret. A missing key is no attempt."""
    wrong = (await make(home))[:-4] + "zzzz"
    answer = await at(home, "203.0.113.9", wrong, **{"x-request-id": "r1"}).get("/v1/messages")
    assert answer.status_code == 401
    await at(home, "203.0.113.9").post("/sign-in", data={"key": "not a key at all"})
    await at(home, "203.0.113.9").get("/v1/messages")
    page, api = await lines(home)
    assert (api["actor"], api["origin"], api["target"], api["status"]) == (
        "nobody", "203.0.113.9", wrong[:12], 401,
    )  # fmt: skip
    assert (api["detail"], api["request"], page["detail"], page["target"]) == ("api", "r1", "sign-in", None)
    assert wrong[13:] not in str((api, page)) and "not a key" not in str(page)


async def test_an_address_that_shows_wrong_keys_is_refused_unseen(home: AppHarness) -> None:
    """Ten in a minute on the API, whatever their prefix; then 429, also for a right key that is new there."""
    for number in range(10):
        assert (await at(home, "203.0.113.9", a_key(number)).get("/v1/messages")).status_code == 401
    for key in (a_key(11), KEY):
        answer = await at(home, "203.0.113.9", key).get("/v1/messages")
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "60")
    assert (await at(home, "203.0.113.9").post("/sign-in", data={"key": KEY})).status_code == 429
    assert (await at(home, "203.0.113.10", KEY).get("/v1/messages")).status_code == 200
    assert len(await lines(home)) == 10, "what is refused unseen leaves no line"
    home.clock.advance(61)
    assert (await at(home, "203.0.113.9", KEY).get("/v1/messages")).status_code == 200


async def test_a_prefix_is_limited_over_all_addresses(home: AppHarness) -> None:
    """Guesses at one key from many places are one attack; its owner at the usual place goes on."""
    key = await make(home)
    owner = at(home, "198.51.100.1", key)
    assert (await owner.get("/v1/messages")).status_code == 200
    for number in range(10):
        wrong = key[:-2] + f"{number:02d}"
        assert (await at(home, f"203.0.113.{number}", wrong).get("/v1/messages")).status_code == 401
    assert (await at(home, "203.0.113.99", key).get("/v1/messages")).status_code == 429
    assert (await owner.get("/v1/messages")).status_code == 200
    assert (await at(home, "203.0.113.99", KEY).get("/v1/messages")).status_code == 200


async def test_a_neighbor_behind_one_proxy_locks_nobody_out(home: AppHarness) -> None:
    """With trusted_proxies each client counts alone; without, a key that works there goes on."""

    async def wrong(proxy: str, client: str) -> None:
        for number in range(12):
            one = at(home, proxy, a_key(number), **{"x-forwarded-for": client})
            assert (await one.get("/v1/messages")).status_code == (401 if number < 10 else 429)

    await wrong(PROXY, "203.0.113.9")
    assert (await at(home, PROXY, KEY, **{"x-forwarded-for": "203.0.113.10"}).get("/v1/log")).status_code == 200
    browser = at(home, PROXY, **{"x-forwarded-for": "203.0.113.11"})
    assert (await browser.post("/sign-in", data={"key": KEY})).headers["location"] == "/"
    assert {line["origin"] for line in await lines(home)} == {"203.0.113.9"}

    home.clock.advance(61)
    untrusted = "10.9.9.9"
    assert (await at(home, untrusted, KEY).get("/v1/messages")).status_code == 200
    await wrong(untrusted, "203.0.113.12")
    assert (await at(home, untrusted, KEY).get("/v1/messages")).status_code == 200


async def test_forwarded_addresses_are_believed_from_trusted_proxies_only(home: AppHarness) -> None:
    """Whoever is not one of them can claim what they like, and it is not believed."""
    await at(home, "203.0.113.9", a_key(1), **{"x-forwarded-for": "198.51.100.1"}).get("/v1/messages")
    await at(home, PROXY, a_key(2), **{"x-forwarded-for": "6.6.6.6, 198.51.100.2"}).get("/v1/messages")
    assert [line["origin"] for line in await lines(home)] == ["198.51.100.2", "203.0.113.9"]


@pytest.mark.parametrize(
    ("peer", "named", "found"),
    [
        ("10.0.0.1", ["203.0.113.9"], "203.0.113.9"),
        ("10.0.0.1", ["1.1.1.1, 203.0.113.9"], "203.0.113.9"),
        ("10.0.0.1", ["1.1.1.1", "203.0.113.9, 10.0.0.2"], "203.0.113.9"),
        ("10.0.0.1", ["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
        ("10.0.0.1", ["203.0.113.9:4711"], "203.0.113.9"),
        ("10.0.0.1", ["[2001:db8::1]:4711"], "2001:db8::1"),
        ("10.0.0.1", ["203.0.113.9, unknown"], "10.0.0.1"),
        ("10.0.0.1", [], "10.0.0.1"),
        ("::ffff:10.0.0.1", ["203.0.113.9"], "203.0.113.9"),
        ("203.0.113.1", ["198.51.100.1"], "203.0.113.1"),
        (None, ["198.51.100.1"], None),
    ],
)
def test_the_client_is_the_nearest_address_that_is_no_trusted_proxy(
    peer: str | None, named: list[str], found: str | None
) -> None:
    """Read from the right, because everything further left may be made up."""
    headers = [(b"x-forwarded-for", one.encode()) for one in named]
    scope = {"client": None if peer is None else (peer, 1), "headers": headers}
    assert ClientAddresses(["10.0.0.0/24"]).address(scope) == found


@pytest.mark.parametrize("raw", ["10.0.0.1", ["proxy.example.com"], ["0.0.0.0/0"], ["::/0"], [1]])
def test_trusted_proxies_are_addresses(raw: object) -> None:
    """A name, everybody, or no list at all is refused with what to write instead."""
    with pytest.raises(InvalidSetting) as told:
        networks(raw)
    assert told.value.remedy
    assert networks(["10.0.0.1", " 10.1.0.0/16 "]) == ("10.0.0.1/32", "10.1.0.0/16")


async def test_wrong_keys_are_counted(home: AppHarness) -> None:
    """Events go to the log and to the metrics."""
    metrics, told = Metrics(), list[Event]()

    def emit(event: Event) -> None:
        told.append(event)
        metrics.take(event)

    home.app.access.failed_logins._emit = emit
    api = create_api(home.app, metrics)
    for number in range(12):
        await at(home, "2001:db8::1", a_key(number)).get("/v1/messages")
    kinds = [type(event) for event in told]
    assert kinds == [AuthenticationFailed] * 10 + [AuthenticationLimited] * 2
    assert told[0] == AuthenticationFailed("2001:db8::/64", "tdk_00000000", "api")
    async with httpx.AsyncClient(transport=httpx.ASGITransport(api), base_url="http://localhost") as http:
        text = (await http.get("/metrics", headers={"x-api-key": KEY})).text
    assert 'authentication_failures_total{reason="wrong"} 10.0' in text
    assert 'authentication_failures_total{reason="limited"} 2.0' in text


async def test_a_flood_from_many_addresses_does_not_fill_the_audit_trail(home: AppHarness) -> None:
    """Sixty lines a minute; the metric counts all."""
    for number in range(100):
        await at(home, f"203.0.113.{number}", a_key(number)).get("/v1/messages")
    assert len(await lines(home)) == 60


def test_a_wrong_key_is_logged_by_the_served_program(tmp_path: Path) -> None:
    """As an operator sees it."""
    with serving(tmp_path, "--log-format", "json", env={"TIDINGS_API_KEYS": KEY}) as served:
        answer = httpx.get(f"{served.address('dashboard')}/v1/messages", headers={"x-api-key": a_key(7)})
        assert answer.status_code == 401
        served.hears('"authentication_failed"')
        logged = next(line for line in served.logged if "authentication_failed" in line)
        assert "tdk_00000007" in logged and "127.0.0.1" in logged and "xxxx" not in logged
        text = httpx.get(f"{served.address('dashboard')}/metrics", headers={"x-api-key": KEY}).text
        assert 'authentication_failures_total{reason="wrong"} 1.0' in text


async def test_health_names_neither_processes_nor_hosts(sqlite_url: str) -> None:
    """Anybody may ask; names are for those with a key."""
    async with house(sqlite_url) as home:
        info = '{"broker": "RabbitMQ at rabbit.internal:5671 does not answer"}'
        name = (await home.app.store.read("node_list"))[0]["name"]
        connection: Any = home.app.store
        connection._connection.execute("update nodes set info = ?", (info,)).fetchall()
        answer = await home.http.get("/health")
        assert answer.status_code == 503
        assert answer.json()["reasons"] == ["1 of 1 processes cannot use RabbitMQ"]
        assert name not in answer.text and "rabbit.internal" not in answer.text


def test_trusted_proxies_can_be_set() -> None:
    """Shown like any other setting."""
    assert Settings(trusted_proxies=("10.0.0.1/32",)).describe()["trusted_proxies"] == ["10.0.0.1/32"]


async def test_wrong_tokens_of_the_calendar_feed_are_limited(sqlite_url: str) -> None:
    """It needs no header, so it has its own proof; guessing it is slowed down like guessing a key."""
    shifts = calendar.read({"kind": "builtin", "feed_token": "t" * 32})
    async with house(sqlite_url, api_keys=(KEY,), inbound=InboundSettings(calendar=shifts)) as home:
        home.http.headers["x-api-key"] = KEY
        feed = at(home, "203.0.113.9")
        answers = [await feed.get("/calendar.ics", params={"token": f"{n}"}) for n in range(11)]
        assert [one.status_code for one in answers] == [401] * 10 + [429]
        assert {line["detail"] for line in await lines(home)} == {"feed"}
        good = await at(home, "203.0.113.10").get("/calendar.ics", params={"token": "t" * 32})
        assert good.status_code == 200
        assert (await at(home, "203.0.113.11", a_key(1)).get("/calendar.ics")).status_code == 401
        assert {line["detail"] for line in await lines(home)} == {"feed", "api"}
