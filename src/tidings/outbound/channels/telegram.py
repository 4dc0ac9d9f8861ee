"""The Telegram Bot API: messages from a bot.

Every accepted call creates a new message and cannot be looked up, so an uncertain message is held. The token
is part of the URL and masked in everything that is shown.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Annotated, Any, ClassVar

from ...inputs.fields import Field
from ...model.errors import Invalid
from ...model.outcome import Done, Outcome, Reject, Retry, Unknown
from ...model.task import Category, OnUnknown
from ..markup import Markup, MarkupSpot
from .base import BaseChannelSettings, traits_of
from .long_text import LongText, parts_of
from .options import channel_kind, choice, matching
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

MAX_TEXT = 4096  # characters without markup
MAX_CAPTION = 1024
MAX_BYTES = 32_768
PER_SECOND = 30.0
PER_CHAT = timedelta(seconds=1)
MODES = ("HTML", "MarkdownV2", "Markdown")
MEDIA: Mapping[str, str] = {
    "photo": "sendPhoto",
    "document": "sendDocument",
    "video": "sendVideo",
    "audio": "sendAudio",
    "voice": "sendVoice",
    "animation": "sendAnimation",
}
DATA: Mapping[str, Field] = {
    "parse_mode": Field("string", "Markup of the text; null for none", "HTML"),
    "entities": Field("array", "Markup as a list of entities instead", [{"type": "bold", "offset": 0, "length": 5}]),
    "link_preview_options": Field("object", "Link preview options", {"is_disabled": True}),
    "disable_notification": Field("boolean", "Send silently", True),
    "protect_content": Field("boolean", "Forbid forwarding and saving", True),
    "reply_parameters": Field("object", "Message to reply to", {"message_id": 42}),
    "reply_markup": Field("object", "Buttons", {"inline_keyboard": [[{"text": "Yes", "callback_data": "yes"}]]}),
    "message_thread_id": Field("integer", "Forum topic", 7),
    "allow_paid_broadcast": Field("boolean", "Up to 1,000 messages per second, for a fee", True),
    "business_connection_id": Field("string", "Business account to send for"),
    "direct_messages_topic_id": Field("integer", "Topic of a channel's direct messages"),
    "message_effect_id": Field("string", "Message effect, in private chats only"),
    "ephemeral_message_parameters": Field("object", "Show it to one member of a group only", {"receiver_user_id": 7}),
    "suggested_post_parameters": Field("object", "Parameters of a suggested post"),
    **{name: Field("string", f"A {name}, by https URL or file_id; the text is its caption") for name in MEDIA},
}

_MARKUP = {"HTML": Markup.HTML, "MarkdownV2": Markup.MARKDOWN_V2, "Markdown": Markup.MARKDOWN}
_TOKEN = matching(
    re.compile(r"[0-9]{1,20}:[A-Za-z0-9_-]{3,128}", re.ASCII),
    "must be a bot token from BotFather: digits, a colon, and letters",
)
_SECRET = matching(re.compile(r"[A-Za-z0-9_-]{16,256}", re.ASCII), "must be 16 to 256 of A-Z, a-z, 0-9, _ and -")
_NUMBER = re.compile(r"-?[1-9][0-9]{0,15}", re.ASCII)
_NAME = re.compile(r"@[A-Za-z][A-Za-z0-9_]{3,31}", re.ASCII)
_REMEMBERED = 10_000  # migrated groups

# Descriptions of a 400 that concern the recipient; any other 400 concerns the message.
_UNREACHABLE = (
    "chat not found",
    "peer_id_invalid",
    "message thread not found",
    "topic_closed",
    "have no write access",
    "not enough rights",
    "need administrator rights",
    "chat_restricted",
    "_forbidden",  # CHAT_WRITE_FORBIDDEN, CHAT_SEND_PLAIN_FORBIDDEN, VOICE_MESSAGES_FORBIDDEN …
    "chat_admin_required",
    "user_banned_in_channel",
    "payment_required",
    "premium_required",
    "group is deactivated",
    "supergroup chat",  # migrated, without a new id
    "user is deactivated",
    "user_is_blocked",
    "input_user_deactivated",
)


@dataclass(frozen=True, slots=True)
class TelegramSettings(BaseChannelSettings):
    """Settings of one bot."""

    token: Annotated[str, _TOKEN] = field(repr=False)
    parse_mode: Annotated[str, choice(MODES)] | None = None
    bad_markup: Annotated[str, choice(("reject", "plain"))] = "reject"
    long_text: LongText = LongText.REFUSE
    webhook_secret: Annotated[str, _SECRET] | None = field(default=None, repr=False)
    base_url: BaseUrl = "https://api.telegram.org"


class TelegramChannel(ProviderChannel):
    """Sends messages as one bot; `now` returns the current instant."""

    kind: ClassVar[str] = "telegram"
    no_lookup = "Telegram cannot be asked about earlier messages"

    def __init__(self, settings: TelegramSettings, *, now: Callable[[], int]) -> None:
        self.traits = traits_of(
            settings,
            OnUnknown.HOLD,
            "every Telegram call creates a new message, which cannot be looked up",
            chosen="chosen in the configuration: a duplicate is better than a loss",
            per_second=PER_SECOND,
            per_recipient=PER_CHAT,
            max_text=MAX_TEXT,
        )
        self._settings = settings
        self._now = now
        secrets = (settings.token, settings.token.partition(":")[2])
        base = f"{settings.base_url}/bot{settings.token}"
        self._api = ProviderApi(base, deadline=settings.deadline, hide=secrets, now=now)
        self._moved: OrderedDict[int | str, int] = OrderedDict()  # old chat -> new, to save a request

    def requests_of(self, recipient: str, content: Mapping[str, Any], id_: str = "") -> list[ProviderPost]:
        """The requests for this content; raises Invalid for what Telegram would always reject."""
        chat = chat_of(recipient)
        data = provider_fields_of(content, DATA, "Telegram")
        said = str(content.get("text") or "")
        mode = _mode(content.get("data") or {}, self._settings)
        extras = {key: value for key, value in data.items() if key not in ("parse_mode", *MEDIA)}
        if mode is not None:
            extras = {"parse_mode": mode, **extras}
        media = [name for name in MEDIA if name in data]
        if len(media) > 1:
            problem = f"A message cannot have both {media[0]} and {media[1]}"
            raise Invalid(problem, remedy="Send them as two messages", field="data")
        if media:
            return [_media_call(chat, media[0], data[media[0]], said, extras)]
        if not said.strip():
            raise Invalid("The message is empty", remedy="Give a text, or data with a photo", field="text")
        return [
            ProviderPost("/sendMessage", {"chat_id": chat, "text": part, **extras})
            for part in _parts(said, extras, self._settings)
        ]

    def markup(self, spot: MarkupSpot) -> Markup | None:
        """The markup of the text, by the parse_mode of the message or channel."""
        mode = spot.data.get("parse_mode", self._settings.parse_mode)
        return _MARKUP.get(mode) if spot.place == "text" and isinstance(mode, str) else None

    async def probe(self) -> Outcome:
        """Call `getMe` for the bot's name."""
        reply = await self._api.get("/getMe")
        if not isinstance(reply, ProviderReply):
            return reply
        bot = reply.fields.get("result")
        if reply.is_success and isinstance(bot, dict):
            return Done(self._api.shown(f"@{bot.get('username')}, bot {bot.get('id')}"))
        return without_side_effects(Unknown(reply.words()) if reply.is_success else self._outcome(reply))

    async def _reply(self, request: ProviderPost, id_: str, since: float) -> ProviderReply | Outcome:
        """Make one call, and another if the group has migrated or the markup is invalid."""
        chat = request.body["chat_id"]
        body = {**request.body, "chat_id": self._moved.get(chat, chat)}
        reply = await super()._reply(request._replace(body=body), id_, since)
        if isinstance(reply, ProviderReply) and (moved := moved_to(reply)) is not None:
            self._moved[chat] = moved
            if len(self._moved) > _REMEMBERED:
                self._moved.popitem(last=False)
            body["chat_id"] = moved
            reply = await super()._reply(request._replace(body=body), id_, since)
        if self._settings.bad_markup == "plain" and isinstance(reply, ProviderReply) and is_markup_wrong(reply):
            plain = {name: value for name, value in body.items() if name != "parse_mode"}
            reply = await super()._reply(request._replace(body=plain), id_, since)
        return reply

    def _outcome(self, reply: ProviderReply, recipient: str = "", attempt: int = 1) -> Outcome:
        ok = reply.fields.get("ok")
        if reply.is_success and (ok is True or (reply.body is None and reply.is_json)):
            return Done(receipt_of(reply.fields.get("result")))  # also with a truncated body
        if ok is not False and reply.status == 404:  # not Telegram's answer
            return Reject(Category.PERMANENT, reply.words(), whole_channel=True)
        if ok is not False:
            return outcome_by_status(reply, reply.words(), certain=False)
        reason = reply.words(self._api.shown(reply.fields.get("description")))
        after = reply.exact_wait(reply.inner("parameters").get("retry_after"), self._now())
        return outcome_of(reply, reason, recipient, after=after)


def chat_of(recipient: str) -> int | str:
    """The chat id: a number, or the @name of a public group or channel; raises Invalid."""
    if _NUMBER.fullmatch(recipient):
        return int(recipient)
    if _NAME.fullmatch(recipient):
        return recipient
    problem = f"{recipient[:40]!r} is not a Telegram chat"
    if recipient.startswith("+"):
        problem = "A bot cannot send to a phone number"
    remedy = "Use the number of a chat, such as 123456789 or -1001234567890, or a public @name"
    raise Invalid(problem, remedy=remedy, field="to")


def _mode(data: Mapping[str, Any], settings: TelegramSettings) -> str | None:
    """The parse_mode of the message, or the channel's unless it has entities."""
    own = data.get("parse_mode")
    if own is None:
        return None if "parse_mode" in data or data.get("entities") else settings.parse_mode
    if own not in MODES:
        remedy = f"Use one of {', '.join(MODES)}; null sends it plain"
        raise Invalid(f"Unknown parse_mode {own[:32]!r}", remedy=remedy, field="data")
    return str(own)


def _is_marked_up(extras: Mapping[str, Any]) -> bool:
    return "parse_mode" in extras or "entities" in extras


def _parts(said: str, extras: Mapping[str, Any], settings: TelegramSettings) -> list[str]:
    """The parts of a text; text with markup is not split, because a cut could fall inside a tag."""
    if not _is_marked_up(extras):
        return parts_of(said, MAX_TEXT, settings.long_text)
    if len(said.encode(errors="replace")) > MAX_BYTES:
        problem = f"The text with its markup has more than {MAX_BYTES:,} bytes"
        raise Invalid(problem, remedy="Shorten it, or send it without parse_mode", field="text")
    return [said]


def _media_call(chat: int | str, name: str, place: str, said: str, extras: Mapping[str, Any]) -> ProviderPost:
    if not place.strip() or (":" in place and not place.startswith(("https://", "http://"))):
        problem = f"{name} is neither a URL nor a file_id"
        raise Invalid(problem, remedy="Use an https URL or a file_id", field="data")
    if len(said) > MAX_CAPTION and not _is_marked_up(extras):
        remedy = f"With a {name} it is a caption of at most {MAX_CAPTION}"
        raise Invalid(f"The text has {len(said)} characters", remedy=remedy, field="text")
    renamed = {"caption_entities" if key == "entities" else key: value for key, value in extras.items()}
    return ProviderPost(
        f"/{MEDIA[name]}", {"chat_id": chat, name: place, **({"caption": said} if said else {}), **renamed}
    )


def outcome_of(reply: ProviderReply, reason: str, recipient: str, *, after: timedelta | None) -> Outcome:
    """The outcome of a Telegram error."""
    code = reply.fields.get("error_code")
    status = code if type(code) is int else reply.status
    words = str(reply.fields.get("description")).lower()
    match status:
        case 429:
            is_group = recipient.startswith(("-", "@"))  # we pace private chats, so their 429 concerns the bot
            return Retry(Category.THROTTLING, reason, after=after, whole_channel=not is_group)
        case 400 if "logged out" in words:
            return Reject(Category.PERMANENT, reason, whole_channel=True)
        case 400 if any(part in words for part in _UNREACHABLE):
            return Reject(Category.PERMANENT, reason)
        case 403:
            return Reject(Category.PERMANENT, reason, opted_out="blocked by the user" in words)
        case 404 if "method not found" in words:
            return Reject(Category.VALIDATION, reason)
        case 401 | 404 | 421:  # 404: malformed token
            return Reject(Category.PERMANENT, reason, whole_channel=True)
        case 409:
            return Retry(Category.TEMPORARY, reason)
        case _ if status >= 500:  # Telegram itself reports the failure
            return Retry(Category.TEMPORARY, reason, after=after)
        case _:
            return Reject(Category.VALIDATION, reason)


def moved_to(reply: ProviderReply) -> int | None:
    """The new id of a group that became a supergroup."""
    new = reply.inner("parameters").get("migrate_to_chat_id")
    return new if reply.status == 400 and type(new) is int else None


def is_markup_wrong(reply: ProviderReply) -> bool:
    """Whether the text was rejected for its markup."""
    return reply.status == 400 and "can't parse entities" in str(reply.fields.get("description"))


def receipt_of(result: object) -> str | None:
    """Chat id and message id, which is unique per chat only; None for a message without a usable id."""
    if not isinstance(result, dict) or type(result.get("message_id")) is not int:
        return None
    chat, number = result.get("chat"), result["message_id"] or result.get("ephemeral_message_id")
    place = chat.get("id") if isinstance(chat, dict) else None
    if type(number) is not int:  # Telegram scheduled a long video: it has no id yet
        return None
    return f"{place}/{number}" if type(place) is int else str(number)


KIND = channel_kind(TelegramSettings, TelegramChannel)
