"""What the fuzzer has to know: lines of JSON, ids of things that are there, and where it may call."""

from __future__ import annotations

import itertools
import json
import os
from typing import Any

import schemathesis

KNOWN: dict[str, list[str]] = json.loads(os.environ.get("FUZZ_KNOWN", "{}"))  # by the first part of a path
NOBODY = "http://127.0.0.1:9/hook"
_addresses = itertools.count()


@schemathesis.serializer("application/x-ndjson")
def lines(_context: Any, value: Any) -> bytes:
    """One value a line; what is text already is taken as it is."""
    if isinstance(value, bytes):
        return value
    return value.encode() if isinstance(value, str) else json.dumps(value).encode() + b"\n"


@schemathesis.hook
def map_path_parameters(context: Any, path_parameters: dict[str, Any] | None) -> dict[str, Any] | None:
    """Two of three calls are about something that is there: nonsense alone would only meet 404."""
    known = KNOWN.get(context.operation.path.removeprefix("/v1/").partition("/")[0])
    if not path_parameters or not known:
        return path_parameters
    name = next(iter(path_parameters))
    turn = sum(map(ord, str(path_parameters[name])))
    return path_parameters if turn % 3 == 0 else {**path_parameters, name: known[turn % len(known)]}


@schemathesis.hook
def before_call(_context: Any, case: Any, _kwargs: Any) -> None:
    """Each call comes from another client, as the proxy says: wrong keys are limited by address."""
    address = next(_addresses)
    case.headers["X-Forwarded-For"] = f"198.18.{address // 250 % 250}.{address % 250 + 1}"


@schemathesis.hook
def map_body(_context: Any, body: Any) -> Any:
    """Nobody outside is called: every address that is made up leads to a port where nobody listens."""
    if isinstance(body, dict):
        return {name: map_body(_context, value) for name, value in body.items()}
    if isinstance(body, list):
        return [map_body(_context, value) for value in body]
    return NOBODY if isinstance(body, str) and body.startswith(("http://", "https://")) else body
