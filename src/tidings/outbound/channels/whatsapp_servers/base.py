"""The channel through a WhatsApp session, its settings, and what all kinds of servers share."""

from __future__ import annotations

import base64
import binascii
import mimetypes
import re
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple
from urllib.parse import quote

from ....inputs.fields import Field
from ....model.errors import Invalid
from ....model.message import Message
from ....model.outcome import Done, Offline, Outcome, Reject, Retry
from ....model.task import Category, OnUnknown
from ..base import BaseChannelSettings, NoLookup, traits_of
from ..options import matching, text
from ..phone_number import check_e164
from ..provider_api import BaseUrl, Credential, ProviderApi, ProviderReply, provider_fields_of
from ..session import SessionCheck, SessionStatus, SessionStorage

MAX_TEXT = 65_536
MAX_CODE = 2000  # maximum characters of a scannable code

NO_SUCH_NUMBER = re.compile(
    r"not (a |on |using )?whatsapp|not registered|not exist|no lid|lid .*(missing|not found)"
    r"|invalid wid|wid error|invalid (phone|number|jid)",
    re.IGNORECASE,
)
REPLY_TO = Field("string", "id of the message to reply to", "false_15551234567@c.us_AAAA")
LINK_PREVIEW = Field("boolean", "show link previews", False)
_FILE = "with `url`, or `data` in base64; `mimetype` and `filename` are optional"
FILE_FIELDS: Mapping[str, Field] = {
    "image": Field("object", f"an image {_FILE}", {"url": "https://example.org/map.png"}),
    "file": Field("object", f"a document {_FILE}", {"url": "https://example.org/plan.pdf", "filename": "plan.pdf"}),
}
_CHAT = re.compile(r"[0-9]{5,32}(?:-[0-9]{5,16})?@(?:c\.us|s\.whatsapp\.net|g\.us|lid|newsletter)", re.ASCII)
_SESSION = matching(re.compile(r"[A-Za-z0-9_-]{1,54}", re.ASCII), "must be a name of letters, digits, - and _")
_FIELD = matching(re.compile(r"[A-Za-z][A-Za-z0-9_]{0,31}", re.ASCII), "must be a name of letters, digits and _")
_FILE_PARTS = frozenset({"url", "data", "mimetype", "filename"})


class SessionServer(StrEnum):
    """The kind of server that holds the session."""

    WAHA = "waha"
    GATEWAY = "gateway"
    EVOLUTION = "evolution"


class NumberFormat(StrEnum):
    """How a gateway wants a phone number."""

    E164 = "e164"  # +15551234567
    DIGITS = "digits"  # 15551234567
    CHAT = "chat"  # 15551234567@c.us


@dataclass(frozen=True, slots=True)
class WhatsappSessionSettings(BaseChannelSettings):
    """Settings of one session on one server."""

    server: SessionServer = SessionServer.WAHA
    base_url: BaseUrl = "http://127.0.0.1:3000"
    api_key: Credential | None = field(default=None, repr=False)
    hmac_key: Credential | None = field(default=None, repr=False)
    session: Annotated[str, _SESSION] = "default"
    session_dir: Annotated[Path, lambda value: Path(text(value)).expanduser()] | None = None
    message_ids: bool = False
    check_numbers: bool = False
    phone_field: Annotated[str, _FIELD] = "phone"
    text_field: Annotated[str, _FIELD] = "message"
    number_format: NumberFormat = NumberFormat.E164
    status_timeout: timedelta = timedelta(seconds=2)
    reconnect_wait: timedelta = timedelta(minutes=5)
    in_order: bool = True
    deadline: timedelta = field(default=timedelta(seconds=30), kw_only=True)


class WhatsappSessionChannel(NoLookup):
    """Sends through a session. Requests that send nothing use the short time limit of `_quick`."""

    kind: ClassVar[str] = "whatsapp_session"
    no_lookup = "the session cannot be asked about earlier messages"
    fields: Mapping[str, Field] = {}  # what `data` of a message may hold
    key_header = "x-api-key"

    def __init__(self, settings: WhatsappSessionSettings, *, now: Callable[[], int]) -> None:
        self.traits = traits_of(
            settings,
            OnUnknown.HOLD,
            "the server does not guarantee deduplication by id",
            max_text=MAX_TEXT,
            reconnect_wait=settings.reconnect_wait,
            in_order=settings.in_order,
        )
        self.session_dir = settings.session_dir
        self._settings = settings
        self._session = quote(settings.session, safe="")
        self._headers = {self.key_header: settings.api_key} if settings.api_key else {}
        hide = [settings.api_key] if settings.api_key else []
        self._api = ProviderApi(settings.base_url, deadline=settings.deadline, hide=hide, now=now)
        self._quick = ProviderApi(settings.base_url, deadline=settings.status_timeout, hide=hide, now=now)

    def check(self, recipient: str, content: dict[str, object]) -> None:
        """Raise Invalid unless the recipient is E.164 or a chat id, and text and file are valid."""
        if not _CHAT.fullmatch(recipient):
            check_e164(recipient)
        provider_fields_of(content, self.fields, "this server")
        said, file = str(content.get("text") or ""), file_of(content)
        if not said.strip() and file is None:
            raise Invalid("The message is empty", remedy="Give a text or a file", field="text")
        if len(said) > MAX_TEXT:
            remedy = f"Shorten it to {MAX_TEXT} characters"
            raise Invalid(f"The text has {len(said)} characters", remedy=remedy, field="text")

    @abstractmethod
    async def send(self, message: Message) -> Outcome:
        """Send once."""

    @abstractmethod
    async def status(self) -> SessionCheck:
        """Check the session."""

    async def reconnect(self, *, restart: bool = False) -> None:
        """Start a session that does not run, or restart it, if the server can."""

    async def storage(self) -> SessionStorage | None:
        """Where the server keeps its sessions; None if it does not say."""
        return None

    async def probe(self) -> Outcome:
        """Check the session."""
        found = await self.status()
        if found.link is SessionStatus.CONNECTED:
            return Done(f"the session is connected ({found.why})")
        if found.rejected:
            return Reject(Category.PERMANENT, found.why, whole_channel=True)
        return by_link(found.link, f"the session is {found.link.words}: {found.why}")

    async def close(self) -> None:
        """Close all connections."""
        await self._api.close()
        await self._quick.close()

    async def _read_status(self, path: str) -> ProviderReply | SessionCheck:
        """The server's answer about the session; a check if there is none, or none that can be read."""
        reply = await self._quick.get(path, headers=self._headers)
        if not isinstance(reply, ProviderReply):
            return down("the server did not answer in time")
        if reply.status in (401, 403):
            return down("the server rejects the API key")._replace(rejected=True)
        if reply.status == 404:
            return down("the session does not exist")
        return reply if reply.is_success and reply.body is not None else down(reply.words())

    async def _read_code(self, path: str, name: str) -> str | None:
        """A scannable code in an answer."""
        reply = await self._quick.get(path, headers={**self._headers, "accept": "application/json"})
        found = reply.fields.get(name) if isinstance(reply, ProviderReply) else None
        return found if isinstance(found, str) and 0 < len(found) <= MAX_CODE else None


class FileToSend(NamedTuple):
    """A file of a message; exactly one of `url` and `data` is given."""

    is_image: bool
    mimetype: str
    filename: str | None
    url: str | None
    data: str | None  # base64


def file_of(content: Mapping[str, Any]) -> FileToSend | None:
    """The file in a message's data, if any; raises Invalid."""
    data = content.get("data") or {}
    given = [name for name in FILE_FIELDS if data.get(name) is not None]
    if not given:
        return None
    name, parts = given[0], data[given[0]]
    where = f"data.{name}"
    if len(given) > 1:
        raise Invalid("A message can have one file", field="data.file", remedy="Send them as two messages")
    if unknown := sorted(set(parts) - _FILE_PARTS):
        raise Invalid(f"unknown part {unknown[0]!r}", field=where, remedy=f"Use {', '.join(sorted(_FILE_PARTS))}")
    if not all(isinstance(part, str) and part for part in parts.values()) or ("url" in parts) == ("data" in parts):
        raise Invalid("Give a text for either url or data", field=where, remedy=FILE_FIELDS[name].about)
    url, raw = parts.get("url"), parts.get("data")
    if url is not None and not url.startswith(("https://", "http://")):
        raise Invalid("The URL of the file is not a web address", field=where, remedy="Begin it with https://")
    try:
        base64.b64decode(raw or "", validate=True)
    except (binascii.Error, ValueError) as error:
        raise Invalid(f"data is not base64: {error}", field=where, remedy="Encode the file as base64") from error
    guessed, _ = mimetypes.guess_type(parts.get("filename") or (url or "").partition("?")[0])
    mimetype = parts.get("mimetype") or guessed or ("image/jpeg" if name == "image" else "application/octet-stream")
    return FileToSend(name == "image", mimetype, parts.get("filename"), url, raw)


def by_link(link: SessionStatus, reason: str) -> Outcome:
    """The outcome of a disconnected session: the whole channel waits for a reconnect or a person."""
    if link is SessionStatus.LOGGED_OUT:
        return Offline(f"{reason}: a person is needed", needs_person=True)
    return Offline(reason)


def unanswered(outcome: Outcome) -> Outcome:
    """A server that cannot be reached is offline: a message that was certainly not sent waits."""
    if isinstance(outcome, Retry) and outcome.category is Category.TEMPORARY:
        return Offline(outcome.reason)
    return outcome


def down(why: str) -> SessionCheck:
    """The check of a session that is stopped or unreachable."""
    return SessionCheck(SessionStatus.RECONNECTING, why, is_down=True)


def said_in(reply: ProviderReply, api: ProviderApi, *names: str) -> str:
    """The first text among these fields, fit to show."""
    return next((said for name in names if (said := api.shown(reply.fields.get(name)))), "")


def receipt_of(fields: Mapping[str, Any]) -> str | None:
    """The provider's message id; servers and engines put it in different places."""
    inner = fields.get("_data")
    places = (fields, inner if isinstance(inner, dict) else {})
    for place in places:
        for name in ("id", "messageId", "key"):
            found = place.get(name)
            if isinstance(found, dict):
                found = found.get("_serialized") or found.get("id")
            if isinstance(found, str) and found:
                return found[:200]
    return None
