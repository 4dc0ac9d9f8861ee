"""Broadcasts at the faces: what the API and the command line answer, and what they refuse."""

from __future__ import annotations

import asyncio
import csv
import io
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import ClientDisconnect

from tidings.cli.program import program
from tidings.model.errors import Invalid
from tidings.model.message import Message
from tidings.model.outcome import Done, Outcome, Reject
from tidings.model.task import Category

from .harness import AppHarness, house, in_one_house
from .program import run

both = pytest.mark.parametrize("home", ["sqlite", "postgres"], indirect=True)
BODY = {"channel": "out", "text": "hello", "addresses": ["ada", "bob", "eve"]}
CSV = {"content-type": "text/csv"}
NDJSON = {"content-type": "application/x-ndjson"}


@pytest.fixture
async def home(request: pytest.FixtureRequest, sqlite_url: str) -> AsyncIterator[AppHarness]:
    """An engine on SQLite, or on what the test names."""
    on_postgres = getattr(request, "param", "sqlite") == "postgres"
    async with house(request.getfixturevalue("postgres_url") if on_postgres else sqlite_url) as built:
        yield built


async def make(home: AppHarness, **fields: Any) -> dict[str, Any]:
    """A broadcast through the API."""
    answer = await home.http.post("/v1/broadcasts", json=BODY | fields)
    assert answer.status_code == 201, answer.text
    assert answer.headers["location"] == f"/v1/broadcasts/{answer.json()['id']}"
    made: dict[str, Any] = answer.json()
    return made


async def finish(home: AppHarness) -> None:
    """Let everything that is due happen, and its end be seen."""
    for _ in range(4):
        await home.work()
        home.clock.advance(1)
        await home.act()


async def show(home: AppHarness, id_: str) -> dict[str, Any]:
    shown: dict[str, Any] = (await home.http.get(f"/v1/broadcasts/{id_}")).json()
    return shown


def failing(*to: str) -> Any:
    def script(message: Message) -> Outcome:
        return Reject(Category.PERMANENT, "=cmd|nobody") if message.recipient in to else Done("r-1")

    return script


@both
async def test_a_broadcast_from_the_call_to_the_export(home: AppHarness) -> None:
    """B1: made, sent, counted; recipients with raw answers; CSV safe and exact."""
    home.script("out", failing("bob"))
    made = await make(home, xref="project-7", name="Flood")
    assert (made["state"], made["total"], made["trigger"]) == ("running", 3, "IMMEDIATE")
    await finish(home)

    shown = await show(home, made["id"])
    assert shown["state"] == "completed"
    assert (shown["counts"]["sent"], shown["counts"]["failed"], shown["actions"]) == (2, 1, ["retry"])
    people = (await home.http.get(f"/v1/broadcasts/{made['id']}/recipients", params={"state": "FAILED"})).json()
    assert [(row["address"], row["detail"]) for row in people["items"]] == [("bob", "=cmd|nobody")]
    for form, said in (("csv", "'=cmd|nobody"), ("csv-exact", "=cmd|nobody")):
        answer = await home.http.get(f"/v1/broadcasts/{made['id']}/export", params={"format": form})
        rows = list(csv.DictReader(io.StringIO(answer.text)))
        assert [row["address"] for row in rows] == ["ada", "bob", "eve"]
        assert rows[1]["detail"] == said
    report = (await home.http.get("/v1/broadcasts/reports", params={"xref": "project-7"})).json()["items"][0]
    assert (report["broadcasts"], report["counts"]["sent"]) == (1, 2)
    counted = (await home.http.get("/v1/broadcasts/counts", params={"ids": made["id"]})).json()["items"]
    assert counted[0]["counts"] == shown["counts"]


@both
async def test_an_upload_streams_in_and_starts_when_it_has_ended(home: AppHarness) -> None:
    """NDJSON and CSV; rows with variables; duplicates told by row."""
    for kind, body in (
        (NDJSON, b'"ada"\n{"address": "bob", "name": "Bob"}\n\n{"to": "ada"}\n'),
        (CSV, '\ufeffAddress;Name\r\nada;Ada\r\nbob;"Bo;b"\r\nada;Ada\r\n'.encode()),
    ):
        made = await make(home, addresses=None, recipients="upload")
        assert made["state"] == "loading"
        answer = await home.http.post(f"/v1/broadcasts/{made['id']}/recipients", content=body, headers=kind)
        told = answer.json()
        assert answer.status_code == 200, told
        assert (told["state"], told["total"], told["duplicates"]) == ("running", 2, 1)
        assert told["samples"]["duplicates"] == [{"row": 4, "address": "ada"}]
        await finish(home)
        assert (await show(home, made["id"]))["state"] == "completed"


async def test_an_export_can_be_uploaded_again(home: AppHarness) -> None:
    """The exact form goes round: addresses, zones and variables come back as they were."""
    odd = {"address": "+49 151", "timezone": "Asia/Tokyo", "variables": {"name": '=1+"1"', "n": 3}}
    made = await make(home, addresses=[odd, "bob"], recipient_timezone=True, trigger="MANUAL")
    text = (await home.http.get(f"/v1/broadcasts/{made['id']}/export?format=csv-exact")).text
    again = await make(home, addresses=None, recipients="upload", recipient_timezone=True, trigger="MANUAL")
    url = f"/v1/broadcasts/{again['id']}/recipients"
    assert (await home.http.post(url, content=text.encode(), headers=CSV)).status_code == 200

    items = (await home.http.get(url)).json()["items"]
    first = next(row for row in items if row["address"] == "+49 151")
    assert first["timezone"] == "Asia/Tokyo"
    assert {"name": '=1+"1"', "n": 3}.items() <= first["variables"].items()


async def test_a_malformed_upload_names_its_rows_and_sends_nothing(home: AppHarness) -> None:
    """Bad CSV: row numbers, 422, nothing sent; mended and sent again it goes on."""
    made = await make(home, addresses=None, recipients="upload")
    url = f"/v1/broadcasts/{made['id']}/recipients"
    bad = await home.http.post(url, content=b"address,name\nada,A\nbob\n,C\neve,E,F\n", headers=CSV)
    error = bad.json()["error"]
    assert bad.status_code == 422
    assert "row 3: the row has 1 fields" in error["message"]
    assert "row 4: the address is empty" in error["message"]
    assert "row 5: the row has 3 fields" in error["message"]
    await finish(home)
    assert (await show(home, made["id"]))["state"] == "loading"

    good = await home.http.post(url, content=b"address,name\nada,A\nbob,B\n", headers=CSV)
    assert good.json()["total"] == 2


@in_one_house(
    ("content", "headers", "status", "words"),
    [
        (b"", CSV, 422, "empty"),
        (b"address\n", CSV, 422, "no recipients"),
        (b"phone,name\n+49151,ada\n", CSV, 422, "no column 'address'; its columns are: phone, name"),
        (b'{"phone": "+49151"}\n', NDJSON, 422, "row 1: the address is missing"),
        (b"\xff\xfe", CSV, 422, "UTF-8"),
        (b"[1]\n", NDJSON, 422, "not a JSON object"),
        (b"ada\n", {"content-type": "image/png"}, 422, "neither CSV nor NDJSON"),
    ],
)
async def test_junk_uploads_are_refused_clearly(
    home: AppHarness, content: bytes, headers: dict[str, str], status: int, words: str
) -> None:
    """One sentence, nothing half done."""
    made = await make(home, addresses=None, recipients="upload")
    answer = await home.http.post(f"/v1/broadcasts/{made['id']}/recipients", content=content, headers=headers)

    assert answer.status_code == status
    assert words in answer.json()["error"]["message"]
    assert b"phone," not in content or answer.json()["error"]["remedy"] == "rename the column 'phone' to 'address'"
    assert (await show(home, made["id"]))["total"] == 0


@both
async def test_a_time_zone_of_the_upload_is_shown_and_exported(home: AppHarness) -> None:
    """Also where neither quiet hours nor recipient_timezone use it; the export can be uploaded again."""
    made = await make(home, addresses=None, recipients="upload")
    content = b"address,timezone\nada,Asia/Tokyo\nbob,\n"
    await home.http.post(f"/v1/broadcasts/{made['id']}/recipients", content=content, headers=CSV)

    items = (await home.http.get(f"/v1/broadcasts/{made['id']}/recipients")).json()["items"]
    assert [row["timezone"] for row in items] == ["Asia/Tokyo", None]
    exported = await home.http.get(f"/v1/broadcasts/{made['id']}/export")
    rows = list(csv.DictReader(io.StringIO(exported.text)))
    assert [row["timezone"] for row in rows] == ["Asia/Tokyo", ""]


async def test_the_size_limit_counts_bytes_in_broadcasts_and_in_messages(home: AppHarness) -> None:
    """`max_body` is a number of bytes; and too many inline addresses are referred to an upload."""
    text = "ü" * 200_000
    for path, body in (("messages", {"channel": "out", "to": "ada"}), ("broadcasts", BODY)):
        answer = await home.http.post(f"/v1/{path}", json={**body, "text": text})
        assert answer.status_code == 413
        assert "the message has 400,011 bytes" in answer.json()["error"]["message"]

    many = await home.http.post("/v1/broadcasts", json=BODY | {"addresses": ["+4915112345678"] * 100_000})
    assert many.status_code == 413
    assert '"recipients": "upload"' in many.json()["error"]["remedy"]


async def test_an_upload_over_the_limits_is_refused(sqlite_url: str) -> None:
    """More rows than max_bulk, or a length that is announced too large: 413, and nothing is sent."""
    async with house(sqlite_url, max_bulk=3) as home:
        made = await make(home, addresses=None, recipients="upload")
        url = f"/v1/broadcasts/{made['id']}/recipients"
        many = "".join(f'"p{n}"\n' for n in range(4)).encode()
        assert (await home.http.post(url, content=many, headers=NDJSON)).status_code == 413
        announced = {**NDJSON, "content-length": str(2 << 30)}
        assert (await home.http.post(url, content=b"x", headers=announced)).status_code == 413
        await finish(home)
        assert (await show(home, made["id"]))["state"] == "loading"


async def test_the_expected_number_of_rows_is_held_against_what_came(home: AppHarness) -> None:
    """A sender that died in the middle looks like a whole file: `expect` tells."""
    made = await make(home, addresses=None, recipients="upload")
    url = f"/v1/broadcasts/{made['id']}/recipients"
    short = await home.http.post(url, params={"expect": 3}, content=b'"ada"\n"bob"\n', headers=NDJSON)
    assert short.status_code == 422
    whole = await home.http.post(url, params={"expect": 3}, content=b'"ada"\n"bob"\n"eve"\n', headers=NDJSON)
    assert whole.json()["state"] == "running"


async def test_freezing_can_be_a_call_of_its_own(home: AppHarness) -> None:
    """Look before you leap: upload without freezing, then freeze."""
    made = await make(home, addresses=None, recipients="upload")
    url = f"/v1/broadcasts/{made['id']}"
    told = await home.http.post(f"{url}/recipients", params={"freeze": False}, content=b'"ada"\n', headers=NDJSON)
    assert (told.json()["state"], told.json()["total"]) == ("loading", 1)
    assert (await home.http.post(f"{url}/freeze")).json()["state"] == "running"
    assert (await home.http.post(f"{url}/freeze")).status_code == 409


@both
async def test_fifty_calls_with_one_key_make_one_broadcast(home: AppHarness) -> None:
    """B4: first answer again with Idempotency-Replayed, 409 for a twin under way, 422 for another body."""
    client = home.client(**{"idempotency-key": "k1"})
    answers = await asyncio.gather(*(client.post("/v1/broadcasts", json=BODY) for _ in range(50)))
    assert {answer.status_code for answer in answers} <= {201, 409}
    assert len({answer.json()["id"] for answer in answers if answer.status_code == 201}) == 1

    again = await client.post("/v1/broadcasts", json=BODY)
    assert (again.status_code, again.headers["idempotency-replayed"]) == (201, "true")
    assert (await client.post("/v1/broadcasts", json=BODY | {"text": "ho"})).status_code == 422
    assert len((await home.http.get("/v1/broadcasts")).json()["items"]) == 1
    await client.aclose()


@both
async def test_fifty_triggers_start_it_once(home: AppHarness) -> None:
    """B1: every call is answered, one start."""
    sent: list[str] = []

    def script(message: Message) -> Outcome:
        sent.append(message.recipient)
        return Done()

    home.script("out", script)
    made = await make(home, trigger="MANUAL")
    url = f"/v1/broadcasts/{made['id']}/trigger"
    answers = await asyncio.gather(*(home.http.post(url) for _ in range(50)))
    await finish(home)

    assert {answer.status_code for answer in answers} == {200}
    assert sorted(sent) == ["ada", "bob", "eve"]


async def test_wishes_that_its_state_does_not_allow_are_409(home: AppHarness) -> None:
    """Each says what it is and what to do."""
    made = await make(home)
    await finish(home)
    for verb in ("pause", "resume", "cancel", "retry", "freeze"):
        answer = await home.http.post(f"/v1/broadcasts/{made['id']}/{verb}")
        assert answer.status_code == 409, (verb, answer.text)
        assert answer.json()["error"]["remedy"]
    assert (await home.http.patch(f"/v1/broadcasts/{made['id']}", json={"per_second": 5})).status_code == 409
    for verb in ("trigger", "pause", "resume", "cancel", "retry", "freeze"):
        assert (await home.http.post(f"/v1/broadcasts/nope/{verb}")).status_code == 404


async def test_pause_resume_cancel_and_rate_through_the_api(home: AppHarness) -> None:
    """The whole panel."""
    made = await make(home, per_second=1)
    url = f"/v1/broadcasts/{made['id']}"
    paused = (await home.http.post(f"{url}/pause", json={"reason": "tea"})).json()
    assert (paused["state"], paused["reason"], paused["actions"]) == ("paused", "tea", ["resume", "cancel"])
    await finish(home)
    assert (await show(home, made["id"]))["counts"]["waiting"] == 3
    assert (await home.http.patch(url, json={"per_second": 100})).json()["options"]["per_second"] == 100
    assert (await home.http.post(f"{url}/resume")).json()["state"] == "running"
    assert (await home.http.post(f"{url}/cancel", json={"reason": "no"})).json()["state"] == "cancelled"
    await finish(home)
    assert sum((await show(home, made["id"]))["counts"].values()) == 3


async def test_lists_have_cursors_and_refuse_what_they_do_not_know(home: AppHarness) -> None:
    """limit, after, items, next; a misspelt filter is refused."""
    ids = [(await make(home, trigger="MANUAL"))["id"] for _ in range(3)]
    first = (await home.http.get("/v1/broadcasts", params={"limit": 2})).json()
    rest = (await home.http.get("/v1/broadcasts", params={"limit": 2, "after": first["next"]})).json()
    assert {row["id"] for row in first["items"] + rest["items"]} == set(ids)
    assert rest["next"] is None
    for bad in ({"limit": 0}, {"state": "gone"}, {"stat": "new"}, {"after": "x" * 100}):
        assert (await home.http.get("/v1/broadcasts", params=bad)).status_code == 422, bad
    assert (await home.http.get("/v1/broadcasts/counts", params={"ids": ""})).status_code == 422
    assert (await home.http.get(f"/v1/broadcasts/{ids[0]}/export?format=xlsx")).status_code == 422
    assert (await home.http.get("/v1/broadcasts/reports?xref=none")).status_code == 404


async def test_a_frozen_recipient_shows_up_among_messages_with_its_broadcasts_words(home: AppHarness) -> None:
    """A recipient is a message like any other: the content is the broadcast's."""
    made = await make(home)
    await finish(home)
    items = await home.everything()

    assert {row["text"] for row in items} == {"hello"}
    assert {row["to"] for row in items} == {"ada", "bob", "eve"}
    assert made["content"] == {"text": "hello"}


async def test_a_break_in_the_middle_of_an_upload_leaves_it_ready_to_go_on(
    home: AppHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection is cut: nothing is sent, and the same upload again is taken to its end."""
    monkeypatch.setattr(type(home.app.store), "bulk", 10)
    made = await make(home, addresses=None, recipients="upload")
    url = f"/v1/broadcasts/{made['id']}/recipients"
    whole = "".join(f'"p{n:03}"\n' for n in range(95)).encode()

    async def cut() -> AsyncIterator[bytes]:
        yield whole[:300]
        raise ClientDisconnect

    broken = await home.http.post(url, content=cut(), headers=NDJSON)
    assert broken.json()["error"]["message"] == "the upload was interrupted"
    await finish(home)
    before = await show(home, made["id"])
    assert (before["state"], before["rows"]) == ("loading", 40)
    told = (await home.http.post(url, content=whole, headers=NDJSON)).json()

    assert (told["total"], told["duplicates"], told["state"]) == (95, 0, "running")


async def test_a_refused_one_leaves_nothing_behind_at_the_api_and_the_page(home: AppHarness) -> None:
    """B4: 422 with the reason; no broadcast is listed, and the key can be used again."""
    http, key = home.http, {"idempotency-key": "k"}
    assert (await http.post("/v1/lists", json={"name": "none"})).status_code == 201
    body = {"channel": "out", "text": "hello", "list": "none"}
    for _ in range(2):
        refused = await http.post("/v1/broadcasts", json=body, headers=key)
        assert (refused.status_code, "there are no recipients" in refused.text) == (422, True)
    page = await http.post("/broadcasts", data=body | {"trigger": "MANUAL", "key": "p"})
    assert (page.status_code, "There are no recipients" in page.text) == (422, True)
    assert (await http.get("/v1/broadcasts")).json()["items"] == []

    again = await http.post("/v1/broadcasts", json=BODY, headers=key)
    assert again.status_code == 201 and "idempotency-replayed" not in again.headers


# -- the command line


def test_a_file_that_is_refused_leaves_nothing_behind(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """B4: neither the broadcast nor its key stays; mended, the same command makes it."""
    monkeypatch.chdir(folder)
    people = folder / "people.csv"
    words = ["--channel", "out", "--text", "hi", "--file", "people.csv", "--manual", "--key", "k"]

    def broadcasts(*words: str) -> Any:
        program(["broadcasts", *words, "--json"], standalone_mode=False)
        return json.loads(capsys.readouterr().out)

    with pytest.raises(Invalid, match="cannot be read"):
        broadcasts("create", *words)
    people.write_text("address,name\nada,Ada\n,Bob\n")
    with pytest.raises(Invalid, match="row 3: the address is"):
        broadcasts("create", *words)
    assert broadcasts("list")["items"] == []
    people.write_text("address\nada\nbob\n")
    assert broadcasts("create", *words)["total"] == 2


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A place with one channel that does nothing."""
    (tmp_path / "tidings.toml").write_text('[channels.out]\nkind = "noop"\n')
    return tmp_path


def test_the_command_line_makes_fills_looks_and_stops(folder: Path) -> None:
    """Each verb, with JSON for programs; a file that does not exist is noticed before anything is created."""
    missing = run("broadcasts", "create", "--channel", "out", "--text", "hi", "--file", "no.csv", folder=folder)
    assert missing.stdout == ""
    assert missing.stderr == "error: no.csv cannot be read (No such file or directory). Check the path\n"
    assert json.loads(run("broadcasts", "list", "--json", folder=folder).stdout)["items"] == []
    (folder / "people.csv").write_text("address,name\nada,Ada\nbob,Bob\nada,Ada\n")
    words = (
        "broadcasts", "create", "--channel", "out", "--text", "hi", "--file", "people.csv", "--manual",
        "--xref", "x1", "--quiet-hours", "22:00-07:00", "--key", "k1", "--json",
    )  # fmt: skip
    made, again = run(*words, folder=folder), run(*words, folder=folder)
    assert (made.returncode, again.returncode) == (0, 0), made.stderr + again.stderr
    row = json.loads(made.stdout)
    assert json.loads(again.stdout)["id"] == row["id"], "the same key made a second one (B4)"
    assert (row["state"], row["total"], row["duplicates"]) == ("ready", 2, 1)
    id_ = row["id"]

    listed = run("broadcasts", "list", folder=folder).stdout.splitlines()
    assert listed[1].startswith(f"{id_}\tready")
    assert "actions\ttrigger, cancel" in run("broadcasts", "show", id_, folder=folder).stdout
    assert "started: 2 waiting of 2" in run("broadcasts", "trigger", id_, folder=folder).stdout
    assert "paused" in run("broadcasts", "pause", id_, "--reason", "tea", folder=folder).stdout
    assert "new rate" in run("broadcasts", "rate", id_, "5", folder=folder).stdout
    assert "resumed" in run("broadcasts", "resume", id_, folder=folder).stdout
    assert run("broadcasts", "retry", id_, folder=folder).returncode == 2
    assert run("broadcasts", "cancel", id_, folder=folder).returncode == 0
    exported = run("broadcasts", "export", id_, "--exact", folder=folder).stdout
    assert [line.split(",")[0] for line in exported.splitlines()] == ['"address"', '"ada"', '"bob"']
    watched = run("broadcasts", "watch", id_, folder=folder)
    assert (watched.returncode, watched.stdout) == (1, "cancelled: 2 cancelled of 2\n")
    assert "x1\t1\t2" in run("broadcasts", "reports", folder=folder).stdout
    assert "ada\tcancelled" in run("broadcasts", "recipients", id_, folder=folder).stdout


def test_the_command_line_refuses_in_one_sentence(folder: Path) -> None:
    """Exit code 2, one line on standard error, no traceback."""
    (folder / "bad.csv").write_text("address,name\nada\n")
    for words in (
        ("create", "--channel", "nope", "--text", "hi", "--to", "ada"),
        ("create", "--channel", "out", "--text", "hi"),
        ("create", "--channel", "out", "--text", "hi", "--to", "ada", "--quiet-hours", "late"),
        ("create", "--channel", "out", "--text", "hi", "--file", "bad.csv"),
        ("create", "--channel", "out", "--text", "hi", "--file", "nope.csv"),
        ("create", "--channel", "out", "--template", "hi", "--to", "ada", "--var", "x"),
        ("show", "nope"),
        ("rate", "nope", "fast"),
    ):
        done = run("broadcasts", *words, folder=folder)
        assert done.returncode == 2, words
        assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1, done.stderr
