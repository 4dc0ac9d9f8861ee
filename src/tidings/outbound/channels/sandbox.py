"""The sandbox: messages go to the pretend phone instead of a real provider.

The phone shows every copy, so a message in doubt is sent again and the duplicate can be seen. The URL is the
operator's own and not a user's: it is called as it is, loopback included.
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
from .base import BaseChannelSettings, traits_of
from .options import ChannelKind, text

PATH = "/sandbox/messages"
ANY_HOST = SsrfRules(allow_private=True, allow_http=True)

_HEADERS = {"content-type": "application/json"}
_MAX_ANSWER = 65_536


@dataclass(frozen=True, slots=True)
class SandboxSettings(BaseChannelSettings):
    """Where the pretend phone listens."""

    url: str = "http://127.0.0.1:8025"
    deadline: timedelta = field(default=timedelta(seconds=10), kw_only=True)


class SandboxChannel:
    """Sends messages to the pretend phone. `now` gives the wall clock as an instant."""

    kind: ClassVar[str] = "sandbox"

    def __init__(self, settings: SandboxSettings, *, now: Callable[[], int]) -> None:
        self.traits = traits_of(settings, OnUnknown.RESEND, "the sandbox shows a duplicate as one")
        self._address = settings.url.rstrip("/")
        self._url = check_url(self._address + PATH, ANY_HOST).url
        self._now = now
        self._http = HttpClient(connect_within=settings.deadline / 2, linger=self.traits.linger)

    def check(self, recipient: str, content: dict[str, object]) -> None:
        """The phone takes any recipient that is not empty."""
        if not recipient.strip():
            raise Invalid("The recipient is empty", remedy="Give a name or a number", field="to")

    async def send(self, message: Message) -> Outcome:
        """POST once to the phone."""
        try:
            answer = await self._http.post(
                self._url,
                headers=_HEADERS,
                body=body_of(message),
                deadline=self.traits.deadline,
                pinned=None,
                max_response_size=_MAX_ANSWER,
            )
        except TypeError as error:  # orjson's, for what JSON cannot hold
            return Reject(Category.VALIDATION, f"the content cannot be written as JSON: {error}")
        except NotSent as error:
            return Retry(Category.TEMPORARY, f"not sent: {error}")
        except MaybeSent as error:
            return Unknown(f"no answer after the request left: {error}")
        return outcome_of(answer, now=self._now())

    async def lookup(self, message: Message) -> Outcome:
        """The phone is looked at by a person."""
        return Unknown("the sandbox cannot be asked what it got")

    async def probe(self) -> Outcome:
        """Whether a phone listens there."""
        url = check_url(f"{self._address}/sandbox/faults", ANY_HOST).url
        try:
            answer = await self._http.request(
                "GET",
                url,
                headers={},
                deadline=self.traits.deadline,
                pinned=None,
                max_response_size=_MAX_ANSWER,
            )
        except (NotSent, MaybeSent) as error:
            return Retry(Category.TEMPORARY, str(error))
        if answer.status != 200:
            return Reject(Category.PERMANENT, f"no phone is there: HTTP {answer.status}")
        return Done(f"the pretend phone at {self._address}")

    async def close(self) -> None:
        """Let go of connections."""
        await self._http.close()


def body_of(message: Message) -> bytes:
    """The JSON that the phone reads; `attempt` lets it tell a retry from a twin."""
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
    """What the phone's answer means."""
    status, reason = answer.status, f"HTTP {answer.status}: {answer.shown()}"
    if 200 <= status < 300:
        return Done(receipt=_receipt(answer.body_prefix))
    if status == 429:
        wish = retry_after(answer.header("retry-after"), now=now)
        return Retry(Category.THROTTLING, reason, after=wish)
    if status >= 500 or status in (408, 425):
        wish = retry_after(answer.header("retry-after"), now=now)
        return Retry(Category.TEMPORARY, reason, after=wish)
    return Reject(Category.VALIDATION if status in (400, 413, 422) else Category.PERMANENT, reason)


def _receipt(body: bytes) -> str | None:
    """The phone's own name for the message; a strange body takes nothing back, the status has decided."""
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    receipt = answer.get("receipt") if isinstance(answer, dict) else None
    return receipt if isinstance(receipt, str) else None


def _judge(settings: SandboxSettings) -> None:
    """The sandbox may be anywhere, but its URL must be one."""
    try:
        check_url(settings.url, ANY_HOST)
    except ForbiddenUrl as error:
        raise ValueError(
            "url", str(error), "Use the sandbox's address, such as http://127.0.0.1:8025"
        ) from error


KIND = ChannelKind(
    SandboxSettings, lambda settings, now: SandboxChannel(settings, now=now), {"url": text}, _judge
)
