"""The client of the HTTP API.

Every creating call has an idempotency key, one of its own unless the caller gives one. So a call whose answer
was lost is sent again with the same key, and does its work once.
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

MOST_ANSWER = 64 * 1024 * 1024
_AGAIN = frozenset({429, 500, 502, 503, 504, 507})  # the same call may succeed later
_LONGEST_WAIT = 30.0


class ApiError(Exception):
    """The engine refused, or could not be reached. `field` and `remedy` say what to mend."""

    def __init__(
        self,
        status: int | None,
        code: str,
        message: str,
        *,
        field: str | None = None,
        remedy: str | None = None,
    ) -> None:
        super().__init__(message if remedy is None else f"{message}. {remedy[:1].upper()}{remedy[1:]}")
        self.status, self.code, self.message = status, code, message
        self.field, self.remedy = field, remedy


class Client:
    """One engine, over HTTP. Use it as `async with Client() as tidings:`."""

    def __init__(
        self,
        url: str = "http://127.0.0.1:8020",
        key: str | None = None,
        *,
        attempts: int = 4,
        deadline: timedelta = timedelta(seconds=30),
        first_wait: float = 0.2,  # seconds; doubled each time
    ) -> None:
        self._base = url.rstrip("/")
        self._headers = {"accept": "application/json"}
        if key is not None:
            self._headers["authorization"] = f"Bearer {key}"
        self._tries, self._deadline, self._first_wait = max(1, attempts), deadline, first_wait
        self._http = HttpClient(connect_within=deadline / 2)

    async def __aenter__(self) -> Client:
        """Nothing is sent yet."""
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """Let go of the connections."""
        await self.close()

    async def close(self) -> None:
        """Let go of the connections."""
        await self._http.close()

    # -- messages

    async def send(
        self, channel: str, to: str, text: str | None = None, *, key: str | None = None, **fields: Any
    ) -> Row:
        """Accept one message: `at`, `in_`, `subject`, `data`, `template`, `variables`, `priority` …"""
        body = {"channel": channel, "to": to, "text": text, **_plain(fields)}
        return await self.create("/v1/messages", body, key=key)

    async def message(self, id_: str) -> Row:
        """One message with its whole history."""
        return await self.get(f"/v1/messages/{quote(id_, safe='')}")

    async def why(self, id_: str) -> Row:
        """What it waits for, or what became of it."""
        return await self.get(f"/v1/messages/{quote(id_, safe='')}/why")

    async def cancel(self, id_: str) -> Row:
        """Give it up, if it has not begun."""
        return await self.create(f"/v1/messages/{quote(id_, safe='')}/cancel", {})

    def messages(self, **filters: Any) -> AsyncIterator[Row]:
        """All messages, newest first, page by page: `state`, `channel`, `to`."""
        return self.items("/v1/messages", **filters)

    # -- broadcasts, schedules, contacts

    async def broadcast(self, channel: str, *, key: str | None = None, **fields: Any) -> Row:
        """One content for many: `addresses` or `list`, `text` or `template`, `trigger`, `per_second` …"""
        return await self.create("/v1/broadcasts", {"channel": channel, **_plain(fields)}, key=key)

    async def schedule(self, rule: Mapping[str, Any], *, key: str | None = None, **fields: Any) -> Row:
        """A rule that makes a `message` or a `broadcast` again and again."""
        return await self.create("/v1/schedules", {"rule": dict(rule), **_plain(fields)}, key=key)

    async def contact(self, **fields: Any) -> Row:
        """Create the contact, or change the one that has one of its addresses."""
        return await self._call("PUT", "/v1/contacts", _plain(fields))

    # -- anything else

    async def get(self, path: str, **query: Any) -> Row:
        """Read one thing."""
        asked = urlencode({name: value for name, value in query.items() if value is not None}, doseq=True)
        return await self._call("GET", f"{path}?{asked}" if asked else path)

    async def create(self, path: str, body: Mapping[str, Any], *, key: str | None = None) -> Row:
        """A call that changes something, once, however often it has to be sent."""
        given = {name: value for name, value in body.items() if value is not None}
        return await self._call("POST", path, given, key=key or str(uuid_utils.uuid7()))

    async def items(self, path: str, *, limit: int = 100, **filters: Any) -> AsyncIterator[Row]:
        """Every item of a list, page by page."""
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
        """Ask until there is an answer that counts; what changes something is repeated only with its key."""
        headers = self._headers if key is None else self._headers | {"idempotency-key": key}
        payload = None if body is None else orjson.dumps(body)
        if payload is not None:
            headers = headers | {"content-type": "application/json"}
        for number in range(self._tries):
            is_last = number == self._tries - 1
            try:
                answer = await self._http.request(
                    method,
                    Url(self._base + path),
                    headers=headers,
                    body=payload,
                    deadline=self._deadline,
                    pinned=None,
                    max_response_size=MOST_ANSWER,
                )
            except HttpFailure as failure:
                if is_last:
                    raise ApiError(
                        None, "unreachable", f"no answer from {self._base} ({failure})",
                        remedy="check that it runs and that the address is right",
                    ) from failure  # fmt: skip
                await asyncio.sleep(self._pause(number, None))
                continue
            if answer.status < 400:
                return _read(answer)
            if is_last or not _is_worth_another(answer):
                raise _refused(answer)
            await asyncio.sleep(self._pause(number, answer.header("retry-after")))
        raise AssertionError("the last try ends the loop")

    def _pause(self, number: int, told: str | None) -> float:
        known = float(told) if told is not None and told.isdigit() else 0.0
        return min(_LONGEST_WAIT, max(known, self._first_wait * (1 << number)))


def _plain(fields: Mapping[str, Any]) -> Row:
    """`in_` is the field `in`, which Python keeps for itself."""
    return {name.removesuffix("_"): value for name, value in fields.items() if value is not None}


def _is_worth_another(answer: HttpResponse) -> bool:
    return answer.status in _AGAIN or (answer.status == 409 and b'"in_progress"' in answer.body_prefix)


def _read(answer: HttpResponse) -> Row:
    found: Row = orjson.loads(answer.body_prefix)
    return found


def _refused(answer: HttpResponse) -> ApiError:
    try:
        said = orjson.loads(answer.body_prefix)["error"]
        code, message = str(said["code"]), str(said["message"])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return ApiError(answer.status, "unexpected", f"status {answer.status}: {answer.shown()}")
    return ApiError(answer.status, code, message, field=said.get("field"), remedy=said.get("remedy"))
