"""Simulated WAHA server: WhatsApp through sessions that are started, stopped, linked and logged out.

The routes are WAHA's, below `/waha`. `POST /sandbox/waha/{session}` sets any other state and also stands for
scanning the QR code; after `for_seconds`, or a restart, the session is in the state `then` (it works again). A
session that does not run answers 404, one that runs and does not work 422. States survive a restart. Fault by
code: a state, for one request. The QR code is available as text only (`format=raw`).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any
from uuid import uuid4

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from tidings.model.errors import Invalid
from tidings.sandbox.faults import FaultKind, SandboxFault
from tidings.sandbox.ledger import SandboxEntry
from tidings.sandbox.provider_endpoint import ProviderMethod, ProviderRequest, json_object, provider_route, retry_after
from tidings.sandbox.receipts import ReceiptOrigin
from tidings.sandbox.responses import SandboxJson, read_body, read_command, with_error_response
from tidings.sandbox.sessions import asked_state
from tidings.sandbox.simulator import ProviderArrival, SandboxSimulator
from tidings.sandbox.waha_payloads import ME, chat_of, engine_of, environment_of, is_known_chat, number_of, sent_message

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
START_SECONDS = 1.0  # how long a session is STARTING
ABOUT: Mapping[str, Mapping[str, Any]] = {
    "/ping": {"message": "pong"},
    "/health": {"status": "ok", "info": {}, "error": {}, "details": {}},
    "/api/server/version": environment_of(),
    "/api/server/environment": {"WAHA_LOCAL_STORE_BASE_DIR": "/app/.sessions"},  # sessions are files
}
ACTIONS = ("start", "restart", "stop", "logout")

_CHAT = re.compile(r"[0-9-]{5,49}@(?:c\.us|s\.whatsapp\.net|g\.us|lid|newsletter)", re.ASCII)
_NOT_WORKING = "the session is not working"


def routes(world: SandboxSimulator) -> Sequence[BaseRoute]:
    """Return WAHA's routes, and one to set the state of a session."""
    waha = _WahaProvider(world)
    return [
        *(
            provider_route(world, f"/waha/api/{send}", ProviderMethod(read, waha.answer, waha.error))
            for send, read in (("sendText", waha.read_text), ("sendImage", waha.read), ("sendFile", waha.read))
        ),
        *(Route(f"/waha{path}", partial(_about, about), methods=["GET"]) for path, about in ABOUT.items()),
        Route("/waha/api/sessions", waha.list, methods=["GET"]),
        Route("/waha/api/sessions", with_error_response(waha.create), methods=["POST"]),
        Route("/waha/api/sessions/{session}", waha.show, methods=["GET"]),
        Route("/waha/api/sessions/{session}", waha.configure, methods=["PUT"]),
        Route("/waha/api/sessions/{session}", waha.delete, methods=["DELETE"]),
        Route("/waha/api/sessions/{session}/me", waha.me, methods=["GET"]),
        Route("/waha/api/sessions/{session}/{action}", with_error_response(waha.move), methods=["POST"]),
        Route("/waha/api/contacts/check-exists", waha.exists, methods=["GET"]),
        Route("/waha/api/{session}/auth/qr", waha.code, methods=["GET"]),
        Route("/waha/api/{session}/lids/{lid}", waha.lid, methods=["GET"]),
        Route("/waha/api/{session}/new-message-id", waha.new_id, methods=["GET"]),
        Route("/sandbox/waha/{session}", with_error_response(waha.put_into), methods=["POST"]),
    ]


class _WahaProvider:
    """All sessions; `default` is linked from the start."""

    def __init__(self, world: SandboxSimulator) -> None:
        self._world = world
        self._sessions = world.sessions
        self._numbers = itertools.count(1)

    async def list(self, request: Request) -> Response:
        """Return all sessions; stopped ones only with `all`."""
        every = request.query_params.get("all") == "true"
        names = self._sessions.names(CHANNEL)
        shown = [self._shown(name) for name in names if every or self._state(name) != "STOPPED"]
        return _locked(request.headers) or SandboxJson(shown)

    async def create(self, request: Request) -> Response:
        """Create a session whose QR code must be scanned."""
        try:
            body = orjson.loads(await read_body(request.receive) or b"{}")
        except orjson.JSONDecodeError:
            return _wrong("The body is not JSON")
        name = body.get("name") if isinstance(body, dict) else None
        if not isinstance(name, str | None):
            return _wrong("name must be a text")
        if refused := _locked(request.headers):
            return refused
        name = name or f"session_{next(self._numbers)}"
        self._put(name, "STARTING", seconds=START_SECONDS, then="SCAN_QR_CODE")
        if unkept := self._point(name, body):
            return unkept
        return SandboxJson(self._brief(name), status_code=201)

    async def configure(self, request: Request) -> Response:
        """Set a session's configuration, of which only webhooks are used."""
        if refused := self._missing(request):
            return refused
        name = request.path_params["session"]
        body = json_object(await read_body(request.receive)) or {}
        return self._point(name, body) or SandboxJson(self._brief(name))

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
        return self._missing(request) or SandboxJson(self._shown(request.path_params["session"]))

    async def delete(self, request: Request) -> Response:
        """Delete a session; a missing one is fine."""
        if refused := _locked(request.headers):
            return refused
        self._sessions.drop(CHANNEL, request.path_params["session"])
        return Response(status_code=200)

    async def me(self, request: Request) -> Response:
        return self._missing(request) or SandboxJson(self._shown(request.path_params["session"]).get("me"))

    async def move(self, request: Request) -> Response:
        """Execute start, stop, restart or logout."""
        name, action = request.path_params["session"], request.path_params["action"]
        if refused := self._missing(request):
            return refused
        if action not in ACTIONS:
            return _not_found(f"Cannot POST /api/sessions/{name}/{action}")
        state, then = self._state(name), self._sessions.next_state(CHANNEL, name)
        if action == "stop":
            self._put(name, "STOPPED", then=then)
        elif action == "logout":
            self._put(name, "STOPPED" if state == "STOPPED" else "SCAN_QR_CODE", then="SCAN_QR_CODE")
        elif action == "restart" or state == "STOPPED":  # a running session is not started again
            self._put(name, "STARTING", seconds=START_SECONDS, then=then)
        return SandboxJson(self._brief(name), status_code=201)

    async def put_into(self, request: Request) -> Response:
        """Set the state of a session, as a phone, a network or a ban would (not a route of WAHA)."""
        body = await read_command(request, 'For example {"status": "FAILED"}')
        state, seconds = asked_state(body, "status", STATES)
        name = request.path_params["session"]
        linked = "SCAN_QR_CODE" if state == "SCAN_QR_CODE" and seconds is None else "WORKING"
        then = body.get("then", linked)
        if then not in STATES:
            raise Invalid(f"Unknown state {then!r}", remedy=f"Use {', '.join(STATES)}", field="then")
        self._put(name, state, seconds=seconds, then=then)
        return SandboxJson(self._shown(name))

    async def exists(self, request: Request) -> Response:
        """Return whether a number is on WhatsApp, and under which chat id."""
        chat = chat_of(request.query_params.get("phone", ""))
        found = {"numberExists": chat is not None, **({} if chat is None else {"chatId": chat})}
        session = request.query_params.get("session", "default")
        return _locked(request.headers) or self._unfit(session) or SandboxJson(found)

    async def lid(self, request: Request) -> Response:
        session, lid = request.path_params["session"], request.path_params["lid"]
        return _locked(request.headers) or self._unfit(session) or SandboxJson(number_of(lid))

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
        return self._missing(request) or SandboxJson({"id": f"3EB0{uuid4().hex[:18].upper()}"})

    def read_text(self, asked: ProviderRequest) -> ProviderArrival:
        return self.read(asked, is_text=True)

    def read(self, asked: ProviderRequest, *, is_text: bool = False) -> ProviderArrival:
        """Parse an image or a file."""
        fields, to = asked.fields or {}, asked.text("chatId")[:256]
        problem = _problem(asked, is_text=is_text)
        if problem is None and self._state(asked.text("session") or "default") != "WORKING":
            problem = _NOT_WORKING
        data = {key: fields[key] for key in ("reply_to", "linkPreview", "file") if fields.get(key) is not None}
        fault = None if is_known_chat(to) else SandboxFault(FaultKind.GONE)
        text = asked.text("text" if is_text else "caption")
        arrival = asked.arrival(CHANNEL, to, text, data, problem, fault=fault)
        return arrival._replace(id=asked.text("id")[:256] or arrival.id)

    def answer(self, asked: ProviderRequest, _: ProviderArrival, entry: SandboxEntry) -> Response:
        """Answer a message, and send its receipts."""
        name = asked.text("session") or "default"
        target = self._world.callbacks.target(CHANNEL, name)
        if target is not None:
            origin = ReceiptOrigin(CHANNEL, name, str(sent_message(entry, name)["id"]), entry.to, *target)
            self._world.callbacks.took(entry.n, origin)
        return SandboxJson(sent_message(entry, name), status_code=201)

    def error(self, asked: ProviderRequest, entry: SandboxEntry, code: str) -> Response:
        """Answer a message that is not sent."""
        fault = code.upper() if entry.did is FaultKind.REFUSED and code.upper() in STATES else None
        is_unfit = fault or code == _NOT_WORKING
        unfit = self._unfit(asked.text("session") or "default", fault) if is_unfit else None
        return _locked(asked.headers) or unfit or _error(entry, code)

    def _state(self, name: str) -> str | None:
        return self._sessions.state(CHANNEL, name)

    def _put(self, name: str, state: str, *, seconds: float | None = None, then: str) -> None:
        self._world.put_session(CHANNEL, name, state, seconds=seconds, then=then)

    def _brief(self, name: str) -> dict[str, Any]:
        return {"name": name, "status": self._state(name), "config": {}}

    def _shown(self, name: str) -> dict[str, Any]:
        is_working = self._state(name) == "WORKING"
        more = {"presence": {}, "timestamps": {"activity": None}, "engine": {"engine": engine_of(name)}}
        return {**self._brief(name), **more, **({"me": ME} if is_working else {})}

    def _missing(self, request: Request) -> Response | None:
        known = self._state(request.path_params["session"]) is not None
        return _locked(request.headers) or (None if known else _not_found("Session not found"))

    def _unfit(self, name: str, state: str | None = None) -> Response | None:
        """Return 404 for a session that does not run, 422 for one that runs and does not work."""
        state = state or self._state(name)
        if state in (None, "STOPPED"):
            how = f"Please start it first by using POST /api/sessions/{name}/start request"
            return _not_found(f"We didn't find a session with name '{name}'.\n{how}")
        return None if state == "WORKING" else self._not_in(name, "WORKING", state)

    def _not_in(self, name: str, expected: str, state: str | None = None) -> Response:
        words = "Session status is not as expected. Try again later or restart the session"
        body = {"error": words, "session": name, "status": state or self._state(name), "expected": [expected]}
        return SandboxJson(body, status_code=422)


async def _about(about: Mapping[str, Any], request: Request) -> Response:
    """Return facts about the server; those below /api need the key."""
    locked = _locked(request.headers) if "/waha/api/" in request.url.path else None
    return locked or SandboxJson(about)


def _problem(asked: ProviderRequest, *, is_text: bool) -> str | None:
    if _locked(asked.headers) is not None:
        return "Unauthorized"
    if not _CHAT.fullmatch(asked.text("chatId")):
        return "chatId must be a chat such as 15551234567@c.us"
    file = (asked.fields or {}).get("file")
    if is_text and not asked.text("text"):
        return "text must be a non-empty text"
    if not is_text and not (isinstance(file, dict) and file.get("mimetype") and (file.get("url") or file.get("data"))):
        return "file must have mimetype, and url or data"
    return None


def _error(entry: SandboxEntry, code: str) -> Response:
    match entry.did:
        case FaultKind.INVALID:
            return _wrong(code)
        case FaultKind.THROTTLED:
            body = {"message": "Too Many Requests", "statusCode": 429}
            return SandboxJson(body, status_code=429, headers=retry_after(entry))
        case FaultKind.ERROR:
            return _exception("Evaluation failed: the page has crashed", entry)
        case FaultKind.GONE:
            return _exception("No LID for user", entry)
        case _:
            return _wrong("The feature is not in this engine", 422)


def _exception(words: str, entry: SandboxEntry) -> Response:
    body = {
        "statusCode": 500,
        "timestamp": "2026-11-15T12:00:00.000Z",
        "exception": {"message": words, "name": "Error", "stack": f"Error: {words}\n    at sandbox"},
        "request": {"path": "/api/sendText", "method": "POST", "body": {"chatId": entry.to}, "query": {}},
        "version": environment_of(),
    }
    return SandboxJson(body, status_code=500)


def _locked(headers: Mapping[str, str]) -> Response | None:
    """Return 401 unless there is a key that does not begin with `wrong`."""
    key = headers.get("x-api-key", "")
    if key and not key.startswith("wrong"):
        return None
    return SandboxJson({"message": "Unauthorized", "statusCode": 401}, status_code=401)


def _not_found(words: str) -> Response:
    return SandboxJson({"message": words, "error": "Not Found", "statusCode": 404}, status_code=404)


def _wrong(words: str, status: int = 400) -> Response:
    return SandboxJson({"message": words, "error": "Bad Request", "statusCode": status}, status_code=status)
