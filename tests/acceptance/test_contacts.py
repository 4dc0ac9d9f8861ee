"""Contacts, lists and opt-outs through the API and the command line, as users meet them."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import orjson
import pytest

from tidings.cli.errors import run_safely
from tidings.cli.program import program
from tidings.model.errors import StoreUnavailable

from .harness import AppHarness, house, in_one_house

both = pytest.mark.parametrize("home", ["sqlite", "postgres"], indirect=True)
ADA = {"name": "Ada", "addresses": {"out": "ada"}, "timezone": "Europe/Berlin", "tags": ["vip"]}
CSV = {"content-type": "text/csv"}
NDJSON = {"content-type": "application/x-ndjson"}


@pytest.fixture
async def home(request: pytest.FixtureRequest, sqlite_url: str) -> AsyncIterator[AppHarness]:
    """An engine on SQLite, or on what the test names."""
    on_postgres = getattr(request, "param", "sqlite") == "postgres"
    async with house(request.getfixturevalue("postgres_url") if on_postgres else sqlite_url) as built:
        yield built


def refused(answer: httpx.Response, status: int, field: str | None = None) -> dict[str, Any]:
    """The inside of the one error envelope."""
    assert answer.status_code == status, answer.text
    error: dict[str, Any] = answer.json()["error"]
    assert error["message"] and error["remedy"]
    assert error["field"] == field
    return error


def told(answer: httpx.Response) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The bad rows of an import and its summary."""
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/x-ndjson"
    lines = [orjson.loads(line) for line in answer.content.splitlines()]
    return [line for line in lines if "row" in line], lines[-1]["summary"]


async def everybody(home: AppHarness, **params: Any) -> list[dict[str, Any]]:
    found = await home.http.get("/v1/contacts", params={"limit": 1000, **params})
    assert found.status_code == 200, found.text
    items: list[dict[str, Any]] = found.json()["items"]
    return items


# -- the API


@both
async def test_a_contact_goes_through_its_life(home: AppHarness) -> None:
    """Created, shown, found, changed, removed; each answer is the contact as it stands."""
    made = await home.http.post("/v1/contacts", json=ADA)
    assert made.status_code == 201
    contact = made.json()
    assert made.headers["location"] == f"/v1/contacts/{contact['id']}"
    assert (await home.http.get(made.headers["location"])).json() == contact
    assert await everybody(home, channel="out", address="ada") == [contact]
    assert await everybody(home, tag="vip", timezone="Europe/Berlin") == [contact]
    assert await everybody(home, tag="donor") == []

    changed = await home.http.patch(made.headers["location"], json={"language": "de"})
    assert changed.json()["language"] == "de"
    put = await home.http.put("/v1/contacts", json={"addresses": {"out": "ada"}, "name": "Countess"})
    assert (put.status_code, put.json()["id"], put.json()["name"]) == (200, contact["id"], "Countess")
    assert (await home.http.put("/v1/contacts", json={"addresses": {"out": "eve"}})).status_code == 201

    assert (await home.http.delete(made.headers["location"])).json() == {"id": contact["id"], "removed": True}
    refused(await home.http.get(made.headers["location"]), 404)
    refused(await home.http.delete(made.headers["location"]), 404)


async def test_the_same_key_creates_once(home: AppHarness) -> None:
    """B4, on each creating call: the first answer again, another body refused, also fifty at once."""
    for path, body in (("/v1/contacts", ADA), ("/v1/lists", {"name": "all"}), ("/v1/suppressions", {"address": "eve"})):
        headers = {"Idempotency-Key": "k"}
        answers = await asyncio.gather(*(home.http.post(path, json=body, headers=headers) for _ in range(50)))
        good = [answer for answer in answers if answer.status_code == 201]
        assert {answer.status_code for answer in answers} <= {201, 409}
        assert len({answer.content for answer in good}) == 1
        assert sum("idempotency-replayed" not in answer.headers for answer in good) == 1
        refused(await home.http.post(path, json={**body, "x": 1}, headers=headers), 422, "Idempotency-Key")
    assert len(await everybody(home)) == 1


@in_one_house(
    ("method", "path", "body", "status", "field"),
    [
        ("POST", "/v1/contacts", {"timezone": "Mars/Olympus"}, 422, "timezone"),
        ("POST", "/v1/contacts", [], 422, None),
        ("POST", "/v1/contacts", {"tags": "vip"}, 422, "tags"),
        ("PUT", "/v1/contacts", {"name": "x"}, 422, "addresses"),
        ("PATCH", "/v1/contacts/nobody", {"name": "x"}, 404, None),
        ("GET", "/v1/contacts?colour=red", None, 422, "colour"),
        ("GET", "/v1/contacts?address=ada", None, 422, "channel"),
        ("GET", "/v1/contacts?limit=0", None, 422, "limit"),
        ("GET", "/v1/contacts?timezone=Berln", None, 422, "timezone"),
        ("POST", "/v1/lists", {}, 422, "name"),
        ("POST", "/v1/lists", {"name": "a/b"}, 422, "name"),
        ("POST", "/v1/lists", {"name": "x", "filter": {"tags_all": ["a;b"]}}, 422, "tags"),
        ("GET", "/v1/lists/none", None, 404, None),
        ("POST", "/v1/lists/none/members", {"contacts": ["x"]}, 404, None),
        ("POST", "/v1/suppressions", {"address": ""}, 422, "address"),
        ("POST", "/v1/suppressions", {"address": "ada", "channel": "nope"}, 422, "channel"),
        ("POST", "/v1/suppressions", {"address": "ada", "reason": "x\ny"}, 422, "reason"),
        ("DELETE", "/v1/suppressions?address=nobody", None, 404, None),
        ("GET", "/v1/suppressions?after=xx", None, 422, "after"),
    ],
)
async def test_what_cannot_be_used_is_refused(
    home: AppHarness, method: str, path: str, body: Any, status: int, field: str | None
) -> None:
    """One sentence, the field, and what to do; nothing is changed."""
    refused(await home.http.request(method, path, json=body), status, field)

    assert await everybody(home) == []
    assert (await home.http.get("/v1/lists")).json() == {"items": [], "next": None}
    assert (await home.http.get("/v1/suppressions")).json() == {"items": [], "next": None}


@both
async def test_a_list_is_filled_and_a_filter_finds(home: AppHarness) -> None:
    """Members by id, and by what is on their cards."""
    ada = (await home.http.post("/v1/contacts", json=ADA)).json()
    eve = (await home.http.put("/v1/contacts", json={"addresses": {"out": "eve"}})).json()
    await home.http.post("/v1/lists", json={"name": "both of them"})
    await home.http.post("/v1/lists", json={"name": "vips", "filter": {"tags_any": ["vip"]}})

    added = await home.http.post("/v1/lists/both of them/members", json={"contacts": [ada["id"], eve["id"]]})
    assert added.json() == {"added": 2}
    lists = (await home.http.get("/v1/lists")).json()["items"]
    assert [(one["name"], one["members"], one["filter"]) for one in lists] == [
        ("both of them", 2, None),
        ("vips", None, {"tags_any": ["vip"]}),
    ]
    members = (await home.http.get("/v1/lists/vips/members")).json()
    assert members == {"items": [ada], "next": None}
    refused(await home.http.post("/v1/lists/vips/members", json={"contacts": [eve["id"]]}), 409)
    unknown = {"contacts": [eve["id"], "nobody"]}
    refused(await home.http.post("/v1/lists/both of them/members", json=unknown), 404, "contacts")
    gone = await home.http.post("/v1/lists/both of them/members/remove", json={"contacts": [ada["id"]]})
    assert gone.json() == {"removed": 1}
    await home.http.patch("/v1/lists/vips", json={"name": "very"})
    assert (await home.http.delete("/v1/lists/very")).status_code == 200
    refused(await home.http.get("/v1/lists/vips"), 404)


@both
async def test_an_opt_out_also_stops_messages_accepted_before_it(home: AppHarness) -> None:
    """Also what was accepted before; its history and `why` say so, and there is a way back."""
    early = await home.accept(to="ada", **{"in": "10 min"})
    other = await home.accept(to="eve", **{"in": "10 min"})
    out = await home.http.post("/v1/suppressions", json={"address": "ada", "reason": "asked by phone"})
    assert out.status_code == 201
    assert out.json() == {
        "address": "ada", "channel": None, "reason": "asked by phone", "at": "2027-01-15T08:00:00.000Z",
        "evidence": None,
    }  # fmt: skip
    home.clock.advance(minutes=11)
    await home.work()

    shown = await home.show(early)
    assert shown["state"] == "skipped"
    assert "asked by phone" in shown["history"][-1]["detail"]
    why = (await home.http.get(f"/v1/messages/{early}/why")).json()["why"]
    assert why.startswith("skipped") and "asked by phone" in why
    assert (await home.show(other))["state"] == "sent"

    assert (await home.http.delete("/v1/suppressions", params={"address": "ada"})).status_code == 200
    late = await home.accept(to="ada")
    await home.work()
    assert (await home.show(late))["state"] == "sent"


PEOPLE = (
    "Name,Address.Out,timezone,tags,city\n"
    "Ada,ada,Europe/Berlin,vip;donor,Bonn\n"
    "Eve,eve,Europe/Berln,,\n"
    '"Lin\tX",lin,,,\n'
    "Bob,bob,,,\n"
    "Zoe,zoe\n"
)


@both
async def test_an_import_tells_every_bad_row_and_takes_the_others(home: AppHarness) -> None:
    """Row, field and what to do; repeated, it doubles nobody; the list has them all."""
    await home.http.post("/v1/lists", json={"name": "new"})
    url = "/v1/contacts:import?list=new&tag=imported"

    bad, summary = told(await home.http.post(url, content=PEOPLE, headers=CSV))

    assert [(line["row"], line["error"]["field"]) for line in bad] == [(3, "timezone"), (4, "name"), (6, None)]
    assert "Europe/Berlin" in bad[0]["error"]["remedy"]
    assert "name, address.out, timezone, tags, city" in bad[2]["error"]["remedy"]
    assert summary == {
        "created": 2, "changed": 0, "unchanged": 0, "refused": 3,
        "attributes": ["city"], "dry_run": False, "complete": True,
    }  # fmt: skip
    assert {item["name"]: item["tags"] for item in await everybody(home)} == {
        "Ada": ["donor", "imported", "vip"],
        "Bob": ["imported"],
    }
    _, again = told(await home.http.post(url, content=PEOPLE, headers=CSV))
    assert (again["created"], again["unchanged"], len(await everybody(home))) == (0, 2, 2)
    assert (await home.http.get("/v1/lists/new")).json()["members"] == 2


async def test_an_import_of_ndjson_takes_objects_and_addresses(home: AppHarness) -> None:
    """The shape of the API, columns, or only an address on the channel that is named."""
    body = b"\n".join(
        [
            orjson.dumps({"name": "Ada", "addresses": {"out": "ada"}, "tags": ["a"], "attributes": {"n": 1}}),
            orjson.dumps({"name": "Eve", "address.out": "eve", "city": "Bonn"}),
            b'"lin"',
            b'{"addresses": 7}',
            b'{"addresses": {"out": ["x"]}}',
            b'{"name": 7, "address": "x"}',
            b"nonsense",
        ]
    )

    bad, summary = told(await home.http.post("/v1/contacts:import?channel=out", content=body, headers=NDJSON))

    assert (summary["created"], summary["attributes"]) == (3, ["city", "n"])
    assert [(line["row"], line["error"]["field"]) for line in bad] == [
        (4, "addresses"), (5, "addresses.out"), (6, "name"), (7, None),
    ]  # fmt: skip


async def test_all_or_nothing_and_a_dry_run_write_nothing(home: AppHarness) -> None:
    """All bad rows are told all the same."""
    for option in ("all_or_nothing", "dry_run"):
        bad, summary = told(await home.http.post(f"/v1/contacts:import?{option}=true", content=PEOPLE, headers=CSV))
        assert (len(bad), summary["refused"]) == (3, 3)
        assert await everybody(home) == []

    good = PEOPLE.splitlines(keepends=True)[0] + "Ada,ada,,,\n"
    _, summary = told(await home.http.post("/v1/contacts:import?all_or_nothing=true", content=good, headers=CSV))
    assert (summary["created"], len(await everybody(home))) == (1, 1)


@in_one_house(
    ("url", "content", "headers", "status", "field"),
    [
        ("", PEOPLE, {"content-type": "application/json"}, 422, "content-type"),
        ("", PEOPLE, {}, 422, "content-type"),
        ("", "", CSV, 422, "header"),
        ("", "name\nAda\n", CSV, 422, "address"),
        ("", "address\nada\n", CSV, 422, "address"),
        ("?channel=nope", "address\nada\n", CSV, 422, "channel"),
        ("?map=name", PEOPLE, CSV, 422, "map"),
        ("?map=name=nobody", PEOPLE, CSV, 422, "map"),
        ("?list=nope", PEOPLE, CSV, 404, None),
        ("?lst=nope", PEOPLE, CSV, 422, "lst"),
    ],
)
async def test_an_import_that_cannot_be_understood_takes_nothing(
    home: AppHarness, url: str, content: str, headers: dict[str, str], status: int, field: str | None
) -> None:
    """What spoils all of it has a status of its own."""
    refused(await home.http.post(f"/v1/contacts:import{url}", content=content, headers=headers), status, field)

    assert await everybody(home) == []


async def test_an_import_over_the_limit_is_refused(sqlite_url: str) -> None:
    """By its announced size at once, by its rows while it is read."""
    async with house(sqlite_url, max_bulk=10) as home:
        body = "address.out\n" + "".join(f"p{n}\n" for n in range(11))
        error = refused(await home.http.post("/v1/contacts:import", content=body, headers=CSV), 413)
        assert "10 lines" in error["message"]
        huge = CSV | {"content-length": str(2 << 30)}
        refused(await home.http.post("/v1/contacts:import", content="x", headers=huge), 413)
        assert await everybody(home) == []


async def test_an_import_that_breaks_off_says_what_was_taken(home: AppHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer ends with the error and `complete: false`; the same call again finishes it."""
    body = "address.out\n" + "".join(f"p{n}\n" for n in range(1200))
    write, calls = home.app.store.write, 0

    async def failing(steps: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise StoreUnavailable("the database does not answer", remedy="try again")
        return await write(steps)

    monkeypatch.setattr(home.app.store, "write", failing)
    answer = await home.http.post("/v1/contacts:import", content=body, headers=CSV)
    *_, error, summary = [orjson.loads(line) for line in answer.content.splitlines()]
    assert error["error"]["code"] == "store_unavailable"
    assert (summary["summary"]["created"], summary["summary"]["complete"]) == (500, False)

    _, summary = told(await home.http.post("/v1/contacts:import", content=body, headers=CSV))
    assert (summary["created"], summary["unchanged"]) == (700, 500)


async def test_opt_outs_come_in_by_the_file(home: AppHarness) -> None:
    """Columns address, channel and reason; repeated, nothing is added."""
    body = "address,reason\nada,bounced\neve,\n,x\n"
    bad, summary = told(await home.http.post("/v1/suppressions:import?channel=out", content=body, headers=CSV))

    assert [(line["row"], line["error"]["field"]) for line in bad] == [(4, "address")]
    assert summary == {"created": 2, "unchanged": 0, "refused": 1, "complete": True}
    found = (await home.http.get("/v1/suppressions", params={"limit": 1})).json()
    assert [(row["address"], row["channel"], row["reason"]) for row in found["items"]] == [("ada", "out", "bounced")]
    rest = (await home.http.get("/v1/suppressions", params={"after": found["next"]})).json()
    assert [row["address"] for row in rest["items"]] == ["eve"]


# -- the command line


class Answer(NamedTuple):
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Tidings = Callable[..., Answer]


@pytest.fixture
def tidings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Tidings:
    """The program in this process; a folder of its own, nothing set by accident."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("TIDINGS_")]:
        monkeypatch.delenv(name)

    def call(*words: str, stdin: str = "") -> Answer:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        capfd.readouterr()
        code = run_safely(lambda **options: program(list(words), prog_name="tidings", **options))
        return Answer(code, *capfd.readouterr())

    return call


def test_a_contact_by_hand(tidings: Tidings) -> None:
    """Added, found, changed, listed, removed."""
    made = tidings("contacts", "add", "--name", "Ada", "-a", "phone=ada", "-t", "vip", "--json").json
    assert (made["name"], made["addresses"], made["tags"]) == ("Ada", {"phone": "ada"}, ["vip"])
    assert tidings("contacts", "find", "phone", "ada", "--json").json == made
    assert "belongs to another" in tidings("contacts", "add", "-a", "phone=ada").err
    changed = tidings("contacts", "add", "-a", "phone=ada", "--upsert", "--timezone", "UTC", "--json").json
    assert (changed["id"], changed["timezone"]) == (made["id"], "UTC")
    edited = tidings(
        "contacts", "edit", made["id"], "--timezone", "", "--attribute", "city=Bonn", "--tag", "", "--json"
    ).json
    assert (edited["timezone"], edited["attributes"], edited["tags"]) == (None, {"city": "Bonn"}, [])
    lines = tidings("contacts", "list", "--channel", "phone").out.splitlines()
    assert [line.split("\t")[1] for line in lines] == ["name", "Ada"]
    shown = dict(line.split("\t", 1) for line in tidings("contacts", "show", made["id"]).out.splitlines())
    assert (shown["addresses"], shown["attributes"]) == ("phone=ada", "city=Bonn")
    assert tidings("contacts", "remove", made["id"]).code == 0
    assert tidings("contacts", "find", "phone", "ada").code == 2


def test_a_file_is_imported_with_a_report(tidings: Tidings, tmp_path: Path) -> None:
    """Bad rows on standard error and in the report, exit code 2; mended and repeated, nobody is doubled."""
    (tmp_path / "people.csv").write_text(
        "Full Name;Mobile;timezone\nAda;ada;Europe/Berlin\nEve;eve;Europe/Berln\n;lin;\n", encoding="utf-8-sig"
    )
    tidings("lists", "add", "all")
    words = ("contacts", "import", "people.csv", "--map", "address.phone=mobile,name=full name", "--list", "all")

    dry = tidings(*words, "--dry-run", "--json")
    assert (dry.code, dry.json["created"]) == (2, 2)
    nothing = tidings(*words, "--all-or-nothing", "--json")
    assert (nothing.code, nothing.json) == (2, {"created": 0, "changed": 0, "unchanged": 0, "refused": 1})
    real = tidings(*words, "--report", "bad.csv")

    assert real.code == 2
    assert real.out == "created\t2\nchanged\t0\nunchanged\t0\nrefused\t1\n"
    assert real.err.startswith("row 3: unknown time zone 'Europe/Berln'. Did you mean Europe/Berlin")
    with (tmp_path / "bad.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["row"], row["field"]) == ("3", "timezone")
    assert tidings("lists", "show", "all", "--json").json["members"] == 2
    (tmp_path / "people.csv").write_text("address.phone,timezone\nada,\neve,Europe/Berlin\n")
    again = tidings("contacts", "import", "people.csv", "--json")
    assert (again.code, again.json["created"], again.json["unchanged"]) == (0, 1, 1)


def test_standard_input_says_what_it_is(tidings: Tidings) -> None:
    """Without a name there is nothing to tell the form by."""
    assert "--format" in tidings("contacts", "import", "-", stdin='"ada"\n').err
    words = ("contacts", "import", "-", "--format", "ndjson", "--channel", "phone", "--all-or-nothing", "--json")
    assert tidings(*words, stdin='"ada"\n"eve"\n').json["created"] == 2
    assert "cannot be read" in tidings("contacts", "import", "nothing.csv").err
    assert "neither CSV nor NDJSON" in tidings("contacts", "import", "people.xlsx").err


def test_lists_by_hand(tidings: Tidings) -> None:
    """A list with members and a saved filter."""
    ada = tidings("contacts", "add", "-a", "phone=ada", "-t", "vip", "--attribute", "city=Bonn", "--json").json
    tidings("lists", "add", "some")
    made = tidings("lists", "add", "bonn", "--attribute", "city=Bonn", "--tag", "vip", "--json").json
    assert made["filter"] == {"tags_all": ["vip"], "attributes": {"city": "Bonn"}}
    assert tidings("lists", "join", "some", ada["id"]).out == "1 added\n"
    for name in ("some", "bonn"):
        assert [row["id"] for row in tidings("lists", "members", name, "--json").json["items"]] == [ada["id"]]
    assert tidings("lists", "leave", "some", ada["id"]).out == "1 removed\n"
    assert tidings("lists", "edit", "bonn", "--name", "köln", "--any-tag", "x", "--json").json["filter"] == {
        "tags_any": ["x"]
    }
    assert tidings("lists", "remove", "köln").code == 0
    assert [row["name"] for row in tidings("lists", "list", "--json").json["items"]] == ["some"]
    assert "already" in tidings("lists", "add", "some").err


def test_opting_out_by_hand(tidings: Tidings, tmp_path: Path) -> None:
    """The way in, by file too, and the way back."""
    out = tidings("suppressions", "add", "ada", "--channel", "phone", "--reason", "asked", "--json").json
    assert (out["channel"], out["reason"]) == ("phone", "asked")
    (tmp_path / "out.csv").write_text("address\neve\nada\n")
    imported = tidings("suppressions", "import", "out.csv", "--channel", "phone", "--json").json
    assert (imported["created"], imported["unchanged"]) == (1, 1)
    assert "it has opted out on: phone" in tidings("suppressions", "remove", "ada").err.lower()
    assert tidings("suppressions", "remove", "ada", "--channel", "phone").code == 0
    listed = tidings("suppressions", "list", "--json").json["items"]
    assert [row["address"] for row in listed] == ["eve"]
