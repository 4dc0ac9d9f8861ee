"""Discord: messages through a webhook, to its channel or to a thread of it.

The webhook is the account: its token is in the URL, its limit holds for everything that goes through it, and
when Discord does not know it any more it must not be used again, so the channel is paused. There is no key
against duplicates on this route; a message in doubt is held.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, ClassVar, NamedTuple

from ...inputs.fields import Field
from ...model.errors import Invalid
from ...model.message import Message
from ...model.outcome import Done, Outcome, Reject, Retry, Unknown
from ...model.task import Category, OnUnknown
from ...wire.retry_after import retry_after
from ..markup import Markup, MarkupSpot
from .base import BaseChannelSettings, traits_of
from .long_text import LongText, long_text, parts_of, send_parts
from .options import ChannelKind
from .provider_api import ProviderApi, ProviderReply, base_url, outcome_by_status
from .provider_fields import provider_fields_of

DEFAULT = "default"  # the recipient that stands for the webhook's own channel
MAX_TEXT = 2000
MAX_EMBEDS = 10
PER_SECOND = 2.5  # 5 in 2 s, as is commonly quoted; what counts is the wait that an answer asks for

DATA: Mapping[str, Field] = {
    "embeds": Field("array", "Up to 10 embeds", [{"title": "Rota", "description": "Ada is on"}]),
    "components": Field("array", "Buttons and the like", [{"type": 1, "components": []}]),
    "poll": Field("object", "A poll", {"question": {"text": "Who?"}, "answers": []}),
    "username": Field("string", "Another name of the webhook", "Night watch"),
    "avatar_url": Field("string", "Another picture of the webhook", "https://example.com/owl.png"),
    "tts": Field("boolean", "Read it aloud", True),
    "allowed_mentions": Field("object", "Who may be called by an @", {"parse": []}),
    "flags": Field("integer", "Discord's bits, such as 4 for no previews", 4),
    "thread_name": Field("string", "Opens a thread of that name, in a forum", "Incident 7"),
}
ONCE = frozenset({"embeds", "components", "poll"})  # with the first part only
CONTENT = ("embeds", "components", "poll")  # what may stand instead of a text

_ID = re.compile(r"[0-9]{1,20}")
_TOKEN = re.compile(r"[A-Za-z0-9._-]{1,200}")
_GONE = frozenset({10015, 50027})  # the webhook is gone, or its token wrong
_UNREACHABLE = frozenset({10003})  # no such channel
_WRONG = frozenset({50006, 50035})
_ACCOUNT = frozenset({40333})


@dataclass(frozen=True, slots=True)
class DiscordSettings(BaseChannelSettings):
    """One webhook."""

    webhook_id: str
    webhook_token: str = field(repr=False)
    long_text: LongText = LongText.REFUSE
    base_url: str = "https://discord.com/api/v10"


class DiscordRequest(NamedTuple):
    """One request: what follows the webhook's URL, and the body."""

    query: str
    body: Mapping[str, Any]


class DiscordChannel:
    """Sends through one webhook. `now` gives the wall clock as an instant."""

    kind: ClassVar[str] = "discord"

    def __init__(self, settings: DiscordSettings, *, now: Callable[[], int]) -> None:
        self.traits = traits_of(
            settings,
            OnUnknown.HOLD,
            "a webhook of Discord's has no key against duplicates",
            per_second=PER_SECOND,
            max_text=MAX_TEXT,
        )
        self._settings = settings
        self._now = now
        self._path = f"/webhooks/{settings.webhook_id}/{settings.webhook_token}"
        hide = (settings.webhook_token,)
        self._api = ProviderApi(settings.base_url, deadline=settings.deadline, hide=hide, now=now)

    def check(self, recipient: str, content: dict[str, object]) -> None:
        """Refuse what Discord would refuse whoever gets it."""
        posts_of(recipient, content, self._settings)

    def markup(self, spot: MarkupSpot) -> Markup | None:
        """Every text, embeds included: a value calls nobody and hides no link."""
        return Markup.DISCORD

    async def send(self, message: Message) -> Outcome:
        """One call, or one for each part of a long text."""
        try:
            posts = posts_of(message.recipient, message.content, self._settings)
        except Invalid as error:
            return Reject(Category.VALIDATION, str(error))
        since = self._api.begin()

        async def send(numbered: tuple[int, DiscordRequest]) -> Outcome:
            number, post = numbered
            # Discord ignores the id; a proxy's log and the sandbox's ledger know the message by it.
            headers = {"x-request-id": message.id if number == 0 else f"{message.id}.{number + 1}"}
            reply = await self._api.post(self._path + post.query, post.body, headers=headers, since=since)
            return self._outcome(reply) if isinstance(reply, ProviderReply) else reply

        return await send_parts(list(enumerate(posts)), send)

    async def lookup(self, message: Message) -> Outcome:
        """A webhook cannot list what it wrote."""
        return Unknown("a webhook of Discord's cannot be asked what it wrote")

    async def probe(self) -> Outcome:
        """Look at the webhook."""
        reply = await self._api.get(self._path)
        if not isinstance(reply, ProviderReply):
            return reply
        if reply.is_success and reply.body is not None:
            return Done(self._api.shown(f"webhook {reply.fields.get('name')}"))
        failed = self._outcome(reply)
        return Retry(Category.TEMPORARY, failed.evidence) if isinstance(failed, Unknown) else failed

    async def close(self) -> None:
        """Let go of connections."""
        await self._api.close()

    def _outcome(self, reply: ProviderReply) -> Outcome:
        if reply.is_success and reply.is_json:
            id_ = self._api.shown(reply.fields.get("id"))
            return Done(id_ or None)
        code, said = reply.fields.get("code"), self._api.shown(reply.fields.get("message"))
        number = code if type(code) is int else None
        reason = reply.words(str(number) if number else "", said)
        return outcome_of(number, reply, reason, now=self._now())


def outcome_of(code: int | None, reply: ProviderReply, reason: str, *, now: int) -> Outcome:
    """What an error of Discord's means. Its limits are the webhook's, so they hold for the whole channel."""
    if reply.status == 429:
        return Retry(Category.THROTTLING, reason, after=_wait(reply, now), whole_channel=True)
    if code in _GONE or code in _ACCOUNT:
        return Reject(Category.PERMANENT, reason, whole_channel=True)
    if code in _UNREACHABLE:
        return Reject(Category.PERMANENT, reason)
    if code in _WRONG:
        return Reject(Category.VALIDATION, reason)
    return outcome_by_status(reply, reason, certain=reply.status >= 500)


def _wait(reply: ProviderReply, now: int) -> timedelta | None:
    """The body has fractions of a second; the header is rounded up, and alone when a proxy answered."""
    wish = reply.fields.get("retry_after")
    told = retry_after(str(wish), now=now) if isinstance(wish, int | float) else None
    return reply.wait if told is None else told


def posts_of(recipient: str, content: Mapping[str, Any], settings: DiscordSettings) -> list[DiscordRequest]:
    """The requests that send this content; raises Invalid when Discord would never take them."""
    query = f"?wait=true{_thread(recipient)}"
    data = provider_fields_of(content, DATA, "Discord")
    said = str(content.get("text") or "")
    if not said.strip() and not any(data.get(name) for name in CONTENT):
        remedy = f"give a text, or one of {', '.join(CONTENT)} in data"
        raise Invalid("there is nothing to send", field="text", remedy=remedy)
    if len(data.get("embeds", ())) > MAX_EMBEDS:
        problem = f"there are {len(data['embeds'])} embeds"
        raise Invalid(problem, field="data.embeds", remedy=f"use at most {MAX_EMBEDS}")
    parts = parts_of(said, MAX_TEXT, settings.long_text)
    if len(parts) > 1 and "thread_name" in data:
        problem = "a text in several parts cannot open a thread"
        raise Invalid(
            problem, field="data.thread_name", remedy="shorten the text, or send to a thread by its id"
        )
    lasting = {name: value for name, value in data.items() if name not in ONCE}
    return [
        DiscordRequest(query, {**({"content": part} if part else {}), **(data if number == 0 else lasting)})
        for number, part in enumerate(parts)
    ]


def _thread(recipient: str) -> str:
    if recipient == DEFAULT:
        return ""
    if not _ID.fullmatch(recipient):
        raise Invalid(
            f"{recipient[:64]!r} is no thread of Discord's",
            field="to",
            remedy="use the word 'default' for the webhook's channel, or the id of a thread in it",
        )
    return f"&thread_id={recipient}"


def _webhook_id(value: object) -> str:
    """Reader of the id; a bare number in TOML is as good."""
    said = str(value) if type(value) is int else value
    if not isinstance(said, str) or not _ID.fullmatch(said):
        raise ValueError("it must be the number after /webhooks/ in the webhook's URL")
    return said


def _webhook_token(value: object) -> str:
    if not isinstance(value, str) or not _TOKEN.fullmatch(value):
        raise ValueError("it must be the last part of the webhook's URL")
    return str(value)


KIND = ChannelKind(
    DiscordSettings,
    lambda settings, now: DiscordChannel(settings, now=now),
    {
        "webhook_id": _webhook_id,
        "webhook_token": _webhook_token,
        "long_text": long_text,
        "base_url": base_url,
    },
)
