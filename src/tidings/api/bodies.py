"""JSON request bodies and JSON responses.

Bodies are parsed without the framework, which would dominate the cost of accepting a message.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from fastapi import Request
from starlette.responses import Response

from ..inputs.fields import Field, check_fields
from ..inputs.pagination import Page
from ..outbound.idempotency import CreateResult
from .errors import MalformedBody
from .query_parameters import reject_query

REASON = {"reason": Field("string", "shown in the history and in explanations", "wrong list")}


async def read_json(request: Request) -> Any:
    """Parse the body as JSON; query parameters are rejected."""
    reject_query(request)
    return parse_json(await request.body(), request.headers.get("content-type", ""))


async def read_fields(request: Request, known: Mapping[str, Field]) -> dict[str, Any]:
    """Parse the body as an object with known fields; an empty body is an empty object."""
    reject_query(request)
    raw = await request.body()
    return check_fields(parse_json(raw, request.headers.get("content-type", "")) if raw.strip() else {}, known)


async def read_reason(request: Request, default: str) -> str:
    """Return the optional field `reason` of the body, or the default."""
    return (await read_fields(request, REASON)).get("reason") or default


def parse_json(raw: bytes, content_type: str = "") -> Any:
    """Parse JSON, or raise MalformedBody with the position of the error, or for a form."""
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        kind = content_type.partition(";")[0].strip().lower()
        if kind in ("application/x-www-form-urlencoded", "multipart/form-data"):
            remedy = "send one JSON object with Content-Type: application/json"
            raise MalformedBody(f"the body is a form ({kind}), not JSON", remedy=remedy) from None
        raise MalformedBody(
            f"the body is not JSON: {error.msg} at character {error.pos}", remedy="send one JSON object"
        ) from None


def json_response(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a JSON response."""
    return Response(orjson.dumps(value), status, headers, media_type="application/json")


def page_response(page: Page) -> Response:
    """Return one page of a list: `items` and the cursor `next`."""
    return json_response(page._asdict())


def created_response(made: CreateResult, location: str | None = None) -> Response:
    """Return 201 with Location; Idempotency-Replayed marks the repeated response of an earlier call."""
    headers = {} if location is None else {"location": location}
    if made.replayed:
        headers["idempotency-replayed"] = "true"
    return json_response(made.answer, 201, headers)
