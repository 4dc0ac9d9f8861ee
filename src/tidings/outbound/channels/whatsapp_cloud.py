"""WhatsApp through Meta's Cloud API: text, templates, media and other types.

A 200 means accepted, not delivered; webhooks report the rest and echo our id (`biz_opaque_callback_data`).
Meta has no idempotency keys, so an uncertain message is held. Error codes decide, not HTTP statuses: one
table maps those of responses and of later webhooks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Annotated, Any, ClassVar

from ...inputs.fields import Field
from ...model.errors import Invalid
from ...model.outcome import Done, Outcome, Reject, Retry, Unknown
from ...model.task import Category, OnUnknown
from .base import BaseChannelSettings, traits_of
from .long_text import LongText, parts_of
from .options import channel_kind, matching
from .phone_number import check_e164, is_user_id
from .provider_api import (
    ACCOUNT_ERROR,
    INVALID_REQUEST,
    OPTED_OUT,
    PERMANENT_ERROR,
    RATE_LIMITED,
    TEMPORARY_ERROR,
    BaseUrl,
    Credential,
    ProviderApi,
    ProviderChannel,
    ProviderError,
    ProviderPost,
    ProviderReply,
    outcome_by_status,
    provider_fields_of,
    without_side_effects,
)

MAX_TEXT = 4096
MAX_CAPTION = 1024  # of media, and of the body of an interactive message
GROUP = "group:"
PER_SECOND = 80.0
PER_PAIR = timedelta(seconds=6)  # per sender and recipient

DATA: Mapping[str, Field] = {
    "template": Field(
        "object",
        "An approved template: name, language, and components if it has variables",
        {"name": "order_update", "language": {"code": "en_US"}},
    ),
    "image": Field("object", "A picture, by link or id", {"link": "https://example.com/map.jpg"}),
    "video": Field("object", "A video, by link or id", {"link": "https://example.com/tour.mp4"}),
    "document": Field(
        "object", "A file, by link or id", {"link": "https://example.com/bill.pdf", "filename": "bill.pdf"}
    ),
    "audio": Field("object", "An audio file, by link or id", {"id": "1234567890"}),
    "sticker": Field("object", "A sticker, by link or id", {"id": "1234567890"}),
    "location": Field("object", "A location", {"latitude": 52.52, "longitude": 13.405, "name": "Berlin"}),
    "contacts": Field("array", "Contact cards", [{"name": {"formatted_name": "Ada", "first_name": "Ada"}}]),
    "interactive": Field("object", "Buttons or a list; the text is its body", {"type": "button", "action": {}}),
    "reaction": Field("object", "An emoji reaction to a message", {"message_id": "wamid.X", "emoji": "👍"}),
    "context": Field("object", "Message to reply to", {"message_id": "wamid.X"}),
    "preview_url": Field("boolean", "Show link previews", True),
    "recipient_identity_key_hash": Field("string", "Send only if the recipient's identity key matches"),
}
TYPES = (
    "template", "image", "video", "document", "audio", "sticker", "location", "contacts", "interactive",
    "reaction",
)  # fmt: skip
CAPTIONED = frozenset({"image", "video", "document"})
MEDIA = frozenset({"image", "video", "document", "audio", "sticker"})
NEEDED: Mapping[str, tuple[str, ...]] = {
    "template": ("name", "language"),
    "location": ("latitude", "longitude"),
    "interactive": ("type", "action"),
    "reaction": ("message_id",),
}


_ONE_TOO_FAST = ProviderError(Category.THROTTLING, retry=True)

CODES: Mapping[int, ProviderError] = {
    **dict.fromkeys(  # token, permission, account, payment, registration of the number
        (0, 3, 10, 368, 131005, 131031, 131037, 131042, 131044, 131045, 131063, 133000, 133005, 133006, 133010),
        ACCOUNT_ERROR,
    ),
    **dict.fromkeys((100, 506, 131008, 131009, 131021, 131051, 131053, 131062), INVALID_REQUEST),  # parameters, types
    **dict.fromkeys((132000, 132005, 132007, 132008, 132012, 132068, 135000), INVALID_REQUEST),  # templates, flows
    **dict.fromkeys(  # this recipient: an experiment, a country, undeliverable, a group, a changed key
        (130472, 130497, 131020, 131026, 131041, 131207, 137000), PERMANENT_ERROR
    ),
    **dict.fromkeys((1, 2, 131000, 131016, 131052, 133004), TEMPORARY_ERROR),  # 1 only once, see outcome_of
    **dict.fromkeys((131056, 131208), _ONE_TOO_FAST),  # this recipient or group; no time is told
    **dict.fromkeys((131048, 131064, 133008, 133016), RATE_LIMITED._replace(after=timedelta(hours=1))),
    **dict.fromkeys((80007, 80008, 133009), RATE_LIMITED._replace(after=timedelta(minutes=10))),
    4: RATE_LIMITED._replace(after=timedelta(minutes=1)),  # the app's calls
    33: ACCOUNT_ERROR._replace(hint="is phone_number_id right?"),
    190: ACCOUNT_ERROR._replace(hint="the access token has expired or is wrong"),
    130429: RATE_LIMITED._replace(after=timedelta(seconds=5)),  # throughput of the number
    131030: PERMANENT_ERROR._replace(hint="add the number to the allowed list of the test number"),
    131047: PERMANENT_ERROR._replace(hint="the recipient last wrote over 24 h ago, so only a template is allowed"),
    131049: _ONE_TOO_FAST._replace(after=timedelta(hours=24)),  # this person got enough marketing today
    131050: OPTED_OUT,  # the user wants no marketing
    131057: TEMPORARY_ERROR._replace(account=True, after=timedelta(minutes=1)),  # being moved to more throughput
    131215: PERMANENT_ERROR._replace(hint="this number may not use groups"),
    132001: INVALID_REQUEST._replace(hint="no such template in that language, or not approved"),
    132015: _ONE_TOO_FAST._replace(after=timedelta(hours=3), hint="the template is paused for its quality"),
    132016: PERMANENT_ERROR._replace(hint="the template is disabled for good"),
    132069: _ONE_TOO_FAST._replace(after=timedelta(minutes=6)),  # flow throttled, ten an hour
    133015: TEMPORARY_ERROR._replace(account=True, after=timedelta(minutes=5)),  # number recently deleted
}
"""Codes of responses and webhooks; the sandbox has their titles. 200 to 299 are permission errors, too."""

_DIGITS = re.compile(r"[0-9]{1,32}", re.ASCII)
_GROUP_ID = re.compile(r"[A-Za-z0-9_=-]{1,256}", re.ASCII)
_VERSION = matching(re.compile(r"v[1-9][0-9]{0,2}\.[0-9]", re.ASCII), "must be a version such as 'v24.0'")


@dataclass(frozen=True, slots=True)
class WhatsAppCloudSettings(BaseChannelSettings):
    """Settings of one business number."""

    phone_number_id: Annotated[str, _phone_number_id]
    access_token: Credential = field(repr=False)
    app_secret: Credential | None = field(default=None, repr=False)
    verify_token: Credential | None = field(default=None, repr=False)
    api_version: Annotated[str, _VERSION] = "v24.0"
    preview_url: bool = False
    long_text: LongText = LongText.REFUSE
    base_url: BaseUrl = "https://graph.facebook.com"
    deadline: timedelta = field(default=timedelta(seconds=20), kw_only=True)


class WhatsAppCloudChannel(ProviderChannel):
    """Sends from one business number; `now` returns the current instant."""

    kind: ClassVar[str] = "whatsapp_cloud"
    no_lookup = "WhatsApp cannot be asked about earlier messages"

    def __init__(self, settings: WhatsAppCloudSettings, *, now: Callable[[], int]) -> None:
        self.traits = traits_of(
            settings,
            OnUnknown.HOLD,
            "WhatsApp has no idempotency keys and no lookup; a later status may still settle it",
            chosen="chosen in the configuration: a duplicate is better than a loss",
            per_second=PER_SECOND,
            per_recipient=PER_PAIR,
            max_text=MAX_TEXT,
        )
        self._settings = settings
        self._headers = {"authorization": f"Bearer {settings.access_token}"}
        self._number = f"/{settings.api_version}/{settings.phone_number_id}"
        hide = (settings.access_token,)
        self._api = ProviderApi(settings.base_url, deadline=settings.deadline, hide=hide, now=now)

    def requests_of(self, recipient: str, content: Mapping[str, Any], id_: str = "") -> list[ProviderPost]:
        """The requests for this content; raises Invalid for what WhatsApp would always reject."""
        head = {"messaging_product": "whatsapp", **_address(recipient)}
        data = provider_fields_of(content, DATA, "WhatsApp")
        said = str(content.get("text") or "")
        types = [name for name in TYPES if name in data]
        if len(types) > 1:
            problem = f"A message cannot be both {types[0]} and {types[1]}"
            raise Invalid(problem, remedy="Send them as two messages", field="data")
        extras = {name: data[name] for name in data if name in ("context", "recipient_identity_key_hash")}
        if types:
            kind = types[0]
            return [self._request({**head, "type": kind, kind: _object(kind, data[kind], said), **extras}, id_)]
        if not said.strip():
            raise Invalid("The message is empty", remedy="Give a text, or data with a template", field="text")
        preview = data.get("preview_url", self._settings.preview_url)
        parts = parts_of(said, MAX_TEXT, self._settings.long_text)
        bodies = [{**head, "type": "text", "text": {"preview_url": preview, "body": part}, **extras} for part in parts]
        # Statuses echo our id for a whole message; each part has its own.
        ids = [id_] if len(parts) == 1 else [f"{id_}.{number}" for number in range(1, len(parts) + 1)]
        return list(map(self._request, bodies, ids))

    def _request(self, body: Mapping[str, Any], echoed: str) -> ProviderPost:
        return ProviderPost(f"{self._number}/messages", {**body, "biz_opaque_callback_data": echoed}, self._headers)

    def chat(self, id_: str) -> str:
        """The recipient of a chat: the person's address, or `group:` and the id of a group."""
        return id_ if id_.startswith("+") or is_user_id(id_) else GROUP + id_

    async def probe(self) -> Outcome:
        """Read the sender's number, name and quality."""
        fields = "?fields=display_phone_number,verified_name,quality_rating"
        reply = await self._api.get(self._number + fields, headers=self._headers)
        if not isinstance(reply, ProviderReply):
            return reply
        number = reply.fields.get("display_phone_number")
        if reply.is_success and isinstance(number, str):
            name, quality = reply.fields.get("verified_name"), reply.fields.get("quality_rating")
            known = [str(part) for part in (name, number, quality and f"quality {quality}") if part]
            return Done(self._api.shown(", ".join(known)))
        return without_side_effects(Unknown(reply.words()) if reply.is_success else self._refused(reply, attempt=1))

    def _outcome(self, reply: ProviderReply, recipient: str = "", attempt: int = 1) -> Outcome:
        if reply.is_success and "error" not in reply.fields and (reply.body is not None or reply.is_json):
            return Done(self._receipt(reply.fields.get("messages")))  # also with a truncated body
        return self._refused(reply, attempt)

    def _refused(self, reply: ProviderReply, attempt: int) -> Outcome:
        error = reply.inner("error")
        code = error.get("code")
        if type(code) is not int:
            return outcome_by_status(reply, reply.words(), certain=False)
        if code == 100 and error.get("error_subcode") == 33:  # the path has an unknown phone_number_id
            code = 33
        data = error.get("error_data")  # an object or a string
        details = self._api.shown(data.get("details") if isinstance(data, dict) else data)
        reason = reply.words(f"code {code}", self._api.shown(error.get("message")), details)
        known = outcome_of(code, reason, attempt=attempt)
        if known is not None:
            return known
        if error.get("is_transient") is True:
            return Retry(Category.TEMPORARY, reason, after=reply.wait)
        return outcome_by_status(reply, reason, certain=True)

    def _receipt(self, messages: object) -> str | None:
        first = messages[0] if isinstance(messages, list) and messages else None
        id_ = first.get("id") if isinstance(first, dict) else None
        return self._api.shown(id_) or None


def outcome_of(code: int, reason: str, *, attempt: int) -> Retry | Reject | None:
    """The outcome of a code in a response or webhook; None if it is unknown."""
    fate = ACCOUNT_ERROR if 200 <= code <= 299 else CODES.get(code)
    if code == 1 and attempt > 1:  # temporary at first; on a repeat the request is invalid
        fate = INVALID_REQUEST
    return None if fate is None else fate.outcome(reason)


def _address(recipient: str) -> dict[str, str]:
    """The fields that address a phone number, a user id or a group."""
    if recipient.startswith(GROUP) and _GROUP_ID.fullmatch(recipient.removeprefix(GROUP)):
        return {"recipient_type": "group", "to": recipient.removeprefix(GROUP)}
    if is_user_id(recipient):
        return {"recipient_type": "individual", "recipient": recipient}
    check_e164(recipient)
    return {"recipient_type": "individual", "to": recipient.removeprefix("+")}


def _object(kind: str, given: Any, said: str) -> Any:
    """The object of a typed message; the text becomes its caption or body."""
    if kind in MEDIA:
        _check_media(kind, given)
    missing = [name for name in NEEDED.get(kind, ()) if given.get(name) in (None, "")]
    if missing:
        raise Invalid(f"{kind} has no {missing[0]}", remedy=_example(kind), field=f"data.{kind}")
    if kind == "template" and isinstance(given["language"], str):
        given = {**given, "language": {"code": given["language"]}}
    if not said:
        return given
    place = "body" if kind == "interactive" else "caption"
    if kind in (*CAPTIONED, "interactive") and place not in given:
        if len(said) > MAX_CAPTION:
            remedy = f"With {kind} it is a {place} of at most {MAX_CAPTION}"
            raise Invalid(f"The text has {len(said)} characters", remedy=remedy, field="text")
        return {**given, place: {"text": said} if place == "body" else said}
    raise Invalid(f"A message with {kind} takes no text", remedy="Leave text out", field="text")


def _check_media(kind: str, given: Mapping[str, Any]) -> None:
    unknown = sorted(set(given) - {"link", "id", "caption", "filename"})
    link, id_ = given.get("link"), given.get("id")
    if unknown:
        problem = f"{kind} has no {unknown[0][:40]!r}"
        raise Invalid(problem, remedy="Use link or id, caption, filename", field=f"data.{kind}")
    if (link is None) == (id_ is None):
        raise Invalid(f"{kind} needs a link or an id, not both", remedy=_example(kind), field=f"data.{kind}")
    if link is not None and not (isinstance(link, str) and link.startswith(("https://", "http://"))):
        raise Invalid(f"the link of {kind} is not a URL", remedy=_example(kind), field=f"data.{kind}")


def _example(kind: str) -> str:
    return f"For example {DATA[kind].example!r}".replace("'", '"')


def _phone_number_id(value: object) -> str:
    found = str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""
    if not _DIGITS.fullmatch(found):
        raise ValueError("must be the id of a phone number (digits only), not the phone number itself")
    return found


KIND = channel_kind(WhatsAppCloudSettings, WhatsAppCloudChannel)
