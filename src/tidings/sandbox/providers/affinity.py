"""Simulated Affinity below `/affinity`: version 1 at its root, version 2 below `/v2`.

Both share the quotas, by default 900 calls per minute and 100,000 per month, reported in the headers of every
answer. `POST /sandbox/affinity` sets them and generates the content; `GET` returns it for comparison. Version
1 alternates between two shapes of errors; version 2 answers as the header `X-Affinity-Api-Version` says, by
default as its oldest. Faults apply to the channel `affinity` with the kind of record as recipient; a fault's code
is an HTTP status, or `month` for an exhausted monthly quota. A file is downloaded by a redirect to a signed URL below
`/affinity-storage`, which rejects requests with an Authorization header, as a storage host does.
"""

from __future__ import annotations

from base64 import b64decode, urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import urlencode

import orjson
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from tidings.model.errors import Invalid
from tidings.sandbox.affinity_data import (
    EVENTS,
    HIDDEN_SINCE,
    KINDS,
    Content,
    as_version_1,
    as_version_2,
    defective_persons,
    field_metadata,
    file_content,
    generate_records,
)
from tidings.sandbox.faults import FaultKind, SandboxFault
from tidings.sandbox.ledger import SandboxEntry
from tidings.sandbox.provider_endpoint import ProviderMethod, ProviderRequest, http_status, is_wrong, provider_route
from tidings.sandbox.responses import SandboxJson, read_command, with_error_response
from tidings.sandbox.simulator import ProviderArrival, SandboxSimulator

CHANNEL = "affinity"
PER_MINUTE, PER_MONTH = 900, 100_000
MOST, MOST_BYTES = 1_000_000, 100_000_000
MONTH = "month"
FIELDS = "fields"
VERSION_HEADER, OLDEST_VERSION = "x-affinity-api-version", "2024-01-01"
FIELD_TYPES = ("enriched", "global", "relationship-intelligence")

_WORDS = {
    400: ("bad-request", "The request is not understood"),
    401: ("authentication", "The API key is not valid"),
    403: ("authorization", "You may not see this"),
    404: ("not-found", "It is not there, or you may not see it"),
    422: ("validation", "Invalid page_token variable"),
    429: ("rate-limit", "Too many requests"),
    500: ("server", "Something went wrong"),
}
_SIGNATURE = "simulated"
_MONTH_SECONDS = 30 * 86_400


class AffinityRoute(NamedTuple):
    """One route: the kind of record that it returns, and the version."""

    path: str
    kind: str
    version: int = 1


class AffinityError(Exception):
    """A request that Affinity rejects."""

    def __init__(self, status: int, param: str | None = None) -> None:
        super().__init__()
        self.status, self.param = status, param


class AffinityQuotas:
    """Call quotas per minute and per month."""

    def __init__(self) -> None:
        self.per_minute, self.per_month = PER_MINUTE, PER_MONTH
        self.used_in_month = 0
        self._minute, self._used = -1, 0

    def spend(self, seconds: int) -> bool:
        """Count a call; False if a quota is used up."""
        if seconds // 60 != self._minute:
            self._minute, self._used = seconds // 60, 0
        if self._used >= self.per_minute or self.used_in_month >= self.per_month:
            return False
        self._used += 1
        self.used_in_month += 1
        return True

    def headers(self, seconds: int) -> dict[str, str]:
        """Return the headers of every answer."""
        return {
            f"x-ratelimit-limit-{whose}{suffix}": str(quota[name])
            for whose, quota in self.described(seconds, "org", "user").items()
            for suffix, name in (("", "limit"), ("-remaining", "remaining"), ("-reset", "reset"))
        }

    def described(self, seconds: int, month: str, minute: str) -> dict[str, Any]:
        """Return the quotas, under these names, for the rate-limit routes, which are not counted."""
        reset, used = _MONTH_SECONDS - seconds % _MONTH_SECONDS, self.used_in_month
        most, spent = self.per_minute, self._used
        return {
            month: {"limit": self.per_month, "remaining": max(0, self.per_month - used), "reset": reset, "used": used},
            minute: {"limit": most, "remaining": max(0, most - spent), "reset": 60 - seconds % 60, "used": spent},
        }


def routes(world: SandboxSimulator) -> Sequence[BaseRoute]:
    """Return Affinity's routes, and those for controlling it."""
    crm = _AffinityProvider(world)
    return [
        *(provider_route(world, f"/affinity{call.path}", crm.method(call), "GET") for call in CALLS),
        Route("/affinity-storage/{id}", crm.stored, methods=["GET"]),
        Route("/affinity/rate-limit", crm.rate_limit, methods=["GET"]),
        Route("/affinity/v2/rate-limit", crm.rate_limit_2, methods=["GET"]),
        Route("/sandbox/affinity", crm.show, methods=["GET"]),
        Route("/sandbox/affinity", with_error_response(crm.tell), methods=["POST"]),
    ]


class _AffinityProvider:
    def __init__(self, world: SandboxSimulator) -> None:
        self._world = world
        self._content: Content = generate_records({}, 0)
        self._bad: Mapping[str, str] = {}
        self._quotas = AffinityQuotas()
        self._errors = 0

    def method(self, call: AffinityRoute) -> ProviderMethod:
        """Return how a route reads its requests and answers them."""

        def read(asked: ProviderRequest) -> ProviderArrival:
            said = orjson.dumps([call.path, asked.path, dict(asked.query)]).decode()
            problem, fault = None, None
            if is_wrong(_key(asked, call.version)):
                problem = "401"
            elif not self._quotas.spend(self._seconds):
                fault = SandboxFault(FaultKind.THROTTLED, 60.0 - self._seconds % 60)
            return asked.arrival(CHANNEL, call.kind, said, problem=problem, fault=fault)

        def answer(asked: ProviderRequest, _arrival: ProviderArrival, _entry: SandboxEntry) -> Response:
            headers = self._quotas.headers(self._seconds)
            try:
                if "/download/" in call.path:
                    url = f"http://{_host(asked)}/affinity-storage/{self._one(call, asked)['id']}"
                    return RedirectResponse(f"{url}?X-Signature={_SIGNATURE}", status_code=302, headers=headers)
                return SandboxJson((self._one if "{id}" in call.path else self._page)(call, asked), headers=headers)
            except AffinityError as failed:
                return self._error(call, failed.status, headers, failed.param)

        def error(_: ProviderRequest, entry: SandboxEntry, code: str) -> Response:
            headers = self._quotas.headers(self._seconds)
            if code == MONTH:
                code, headers["x-ratelimit-limit-org-remaining"] = "429", "0"
            elif entry.did is FaultKind.THROTTLED:
                headers["x-ratelimit-limit-user-reset"] = f"{max(1, round(entry.wait))}"
            return self._error(call, http_status(code) or 400, headers)

        return ProviderMethod(read, answer, error)

    async def stored(self, request: Request) -> Response:
        """Return a file by its signed URL."""
        if "authorization" in request.headers or request.query_params.get("X-Signature") != _SIGNATURE:
            return Response("<Error><Code>InvalidArgument</Code></Error>", 400, media_type="application/xml")
        found = next((one for one in self._content["files"] if str(one["id"]) == request.path_params["id"]), None)
        return Response(status_code=404) if found is None else Response(file_content(found))

    async def rate_limit(self, _: Request) -> Response:
        """Return the quotas; not counted."""
        return SandboxJson({"rate": self._quotas.described(self._seconds, "org_monthly", "api_key_per_minute")})

    async def rate_limit_2(self, request: Request) -> Response:
        """Return the quotas as version 2 does; older versions of the API do not have this route."""
        if request.headers.get(VERSION_HEADER, OLDEST_VERSION) < HIDDEN_SINCE:
            return self._error(AffinityRoute("", "", 2), 404, {})
        return SandboxJson(self._quotas.described(self._seconds, "orgPerMonth", "callerPerMinute"))

    async def show(self, request: Request) -> Response:
        """Return the content, or counts alone with `?counts`; defective records; counted calls."""
        counts = {kind: len(held) for kind, held in self._content.items()}
        found = {"counts": counts, "calls": self._quotas.used_in_month, "bad": self._bad}
        return SandboxJson(found if "counts" in request.query_params else {**found, "content": self._content})

    async def tell(self, request: Request) -> Response:
        """Generate new content, and set the quotas."""
        given = await read_command(request, 'For example {"persons": 100}')
        self._set(given if isinstance(given, dict) else {})
        counts = {kind: len(held) for kind, held in self._content.items()}
        return SandboxJson({"counts": counts, "bad": len(self._bad)}, status_code=201)

    def _set(self, told: Mapping[str, Any]) -> None:
        known = (*KINDS, "file_size", "bad_every", "per_minute", "per_month")
        for name, value in told.items():
            if name not in known:
                raise Invalid(f"Unknown field {name!r}", remedy=f"Use {', '.join(known)}", field=name)
            most = MOST_BYTES if name == "file_size" else MOST
            if type(value) is not int or not 0 <= value <= most:
                raise Invalid(f"{name} must be an integer from 0 to {most}", field=name)
        self._quotas.per_minute = told.get("per_minute", self._quotas.per_minute)
        self._quotas.per_month = told.get("per_month", self._quotas.per_month)
        if any(kind in told for kind in KINDS):
            bad_every = told.get("bad_every", 0)
            self._content = generate_records(told, bad_every)
            self._bad = defective_persons(told.get("persons", 0), bad_every)

    def _one(self, call: AffinityRoute, asked: ProviderRequest) -> Mapping[str, Any]:
        found = next((one for one in self._content[call.kind] if str(one["id"]) == asked.path["id"]), None)
        if found is None:
            raise AffinityError(404)
        if call.version == 1:
            return as_version_1(call.kind, found, asked.query, alone=True)
        types, version = asked.query.getlist("fieldTypes"), asked.headers.get(VERSION_HEADER, "")
        return as_version_2(call.kind, found, types, version, self._context(call, found))

    def _page(self, call: AffinityRoute, asked: ProviderRequest) -> Any:
        if "list" in asked.path and not any(str(one["id"]) == asked.path["list"] for one in self._content["lists"]):
            raise AffinityError(404)
        if call.kind == FIELDS:
            fields = field_metadata("list_entries" if "list" in asked.path else "persons")
            return {"data": fields, "pagination": {"prevUrl": None, "nextUrl": None}}
        held: Sequence[Mapping[str, Any]] = self._content[call.kind]
        if "list" in asked.path:
            held = [one for one in held if str(one["list_id"]) == asked.path["list"]]
        if call.kind == "activities":
            held = [one for one in held if one["kind"] == call.path.rpartition("/")[2]]
        for name in ("person_id", "organization_id", "opportunity_id") if call.version == 1 else ():
            if name in asked.query:
                held = [one for one in held if asked.query[name] in map(str, [one.get(name), *one.get(f"{name}s", ())])]
        if ids := asked.query.getlist("ids"):
            held = [one for one in held if str(one["id"]) in ids]
        return (_first if call.version == 1 else self._second)(call, asked, held)

    def _second(self, call: AffinityRoute, asked: ProviderRequest, held: Sequence[Mapping[str, Any]]) -> Any:
        size, start = _size(asked.query.get("limit"), 100), _start(asked.query.get("cursor"))
        rest = {name: asked.query.getlist(name) for name in asked.query if name != "cursor"}
        version = asked.headers.get(VERSION_HEADER, OLDEST_VERSION)
        types = rest.get("fieldTypes", ())
        if not {*types} <= {*FIELD_TYPES, *(["list"] if "list" in asked.path else [])}:
            raise AffinityError(400, "fieldTypes")
        found = [
            as_version_2(call.kind, one, types, version, self._context(call, one)) for one in held[start : start + size]
        ]
        url = None
        if start + size < len(held):
            path = call.path.replace("{list}", asked.path.get("list", ""))
            query = urlencode({**rest, "cursor": _token(start + size)}, doseq=True)
            url = f"http://{_host(asked)}/affinity{path}?{query}"
        return {"data": found, "pagination": {"prevUrl": None, "nextUrl": url}}

    def _context(self, call: AffinityRoute, one: Mapping[str, Any]) -> Mapping[Any, Any] | None:
        """Return the entity of a list entry, which version 2 shows with it."""
        if call.kind != "list_entries":
            return None
        held = self._content["opportunities" if one["entity_type"] == 8 else "persons"]
        place = one["entity_id"] % 100_000 - 1  # ids are consecutive
        return held[place] if place < len(held) else None

    def _error(
        self, call: AffinityRoute, status: int, headers: Mapping[str, str], param: str | None = None
    ) -> Response:
        code, message = _WORDS.get(status, ("error", "Simulated error"))
        self._errors += 1
        body: Any = {"errors": [message]} if self._errors % 2 else [message]
        if call.version == 2:
            named = {} if param is None else {"param": param, "code": "validation"}
            body = {"errors": [{"code": code, "message": message, **named}]}
            status = 400 if named else status
        return SandboxJson(body, status_code=status, headers=dict(headers))

    @property
    def _seconds(self) -> int:
        return self._world.environment.wall() // 1_000_000


def _first(call: AffinityRoute, asked: ProviderRequest, held: Sequence[Mapping[str, Any]]) -> Any:
    """Return a page of version 1; a page token is only valid for the same query."""
    shown = partial(as_version_1, call.kind, query=asked.query, alone=False)
    if call.kind == "lists" or (call.kind == "list_entries" and "page_size" not in asked.query):
        return list(map(shown, held))
    token = asked.query.get("page_token")
    size, start = _size(asked.query.get("page_size"), 500), _start(token)
    said = "&".join(sorted(f"{n}={v}" for n, v in asked.query.items() if n != "page_token"))
    if start < 0 or (token is not None and _token(start, said) != token):
        raise AffinityError(422, "page_token")
    following = _token(start + size, said) if start + size < len(held) else None
    name = call.path.rpartition("/")[2].replace("-", "_")
    return {name: list(map(shown, held[start : start + size])), "next_page_token": following}


def _host(asked: ProviderRequest) -> str:
    return asked.headers.get("host", "localhost")


def _key(asked: ProviderRequest, version: int) -> str:
    kind, _, given = asked.headers.get("authorization", "").partition(" ")
    if kind == "Bearer":
        return given.strip()
    if kind != "Basic" or version == 2:
        return ""
    try:
        return b64decode(given).decode().partition(":")[2]
    except ValueError:
        return ""


def _size(given: str | None, most: int) -> int:
    if given is None:
        return most
    if not given.isdigit() or not 1 <= int(given) <= most:
        raise AffinityError(422, "page_size")
    return int(given)


def _token(start: int, said: str = "") -> str:
    return urlsafe_b64encode(f"{start} {said}".encode()).decode()


def _start(token: str | None) -> int:
    if token is None:
        return 0
    try:
        return int(urlsafe_b64decode(token).split()[0])
    except (ValueError, IndexError):
        raise AffinityError(422, "page_token") from None


CALLS: Sequence[AffinityRoute] = (
    AffinityRoute("/persons", "persons"),
    AffinityRoute("/persons/{id}", "persons"),
    AffinityRoute("/organizations", "organizations"),
    AffinityRoute("/organizations/{id}", "organizations"),
    AffinityRoute("/opportunities", "opportunities"),
    AffinityRoute("/notes", "notes"),
    AffinityRoute("/notes/{id}", "notes"),
    AffinityRoute("/lists", "lists"),
    AffinityRoute("/lists/{list}/list-entries", "list_entries"),
    AffinityRoute("/reminders", "activities"),
    AffinityRoute("/entity-files", "files"),
    AffinityRoute("/entity-files/{id}", "files"),
    AffinityRoute("/entity-files/download/{id}", "files"),
    AffinityRoute("/v2/persons/fields", FIELDS, 2),
    AffinityRoute("/v2/companies/fields", FIELDS, 2),
    AffinityRoute("/v2/lists/{list}/fields", FIELDS, 2),
    AffinityRoute("/v2/persons", "persons", 2),
    AffinityRoute("/v2/companies", "organizations", 2),
    AffinityRoute("/v2/lists/{list}/list-entries", "list_entries", 2),
    AffinityRoute("/v2/lists/{list}/list-entries/{id}", "list_entries", 2),
    *(AffinityRoute(f"/v2/{kind}", "activities", 2) for kind in EVENTS),
)
