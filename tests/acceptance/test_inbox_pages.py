"""The faces of the inbox and the roster: routes that platforms call, the API, the pages (D2, D5)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tidings.config import InboundSettings
from tidings.inbound.sources.settings import read_source
from tidings.model.time import SECOND
from tidings.wire.webhook_signatures import parse_secret, signature_headers

from .harness import KEY, AppHarness
from .harness import house as housed

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
SOURCES = {
    "own": {"kind": "webhook", "secrets": [SECRET]},
    "crew": {"kind": "groupme", "group": "9", "secrets": ["k" * 16]},
}


@pytest.fixture
async def house(sqlite_url: str) -> AsyncIterator[AppHarness]:
    """An engine with two sources that are called; callers of the API need a key."""
    sources = {name: read_source(name, options, production=True) for name, options in SOURCES.items()}
    inbound = InboundSettings(sources=sources)
    async with housed(sqlite_url, api_keys=(KEY,), inbound=inbound) as made:
        made.http = made.client(**{"x-api-key": KEY})
        yield made


async def call(house: AppHarness, body: bytes, id_: str = "m1") -> int:
    """A signed call without our key; gives the status."""
    signed = signature_headers([parse_secret(SECRET)], id_, house.clock.now() // SECOND, body)
    return (await house.client().post("/inbound/own", content=body, headers=signed)).status_code


async def test_what_is_called_in_is_handled_and_shown(house: AppHarness) -> None:
    """Signed, once, through to its reason; without a signature nothing happens."""
    person = {"sender": "u7", "name": "Ann <b>", "squad": "42"}
    assert (await house.http.put("/v1/roster", json=person)).status_code == 201
    assert (await house.http.put("/v1/roster", json=person)).status_code == 200
    body = b'{"id":"1","conversation":"desk","sender":"u7","name":"Ann","text":"<i>no crew</i>"}'
    assert await call(house, body) == 200
    assert await call(house, body, "m2") == 200
    assert await call(house, b'{"id":"2"}') == 422
    unsigned = await house.client().post("/inbound/own", content=body)
    assert (unsigned.status_code, unsigned.json()["error"]["code"]) == (401, "unauthorized")
    assert (await house.client().post("/inbound/nobody", content=body)).status_code == 404
    chat = b'{"id":"7","group_id":"9","sender_id":"5","sender_type":"user","text":"hi","created_at":1}'
    assert (await house.client().post("/inbound/crew?key=wrong", content=chat)).status_code == 401
    assert (await house.client().post(f"/inbound/crew?key={'k' * 16}", content=chat)).status_code == 200
    await house.work()

    items = (await house.http.get("/v1/inbox", params={"source": "own"})).json()["items"]
    assert [(item["state"], item["reason"]) for item in items] == [("done", "no workflow is configured")]
    page = (await house.http.get("/inbox?state=done")).text
    assert "&lt;i&gt;no crew&lt;/i&gt;" in page
    assert "5: not on the roster" in (await house.http.get("/inbox?sender=5")).text
    shown = (await house.http.get(f"/inbox/{items[0]['id']}")).text
    assert "No workflow is configured" in shown
    again = await house.http.post(f"/v1/inbox/{items[0]['id']}/retry")
    assert (again.status_code, again.json()["error"]["code"]) == (409, "conflict")
    assert (await house.http.get("/v1/inbox/nobody")).status_code == 404
    assert {row["name"] for row in (await house.http.get("/v1/sources")).json()["items"]} == {"own", "crew"}
    assert (await house.client().get("/v1/inbox")).status_code == 401


async def test_the_roster_is_kept_by_forms_and_by_files(house: AppHarness) -> None:
    """A mistake is told on the page; a file's bad rows in the answer."""
    form = {"sender": "1001", "name": "Ada", "squad": "42", "role": "officer", "source": ""}
    await house.http.post("/roster/put", data=form)
    bad = await house.http.post("/roster/put", data=form | {"role": "captain"})
    assert "unknown role" in (await house.http.get(bad.headers["location"])).text
    answer = await house.http.post(
        "/v1/roster:import",
        content=b"sender,name,squad\n1001,Ada,42\n1002,Ben,43\n1003,,\n",
        headers={"content-type": "text/csv"},
    )
    assert '"summary":{"created":1,"changed":1,"unchanged":0,"refused":1' in answer.text
    assert "Ben" in (await house.http.get("/roster?squad=43")).text
    await house.http.post("/roster/remove", data={"sender": "1002", "source": ""})
    assert (await house.http.get("/v1/roster", params={"squad": "43"})).json()["items"] == []
    log = (await house.http.get("/v1/roster/log", params={"sender": "1002"})).json()["items"]
    assert [line["what"] for line in log] == ["removed", "added"]
    assert (await house.http.delete("/v1/roster", params={"sender": "1002"})).status_code == 404
