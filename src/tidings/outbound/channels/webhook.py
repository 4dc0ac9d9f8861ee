"""Signed webhooks to the recipient's URL (Standard Webhooks 1.0.0).

Id and body are the same on every attempt, so a receiver removes duplicates by `webhook-id`; timestamp and
signature are new each time. The URL comes from a user, so the SSRF guard checks it on every attempt and the
connection goes to the checked address.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import lru_cache, partial
from typing import Annotated, ClassVar

import orjson

from ...model.errors import Invalid
from ...model.message import Message
from ...model.outcome import Done, Outcome, Reject, Retry, Unknown
from ...model.task import Category, OnUnknown
from ...model.time import SECOND, moment
from ...wire.http_client import HttpClient, HttpResponse, MaybeSent, NotSent, resolve_host
from ...wire.retry_after import retry_after
from ...wire.ssrf_guard import ForbiddenUrl, Resolve, SsrfGuard, SsrfRules, UnresolvedHost, check_url
from ...wire.webhook_signatures import signature_headers
from .base import BaseChannelSettings, NoLookup, traits_of
from .options import channel_kind, ports, secrets, size
from .signing_secrets import EndpointKeys, EndpointSigner

DEFAULT = "default"  # the recipient for the configured URL
OPERATOR = "default"  # the tenant that owns the configured URL

_AGAIN = frozenset({408, 425, 429})
_OUR_FAULT = frozenset({400, 405, 406, 411, 413, 414, 415, 422})


@dataclass(frozen=True, slots=True)
class WebhookSettings(BaseChannelSettings):
    """Settings; the receivers' secrets are derived from `secrets`, none means unsigned."""

    url: str | None = None
    secrets: Annotated[tuple[str, ...], secrets] = field(default=(), repr=False)
    allow_private: bool = False
    allow_http: bool = False
    ports: Annotated[frozenset[int], ports] | None = None
    max_response_size: Annotated[int, size] = 65_536

    @property
    def rules(self) -> SsrfRules:
        """The SSRF rules of this channel."""
        return SsrfRules(self.allow_private, self.allow_http, self.ports)


class WebhookChannel(NoLookup):
    """Sends messages as webhooks; `now` returns the current instant."""

    kind: ClassVar[str] = "webhook"
    no_lookup = "a webhook receiver cannot be queried"

    def __init__(self, settings: WebhookSettings, *, now: Callable[[], int], look_up: Resolve | None = None) -> None:
        self.traits = traits_of(settings, OnUnknown.RESEND, "the receiver removes duplicates by webhook-id")
        self._settings = settings
        self._rules = settings.rules
        self._signer = EndpointSigner(settings.secrets)
        self._destination = lru_cache(10_000)(self._host)
        self._now = now
        # One third each for name resolution and connection, so at least a third is left for the answer.
        third = settings.deadline / 3
        self._guard = SsrfGuard(self._rules, look_up or partial(resolve_host, within=third))
        self._http = HttpClient(connect_within=third, linger=self.traits.linger)

    def check(self, recipient: str, content: dict[str, object]) -> None:
        """Raise Invalid for a URL that is not allowed; its host name is resolved only when sending."""
        try:
            check_url(self._url(recipient), self._rules)
        except ForbiddenUrl as error:
            remedy = "Use a public https URL, or 'default' for the channel's own"
            raise Invalid(f"This webhook URL is not allowed: {error}", remedy=remedy, field="to") from error

    async def send(self, message: Message) -> Outcome:
        """Sign and POST once."""
        try:
            body = body_of(message)
            answer, signing = await self._post(message, body)
        except ForbiddenUrl as error:
            return Reject(Category.VALIDATION, f"not called: {error}")
        except TypeError as error:  # from orjson
            return Reject(Category.VALIDATION, f"the content cannot be written as JSON: {error}")
        except (UnresolvedHost, NotSent) as error:
            return Retry(Category.TEMPORARY, f"not sent: {error}")
        except MaybeSent as error:
            return Unknown(f"no answer after the request was sent: {error}")
        return outcome_of(answer, now=self._now(), hide=(*self._settings.secrets, *signing.secrets))

    async def close(self) -> None:
        """Close all connections."""
        await self._http.close()

    async def _post(self, message: Message, body: bytes) -> tuple[HttpResponse, EndpointKeys]:
        url, deadline = self._url(message.recipient), self._settings.deadline
        admitted = self._guard.known(url)
        if admitted is None:
            began = time.monotonic()
            admitted = await self._guard.admit(url)
            deadline -= timedelta(seconds=time.monotonic() - began)
        tenant = OPERATOR if message.recipient == DEFAULT else message.tenant
        signing = self._signer.of(tenant, str(admitted.target.url))
        named = signature_headers(signing.keys, message.id, self._now() // SECOND, body)
        answer = await self._http.request(
            "POST",
            admitted.target.url,
            headers={**named, "content-type": "application/json"},
            body=body,
            deadline=deadline,
            pinned=admitted.pin(message.attempt),
            max_response_size=self._settings.max_response_size,
        )
        return answer, signing

    def destination(self, recipient: str) -> str | None:
        """The host and port of a URL, which share a breaker."""
        return self._destination(recipient)

    def _host(self, recipient: str) -> str | None:
        try:
            target = check_url(self._url(recipient), self._rules)
        except ForbiddenUrl:
            return None
        return f"{target.host}:{target.port}"

    def endpoint_secrets(self, tenant: str, recipient: str) -> tuple[str, ...]:
        """The signing secrets of this URL, newest first; raises ForbiddenUrl."""
        url = check_url(self._url(recipient), self._rules).url
        if recipient == DEFAULT and tenant != OPERATOR:
            raise ForbiddenUrl("the channel's own URL belongs to the operator")
        return self._signer.of(tenant, str(url)).secrets

    def _url(self, recipient: str) -> str:
        if recipient != DEFAULT:
            return recipient
        if self._settings.url is None:
            raise ForbiddenUrl("the channel has no URL of its own")
        return self._settings.url


def body_of(message: Message) -> bytes:
    """The JSON to send: the same bytes on every attempt."""
    content = message.content
    data = {
        "id": message.id,
        "to": message.recipient,
        "text": message.text,
        "subject": content.get("subject"),
        "data": content.get("data"),
    }
    envelope = {"type": "message", "timestamp": moment(message.accepted_at), "data": data}
    return orjson.dumps(envelope, option=orjson.OPT_UTC_Z)


def outcome_of(answer: HttpResponse, *, now: int, hide: tuple[str, ...] = ()) -> Outcome:
    """The outcome of a response; it concerns this receiver, never the whole channel."""
    status = answer.status
    if 200 <= status < 300:
        return Done(receipt=str(status))
    reason = f"HTTP {status}"
    if shown := answer.shown(hide=hide):
        reason = f"{reason}: {shown}"
    if status >= 500 or status in _AGAIN:
        category = Category.THROTTLING if status == 429 else Category.TEMPORARY
        return Retry(category, reason, after=retry_after(answer.header("retry-after"), now=now))
    if status in _OUR_FAULT:
        return Reject(Category.VALIDATION, reason)
    if 300 <= status < 400:
        return Reject(Category.PERMANENT, f"HTTP {status}: redirects are not followed")
    return Reject(Category.PERMANENT, reason)  # including 410 Gone


def _judge(settings: WebhookSettings) -> None:
    """Check the configured URL with the SSRF guard."""
    try:
        if settings.url is not None:
            check_url(settings.url, settings.rules)
    except ForbiddenUrl as error:
        remedy = "Use a public https URL; for development set allow_http and allow_private"
        raise ValueError("url", str(error), remedy) from error


KIND = channel_kind(WebhookSettings, WebhookChannel, _judge)
