"""Templates through the faces: saved, tried and sent with, and every refusal changes nothing."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from tidings.cli.errors import run_safely
from tidings.cli.program import program

from .harness import AppHarness, house, in_one_house

both = pytest.mark.parametrize("home", ["sqlite", "postgres"], indirect=True)
TEMPLATE: dict[str, Any] = {
    "name": "bill",
    "subject": "Bill for {{ name }}",
    "text": "{{ name }} owes {{ amount|number(2) }} by {{ due|date }}",
    "variables": {
        "name": "text",
        "amount": {"type": "number", "example": 1234.5},
        "due": {"type": "date", "default": "2027-02-01"},
    },
}
SEND = {"channel": "out", "to": "ada", "template": "bill"}


@pytest.fixture
async def home(request: pytest.FixtureRequest, sqlite_url: str) -> AsyncIterator[AppHarness]:
    """An engine on SQLite, or on what the test names."""
    on_postgres = getattr(request, "param", "sqlite") == "postgres"
    async with house(request.getfixturevalue("postgres_url") if on_postgres else sqlite_url) as built:
        yield built


async def save(home: AppHarness, **more: Any) -> dict[str, Any]:
    """Save the template; gives the answer."""
    answer = await home.http.post("/v1/templates", json=TEMPLATE | more)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


# -- the API


@both
async def test_a_template_goes_all_the_way(home: AppHarness) -> None:
    """Issue 3, part 5: saved, tried, edited, sent with by name and by version, retired."""
    made = await save(home)
    tried = await home.http.post("/v1/templates/bill/preview", json={"variables": {"name": "Ada"}})
    edited = await home.http.post("/v1/templates/bill/versions", json={"text": "New"})
    newest = await home.show(await home.accept(**SEND, text=None))
    values = {"name": "Ada", "amount": 5}
    first = await home.show(await home.accept(**SEND, text=None, template_version=1, variables=values))
    await home.http.post(f"/v1/templates/{made['id']}/retire")
    late = await home.http.post("/v1/messages", json=SEND)

    assert tried.json()["text"] == "Ada owes 1,234.50 by 1 February 2027"
    assert tried.json()["examples"] == ["amount"]
    assert edited.json()["version"] == 2
    assert newest["text"] == "New"
    assert (first["text"], first["subject"]) == ("Ada owes 5.00 by 1 February 2027", "Bill for Ada")
    assert (late.status_code, late.json()["error"]["field"]) == (409, "template")
    shown = await home.http.get("/v1/templates/bill", params={"version": 1})
    assert shown.json()["text"] == TEMPLATE["text"]
    listed = await home.http.get("/v1/templates/bill/versions", params={"limit": 1})
    assert ([item["version"] for item in listed.json()["items"]], listed.json()["next"]) == ([2], "2")


@both
async def test_the_same_call_saves_once(home: AppHarness) -> None:
    """B4: fifty at once with one key make one template; a replay says so; another body is a 422."""
    key = {"Idempotency-Key": "k"}
    answers = await asyncio.gather(*(home.http.post("/v1/templates", json=TEMPLATE, headers=key) for _ in range(50)))
    again = await home.http.post("/v1/templates", json=TEMPLATE, headers=key)
    other = await home.http.post("/v1/templates", json=TEMPLATE | {"text": "x"}, headers=key)

    assert {answer.status_code for answer in answers} <= {201, 409}
    assert len({answer.json()["id"] for answer in answers if answer.status_code == 201}) == 1
    assert again.headers["idempotency-replayed"] == "true"
    assert other.status_code == 422
    assert len((await home.http.get("/v1/templates")).json()["items"]) == 1


BAD = [
    pytest.param({"name": "a/b"}, 422, "name", id="a name that is no name"),
    pytest.param({"name": "01a1e20e-e0f7-7367-af63-318ca6809932"}, 422, "name", id="a name like an id"),
    pytest.param({"text": "{{ nme }}"}, 422, "text", id="unknown variable"),
    pytest.param({"text": "{% for i in range(10**9) %}{% endfor %}"}, 422, "text", id="a bomb"),
    pytest.param({"subject": "{{"}, 422, "subject", id="broken subject"),
    pytest.param({"data": {"a": ["{{ x }}"]}}, 422, "data.a[0]", id="unknown variable in data"),
    pytest.param({"text": "", "subject": None}, 422, "text", id="nothing to say"),
    pytest.param({"text": "x" * 70_000}, 413, "text", id="too large"),
    pytest.param({"variables": {"name": "word"}}, 422, "variables.name", id="unknown type"),
    pytest.param({"txt": "x"}, 422, "txt", id="misspelt field"),
]


@in_one_house(("more", "status", "field"), BAD)
async def test_a_bad_template_is_refused(home: AppHarness, more: dict[str, Any], status: int, field: str) -> None:
    """Issue 3, bad input: the field is named with a remedy, and nothing is saved."""
    answer = await home.http.post("/v1/templates", json=TEMPLATE | more)

    error = answer.json()["error"]
    assert (answer.status_code, error["field"]) == (status, field)
    assert error["remedy"]
    assert (await home.http.get("/v1/templates")).json()["items"] == []


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({}, "variables.name"),
        ({"variables": {"name": "Ada", "amount": "much"}}, "variables.amount"),
        ({"variables": {"name": "Ada", "amount": 1, "amuont": 1}}, "variables.amuont"),
        ({"text": "x", "variables": {"name": "Ada", "amount": 1}}, "text"),
        ({"template": None, "text": "x", "variables": {}}, "variables"),
        ({"template": None, "text": "x", "template_version": 1}, "template_version"),
        ({"template_version": 9, "variables": {"name": "Ada", "amount": 1}}, "version"),
        ({"template": "nope"}, "template"),
        ({"template": "\x00"}, "template"),
    ],
)
async def test_a_message_that_cannot_be_rendered_is_refused(home: AppHarness, more: Any, field: str) -> None:
    """Issue 3, part 5: a missing variable is told before anything is sent; no message is left behind."""
    await save(home)

    answer = await home.http.post("/v1/messages", json=SEND | more)

    assert answer.status_code in (404, 422), answer.text
    assert answer.json()["error"]["field"] == field
    assert await home.everything() == []


async def test_a_line_of_a_bulk_call_may_name_a_template(home: AppHarness) -> None:
    """Each line stands alone: the one without its variable is told with its number."""
    await save(home)
    lines = [
        SEND | {"variables": {"name": "Ada", "amount": 1}},
        SEND,
        SEND | {"variables": {"name": "Bo", "amount": 2}},
    ]

    answer = await home.http.post(
        "/v1/messages:bulk", content="\n".join(map(json.dumps, lines)), headers={"content-type": "application/x-ndjson"}
    )

    assert answer.status_code == 200, answer.text
    assert sorted(item["subject"] for item in await home.everything()) == ["Bill for Ada", "Bill for Bo"]
    assert "variables.name" in answer.text


async def test_what_is_not_saved_can_be_tried(home: AppHarness) -> None:
    """A sample contact decides language and zone; nothing is kept."""
    body = {
        "template": {"text": "{{ contact.name }} {{ at|date }} {{ at|time }}", "variables": {"at": "date"}},
        "variables": {"at": "2027-01-15T23:30:00Z"},
        "contact": {"name": "Uwe", "language": "de", "timezone": "Europe/Berlin"},
    }

    answer = await home.http.post("/v1/templates:preview", json=body)
    wrong = await home.http.post("/v1/templates:preview", json=body | {"contact": {"timezone": "Berlin"}})

    assert answer.json()["text"] == "Uwe 16. Januar 2027 00:30"
    assert wrong.json()["error"]["field"] == "contact.timezone"
    assert "Europe/Berlin" in wrong.json()["error"]["remedy"]
    assert (await home.http.get("/v1/templates")).json()["items"] == []


# -- the command line

Tidings = Callable[..., str]


@pytest.fixture
def tidings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Tidings:
    """The program in this process; gives all that it said, and checks its exit code."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("TIDINGS_")]:
        monkeypatch.delenv(name)

    def call(*words: str, code: int = 0) -> str:
        capfd.readouterr()
        ended = run_safely(lambda **options: program(list(words), prog_name="tidings", **options))
        said = "".join(capfd.readouterr())
        assert ended == code, said
        return said

    return call


def test_the_commands_do_the_same(tidings: Tidings) -> None:
    """Add, edit, list, show, preview, send with it, retire, restore."""
    gaps = ("--declare", "who", "--declare", "n:number=3")
    assert tidings("templates", "add", "hi", "-t", "Hi {{ who }} {{ n }}", *gaps).split()[1:] == ["hi", "1"]
    assert tidings("templates", "edit", "hi", "--subject", "For {{ who }}").split()[1:] == ["hi", "2"]
    assert json.loads(tidings("templates", "show", "hi", "--json"))["text"] == "Hi {{ who }} {{ n }}"
    assert "text\tHi Ada 3" in tidings("templates", "preview", "hi", "--var", "who=Ada")
    send = ("send", "-c", "console", "--to", "ada", "--template", "hi")
    sent = tidings(*send, "--var", "who=Bo", "--var", "n=4")
    shown = json.loads(tidings("messages", "show", sent.split()[0], "--json"))
    assert (shown["text"], shown["subject"]) == ("Hi Bo 4", "For Bo")
    assert "'who' is missing" in tidings(*send, code=2)
    assert "not declared" in tidings("templates", "edit", "hi", "-t", "{{ whom }}", code=2)
    assert "hi is retired" in tidings("templates", "retire", "hi")
    assert "hi" not in tidings("templates", "list").split()
    assert "hi" in tidings("templates", "list", "--retired").split()
    assert "hi is in use" in tidings("templates", "restore", "hi")
    assert len(tidings("templates", "versions", "hi").splitlines()) == 3


def test_a_template_comes_from_a_file(tidings: Tidings, tmp_path: Path) -> None:
    """With everything in it; a file that is no such thing is named, and so is an empty change."""
    content = {name: said for name, said in TEMPLATE.items() if name != "name"}
    (tmp_path / "bill.json").write_text(json.dumps(content))
    (tmp_path / "bad.json").write_text("[]")

    tidings("templates", "add", "bill", "--file", "bill.json")

    assert json.loads(tidings("templates", "show", "bill", "--json"))["subject"] == TEMPLATE["subject"]
    assert "not a JSON object" in tidings("templates", "add", "x", "--file", "bad.json", code=2)
    assert "cannot be read" in tidings("templates", "add", "x", "--file", "none.json", code=2)
    assert "nothing to change" in tidings("templates", "edit", "bill", code=2)
    assert "is not NAME=VALUE" in tidings("templates", "preview", "bill", "--var", "name", code=2)
