"""OpenAPI declarations of request bodies, error responses and responses that are not JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from ..inputs.fields import Field, json_schema
from .errors import error_response_schema


def body_schema(
    known: Mapping[str, Field], *, required: bool = True, keyed: bool = False, kind: str = "application/json"
) -> dict[str, Any]:
    """Return the OpenAPI declaration of a body; `keyed` adds the header Idempotency-Key."""
    body = {"requestBody": {"required": required, "content": {kind: {"schema": json_schema(known)}}}}
    return {**body, "parameters": [IDEMPOTENCY_KEY]} if keyed else body


ERROR_RESPONSES: dict[int | str, dict[str, Any]] = {
    400: error_response_schema("The body is not valid JSON."),
    401: error_response_schema("A valid API key is required."),
    403: error_response_schema("The key's role, scopes or tenant do not permit this."),
    413: error_response_schema("The body is too large."),
    422: error_response_schema("A field or parameter is invalid."),
    429: error_response_schema("Rate limit exceeded; retry after Retry-After seconds."),
    503: error_response_schema("The database is unavailable; retry after Retry-After seconds."),
    507: error_response_schema("The disk of the database is full."),
}
WEBHOOK_ERROR_RESPONSES: dict[int | str, dict[str, Any]] = {
    **{status: ERROR_RESPONSES[status] for status in (400, 413, 422, 503, 507)},
    401: error_response_schema("The signature is missing or invalid."),
    403: error_response_schema("The verify token is wrong."),
}
IDEMPOTENCY_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "schema": {"type": "string"},
    "description": "Makes retries safe: the same key and body return the first response again.",
}


def response_content(*kinds: str, as_json: bool = False) -> dict[int | str, dict[str, Any]]:
    """Declare a response that is not always JSON; use it with `response_class=Response`."""
    content: dict[str, Any] = {kind: {"schema": {"type": "string"}} for kind in kinds}
    return {200: {"content": {**content, **({"application/json": {}} if as_json else {})}}}


CREATED: dict[int | str, dict[str, Any]] = {201: {"description": "Created."}}
NOT_FOUND: dict[int | str, dict[str, Any]] = {404: error_response_schema("Not found.")}
CONFLICT: dict[int | str, dict[str, Any]] = {409: error_response_schema("The current state does not allow this.")}


def create_options(known: Mapping[str, Field]) -> dict[str, Any]:
    """Options of a route that creates a resource: a body, Idempotency-Key, 201 and 409."""
    return {"status_code": 201, "openapi_extra": body_schema(known, keyed=True), "responses": CONFLICT}


def action_options(known: Mapping[str, Field], *, required: bool = False) -> dict[str, Any]:
    """Options of a route that acts on a resource: a body, 404 and 409."""
    return {"openapi_extra": body_schema(known, required=required), "responses": NOT_FOUND | CONFLICT}


def content_options(*kinds: str, errors: dict[int | str, dict[str, Any]] | None = None) -> dict[str, Any]:
    """Options of a route that returns content of these types instead of JSON."""
    return {"response_class": Response, "responses": (errors or {}) | response_content(*kinds)}
