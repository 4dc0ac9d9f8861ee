"""One question to a platform's API: its JSON, or why there is none. Nothing is changed by asking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple
from urllib.parse import quote

import orjson
from pyreqwest.http import Url

from ...wire.http_client import MAX_SHOWN, HttpClient, MaybeSent, NotSent
from ...wire.retry_after import retry_after
from .port import SourceUnavailable

MAX_ANSWER = 8 << 20  # Telegram's longest is 4 MiB


class SourceApiResponse(NamedTuple):
    """An answer: its status, its JSON object (None if it is none), its beginning for people."""

    status: int
    body: Mapping[str, Any] | None
    shown: str
    wait: timedelta | None


class SourceApiClient:
    """A platform's API. `hide` are the secrets that must not be shown."""

    def __init__(self, base: str, *, deadline: timedelta, hide: Sequence[str]) -> None:
        self._base = base
        self._deadline = deadline
        self._hide = tuple(spelled for secret in hide for spelled in {secret, quote(secret, safe="")})
        self._http = HttpClient(connect_within=deadline / 3)

    async def get(self, path: str, *, headers: Mapping[str, str] = {}, now: int) -> SourceApiResponse:
        """GET once; raises SourceDown when nobody answers."""
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
            raise SourceUnavailable(f"it does not answer: {self._shown(str(error))}") from None
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
        """Let go of connections."""
        await self._http.close()

    def _shown(self, said: str) -> str:
        for secret in self._hide:
            said = said.replace(secret, "[hidden]")
        return "".join(sign if sign.isprintable() else " " for sign in said.strip()[:MAX_SHOWN])
