"""One of everything that a tenant can have, and every row that it is kept in."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import asyncpg
import orjson

from tidings.config import ChannelSettings, InboundSettings
from tidings.inbound.sources.settings import read_source
from tidings.inbound.workflow.settings import read as read_workflow
from tidings.model.message import Message
from tidings.model.outcome import Done, Outcome, Reject
from tidings.model.task import Category
from tidings.model.time import SECOND, iso
from tidings.wire.webhook_signatures import parse_secret, signature_headers

from ..acceptance.harness import AppHarness

NAME = "zq7name"  # what a stranger may have guessed: names, addresses, keys
CANARY = "Zq7Canary"  # what it must never see
SIGNING = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
NDJSON = {"content-type": "application/x-ndjson"}
TALK = "no crew for squad 99 saturday night", "squad 98", "squad 97"  # three times unclear: a case

Ids = Mapping[str, Mapping[str, str]]
Rows = Mapping[str, Counter[str]]

# Rows of the whole engine that any call may change.
SHARED = frozenset({"audit_chain", "sqlite_sequence"})


def settings(folder: Path) -> dict[str, Any]:
    """An engine in which a tenant can have everything."""
    crew = read_source("crew", {"kind": "webhook", "secrets": [SIGNING]}, production=True)
    workflow = read_workflow({"enabled": True, "admins": ["out:boss"], "runner": "plain"})
    channels = {"crew": ChannelSettings("noop"), "out": ChannelSettings("noop")}
    inbound = InboundSettings(sources={"crew": crew}, workflow=workflow)
    return {"inbound": inbound, "channels": channels, "migration_api_files": True, "migration_folder": folder}


class Owner:
    """The tenant `default`, which fills its house."""

    def __init__(self, home: AppHarness) -> None:
        self._home, self._http = home, home.http

    async def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Create something; gives the answer."""
        answer = await self._http.post(path, json=body)
        assert answer.status_code < 300, answer.text
        made: dict[str, Any] = answer.json()
        return made

    async def items(self, path: str) -> list[dict[str, Any]]:
        """What a listing shows."""
        found: list[dict[str, Any]] = (await self._http.get(path)).json()["items"]
        assert found, f"{path} is empty"
        return found

    async def fill(self, folder: Path) -> Ids:
        """Create one of everything; gives the parts of paths by area."""
        self._home.script("out", _answer)
        ids = await self._messages()
        ids |= await self._people()
        ids |= await self._chat()
        ids |= {"migrations": await self._migration(folder)}
        hook = await self.post("/v1/subscriptions", {"url": f"https://example.com/{CANARY}", "events": ["*"]})
        key = await self.post("/v1/keys", {"name": f"{NAME} {CANARY}", "role": "viewer"})
        ids |= {"channels": {"name": "out"}}  # the engine's own, but with secrets of each tenant
        return ids | {"subscriptions": {"id": hook["id"]}, "keys": {"id": key["id"]}}

    async def _messages(self) -> dict[str, Mapping[str, str]]:
        message = {"channel": "out", "to": NAME, "text": CANARY, "in": "1h"}
        sent = await self.post("/v1/messages", message)
        dead = await self.post("/v1/messages", {"channel": "out", "to": "dead", "text": CANARY})
        again = {key: value for key, value in message.items() if key != "in"}
        plan = {"name": f"{NAME} {CANARY}", "rule": {"daily": "09:00"}, "message": again}
        schedule = await self.post("/v1/schedules", plan)
        news = {"name": f"{NAME} {CANARY}", "channel": "out", "text": CANARY, "xref": NAME,
                "addresses": [f"{NAME}-1"], "trigger": "MANUAL"}  # fmt: skip
        broadcast = await self.post("/v1/broadcasts", news)
        await self.post("/v1/templates", {"name": NAME, "text": CANARY})
        return {
            "messages": {"id": sent["id"], "day": str(iso(self._home.clock.now()))[:10]},
            "dead": {"id": dead["id"]},
            "schedules": {"id": schedule["id"]},
            "broadcasts": {"id": broadcast["id"]},
            "templates": {"name": NAME},
        }

    async def _people(self) -> dict[str, Mapping[str, str]]:
        contact = await self.post("/v1/contacts", {"name": CANARY, "addresses": {"out": f"{NAME}-c"}})
        await self.post("/v1/lists", {"name": NAME})
        await self.post(f"/v1/lists/{NAME}/members", {"contacts": [contact["id"]]})
        await self.post("/v1/suppressions", {"address": f"{NAME}-s", "reason": CANARY})
        entry = {"sender": NAME, "name": CANARY, "squad": "42", "source": "crew"}
        assert (await self._http.put("/v1/roster", json=entry)).status_code < 300
        return {"contacts": {"id": contact["id"]}, "lists": {"list": NAME, "id": NAME}}

    async def _chat(self) -> dict[str, Mapping[str, str]]:
        for number, text in enumerate(TALK):
            self._home.clock.advance(1)
            said = {"id": str(number), "conversation": NAME, "sender": NAME, "name": CANARY, "text": text}
            body = orjson.dumps({**said, "at": iso(self._home.clock.now())})
            signed = signature_headers([parse_secret(SIGNING)], f"m{number}", self._home.clock.now() // SECOND, body)
            assert (await self._http.post("/inbound/crew", content=body, headers=signed)).status_code == 200
            await self._home.work()
        return {
            "inbox": {"id": (await self.items("/v1/inbox"))[0]["id"]},
            "conversations": {"name": f"crew/{NAME}"},
            "cases": {"id": (await self.items("/v1/cases"))[0]["id"]},
            "notices": {"id": (await self.items("/v1/notices"))[0]["id"]},
        }

    async def _migration(self, folder: Path) -> Mapping[str, str]:
        """A job with a record that moved, and is in the crosswalk, and one that was set aside."""
        own = folder / "default"
        own.mkdir(parents=True)
        (own / "people.csv").write_text(f"id,name,mail\n{NAME},{CANARY},a@e.org\n2,{CANARY},wrong\n")
        fields = {"name": "name", "mail": {"path": "mail", "type": "email"}}
        source, target = {"kind": "csv", "path": "people.csv"}, {"kind": "csv", "path": "out.csv"}
        job = {"name": f"{NAME} {CANARY}", "source": source, "target": target}
        id_ = (await self.post("/v1/migrations", job | {"types": {"people": {"fields": fields}}}))["id"]
        await self.post(f"/v1/migrations/{id_}/run", {})
        for _ in range(20):
            self._home.clock.advance(1)
            await self._home.work()
        assert (await self._http.get(f"/v1/migrations/{id_}")).json()["counts"] == {"rejected": 1, "written": 1}
        await self.items(f"/v1/migrations/{id_}/crosswalk/people?source_id={NAME}")
        return {"id": id_, "type": "people", "source_id": NAME}


def _answer(message: Message) -> Outcome:
    return Reject(Category.VALIDATION, CANARY) if message.recipient == "dead" else Done("receipt-1")


async def rows_of(database: str, stranger: str) -> Rows:
    """Every row of every table by its content, but those of a stranger and of the whole engine."""
    read = _postgres_rows if database.startswith("postgres") else _sqlite_rows
    found = {table: rows for table, rows in (await read(database)).items() if table not in SHARED}
    return {
        table: Counter(str(sorted(row.items())) for row in rows if row.get("tenant") != stranger)
        for table, rows in found.items()
    }


async def _postgres_rows(database: str) -> dict[str, list[dict[str, object]]]:
    connection = await asyncpg.connect(database)
    try:
        names = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")
        return {name: [dict(row) for row in await connection.fetch(f'SELECT * FROM "{name}"')] for (name,) in names}
    finally:
        await connection.close()


async def _sqlite_rows(database: str) -> dict[str, list[dict[str, object]]]:
    connection = sqlite3.connect(f"file:{database.removeprefix('sqlite:///')}?mode=ro", uri=True)
    connection.row_factory = sqlite3.Row
    try:
        names = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
        return {name: [dict(row) for row in connection.execute(f'SELECT * FROM "{name}"')] for (name,) in names}
    finally:
        connection.close()
