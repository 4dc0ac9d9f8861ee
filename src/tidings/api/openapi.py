"""openapi.json: adds the error envelope and the security schemes to the document of the framework."""

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
    """Complete openapi.json on first use, so routes can be added until then."""
    framework_openapi = api.openapi

    def openapi() -> dict[str, Any]:
        is_new = api.openapi_schema is None
        document = framework_openapi()
        if is_new:
            _complete(document, {(entry.method, entry.path) for entry in list_routes(api) if entry.rule.action is OPEN})
        return document

    api.openapi = openapi  # type: ignore[method-assign]


def _complete(document: dict[str, Any], open_routes: set[tuple[str, str]]) -> None:
    """`open_routes` need no key: they check a signature or a token, or are public."""
    components = document.setdefault("components", {})
    components.setdefault("schemas", {}).update(errors.error_schemas())
    components["securitySchemes"] = _SECURITY_SCHEMES
    document["security"] = [{name: []} for name in _SECURITY_SCHEMES]
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            if (method.upper(), path) in open_routes:
                operation["security"] = []
