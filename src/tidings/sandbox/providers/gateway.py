"""Simulated HTTP gateway in front of a WhatsApp session: two routes below `/gateway`.

`GET /gateway/status` returns {isReady, connectionState}, and {qr} while a phone must be linked.
`/gateway/send` takes {phone, message} and returns {success, error}. `POST /sandbox/gateway` changes the
state, as a phone or a network would; after `for_seconds` it is connected again. The state survives a restart.
Fault by code: the text of the error, with _ for spaces.
"""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from tidings.sandbox.faults import FaultKind
from tidings.sandbox.ledger import SandboxEntry
from tidings.sandbox.provider_endpoint import ProviderMethod, ProviderRequest, provider_route, retry_after
from tidings.sandbox.responses import SandboxJson, read_command, with_error_response
from tidings.sandbox.sessions import asked_state
from tidings.sandbox.simulator import ProviderArrival, SandboxSimulator

CHANNEL = "gateway"
STATES = ("CONNECTED", "OPENING", "PAIRING", "TIMEOUT", "CONFLICT", "UNPAIRED", "UNPAIRED_IDLE", "TOS_BLOCK")
READY = "CONNECTED"
NAME = "default"

_MESSAGES = {
    FaultKind.ERROR: "Evaluation failed",
    FaultKind.THROTTLED: "rate limit",
    FaultKind.GONE: "The number is not registered on WhatsApp",
}


def routes(world: SandboxSimulator) -> Sequence[BaseRoute]:
    """Return the gateway's two routes, and one to change its state."""
    gateway = _GatewayProvider(world)
    return [
        provider_route(world, "/gateway/send", ProviderMethod(gateway.read, _answer, gateway.error)),
        Route("/gateway/status", gateway.status, methods=["GET"]),
        Route("/sandbox/gateway", with_error_response(gateway.put_into), methods=["POST"]),
    ]


class _GatewayProvider:
    def __init__(self, world: SandboxSimulator) -> None:
        self._world = world

    @property
    def _state(self) -> str:
        return self._world.sessions.state(CHANNEL, NAME) or READY

    async def status(self, _: Request) -> Response:
        """Return whether it can send, and the QR code while it is not linked."""
        state = self._state
        code = {"qr": self._world.sessions.code(CHANNEL)} if state.startswith("UNPAIRED") else {}
        return SandboxJson({"isReady": state == READY, "connectionState": state, **code})

    def read(self, asked: ProviderRequest) -> ProviderArrival:
        phone, words = asked.text("phone"), asked.text("message")
        problem = None if phone and words else "phone and message must be non-empty texts"
        if problem is None and self._state != READY:
            problem = f"client is not ready: {self._state}"
        return asked.arrival(CHANNEL, phone, words, None, problem)

    async def put_into(self, request: Request) -> Response:
        body = await read_command(request, '{"connectionState": "OPENING"}')
        state, seconds = asked_state(body, "connectionState", STATES)
        self._world.put_session(CHANNEL, NAME, state, seconds=seconds, then=READY)
        return await self.status(request)

    def error(self, _: ProviderRequest, entry: SandboxEntry, code: str) -> Response:
        words = _MESSAGES.get(entry.did, code if entry.did is FaultKind.INVALID else code.replace("_", " "))
        status = 500 if entry.did is FaultKind.ERROR else 429 if entry.did is FaultKind.THROTTLED else 200
        if entry.did is FaultKind.INVALID:
            status = 400 if self._state == READY else 503
        return SandboxJson({"success": False, "error": words}, status_code=status, headers=retry_after(entry))


def _answer(_asked: ProviderRequest, _arrival: ProviderArrival, entry: SandboxEntry) -> Response:
    return SandboxJson({"success": True, "error": None, "messageId": f"{CHANNEL}-{entry.n}"})
