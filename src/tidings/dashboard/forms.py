"""Forms as browsers send them."""

from __future__ import annotations

from urllib.parse import parse_qs

from starlette.requests import Request


async def read_form(request: Request) -> dict[str, str]:
    """The fields of a form, stripped; what was left empty is left out."""
    raw = (await request.body()).decode("utf-8", "replace")
    fields = parse_qs(raw, max_num_fields=50)
    return {name: values[0].strip() for name, values in fields.items() if values[0].strip()}
