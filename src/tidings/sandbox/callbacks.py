"""Webhooks sent by the simulated providers.

Each callback is sent once, in the background, one after the other; the results are at `/sandbox/callbacks`.
Memory is bounded: the oldest messages are dropped.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Mapping
from datetime import timedelta
from typing import NamedTuple
from urllib.parse import urlencode

from pyreqwest.client import Client, ClientBuilder
from pyreqwest.exceptions import PyreqwestError

from tidings.model.errors import Invalid, NotFound

from .access import SandboxAccess
from .environment import SandboxEnvironment
from .receipts import MESSAGE_BUILDERS, RECEIPT_BUILDERS, RECEIPT_KINDS, CallbackRequest, ReceiptOrigin, waha_call

MAX_ORIGINS = 20_000
RECENT = 200
MAX_TARGETS = 200
WITHIN = timedelta(seconds=5)
PROVIDERS = (*RECEIPT_BUILDERS, "telegram")


class CallbackTarget(NamedTuple):
    """The callback URL of an account."""

    url: str
    secret: str


class CallbackAttempt(NamedTuple):
    """One callback that was sent; `answer` is its status, or why there is none."""

    channel: str
    n: int | None
    what: str
    answer: int | str


class SandboxCallbacks:
    """Callback URLs and the callbacks sent to them."""

    def __init__(self, environment: SandboxEnvironment, access: SandboxAccess) -> None:
        self.auto: tuple[str, ...] = ("sent", "delivered")
        self.made: deque[CallbackAttempt] = deque(maxlen=RECENT)
        self.closed = False
        self._environment, self._access = environment, access
        self._targets: dict[tuple[str, str], CallbackTarget] = {}
        self._origins: OrderedDict[int, ReceiptOrigin] = OrderedDict()
        self._client: Client | None = None
        self._waiting: deque[tuple[str, int | None, str, CallbackRequest]] = deque()
        self._calling: asyncio.Task[None] | None = None

    def target(self, channel: str, account: str) -> CallbackTarget | None:
        """Return the callback target of an account."""
        return self._targets.get((channel, account)) or self._targets.get((channel, "*"))

    def point(self, channel: str, account: str, url: str, secret: str) -> None:
        """Set the callback URL of an account; an empty URL removes it."""
        if not url:
            self._targets.pop((channel, account), None)
            return
        self._access.check_callback(url)
        if len(self._targets) >= MAX_TARGETS and (channel, account) not in self._targets:
            raise Invalid("Too many callback URLs", remedy="Remove one with an empty url")
        self._targets[channel, account] = CallbackTarget(url, secret)

    async def is_theirs(self, url: str, verify_token: str) -> bool:
        """Verify a webhook with Meta's challenge; raises Invalid for a URL that must not be called."""
        self._access.check_callback(url)
        challenge = str(self._environment.wall())
        query = {"hub.mode": "subscribe", "hub.verify_token": verify_token, "hub.challenge": challenge}
        try:
            client = await self._ready()
            response = await client.get(f"{url}?{urlencode(query)}").timeout(WITHIN).build().send()
            return response.status == 200 and await response.text() == challenge
        except (PyreqwestError, ValueError):
            return False

    def took(self, n: int, origin: ReceiptOrigin) -> None:
        """Remember a delivered message and send its automatic receipts."""
        self._origins[n] = origin
        if len(self._origins) > MAX_ORIGINS:
            self._origins.popitem(last=False)
        for what in self.auto:
            self._send(n, origin, what, None)

    def can_tell(self, n: int) -> bool:
        """Return whether receipts of a message can be sent."""
        return n in self._origins

    def tell(self, n: int, what: str, code: int | None = None) -> None:
        """Send a receipt of a message; raises Invalid or NotFound."""
        if what not in RECEIPT_KINDS:
            raise Invalid(f"Unknown receipt {what!r}", remedy=f"Use {', '.join(RECEIPT_KINDS)}", field="what")
        origin = self._origins.get(n)
        if origin is None:
            remedy = "Set a callback URL first: POST /sandbox/callbacks"
            raise NotFound(f"No callback URL for message {n}", remedy=remedy, field="n")
        self._send(n, origin, what, code)

    def push(self, channel: str, account: str, payload: Mapping[str, object], event: str = "message") -> bool:
        """Send a person's message as the provider's webhook; False if no callback URL is set."""
        target = self.target(channel, account)
        if target is None:
            return False
        if channel == "waha":
            call = waha_call(*target, event, account, payload, self._environment.wall())
        else:
            call = MESSAGE_BUILDERS[channel](*target, payload)
        self._queue(channel, None, event, call)
        return True

    async def idle(self) -> None:
        """Wait until all queued callbacks are sent."""
        if self._calling is not None:
            await asyncio.wait([self._calling])

    def close(self) -> None:
        """Stop sending callbacks."""
        self.closed = True
        self._waiting.clear()
        if self._calling is not None:
            self._calling.cancel()

    def described(self) -> dict[str, object]:
        """Return targets and recent callbacks for the control API, without secrets."""
        return {
            "auto": list(self.auto),
            "targets": [
                {"channel": channel, "account": account, "url": target.url}
                for (channel, account), target in self._targets.items()
            ],
            "made": [made._asdict() for made in self.made],
        }

    def _send(self, n: int, origin: ReceiptOrigin, what: str, code: int | None) -> None:
        build = RECEIPT_BUILDERS[origin.channel]
        self._queue(origin.channel, n, what, build(origin, what, code, self._environment.wall()))

    def _queue(self, channel: str, n: int | None, what: str, call: CallbackRequest) -> None:
        if self.closed:
            return
        self._waiting.append((channel, n, what, call))
        if self._calling is None or self._calling.done():
            self._calling = asyncio.create_task(self._call_all())

    async def _call_all(self) -> None:
        while self._waiting:
            channel, n, what, call = self._waiting.popleft()
            self.made.append(CallbackAttempt(channel, n, what, await self._call(call)))

    async def _call(self, call: CallbackRequest) -> int | str:
        try:
            self._access.check_callback(call.url)
            client = await self._ready()
            asked = client.post(call.url).headers(dict(call.headers)).body_bytes(call.body)
            return (await asked.timeout(WITHIN).build().send()).status
        except Invalid as refused:
            return str(refused)
        except (PyreqwestError, ValueError) as error:
            return type(error).__name__

    async def _ready(self) -> Client:
        if self._client is None:
            self._client = await asyncio.to_thread(
                ClientBuilder().no_proxy().follow_redirects(False).user_agent("tidings-sandbox").build
            )
        return self._client
