"""One envelope for everything that goes wrong: what happened, to which field, what to do, in which call."""

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
    """The body cannot be read at all."""

    code = "malformed"


class Unauthorized(CallerError):
    """No key, or a wrong one; both are told in the same words."""

    code = "unauthorized"
    status = 401


class BodyTimeout(CallerError):
    """The body of a caller without a key does not come in time."""

    code = "timeout"
    status = 408


class InternalError(TidingsError):
    """Our own mistake; the log has the details, the answer has none."""

    code = "internal"


_PLACE = "#/components/schemas/{model}"


class Problem(BaseModel):
    """What went wrong."""

    code: str
    message: str
    field: str | None
    remedy: str | None
    request_id: str


class ErrorEnvelope(BaseModel):
    """The body of every error."""

    error: Problem


def error_response(error: TidingsError, request_id: str) -> Response:
    """The answer to a request that failed."""
    headers = {"retry-after": str(s)} if (s := _seconds(error)) else {}
    if isinstance(error, Unauthorized):
        headers["www-authenticate"] = "Bearer"
    if isinstance(error, BodyTimeout):
        headers["connection"] = "close"  # the rest of its body is not waited for
    body = orjson.dumps({"error": error_body(error, request_id)})
    return Response(body, error.status, headers, media_type="application/json")


def error_body(error: TidingsError, request_id: str) -> dict[str, Any]:
    """The inside of the envelope."""
    return {
        "code": error.code,
        "message": error.problem,
        "field": error.field,
        "remedy": error.remedy or None,
        "request_id": request_id,
    }


def error_schemas() -> dict[str, Any]:
    """The envelope and what is in it, for the reference."""
    envelope = ErrorEnvelope.model_json_schema(ref_template=_PLACE)
    return {**envelope.pop("$defs"), ErrorEnvelope.__name__: envelope}


def error_response_schema(description: str) -> dict[str, Any]:
    """How the reference says that an answer is the envelope.

    By its name: the framework would build a reader for every answer of every route, more than a thousand.
    """
    schema = {"$ref": _PLACE.format(model=ErrorEnvelope.__name__)}
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def install(api: FastAPI) -> None:
    """Answer every error of the framework and of ours with the envelope."""
    api.add_exception_handler(TidingsError, _ours)
    api.add_exception_handler(HTTPException, _of_routing)
    api.add_exception_handler(RequestValidationError, _of_parameters)


def request_id_of(request: Request) -> str:
    """The id under which this request is known, in its answer and in the log."""
    return str(getattr(request.state, "request_id", ""))


async def _ours(request: Request, error: Exception) -> Response:
    assert isinstance(error, TidingsError)
    return error_response(error, request_id_of(request))


async def _of_routing(request: Request, error: Exception) -> Response:
    """No such route, or not with this method."""
    assert isinstance(error, HTTPException)
    asked = f"{request.method} {request.url.path[:100]}"
    told: TidingsError
    if error.status_code == 405:
        told = _FrameworkError(
            405, "method_not_allowed", f"there is no {asked}", f"allowed here: {_allowed(request)}"
        )
    elif error.status_code == 404:
        told = route_not_found(request.method, request.url.path)
    else:
        told = _FrameworkError(error.status_code, "refused", str(error.detail), "see /docs")
    answer = error_response(told, request_id_of(request))
    if error.status_code == 405:
        answer.headers["allow"] = _allowed(request)
    return answer


async def _of_parameters(request: Request, error: Exception) -> Response:
    """A path or query parameter of the wrong type."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    name = str(first["loc"][-1])
    told = _FrameworkError(
        422, "invalid", f"{name} cannot be read: {first['msg']}", "correct it, or leave it out", name
    )
    return error_response(told, request_id_of(request))


def route_not_found(method: str, path: str) -> TidingsError:
    """What is said of an address that leads nowhere."""
    return _FrameworkError(
        404, "not_found", f"there is no {method} {path[:100]}", "the routes are listed at /docs"
    )


def _seconds(error: TidingsError) -> int | None:
    if isinstance(error, RateLimited):
        return error.seconds
    return next((seconds for kind, seconds in _SECONDS.items() if isinstance(error, kind)), None)


def _allowed(request: Request) -> str:
    """The methods that this path does have; the framework names those of one route only."""
    paths: dict[str, dict[str, Any]] = request.app.openapi()["paths"]
    asked = request.url.path
    if asked in paths:
        return ", ".join(sorted(method.upper() for method in paths[asked]))
    fits = [known for template, known in paths.items() if compile_path(template)[0].match(asked)]
    return ", ".join(sorted({method.upper() for known in fits for method in known}))


class _FrameworkError(TidingsError):
    """An error of the framework, in our words."""

    def __init__(self, status: int, code: str, problem: str, remedy: str, field: str | None = None) -> None:
        super().__init__(problem, remedy=remedy, field=field)
        self.status = status
        self.code = code
