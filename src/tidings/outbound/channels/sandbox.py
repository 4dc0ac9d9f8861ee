"""The sandbox channel: messages go to the simulated phone instead of a real provider.

The phone shows every copy, so an uncertain message is resent and the duplicate is visible. The URL is the
operator's, so the SSRF guard does not apply and loopback is allowed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import ClassVar

import orjson

from ...model.errors import Invalid
from ...model.message import Message
from ...model.outcome import Done, Outcome, Reject, Retry, Unknown
from ...model.task import Category, OnUnknown
from ...wire.http_client import HttpClient, HttpResponse, MaybeSent, NotSent
from ...wire.retry_after import retry_after
from ...wire.ssrf_guard import ForbiddenUrl, SsrfRules, check_url
from .base import BaseChannelSettings, NoLookup, traits_of
from .options import channel_kind

PATH = "/sandbox/messages"
ANY_HOST = SsrfRules(allow_private=True, allow_http=True)

_HEADERS = {"content-type": "application/json"}
_MAX_ANSWER = 65_536


@dataclass(frozen=True, slots=True)
class SandboxSettings(BaseChannelSettings):
    """Settings; `url` is the address of the sandbox."""

    url: str = "http://127.0.0.1:8025"
    deadline: timedelta = field(default=timedelta(seconds=10), kw_only=True)


class SandboxChannel(NoLookup):
    """Sends messages to the simulated phone; `now` returns the current instant."""

    kind: ClassVar[str] = "sandbox"
    no_lookup = "the sandbox cannot be queried"

    def __init__(self, settings: SandboxSettings, *, now: Callable[[], int]) -> None:
        self.traits = traits_of(settings, OnUnknown.RESEND, "the sandbox marks duplicates")
        self._address = settings.url.rstrip("/")
        self._url = check_url(self._address + PATH, ANY_HOST).url
        self._now = now
        self._http = HttpClient(connect_within=settings.deadline / 2, linger=self.traits.linger)

    def check(self, recipient: str, content: dict[str, object]) -> None:
        """Raise Invalid for an empty recipient."""
        if not recipient.strip():
            raise Invalid("The recipient is empty", remedy="Give a name or a number", field="to")

    async def send(self, message: Message) -> Outcome:
        """POST once to the simulated phone."""
        try:
            answer = await self._http.request(
                "POST",
                self._url,
                headers=_HEADERS,
                body=body_of(message),
                deadline=self.traits.deadline,
                pinned=None,
                max_response_size=_MAX_ANSWER,
            )
        except TypeError as error:  # from orjson
            return Reject(Category.VALIDATION, f"the content cannot be written as JSON: {error}")
        except NotSent as error:
            return Retry(Category.TEMPORARY, f"not sent: {error}")
        except MaybeSent as error:
            return Unknown(f"no answer after the request was sent: {error}")
        return outcome_of(answer, now=self._now())

    async def probe(self) -> Outcome:
        """Check that the sandbox answers."""
        url = check_url(f"{self._address}/sandbox/faults", ANY_HOST).url
        try:
            answer = await self._http.request(
                "GET", url, headers={}, deadline=self.traits.deadline, pinned=None, max_response_size=_MAX_ANSWER
            )
        except (NotSent, MaybeSent) as error:
            return Retry(Category.TEMPORARY, str(error))
        if answer.status != 200:
            return Reject(Category.PERMANENT, f"no sandbox at this URL: HTTP {answer.status}")
        return Done(f"the simulated phone at {self._address}")

    async def close(self) -> None:
        """Close all connections."""
        await self._http.close()


def body_of(message: Message) -> bytes:
    """The JSON for the phone; `attempt` distinguishes a retry from a duplicate."""
    content = message.content
    return orjson.dumps(
        {
            "id": message.id,
            "to": message.recipient,
            "text": message.text,
            "subject": content.get("subject"),
            "data": content.get("data"),
            "attempt": message.attempt,
        }
    )


def outcome_of(answer: HttpResponse, *, now: int) -> Outcome:
    """The outcome of the phone's response."""
    status, reason = answer.status, f"HTTP {answer.status}: {answer.shown()}"
    if 200 <= status < 300:
        return Done(receipt=_receipt(answer.body_prefix))
    if status >= 500 or status in (408, 425, 429):
        category = Category.THROTTLING if status == 429 else Category.TEMPORARY
        return Retry(category, reason, after=retry_after(answer.header("retry-after"), now=now))
    return Reject(Category.VALIDATION if status in (400, 413, 422) else Category.PERMANENT, reason)


def _receipt(body: bytes) -> str | None:
    """The phone's message id; None if the body is unreadable, because the status has decided."""
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    receipt = answer.get("receipt") if isinstance(answer, dict) else None
    return receipt if isinstance(receipt, str) else None


def _judge(settings: SandboxSettings) -> None:
    """Check the URL."""
    try:
        check_url(settings.url, ANY_HOST)
    except ForbiddenUrl as error:
        raise ValueError("url", str(error), "Use the sandbox's address, such as http://127.0.0.1:8025") from error


KIND = channel_kind(SandboxSettings, SandboxChannel, _judge)
