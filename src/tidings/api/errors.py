"""The error envelope of all responses: code, message, field, remedy and request id; and Retry-After."""

from __future__ import annotations

from typing import Any

import orjson
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import compile_path

from ..model.errors import CallerError, InProgress, RateLimited, TemporaryError, TidingsError

_SECONDS = {InProgress: 1, TemporaryError: 5}  # Retry-After


class MalformedBody(CallerError):
    """The body cannot be parsed."""

    code = "malformed"


class Unauthorized(CallerError):
    """The key is missing or wrong; the response does not say which."""

    code = "unauthorized"
    status = 401


class BodyTimeout(CallerError):
    """The body of a request without a key did not arrive in time."""

    code = "timeout"
    status = 408


class InternalError(TidingsError):
    """A bug in Tidings; details are in the log, not in the response."""

    code = "internal"


_PLACE = "#/components/schemas/{model}"


class Problem(BaseModel):
    """The content of the error envelope."""

    code: str
    message: str
    field: str | None
    remedy: str | None
    request_id: str


class ErrorEnvelope(BaseModel):
    """The body of every error response."""

    error: Problem


def error_response(error: TidingsError, request_id: str) -> Response:
    """Return the response for an error, with Retry-After where it applies."""
    headers = {"retry-after": str(s)} if (s := _seconds(error)) else {}
    if isinstance(error, Unauthorized):
        headers["www-authenticate"] = "Bearer"
    if isinstance(error, BodyTimeout):
        headers["connection"] = "close"  # do not wait for the rest of the body
    body = orjson.dumps({"error": error_body(error, request_id)})
    return Response(body, error.status, headers, media_type="application/json")


def error_body(error: TidingsError, request_id: str) -> dict[str, Any]:
    """Return the content of the error envelope."""
    return {
        "code": error.code,
        "message": error.problem,
        "field": error.field,
        "remedy": error.remedy or None,
        "request_id": request_id,
    }


def error_schemas() -> dict[str, Any]:
    """Return the JSON schemas of the envelope for openapi.json."""
    envelope = ErrorEnvelope.model_json_schema(ref_template=_PLACE)
    return {**envelope.pop("$defs"), ErrorEnvelope.__name__: envelope}


def error_response_schema(description: str) -> dict[str, Any]:
    """Declare an error response in OpenAPI by reference.

    With the model itself the framework would build a parser for each of more than a thousand responses.
    """
    schema = {"$ref": _PLACE.format(model=ErrorEnvelope.__name__)}
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def install(api: FastAPI) -> None:
    """Register handlers that answer every error with the envelope."""
    api.add_exception_handler(TidingsError, _ours)
    api.add_exception_handler(HTTPException, _of_routing)
    api.add_exception_handler(RequestValidationError, _of_parameters)


def request_id_of(request: Request) -> str:
    """Return the request id, which is in the response and in the log."""
    return str(getattr(request.state, "request_id", ""))


async def _ours(request: Request, error: Exception) -> Response:
    assert isinstance(error, TidingsError)
    return error_response(error, request_id_of(request))


async def _of_routing(request: Request, error: Exception) -> Response:
    """Handle 404 and 405 of the framework's router."""
    assert isinstance(error, HTTPException)
    asked = f"{request.method} {request.url.path[:100]}"
    problem: TidingsError
    if error.status_code == 405:
        problem = _FrameworkError(
            405, "method_not_allowed", f"unknown route {asked}", f"allowed here: {_allowed(request)}"
        )
    elif error.status_code == 404:
        problem = route_not_found(request.method, request.url.path)
    else:
        problem = _FrameworkError(error.status_code, "refused", str(error.detail), "see /docs")
    response = error_response(problem, request_id_of(request))
    if error.status_code == 405:
        response.headers["allow"] = _allowed(request)
    return response


async def _of_parameters(request: Request, error: Exception) -> Response:
    """Handle a path or query parameter of the wrong type."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    name = str(first["loc"][-1])
    problem = _FrameworkError(422, "invalid", f"{name} is invalid: {first['msg']}", "correct it, or omit it", name)
    return error_response(problem, request_id_of(request))


def route_not_found(method: str, path: str) -> TidingsError:
    """Return the error for an unknown path."""
    return _FrameworkError(404, "not_found", f"unknown route {method} {path[:100]}", "see /docs for all routes")


def _seconds(error: TidingsError) -> int | None:
    if isinstance(error, RateLimited):
        return error.seconds
    return next((seconds for kind, seconds in _SECONDS.items() if isinstance(error, kind)), None)


def _allowed(request: Request) -> str:
    """Return all methods of a path; the framework names those of one route only."""
    paths: dict[str, dict[str, Any]] = request.app.openapi()["paths"]
    asked = request.url.path
    if asked in paths:
        return ", ".join(sorted(method.upper() for method in paths[asked]))
    fits = [known for template, known in paths.items() if compile_path(template)[0].match(asked)]
    return ", ".join(sorted({method.upper() for known in fits for method in known}))


class _FrameworkError(TidingsError):
    """An error of the framework, for the envelope."""

    def __init__(self, status: int, code: str, problem: str, remedy: str, field: str | None = None) -> None:
        super().__init__(problem, remedy=remedy, field=field)
        self.status = status
        self.code = code
