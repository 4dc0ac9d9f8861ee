"""Limits of request bodies: size (413 Content Too Large) and time to arrive (408 Request Timeout)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from starlette.requests import Request
from starlette.types import Message, Receive

from ..model.errors import TooLarge
from ..outbound.contacts.uploads import MAX_UPLOAD_BYTES
from .errors import BodyTimeout


def check_content_length(headers: Mapping[bytes, bytes], limit: int, remedy: str = "") -> None:
    """Raise TooLarge before the body is read if Content-Length exceeds the limit."""
    length = headers.get(b"content-length", b"")
    if length.isdigit() and int(length) > limit:
        raise body_too_large(limit, remedy)


def reject_oversized_upload(request: Request) -> None:
    """Raise TooLarge if an upload announces more than the limit of all uploads."""
    check_content_length(dict(request.scope["headers"]), MAX_UPLOAD_BYTES)


def with_size_limit(receive: Receive, limit: int, remedy: str = "") -> Receive:
    """Count the bytes that arrive and raise TooLarge above the limit, whatever Content-Length says."""
    received = 0

    async def limited() -> Message:
        nonlocal received
        message = await receive()
        received += len(message.get("body", b""))
        if received > limit:
            raise body_too_large(limit, remedy)
        return message

    return limited


def with_timeout(receive: Receive, seconds: float) -> Receive:
    """Raise BodyTimeout unless the whole body arrives within this time of the first read."""
    deadline: float | None = None
    is_complete = False

    async def timed() -> Message:
        nonlocal deadline, is_complete
        if is_complete:
            return await receive()
        deadline = deadline or asyncio.get_running_loop().time() + seconds
        try:
            async with asyncio.timeout_at(deadline):
                message = await receive()
        except TimeoutError:
            remedy = "send the body without delay; the setting header_timeout is the limit"
            raise BodyTimeout("the body did not arrive in time", remedy=remedy) from None
        is_complete = not message.get("more_body", False)
        return message

    return timed


def remedy_for(path: str) -> str:
    """Return what to do about a body that is too large for this path."""
    if path == "/v1/broadcasts":
        return 'create it with "recipients": "upload", then send the recipients to /v1/broadcasts/ID/recipients'
    return "send less at a time; the limit follows from the setting max_body"


def body_too_large(limit: int, remedy: str = "") -> TooLarge:
    """Return the error for a body above the limit."""
    return TooLarge(f"the body has more than {limit:,} bytes", remedy=remedy or remedy_for(""))
