"""Check the provider-specific fields of a message's `data`. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ...inputs.fields import Field, check_fields
from ...model.errors import Invalid
from .options import matching


def provider_fields_of(content: Mapping[str, Any], known: Mapping[str, Field], provider: str) -> dict[str, Any]:
    """The non-null fields of `data`; raises Invalid for an unknown one."""
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


credential = matching(re.compile(r"[!-~]{1,500}"), "must be printable ASCII without spaces")
