"""An asynchronous client of the HTTP API, with retries, idempotency keys and cursor pagination.

Every POST has an idempotency key, generated unless the caller gives one, so a call whose response was lost is
repeated safely.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from datetime import timedelta
from types import TracebackType
from typing import Any
from urllib.parse import quote, urlencode

import orjson
import uuid_utils
from pyreqwest.http import Url

from ..wire.http_client import HttpClient, HttpFailure, HttpResponse

Row = dict[str, Any]

MAX_RESPONSE = 64 * 1024 * 1024
_RETRIED = frozenset({429, 500, 502, 503, 504, 507})
_MAX_DELAY = 30.0


class ApiError(Exception):
    """The engine rejected the call or is unreachable. `field` and `remedy` say what to fix."""

    def __init__(
        self, status: int | None, code: str, message: str, *, field: str | None = None, remedy: str | None = None
    ) -> None:
        super().__init__(message if remedy is None else f"{message}. {remedy[:1].upper()}{remedy[1:]}")
        self.status, self.code, self.message = status, code, message
        self.field, self.remedy = field, remedy


class Client:
    """A client of one engine. Use it as `async with Client() as tidings:`."""

    def __init__(
        self,
        url: str = "http://127.0.0.1:8020",
        key: str | None = None,
        *,
        attempts: int = 4,
        deadline: timedelta = timedelta(seconds=30),
        first_wait: float = 0.2,  # seconds before the first retry; doubled each time
    ) -> None:
        self._base = url.rstrip("/")
        self._headers = {"accept": "application/json"}
        if key is not None:
            self._headers["authorization"] = f"Bearer {key}"
        self._attempts, self._deadline, self._first_wait = max(1, attempts), deadline, first_wait
        self._http = HttpClient(connect_within=deadline / 2)

    async def __aenter__(self) -> Client:
        """Return the client; nothing is sent yet."""
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """Close all connections."""
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        await self._http.close()

    # -- messages

    async def send(
        self, channel: str, to: str, text: str | None = None, *, key: str | None = None, **fields: Any
    ) -> Row:
        """Send a message. Fields: `at`, `in_`, `subject`, `data`, `template`, `variables`, `priority` …"""
        body = {"channel": channel, "to": to, "text": text, **_plain(fields)}
        return await self.create("/v1/messages", body, key=key)

    async def message(self, id_: str) -> Row:
        """Return a message with its history."""
        return await self.get(f"/v1/messages/{quote(id_, safe='')}")

    async def why(self, id_: str) -> Row:
        """Explain what a message is waiting for, or how it ended."""
        return await self.get(f"/v1/messages/{quote(id_, safe='')}/why")

    async def cancel(self, id_: str) -> Row:
        """Cancel a message that has not been sent yet."""
        return await self.create(f"/v1/messages/{quote(id_, safe='')}/cancel", {})

    def messages(self, **filters: Any) -> AsyncIterator[Row]:
        """Iterate over messages, newest first. Filters: `state`, `channel`, `to`."""
        return self.items("/v1/messages", **filters)

    # -- broadcasts, schedules, contacts

    async def broadcast(self, channel: str, *, key: str | None = None, **fields: Any) -> Row:
        """Create a broadcast. Fields: `addresses` or `list`, `text` or `template`, `trigger` …"""
        return await self.create("/v1/broadcasts", {"channel": channel, **_plain(fields)}, key=key)

    async def schedule(self, rule: Mapping[str, Any], *, key: str | None = None, **fields: Any) -> Row:
        """Create a schedule for a recurring `message` or `broadcast`."""
        return await self.create("/v1/schedules", {"rule": dict(rule), **_plain(fields)}, key=key)

    async def contact(self, **fields: Any) -> Row:
        """Create a contact, or update the one that has one of its addresses."""
        return await self._call("PUT", "/v1/contacts", _plain(fields))

    # -- anything else

    async def get(self, path: str, **query: Any) -> Row:
        """Send a GET request."""
        query_text = urlencode({name: value for name, value in query.items() if value is not None}, doseq=True)
        return await self._call("GET", f"{path}?{query_text}" if query_text else path)

    async def create(self, path: str, body: Mapping[str, Any], *, key: str | None = None) -> Row:
        """Send a POST request with an idempotency key, so that retries take effect once."""
        given = {name: value for name, value in body.items() if value is not None}
        return await self._call("POST", path, given, key=key or str(uuid_utils.uuid7()))

    async def items(self, path: str, *, limit: int = 100, **filters: Any) -> AsyncIterator[Row]:
        """Iterate over all items of a list, page by page."""
        after: str | None = None
        while True:
            page = await self.get(path, limit=limit, after=after, **filters)
            for item in page["items"]:
                yield item
            after = page["next"]
            if after is None:
                return

    async def _call(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, *, key: str | None = None
    ) -> Row:
        """Send a request and retry it while the error is temporary. Raises ApiError."""
        headers = self._headers if key is None else self._headers | {"idempotency-key": key}
        payload = None if body is None else orjson.dumps(body)
        if payload is not None:
            headers = headers | {"content-type": "application/json"}
        for attempt in range(self._attempts):
            is_last = attempt == self._attempts - 1
            try:
                response = await self._http.request(
                    method,
                    Url(self._base + path),
                    headers=headers,
                    body=payload,
                    deadline=self._deadline,
                    pinned=None,
                    max_response_size=MAX_RESPONSE,
                )
            except HttpFailure as failure:
                if is_last:
                    raise ApiError(
                        None, "unreachable", f"no response from {self._base} ({failure})",
                        remedy="check that the engine is running and that the URL is right",
                    ) from failure  # fmt: skip
                await asyncio.sleep(self._delay(attempt, None))
                continue
            if response.status < 400:
                return _read(response)
            if is_last or not _is_temporary(response):
                raise _error(response)
            await asyncio.sleep(self._delay(attempt, response.header("retry-after")))
        raise AssertionError("the last attempt ends the loop")

    def _delay(self, attempt: int, retry_after: str | None) -> float:
        asked = float(retry_after) if retry_after is not None and retry_after.isdigit() else 0.0
        return min(_MAX_DELAY, max(asked, self._first_wait * (1 << attempt)))


def _plain(fields: Mapping[str, Any]) -> Row:
    """Return the given fields; `in_` stands for `in`, a keyword of Python."""
    return {name.removesuffix("_"): value for name, value in fields.items() if value is not None}


def _is_temporary(response: HttpResponse) -> bool:
    return response.status in _RETRIED or (response.status == 409 and b'"in_progress"' in response.body_prefix)


def _read(response: HttpResponse) -> Row:
    found: Row = orjson.loads(response.body_prefix)
    return found


def _error(response: HttpResponse) -> ApiError:
    try:
        error = orjson.loads(response.body_prefix)["error"]
        code, message = str(error["code"]), str(error["message"])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return ApiError(response.status, "unexpected", f"status {response.status}: {response.shown()}")
    return ApiError(response.status, code, message, field=error.get("field"), remedy=error.get("remedy"))
