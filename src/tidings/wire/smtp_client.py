"""SMTP client: delivers one mail, and tells whether a failed one may have been accepted.

    NotSent           the final dot was not written: the server cannot have accepted the mail
    MaybeSent         the final dot was written, and there was no response
    SmtpRefused       the server rejected the mail, at a named stage
    SmtpUnsupported   the server lacks what the configuration requires: TLS, login

The dot decides (RFC 5321): a server must not deliver without it. So the body is sent first, and only then the
dot; a failure before it is certain. The dot, dot-stuffing and the wait for the last response are therefore
done here and not by the client library, which writes everything at once.
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
MOST_MAILS = 100  # per connection: many servers disconnect after that
_CHUNK = 65_536
_QUIT_TIMEOUT = 1.0  # seconds for QUIT

_ENHANCED = re.compile(r"([245])\.(\d{1,3})\.(\d{1,3})(?!\d)", re.ASCII)
_DOTS = re.compile(rb"(?m)^\.")


class SmtpSecurity(StrEnum):
    """How the connection is protected."""

    STARTTLS = "starttls"
    TLS = "tls"
    NONE = "none"


class SmtpStage(StrEnum):
    """Stage of the conversation; the value is its display name."""

    HELLO = "the greeting"
    LOGIN = "the login"
    SENDER = "the sender"
    RECIPIENT = "the recipient"
    CONTENT = "the content"


@dataclass(frozen=True, slots=True)
class SmtpServerConfig:
    """A mail server and how to connect to it."""

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
    """Sender, recipients and body."""

    sender: str
    recipients: Sequence[str]
    body: bytes  # lines end with CRLF


class SmtpReply(NamedTuple):
    """A server's reply."""

    code: int
    text: str

    @property
    def enhanced(self) -> tuple[int, int, int] | None:
        """The enhanced status code (RFC 3463), if there is one."""
        found = _ENHANCED.match(self.text)
        return None if found is None else (int(found[1]), int(found[2]), int(found[3]))


class SmtpRefused(Exception):
    """The server rejected the mail. `recipient` is set if only this one was rejected."""

    def __init__(self, stage: SmtpStage, reply: SmtpReply, recipient: str | None = None) -> None:
        super().__init__(f"{reply.code} at {stage}")
        self.stage = stage
        self.reply = reply
        self.recipient = recipient


class SmtpUnsupported(Exception):
    """The server lacks what the configuration requires."""


class SmtpAccepted(NamedTuple):
    """The server accepted the mail, for all recipients except those rejected."""

    reply: SmtpReply
    refused: Sequence[SmtpRefused]


StopRule = Callable[[Sequence[SmtpRefused], int], SmtpRefused | None]
"""Decides by the rejected recipients and the number of accepted ones; returns a rejection to stop sending."""


class _SmtpConnection:
    """One connection."""

    def __init__(self, client: aiosmtplib.SMTP) -> None:
        self.client = client
        self.mails = 0
        self.since = 0.0

    def is_fresh(self, now: float) -> bool:
        return self.client.is_connected and self.mails < MOST_MAILS and now - self.since < IDLE_FOR

    def cut(self) -> None:
        """Close immediately without flushing: unsent data must not be sent."""
        if self.client.transport is not None:
            cast(asyncio.WriteTransport, self.client.transport).abort()
        self.client.close()


class SmtpClient:
    """Connections to one server, at most `connections` at once, kept for a while for the next mail."""

    def __init__(self, server: SmtpServerConfig, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._server = server
        self._monotonic = monotonic
        self._free = asyncio.Semaphore(server.connections)
        self._idle: list[_SmtpConnection] = []
        self._closed = False
        self._context: ssl.SSLContext | None = None
        self._hello = server.hello

    async def send(self, envelope: SmtpEnvelope, *, deadline: timedelta, stops: StopRule) -> SmtpAccepted:
        """Deliver one mail. Raises NotSent, MaybeSent, SmtpRefused or SmtpUnsupported."""
        if self._closed:
            raise NotSent("the channel is closed")
        dot_written: list[bool] = []  # filled when the final dot is about to be written
        try:
            async with expiring(deadline.total_seconds(), has_left=lambda: dot_written), self._free:
                return await self._send(envelope, stops, dot_written)
        except (OSError, SMTPException, UnicodeError) as error:  # TimeoutError is an OSError
            raise (MaybeSent if dot_written else NotSent)(_why(error)) from error

    async def greet(self, *, deadline: timedelta) -> str:
        """Connect, log in and quit, to test the settings. Return the server's name."""
        try:
            async with asyncio.timeout(deadline.total_seconds()):
                connection = await self._connect()
        except (OSError, SMTPException, UnicodeError) as error:
            raise NotSent(_why(error)) from error
        said = connection.client.last_ehlo_response
        await _quit(connection)
        return said.message.splitlines()[0] if said and said.message else self._server.host

    async def close(self) -> None:
        """Quit on idle connections; those in use end with their mail."""
        self._closed = True
        lines, self._idle = self._idle, []
        await asyncio.gather(*(_quit(connection) for connection in lines))

    async def _send(self, envelope: SmtpEnvelope, stops: StopRule, dot_written: list[bool]) -> SmtpAccepted:
        connection, refused = await self._begin(envelope)
        try:
            accepted = len(envelope.recipients) - len(refused)
            stop = stops(refused, accepted) if refused else None
            if stop is not None:
                raise stop
            reply = await _transmit(connection.client, envelope.body, dot_written)
        except SmtpRefused:
            await self._release(connection, reset=True)
            raise
        except BaseException:
            connection.cut()
            raise
        await self._release(connection)
        return SmtpAccepted(reply, refused)

    async def _begin(self, envelope: SmtpEnvelope) -> tuple[_SmtpConnection, Sequence[SmtpRefused]]:
        """Send the envelope, on an idle connection if it still works; the server may have disconnected."""
        while True:
            kept = self._idle_connection()
            connection = kept or await self._connect()
            try:
                return connection, await _envelope(connection.client, envelope)
            except SmtpRefused as error:
                if kept is None or error.reply.code != 421:
                    await self._release(connection, reset=True)
                    raise
                connection.cut()
            except (OSError, SMTPException):
                connection.cut()
                if kept is None:
                    raise
            except BaseException:
                connection.cut()
                raise

    def _idle_connection(self) -> _SmtpConnection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.is_fresh(self._monotonic()):
                return connection
            connection.cut()
        return None

    async def _release(self, connection: _SmtpConnection, *, reset: bool = False) -> None:
        connection.mails += 1
        connection.since = self._monotonic()
        try:
            if reset:
                async with asyncio.timeout(_QUIT_TIMEOUT):
                    await connection.client.rset()
        except (OSError, SMTPException):
            connection.cut()
            return
        except BaseException:
            connection.cut()
            raise
        if self._closed or not connection.is_fresh(connection.since):
            connection.cut()
        else:
            self._idle.append(connection)

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
            timeout=None,  # the overall deadline is enough
        )
        connection = _SmtpConnection(client)
        try:
            await _hello(client, server)
        except BaseException:
            connection.cut()
            raise
        return connection


async def _hello(client: aiosmtplib.SMTP, server: SmtpServerConfig) -> None:
    """Connect, start TLS and log in."""
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
        raise SmtpUnsupported("the server offers no supported login, or none without TLS")
    try:
        await client.login(server.username, server.password or "")
    except SMTPResponseException as error:
        raise _refused(SmtpStage.LOGIN, error) from error


async def _envelope(client: aiosmtplib.SMTP, envelope: SmtpEnvelope) -> Sequence[SmtpRefused]:
    """Send sender and recipients. Return the rejected recipients."""
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


async def _transmit(client: aiosmtplib.SMTP, body: bytes, dot_written: list[bool]) -> SmtpReply:
    """Send DATA, the body, and after all of it the dot."""
    ready = await client.execute_command(b"DATA")
    if ready.code != 354:
        raise SmtpRefused(SmtpStage.CONTENT, SmtpReply(ready.code, ready.message))
    protocol = client.protocol
    if protocol is None:
        raise NotSent("the connection was lost")
    stuffed = _DOTS.sub(b"..", body if body.endswith(b"\r\n") else body + b"\r\n")
    for start in range(0, len(stuffed), _CHUNK):
        protocol.write(stuffed[start : start + _CHUNK])
        await protocol._drain_helper()  # as StreamWriter does, which would also close the connection
    dot_written.append(True)
    protocol.write(b".\r\n")
    said = await protocol.read_response()
    dot_written.clear()  # any reply is a response
    reply = SmtpReply(said.code, said.message)
    if 200 <= reply.code < 300:
        return reply
    if 400 <= reply.code < 600:
        raise SmtpRefused(SmtpStage.CONTENT, reply)
    raise MaybeSent("the server's last reply is invalid")


def _refused(stage: SmtpStage, error: SMTPResponseException, recipient: str | None = None) -> SmtpRefused:
    if error.code < 0:  # how the client reports a reply without code
        raise NotSent("the server does not speak SMTP")
    return SmtpRefused(stage, SmtpReply(error.code, error.message), recipient)


def _context(server: SmtpServerConfig) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=server.ca_file)
    if not server.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _own_name(found: str) -> str:
    """Return our name for EHLO: a name with a dot, or an address literal (RFC 5321)."""
    return found if "." in found and found.isascii() and found.isprintable() else "[127.0.0.1]"


def _why(error: Exception) -> str:
    """Describe an error briefly, without anything that was sent or received."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the server's certificate is not valid: {error.verify_message}"
    if isinstance(error.__cause__, ssl.SSLCertVerificationError):
        return f"the server's certificate is not valid: {error.__cause__.verify_message}"
    if type(error) is TimeoutError:
        return "the deadline passed"
    if isinstance(error, SMTPResponseException):
        return "the server does not speak SMTP"
    return str(error.message) if isinstance(error, SMTPException) and hasattr(error, "message") else str(error)


async def _quit(connection: _SmtpConnection) -> None:
    with suppress(OSError, SMTPException):
        async with asyncio.timeout(_QUIT_TIMEOUT):
            await connection.client.quit()
    connection.cut()
