"""The channel port, its traits and the optional protocols.

A channel returns an Outcome and never raises for errors of the provider. It never retries or sleeps, and ends
within its deadline, because the kernel decides on retries.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar, Protocol, runtime_checkable

from ...model.errors import Misconfigured, NotFound
from ...model.message import Message
from ...model.outcome import Outcome, Skip, Unknown
from ...model.task import OnUnknown
from ...wire.http_client import LINGER
from ..events.event_types import EVENTS_CHANNEL


@dataclass(frozen=True, slots=True)
class ChannelTraits:
    """What the kernel must know of a channel to run it."""

    on_unknown: OnUnknown
    why_on_unknown: str  # the reason, shown to users
    deadline: timedelta  # overall, for one attempt
    policy: str = "default"  # name of the retry policy
    per_second: float | None = None  # None = no limit
    per_recipient: timedelta | None = None  # minimum time between two starts
    max_text: int = 65_536
    reconnect_wait: timedelta = timedelta(minutes=5)  # how long a message may wait for a lost session
    in_order: bool = False  # use the recipient as ordering key
    suppress_opt_outs: bool = True  # suppress recipients whose opt-out the provider reports

    @property
    def linger(self) -> timedelta:
        """How long an HTTP client keeps an attempt after its deadline, because the answer may still come."""
        return timedelta() if self.on_unknown is OnUnknown.RESEND else LINGER


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseChannelSettings:
    """The settings of every channel kind; None means the kind's default."""

    deadline: timedelta = timedelta(seconds=15)
    on_unknown: OnUnknown | None = None
    policy: str = "default"
    per_second: float | None = None
    per_recipient: timedelta | None = None
    suppress_opt_outs: bool = True


def traits_of(
    settings: BaseChannelSettings,
    default: OnUnknown,
    why: str,
    *,
    chosen: str = "chosen in the configuration",
    per_second: float | None = None,
    per_recipient: timedelta | None = None,
    **more: Any,
) -> ChannelTraits:
    """The traits of a kind: its defaults, overridden by the settings.

    `why` is the reason for `default`; `chosen` is shown if the settings differ from it.
    """
    on_unknown = settings.on_unknown or default
    return ChannelTraits(
        on_unknown=on_unknown,
        why_on_unknown=why if on_unknown is default else chosen,
        deadline=settings.deadline,
        policy=settings.policy,
        per_second=settings.per_second or per_second,
        per_recipient=settings.per_recipient or per_recipient,
        suppress_opt_outs=settings.suppress_opt_outs,
        **more,
    )


class Channel(Protocol):
    """A configured channel."""

    kind: ClassVar[str]
    traits: ChannelTraits

    def check(self, recipient: str, content: dict[str, object]) -> None:
        """Raise Invalid if this message could never be sent; called before it is accepted."""

    async def send(self, message: Message) -> Outcome:
        """Make one attempt. `message.id` is the idempotency key towards the provider."""

    async def lookup(self, message: Message) -> Outcome:
        """For `ask`: look up an uncertain attempt; returns Unknown if it cannot be determined."""

    async def close(self) -> None:
        """Close all connections."""


class NoLookup:
    """Mixin of channels whose receiver cannot be asked about an earlier message."""

    no_lookup: ClassVar[str]  # the evidence

    async def lookup(self, message: Message) -> Outcome:
        """Return Unknown: nothing can be looked up."""
        return Unknown(self.no_lookup)


@runtime_checkable
class HasProbe(Protocol):
    """Optional protocol of channels that `tidings channels test` can test."""

    async def probe(self) -> Outcome:
        """Test the account without sending anything. The receipt of Done names the account."""


@runtime_checkable
class HasChats(Protocol):
    """Optional protocol of channels whose group address is not the platform's chat id."""

    def chat(self, id_: str) -> str:
        """The recipient of this chat."""


def unknown_channel(name: str, known: Iterable[str], *, field: str = "name") -> NotFound:
    """The error for a channel that is not configured."""
    names = ", ".join(sorted(set(known) - {EVENTS_CHANNEL})) or "none"
    return NotFound(f"there is no channel {name[:60]!r}", field=field, remedy=f"configured channels: {names}")


async def probe(channel: Channel) -> Outcome:
    """Probe a channel; Skip if its kind cannot be tested without sending."""
    if isinstance(channel, HasProbe):
        return await channel.probe()
    return Skip("this kind cannot be tested without sending")


class UnavailableChannel:
    """Stands for a channel in commands; every use of it raises the error about its secret."""

    kind: ClassVar[str] = "unavailable"

    def __init__(self, error: Misconfigured) -> None:
        self.traits = ChannelTraits(OnUnknown.HOLD, "its secrets are not set here", timedelta(seconds=15))
        self._error = error

    def check(self, recipient: str, content: dict[str, object]) -> None:
        """Raise Misconfigured."""
        raise self._error

    async def send(self, message: Message) -> Outcome:
        """Raise Misconfigured."""
        raise self._error

    async def lookup(self, message: Message) -> Outcome:
        """Raise Misconfigured."""
        raise self._error

    async def close(self) -> None:
        """Do nothing: there are no connections."""
