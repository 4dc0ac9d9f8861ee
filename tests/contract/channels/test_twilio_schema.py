"""Twilio's own OpenAPI document as a judge of our requests and of the simulated Twilio's answers.

The document is not part of the project: it is looked for in `shared/reference/openapi` beside the checkout.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import httpx
import orjson
import pytest
from jsonschema import Draft202012Validator

from tidings.model.outcome import Done

from .conftest import Sandbox
from .test_twilio import ACCOUNT, TOKEN, send

MESSAGES = "/2010-04-01/Accounts/{AccountSid}/Messages.json"
SERVICE, TEMPLATE = "MG" + "0123456789abcdef" * 2, "HX" + "0123456789abcdef" * 2


@cache
def document() -> Any:
    """The document; the test is skipped where it is missing."""
    for folder in Path(__file__).parents[4:]:
        found = folder / "shared" / "reference" / "openapi" / "twilio-v2010.json"
        if found.exists():
            return _plain(orjson.loads(found.read_bytes()))
    pytest.skip("no shared/reference/openapi/twilio-v2010.json beside the checkout")


def _plain(node: Any) -> Any:
    """OpenAPI 3.0 as JSON Schema: `nullable` is a type."""
    if isinstance(node, list):
        return [_plain(one) for one in node]
    if not isinstance(node, dict):
        return node
    made = {name: _plain(value) for name, value in node.items()}
    if made.pop("nullable", False) is True and "type" in made:
        made["type"] = [made["type"], "null"]
    return made


def problems(schema: Any, value: Any) -> list[str]:
    """What the document says against a value; a field that it does not know is a problem, too."""
    name = schema["$ref"].rpartition("/")[2] if "$ref" in schema else None
    known = (schema if name is None else document()["components"]["schemas"][name])["properties"]
    validator = Draft202012Validator({**schema, "components": document()["components"]})
    unknown = [f"unknown field {field}" for field in value if field not in known]
    return unknown + [f"{error.json_path}: {error.message}" for error in validator.iter_errors(value)]


@pytest.mark.parametrize(
    ("to", "options", "content"),
    [
        ("+15551234567", {}, {"data": {"media": ["https://example.com/map.png", "https://example.com/b.png"]}}),
        ("+15551234567", {"status_callback": "https://example.com/callbacks/texts?message={id}", "validity": "1h"}, {}),
        ("+15551234567", {"sender": None, "messaging_service": SERVICE}, {}),
        ("US.13491208655302741918", {"via": "whatsapp"}, {}),
        (
            "+15551234567",
            {"via": "whatsapp"},
            {"text": "", "data": {"content_sid": TEMPLATE, "content_variables": {"1": "a"}}},
        ),
    ],
)
async def test_requests_and_answers_follow_twilios_openapi_document(
    sandbox: Sandbox, to: str, options: dict[str, Any], content: dict[str, Any]
) -> None:
    """Each field of the form is known and valid, and so is each field of the message that comes back."""
    operation = document()["paths"][MESSAGES]["post"]
    assert isinstance(await send(sandbox.url, to, options, **content), Done)

    form = parse_qs(sandbox.requests[0].body.decode(), keep_blank_values=True)
    schema = operation["requestBody"]["content"]["application/x-www-form-urlencoded"]["schema"]
    fields: dict[str, Any] = {}
    for name, values in form.items():
        kind = schema["properties"].get(name, {}).get("type", "string")
        fields[name] = values if kind == "array" else int(values[0]) if kind == "integer" else values[0]
    assert problems(schema, fields) == []

    headers = {"content-type": "application/x-www-form-urlencoded"}
    async with httpx.AsyncClient(auth=(ACCOUNT, TOKEN)) as http:
        url = f"{sandbox.url}{MESSAGES.replace('{AccountSid}', ACCOUNT)}"
        made = await http.post(url, content=sandbox.requests[0].body, headers=headers)
        listed = await http.get(url)
        account = await http.get(f"{sandbox.url}/2010-04-01/Accounts/{ACCOUNT}.json")
    answer = operation["responses"]["201"]["content"]["application/json"]["schema"]
    assert (made.status_code, problems(answer, made.json())) == (201, [])
    page = document()["paths"][MESSAGES]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    assert problems(page, listed.json()) == []
    assert [problem for message in listed.json()["messages"] for problem in problems(answer, message)] == []
    one = document()["paths"]["/2010-04-01/Accounts/{Sid}.json"]["get"]["responses"]["200"]
    assert problems(one["content"]["application/json"]["schema"], account.json()) == []
