"""Simulated WAHA server: WhatsApp through sessions that are started, stopped, linked and logged out.

The routes are WAHA's, below `/waha`. `POST /sandbox/waha/{session}` sets any other state and also stands for
scanning the QR code; after `for_seconds` the session works again. States survive a restart. Fault by code: a
state, for one request. The QR code is available as text only (`format=raw`).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

import orjson
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from tidings.model.errors import Invalid, TooLarge
from tidings.sandbox.faults import FaultKind
from tidings.sandbox.ledger import SandboxEntry
from tidings.sandbox.provider_endpoint import json_object
from tidings.sandbox.receipts import ReceiptOrigin
from tidings.sandbox.responses import FaultyResponse, SandboxJson, read_body, read_command, with_error_response
from tidings.sandbox.sessions import asked_state
from tidings.sandbox.simulator import ProviderArrival, SandboxSimulator

CHANNEL = "waha"
STATES = (
    "STOPPED",
    "STARTING",
    "SCAN_QR_CODE",
    "PASSKEY_REQUIRED",
    "PASSKEY_CONFIRMATION_REQUIRED",
    "WORKING",
    "FAILED",
)
MAX_SESSIONS = 100

_ACTIONS: Mapping[str, str] = {"start": "WORKING", "restart": "WORKING", "stop": "STOPPED", "logout": "SCAN_QR_CODE"}
_CHAT = re.compile(r"[0-9-]{5,49}@(?:c\.us|s\.whatsapp\.net|g\.us|lid|newsletter)", re.ASCII)
_ME = {"id": "15550000000@c.us", "pushName": "Sandbox"}


def routes(world: SandboxSimulator) -> Sequence[BaseRoute]:
    """Return WAHA's routes, and one to set the state of a session."""
    waha = _WahaProvider(world)
    return [
        Route("/waha/api/sendText", with_error_response(waha.send_text), methods=["POST"]),
        Route("/waha/ping", waha.ping, methods=["GET"]),
        Route("/waha/health", waha.health, methods=["GET"]),
        Route("/waha/api/server/version", waha.version, methods=["GET"]),
        Route("/waha/api/sessions", waha.list, methods=["GET"]),
        Route("/waha/api/sessions", with_error_response(waha.create), methods=["POST"]),
        Route("/waha/api/sessions/{session}", waha.show, methods=["GET"]),
        Route("/waha/api/sessions/{session}", waha.configure, methods=["PUT"]),
        Route("/waha/api/sessions/{session}", waha.delete, methods=["DELETE"]),
        Route("/waha/api/sessions/{session}/me", waha.me, methods=["GET"]),
        Route("/waha/api/sessions/{session}/{action}", with_error_response(waha.move), methods=["POST"]),
        Route("/waha/api/contacts/check-exists", waha.exists, methods=["GET"]),
        Route("/waha/api/{session}/auth/qr", waha.code, methods=["GET"]),
        Route("/waha/api/{session}/new-message-id", waha.new_id, methods=["GET"]),
        Route("/sandbox/waha/{session}", with_error_response(waha.put_into), methods=["POST"]),
    ]


class _WahaProvider:
    """All sessions; `default` is linked from the start."""

    def __init__(self, world: SandboxSimulator) -> None:
        self._world = world
        self._sessions = world.sessions
        self._numbers = itertools.count(1)

    async def ping(self, _: Request) -> Response:
        """Return pong."""
        return SandboxJson({"message": "pong"})

    async def health(self, _: Request) -> Response:
        """Return the health."""
        return SandboxJson({"status": "ok", "info": {}, "error": {}, "details": {}})

    async def version(self, request: Request) -> Response:
        """Return the version."""
        return _locked(request) or SandboxJson({"version": "2026.7.1", "engine": "WEBJS", "tier": "CORE"})

    async def list(self, request: Request) -> Response:
        """Return all sessions; stopped ones only with `all`."""
        every = request.query_params.get("all") == "true"
        names = self._sessions.names(CHANNEL)
        shown = [self._shown(name) for name in names if every or self._state(name) != "STOPPED"]
        return _locked(request) or SandboxJson(shown)

    async def create(self, request: Request) -> Response:
        """Create a session whose QR code must be scanned."""
        try:
            body = orjson.loads(await read_body(request.receive) or b"{}")
        except orjson.JSONDecodeError:
            return _wrong("The body is not JSON")
        name = body.get("name") if isinstance(body, dict) else None
        if len(self._sessions.names(CHANNEL)) >= MAX_SESSIONS or not isinstance(name, str | None):
            return _wrong("name must be a text, or too many sessions")
        if refused := _locked(request):
            return refused
        name = name or f"session_{next(self._numbers)}"
        self._put(name, "SCAN_QR_CODE")
        if unkept := self._point(name, body):
            return unkept
        return SandboxJson({**self._shown(name), "status": "STARTING"}, status_code=201)

    async def configure(self, request: Request) -> Response:
        """Set a session's configuration, of which only webhooks are used."""
        if refused := self._missing(request):
            return refused
        name = request.path_params["session"]
        body = json_object(await read_body(request.receive)) or {}
        return self._point(name, body) or SandboxJson(self._shown(name))

    def _point(self, name: str, body: Mapping[str, Any]) -> Response | None:
        """Set the callback URL of a session: the first of its webhooks, with its key."""
        config = body.get("config")
        hooks = config.get("webhooks") if isinstance(config, dict) else None
        first = hooks[0] if isinstance(hooks, list) and hooks and isinstance(hooks[0], dict) else {}
        key = first.get("hmac")
        secret = key.get("key") if isinstance(key, dict) else ""
        try:
            self._world.callbacks.point(CHANNEL, name, str(first.get("url") or ""), str(secret or ""))
        except Invalid as error:
            return _wrong(str(error))
        return None

    async def show(self, request: Request) -> Response:
        """Return one session."""
        return self._missing(request) or SandboxJson(self._shown(request.path_params["session"]))

    async def delete(self, request: Request) -> Response:
        """Delete a session; a missing one is fine."""
        if refused := _locked(request):
            return refused
        self._sessions.drop(CHANNEL, request.path_params["session"])
        return Response(status_code=200)

    async def me(self, request: Request) -> Response:
        """Return the session's account."""
        return self._missing(request) or SandboxJson(self._shown(request.path_params["session"])["me"])

    async def move(self, request: Request) -> Response:
        """Execute start, stop, restart or logout."""
        name, action = request.path_params["session"], request.path_params["action"]
        if refused := self._missing(request):
            return refused
        if action not in _ACTIONS:
            return _not_found(f"Cannot POST /api/sessions/{name}/{action}")
        state = self._state(name)
        is_same = action == "start" and state in ("STARTING", "WORKING")
        unlinked = state == "SCAN_QR_CODE" and action != "stop"
        if not is_same:
            self._put(name, "SCAN_QR_CODE" if unlinked else _ACTIONS[action])
        return SandboxJson(self._shown(name), status_code=201)

    async def put_into(self, request: Request) -> Response:
        """Set the state of a session, as a phone, a network or a ban would (not a route of WAHA)."""
        body = await read_command(request, 'For example {"status": "FAILED"}')
        state, seconds = asked_state(body, "status", STATES)
        name = request.path_params["session"]
        names = self._sessions.names(CHANNEL)
        if name not in names and len(names) >= MAX_SESSIONS:
            raise Invalid("Too many sessions", field="session")
        self._put(name, state, seconds=seconds)
        return SandboxJson(self._shown(name))

    async def exists(self, request: Request) -> Response:
        """Return whether a number is on WhatsApp: all except those ending in 404."""
        phone = "".join(letter for letter in request.query_params.get("phone", "") if letter.isdigit())
        exists = bool(phone) and not phone.endswith("404")
        found = {"numberExists": exists, **({"chatId": f"{phone}@c.us"} if exists else {})}
        return _locked(request) or SandboxJson(found)

    async def code(self, request: Request) -> Response:
        """Return the QR code as text."""
        name = request.path_params["session"]
        if refused := self._missing(request):
            return refused
        if self._state(name) != "SCAN_QR_CODE":
            return self._not_in(name, "SCAN_QR_CODE")
        if request.query_params.get("format") != "raw":
            return _wrong("The QR code is available as format=raw only", 422)
        return SandboxJson({"value": self._sessions.code(name)})

    async def new_id(self, request: Request) -> Response:
        """Return an id for a message."""
        return self._missing(request) or SandboxJson({"id": f"3EB0{uuid4().hex[:18].upper()}"})

    async def send_text(self, request: Request) -> Response:
        """Send a text through a session."""
        if refused := _locked(request):
            return refused
        try:
            raw = await read_body(request.receive)
        except ClientDisconnect:
            return Response()
        except TooLarge as error:
            return _wrong(str(error), 413)
        fields = json_object(raw) or {}
        name = str(fields.get("session") or "default")
        if self._state(name) is None:
            return _not_found("Session not found")
        problem = _problem(fields)
        unfit = problem is None and self._state(name) != "WORKING"
        id = fields.get("id") or request.headers.get("idempotency-key") or f"waha-{next(self._numbers)}"
        arrival = ProviderArrival(
            CHANNEL,
            id=str(id)[:256],
            to=str(fields.get("chatId") or "")[:256],
            text=str(fields.get("text") or ""),
            data={key: fields[key] for key in ("reply_to", "linkPreview") if fields.get(key) is not None},
            problem=problem or ("the session is not working" if unfit else None),
        )
        entry = self._world.receive(arrival)
        target = self._world.callbacks.target(CHANNEL, name)
        if entry.delivered and target is not None:
            origin = ReceiptOrigin(CHANNEL, name, str(_sent(entry)["id"]), entry.to, *target)
            self._world.callbacks.took(entry.n, origin)
        if unfit:
            return self._not_in(name, "WORKING")
        if entry.did is FaultKind.REFUSED and entry.code.upper() in STATES:
            return self._not_in(name, "WORKING", entry.code.upper())
        return FaultyResponse(entry, _answer(entry, arrival), self._world.environment)

    def _state(self, name: str) -> str | None:
        return self._sessions.state(CHANNEL, name)

    def _put(self, name: str, state: str, *, seconds: float | None = None) -> None:
        self._world.put_session(CHANNEL, name, state, seconds=seconds, then="WORKING")

    def _shown(self, name: str) -> dict[str, Any]:
        state = self._state(name)
        return {
            "name": name,
            "status": state,
            "config": {},
            "me": _ME if state == "WORKING" else None,
            "engine": {"engine": "WEBJS"},
        }

    def _missing(self, request: Request) -> Response | None:
        known = self._state(request.path_params["session"]) is not None
        return _locked(request) or (None if known else _not_found("Session not found"))

    def _not_in(self, name: str, expected: str, state: str | None = None) -> Response:
        words = "Session status is not as expected. Try again later or restart the session"
        state = state or self._state(name)
        body = {"error": words, "session": name, "status": state, "expected": [expected]}
        return SandboxJson(body, status_code=422)


def _problem(fields: Mapping[str, Any]) -> str | None:
    if not isinstance(fields.get("chatId"), str) or not _CHAT.fullmatch(fields["chatId"]):
        return "chatId must be a chat such as 15551234567@c.us"
    if not isinstance(fields.get("text"), str) or not fields["text"]:
        return "text must be a non-empty text"
    return None


def _answer(entry: SandboxEntry, arrival: ProviderArrival) -> Response:
    match entry.did:
        case FaultKind.INVALID:
            return _wrong(arrival.problem or "")
        case FaultKind.THROTTLED:
            headers = {"retry-after": f"{entry.wait:g}"}
            body = {"message": "Too Many Requests", "statusCode": 429}
            return SandboxJson(body, status_code=429, headers=headers)
        case FaultKind.ERROR:
            return _exception("Evaluation failed: the page has crashed", arrival)
        case FaultKind.GONE:
            return _exception("No LID for user", arrival)
        case FaultKind.REFUSED:
            return _wrong("The feature is not in this engine", 422)
        case _:
            return SandboxJson(_sent(entry), status_code=201)


def _sent(entry: SandboxEntry) -> dict[str, Any]:
    return {
        "id": f"true_{entry.to}_{CHANNEL}-{entry.n}",
        "timestamp": entry.at // 1_000_000,
        "from": _ME["id"],
        "fromMe": True,
        "to": entry.to,
        "body": entry.text,
        "hasMedia": False,
        "ack": 1,
        "ackName": "SERVER",
        "_data": {},
    }


def _exception(words: str, arrival: ProviderArrival) -> Response:
    body = {
        "statusCode": 500,
        "timestamp": "2026-11-15T12:00:00.000Z",
        "exception": {"message": words, "name": "Error", "stack": f"Error: {words}\n    at sandbox"},
        "request": {"path": "/api/sendText", "method": "POST", "body": {"chatId": arrival.to}, "query": {}},
        "version": {"version": "2026.7.1", "engine": "WEBJS", "tier": "CORE"},
    }
    return SandboxJson(body, status_code=500)


def _locked(request: Request) -> Response | None:
    """Return 401 unless there is a key that does not begin with `wrong`."""
    key = request.headers.get("x-api-key") or request.query_params.get("x-api-key") or ""
    if key and not key.startswith("wrong"):
        return None
    return SandboxJson({"message": "Unauthorized", "statusCode": 401}, status_code=401)


def _not_found(words: str) -> Response:
    return SandboxJson({"message": words, "error": "Not Found", "statusCode": 404}, status_code=404)


def _wrong(words: str, status: int = 400) -> Response:
    return SandboxJson({"message": words, "error": "Bad Request", "statusCode": status}, status_code=status)
