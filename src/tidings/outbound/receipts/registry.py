"""The callback reader of each channel kind, and the callback URL."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from .base import CallbackReader

CALLBACK_KINDS = ("telegram", "twilio", "whatsapp_cloud", "whatsapp_session")  # one file each
CALLBACK_PATH = "/callbacks/"


def reader_of(kind: str, settings: Any, base: str | None) -> CallbackReader | None:
    """The callback reader for a channel's settings; None without callbacks."""
    if kind not in CALLBACK_KINDS:
        return None
    made: CallbackReader | None = import_module(f".{kind}", __package__).reader(settings, base)
    return made


def callback_url(base: str, channel: str) -> str:
    """The URL that a channel's provider calls."""
    return f"{base}{CALLBACK_PATH}{channel}"
