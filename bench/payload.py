"""The content every contestant carries: about 500 bytes of JSON, different for each message."""

from __future__ import annotations

import json

_TEXT = "Your parcel is on its way and should arrive between nine and noon. " * 6


def content(number: int) -> dict[str, str]:
    """One message's content."""
    return {"to": f"user{number}@example.org", "template": "parcel", "text": f"{number:08d} {_TEXT}"}


def encoded(number: int) -> str:
    """The same as JSON text: between 480 and 520 bytes."""
    return json.dumps(content(number), separators=(",", ":"))
