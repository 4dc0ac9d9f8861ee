"""Routes for the ledger, conversations, faults and callbacks, as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import islice

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from tidings.model.errors import Invalid, NotFound

from .callbacks import PROVIDERS, SandboxCallbacks
from .faults import RECIPIENT_FAULTS, FaultRule
from .group_chats import EVENTS
from .receipts import RECEIPT_KINDS
from .responses import SandboxJson, read_command, with_error_response
from .simulator import RECENT, SandboxSimulator

_ADDRESS = ("channel", "account", "url", "secret", "verify_token")


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
        Route("/sandbox/said", with_error_response(control.say), methods=["POST"]),
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
        rule = self._world.break_(await read_command(request, 'For example {"kind": "500"}'))
        return SandboxJson(describe_fault(rule, self._world.environment.ticks()), status_code=201)

    async def heal(self, _: Request) -> Response:
        return SandboxJson({"healed": self._world.heal()})

    async def heal_one(self, request: Request) -> Response:
        id = request.path_params["id"]
        if not self._world.heal(id):
            raise NotFound(f"Unknown fault {id}", remedy="It may have expired")
        return SandboxJson({"healed": 1})

    async def callbacks(self, _: Request) -> Response:
        """Callback URLs, automatic receipts, and recent callbacks."""
        return SandboxJson(self._world.callbacks.described())

    async def set_callback(self, request: Request) -> Response:
        """Set the callback URL of an account ("*" for all of a provider), or `auto`, the automatic receipts."""
        callbacks, body = self._world.callbacks, await self._command(request)
        if "auto" in body:
            callbacks.auto = _auto(body)
        else:
            await _set_target(callbacks, body)
        return SandboxJson(callbacks.described(), status_code=201)

    async def tell(self, request: Request) -> Response:
        """Send a receipt: {"n": 12, "what": "read"}, or {"id": "...", "what": "failed", "code": 30003}."""
        body = await self._command(request)
        _refuse_unknown(body, ("n", "id", "what", "code"))
        n, code = body.get("n"), body.get("code")
        if n is None:
            n = _number_of(self._world, _text(body, "id"))
        if type(n) is not int or not isinstance(code, int | None) or isinstance(code, bool):
            raise Invalid("n and code must be integers", field="n")
        what = _text(body, "what")
        self._world.callbacks.tell(n, what, code)
        return SandboxJson({"n": n, "what": what}, status_code=202)

    async def say(self, request: Request) -> Response:
        given = await read_command(request, '{"channel": "groupme", ...}')
        line = self._world.say(given)
        account = str(given.get("account") or "default")
        if line.channel in EVENTS:
            event, payload = EVENTS[line.channel](line, account)
            self._world.callbacks.push(line.channel, account, payload, event)
        shown = {name: getattr(line, name) for name in ("n", "channel", "chat", "sender", "text")}
        return SandboxJson(shown, status_code=201)

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
    names = ("id", "kind", "seconds", "rate", "for_seconds", "times", "recipient", "channel", "code", "per_second")
    left = None if rule.until is None else round(max(0.0, rule.until - now), 3)
    known = {**asdict(rule), "for_seconds": left, "code": rule.code or None}
    return {name: known[name] for name in names}


def _limit(request: Request) -> int:
    text = request.query_params.get("limit", "100")
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= RECENT:
        raise Invalid(f"limit must be an integer from 1 to {RECENT}", field="limit")
    return int(text)


async def _set_target(callbacks: SandboxCallbacks, body: Mapping[str, object]) -> None:
    _refuse_unknown(body, _ADDRESS)
    given = {name: _text(body, name) for name in _ADDRESS}
    if given["channel"] not in PROVIDERS:
        remedy = f"Use one of {', '.join(PROVIDERS)}"
        raise Invalid(f"{given['channel']!r} has no callbacks", remedy=remedy, field="channel")
    url, token = given["url"], given["verify_token"]
    if url and given["channel"] == "whatsapp_cloud" and not await callbacks.is_theirs(url, token):
        problem = "The URL did not answer the challenge"
        raise Invalid(problem, remedy="Check url, verify_token and that it is running", field="url")
    callbacks.point(given["channel"], given["account"] or "*", url, given["secret"])


def _number_of(world: SandboxSimulator, id_: str) -> int:
    """Return the newest delivered ledger entry with the sender's id."""
    for entry in reversed(world.recent):
        if entry.id == id_ and entry.delivered:
            return entry.n
    raise NotFound(f"Unknown message {id_!r}", remedy="Use its number n from the ledger", field="id")


def _auto(body: Mapping[str, object]) -> tuple[str, ...]:
    _refuse_unknown(body, ("auto",))
    auto = body["auto"]
    if not isinstance(auto, list) or not all(what in RECEIPT_KINDS for what in auto):
        problem = "auto must be a list of receipts"
        raise Invalid(problem, remedy=f"Use some of {', '.join(RECEIPT_KINDS)}", field="auto")
    return tuple(auto)


def _text(body: Mapping[str, object], field: str) -> str:
    value = body.get(field, "")
    if not isinstance(value, str) or len(value) > 4000:
        raise Invalid(f"{field} must be a text", field=field)
    return value


def _refuse_unknown(body: Mapping[str, object], known: tuple[str, ...]) -> None:
    unknown = sorted(set(body) - set(known))
    if unknown:
        raise Invalid(f"Unknown field {unknown[0]!r}", remedy=f"Use {', '.join(known)}", field=unknown[0])
