"""Simulated Attio below `/attio/v2`, with its limits, errors and content (`attio_workspace`).

The limits are Attio's, 100 reads, 25 writes and one upload per second, unless changed by `POST /sandbox/attio`; above
them it answers 429 with an HTTP date. Faults apply to the channel `attio`; the recipient of a write is the
object, `notes` or `lists/<list>`, of a read the same with the prefix `read:`. A fault's code is one of
`ERRORS` or an HTTP status. `GET /sandbox/attio` returns the whole content for comparison.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from email.utils import formatdate
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from tidings.model.errors import Invalid
from tidings.sandbox.attio_routes import CALLS, UPLOAD, AttioRoute
from tidings.sandbox.attio_schema import AttioAttribute, AttioCollection, AttioError, AttioRecord
from tidings.sandbox.attio_workspace import MAX_FILE, AttioWorkspace
from tidings.sandbox.faults import FaultKind, SandboxFault
from tidings.sandbox.ledger import SandboxEntry
from tidings.sandbox.provider_endpoint import ProviderMethod, ProviderRequest, http_status, is_wrong, provider_route
from tidings.sandbox.responses import MAX_BODY, SandboxJson, read_command, with_error_response
from tidings.sandbox.simulator import ProviderArrival, SandboxSimulator

CHANNEL = "attio"
READS_PER_SECOND, WRITES_PER_SECOND, UPLOADS_PER_SECOND = 100, 25, 1

ERRORS: Mapping[str, tuple[int, str]] = {
    "validation_type": (400, "Body payload validation error."),
    "value_not_found": (400, "Cannot find the value."),
    "particle_gate_violation": (400, "The workspace does not allow this."),
    "multiple_match_results": (400, "More than one record matches."),
    "merge_in_progress": (400, "The record is being merged."),
    "unauthorized": (401, "The access token is not valid."),
    "billing_error": (403, "The workspace's plan does not allow this."),
    "quota_exceeded": (403, "The workspace is full."),
    "not_found": (404, "Not found."),
    "concurrent_write_conflict": (409, "The record was changed at the same time; try again."),
    "rate_limit_exceeded": (429, "Rate limit exceeded, please try again later"),
    "internal_error": (500, "Something went wrong."),
}
_FAULTS = {FaultKind.ERROR: "internal_error", FaultKind.THROTTLED: "rate_limit_exceeded", FaultKind.GONE: "not_found"}
_TYPES = {400: "invalid_request_error", 401: "auth_error", 403: "auth_error", 429: "rate_limit_error"}


class AttioRateWindow:
    """A rate limit per second."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._second, self._used = -1, 0

    def is_full(self, second: int) -> bool:
        """Count a request; return whether it exceeds the limit."""
        if second != self._second:
            self._second, self._used = second, 0
        self._used += 1
        return self._used > self.most


def routes(world: SandboxSimulator) -> Sequence[BaseRoute]:
    """Return Attio's routes, and those for controlling it."""
    crm = _AttioProvider(world)
    return [
        *(provider_route(world, f"/attio/v2{call.path}", crm.method(call), call.method) for call in CALLS),
        Route("/sandbox/attio", crm.show, methods=["GET"]),
        Route("/sandbox/attio", with_error_response(crm.tell), methods=["POST"]),
        Route("/sandbox/attio", crm.forget, methods=["DELETE"]),
    ]


class _AttioProvider:
    def __init__(self, world: SandboxSimulator) -> None:
        self._world = world
        self._content = AttioWorkspace(world.environment.wall)
        self._reads, self._writes = AttioRateWindow(READS_PER_SECOND), AttioRateWindow(WRITES_PER_SECOND)
        self._uploads = AttioRateWindow(UPLOADS_PER_SECOND)
        self._refused = 0

    def method(self, call: AttioRoute) -> ProviderMethod:
        """Return how a route reads its requests and executes them."""

        def read(asked: ProviderRequest) -> ProviderArrival:
            to = _recipient(call, asked)
            said = orjson.dumps([call.method, call.path, asked.path, dict(asked.query), asked.fields]).decode()
            token = asked.headers.get("authorization", "").removeprefix("Bearer").strip()
            problem, fault = ("unauthorized" if is_wrong(token) else None), None
            window = self._uploads if call.path == UPLOAD else self._writes if call.writes else self._reads
            if problem is None and window.is_full(self._world.environment.wall() // 1_000_000):
                self._refused += 1
                fault = SandboxFault(FaultKind.THROTTLED, 1.0)
            return asked.arrival(CHANNEL, to, said, problem=problem, fault=fault)

        def answer(asked: ProviderRequest, _arrival: ProviderArrival, _entry: SandboxEntry) -> Response:
            try:
                made = call.work(self._content, asked)
            except AttioError as wrong:
                by_id = call.method in ("PUT", "PATCH") and "/records/{id}" in call.path
                code = "missing_value" if by_id and wrong.status == 400 else wrong.code  # the only word there
                return _error(code, wrong.status, wrong.message, wrong.path)
            body = made if made == {} or (isinstance(made, dict) and "pagination" in made) else {"data": made}
            return SandboxJson(body, status_code=201 if call.path == UPLOAD else 200)

        def error(_: ProviderRequest, entry: SandboxEntry, code: str) -> Response:
            if entry.did is not FaultKind.THROTTLED:
                return _error(code)
            until = formatdate(self._world.environment.wall() // 1_000_000 + max(1, round(entry.wait)), usegmt=True)
            return _error(code, headers={"retry-after": until})

        most = 2 * MAX_FILE if call.path == UPLOAD else MAX_BODY
        return ProviderMethod(read, answer, error, _FAULTS, max_body=most)

    async def show(self, request: Request) -> Response:
        """Return the content, or counts alone with `?counts`."""
        content, full = self._content, "counts" not in request.query_params
        shelves = {**content.objects, **{f"lists/{slug}": shelf for slug, shelf in content.lists.items()}}
        counts = {name: len(shelf.held) for name, shelf in shelves.items()}
        counts |= {name: len(held) for name, held in content.items.items()}
        found: dict[str, Any] = {"counts": counts, "refused": self._refused}
        if full:
            found["content"] = {name: [_dumped(one) for one in shelf.held.values()] for name, shelf in shelves.items()}
            found["content"] |= {name: list(held.values()) for name, held in content.items.items()}
            found["digests"] = content.digests
        return SandboxJson(found)

    async def tell(self, request: Request) -> Response:
        """Set limits, attributes and lists, and whether people create companies."""
        given = await read_command(request, 'For example {"writes_per_second": 25}')
        self._set(given if isinstance(given, dict) else {})
        limits = {"reads_per_second": self._reads.most, "writes_per_second": self._writes.most}
        return SandboxJson({**limits, "auto_companies": self._content.auto_companies}, status_code=201)

    async def forget(self, _: Request) -> Response:
        """Clear the workspace; limits stay."""
        self._content, self._refused = AttioWorkspace(self._world.environment.wall), 0
        return SandboxJson({"forgotten": True})

    def _set(self, told: Mapping[str, Any]) -> None:
        windows = {"reads_per_second": self._reads, "writes_per_second": self._writes}
        windows["uploads_per_second"] = self._uploads
        known = (*windows, "auto_companies", "attributes", "lists")
        unknown = next((name for name in told if name not in known), None)
        if unknown is not None:
            raise Invalid(f"Unknown field {unknown!r}", remedy=f"Use {', '.join(known)}", field=unknown)
        for name, window in windows.items():
            most = told.get(name, window.most)
            if type(most) is not int or most < 1:
                raise Invalid(f"{name} must be an integer greater than zero", field=name)
            window.most = most
        self._content.auto_companies = told.get("auto_companies", self._content.auto_companies) is True
        for slug in told.get("lists") or ():
            self._content.lists.setdefault(str(slug), AttioCollection(str(slug), {}))
        for slug, slots in (told.get("attributes") or {}).items():
            shelf = self._content.objects.get(slug) or self._content.lists.get(slug)
            if shelf is None:
                shelf = self._content.objects.setdefault(str(slug), AttioCollection(str(slug), {}))
            shelf.slots |= {slot.slug: slot for slot in map(_slot, slots)}


def _slot(told: Any) -> AttioAttribute:
    if not isinstance(told, dict) or not isinstance(told.get("api_slug"), str):
        raise Invalid("An attribute is an object with api_slug and type", field="attributes")
    return AttioAttribute(
        told["api_slug"],
        str(told.get("type", "text")),
        unique=told.get("is_unique") is True,
        many=told.get("is_multiselect") is True,
        required=told.get("is_required") is True,
        options=tuple(map(str, told.get("options") or ())),
    )


def _recipient(call: AttioRoute, asked: ProviderRequest) -> str:
    to = asked.path.get("object", call.path.split("/")[1])
    if "list" in asked.path:
        to = f"lists/{asked.path['list']}"
    return (to if call.writes else f"read:{to}")[:256]


def _error(
    code: str,
    status: int | None = None,
    message: str | None = None,
    path: Sequence[str] = (),
    headers: Mapping[str, str] | None = None,
) -> Response:
    known = ERRORS.get(code, (http_status(code) or 400, "Simulated error"))
    status = status or known[0]
    body: dict[str, Any] = {
        "status_code": status,
        "type": _TYPES.get(status, "invalid_request_error" if status < 500 else "api_error"),
        "code": code,
        "message": message or known[1],
    }
    if path:
        body["validation_errors"] = [{"code": code, "path": ["data", "values", *path], "message": body["message"]}]
    return SandboxJson(body, status_code=status, headers=dict(headers or {}))


def _dumped(held: AttioRecord) -> dict[str, Any]:
    parent = {} if held.parent is None else {"parent": list(held.parent)}
    return {"id": held.id, **parent, "auto": held.auto, "values": held.values}
