"""Bodies: read by hand, because the hot path has no time for more. Sizes are watched by the gate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from fastapi import Request
from starlette.responses import Response

from ..inputs.fields import Field, check_fields, json_schema
from ..outbound.idempotency import CreateResult
from .errors import MalformedBody, error_response_schema
from .query_parameters import reject_query


async def read_json(request: Request) -> Any:
    """The body as JSON."""
    reject_query(request)
    return parse_json(await request.body())


async def read_fields(request: Request, known: Mapping[str, Field]) -> dict[str, Any]:
    """The body as an object with known fields; no body at all is an empty object."""
    reject_query(request)
    raw = await request.body()
    return check_fields(parse_json(raw), known) if raw.strip() else check_fields({}, known)


def parse_json(raw: bytes) -> Any:
    """JSON, or an error that says where it breaks off."""
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise MalformedBody(
            f"the body is not JSON: {error.msg} at character {error.pos}", remedy="send one JSON object"
        ) from None


def json_response(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A value as JSON."""
    return Response(orjson.dumps(value), status, headers, media_type="application/json")


def created_response(made: CreateResult, place: str | None = None) -> Response:
    """What was made, where it is, and whether the same call had made it before."""
    headers = {} if place is None else {"location": place}
    if made.replayed:
        headers["idempotency-replayed"] = "true"
    return json_response(made.answer, 201, headers)


def body_schema(
    known: Mapping[str, Field], *, required: bool = True, keyed: bool = False, kind: str = "application/json"
) -> dict[str, Any]:
    """What the reference says about a body, and about the key that makes the call repeatable."""
    body = {"requestBody": {"required": required, "content": {kind: {"schema": json_schema(known)}}}}
    return {**body, "parameters": [IDEMPOTENCY_KEY]} if keyed else body


ERROR_RESPONSES: dict[int | str, dict[str, Any]] = {
    400: error_response_schema("the body cannot be read"),
    401: error_response_schema("a valid API key is needed"),
    403: error_response_schema("the key's role, scopes or tenant do not cover it"),
    413: error_response_schema("too large"),
    422: error_response_schema("a field has a value that cannot be used"),
    429: error_response_schema("the key has used up its calls; Retry-After says when to call again"),
    503: error_response_schema("the database does not answer; Retry-After says when to call again"),
    507: error_response_schema("the disk under the database is full"),
}
WEBHOOK_ERROR_RESPONSES: dict[int | str, dict[str, Any]] = {
    **{status: ERROR_RESPONSES[status] for status in (400, 413, 422, 503, 507)},
    401: error_response_schema("the signature is missing or wrong"),
    403: error_response_schema("the address is asked for with a wrong token"),
}
IDEMPOTENCY_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "schema": {"type": "string"},
    "description": "makes it safe to repeat the call: the same key and body get the first answer again",
}


def response_content(*kinds: str, as_json: bool = False) -> dict[int | str, dict[str, Any]]:
    """What the reference says of an answer that is not always JSON; goes with `response_class=Response`."""
    content: dict[str, Any] = {kind: {"schema": {"type": "string"}} for kind in kinds}
    return {200: {"content": {**content, **({"application/json": {}} if as_json else {})}}}


CREATED: dict[int | str, dict[str, Any]] = {201: {"description": "it was not there and was made"}}
NOT_FOUND: dict[int | str, dict[str, Any]] = {404: error_response_schema("there is no such thing")}
CONFLICT: dict[int | str, dict[str, Any]] = {409: error_response_schema("not in its present state")}
