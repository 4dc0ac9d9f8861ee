"""GET requests to a platform's API, with Retry-After."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, NamedTuple
from urllib.parse import quote

import orjson
from pyreqwest.http import Url

from ...wire.http_client import MAX_SHOWN, HttpClient, MaybeSent, NotSent
from ...wire.retry_after import retry_after
from .port import SourceUnavailable
from .settings import SourceSettings

MAX_ANSWER = 8 << 20  # Telegram's largest response has 4 MiB


class SourceApiResponse(NamedTuple):
    """A response: status, JSON object (None if it is not one), and an excerpt for error messages."""

    status: int
    body: Mapping[str, Any] | None
    shown: str
    wait: timedelta | None


class SourceApiClient:
    """The API of a source's platform. The token is redacted from excerpts."""

    def __init__(self, settings: SourceSettings) -> None:
        self._base = settings.base_url
        self._deadline = settings.deadline
        self._hide = {settings.token, quote(settings.token, safe="")} if settings.token else set()
        self._http = HttpClient(connect_within=settings.deadline / 3)

    async def get(self, path: str, *, headers: Mapping[str, str] = {}, now: int) -> SourceApiResponse:
        """Send one GET request; raises SourceUnavailable if there is no response."""
        try:
            answer = await self._http.request(
                "GET",
                Url(self._base + path),
                headers=headers,
                deadline=self._deadline,
                pinned=None,
                max_response_size=MAX_ANSWER,
            )
        except (NotSent, MaybeSent) as error:
            raise SourceUnavailable(f"no response: {self._shown(str(error))}") from None
        raw = answer.body_prefix
        try:
            body = orjson.loads(raw) if raw.strip() else {}
        except orjson.JSONDecodeError:
            body = None
        return SourceApiResponse(
            answer.status,
            body if isinstance(body, dict) else None,
            self._shown(raw[: 8 * MAX_SHOWN].decode(errors="replace")),
            retry_after(answer.header("retry-after"), now=now),
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._http.close()

    def _shown(self, said: str) -> str:
        for secret in self._hide:
            said = said.replace(secret, "[hidden]")
        return "".join(sign if sign.isprintable() else " " for sign in said.strip()[:MAX_SHOWN])
