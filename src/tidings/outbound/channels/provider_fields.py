"""What a message may carry besides its text, in the words of its provider: the fields of `data`. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ...inputs.fields import Field, check_fields
from ...model.errors import Invalid

_PLAIN = re.compile(r"[!-~]{1,500}")


def provider_fields_of(
    content: Mapping[str, Any], known: Mapping[str, Field], provider: str
) -> dict[str, Any]:
    """The extras of a message, null ones left out; raises Invalid for one that the provider does not know."""
    data = content.get("data")
    if data is None:
        return {}
    if not isinstance(data, dict):
        remedy = f"use an object with some of: {', '.join(known)}"
        raise Invalid("data is not an object", field="data", remedy=remedy)
    try:
        given = check_fields(data, known)
    except Invalid as error:
        problem = f"{provider} cannot use data: {error.problem}"
        raise Invalid(problem, field=f"data.{error.field}", remedy=error.remedy) from error
    return {name: value for name, value in given.items() if value is not None}


def credential(value: object) -> str:
    """Reader of a secret that goes into a header or a body; its value is never repeated."""
    if not isinstance(value, str) or not _PLAIN.fullmatch(value):
        raise ValueError("it must be a text of printable ASCII without spaces")
    return str(value)
