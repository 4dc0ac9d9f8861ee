"""Simulated Evolution API (v2): instances that connect, close, and show a code while no phone is linked.

The routes are below `/evolution`. `POST /sandbox/evolution/{instance}` sets the state: `open`, `connecting`,
`close`, or `qr` for an instance that is connecting until its code is scanned; after `for_seconds` it is open
again. Numbers that end in 404 are not on WhatsApp. Fault by code: a status, with its error.
"""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from tidings.model.time import SECOND
from tidings.sandbox.faults import FaultKind, SandboxFault
from tidings.sandbox.ledger import SandboxEntry
from tidings.sandbox.provider_endpoint import (
    ProviderMethod,
    ProviderRequest,
    http_status,
    is_wrong,
    provider_route,
    retry_after,
)
from tidings.sandbox.responses import SandboxJson, read_command, with_error_response
from tidings.sandbox.sessions import asked_state
from tidings.sandbox.simulator import ProviderArrival, SandboxSimulator

CHANNEL = "evolution"
STATES = ("open", "connecting", "close", "qr")
CONNECT_SECONDS = 1.0

_MESSAGES = {FaultKind.ERROR: "Error: Timed Out", FaultKind.THROTTLED: "rate-overlimit"}


def routes(world: SandboxSimulator) -> Sequence[BaseRoute]:
    """Return the routes of the API, and one to set the state of an instance."""
    evolution = _EvolutionProvider(world)
    method = ProviderMethod(evolution.read, _answer, evolution.error)
    base = "/evolution/instance"
    return [
        *(
            provider_route(world, f"/evolution/message/{send}/{{instance}}", method)
            for send in ("sendText", "sendMedia")
        ),
        Route(f"{base}/connectionState/{{instance}}", evolution.state, methods=["GET"]),
        Route(f"{base}/connect/{{instance}}", evolution.connect, methods=["GET"]),
        Route(f"{base}/restart/{{instance}}", evolution.connect, methods=["POST"]),
        Route("/sandbox/evolution/{instance}", with_error_response(evolution.put_into), methods=["POST"]),
    ]


class _EvolutionProvider:
    def __init__(self, world: SandboxSimulator) -> None:
        self._world, self._sessions = world, world.sessions

    async def state(self, request: Request) -> Response:
        name = request.path_params["instance"]
        return self._refusal(name, request.headers.get("apikey", "")) or SandboxJson(self._shown(name))

    async def connect(self, request: Request) -> Response:
        """Connect a closed instance, or restart any; return the code while no phone is linked."""
        name = request.path_params["instance"]
        if refused := self._refusal(name, request.headers.get("apikey", "")):
            return refused
        state, then = self._sessions.state(CHANNEL, name), self._sessions.next_state(CHANNEL, name)
        if state == "close" or (request.method == "POST" and state != "qr"):
            self._world.put_session(CHANNEL, name, "connecting", seconds=CONNECT_SECONDS, then=then)
        if state != "qr":
            return SandboxJson(self._shown(name))
        return SandboxJson({"pairingCode": None, "code": self._sessions.code(name), "base64": "", "count": 1})

    async def put_into(self, request: Request) -> Response:
        name = request.path_params["instance"]
        state, seconds = asked_state(await read_command(request, '{"state": "close"}'), "state", STATES)
        then = "qr" if state == "qr" and seconds is None else "open"
        self._world.put_session(CHANNEL, name, state, seconds=seconds, then=then)
        return SandboxJson(self._shown(name))

    def read(self, asked: ProviderRequest) -> ProviderArrival:
        to, text = asked.text("number"), asked.text("text") or asked.text("caption")
        problem = None if to and (text or asked.text("media")) else "number and text or media are required"
        if self._sessions.state(CHANNEL, asked.path["instance"]) != "open" or is_wrong(asked.headers.get("apikey", "")):
            problem = "Error: Connection Closed"
        fault = SandboxFault(FaultKind.GONE) if to.partition("@")[0].endswith("404") else None
        data = {"media": asked.text("media")} if asked.text("media") else None
        return asked.arrival(CHANNEL, to, text, data, problem, fault=fault)

    def error(self, asked: ProviderRequest, entry: SandboxEntry, code: str) -> Response:
        if refused := self._refusal(asked.path["instance"], asked.headers.get("apikey", "")):
            return refused
        if entry.did is FaultKind.GONE:
            return _error(400, [{"exists": False, "jid": _jid(entry), "number": entry.to}])
        return _error(http_status(code) or 400, [_MESSAGES.get(entry.did, code)], retry_after(entry))

    def _shown(self, name: str) -> dict[str, Any]:
        state = self._sessions.state(CHANNEL, name)
        return {"instance": {"instanceName": name, "state": "connecting" if state == "qr" else state}}

    def _refusal(self, name: str, key: str) -> Response | None:
        if is_wrong(key):
            return _error(401, "Unauthorized")
        unknown = self._sessions.state(CHANNEL, name) is None
        return _error(404, [f'The "{name}" instance does not exist']) if unknown else None


def _answer(_: ProviderRequest, arrival: ProviderArrival, entry: SandboxEntry) -> Response:
    key = {"remoteJid": _jid(entry), "fromMe": True, "id": f"3EB0{entry.n:016X}"}
    body = {"key": key, "status": "PENDING", "message": {"conversation": arrival.text}}
    return SandboxJson({**body, "messageTimestamp": entry.at // SECOND, "source": "unknown"}, status_code=201)


def _jid(entry: SandboxEntry) -> str:
    return f"{entry.to.partition('@')[0]}@s.whatsapp.net"


def _error(status: int, message: Any, headers: dict[str, str] | None = None) -> Response:
    body = {"status": status, "error": HTTPStatus(status).phrase, "response": {"message": message}}
    return SandboxJson(body, status_code=status, headers=headers)
