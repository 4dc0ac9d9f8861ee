"""Mail: a message as it travels (RFC 5322, MIME). Pure; only the date differs between two tries.

Addresses are taken apart by a strict grammar of our own and put together again from their parts, so no text
of a user reaches a header or a command as it came.
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

MOST_RECIPIENTS = 100  # what every server must take in one go
MOST_ATTACHMENTS = 20
LONGEST_ADDRESS = 254
LONGEST_LOCAL = 64
LONGEST_NAME = 200  # characters before an address
LONGEST_LINE = 2000  # characters of a subject or another header

# 7bit: every server takes it, whatever it says to EHLO. What we have encoded ourselves stays as it is.
_POLICY = SMTP.clone(cte_type="7bit", refold_source="none")
_WORD = 39  # bytes that one encoded word holds, so that a line of it has 76 characters at the most
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
    "html": "the same words as a page; with `text` both are sent, and the reader's program chooses",
    "cc": "further recipients, in sight: an address or a list of them",
    "bcc": "further recipients, out of sight",
    "reply_to": "where an answer goes",
    "from": "another sender, where the channel has `allow_from`",
    "headers": "further headers: those that begin with X-, and a few that are known",
    "attachments": "a list of objects with `name`, `content` (base64) and, if wanted, `type`",
}


class Mailbox(NamedTuple):
    """One address, and the name before it."""

    name: str
    local: str
    domain: str

    @property
    def address(self) -> str:
        """As the envelope has it."""
        return f"{self.local}@{self.domain}"


class Attachment(NamedTuple):
    """A file, whole."""

    name: str
    maintype: str
    subtype: str
    content: bytes


class MailMessage(NamedTuple):
    """A mail, checked, before it has an id and a date."""

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
        """Everybody who gets it, once."""
        return list(dict.fromkeys(one.address for one in (*self.to, *self.cc, *self.bcc)))


def parse_mail(
    recipient: str, content: Mapping[str, Any], *, sender: Mailbox, subject: str, allow_from: bool
) -> MailMessage:
    """The mail that a message asks for; raises Invalid for what could never be sent."""
    data = content.get("data") or {}
    for name in data:
        if name not in FIELDS:
            remedy = f"A mail knows {', '.join(FIELDS)}"
            raise Invalid(f"A mail has no field {name!r}", remedy=remedy, field=f"data.{name}")
    if "from" in data and not allow_from:
        remedy = "Leave it out, or set allow_from = true on the channel"
        raise Invalid("This channel has one sender for all", remedy=remedy, field="data.from")
    letter = MailMessage(
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
    if len(letter.recipients) > MOST_RECIPIENTS:
        raise _too_many("to")
    return letter


def compose_mail(letter: MailMessage, *, id_: str, date: datetime) -> bytes:
    """The bytes, in lines of CRLF. Message-ID and boundaries come from the id, so a retry has the same."""
    mail = EmailMessage(_POLICY)
    _name(mail, "From", [letter.sender])
    _name(mail, "To", letter.to)
    if letter.cc:
        _name(mail, "Cc", letter.cc)
    if letter.reply_to:
        _name(mail, "Reply-To", [letter.reply_to])
    _say(mail, "Subject", letter.subject)
    mail["Date"] = date
    mail["Message-ID"] = f"<{id_}@{letter.sender.domain}>"
    for name, value in letter.headers:
        _say(mail, name, value)
    _fill(mail, letter)
    parts = [part for part in mail.walk() if part.is_multipart()]
    for number, part in enumerate(parts):
        part.set_boundary(f"=_{id_}_{number}")  # "=_" stands in no encoded part
    return mail.as_bytes()


def _say(mail: EmailMessage, header: str, value: str) -> None:
    """A header of words."""
    if value.isascii():
        mail[header] = value
    else:
        mail.set_raw(header, _encoded(value))


def _name(mail: EmailMessage, header: str, boxes: Sequence[Mailbox]) -> None:
    """A header of addresses, one a line; the library takes half a millisecond for each letter of a name."""
    mail.set_raw(header, ",\r\n ".join(map(_shown, boxes)))


def _shown(box: Mailbox) -> str:
    if box.name.isascii():
        return str(Address(box.name, box.local, box.domain))
    return f"{_encoded(box.name)}\r\n <{box.address}>"


def _encoded(text: str) -> str:
    """Encoded words (RFC 2047), one a line, none of which breaks within a character."""
    words, chunk = [], b""
    for letter in text:
        found = letter.encode(errors="replace")
        if len(chunk) + len(found) > _WORD:
            words.append(chunk)
            chunk = b""
        chunk += found
    return "\r\n ".join(f"=?utf-8?b?{b64encode(word).decode()}?=" for word in (*words, chunk))


def _fill(mail: EmailMessage, letter: MailMessage) -> None:
    if letter.html and not letter.text:
        mail.set_content(letter.html, subtype="html")
    else:
        mail.set_content(letter.text)
        if letter.html:
            mail.add_alternative(letter.html, subtype="html")
    for file in letter.attachments:
        mail.add_attachment(file.content, maintype=file.maintype, subtype=file.subtype, filename=file.name)


def parse_mailboxes(text: str, field: str) -> Sequence[Mailbox]:
    """The addresses of a line, separated by commas; raises Invalid."""
    found = [_mailbox(part, field) for part in islice(_parts(text), MOST_RECIPIENTS + 1)]
    if len(found) > MOST_RECIPIENTS:
        raise _too_many(field)
    if not found:
        raise Invalid("There is no address", remedy="Give one such as ada@example.org", field=field)
    return found


def _too_many(field: str) -> TooLarge:
    remedy = "Send it as several messages, or as a broadcast"
    return TooLarge(f"A mail goes to at most {MOST_RECIPIENTS} addresses", remedy=remedy, field=field)


def _parts(text: str) -> Iterable[str]:
    """Cut at commas that do not stand in quotes."""
    part, quoted = "", False
    for letter in text:
        if letter == "," and not quoted:
            yield part
            part = ""
        else:
            quoted ^= letter == '"'
            part += letter
    if part.strip():
        yield part


def _mailbox(text: str, field: str) -> Mailbox:
    text = text.strip()
    if not text.isprintable():
        raise Invalid("An address has a control character", remedy="Remove it", field=field)
    if len(text) > LONGEST_NAME + LONGEST_ADDRESS:
        remedy = f"Give a name of at most {LONGEST_NAME} characters"
        raise Invalid(f"{text[:80]!r} is too long for an address", remedy=remedy, field=field)
    named = _NAMED.fullmatch(text)
    name = (named[1] or named[2] or "").strip() if named else ""
    local, at, domain = (named[3] if named else text).rpartition("@")
    domain = _domain(domain)
    good = at and len(local) <= LONGEST_LOCAL and _LOCAL.fullmatch(local) and domain
    if not good or len(local) + 1 + len(domain) > LONGEST_ADDRESS:
        remedy = "Write it as ada@example.org or Ada Lovelace <ada@example.org>; several with commas"
        raise Invalid(f"{text[:80]!r} is no mail address", remedy=remedy, field=field)
    return Mailbox(name, local, domain)


def _domain(text: str) -> str:
    """A domain in ASCII; empty if it is none."""
    try:
        found = text.encode("idna").decode().lower()
    except UnicodeError:
        return ""
    labels = found.split(".")
    return found if found and all(_LABEL.fullmatch(label) for label in labels) else ""


def _one(value: object, field: str) -> Mailbox:
    found = _several(value, field)
    if len(found) != 1:
        raise Invalid("There must be one address", remedy="Give one such as ada@example.org", field=field)
    return found[0]


def _several(value: object, field: str) -> Sequence[Mailbox]:
    given = [value] if isinstance(value, str) else value or []
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
        raise Invalid("This is no list of addresses", remedy='Write ["ada@example.org"]', field=field)
    if len(given) > MOST_RECIPIENTS:
        raise _too_many(field)
    return [found for one in given for found in parse_mailboxes(one, field)]


def _line(value: object, field: str) -> str:
    if not isinstance(value, str) or any(letter < " " or letter == "\x7f" for letter in value):
        remedy = "Give one line of text"
        raise Invalid(f"{field} has a line break or a control character", remedy=remedy, field=field)
    if len(value) > LONGEST_LINE:
        remedy = f"Use at most {LONGEST_LINE:,} characters"
        raise TooLarge(f"{field} has {len(value):,} characters", remedy=remedy, field=field)
    return value


def _html(value: object) -> str:
    if not isinstance(value, str | None):
        raise Invalid("html is no text", remedy="Give the page as text", field="data.html")
    return value or ""


def _headers(value: object) -> Sequence[tuple[str, str]]:
    if not isinstance(value, dict | None):
        raise Invalid("headers is no object", remedy='Write {"X-Name": "value"}', field="data.headers")
    for name in value or ():
        free = name.lower() in _FREE_HEADERS or name.lower().startswith("x-")
        if not free or not _HEADER.fullmatch(name):
            remedy = f"Use one that begins with X-, or {', '.join(sorted(_FREE_HEADERS))}"
            raise Invalid(f"The header {name[:80]!r} cannot be set", remedy=remedy, field="data.headers")
    return [(name, _line(text, f"data.headers.{name}")) for name, text in (value or {}).items()]


def _attachments(value: object) -> Sequence[Attachment]:
    if not isinstance(value, list | None):
        raise Invalid("attachments is no list", remedy="Give a list of objects", field="data.attachments")
    if len(value or ()) > MOST_ATTACHMENTS:
        remedy = "Put them into an archive"
        raise TooLarge(
            f"A mail has at most {MOST_ATTACHMENTS} files", remedy=remedy, field="data.attachments"
        )
    return [_attachment(one, f"data.attachments[{number}]") for number, one in enumerate(value or ())]


def _attachment(value: object, field: str) -> Attachment:
    known = {"name", "type", "content"}
    if not isinstance(value, dict) or not {"name", "content"} <= set(value) <= known:
        remedy = "Give name, content (the file itself in base64) and, if wanted, type; a path is not read"
        raise Invalid("This is no attachment", remedy=remedy, field=field)
    name = _line(value["name"], f"{field}.name").strip()
    if not name or len(name) > 200 or "/" in name or "\\" in name:
        remedy = "Give a name such as ticket.pdf, without folders"
        raise Invalid("The file has no name that can be used", remedy=remedy, field=f"{field}.name")
    kind = _TYPE.fullmatch(str(value.get("type") or "application/octet-stream").lower())
    if kind is None or kind[1] in ("multipart", "message"):
        remedy = "Give a type such as application/pdf, or none"
        raise Invalid("This type of file cannot be attached", remedy=remedy, field=f"{field}.type")
    try:
        content = b64decode(str(value["content"]), validate=True)
    except (binascii.Error, ValueError) as error:
        remedy = "Give the file itself in base64; a path or a URL is not read"
        raise Invalid("The file is not base64", remedy=remedy, field=f"{field}.content") from error
    return Attachment(name, kind[1], kind[2], content)


CANNOT_BE_WRITTEN = (MessageError, UnicodeError, ValueError, LookupError)
"""What the standard library raises for a mail that it cannot write down."""
