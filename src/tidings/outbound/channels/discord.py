"""Discord webhooks: messages to the webhook's channel or to one of its threads.

The webhook is the account: its token is in the URL, its rate limit applies to all messages, and when Discord
no longer knows it, the channel is paused. Discord has no idempotency keys, so an uncertain message is held.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from ...inputs.fields import Field
from ...model.errors import Invalid
from ...model.outcome import Done, Outcome, Reject, Retry
from ...model.task import Category, OnUnknown
from ..markup import Markup, MarkupSpot
from .base import BaseChannelSettings, traits_of
from .long_text import LongText, parts_of
from .options import channel_kind, matching
from .provider_api import (
    BaseUrl,
    ProviderApi,
    ProviderChannel,
    ProviderPost,
    ProviderReply,
    outcome_by_status,
    provider_fields_of,
    without_side_effects,
)

DEFAULT = "default"  # the recipient for the webhook's own channel
MAX_TEXT = 2000
MAX_EMBEDS = 10
COMPONENTS_V2 = 1 << 15  # the flag of messages that consist of components only
PER_SECOND = 2.5  # 5 in 2 s, as commonly quoted; Retry-After decides

DATA: Mapping[str, Field] = {
    "embeds": Field("array", "Up to 10 embeds", [{"title": "Rota", "description": "Ada is on"}]),
    "components": Field("array", "Components, such as links and text displays", [{"type": 10, "content": "Rota"}]),
    "poll": Field("object", "A poll", {"question": {"text": "Who?"}, "answers": []}),
    "username": Field("string", "Display name for this message", "Night watch"),
    "avatar_url": Field("string", "Avatar for this message", "https://example.com/owl.png"),
    "tts": Field("boolean", "Read aloud (text to speech)", True),
    "allowed_mentions": Field("object", "Allowed @ mentions", {"parse": []}),
    "flags": Field("integer", "Message flags, such as 4 for no previews, 32768 for for components only", 4),
    "thread_name": Field("string", "Start a forum thread with this name", "Incident 7"),
    "applied_tags": Field("array", "Ids of the tags of a new forum thread", ["111222333444555666"]),
}
ONCE = frozenset({"embeds", "components", "poll"})  # with the first part only
CONTENT = ("embeds", "components", "poll")  # allowed instead of a text

_ID = re.compile(r"[0-9]{1,20}")
_TOKEN = matching(re.compile(r"[A-Za-z0-9._-]{1,200}"), "must be the last part of the webhook's URL")
_GONE = frozenset({10015, 50027})  # the webhook was deleted, or its token is wrong
_UNREACHABLE = frozenset({10003})  # unknown channel
_WRONG = frozenset({50006, 50035, 220001, 220003})
_ACCOUNT = frozenset({40333})


@dataclass(frozen=True, slots=True)
class DiscordSettings(BaseChannelSettings):
    """Settings of one webhook."""

    webhook_id: Annotated[str, _webhook_id]
    webhook_token: Annotated[str, _TOKEN] = field(repr=False)
    long_text: LongText = LongText.REFUSE
    base_url: BaseUrl = "https://discord.com/api/v10"


class DiscordChannel(ProviderChannel):
    """Sends through one webhook; `now` returns the current instant."""

    kind: ClassVar[str] = "discord"
    no_lookup = "a Discord webhook cannot list its messages"

    def __init__(self, settings: DiscordSettings, *, now: Callable[[], int]) -> None:
        self.traits = traits_of(
            settings,
            OnUnknown.HOLD,
            "Discord webhooks have no idempotency keys",
            per_second=PER_SECOND,
            max_text=MAX_TEXT,
        )
        self._settings = settings
        self._now = now
        self._path = f"/webhooks/{settings.webhook_id}/{settings.webhook_token}"
        hide = (settings.webhook_token,)
        self._api = ProviderApi(settings.base_url, deadline=settings.deadline, hide=hide, now=now)

    def requests_of(self, recipient: str, content: Mapping[str, Any], id_: str = "") -> list[ProviderPost]:
        """The requests for this content; raises Invalid for what Discord would always reject."""
        data = provider_fields_of(content, DATA, "Discord")
        query = f"{self._path}?wait=true{_thread(recipient)}"
        said = str(content.get("text") or "")
        if not said.strip() and not any(data.get(name) for name in CONTENT):
            remedy = f"give a text, or one of {', '.join(CONTENT)} in data"
            raise Invalid("the message is empty", field="text", remedy=remedy)
        if len(data.get("embeds", ())) > MAX_EMBEDS:
            problem = f"there are {len(data['embeds'])} embeds"
            raise Invalid(problem, field="data.embeds", remedy=f"use at most {MAX_EMBEDS}")
        if data.get("flags", 0) & COMPONENTS_V2 and (said or data.get("embeds") or data.get("poll")):
            remedy = f"put the text into data.components, or leave {COMPONENTS_V2} out of data.flags"
            raise Invalid("with this flag a message consists of components only", field="data.flags", remedy=remedy)
        parts = parts_of(said, MAX_TEXT, self._settings.long_text)
        if len(parts) > 1 and "thread_name" in data:
            problem = "a split text cannot start a thread"
            raise Invalid(problem, field="data.thread_name", remedy="shorten the text, or send to a thread by its id")
        lasting = {name: value for name, value in data.items() if name not in ONCE}
        first = f"{query}&with_components=true" if data.get("components") else query  # Discord ignores them without it
        return [
            ProviderPost(
                query if number else first, {**({"content": part} if part else {}), **(lasting if number else data)}
            )
            for number, part in enumerate(parts)
        ]

    def markup(self, spot: MarkupSpot) -> Markup | None:
        """Discord markup for every text, including embeds: values cannot mention people or hide links."""
        return Markup.DISCORD

    async def probe(self) -> Outcome:
        """Read the webhook's name."""
        reply = await self._api.get(self._path)
        if not isinstance(reply, ProviderReply):
            return reply
        if reply.is_success and reply.body is not None:
            return Done(self._api.shown(f"webhook {reply.fields.get('name')}"))
        return without_side_effects(self._outcome(reply))

    def _outcome(self, reply: ProviderReply, recipient: str = "", attempt: int = 1) -> Outcome:
        if reply.is_success and reply.is_json:
            id_ = self._api.shown(reply.fields.get("id"))
            return Done(id_ or None)
        code, said = reply.fields.get("code"), self._api.shown(reply.fields.get("message"))
        number = code if type(code) is int else None
        reason = reply.words(str(number) if number else "", said)
        return outcome_of(number, reply, reason, now=self._now())


def outcome_of(code: int | None, reply: ProviderReply, reason: str, *, now: int) -> Outcome:
    """The outcome of a Discord error; rate limits apply to the whole webhook."""
    if reply.status == 429:
        after = reply.exact_wait(reply.fields.get("retry_after"), now)
        return Retry(Category.THROTTLING, reason, after=after, whole_channel=True)
    if code in _GONE or code in _ACCOUNT:
        return Reject(Category.PERMANENT, reason, whole_channel=True)
    if code in _UNREACHABLE:
        return Reject(Category.PERMANENT, reason)
    if code in _WRONG:
        return Reject(Category.VALIDATION, reason)
    return outcome_by_status(reply, reason, certain=reply.status >= 500)


def _thread(recipient: str) -> str:
    if recipient == DEFAULT:
        return ""
    if not _ID.fullmatch(recipient):
        raise Invalid(
            f"{recipient[:64]!r} is not a Discord thread",
            field="to",
            remedy="use 'default' for the webhook's channel, or the id of one of its threads",
        )
    return f"&thread_id={recipient}"


def _webhook_id(value: object) -> str:
    """Reader of the id, also as a TOML number."""
    said = str(value) if type(value) is int else value
    if not isinstance(said, str) or not _ID.fullmatch(said):
        raise ValueError("must be the number after /webhooks/ in the webhook's URL")
    return said


KIND = channel_kind(DiscordSettings, DiscordChannel)
