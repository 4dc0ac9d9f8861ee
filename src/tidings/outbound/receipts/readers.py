"""Which channels are called back, and who reads what comes."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from .receipt import Reader

KINDS = ("telegram", "twilio", "whatsapp_cloud", "whatsapp_session")  # each is read by the file of its name
PATH = "/callbacks/"


def reader_of(kind: str, settings: Any, base: str | None) -> Reader | None:
    """The reader for a channel's settings; None where its provider is not asked to call back."""
    if kind not in KINDS:
        return None
    made: Reader | None = import_module(f".{kind}", __package__).reader(settings, base)
    return made


def address(base: str, channel: str) -> str:
    """Where a channel's provider calls."""
    return f"{base}{PATH}{channel}"
