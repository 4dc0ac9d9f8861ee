"""Twilio: SMS, and WhatsApp through Twilio.

Twilio has no idempotency keys and a message costs money, so an uncertain one is held. One table maps the
error codes of responses and of later callbacks.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from functools import partial
from typing import Annotated, Any, ClassVar
from urllib.parse import urlencode

import orjson

from ...inputs.fields import Field
from ...model.errors import Invalid
from ...model.outcome import Done, Outcome, Reject, Retry
from ...model.task import Category, OnUnknown
from .base import BaseChannelSettings, traits_of
from .long_text import LongText, parts_of
from .options import channel_kind, length, matching, text
from .phone_number import check_e164, is_e164, is_user_id
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

MAX_TEXT = 1600
MAX_MEDIA = 10
LONG_CODE_PER_SECOND = 1.0  # limit of a long code; Twilio would queue the rest for hours

DATA: Mapping[str, Field] = {
    "media": Field("array", "Up to 10 URLs of pictures or files", ["https://example.com/map.png"]),
    "content_sid": Field("string", "A Twilio content template", "HX0123456789abcdef0123456789abcdef"),
    "content_variables": Field("object", "The template's variables", {"1": "Ada"}),
}

_SID = {"AC": "account", "MG": "messaging service", "SK": "API key", "HX": "content template"}
_SENDER = matching(
    re.compile(r"\+[1-9][0-9]{6,14}|[0-9]{3,8}|(?=.*[A-Za-z])[A-Za-z0-9 +&_-]{1,11}", re.ASCII),
    "must be a number like +15550001111, a short code, or a name of 11 letters",
)
_FORM = {"content-type": "application/x-www-form-urlencoded"}
_FAILED = frozenset({"failed", "undelivered", "canceled"})


CODES: Mapping[int, ProviderError] = {
    **dict.fromkeys((20003, 30002, 30034, 63001, 63020, 63022), ACCOUNT_ERROR),  # credentials, account, registration
    **dict.fromkeys(  # missing, malformed or too long; templates and media of WhatsApp
        (20404, 21211, 21604, 21609, 21617, 63021, 63025, 63027, 63028, 63030), INVALID_REQUEST
    ),
    **dict.fromkeys((21606, 21612, 21614, 21635), PERMANENT_ERROR),  # no route to this number, or a landline
    **dict.fromkeys((30004, 30005, 30006, 30007), PERMANENT_ERROR),  # blocked, unknown, a landline, filtered
    **dict.fromkeys(  # WhatsApp: not a user, refused content or policy, blocked, an experiment
        (63003, 63005, 63013, 63014, 63024, 63029, 63032, 63033, 63049), PERMANENT_ERROR
    ),
    **dict.fromkeys((30003, 30008, 63010, 63012, 63019), TEMPORARY_ERROR),  # unreachable, or internal errors
    **dict.fromkeys((20429, 21611, 30001, 30022, 63018), RATE_LIMITED),  # calls, queues, 10DLC, WhatsApp
    **dict.fromkeys((30023, 63038), RATE_LIMITED._replace(after=timedelta(hours=1))),  # daily caps
    21408: PERMANENT_ERROR._replace(hint="enable the recipient's country in Twilio's geo permissions"),
    21608: PERMANENT_ERROR._replace(hint="a trial account sends to verified numbers only"),
    21610: OPTED_OUT,
    21659: ACCOUNT_ERROR._replace(hint="is the sender a number of this account?"),
    21660: ACCOUNT_ERROR._replace(hint="the sender belongs to another account"),
    21661: ACCOUNT_ERROR._replace(hint="the sender cannot send SMS"),
    **dict.fromkeys((21703, 21704, 21705), ACCOUNT_ERROR._replace(hint="check the numbers of the messaging service")),
    63007: ACCOUNT_ERROR._replace(hint="the sender is not a WhatsApp sender of this account"),
    63016: PERMANENT_ERROR._replace(hint="the recipient last wrote over 24 h ago, so only a template is allowed"),
}
"""Codes of responses (2xxxx), of callbacks (3xxxx), and of WhatsApp (63xxx), which may come in both."""


class TwilioProduct(StrEnum):
    """The Twilio product to send with."""

    SMS = "sms"
    WHATSAPP = "whatsapp"


@dataclass(frozen=True, slots=True)
class TwilioSettings(BaseChannelSettings):
    """Settings of one account and sender. An API key replaces the auth token for sending."""

    account_sid: Annotated[str, partial(_sid, "AC")]
    auth_token: Credential | None = field(default=None, repr=False)
    shared_key: Credential | None = field(default=None, repr=False)  # verifies callbacks that it signs
    api_key: Annotated[str, partial(_sid, "SK")] | None = field(default=None, repr=False)
    api_secret: Credential | None = field(default=None, repr=False)
    sender: Annotated[str, _SENDER] | None = None
    messaging_service: Annotated[str, partial(_sid, "MG")] | None = None
    via: TwilioProduct = TwilioProduct.SMS
    status_callback: Annotated[str, _callback] | None = field(default=None, repr=False)
    validity: Annotated[timedelta, _validity] | None = None
    long_text: LongText = LongText.REFUSE
    base_url: BaseUrl = "https://api.twilio.com"


class TwilioChannel(ProviderChannel):
    """Sends through one Twilio account; `now` returns the current instant."""

    kind: ClassVar[str] = "twilio"
    no_lookup = "Twilio cannot search by our id"

    def __init__(self, settings: TwilioSettings, *, now: Callable[[], int]) -> None:
        self.traits = traits_of(
            settings,
            OnUnknown.HOLD,
            "Twilio has no idempotency keys, and a second text costs money",
            per_second=LONG_CODE_PER_SECOND if _is_long_code(settings) else None,
            max_text=MAX_TEXT,
        )
        self._settings = settings
        self._account = f"/2010-04-01/Accounts/{settings.account_sid}"
        user = settings.api_key or settings.account_sid
        password = settings.api_secret if settings.api_key else settings.auth_token
        basic = b64encode(f"{user}:{password}".encode()).decode()
        secrets = (settings.auth_token, settings.api_key, settings.api_secret, basic)
        hide = tuple(secret for secret in secrets if secret)
        self._headers = {"authorization": f"Basic {basic}"}
        self._api = ProviderApi(settings.base_url, deadline=settings.deadline, hide=hide, now=now)

    def requests_of(self, recipient: str, content: Mapping[str, Any], id_: str = "") -> list[ProviderPost]:
        """The forms for this content; raises Invalid for what Twilio would always reject.

        Each part has its own callback id, because its status proves nothing about the whole message.
        """
        if self._settings.via is not TwilioProduct.WHATSAPP or not is_user_id(recipient):
            check_e164(recipient)
        data = provider_fields_of(content, DATA, "Twilio")
        _check_extras(data)
        said = str(content.get("text") or "")
        if not said.strip() and not data.get("media") and not data.get("content_sid"):
            remedy = "give a text, or media or content_sid in data"
            raise Invalid("the message is empty", field="text", remedy=remedy)
        parts = parts_of(said, MAX_TEXT, self._settings.long_text)
        ids = [id_] if len(parts) == 1 else [f"{id_}.{number}" for number in range(1, len(parts) + 1)]
        forms = [
            form_of(recipient, part, data if number == 0 else {}, self._settings, ids[number])
            for number, part in enumerate(parts)
        ]
        return [ProviderPost(f"{self._account}/Messages.json", form, {**_FORM, **self._headers}) for form in forms]

    async def probe(self) -> Outcome:
        """Read the account, or with an API key the list of messages."""
        path = "/Messages.json?PageSize=1" if self._settings.api_key else ".json"
        reply = await self._api.get(self._account + path, headers=self._headers)
        if not isinstance(reply, ProviderReply):
            return reply
        if reply.body is None or not reply.is_success:
            return without_side_effects(self._refused(reply))
        status = reply.body.get("status", "active")
        if status != "active":
            return Reject(Category.PERMANENT, f"the account is {self._api.shown(status)}", whole_channel=True)
        return Done(self._api.shown(reply.body.get("friendly_name")) or self._settings.account_sid)

    def _outcome(self, reply: ProviderReply, recipient: str = "", attempt: int = 1) -> Outcome:
        if not reply.is_success or not reply.is_json:
            return self._refused(reply)
        fields, code = reply.fields, reply.fields.get("error_code")
        if fields.get("status") in _FAILED and type(code) is int:
            reason = reply.words(str(code), self._api.shown(fields.get("error_message")))
            return outcome_of(code, reason) or Reject(Category.PERMANENT, reason)
        return Done(self._api.shown(fields.get("sid")) or None)

    def _refused(self, reply: ProviderReply) -> Outcome:
        code = reply.fields.get("code")
        if type(code) is not int:
            return outcome_by_status(reply, reply.words(), certain=False)
        reason = reply.words(str(code), self._api.shown(reply.fields.get("message")))
        return outcome_of(code, reason, after=reply.wait) or outcome_by_status(reply, reason, certain=True)


def outcome_of(code: int, reason: str, *, after: timedelta | None = None) -> Retry | Reject | None:
    """The outcome of a code in a response or callback; None if it is unknown."""
    fate = CODES.get(code)
    return None if fate is None else fate.outcome(reason, after=after)


def form_of(recipient: str, said: str, data: Mapping[str, Any], settings: TwilioSettings, id_: str = "") -> bytes:
    """One form; `{id}` in the callback URL is replaced by the message id."""
    prefix = "whatsapp:" if settings.via is TwilioProduct.WHATSAPP else ""
    fields = [
        ("To", prefix + recipient),
        ("From", settings.sender and prefix + settings.sender),
        ("MessagingServiceSid", settings.messaging_service),
        ("Body", said),
        *(("MediaUrl", url) for url in data.get("media", ())),
        ("ContentSid", data.get("content_sid")),
        ("ContentVariables", _json(data["content_variables"]) if "content_variables" in data else None),
        ("StatusCallback", settings.status_callback and settings.status_callback.replace("{id}", id_)),
        ("ValidityPeriod", settings.validity and str(int(settings.validity.total_seconds()))),
    ]
    return urlencode([(name, value) for name, value in fields if value], errors="replace").encode()


def _json(value: object) -> str:
    try:
        return orjson.dumps(value).decode()
    except TypeError as error:
        problem = f"content_variables cannot be written as JSON: {error}"
        raise Invalid(problem, field="data.content_variables", remedy="use texts and numbers") from error


def _check_extras(data: Mapping[str, Any]) -> None:
    media = data.get("media", [])
    fine = all(isinstance(url, str) and url.startswith(("https://", "http://")) for url in media)
    if len(media) > MAX_MEDIA or not fine:
        problem = f"media is not a list of up to {MAX_MEDIA} URLs"
        raise Invalid(problem, field="data.media", remedy='for example ["https://example.com/map.png"]')
    if "content_sid" in data and not _is_sid(data["content_sid"], "HX"):
        remedy = "copy it from Twilio: HX and 32 hexadecimal digits"
        raise Invalid("content_sid is not a content template", field="data.content_sid", remedy=remedy)


def _is_long_code(settings: TwilioSettings) -> bool:
    """Whether the sender is one plain number; a messaging service uses several."""
    return settings.via is TwilioProduct.SMS and settings.messaging_service is None and is_e164(settings.sender or "")


def _is_sid(value: object, prefix: str) -> bool:
    return isinstance(value, str) and re.fullmatch(rf"{prefix}[0-9a-fA-F]{{32}}", value) is not None


def _sid(prefix: str, value: object) -> str:
    """Reader of a Twilio SID."""
    if not _is_sid(value, prefix):
        raise ValueError(f"must be {prefix} and 32 hexadecimal digits, the SID of your {_SID[prefix]}")
    return str(value)


def _validity(value: object) -> object:
    found = length(value)
    if not isinstance(found, timedelta) or not 1 <= found.total_seconds() <= 36_000:
        raise ValueError("must be from 1 s to 10 h")
    return found


def _callback(value: object) -> str:
    url = text(value)
    found = re.match(r"https?://([^/?#:]+)", url)
    if found is None or len(url) > 4000 or "_" in found[1]:
        raise ValueError("must be a URL of at most 4000 characters without an underscore in its host")
    return url


def _validate(settings: TwilioSettings) -> None:
    """Check that credentials and a sender are given."""
    if (settings.api_key is None) != (settings.api_secret is None):
        raise ValueError("api_key", "api_key and api_secret belong together", "Give both, or neither")
    if settings.auth_token is None and settings.api_key is None:
        raise ValueError("auth_token", "it is missing", "Give auth_token, or api_key and api_secret")
    if settings.sender is None and settings.messaging_service is None:
        raise ValueError("sender", "the sender is missing", "Give sender or messaging_service")
    if settings.via is TwilioProduct.WHATSAPP and settings.sender is not None and not is_e164(settings.sender):
        raise ValueError("sender", "WhatsApp needs a number", "Write it like +15550001111")


KIND = channel_kind(TwilioSettings, TwilioChannel, _validate)
