"""One narrow port over the SMTP client: hand one mail over, and say whether that may have happened.

    NotSent      the final dot was not written: the server cannot have taken the mail
    MaybeSent    the final dot was written and no answer came
    Refused      the server said no, at a stage that is named
    Unfit        the server cannot do what the configuration asks for: no TLS, no login

The dot is what counts (RFC 5321): a server that has not seen it must not deliver. So the body goes out first,
at the pace of the line, and only then the dot; what breaks before it is a failure and no doubt. The dot,
the stuffing of lines that begin with one, and the wait for the last answer are therefore done here and not
left to the client library, which writes all of it at once.
"""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import NamedTuple, cast

import aiosmtplib
from aiosmtplib import SMTPException, SMTPRecipientRefused, SMTPResponseException, SMTPSenderRefused

from .deadlines import deadline as expiring
from .http_client import MaybeSent, NotSent

IDLE_FOR = 10.0  # seconds that a connection is kept for the next mail
MOST_MAILS = 100  # over one connection: many servers hang up after that
_CHUNK = 65_536
_BYE = 1.0  # seconds for a polite end

_ENHANCED = re.compile(r"([245])\.(\d{1,3})\.(\d{1,3})(?!\d)", re.ASCII)
_DOTS = re.compile(rb"(?m)^\.")


class SmtpSecurity(StrEnum):
    """How the line is protected."""

    STARTTLS = "starttls"
    TLS = "tls"
    NONE = "none"


class SmtpStage(StrEnum):
    """How far the conversation had come; the value is how people call it."""

    HELLO = "the greeting"
    LOGIN = "the login"
    SENDER = "the sender"
    RECIPIENT = "the recipient"
    CONTENT = "the content"


@dataclass(frozen=True, slots=True)
class SmtpServerConfig:
    """A mail server and how to talk to it."""

    host: str
    port: int
    security: SmtpSecurity = SmtpSecurity.STARTTLS
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    verify: bool = True
    ca_file: str | None = None
    hello: str | None = None
    connections: int = 5


class SmtpEnvelope(NamedTuple):
    """Who sends what to whom."""

    sender: str
    recipients: Sequence[str]
    body: bytes  # lines end with CRLF


class SmtpReply(NamedTuple):
    """A server's answer."""

    code: int
    text: str

    @property
    def enhanced(self) -> tuple[int, int, int] | None:
        """The code of RFC 3463 at its beginning, if it has one."""
        found = _ENHANCED.match(self.text)
        return None if found is None else (int(found[1]), int(found[2]), int(found[3]))


class SmtpRefused(Exception):
    """The server said no. `recipient` is set when the answer was about one of them."""

    def __init__(self, stage: SmtpStage, reply: SmtpReply, recipient: str | None = None) -> None:
        super().__init__(f"{reply.code} at {stage}")
        self.stage = stage
        self.reply = reply
        self.recipient = recipient


class SmtpUnsupported(Exception):
    """The server lacks what the configuration asks for."""


class SmtpAccepted(NamedTuple):
    """The server has the mail, for all recipients but those refused."""

    reply: SmtpReply
    refused: Sequence[SmtpRefused]


StopRule = Callable[[Sequence[SmtpRefused], int], SmtpRefused | None]
"""Of the recipients that were refused, and how many were not: the refusal for which nothing is to be sent."""


class _SmtpConnection:
    """One connection."""

    def __init__(self, client: aiosmtplib.SMTP) -> None:
        self.client = client
        self.mails = 0
        self.since = 0.0

    def is_fresh(self, now: float) -> bool:
        return self.client.is_connected and self.mails < MOST_MAILS and now - self.since < IDLE_FOR

    def cut(self) -> None:
        """At once, without flushing: what has not left shall not leave."""
        if self.client.transport is not None:
            cast(asyncio.WriteTransport, self.client.transport).abort()
        self.client.close()


class SmtpClient:
    """Connections to one server, at most `connections` at once, kept a while for the next mail."""

    def __init__(self, server: SmtpServerConfig, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._server = server
        self._monotonic = monotonic
        self._free = asyncio.Semaphore(server.connections)
        self._idle: list[_SmtpConnection] = []
        self._closed = False
        self._context: ssl.SSLContext | None = None
        self._hello = server.hello

    async def send(self, envelope: SmtpEnvelope, *, deadline: timedelta, stops: StopRule) -> SmtpAccepted:
        """Hand one mail over; raises NotSent, MaybeSent, Refused or Unfit."""
        if self._closed:
            raise NotSent("the channel is closed")
        dotted: list[bool] = []  # filled when the final dot is about to leave
        try:
            async with expiring(deadline.total_seconds(), has_left=lambda: dotted), self._free:
                return await self._send(envelope, stops, dotted)
        except (OSError, SMTPException, UnicodeError) as error:  # TimeoutError is an OSError
            raise (MaybeSent if dotted else NotSent)(_why(error)) from error

    async def greet(self, *, deadline: timedelta) -> str:
        """Connect, log in, say goodbye: for a test of the settings. Gives the server's own name."""
        try:
            async with asyncio.timeout(deadline.total_seconds()):
                line = await self._connect()
        except (OSError, SMTPException, UnicodeError) as error:
            raise NotSent(_why(error)) from error
        said = line.client.last_ehlo_response
        await _bye(line)
        return said.message.splitlines()[0] if said and said.message else self._server.host

    async def close(self) -> None:
        """Say goodbye on the connections that are kept; those in use end with their mail."""
        self._closed = True
        lines, self._idle = self._idle, []
        await asyncio.gather(*(_bye(line) for line in lines))

    async def _send(self, envelope: SmtpEnvelope, stops: StopRule, dotted: list[bool]) -> SmtpAccepted:
        line, refused = await self._begin(envelope)
        try:
            accepted = len(envelope.recipients) - len(refused)
            stop = stops(refused, accepted) if refused else None
            if stop is not None:
                raise stop
            reply = await _hand_over(line.client, envelope.body, dotted)
        except SmtpRefused:
            await self._keep(line, reset=True)
            raise
        except BaseException:
            line.cut()
            raise
        await self._keep(line)
        return SmtpAccepted(reply, refused)

    async def _begin(self, envelope: SmtpEnvelope) -> tuple[_SmtpConnection, Sequence[SmtpRefused]]:
        """The envelope, on a kept connection if one is still good; the server may have hung up meanwhile."""
        while True:
            kept = self._kept()
            line = kept or await self._connect()
            try:
                return line, await _envelope(line.client, envelope)
            except SmtpRefused as error:
                if kept is None or error.reply.code != 421:
                    await self._keep(line, reset=True)
                    raise
                line.cut()
            except (OSError, SMTPException):
                line.cut()
                if kept is None:
                    raise
            except BaseException:
                line.cut()
                raise

    def _kept(self) -> _SmtpConnection | None:
        while self._idle:
            line = self._idle.pop()
            if line.is_fresh(self._monotonic()):
                return line
            line.cut()
        return None

    async def _keep(self, line: _SmtpConnection, *, reset: bool = False) -> None:
        line.mails += 1
        line.since = self._monotonic()
        try:
            if reset:
                async with asyncio.timeout(_BYE):
                    await line.client.rset()
        except (OSError, SMTPException):
            line.cut()
            return
        except BaseException:
            line.cut()
            raise
        if self._closed or not line.is_fresh(line.since):
            line.cut()
        else:
            self._idle.append(line)

    async def _connect(self) -> _SmtpConnection:
        server = self._server
        if self._hello is None:
            self._hello = _own_name(await asyncio.to_thread(socket.getfqdn))
        if self._context is None and server.security is not SmtpSecurity.NONE:
            self._context = await asyncio.to_thread(_context, server)
        client = aiosmtplib.SMTP(
            hostname=server.host,
            port=server.port,
            local_hostname=self._hello,
            use_tls=server.security is SmtpSecurity.TLS,
            start_tls=False,
            tls_context=self._context,
            timeout=None,  # the deadline of the whole is enough
        )
        line = _SmtpConnection(client)
        try:
            await _hello(client, server)
        except BaseException:
            line.cut()
            raise
        return line


async def _hello(client: aiosmtplib.SMTP, server: SmtpServerConfig) -> None:
    """Connect, protect the line, log in."""
    try:
        await client.connect()
        await client.ehlo()
        if server.security is SmtpSecurity.STARTTLS:
            if not client.supports_extension("starttls"):
                raise SmtpUnsupported("the server does not offer STARTTLS")
            await client.starttls()
            await client.ehlo()
    except SMTPResponseException as error:
        raise _refused(SmtpStage.HELLO, error) from error
    if server.username is None:
        return
    if not set(client.server_auth_methods) & set(client.AUTH_METHODS):
        raise SmtpUnsupported("the server offers no login that we know, or none without TLS")
    try:
        await client.login(server.username, server.password or "")
    except SMTPResponseException as error:
        raise _refused(SmtpStage.LOGIN, error) from error


async def _envelope(client: aiosmtplib.SMTP, envelope: SmtpEnvelope) -> Sequence[SmtpRefused]:
    """Sender and recipients; gives the recipients that were refused."""
    options = [f"SIZE={len(envelope.body)}"] if client.supports_extension("size") else []
    try:
        await client.mail(envelope.sender, options=options)
    except SMTPSenderRefused as error:
        raise _refused(SmtpStage.SENDER, error) from error
    refused = []
    for recipient in envelope.recipients:
        try:
            await client.rcpt(recipient)
        except SMTPRecipientRefused as error:
            refused.append(_refused(SmtpStage.RECIPIENT, error, recipient))
    return refused


async def _hand_over(client: aiosmtplib.SMTP, body: bytes, dotted: list[bool]) -> SmtpReply:
    """DATA, the body, and when all of it has left, the dot."""
    ready = await client.execute_command(b"DATA")
    if ready.code != 354:
        raise SmtpRefused(SmtpStage.CONTENT, SmtpReply(ready.code, ready.message))
    protocol = client.protocol
    if protocol is None:
        raise NotSent("the connection was lost")
    stuffed = _DOTS.sub(b"..", body if body.endswith(b"\r\n") else body + b"\r\n")
    for start in range(0, len(stuffed), _CHUNK):
        protocol.write(stuffed[start : start + _CHUNK])
        await protocol._drain_helper()  # as a StreamWriter does, which would close the line, too
    dotted.append(True)
    protocol.write(b".\r\n")
    said = await protocol.read_response()
    dotted.clear()  # whatever it says, it is an answer
    reply = SmtpReply(said.code, said.message)
    if 200 <= reply.code < 300:
        return reply
    if 400 <= reply.code < 600:
        raise SmtpRefused(SmtpStage.CONTENT, reply)
    raise MaybeSent("the server's last answer makes no sense")


def _refused(stage: SmtpStage, error: SMTPResponseException, recipient: str | None = None) -> SmtpRefused:
    if error.code < 0:  # the client's way to say that there was no code in it
        raise NotSent("the server does not speak SMTP")
    return SmtpRefused(stage, SmtpReply(error.code, error.message), recipient)


def _context(server: SmtpServerConfig) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=server.ca_file)
    if not server.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _own_name(found: str) -> str:
    """What we call ourselves: a name with a dot, or else the address form that RFC 5321 asks for."""
    return found if "." in found and found.isascii() and found.isprintable() else "[127.0.0.1]"


def _why(error: Exception) -> str:
    """What broke, in a few words; never what was said on the line."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the server's certificate is not good: {error.verify_message}"
    if isinstance(error.__cause__, ssl.SSLCertVerificationError):
        return f"the server's certificate is not good: {error.__cause__.verify_message}"
    if type(error) is TimeoutError:
        return "the deadline passed"
    if isinstance(error, SMTPResponseException):
        return "the server does not speak SMTP"
    return (
        str(error.message) if isinstance(error, SMTPException) and hasattr(error, "message") else str(error)
    )


async def _bye(line: _SmtpConnection) -> None:
    with suppress(OSError, SMTPException):
        async with asyncio.timeout(_BYE):
            await line.client.quit()
    line.cut()
