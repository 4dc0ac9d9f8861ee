"""Judges requests and answers by a provider's OpenAPI document, which lies beside the checkout."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import jsonschema_rs
import orjson
import pytest

FOLDER = Path(__file__).parents[4] / "shared" / "reference" / "openapi"


@lru_cache
def document(name: str) -> Any:
    """The document; skips the test where the folder is missing."""
    file = FOLDER / name
    if not file.exists():
        pytest.skip(f"{file} is missing")
    return orjson.loads(file.read_bytes())


def judge(name: str, schema: str, value: object) -> None:
    """Validate a value by a schema of the document; properties that the schema does not know are an error."""
    components = document(name)["components"]
    errors = jsonschema_rs.validator_for(
        {"$ref": f"#/components/schemas/{schema}", "components": components}
    ).iter_errors(value)
    assert [f"{error.instance_path}: {error.message}"[:300] for error in errors] == []
    assert isinstance(value, dict)
    assert value.keys() <= components["schemas"][schema]["properties"].keys()
