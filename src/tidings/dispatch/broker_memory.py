"""Memory of the RabbitMQ nodes, from the management API: AMQP itself does not report it."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from datetime import timedelta
from urllib.parse import unquote, urlsplit

import orjson
from pyreqwest.http import Url

from ..wire.http_client import HttpClient, HttpFailure

_DEADLINE = timedelta(seconds=3)
_MAX_RESPONSE = 1 << 20  # bytes
_PATH = "/api/nodes?columns=name,mem_used,mem_limit"


class BrokerMemoryReader:
    """Reads the memory of all nodes from a management URL, such as https://user:password@rabbit:15671."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        user, password = unquote(parts.username or "guest"), unquote(parts.password or "guest")
        self._url = Url(parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl().rstrip("/") + _PATH)
        self._headers = {"authorization": f"Basic {b64encode(f'{user}:{password}'.encode()).decode()}"}
        self._client = HttpClient(connect_within=_DEADLINE)

    async def read(self) -> Mapping[str, tuple[int, int]]:
        """Return bytes in use and the limit, at which publishers are blocked, by node. Empty without an answer."""
        try:
            response = await self._client.request(
                "GET", self._url, headers=self._headers, deadline=_DEADLINE, pinned=None,
                max_response_size=_MAX_RESPONSE,
            )  # fmt: skip
            rows = orjson.loads(response.body_prefix) if response.status == 200 else []
            return {row["name"]: (row["mem_used"], row["mem_limit"]) for row in rows if "mem_used" in row}
        except (HttpFailure, ValueError, KeyError, TypeError):
            return {}

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()
