"""GroupMe: posts of a bot to its group, and messages of an account to people and groups.

An account's messages carry our id as `source_guid`, an idempotency key: GroupMe refuses a repeat within about
a minute and lists it, so an uncertain message can be looked up. A bot's post has neither.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Annotated, Any, ClassVar

from ...inputs.fields import Field
from ...model.errors import Invalid
from ...model.message import Message
from ...model.outcome import Done, Outcome, Reject, Retry, Skip, Unknown
from ...model.task import Category, OnUnknown
from ...model.time import SECOND
from .base import BaseChannelSettings, traits_of
from .long_text import LongText, part_id, parts_of
from .options import channel_kind, choice
from .provider_api import (
    BaseUrl,
    Credential,
    ProviderApi,
    ProviderChannel,
    ProviderPost,
    ProviderReply,
    outcome_by_status,
    provider_fields_of,
    without_side_effects,
)

BOT = "bot"  # the recipient for the bot's own group
GROUP = "group:"  # the prefix of a group id
MAX_TEXT = 1000
LISTED = 100  # messages per page in a lookup; direct messages may come in pages of 20
PAGES = 10
CLOCK_MARGIN = 60 * SECOND  # GroupMe's clock may be behind ours
THROTTLED_FOR = timedelta(seconds=60)  # GroupMe sends no Retry-After

DATA: Mapping[str, Field] = {
    "attachments": Field("array", "Pictures, places, mentions", [{"type": "image", "url": "https://i.groupme.com/1"}])
}

_ID = re.compile(r"[0-9]{1,20}")


@dataclass(frozen=True, slots=True)
class GroupMeSettings(BaseChannelSettings):
    """Settings of a bot, an account, or both. A bot's id is a secret: it is enough to post."""

    bot_id: Credential | None = field(default=None, repr=False)
    token: Credential | None = field(default=None, repr=False)
    long_text: LongText = LongText.REFUSE
    base_url: BaseUrl = "https://api.groupme.com/v3"
    on_unknown: Annotated[OnUnknown, choice(OnUnknown)] | None = field(default=None, kw_only=True)


class GroupMeChannel(ProviderChannel):
    """Sends as one bot or account; `now` returns the current instant."""

    kind: ClassVar[str] = "groupme"

    def __init__(self, settings: GroupMeSettings, *, now: Callable[[], int]) -> None:
        can_ask = settings.token is not None
        self.traits = traits_of(
            settings,
            OnUnknown.ASK if can_ask else OnUnknown.HOLD,
            "GroupMe lists an account's messages with our id; an uncertain bot post waits for a person"
            if can_ask
            else "bot posts have no idempotency key and cannot be looked up",
            max_text=MAX_TEXT,
        )
        self._settings = settings
        self._account = {"x-access-token": settings.token} if settings.token else {}
        hide = tuple(secret for secret in (settings.token, settings.bot_id) if secret)
        self._api = ProviderApi(settings.base_url, deadline=settings.deadline, hide=hide, now=now)

    def requests_of(self, recipient: str, content: Mapping[str, Any], id_: str = "") -> list[ProviderPost]:
        """The requests for this content; raises Invalid for what GroupMe would always reject."""
        _check_recipient(recipient, self._settings)
        data = provider_fields_of(content, DATA, "GroupMe")
        said = str(content.get("text") or "")
        if not said.strip() and not data.get("attachments"):
            remedy = "give a text, or attachments in data"
            raise Invalid("the message is empty", field="text", remedy=remedy)
        parts = parts_of(said, MAX_TEXT, self._settings.long_text)
        return [
            self._request(recipient, part, part_id(id_, number), {} if number else data)
            for number, part in enumerate(parts)
        ]

    def _request(self, recipient: str, said: str, key: str, data: Mapping[str, Any]) -> ProviderPost:
        """One request: to the bot's group, to a group, or to a person; `key` is its source_guid."""
        if recipient == BOT:
            return ProviderPost("/bots/post", {"bot_id": self._settings.bot_id, "text": said, **data})
        if recipient.startswith(GROUP):
            path = f"/groups/{recipient.removeprefix(GROUP)}/messages"
            message = {"source_guid": key, "text": said, "attachments": [], **data}
            return ProviderPost(path, {"message": message}, self._account)
        direct = {"source_guid": key, "recipient_id": recipient, "text": said, **data}
        return ProviderPost("/direct_messages", {"direct_message": direct}, self._account)

    def chat(self, id_: str) -> str:
        """The recipient of a group: its id, or its bot."""
        return BOT if self._settings.token is None else f"{GROUP}{id_}"

    async def lookup(self, message: Message) -> Outcome:
        """Search the newest messages of the recipient for our id."""
        if message.recipient == BOT or not self._account:
            return Unknown("a bot's post cannot be looked up")
        try:
            count = len(self.requests_of(message.recipient, message.content))
        except Invalid as error:
            return Unknown(f"lookup failed: {error}")
        keys, listed = [part_id(message.id, number) for number in range(count)], list[Mapping[str, Any]]()
        for _ in range(PAGES):
            before = f"&before_id={listed[-1].get('id')}" if listed else ""
            reply = await self._api.get(_list_of(message.recipient) + before, headers=self._account)
            if not isinstance(reply, ProviderReply):
                return Unknown("GroupMe did not answer the lookup")
            page = [] if reply.status == 304 else _listed(reply)
            if page is None or not (reply.is_success or reply.status == 304):
                return Unknown(f"GroupMe answered the lookup with {reply.words()}")
            listed += page
            total = 0 if reply.status == 304 else reply.inner("response").get("count")
            found = found_in(listed, keys, total=total, accepted_at=message.accepted_at)
            if not page or not isinstance(found, Unknown):
                return found
        return found

    async def probe(self) -> Outcome:
        """Read the account's name; Skip for a bot alone."""
        if not self._account:
            return Skip("a GroupMe bot cannot be tested without sending")
        reply = await self._api.get("/users/me", headers=self._account)
        if not isinstance(reply, ProviderReply):
            return reply
        person = reply.inner("response")
        if reply.is_success and person:
            return Done(self._api.shown(f"{person.get('name')} (user {person.get('id')})"))
        return without_side_effects(outcome_by_status(reply, self._reason(reply), certain=False))

    def _outcome(self, reply: ProviderReply, recipient: str = "", attempt: int = 1) -> Outcome:
        if reply.is_success and reply.is_json:
            return Done(self._api.shown(_receipt(reply)) or None)
        return outcome_of(reply, self._reason(reply), by_bot=recipient == BOT)

    def _reason(self, reply: ProviderReply) -> str:
        """The reason from `meta.errors`, a list of texts or sometimes an object."""
        errors = reply.inner("meta").get("errors")
        if isinstance(errors, dict):
            errors = [f"{name} {said}" for name, said in errors.items()]
        said = "; ".join(error for error in errors if isinstance(error, str)) if isinstance(errors, list) else ""
        return reply.words(self._api.shown(said))


def outcome_of(reply: ProviderReply, reason: str, *, by_bot: bool) -> Outcome:
    """The outcome of a GroupMe error."""
    status = reply.status
    if status == 409 and not by_bot:
        return Done()  # duplicate source_guid: an earlier attempt arrived
    if status in (420, 429):
        after = THROTTLED_FOR if reply.wait is None else reply.wait
        return Retry(Category.THROTTLING, reason, after=after, whole_channel=True)
    if status == 404:
        return Reject(Category.PERMANENT, reason, whole_channel=by_bot)  # an unknown bot is a configuration error
    return outcome_by_status(reply, reason, certain=status in (500, 502, 503))


def found_in(listed: list[Mapping[str, Any]], keys: list[str], *, total: object, accepted_at: int) -> Outcome:
    """Search a list of messages, newest first. Only a list of all `total` messages, or one that begins before
    the message was accepted, proves its absence: pages may be shorter than asked for.
    """
    ids = {str(one.get("source_guid")): str(one.get("id")) for one in listed}
    found = [ids[key] for key in keys if key in ids]
    if len(found) == len(keys):
        return Done(" ".join(found))
    if found:
        return Unknown(f"GroupMe has {len(found)} of its {len(keys)} parts")
    times = [one.get("created_at") for one in listed]
    is_whole = isinstance(total, int) and len(listed) >= total
    if is_whole or any(isinstance(at, int) and at * SECOND < accepted_at - CLOCK_MARGIN for at in times):
        return Retry(Category.TEMPORARY, "GroupMe does not have it")
    return Unknown("GroupMe's list does not reach back far enough")


def _check_recipient(recipient: str, settings: GroupMeSettings) -> None:
    if recipient == BOT:
        if settings.bot_id is None:
            raise Invalid("this channel has no bot", field="to", remedy="give it a bot_id, or use a user's id")
        return
    if not _ID.fullmatch(recipient.removeprefix(GROUP)):
        raise Invalid(
            f"{recipient[:64]!r} is not a GroupMe recipient",
            field="to",
            remedy="use 'bot' for the bot's group, a user id, or group: and a group id",
        )
    if settings.token is None:
        remedy = "give the channel a token, or use 'bot'"
        raise Invalid("a bot writes to its own group only", field="to", remedy=remedy)


def _list_of(recipient: str) -> str:
    if recipient.startswith(GROUP):
        return f"/groups/{recipient.removeprefix(GROUP)}/messages?limit={LISTED}"
    return f"/direct_messages?other_user_id={recipient}&limit={LISTED}"


def _listed(reply: ProviderReply) -> list[Mapping[str, Any]] | None:
    response = reply.inner("response")
    found = response.get("direct_messages", response.get("messages"))
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else None


def _receipt(reply: ProviderReply) -> object:
    response = reply.inner("response")
    made = response.get("message") or response.get("direct_message")
    return made.get("id") if isinstance(made, dict) else None


def _judge(settings: GroupMeSettings) -> None:
    if settings.bot_id is None and settings.token is None:
        raise ValueError("bot_id", "neither a bot nor an account is given", "Give bot_id, token, or both")
    if settings.on_unknown is OnUnknown.ASK and settings.token is None:
        raise ValueError("on_unknown", "a bot's posts cannot be looked up", "Use 'hold' or 'resend'")


KIND = channel_kind(GroupMeSettings, GroupMeChannel, _judge)
