"""A provider's own description of its API as judge: requests and answers are validated against it.

The descriptions are in `shared/reference/openapi` beside the checkout; where they are missing, the test is skipped.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jsonschema
import pytest

_PLACES = [parent / "shared" / "reference" / "openapi" for parent in Path(__file__).parents[3:]]
FOLDER = next((place for place in _PLACES if place.is_dir()), _PLACES[0])


@cache
def _document(name: str) -> dict[str, Any] | None:
    path = FOLDER / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def described(name: str) -> OpenApi:
    """The description of an API."""
    document = _document(name)
    if document is None:
        pytest.skip(f"{FOLDER / name}.json is not there")
    return OpenApi(document)


class OpenApi:
    """Validates requests and answers; the failures are those of jsonschema, with the place."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document

    def request(self, method: str, url: str, body: bytes = b"") -> None:
        """The route exists, each parameter is known and fits, and so does the body."""
        parts = urlsplit(url)
        operation = self._operation(method, parts.path)
        known = {one["name"]: one for one in map(self._resolved, operation.get("parameters", []))}
        for name, values in parse_qs(parts.query, keep_blank_values=True).items():
            assert name in known, f"{method} {parts.path} has no parameter {name}"
            schema = known[name]["schema"]
            given = [_typed(value, schema.get("items", schema)) for value in values]
            self._judge(given if schema.get("type") == "array" else given[0], schema)
        wanted = operation.get("requestBody")
        if wanted is not None and body:
            self._judge(json.loads(body), wanted["content"]["application/json"]["schema"])

    def response(self, method: str, path: str, status: int, body: Any) -> None:
        """The status is described, and the body fits its schema."""
        responses = self._operation(method, path)["responses"]
        found = self._resolved(responses.get(str(status)) or responses["default"])
        if "content" in found:
            self._judge(body, found["content"]["application/json"]["schema"])

    def _operation(self, method: str, path: str) -> Any:
        for template, operations in self._document["paths"].items():
            if method.lower() in operations and re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", template), path):
                shared = operations.get("parameters", [])
                operation = operations[method.lower()]
                return {**operation, "parameters": [*shared, *operation.get("parameters", [])]}
        raise AssertionError(f"the API has no {method} {path}")

    def _resolved(self, one: Any) -> Any:
        if "$ref" not in one:
            return one
        found: Any = self._document
        for step in one["$ref"].removeprefix("#/").split("/"):
            found = found[step]
        return found

    def _judge(self, value: Any, schema: Any) -> None:
        whole = {**schema, "components": self._document["components"]}
        jsonschema.Draft202012Validator(whole).validate(value)


def _typed(value: str, schema: Any) -> Any:
    """A query parameter in the type of its schema."""
    if schema.get("type") == "integer":
        return int(value)
    return {"true": True, "false": False}.get(value, value) if schema.get("type") == "boolean" else value
