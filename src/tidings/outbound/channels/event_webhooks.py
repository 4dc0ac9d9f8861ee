"""The built-in channel `events`: signed webhooks to subscribers (Standard Webhooks).

The recipient is a subscription id: URL and secret are looked up when sending, so neither is part of a message
or log, and a new secret takes effect at once. A plain URL (a broadcast's webhook) is signed with a secret
derived from the configured ones.

One failing receiver must not block the others: this channel's breaker never opens. Each receiver has its own
breaker in this process, and waiting for it uses no attempt.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import ClassVar, NamedTuple

import orjson

from ...kernel.breaker import BreakerRule
from ...kernel.receiver_breakers import ReceiverBreakers
from ...model.errors import Invalid
from ...model.message import Message
from ...model.outcome import Defer, Done, Outcome, Reject, Retry, Skip, Unknown
from ...model.task import Category, OnUnknown
from ...model.time import SECOND
from ...wire.http_client import HttpClient, HttpResponse, MaybeSent, NotSent, resolve_host
from ...wire.retry_after import retry_after
from ...wire.ssrf_guard import ForbiddenUrl, Resolve, SsrfGuard, SsrfRules, UnresolvedHost, check_url
from ...wire.webhook_signatures import SigningKey, signature_headers
from ..events.subscription_cache import ActiveSubscription, SubscriptionCache
from .base import ChannelTraits, NoLookup
from .signing_secrets import EndpointKeys, EndpointSigner

POLICY = "events"
_GONE = 410
_MAX_ANSWER = 65_536
_MAX_WAIT = timedelta(hours=1)  # between two probes of one receiver; doubles with each failure


@dataclass(frozen=True, slots=True)
class EventsSettings:
    """Settings; `private` allows private addresses and http."""

    private: bool = False
    secrets: tuple[str, ...] = field(default=(), repr=False)
    deadline: timedelta = timedelta(seconds=15)

    @property
    def rules(self) -> SsrfRules:
        """The SSRF rules."""
        return SsrfRules(allow_private=self.private, allow_http=self.private)


class _EventReceiver(NamedTuple):
    """The receiver of one event, with its signing keys."""

    name: str
    url: str
    keys: Sequence[SigningKey]
    secrets: tuple[str, ...]
    subscription: ActiveSubscription | None


class EventsChannel(NoLookup):
    """Sends events; `now` returns the current instant."""

    kind: ClassVar[str] = "events"
    no_lookup = "a webhook receiver cannot be queried"

    def __init__(
        self,
        settings: EventsSettings,
        listeners: SubscriptionCache,
        *,
        now: Callable[[], int],
        look_up: Resolve | None = None,
        breaker: BreakerRule = BreakerRule(),
    ) -> None:
        self.traits = ChannelTraits(
            on_unknown=OnUnknown.RESEND,
            why_on_unknown="the receiver removes duplicates by webhook-id",
            deadline=settings.deadline,
            policy=POLICY,
        )
        self.rules = settings.rules
        self._settings = settings
        self._signer = EndpointSigner(settings.secrets)
        self._listeners = listeners
        self._now = now
        self._breakers: ReceiverBreakers[str] = ReceiverBreakers(breaker, now, longest=_MAX_WAIT)
        third = settings.deadline / 3
        self._guard = SsrfGuard(self.rules, look_up or partial(resolve_host, within=third))
        self._http = HttpClient(connect_within=third)

    def check(self, recipient: str, content: dict[str, object]) -> None:
        """Always raise Invalid: only the engine sends here."""
        raise Invalid(
            "the channel 'events' is reserved for the engine",
            field="channel",
            remedy="subscribe to events instead: tidings subscriptions add",
        )

    async def send(self, message: Message) -> Outcome:
        """Sign and POST once."""
        receiver = await self._receiver(message)
        if receiver is None:
            return Skip("its subscription is inactive or removed")
        if (waits := self._breakers.blocked(receiver.name)) is not None:
            return Defer(waits.until, "the breaker of its receiver is open after several failures in a row")
        outcome = await self._attempt(receiver, message)
        await self._learn(receiver, outcome)
        return outcome

    async def _receiver(self, message: Message) -> _EventReceiver | None:
        recipient = message.recipient
        if "://" in recipient:
            signing = self._signing(message.tenant, recipient)
            return _EventReceiver(recipient, recipient, signing.keys, signing.secrets, None)
        found = await self._listeners.find(recipient)
        return None if found is None else _EventReceiver(found.id, found.url, found.keys, found.secrets, found)

    def _signing(self, tenant: str, url: str) -> EndpointKeys:
        try:
            return self._signer.of(tenant, str(check_url(url, self.rules).url))
        except ForbiddenUrl:
            return EndpointKeys((), ())  # it is not called anyway

    def endpoint_secrets(self, tenant: str, recipient: str) -> tuple[str, ...]:
        """The signing secrets of this URL, newest first; a subscription has its own."""
        return self._signer.of(tenant, str(check_url(recipient, self.rules).url)).secrets

    async def _attempt(self, receiver: _EventReceiver, message: Message) -> Outcome:
        if receiver.subscription is not None and receiver.subscription.problem is not None:
            return Retry(Category.SYSTEM, f"not signed: {receiver.subscription.problem}")
        try:
            answer = await self._post(receiver, message)
        except ForbiddenUrl as error:  # a name may resolve to a wrong address for a while
            return Retry(Category.TEMPORARY, f"not called: {error}")
        except (UnresolvedHost, NotSent) as error:
            return Retry(Category.TEMPORARY, f"not sent: {error}")
        except MaybeSent as error:
            return Unknown(f"no answer after the request was sent: {error}")
        return outcome_of(answer, now=self._now(), hide=receiver.secrets)

    async def _post(self, receiver: _EventReceiver, message: Message) -> HttpResponse:
        body, deadline = orjson.dumps(message.content["data"]), self._settings.deadline
        admitted = self._guard.known(receiver.url)
        if admitted is None:
            began = time.monotonic()
            admitted = await self._guard.admit(receiver.url)
            deadline -= timedelta(seconds=time.monotonic() - began)
        named = signature_headers(receiver.keys, message.id, self._now() // SECOND, body)
        return await self._http.request(
            "POST",
            admitted.target.url,
            headers={**named, "content-type": "application/json"},
            body=body,
            deadline=deadline,
            pinned=admitted.pin(message.attempt),
            max_response_size=_MAX_ANSWER,
        )

    async def _learn(self, receiver: _EventReceiver, outcome: Outcome) -> None:
        """Update the receiver's breaker and its subscription."""
        if isinstance(outcome, Done):
            self._breakers.succeeded(receiver.name)
            if receiver.subscription is not None:
                await self._listeners.succeeded(receiver.subscription)
            return
        said = outcome.evidence if isinstance(outcome, Unknown) else getattr(outcome, "reason", "")
        self._breakers.failed(receiver.name, said)
        if receiver.subscription is not None:
            gone = isinstance(outcome, Reject)  # HTTP 410
            await self._listeners.failed(receiver.subscription, said, now=self._now(), gone=gone)

    async def close(self) -> None:
        """Close all connections."""
        await self._http.close()


def outcome_of(answer: HttpResponse, *, now: int, hide: tuple[str, ...] = ()) -> Outcome:
    """2xx is Done, 410 disables the subscription; others are retried, because a receiver may recover."""
    if 200 <= answer.status < 300:
        return Done(receipt=str(answer.status))
    shown = answer.shown(hide=hide)
    reason = f"HTTP {answer.status}: {shown}" if shown else f"HTTP {answer.status}"
    if answer.status == _GONE:
        return Reject(Category.PERMANENT, reason)
    category = Category.THROTTLING if answer.status == 429 else Category.TEMPORARY
    return Retry(category, reason, after=retry_after(answer.header("retry-after"), now=now))
