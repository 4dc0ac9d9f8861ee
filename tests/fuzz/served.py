"""A real `tidings serve` behind a key, with one of everything in it, and a fuzzer that is let loose on it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx

from tidings.model.time import SECOND, iso
from tidings.wire.webhook_signatures import parse_secret, signature_headers

from ..acceptance.program import Serving, environment, serving

KEY = "0123456789abcdef0123456789abcdef"
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
HERE = Path(__file__).parent
SETTINGS = f"""
api_keys = ["{KEY}"]
events_private = true
sandbox = false
log_format = "json"
trusted_proxies = ["127.0.0.1"]
encryption_keys = ["{KEY * 2}"]

[channels.phone]
kind = "noop"

[channels.mail]
kind = "noop"
on_unknown = "hold"

[channels.crew]
kind = "noop"

[inbound]
enabled = true
admins = ["phone:boss"]

[inbound.calendar]
kind = "builtin"

[inbound.sources.crew]
kind = "webhook"
secrets = ["{SECRET}"]
"""


@contextmanager
def served(folder: Path, database: str, more: str = "") -> Iterator[Serving]:
    """The process, with these settings besides."""
    path = folder / "tidings.toml"
    path.write_text(SETTINGS + more)
    path.chmod(0o600)
    with serving(folder, "--database", database) as running:
        yield running


@contextmanager
def engine(folder: Path, database: str) -> Iterator[tuple[str, list[str]]]:
    """Its address, and its log as it grows."""
    with served(folder, database) as running:
        yield running.address("dashboard"), running.logged


def fill(url: str) -> dict[str, list[str]]:
    """One of everything; gives ids by area."""
    with httpx.Client(base_url=url, headers={"x-api-key": KEY}, timeout=30) as http:

        def post(path: str, body: Mapping[str, object]) -> str:
            answer = http.post(path, json=body)
            assert answer.status_code in (200, 201, 202), answer.text
            return str(answer.json().get("id") or answer.json().get("name"))

        message = {"channel": "phone", "to": "ada", "text": "hello"}
        rule = {"daily": "09:00"}
        known = {
            "messages": [post("/v1/messages", message), post("/v1/messages", {**message, "in": "1h"})],
            "schedules": [post("/v1/schedules", {"name": "s", "rule": rule, "message": message})],
            "broadcasts": [
                post("/v1/broadcasts", {"name": "b", "channel": "phone", "text": "t", "trigger": trigger, **to})
                for trigger, to in (("MANUAL", {"addresses": ["ada"]}), ("MANUAL", {"recipients": "upload"}))
            ],
            "contacts": [post("/v1/contacts", {"name": "Ada", "addresses": {"phone": "ada"}})],
            "lists": [post("/v1/lists", {"name": "crew"})],
            "subscriptions": [post("/v1/subscriptions", {"url": "http://127.0.0.1:9/x", "events": ["*"]})],
            "keys": [post("/v1/keys", {"name": "k", "role": "viewer"})],
            "channels": ["phone", "mail"],
            "callbacks": ["phone"],
            "inbound": ["crew"],
            "templates": [post("/v1/templates", {"name": "hello", "text": "Hello"}) and "hello"],
            "conversations": ["crew/c1"],
        }
        assert http.put("/v1/roster", json={"sender": "1", "name": "A", "squad": "42"}).is_success
        known["calendar"] = [post("/v1/calendar/changes", _shift())]
        _say(http)
        known["inbox"] = [one["id"] for one in http.get("/v1/inbox").json()["items"]]
        known["cases"] = [one["id"] for one in http.get("/v1/cases").json()["items"]]
        return known


def fuzz(url: str, folder: Path, known: dict[str, list[str]], *words: str) -> subprocess.CompletedProcess[str]:
    """Run the fuzzer to its end, with the description as it is served."""
    description = folder / "openapi.json"
    description.write_bytes(httpx.get(f"{url}/openapi.json", headers={"x-api-key": KEY}, timeout=60).content)
    command = [sys.executable, "-m", "schemathesis.cli", "--config-file", str(HERE / "schemathesis.toml")]
    options = ["--url", url, "--checks", "all", "--warnings", "off"]
    told = {"SCHEMATHESIS_HOOKS": "tests.fuzz.hooks", "FUZZ_KEY": KEY, "FUZZ_KNOWN": json.dumps(known)}
    return subprocess.run(
        [*command, "run", str(description), *options, *words], env=environment(told), cwd=HERE.parents[1],
        text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
    )  # fmt: skip


def troubles(logged: list[str]) -> list[str]:
    """What the engine itself complained about."""
    return [line for line in logged if '"level": "error"' in line or '"level":"error"' in line or "Traceback" in line]


def _shift() -> dict[str, object]:
    return {"action": "add", "squad": "42", "date": "2030-01-15", "start": "1800", "end": "0600"}


def _say(http: httpx.Client) -> None:
    """Two things are heard: a shift that is clear, and words that need a person."""
    now = time.time_ns() // 1000
    for number, text in enumerate(("42 has no crew on 2030-01-16 1800-0600", "can somebody help us please")):
        said = {"id": str(number), "conversation": "c1", "sender": "1", "name": "A", "text": text}
        body = json.dumps({**said, "at": iso(now)}).encode()
        signed = signature_headers([parse_secret(SECRET)], f"m{number}", now // SECOND, body)
        assert http.post("/inbound/crew", content=body, headers=signed).is_success
