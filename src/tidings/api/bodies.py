"""Bodies: read by hand, because the hot path has no time for more. Sizes are watched by the gate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from fastapi import Request
from starlette.responses import Response

from ..outbound.repeats import Created
from ..reading.fields import Field, check, schema
from .errors import Malformed, told_of
from .queries import refuse_any


async def read_json(request: Request) -> Any:
    """The body as JSON."""
    refuse_any(request)
    return parse(await request.body())


async def read_fields(request: Request, known: Mapping[str, Field]) -> dict[str, Any]:
    """The body as an object with known fields; no body at all is an empty object."""
    refuse_any(request)
    raw = await request.body()
    return check(parse(raw), known) if raw.strip() else check({}, known)


def parse(raw: bytes) -> Any:
    """JSON, or an error that says where it breaks off."""
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise Malformed(
            f"the body is not JSON: {error.msg} at character {error.pos}", remedy="send one JSON object"
        ) from None


def answer(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A value as JSON."""
    return Response(orjson.dumps(value), status, headers, media_type="application/json")


def created(made: Created, place: str | None = None) -> Response:
    """What was made, where it is, and whether the same call had made it before."""
    headers = {} if place is None else {"location": place}
    if made.replayed:
        headers["idempotency-replayed"] = "true"
    return answer(made.answer, 201, headers)


def takes(
    known: Mapping[str, Field], *, required: bool = True, keyed: bool = False, kind: str = "application/json"
) -> dict[str, Any]:
    """What the reference says about a body, and about the key that makes the call repeatable."""
    body = {"requestBody": {"required": required, "content": {kind: {"schema": schema(known)}}}}
    return {**body, "parameters": [KEY]} if keyed else body


PROBLEMS: dict[int | str, dict[str, Any]] = {
    400: told_of("the body cannot be read"),
    401: told_of("a valid API key is needed"),
    403: told_of("the key's role, scopes or tenant do not cover it"),
    413: told_of("too large"),
    422: told_of("a field has a value that cannot be used"),
    429: told_of("the key has used up its calls; Retry-After says when to call again"),
    503: told_of("the database does not answer; Retry-After says when to call again"),
    507: told_of("the disk under the database is full"),
}
UNSIGNED: dict[int | str, dict[str, Any]] = {
    **{status: PROBLEMS[status] for status in (400, 413, 422, 503, 507)},
    401: told_of("the signature is missing or wrong"),
    403: told_of("the address is asked for with a wrong token"),
}
KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "schema": {"type": "string"},
    "description": "makes it safe to repeat the call: the same key and body get the first answer again",
}


def gives(*kinds: str, as_json: bool = False) -> dict[int | str, dict[str, Any]]:
    """What the reference says of an answer that is not always JSON; goes with `response_class=Response`."""
    content: dict[str, Any] = {kind: {"schema": {"type": "string"}} for kind in kinds}
    return {200: {"content": {**content, **({"application/json": {}} if as_json else {})}}}


MADE: dict[int | str, dict[str, Any]] = {201: {"description": "it was not there and was made"}}
MISSING: dict[int | str, dict[str, Any]] = {404: told_of("there is no such thing")}
CONFLICT: dict[int | str, dict[str, Any]] = {409: told_of("not in its present state")}
