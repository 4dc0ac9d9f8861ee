"""Call-backs of the pretend providers: who is to be called, and the calls, made one after the other.

A call is made once and in the background: the sandbox is a witness, not a second engine. What came of it can
be seen at `/sandbox/callbacks`. Memory is bounded: the oldest messages are forgotten.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import NamedTuple
from urllib.parse import urlencode

from pyreqwest.client import Client, ClientBuilder
from pyreqwest.exceptions import PyreqwestError

from tidings.model.errors import Invalid, NotFound

from .access import SandboxAccess
from .environment import SandboxEnvironment
from .receipts import (
    RECEIPT_BUILDERS,
    RECEIPT_KINDS,
    CallbackRequest,
    ReceiptOrigin,
    meta_call,
    telegram_call,
    waha_call,
)

MAX_ORIGINS = 20_000
RECENT = 200
MAX_TARGETS = 200
WITHIN = timedelta(seconds=5)
PROVIDERS = (*RECEIPT_BUILDERS, "telegram")


class CallbackTarget(NamedTuple):
    """An account's address."""

    url: str
    secret: str


class CallbackAttempt(NamedTuple):
    """One call that was made; `answer` is its status, or why there is none."""

    channel: str
    n: int | None
    what: str
    answer: int | str


class SandboxCallbacks:
    """Everything about calling back."""

    def __init__(self, environment: SandboxEnvironment, access: SandboxAccess) -> None:
        self.auto: tuple[str, ...] = ("sent", "delivered")
        self.made: deque[CallbackAttempt] = deque(maxlen=RECENT)
        self.closed = False
        self._environment = environment
        self._access = access
        self._targets: dict[tuple[str, str], CallbackTarget] = {}
        self._origins: OrderedDict[int, ReceiptOrigin] = OrderedDict()
        self._client: Client | None = None
        self._waiting: deque[tuple[str, int | None, str, CallbackRequest]] = deque()
        self._calling: asyncio.Task[None] | None = None

    # -- who is called

    def target(self, channel: str, account: str) -> CallbackTarget | None:
        """Where an account wants to be called."""
        return self._targets.get((channel, account)) or self._targets.get((channel, "*"))

    def point(self, channel: str, account: str, url: str, secret: str) -> None:
        """From now on an account is called there; an empty URL means nowhere."""
        if not url:
            self._targets.pop((channel, account), None)
            return
        self._access.check_callback(url)
        if len(self._targets) >= MAX_TARGETS and (channel, account) not in self._targets:
            raise Invalid("There are too many addresses", remedy="Take one away with an empty url")
        self._targets[channel, account] = CallbackTarget(url, secret)

    async def is_theirs(self, url: str, verify_token: str) -> bool:
        """Meta's question before it calls an address; raises Invalid for one that must not be called."""
        self._access.check_callback(url)
        challenge = str(self._environment.wall())
        query = {"hub.mode": "subscribe", "hub.verify_token": verify_token, "hub.challenge": challenge}
        try:
            client = await self._ready()
            response = await client.get(f"{url}?{urlencode(query)}").timeout(WITHIN).build().send()
            return response.status == 200 and await response.text() == challenge
        except (PyreqwestError, ValueError):
            return False

    # -- what is told

    def took(self, n: int, origin: ReceiptOrigin) -> None:
        """A message was taken: tell at once what is told by itself."""
        self._origins[n] = origin
        if len(self._origins) > MAX_ORIGINS:
            self._origins.popitem(last=False)
        for what in self.auto:
            self._send(n, origin, what, None)

    def can_tell(self, n: int) -> bool:
        """Whether anybody wants to hear of a message."""
        return n in self._origins

    def tell(self, n: int, what: str, code: int | None = None) -> None:
        """Say what became of a message."""
        if what not in RECEIPT_KINDS:
            raise Invalid(
                f"There is no receipt {what!r}", remedy=f"Use one of {', '.join(RECEIPT_KINDS)}", field="what"
            )
        origin = self._origins.get(n)
        if origin is None:
            remedy = "Give the provider an address first: POST /sandbox/callbacks"
            raise NotFound(f"Nobody wants to hear of message {n}", remedy=remedy, field="n")
        self._send(n, origin, what, code)

    def push(self, channel: str, account: str, payload: Mapping[str, object], event: str = "message") -> bool:
        """Pass on what a person wrote, in the provider's words; False when nobody wants to hear it."""
        target = self.target(channel, account)
        if target is None:
            return False
        match channel:
            case "telegram":
                call = telegram_call(*target, payload)
            case "whatsapp_cloud":
                call = meta_call(*target, payload)
            case "waha":
                call = waha_call(*target, event, account, payload, self._environment.wall())
            case _:
                return False
        self._queue(channel, None, event, call)
        return True

    async def idle(self) -> None:
        """Wait until every call has been made."""
        if self._calling is not None:
            await asyncio.wait([self._calling])

    def close(self) -> None:
        """Call nobody any more."""
        self.closed = True
        self._waiting.clear()
        if self._calling is not None:
            self._calling.cancel()

    def described(self) -> dict[str, object]:
        """As the control API shows it; secrets stay here."""
        targets: Iterable[tuple[tuple[str, str], CallbackTarget]] = self._targets.items()
        return {
            "auto": list(self.auto),
            "targets": [
                {"channel": channel, "account": account, "url": target.url}
                for (channel, account), target in targets
            ],
            "made": [made._asdict() for made in self.made],
        }

    def _send(self, n: int, origin: ReceiptOrigin, what: str, code: int | None) -> None:
        self._queue(
            origin.channel,
            n,
            what,
            RECEIPT_BUILDERS[origin.channel](origin, what, code, self._environment.wall()),
        )

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
