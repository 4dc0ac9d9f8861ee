"""Mail messages (RFC 5322, MIME). Pure; only the date differs between two attempts.

Addresses are parsed by a strict grammar and rebuilt from their parts, so no user text reaches a header or
command unchanged.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from email.errors import MessageError
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from itertools import islice
from typing import Any, NamedTuple

from ..model.errors import Invalid, TooLarge

MOST_RECIPIENTS = 100  # every server must accept this many
MOST_ATTACHMENTS = 20
LONGEST_ADDRESS = 254
LONGEST_LOCAL = 64
LONGEST_NAME = 200  # characters before an address
LONGEST_LINE = 2000  # characters of a subject or another header

# 7bit: every server accepts it, whatever it offers in EHLO. Our own encodings stay as they are.
_POLICY = SMTP.clone(cte_type="7bit", refold_source="none")
_WORD = 39  # bytes per encoded word, so that its line has at most 76 characters
_LOCAL = re.compile(r"[\w!#$%&'*+/=?^`{|}~-]+(?:\.[\w!#$%&'*+/=?^`{|}~-]+)*", re.ASCII)
_LABEL = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?", re.ASCII)
_NAMED = re.compile(r'(?:"([^"\\]*)"|([^"<>@,;:]*))\s*<([^<>\s]+)>')
_TYPE = re.compile(r"([a-z0-9][a-z0-9.+-]{0,63})/([a-z0-9][a-z0-9.+-]{0,63})", re.ASCII)
_HEADER = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,75}", re.ASCII)
_FREE_HEADERS = frozenset(
    {
        "auto-submitted",
        "in-reply-to",
        "list-id",
        "list-unsubscribe",
        "list-unsubscribe-post",
        "precedence",
        "references",
    }
)

FIELDS: Mapping[str, str] = {
    "html": "HTML body; with `text`, both are sent and the mail program chooses",
    "cc": "visible copy recipients: an address or a list of addresses",
    "bcc": "hidden copy recipients: an address or a list of addresses",
    "reply_to": "address for replies",
    "from": "another sender, if the channel has `allow_from`",
    "headers": "additional headers: names starting with X-, and a few known ones",
    "attachments": "a list of objects with `name`, `content` (base64) and optionally `type`",
}


class Mailbox(NamedTuple):
    """One address with its display name."""

    name: str
    local: str
    domain: str

    @property
    def address(self) -> str:
        """The address as in the envelope."""
        return f"{self.local}@{self.domain}"


class Attachment(NamedTuple):
    """An attached file."""

    name: str
    maintype: str
    subtype: str
    content: bytes


class MailMessage(NamedTuple):
    """A validated mail without id and date."""

    sender: Mailbox
    to: Sequence[Mailbox]
    subject: str
    text: str
    html: str = ""
    cc: Sequence[Mailbox] = ()
    bcc: Sequence[Mailbox] = ()
    reply_to: Mailbox | None = None
    headers: Sequence[tuple[str, str]] = ()
    attachments: Sequence[Attachment] = ()

    @property
    def recipients(self) -> Sequence[str]:
        """All recipients, without duplicates."""
        return list(dict.fromkeys(one.address for one in (*self.to, *self.cc, *self.bcc)))


def parse_mail(
    recipient: str, content: Mapping[str, Any], *, sender: Mailbox, subject: str, allow_from: bool
) -> MailMessage:
    """Parse the mail of a message. Raises Invalid for anything that could never be sent."""
    data = content.get("data") or {}
    for name in data:
        if name not in FIELDS:
            remedy = f"Use one of: {', '.join(FIELDS)}"
            raise Invalid(f"Unknown mail field {name!r}", remedy=remedy, field=f"data.{name}")
    if "from" in data and not allow_from:
        remedy = "Leave it out, or set allow_from = true on the channel"
        raise Invalid("This channel does not allow another sender", remedy=remedy, field="data.from")
    mail_message = MailMessage(
        sender=_one(data["from"], "data.from") if "from" in data else sender,
        to=parse_mailboxes(recipient, "to"),
        subject=_line(content.get("subject") or subject, "subject"),
        text=str(content.get("text") or ""),
        html=_html(data.get("html")),
        cc=_several(data.get("cc"), "data.cc"),
        bcc=_several(data.get("bcc"), "data.bcc"),
        reply_to=_one(data["reply_to"], "data.reply_to") if data.get("reply_to") else None,
        headers=_headers(data.get("headers")),
        attachments=_attachments(data.get("attachments")),
    )
    if len(mail_message.recipients) > MOST_RECIPIENTS:
        raise _too_many("to")
    return mail_message


def compose_mail(mail_message: MailMessage, *, id_: str, date: datetime) -> bytes:
    """Return the bytes with CRLF. Message-ID and boundaries derive from the id, so a retry has the same."""
    mail = EmailMessage(_POLICY)
    _set_addresses(mail, "From", [mail_message.sender])
    _set_addresses(mail, "To", mail_message.to)
    if mail_message.cc:
        _set_addresses(mail, "Cc", mail_message.cc)
    if mail_message.reply_to:
        _set_addresses(mail, "Reply-To", [mail_message.reply_to])
    _set_text(mail, "Subject", mail_message.subject)
    mail["Date"] = date
    mail["Message-ID"] = f"<{id_}@{mail_message.sender.domain}>"
    for name, value in mail_message.headers:
        _set_text(mail, name, value)
    _fill(mail, mail_message)
    parts = [part for part in mail.walk() if part.is_multipart()]
    for number, part in enumerate(parts):
        part.set_boundary(f"=_{id_}_{number}")  # "=_" never occurs in an encoded part
    return mail.as_bytes()


def _set_text(mail: EmailMessage, header: str, value: str) -> None:
    """Set a text header."""
    if value.isascii():
        mail[header] = value
    else:
        mail.set_raw(header, _encoded(value))


def _set_addresses(mail: EmailMessage, header: str, boxes: Sequence[Mailbox]) -> None:
    """Set an address header, one per line; the library would take half a millisecond per letter."""
    mail.set_raw(header, ",\r\n ".join(map(_shown, boxes)))


def _shown(box: Mailbox) -> str:
    if box.name.isascii():
        return str(Address(box.name, box.local, box.domain))
    return f"{_encoded(box.name)}\r\n <{box.address}>"


def _encoded(text: str) -> str:
    """Return encoded words (RFC 2047), one per line, none of which splits a character."""
    words, chunk = [], b""
    for mail_message in text:
        found = mail_message.encode(errors="replace")
        if len(chunk) + len(found) > _WORD:
            words.append(chunk)
            chunk = b""
        chunk += found
    return "\r\n ".join(f"=?utf-8?b?{b64encode(word).decode()}?=" for word in (*words, chunk))


def _fill(mail: EmailMessage, mail_message: MailMessage) -> None:
    if mail_message.html and not mail_message.text:
        mail.set_content(mail_message.html, subtype="html")
    else:
        mail.set_content(mail_message.text)
        if mail_message.html:
            mail.add_alternative(mail_message.html, subtype="html")
    for file in mail_message.attachments:
        mail.add_attachment(file.content, maintype=file.maintype, subtype=file.subtype, filename=file.name)


def parse_mailboxes(text: str, field: str) -> Sequence[Mailbox]:
    """Parse a comma-separated list of addresses. Raises Invalid."""
    found = [_mailbox(part, field) for part in islice(_parts(text), MOST_RECIPIENTS + 1)]
    if len(found) > MOST_RECIPIENTS:
        raise _too_many(field)
    if not found:
        raise Invalid("An address is missing", remedy="Use one such as ada@example.org", field=field)
    return found


def _too_many(field: str) -> TooLarge:
    remedy = "Send it as several messages, or as a broadcast"
    return TooLarge(f"A mail can have at most {MOST_RECIPIENTS} recipients", remedy=remedy, field=field)


def _parts(text: str) -> Iterable[str]:
    """Split at commas outside quotes."""
    part, quoted = "", False
    for mail_message in text:
        if mail_message == "," and not quoted:
            yield part
            part = ""
        else:
            quoted ^= mail_message == '"'
            part += mail_message
    if part.strip():
        yield part


def _mailbox(text: str, field: str) -> Mailbox:
    text = text.strip()
    if not text.isprintable():
        raise Invalid("An address contains a control character", remedy="Remove it", field=field)
    if len(text) > LONGEST_NAME + LONGEST_ADDRESS:
        remedy = f"Use a name of at most {LONGEST_NAME} characters"
        raise Invalid(f"{text[:80]!r} is too long for an address", remedy=remedy, field=field)
    named = _NAMED.fullmatch(text)
    name = (named[1] or named[2] or "").strip() if named else ""
    local, at, domain = (named[3] if named else text).rpartition("@")
    domain = _domain(domain)
    good = at and len(local) <= LONGEST_LOCAL and _LOCAL.fullmatch(local) and domain
    if not good or len(local) + 1 + len(domain) > LONGEST_ADDRESS:
        remedy = "Write it as ada@example.org or Ada Lovelace <ada@example.org>; several with commas"
        raise Invalid(f"{text[:80]!r} is not a mail address", remedy=remedy, field=field)
    return Mailbox(name, local, domain)


def _domain(text: str) -> str:
    """Return a domain in ASCII; empty if it is invalid."""
    try:
        found = text.encode("idna").decode().lower()
    except UnicodeError:
        return ""
    labels = found.split(".")
    return found if found and all(_LABEL.fullmatch(label) for label in labels) else ""


def _one(value: object, field: str) -> Mailbox:
    found = _several(value, field)
    if len(found) != 1:
        raise Invalid("Exactly one address is required", remedy="Use one such as ada@example.org", field=field)
    return found[0]


def _several(value: object, field: str) -> Sequence[Mailbox]:
    given = [value] if isinstance(value, str) else value or []
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
        raise Invalid("This is not a list of addresses", remedy='Write ["ada@example.org"]', field=field)
    if len(given) > MOST_RECIPIENTS:
        raise _too_many(field)
    return [found for one in given for found in parse_mailboxes(one, field)]


def _line(value: object, field: str) -> str:
    if not isinstance(value, str) or any(char < " " or char == "\x7f" for char in value):
        remedy = "Use a single line of text"
        raise Invalid(f"{field} contains a line break or a control character", remedy=remedy, field=field)
    if len(value) > LONGEST_LINE:
        remedy = f"Use at most {LONGEST_LINE:,} characters"
        raise TooLarge(f"{field} has {len(value):,} characters", remedy=remedy, field=field)
    return value


def _html(value: object) -> str:
    if not isinstance(value, str | None):
        raise Invalid("html is not a string", remedy="Use a string", field="data.html")
    return value or ""


def _headers(value: object) -> Sequence[tuple[str, str]]:
    if not isinstance(value, dict | None):
        raise Invalid("headers is not an object", remedy='Write {"X-Name": "value"}', field="data.headers")
    for name in value or ():
        free = name.lower() in _FREE_HEADERS or name.lower().startswith("x-")
        if not free or not _HEADER.fullmatch(name):
            remedy = f"Use a name that starts with X-, or {', '.join(sorted(_FREE_HEADERS))}"
            raise Invalid(f"The header {name[:80]!r} cannot be set", remedy=remedy, field="data.headers")
    return [(name, _line(text, f"data.headers.{name}")) for name, text in (value or {}).items()]


def _attachments(value: object) -> Sequence[Attachment]:
    if not isinstance(value, list | None):
        raise Invalid("attachments is not a list", remedy="Use a list of objects", field="data.attachments")
    if len(value or ()) > MOST_ATTACHMENTS:
        remedy = "Combine them in an archive"
        raise TooLarge(
            f"A mail can have at most {MOST_ATTACHMENTS} attachments", remedy=remedy, field="data.attachments"
        )
    return [_attachment(one, f"data.attachments[{number}]") for number, one in enumerate(value or ())]


def _attachment(value: object, field: str) -> Attachment:
    known = {"name", "type", "content"}
    if not isinstance(value, dict) or not {"name", "content"} <= set(value) <= known:
        remedy = "Use name, content (the file itself in base64) and optionally type; paths are not read"
        raise Invalid("This is not an attachment", remedy=remedy, field=field)
    name = _line(value["name"], f"{field}.name").strip()
    if not name or len(name) > 200 or "/" in name or "\\" in name:
        remedy = "Use a name such as ticket.pdf, without folders"
        raise Invalid("The file name is invalid", remedy=remedy, field=f"{field}.name")
    kind = _TYPE.fullmatch(str(value.get("type") or "application/octet-stream").lower())
    if kind is None or kind[1] in ("multipart", "message"):
        remedy = "Use a type such as application/pdf, or none"
        raise Invalid("The file type is invalid", remedy=remedy, field=f"{field}.type")
    try:
        content = b64decode(str(value["content"]), validate=True)
    except (binascii.Error, ValueError) as error:
        remedy = "Use the file itself in base64; paths and URLs are not read"
        raise Invalid("The file is not base64", remedy=remedy, field=f"{field}.content") from error
    return Attachment(name, kind[1], kind[2], content)


CANNOT_BE_WRITTEN = (MessageError, UnicodeError, ValueError, LookupError)
"""Errors of the standard library for a mail that it cannot serialize."""
