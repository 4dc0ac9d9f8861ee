"""The description of the API (openapi.json): what the framework says of it, the envelope, who may call."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from ..access.permissions import OPEN
from . import errors
from .authorization import list_routes

_SECURITY_SCHEMES = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "Authorization: Bearer KEY"},
    "key": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
}


def install(api: FastAPI) -> None:
    """Let the application describe itself completely; routes may still be added until it is first asked."""
    described_by_framework = api.openapi

    def openapi() -> dict[str, Any]:
        is_new = api.openapi_schema is None
        document = described_by_framework()
        if is_new:
            _complete(
                document,
                {(place.method, place.path) for place in list_routes(api) if place.rule.action is OPEN},
            )
        return document

    api.openapi = openapi  # type: ignore[method-assign]


def _complete(document: dict[str, Any], unlocked: set[tuple[str, str]]) -> None:
    """`unlocked` are the routes that need no key: they have a signature or a token of their own, or none."""
    parts = document.setdefault("components", {})
    parts.setdefault("schemas", {}).update(errors.error_schemas())
    parts["securitySchemes"] = _SECURITY_SCHEMES
    document["security"] = [{name: []} for name in _SECURITY_SCHEMES]
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            if (method.upper(), path) in unlocked:
                operation["security"] = []
