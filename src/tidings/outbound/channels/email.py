"""Email over SMTP: one mail per message, to one or several addresses, with attachments.

Message-ID is derived from the message id and the same on every attempt, but few servers deduplicate by it, so
a mail whose final answer was lost is held. A failure before the final dot is certain (`wire.smtp_client`).
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Annotated, ClassVar, cast

from ...model.errors import CallerError, Invalid, TooLarge
from ...model.message import Message
from ...model.outcome import Done, Outcome, Reject, Retry, Unknown
from ...model.task import Category, OnUnknown
from ...model.time import moment
from ...wire.http_client import MaybeSent, NotSent
from ...wire.mail import CANNOT_BE_WRITTEN, Mailbox, MailMessage, compose_mail, parse_mail, parse_mailboxes
from ...wire.origin_checks import is_loopback
from ...wire.smtp_client import (
    SmtpAccepted,
    SmtpClient,
    SmtpEnvelope,
    SmtpRefused,
    SmtpReply,
    SmtpSecurity,
    SmtpServerConfig,
    SmtpStage,
    SmtpUnsupported,
)
from ..markup import Markup, MarkupSpot
from .base import BaseChannelSettings, NoLookup, traits_of
from .options import channel_kind, number, size, text
from .provider_api import ACCOUNT_ERROR, INVALID_REQUEST, PERMANENT_ERROR, TEMPORARY_ERROR, ProviderError, masked

PORTS = {SmtpSecurity.STARTTLS: 587, SmtpSecurity.TLS: 465, SmtpSecurity.NONE: 25}


@dataclass(frozen=True, slots=True)
class EmailSettings(BaseChannelSettings):
    """Settings of one mail server and sender."""

    host: Annotated[str, _host]
    sender: str
    port: Annotated[int, _whole(65_535, "must be a port, such as 587")] | None = None  # None: by security
    security: SmtpSecurity = SmtpSecurity.STARTTLS
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    verify: bool = True
    ca_file: str | None = None
    helo_name: Annotated[str, _name] | None = None
    connections: Annotated[int, _whole(100, "must be a number from 1 to 100")] = 5
    subject: str = ""
    allow_from: bool = False
    partial: bool = False
    max_size: Annotated[int, size] = 10 << 20
    deadline: timedelta = field(default=timedelta(seconds=60), kw_only=True)

    @property
    def server(self) -> SmtpServerConfig:
        """The configuration of the SMTP client."""
        port = PORTS[self.security] if self.port is None else self.port
        return SmtpServerConfig(
            host=self.host,
            port=port,
            security=self.security,
            username=self.username,
            password=self.password,
            verify=self.verify,
            ca_file=self.ca_file,
            hello=self.helo_name,
            connections=self.connections,
        )


class EmailChannel(NoLookup):
    """Sends mail; `now` returns the current instant."""

    kind: ClassVar[str] = "email"
    no_lookup = "a mail server cannot be asked about earlier mail"

    def __init__(self, settings: EmailSettings, *, now: Callable[[], int]) -> None:
        self.traits = traits_of(settings, OnUnknown.HOLD, "few mail servers deduplicate by Message-ID")
        self._settings = settings
        self._sender = parse_mailboxes(settings.sender, "sender")[0]
        self._now = now
        self._smtp = SmtpClient(settings.server)

    def check(self, recipient: str, content: dict[str, object]) -> None:
        """Raise Invalid for addresses, fields and attachments that could never be sent."""
        letter = self._letter(recipient, content)
        weight = sum(len(file.content) for file in letter.attachments) * 4 // 3
        weight += len(letter.text.encode(errors="replace")) + len(letter.html.encode(errors="replace"))
        if weight > self._settings.max_size:
            remedy = "Send less, or a link; the limit is the option max_size"
            raise TooLarge(f"The mail has over {self._settings.max_size} bytes", remedy=remedy, field="data")

    def markup(self, spot: MarkupSpot) -> Markup | None:
        """HTML for the HTML part; everything else is plain text."""
        return Markup.HTML if spot.place == "data.html" else None

    async def send(self, message: Message) -> Outcome:
        """Send the mail to the server once."""
        try:
            letter = self._letter(message.recipient, message.content)
            body = compose_mail(letter, id_=message.id, date=moment(self._now()).replace(microsecond=0))
        except CallerError as error:
            return Reject(Category.VALIDATION, error.problem)
        except CANNOT_BE_WRITTEN as error:
            return Reject(Category.VALIDATION, f"the mail cannot be composed: {type(error).__name__}")
        if len(body) > self._settings.max_size:
            return Reject(Category.VALIDATION, f"the mail has {len(body)} bytes, over max_size")
        envelope = SmtpEnvelope(letter.sender.address, letter.recipients, body)
        try:
            taken = await self._smtp.send(
                envelope, deadline=self._settings.deadline, stops=partial(stops, spares=self._settings.partial)
            )
        except SmtpRefused as error:
            return outcome_of(error, own_sender=letter.sender == self._sender, hide=self._hide)
        except SmtpUnsupported as error:
            return Reject(Category.PERMANENT, f"nothing can be sent: {error}", whole_channel=True)
        except NotSent as error:
            return Retry(Category.TEMPORARY, f"not sent: {error}")
        except MaybeSent as error:
            return Unknown(f"no answer after the whole mail was sent: {error}")
        return Done(receipt=_receipt(taken, self._hide))

    async def probe(self) -> Outcome:
        """Connect and log in without sending."""
        try:
            name = await self._smtp.greet(deadline=self._settings.deadline)
        except SmtpRefused as error:
            return outcome_of(error, own_sender=True, hide=self._hide)
        except SmtpUnsupported as error:
            return Reject(Category.PERMANENT, f"nothing can be sent: {error}", whole_channel=True)
        except NotSent as error:
            return Retry(Category.TEMPORARY, f"not connected: {error}")
        user = self._settings.username
        return Done(f"{_said(SmtpReply(250, name), self._hide)}{f', as {user}' if user else ''}")

    async def close(self) -> None:
        """Close all connections."""
        await self._smtp.close()

    @property
    def _hide(self) -> Sequence[str]:
        return [self._settings.password] if self._settings.password else []

    def _letter(self, recipient: str, content: object) -> MailMessage:
        return parse_mail(
            recipient,
            cast(dict[str, object], content),
            sender=self._sender,
            subject=self._settings.subject,
            allow_from=self._settings.allow_from,
        )


_THROTTLED = ProviderError(Category.THROTTLING, retry=True)
_TOO_LARGE = ProviderError(Category.VALIDATION)  # of this mail only
_LOGIN_CODES = frozenset({530, 534, 535, 538})
_WRONG_CODES = frozenset({500, 501, 502, 503, 504, 553, 555})
_TOO_BIG = frozenset({(2, 3), (3, 4)})  # subject and detail of the enhanced code
_BAD_LOGIN = frozenset({(7, 8), (7, 9)})
_FULL = (2, 2)
_TOO_MANY = (5, 3)


def verdict(reply: SmtpReply, stage: SmtpStage) -> ProviderError:
    """The meaning of a 4xx or 5xx reply: by login codes, enhanced code, code, first digit."""
    code, enhanced = reply.code, reply.enhanced
    if code in _LOGIN_CODES:
        return ACCOUNT_ERROR
    if code == 454:
        return TEMPORARY_ERROR
    if enhanced is not None:
        found = _by_enhanced(code, enhanced[0], enhanced[1:], stage)
        if found is not None:
            return found
    if code == 552 and stage is SmtpStage.RECIPIENT and "recipients" in reply.text.lower():
        return TEMPORARY_ERROR  # an old server's 452
    if code == 552 and stage is SmtpStage.SENDER:
        return _TOO_LARGE  # by the SIZE that we announce with the sender (RFC 1870)
    if code in _WRONG_CODES:
        return INVALID_REQUEST
    return PERMANENT_ERROR if 500 <= code < 600 else TEMPORARY_ERROR


def _by_enhanced(code: int, kind: int, detail: tuple[int, int], stage: SmtpStage) -> ProviderError | None:
    """The meaning of an enhanced code; None if the plain code decides."""
    if detail == _FULL or (detail == _TOO_MANY and stage is SmtpStage.RECIPIENT):
        return TEMPORARY_ERROR
    if kind == 4 or code < 500:
        return _THROTTLED if detail[0] == 7 else TEMPORARY_ERROR
    if detail in _BAD_LOGIN:
        return ACCOUNT_ERROR
    if detail in _TOO_BIG:
        return _TOO_LARGE
    if detail[0] in (5, 6):
        return INVALID_REQUEST
    return PERMANENT_ERROR if detail[0] in (1, 2, 4, 7) else None


def outcome_of(refused: SmtpRefused, *, own_sender: bool, hide: Sequence[str] = ()) -> Outcome:
    """The outcome of a refusal; before the first recipient it concerns the whole channel."""
    reason = f"the mail server refused {refused.stage}"
    if refused.recipient is not None:
        reason += f" {refused.recipient}"
    reason = f"{reason}: {_said(refused.reply, hide)}"
    about_us = refused.stage in (SmtpStage.HELLO, SmtpStage.LOGIN) or (refused.stage is SmtpStage.SENDER and own_sender)
    found = verdict(refused.reply, refused.stage)
    if about_us and found is not TEMPORARY_ERROR and found is not _TOO_LARGE:
        found = found._replace(account=True)
    return found.outcome(reason)


def stops(refused: Sequence[SmtpRefused], accepted: int, *, spares: bool) -> SmtpRefused | None:
    """The refusal that stops the mail for all recipients, or None to continue with the others.

    Nothing has been sent yet, so waiting causes no duplicates: one temporary refusal delays the whole mail.
    With `spares`, permanently refused recipients are left out.
    """
    later = [one for one in refused if isinstance(outcome_of(one, own_sender=False), Retry)]
    never = [one for one in refused if one not in later]
    if never and (not spares or not (accepted or later)):
        return never[0]
    return later[0] if later else None


def _said(reply: SmtpReply, hide: Sequence[str]) -> str:
    """A reply fit to show: short, one line, escaped, without secrets."""
    return f"{reply.code} {masked(' '.join(reply.text.split()), hide)}".strip()


def _receipt(taken: SmtpAccepted, hide: Sequence[str]) -> str:
    said = _said(taken.reply, hide)
    left_out = ", ".join(f"{one.recipient} ({_said(one.reply, hide)})" for one in taken.refused)
    return f"{said}; not to {left_out}" if left_out else said


def _host(value: object) -> str:
    host = text(value).strip()
    if not host.isascii() or not host.isprintable() or any(letter in host for letter in " /:@"):
        raise ValueError("must be the name of a mail server, such as smtp.example.org")
    return host


def _whole(high: int, problem: str) -> Callable[[object], int]:
    """Reader of a number from 1 to `high`."""

    def read(value: object) -> int:
        found = number(value)
        if type(found) is not int or not 0 < found <= high:
            raise ValueError(problem)
        return found

    return read


def _name(value: object) -> str:
    name = text(value)
    if not name.isascii() or not name.isprintable() or " " in name:
        raise ValueError("must be a host name, such as mail.example.org")
    return name


def _judge(settings: EmailSettings) -> None:
    """Check the sender, the subject, the credentials and the CA file."""
    try:
        found: Sequence[Mailbox] = parse_mailboxes(settings.sender, "sender")
    except Invalid as error:
        raise ValueError("sender", error.problem, error.remedy) from error
    if len(found) != 1:
        raise ValueError("sender", "must be one address", "Write it as Tidings <hello@example.org>")
    if settings.subject and not settings.subject.isprintable():
        raise ValueError("subject", "has a line break or control character", "Write one line")
    if (settings.username is None) != (settings.password is None):
        missing = "password" if settings.password is None else "username"
        raise ValueError(missing, "username and password belong together", f"Add {missing}")
    if settings.password and settings.security is SmtpSecurity.NONE and not is_loopback(settings.host):
        raise ValueError("security", "the password would be sent without encryption", "Use 'starttls' or 'tls'")
    if settings.ca_file is not None:
        try:
            ssl.create_default_context(cafile=settings.ca_file)
        except (OSError, ValueError) as error:
            raise ValueError("ca_file", "the file cannot be loaded", "Give certificates in PEM format") from error


KIND = channel_kind(EmailSettings, EmailChannel, _judge)
