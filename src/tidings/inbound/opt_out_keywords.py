"""The words STOP, START and HELP in a direct chat: opt-outs, and an answer with information.

They take effect in the transaction that writes the message to the inbox, for every sender: a person need not
be on the roster to opt out. In groups they are ordinary words.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

import orjson

from ..model.errors import CallerError
from ..model.task import NewTask
from ..store.port import Step
from .domain import IncomingKind, IncomingMessage
from .reply_port import ReplyPort
from .sources.settings import SourceSettings


class OptOutKeyword(StrEnum):
    """What a person asks for."""

    STOP = "STOP"
    START = "START"
    HELP = "HELP"


class TwoWayChannels(ReplyPort, Protocol):
    """The channels on which a source's messages are answered; implemented in `app`."""

    def channel_of(self, source: SourceSettings) -> str | None:
        """Return the channel that answers this source; None if there is none."""

    def addresses_of(self, channel: str, incoming: IncomingMessage) -> Sequence[str]:
        """Return all recipients of the channel that reach the sender."""


class KeywordEffects(NamedTuple):
    """What a keyword writes: statements, and the answer to HELP."""

    reason: str
    steps: Sequence[Step] = ()
    reply: tuple[NewTask, tuple[Any, ...]] | None = None


def keyword_of(incoming: IncomingMessage, source: SourceSettings) -> OptOutKeyword | None:
    """Return the keyword if it is the whole text of a direct message. `/stop` and `Stop!` count, too."""
    if incoming.kind is not IncomingKind.MESSAGE or incoming.conversation != incoming.sender:
        return None
    word = incoming.text.strip().strip("/.!\"'").casefold()
    for keyword, words in (
        (OptOutKeyword.STOP, source.stop_words),
        (OptOutKeyword.START, source.start_words),
        (OptOutKeyword.HELP, source.help_words),
    ):
        if word in words:
            return keyword
    return None


async def keyword_effects(
    keyword: OptOutKeyword,
    incoming: IncomingMessage,
    source: SourceSettings,
    channels: TwoWayChannels,
    *,
    channel: str,
    id_: str,
    conversation: str,
    now: int,
) -> KeywordEffects:
    """Return what to write with the message `id_`, which is the evidence of an opt-out."""
    who = channels.addresses_of(channel, incoming)
    match keyword:
        case OptOutKeyword.STOP:
            fields = {"channel": channel, "reason": f"sent {incoming.text.strip()[:40]}", "evidence": f"inbox {id_}"}
            rows = orjson.dumps([{"address": address, **fields} for address in who]).decode()
            added = Step("suppression_add", {"rows": rows, "tenant": source.tenant})
            return KeywordEffects(f"{keyword}: opted out of {channel}", [added])
        case OptOutKeyword.START:
            place = {"tenant": source.tenant, "channel": channel}
            lifted = [Step("suppression_lift", {**place, "address": address}) for address in who]
            return KeywordEffects(f"{keyword}: receives messages on {channel} again", lifted)
        case OptOutKeyword.HELP:
            try:
                reply = await channels.prepare(
                    channel, incoming.conversation, source.help_text, tenant=source.tenant,
                    ordering_key=conversation, now=now, in_chat=True,
                )  # fmt: skip
            except CallerError as error:
                return KeywordEffects(f"{keyword}: not answered: {error}")
            return KeywordEffects(f"{keyword}: answered on {channel}", reply=reply)
