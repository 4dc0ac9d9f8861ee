"""A blocking client for programs without asyncio, with the calls of `Client`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any

from .client import Client, Row


class SyncClient:
    """A blocking client. Use it as `with SyncClient() as tidings:`, outside of an event loop."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self._runner = asyncio.Runner()
        self._client = Client(*args, **options)

    def __enter__(self) -> SyncClient:
        """Return the client; nothing is sent yet."""
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """Close all connections."""
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._runner.run(self._client.close())
        self._runner.close()

    def send(self, channel: str, to: str, text: str | None = None, *, key: str | None = None, **fields: Any) -> Row:
        """See `Client.send`."""
        return self._runner.run(self._client.send(channel, to, text, key=key, **fields))

    def message(self, id_: str) -> Row:
        """See `Client.message`."""
        return self._runner.run(self._client.message(id_))

    def why(self, id_: str) -> Row:
        """See `Client.why`."""
        return self._runner.run(self._client.why(id_))

    def cancel(self, id_: str) -> Row:
        """See `Client.cancel`."""
        return self._runner.run(self._client.cancel(id_))

    def broadcast(self, channel: str, *, key: str | None = None, **fields: Any) -> Row:
        """See `Client.broadcast`."""
        return self._runner.run(self._client.broadcast(channel, key=key, **fields))

    def schedule(self, rule: Mapping[str, Any], *, key: str | None = None, **fields: Any) -> Row:
        """See `Client.schedule`."""
        return self._runner.run(self._client.schedule(rule, key=key, **fields))

    def contact(self, **fields: Any) -> Row:
        """See `Client.contact`."""
        return self._runner.run(self._client.contact(**fields))

    def get(self, path: str, **query: Any) -> Row:
        """See `Client.get`."""
        return self._runner.run(self._client.get(path, **query))

    def create(self, path: str, body: Mapping[str, Any], *, key: str | None = None) -> Row:
        """See `Client.create`."""
        return self._runner.run(self._client.create(path, body, key=key))

    def messages(self, **filters: Any) -> Iterator[Row]:
        """See `Client.messages`."""
        found = self._client.messages(**filters)
        while True:
            try:
                yield self._runner.run(anext(found))  # type: ignore[arg-type]
            except StopAsyncIteration:
                return
