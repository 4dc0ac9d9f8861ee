"""Small holes, each closed: climbing paths, printed secrets, formulas, metadata, plain AMQP, slow mail."""

from __future__ import annotations

import csv
import io
import json
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from email import message_from_bytes, policy
from pathlib import Path
from typing import Any

import pytest

from tidings.config import ChannelSettings
from tidings.model.errors import Invalid
from tidings.wire.mail import compose_mail, parse_mail, parse_mailboxes
from tidings.wire.ssrf_guard import ForbiddenUrl, SsrfRules, check_address, has_dot_segments

from ..acceptance.harness import CHANNELS, AppHarness, house
from ..acceptance.program import run
from ..time_limits import Limit

CONFIGURED = {
    **CHANNELS,
    "gate": ChannelSettings("http", {"url": "https://sms.example.org/send/{%address%}", "body": {}}),
    "mail": ChannelSettings("email", {"host": "127.0.0.1", "sender": "a@example.org", "security": "none"}),
}


@pytest.fixture(params=["sqlite", "postgres"])
async def home(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[AppHarness]:
    """An engine with an HTTP channel and a mail channel, on both databases."""
    url = request.getfixturevalue(f"{request.param}_url")
    opened = {"migration_folder": tmp_path, "migration_api_files": True}
    async with house(url, channels=CONFIGURED, **opened) as made:
        yield made


@pytest.mark.parametrize("to", ["..", ".", "%2e%2e", "..\\..", "."])
async def test_a_recipient_cannot_climb_the_path_of_an_http_channel(home: AppHarness, to: str) -> None:
    """Low: `..` as a recipient called https://sms.example.org/ instead of /send/..; it is refused."""
    answer = await home.http.post("/v1/messages", json={"channel": "gate", "to": to, "text": "x"})
    taken = await home.http.post("/v1/messages", json={"channel": "gate", "to": "a..b", "text": "x"})

    refused = to in (".", "..")  # the others are encoded, so they are plain words over there
    assert (answer.status_code, taken.status_code) == (422 if refused else 201, 201)
    assert not refused or answer.json()["error"]["field"] == "to"


@pytest.mark.parametrize(
    ("url", "wrong"),
    [
        ("https://e.org/a/../b", True),
        ("https://e.org/a/%2e%2E/b", True),
        ("https://e.org/a/.", True),
        ("https://e.org/a\\..\\b", True),
        ("/objects/../notes", True),
        ("https://e.org/a/..b/c...", False),
        ("https://e.org/a?next=/../x", False),
        ("https://e.org", False),
    ],
)
def test_a_step_that_climbs_is_known_however_it_is_spelled(url: str, wrong: bool) -> None:
    """Low: encoding the dots does not help, because a parser reads %2e as a dot."""
    assert has_dot_segments(url) is wrong


async def test_a_record_cannot_climb_the_path_of_an_http_target(home: AppHarness, tmp_path: Path) -> None:
    """Low: a key of `..` is set aside with its reason, and no call is made."""
    own = tmp_path / "default"
    own.mkdir()
    (own / "people.csv").write_text("id,name\n..,Ada\n")
    target = {"kind": "http", "url": "https://crm.example.org/people/{%key%}", "idempotent": True,
              "method": "PUT"}  # fmt: skip
    body = {"name": "m", "source": {"kind": "csv", "path": "people.csv"}, "target": target,
            "types": {"people": {"fields": {"name": "name"}}}}  # fmt: skip
    id_ = (await home.http.post("/v1/migrations", json=body)).json()["id"]
    await home.http.post(f"/v1/migrations/{id_}/run")
    for _ in range(5):
        home.clock.advance(1)
        await home.work()

    (row,) = (await home.http.get(f"/v1/migrations/{id_}/records")).json()["items"]
    assert row["failure"] == "validation" and "change the path" in row["reason"]


def test_the_configuration_is_printed_without_header_secrets_and_tokens_in_paths(tmp_path: Path) -> None:
    """Low: any header may carry a credential, and so may a step of a path; words and placeholders stay."""
    (tmp_path / "tidings.toml").write_text("""
[channels.gate]
kind = "http"
url = "https://hooks.example.org/services/T0000/xCANARYx1/{%address%}?k=CANARY"
body = {}
[channels.gate.headers]
X-Auth = "CANARY"
Cookie = "a=CANARY"
Accept = "text/plain"
X-Signed = "Bearer {%secrets.key%}"
[channels.gate.secrets]
key = "CANARY"
""")
    (tmp_path / "tidings.toml").chmod(0o600)
    for words in ((), ("--json",)):
        shown = run("config", *words, folder=tmp_path)
        assert shown.returncode == 0, shown.stderr
        assert "CANARY" not in shown.stdout + shown.stderr
        assert "https://hooks.example.org/services/***/***/{%address%}" in shown.stdout
        assert "text/plain" in shown.stdout and "Bearer {%secrets.key%}" in shown.stdout


async def test_names_of_columns_cannot_be_formulas_or_end_their_cell(home: AppHarness, tmp_path: Path) -> None:
    """S14: a source's field names stand in the head of an export; a quote in one opened a cell of its own."""
    own = tmp_path / "default"
    own.mkdir()
    evil = 'x","=HYPERLINK(1)'
    (own / "people.ndjson").write_text(json.dumps({"id": "1", "mail": "nope", evil: "a", "=1+1": "b"}) + "\n")
    body = {"name": "m", "source": {"kind": "ndjson", "path": "people.ndjson"},
            "target": {"kind": "ndjson", "path": "out.ndjson"},
            "types": {"people": {"fields": {"mail": {"path": "mail", "type": "email"}}}}}  # fmt: skip
    id_ = (await home.http.post("/v1/migrations", json=body)).json()["id"]
    await home.http.post(f"/v1/migrations/{id_}/run")
    for _ in range(5):
        home.clock.advance(1)
        await home.work()
    for form in ("csv", "csv-exact"):
        text = (await home.http.get(f"/v1/migrations/{id_}/dead/export", params={"format": form})).text
        head, row = csv.reader(io.StringIO(text))
        assert len(head) == len(row) and f"fields.{evil}" in head
        assert not any(name.startswith(("=", "+", "-", "@")) for name in head)


@pytest.mark.parametrize(
    "address",
    ["168.63.129.16", "::ffff:168.63.129.16", "169.254.169.254", "169.254.170.2", "100.100.100.200",
     "192.0.0.192", "fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254", "fd00:42::42", "fe80::a9fe:a9fe"],
)  # fmt: skip
def test_metadata_services_of_clouds_are_never_called(address: str) -> None:
    """S6a: not even where private addresses are allowed; Azure's counted as public."""
    for rules in (SsrfRules(), SsrfRules(allow_private=True, allow_http=True)):
        with pytest.raises(ForbiddenUrl):
            check_address(address, rules)
    assert check_address("fd00::1", SsrfRules(allow_private=True)) == "fd00::1"


def test_a_broker_without_tls_elsewhere_is_refused_at_the_start(tmp_path: Path) -> None:
    """Low: as a user starts it; the error names the setting that allows it, and repeats no password."""
    remote = {"TIDINGS_BROKER": "amqp://tidings:CANARY@192.0.2.1/", "TIDINGS_PORT": "0"}
    refused = run("serve", "--no-sandbox", folder=tmp_path, env=remote)
    assert refused.returncode == 78 and "broker_allow_plaintext" in refused.stderr
    assert "CANARY" not in refused.stderr and not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("url", "allowed"),
    [("amqp://127.0.0.1/", True), ("amqp://localhost:5672/x", True), ("amqp://[::1]/", True),
     ("amqps://rabbit.example.com/", True), ("amqp://rabbit/", False), ("amqp://10.0.0.1/", False),
     ("amqps://rabbit1/,amqps://rabbit2/", True), ("amqps://rabbit1/,amqp://rabbit2/", False)],
)  # fmt: skip
def test_plain_amqp_is_for_this_machine(url: str, allowed: bool) -> None:
    """Low: loopback needs no TLS."""
    from tidings.config import load
    from tidings.model.errors import Misconfigured

    settings = load(environ={"TIDINGS_BROKER": url}, folder=Path("/nonexistent"))
    opened = load(
        environ={"TIDINGS_BROKER": url, "TIDINGS_BROKER_ALLOW_PLAINTEXT": "true"}, folder=Path("/nonexistent")
    )
    opened.check()
    if allowed:
        settings.check()
    else:
        with pytest.raises(Misconfigured, match="in clear"):
            settings.check()


def test_a_mail_with_many_long_foreign_names_is_composed_at_once() -> None:
    """Low: 99 names of 200 letters took five seconds of the event loop; every name arrives as it was."""
    sender = parse_mailboxes("Å <a@example.org>", "sender")[0]
    cc = [f"{'é' * 200} <a{n}@example.org>" for n in range(99)]
    content: dict[str, Any] = {"text": "x", "subject": "Grüße " * 300, "data": {"cc": cc}}
    limit = Limit(0.5, clock=time.process_time)
    letter = parse_mail("ada@example.org", content, sender=sender, subject="", allow_from=False)
    raw = compose_mail(letter, id_="x", date=datetime(2026, 1, 1, tzinfo=UTC))
    assert not limit.is_over()

    mail = message_from_bytes(raw, policy=policy.default)
    assert mail["subject"] == content["subject"].strip() or mail["subject"] == content["subject"]
    assert [one.addr_spec for one in mail["cc"].addresses] == [f"a{n}@example.org" for n in range(99)]
    assert {one.display_name.replace(" ", "") for one in mail["cc"].addresses} == {"é" * 200}
    assert max(map(len, raw.split(b"\r\n"))) <= 78


@pytest.mark.parametrize(
    "cc", ["é" * 5000 + " <a@example.org>", "a@" + "é" * 20_000 + ".org", "a" + " " * 20_000 + "b", "a@b.org," * 20_000]
)
async def test_an_endless_address_is_refused_at_once(home: AppHarness, cc: str) -> None:
    """Low: through the API; the field is named, and the time does not grow with the input."""
    body = {"channel": "mail", "to": "a@example.org", "text": "x", "data": {"cc": cc}}
    limit = Limit(0.5, clock=time.process_time)
    answer = await home.http.post("/v1/messages", json=body)
    assert not limit.is_over()
    assert answer.status_code in (413, 422) and answer.json()["error"]["field"] == "data.cc"
    with pytest.raises(Invalid):
        parse_mailboxes("x" * 500 + "@example.org", "to")
