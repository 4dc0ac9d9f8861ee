"""Routes for the ledger, conversations, faults and callbacks, as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from tidings.model.errors import Invalid, NotFound

from . import callback_commands
from .faults import RECIPIENT_FAULTS, FaultRule
from .responses import SandboxJson, read_command, with_error_response
from .simulator import RECENT, SandboxSimulator


def routes(world: SandboxSimulator) -> Sequence[BaseRoute]:
    """Return the routes for inspecting the sandbox and injecting faults."""
    control = _ControlRoutes(world)
    return [
        Route("/sandbox/ledger", with_error_response(control.ledger), methods=["GET"]),
        Route("/sandbox/conversations", with_error_response(control.conversations), methods=["GET"]),
        Route("/sandbox/faults", control.faults, methods=["GET"]),
        Route("/sandbox/faults", with_error_response(control.set_fault), methods=["POST"]),
        Route("/sandbox/faults", control.heal, methods=["DELETE"]),
        Route("/sandbox/faults/{id:int}", with_error_response(control.heal_one), methods=["DELETE"]),
        Route("/sandbox/callbacks", control.callbacks, methods=["GET"]),
        Route("/sandbox/callbacks", with_error_response(control.set_callback), methods=["POST"]),
        Route("/sandbox/receipts", with_error_response(control.tell), methods=["POST"]),
    ]


class _ControlRoutes:
    def __init__(self, world: SandboxSimulator) -> None:
        self._world = world

    async def ledger(self, request: Request) -> Response:
        """Counts and the newest entries, oldest first; `?limit=` up to 1,000."""
        limit = _limit(request)
        recent = self._world.recent
        entries = islice(recent, max(0, len(recent) - limit), None)
        path = self._world.ledger.path
        return SandboxJson(
            {
                "counts": self._world.tally.counts(),
                "path": None if path is None else str(path),
                "entries": [entry.record() for entry in entries],
            }
        )

    async def conversations(self, request: Request) -> Response:
        """All conversations without messages; with `?channel=&to=` one with its messages."""
        to = request.query_params.get("to")
        if to is None:
            found = self._world.conversations.newest_first()
            return SandboxJson({"conversations": [conversation.summary() for conversation in found]})
        one = self._world.conversations.find(request.query_params.get("channel", "phone"), to)
        if one is None:
            raise NotFound(f"No messages to {to!r} yet", field="to")
        return SandboxJson({**one.summary(), "messages": [entry.record() for entry in one.entries]})

    async def faults(self, _: Request) -> Response:
        """The active faults, and the recipient names with built-in faults."""
        return SandboxJson({"faults": faults_of(self._world), "recipients": dict(RECIPIENT_FAULTS)})

    async def set_fault(self, request: Request) -> Response:
        """Set a fault."""
        rule = self._world.break_(await read_command(request, 'For example {"kind": "500"}'))
        return SandboxJson(describe_fault(rule, self._world.environment.ticks()), status_code=201)

    async def heal(self, _: Request) -> Response:
        """Clear all faults."""
        return SandboxJson({"healed": self._world.heal()})

    async def heal_one(self, request: Request) -> Response:
        """Clear one fault."""
        id = request.path_params["id"]
        if not self._world.heal(id):
            raise NotFound(f"Unknown fault {id}", remedy="It may have expired")
        return SandboxJson({"healed": 1})

    async def callbacks(self, _: Request) -> Response:
        """Callback URLs, automatic receipts, and recent callbacks."""
        return SandboxJson(self._world.callbacks.described())

    async def set_callback(self, request: Request) -> Response:
        """Set a callback URL, or the automatic receipts."""
        await callback_commands.set_callback_target(self._world.callbacks, await self._command(request))
        return SandboxJson(self._world.callbacks.described(), status_code=201)

    async def tell(self, request: Request) -> Response:
        """Send a receipt of a message, by its ledger number or by the sender's id."""
        return SandboxJson(callback_commands.send_receipt(self._world, await self._command(request)), status_code=202)

    async def _command(self, request: Request) -> Mapping[str, object]:
        body = await read_command(request, "Send one JSON object")
        if not isinstance(body, dict):
            raise Invalid("The body is not a JSON object", remedy="Send one JSON object")
        return body


def faults_of(world: SandboxSimulator) -> list[dict[str, object]]:
    """Return the active faults."""
    now = world.environment.ticks()
    return [describe_fault(rule, now) for rule in world.rules()]


def describe_fault(rule: FaultRule, now: float) -> dict[str, object]:
    """Return a fault for the API; `for_seconds` is the remaining time."""
    return {
        "id": rule.id,
        "kind": rule.kind.value,
        "seconds": rule.seconds,
        "rate": rule.rate,
        "for_seconds": None if rule.until is None else round(max(0.0, rule.until - now), 3),
        "times": rule.times,
        "recipient": rule.recipient,
        "channel": rule.channel,
        "code": rule.code or None,
        "per_second": rule.per_second,
    }


def _limit(request: Request) -> int:
    text = request.query_params.get("limit", "100")
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= RECENT:
        raise Invalid(f"limit must be an integer from 1 to {RECENT}", field="limit")
    return int(text)
