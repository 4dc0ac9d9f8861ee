"""The port every channel fills: send one message, say what came of it.

A channel never raises for what the other side did: it gives back an Outcome. It never retries by itself,
never sleeps, and ends within its deadline, because the kernel decides all of that.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar, Protocol, runtime_checkable

from ...model.message import Message
from ...model.outcome import Outcome, Skip
from ...model.task import OnUnknown
from ...wire.http_client import LINGER


@dataclass(frozen=True, slots=True)
class ChannelTraits:
    """What the kernel must know of a channel in order to run it."""

    on_unknown: OnUnknown
    why_on_unknown: str  # the reason for that choice, shown to users
    deadline: timedelta  # overall, for one attempt
    policy: str = "default"  # name of the retry policy
    per_second: float | None = None  # None = no limit
    per_recipient: timedelta | None = None  # least time from start to start
    max_text: int = 65_536
    reconnect_wait: timedelta = timedelta(minutes=5)  # how late it may go out after its session was down
    in_order: bool = False  # messages to one recipient go out one by one, in the order of their times

    @property
    def linger(self) -> timedelta:
        """How long after its deadline an HTTP client keeps an attempt whose answer may be waiting."""
        return timedelta() if self.on_unknown is OnUnknown.RESEND else LINGER


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseChannelSettings:
    """The settings that every kind of channel has; None leaves the choice to the kind."""

    deadline: timedelta = timedelta(seconds=15)
    on_unknown: OnUnknown | None = None
    policy: str = "default"
    per_second: float | None = None
    per_recipient: timedelta | None = None


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
    """The traits of a kind: its defaults, where the settings say nothing else.

    `why` is the reason for `default`; `chosen` is shown when the settings differ from it.
    """
    on_unknown = settings.on_unknown or default
    return ChannelTraits(
        on_unknown=on_unknown,
        why_on_unknown=why if on_unknown is default else chosen,
        deadline=settings.deadline,
        policy=settings.policy,
        per_second=settings.per_second or per_second,
        per_recipient=settings.per_recipient or per_recipient,
        **more,
    )


class Channel(Protocol):
    """A configured way out."""

    kind: ClassVar[str]
    traits: ChannelTraits

    def check(self, recipient: str, content: dict[str, object]) -> None:
        """Raise `Invalid` when this message could never be sent; called before it is accepted."""

    async def send(self, message: Message) -> Outcome:
        """One attempt. `message.id` is the idempotency key towards the other side."""

    async def lookup(self, message: Message) -> Outcome:
        """For `ask`: find out what became of an attempt in doubt. Unknown when that cannot be told."""

    async def close(self) -> None:
        """Let go of connections."""


@runtime_checkable
class HasProbe(Protocol):
    """What a channel may fill besides: `tidings channels test` asks it."""

    async def probe(self) -> Outcome:
        """Try the account without sending anything. Done says in its receipt who we are over there."""


@runtime_checkable
class HasChats(Protocol):
    """What a channel may fill besides: for it, a group's address is not just the platform's id."""

    def chat(self, id_: str) -> str:
        """The recipient that stands for this chat."""


async def probe(channel: Channel) -> Outcome:
    """Whether a channel would work, as far as that can be told; Skip where it cannot."""
    if isinstance(channel, HasProbe):
        return await channel.probe()
    return Skip("this kind cannot be tested without sending")
