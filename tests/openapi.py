"""A provider's own OpenAPI document as a judge of requests and answers.

The documents are not part of the project. They are looked for in `shared/reference/openapi`, in a folder that
holds the checkout; without them the tests that need one are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest
from jsonschema import Draft202012Validator

_ROOT = Path(__file__).resolve().parent.parent


class OpenApi:
    """One document; what it says of a request or an answer."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._paths: Mapping[str, Any] = document["paths"]
        self._schemas = _plain(document["components"]["schemas"])

    @classmethod
    def read(cls, name: str) -> OpenApi:
        """Read a document; skips the test where it is missing."""
        for folder in _ROOT.parents:
            found = folder / "shared" / "reference" / "openapi" / name
            if found.exists():
                return cls(orjson.loads(found.read_bytes()))
        pytest.skip(f"no foreign OpenAPI document {name} beside the checkout")

    def answer_problems(self, method: str, path: str, status: int, body: Any) -> list[str]:
        """What is wrong with an answer; an undocumented status is, too."""
        answers = self._operation(method, path)["responses"]
        if str(status) not in answers:
            return [f"{method} {path}: {status} is not documented"]
        content = answers[str(status)].get("content")
        return [] if not content else self.problems(_plain(content["application/json"]["schema"]), body)

    def request_problems(self, method: str, path: str, query: Mapping[str, Any], body: Any) -> list[str]:
        """What is wrong with a request: fields and parameters that the document does not know, too."""
        operation = self._operation(method, path)
        known = {one["name"]: one for one in operation.get("parameters", ()) if one["in"] == "query"}
        wrong = [f"unknown parameter {name}" for name in query if name not in known]
        wrong += [f"missing {name}" for name, one in known.items() if one.get("required") and name not in query]
        if "requestBody" not in operation:
            return wrong
        schema = _plain(operation["requestBody"]["content"]["application/json"]["schema"])
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            wrong += [f"unknown field {field}" for field in body if field not in self._schemas[name]["properties"]]
        return wrong + self.problems(schema, body)

    def problems(self, schema: Mapping[str, Any] | str, value: Any) -> list[str]:
        """What is wrong with a value; a schema may be named."""
        if isinstance(schema, str):
            schema = {"$ref": f"#/components/schemas/{schema}"}
        validator = Draft202012Validator({**schema, "components": {"schemas": self._schemas}})
        return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(value)]

    def _operation(self, method: str, path: str) -> Mapping[str, Any]:
        for template in sorted(self._paths, key=lambda one: one.count("{")):
            if re.fullmatch(re.sub(r"\{[^}]+\}", "[^/]+", template), path) and method.lower() in self._paths[template]:
                found: Mapping[str, Any] = self._paths[template][method.lower()]
                return found
        raise AssertionError(f"{method} {path} is not documented")


def _plain(node: Any) -> Any:
    """OpenAPI 3.0 as JSON Schema: `nullable`, and without what its generators get wrong."""
    if isinstance(node, list):
        return [_plain(one) for one in node]
    if not isinstance(node, dict):
        return node
    made = {name: _plain(value) for name, value in node.items() if name not in ("example", "examples", "default")}
    if isinstance(made.get("required"), bool):  # belongs to the object that holds it
        del made["required"]
    if made.get("type") == "object" and "enum" in made:  # an enum of texts is said to be an object
        del made["type"]
    if made.pop("nullable", False) is True and "type" in made:
        made["type"] = [made["type"], "null"]
    return made
