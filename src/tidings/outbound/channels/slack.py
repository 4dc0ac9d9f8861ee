"""Slack: messages of an app to channels and people, or through an incoming webhook to its channel.

Slack has no idempotency keys, so an uncertain message is held. Its web API answers 200 with the result in the
body; a webhook answers in plain text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Annotated, Any, ClassVar

from ...inputs.fields import Field
from ...model.errors import Invalid
from ...model.outcome import Done, Outcome, Reject, Retry, Skip, Unknown
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

API = "https://slack.com/api"
HOOKS = "https://hooks.slack.com/services"
DEFAULT = "default"  # the recipient for the webhook's own channel
MAX_TEXT = 40_000  # Slack truncates longer texts
PER_CHANNEL = timedelta(seconds=1)

DATA: Mapping[str, Field] = {
    "blocks": Field("array", "Layout blocks; the text is then shown in notifications only", [{"type": "divider"}]),
    "attachments": Field("array", "Legacy attachments", [{"text": "more"}]),
    "thread_ts": Field("string", "Parent message of the thread", "1503435956.000247"),
    "reply_broadcast": Field("boolean", "Also show a thread reply in the channel", True),
    "unfurl_links": Field("boolean", "Show previews of links", False),
    "unfurl_media": Field("boolean", "Show previews of media", False),
    "mrkdwn": Field("boolean", "Interpret mrkdwn in the text", False),
    "username": Field("string", "Display name for this message", "Night watch"),
    "icon_emoji": Field("string", "Icon for this message", ":owl:"),
    "metadata": Field("object", "Metadata for other apps", {"event_type": "order", "event_payload": {"id": 7}}),
}
ONCE = frozenset({"blocks", "attachments", "reply_broadcast", "metadata"})  # with the first part only

_JSON = {"content-type": "application/json; charset=utf-8"}
_TOKEN = matching(re.compile(r"xox[a-z]?[.-][!-~]{1,300}"), "must be a Slack token, such as xoxb-…")
_HOOK = re.compile(r"(?:https?://[!-~]+/services/)?([A-Za-z0-9]{1,40}/[A-Za-z0-9]{1,40}/[A-Za-z0-9]{1,80})")
_PLACE = re.compile(r"[CDGUW][A-Z0-9]{2,20}|#[^\s#@<>&,]{1,80}")

_UNREACHABLE = frozenset({"channel_not_found", "is_archived", "not_in_channel", "user_is_restricted"})
_WRONG = frozenset(
    {"msg_too_long", "no_text", "too_many_attachments", "invalid_blocks", "invalid_arguments"}
    | {"invalid_arg_name", "invalid_array_arg", "invalid_charset", "invalid_form_data", "invalid_post_type"}
    | {"missing_post_type", "as_user_not_supported", "msg_blocks_too_long", "invalid_blocks_format"}
    | {"invalid_metadata_format", "invalid_metadata_schema", "metadata_too_large", "cannot_reply_to_message"}
)
_ACCOUNT = frozenset(
    {"not_authed", "invalid_auth", "account_inactive", "token_revoked", "token_expired", "missing_scope"}
    | {"no_permission", "not_allowed_token_type", "org_login_required", "ekm_access_denied"}
    | {"access_denied", "enterprise_is_restricted", "accesslimited", "team_access_not_granted", "team_not_found"}
    | {"two_factor_setup_required", "deprecated_endpoint", "method_deprecated"}
)
_TOO_FAST = frozenset({"rate_limited", "ratelimited", "message_limit_exceeded"})
_LATER = frozenset({"team_added_to_org", "request_timeout", "service_unavailable"})
_UNCERTAIN = frozenset({"internal_error", "fatal_error"})  # may have partly succeeded


@dataclass(frozen=True, slots=True)
class SlackSettings(BaseChannelSettings):
    """Settings of one app by its token, or of one incoming webhook."""

    token: Annotated[str, _TOKEN] | None = field(default=None, repr=False)
    webhook_token: Annotated[str, _webhook_token] | None = field(default=None, repr=False)
    long_text: LongText = LongText.REFUSE
    base_url: BaseUrl | None = None


class SlackChannel(ProviderChannel):
    """Sends as one app or through one webhook; `now` returns the current instant."""

    kind: ClassVar[str] = "slack"
    no_lookup = "Slack cannot search by our id"

    def __init__(self, settings: SlackSettings, *, now: Callable[[], int]) -> None:
        self.traits = traits_of(
            settings,
            OnUnknown.HOLD,
            "Slack has no idempotency keys: every accepted call is a new message",
            per_recipient=PER_CHANNEL,
            max_text=MAX_TEXT,
        )
        self._settings = settings
        self._hook = settings.webhook_token
        secret = settings.token or self._hook or ""
        hide = (secret, re.split("[/-]", secret, maxsplit=0 if self._hook else 1)[-1])
        base = settings.base_url or (API if self._hook is None else HOOKS)
        self._headers = {**_JSON, **({} if self._hook else {"authorization": f"Bearer {secret}"})}
        self._api = ProviderApi(base, deadline=settings.deadline, hide=hide, now=now)

    def requests_of(self, recipient: str, content: Mapping[str, Any], id_: str = "") -> list[ProviderPost]:
        """The bodies for this content; raises Invalid for what Slack would always reject."""
        place = _place(recipient, self._settings)
        data = provider_fields_of(content, DATA, "Slack")
        said = str(content.get("text") or "")
        if not said.strip() and not data.get("blocks") and not data.get("attachments"):
            remedy = "give a text, or blocks or attachments in data"
            raise Invalid("the message is empty", field="text", remedy=remedy)
        lasting = {name: value for name, value in data.items() if name not in ONCE}
        parts = parts_of(said, MAX_TEXT, self._settings.long_text)
        path = "/chat.postMessage" if self._hook is None else f"/{self._hook}"
        return [
            ProviderPost(path, {**place, "text": part, **(lasting if number else data)}, self._headers)
            for number, part in enumerate(parts)
        ]

    def markup(self, spot: MarkupSpot) -> Markup | None:
        """mrkdwn for the text, for mrkdwn blocks and for texts of legacy attachments."""
        key = spot.place.rpartition(".")[2]
        if spot.place.startswith("data.blocks"):
            marked = key == "text" and spot.inside.get("type") not in ("plain_text", "text")
        elif spot.place.startswith("data.attachments"):
            marked = key in ("text", "pretext", "fallback", "title", "value") and ".actions[" not in spot.place
        else:
            marked = spot.place == "text"
        return Markup.SLACK if marked else None

    async def probe(self) -> Outcome:
        """Call `auth.test` for the account's name; Skip for a webhook."""
        if self._hook is not None:
            return Skip("a Slack webhook cannot be tested without sending")
        reply = await self._api.post("/auth.test", b"", headers=self._headers)
        if not isinstance(reply, ProviderReply):
            return without_side_effects(reply)
        if reply.is_success and reply.fields.get("ok") is True:
            return Done(self._api.shown(f"{reply.fields.get('user')} at {reply.fields.get('team')}"))
        return without_side_effects(self._outcome(reply))

    def _outcome(self, reply: ProviderReply, recipient: str = "", attempt: int = 1) -> Outcome:
        if self._hook is not None:
            return _outcome_of_hook(reply)
        fields = reply.fields
        if reply.is_success and fields.get("ok") is True:
            place, ts = fields.get("channel"), fields.get("ts")
            known = isinstance(place, str) and isinstance(ts, str)
            return Done(self._api.shown(f"{place}/{ts}") if known else None)
        error = fields.get("error")
        if not isinstance(error, str) or not error:
            return outcome_by_status(reply, reply.words(), certain=reply.status == 500)
        needed = fields.get("needed")
        said = f"{error} (needed: {needed})" if isinstance(needed, str) else error
        return outcome_of(error, reply, reply.words(self._api.shown(said)))


def outcome_of(error: str, reply: ProviderReply, reason: str) -> Outcome:
    """The outcome of a web API error."""
    if reply.status == 429 or error in _TOO_FAST:
        return Retry(Category.THROTTLING, reason, after=reply.wait, whole_channel=True)
    if error in _UNCERTAIN:
        return Unknown(reason)
    if error in _LATER:
        return Retry(Category.TEMPORARY, reason, after=reply.wait)
    if error in _ACCOUNT:
        return Reject(Category.PERMANENT, reason, whole_channel=True)
    if error in _WRONG:
        return Reject(Category.VALIDATION, reason)
    if error in _UNREACHABLE or error.startswith("restricted_action") or reply.is_success:
        return Reject(Category.PERMANENT, reason)
    return outcome_by_status(reply, reason, certain=reply.status in (500, 503))


def _outcome_of_hook(reply: ProviderReply) -> Outcome:
    """The outcome of a webhook's response: `ok`, or an error word with a status."""
    if reply.is_success:
        return Done() if reply.shown == "ok" else Unknown(reply.words())
    if reply.status in (404, 410) and reply.shown in ("no_service", "no_service_id", "no_team"):
        return Reject(Category.PERMANENT, reply.words(), whole_channel=True)  # the webhook was deleted
    return outcome_by_status(reply, reply.words(), certain=reply.status == 500)


def _place(recipient: str, settings: SlackSettings) -> Mapping[str, str]:
    if settings.webhook_token is not None:
        if recipient == DEFAULT:
            return {}
        remedy = "use 'default', or a channel with a token instead of a webhook_token"
        raise Invalid("a Slack webhook posts to its own channel only", field="to", remedy=remedy)
    if not _PLACE.fullmatch(recipient):
        raise Invalid(
            f"{recipient[:64]!r} is not a Slack channel or user",
            field="to",
            remedy="use an id such as C0123456789 or U0123456789, or a name such as #general",
        )
    return {"channel": recipient}


def _webhook_token(value: object) -> str:
    """Reader of a webhook URL or its last three parts."""
    found = _HOOK.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError("must be the three parts after /services/ in the webhook's URL")
    return found[1]


def _judge(settings: SlackSettings) -> None:
    if (settings.token is None) == (settings.webhook_token is None):
        problem = "exactly one of token and webhook_token is needed"
        raise ValueError("token", problem, "Give the app's token, or the webhook's")


KIND = channel_kind(SlackSettings, SlackChannel, _judge)
