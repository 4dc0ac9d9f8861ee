"""Simulated mail server: SMTP with SIZE, AUTH and, given a certificate, STARTTLS. It accepts all mail.

Besides the faults of all providers, an address can request any reply by its local part:

    smtp-550-5.1.1@…    that reply to this recipient or sender
    data-554-5.7.1@…    that reply at the end of the mail
    smtp-535-5.7.8      as a user name: to the login; as the client's host name: to the greeting

A mail is one ledger entry per recipient, written before the reply. With several recipients each has its own
id, `id/recipient`, so that none counts as a duplicate.
"""

from __future__ import annotations

import asyncio
import binascii
import contextlib
import re
import socket
import ssl
from base64 import b64decode
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage, MIMEPart
from typing import Any

from tidings.model.errors import TemporaryError
from tidings.sandbox.faults import CUTS, FaultContext, FaultKind, SandboxFault, recipient_fault
from tidings.sandbox.ledger import SandboxEntry
from tidings.sandbox.simulator import ProviderArrival, SandboxSimulator

CHANNEL = "email"
MAX_SIZE = 10 << 20
MAX_LINE = 4_096
MAX_RECIPIENTS = 100

_REPLY = r"-([45]\d\d)(?:-([45]\.\d{1,3}\.\d{1,3}))?"
_THREE_DIGITS = re.compile(r"[45]\d\d", re.ASCII)
_PATH = re.compile(r"(?:FROM|TO):\s*<([^<>\s]*)>((?:\s+\S+)*)\s*", re.IGNORECASE | re.ASCII)

_REPLIES = {"NOOP": "250 2.0.0 OK", "VRFY": "252 2.0.0 Cannot verify the address"}
_FAULTS: Mapping[FaultKind, str] = {
    FaultKind.ERROR: "451 4.3.0 Internal error",
    FaultKind.THROTTLED: "450 4.7.1 Too many mails",
    FaultKind.GONE: "550 5.1.1 Unknown mailbox",
    FaultKind.HTML: "<html><body>This is not a mail server</body></html>",
    FaultKind.HUGE: "451 4.3.0 " + "An error that does not end. " * 50_000,
}


class SmtpServer:
    """The mail server. `tls` offers STARTTLS; with `wrapped`, connections begin with TLS."""

    def __init__(self, world: SandboxSimulator, *, tls: ssl.SSLContext | None = None, wrapped: bool = False) -> None:
        self._world, self._tls, self._wrapped = world, tls, wrapped
        self._server: asyncio.Server | None = None
        self._talks: set[asyncio.Task[None]] = set()
        self.port = 0

    async def start(self, listening: socket.socket) -> None:
        """Accept mail on a listening socket."""
        self._server = await asyncio.start_server(
            self._connected, sock=listening, limit=MAX_LINE, ssl=self._tls if self._wrapped else None
        )
        self.port = int(listening.getsockname()[1])

    async def stop(self) -> None:
        """Cut every connection, then close the port."""
        if self._server is None:
            return
        self._server.close()
        talks = list(self._talks)
        for talk in talks:
            talk.cancel()
        await asyncio.gather(*talks, return_exceptions=True)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talk = _SmtpConversation(self._world, reader, writer, tls=None if self._wrapped else self._tls)
        task = asyncio.create_task(talk.run())
        self._talks.add(task)
        task.add_done_callback(self._talks.discard)


@dataclass(slots=True)
class _SmtpEnvelope:
    sender: str | None = None
    recipients: list[str] = field(default_factory=list)


def _script(name: str, where: str = "smtp|data") -> str | None:
    """Return the reply that an address or name requests at this place."""
    found = re.fullmatch(rf"(?:{where}){_REPLY}", name.partition("@")[0], re.ASCII)
    return None if found is None else f"{found[1]} {found[2] + ' ' if found[2] else ''}Simulated reply"


class _SmtpConversation:
    """One connection."""

    def __init__(
        self,
        world: SandboxSimulator,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        tls: ssl.SSLContext | None,
    ) -> None:
        self._world, self._reader, self._writer, self._tls = world, reader, writer, tls
        self._greeted = False
        self._envelope = _SmtpEnvelope()
        self._commands: Mapping[str, Callable[[str], Awaitable[str | None]]] = {
            "EHLO": self._ehlo,
            "HELO": self._ehlo,
            "STARTTLS": self._starttls,
            "AUTH": self._auth,
            "MAIL": self._mail,
            "RCPT": self._rcpt,
            "DATA": self._data,
            "RSET": self._rset,
        }

    async def run(self) -> None:
        """Serve the connection until either side ends it."""
        try:
            await self._say("220 sandbox.tidings.invalid ESMTP Simulated mail server")
            while (line := await self._line()) is not None:
                verb, _, rest = line.partition(" ")
                if verb.upper() == "QUIT":
                    await self._say("221 2.0.0 Bye")
                    break
                answer = self._commands.get(verb.upper())
                said: str | None = _REPLIES.get(verb.upper(), "502 5.5.2 Unknown command")
                if answer is not None:
                    said = await answer(rest.strip())
                if said is not None:
                    await self._say(said)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ssl.SSLError):
            pass  # an interrupted mail was not sent
        finally:
            self._writer.close()

    async def _line(self) -> str | None:
        try:
            line = await self._reader.readuntil(b"\r\n")
        except asyncio.IncompleteReadError:
            return None
        return line[:-2].decode(errors="replace")

    async def _say(self, answer: str) -> None:
        self._writer.write(f"{answer}\r\n".encode())
        await self._writer.drain()

    async def _rset(self, _: str) -> str:
        self._envelope = _SmtpEnvelope()
        return "250 2.0.0 OK"

    async def _ehlo(self, name: str) -> str:
        if (scripted := _script(name)) is not None:
            return scripted
        self._greeted = True
        self._envelope = _SmtpEnvelope()
        offers = ["sandbox.tidings.invalid", f"SIZE {MAX_SIZE}", "AUTH PLAIN LOGIN", "ENHANCEDSTATUSCODES"]
        if self._tls is not None:
            offers.append("STARTTLS")
        return "\r\n".join([*(f"250-{offer}" for offer in offers), "250 8BITMIME"])

    async def _starttls(self, _: str) -> str | None:
        if self._tls is None:
            return "502 5.5.1 TLS is not available"
        await self._say("220 2.0.0 Ready to start TLS")
        await self._writer.start_tls(self._tls)
        self._tls, self._greeted, self._envelope = None, False, _SmtpEnvelope()
        return None

    async def _auth(self, rest: str) -> str:
        method, _, first = rest.partition(" ")
        if method.upper() == "PLAIN":
            given = _unpacked(first or await self._challenge(""))
            _, _, pair = given.partition("\0")
            user, _, password = pair.partition("\0")
        elif method.upper() == "LOGIN":
            user = _unpacked(first or await self._challenge("VXNlcm5hbWU6"))
            password = _unpacked(await self._challenge("UGFzc3dvcmQ6"))
        else:
            return "504 5.5.4 Use PLAIN or LOGIN"
        if (scripted := _script(user)) is not None:
            return scripted
        if not user or not password or password == "wrong":
            return "535 5.7.8 Invalid user name or password"
        return "235 2.7.0 Authentication successful"

    async def _challenge(self, words: str) -> str:
        await self._say(f"334 {words}")
        return await self._line() or ""

    async def _mail(self, rest: str) -> str:
        found = _PATH.fullmatch(rest)
        if not self._greeted or found is None or self._envelope.sender is not None:
            return "503 5.5.1 Bad sequence of commands" if found else "501 5.5.4 Use MAIL FROM:<address>"
        if (scripted := _script(found[1], "smtp")) is not None:
            return scripted
        size = re.search(r"(?i)\bSIZE=(\d{1,12})", found[2])
        if size is not None and int(size[1]) > MAX_SIZE:
            return "552 5.3.4 The mail is too large"
        self._envelope.sender = found[1]
        return "250 2.1.0 OK"

    async def _rcpt(self, rest: str) -> str:
        found = _PATH.fullmatch(rest)
        if self._envelope.sender is None or found is None or "@" not in found[1]:
            return (
                "503 5.5.1 Bad sequence of commands" if self._envelope.sender is None else "501 5.1.3 Invalid address"
            )
        if len(self._envelope.recipients) >= MAX_RECIPIENTS:
            return "452 4.5.3 Too many recipients"
        refusal = self._refusal(found[1])
        if refusal is None:
            self._envelope.recipients.append(found[1])
        return refusal or "250 2.1.5 OK"

    def _refusal(self, recipient: str) -> str | None:
        """Return the reply that a recipient's name requests at RCPT; it is recorded too."""
        if (scripted := _script(recipient, "smtp")) is not None:
            self._world.receive(ProviderArrival(CHANNEL, "", recipient, problem=scripted))
            return scripted
        fault = recipient_fault(FaultContext(CHANNEL, recipient, 1))
        if fault is not None and fault.kind is FaultKind.GONE:
            self._world.receive(ProviderArrival(CHANNEL, "", recipient))
            return _FAULTS[FaultKind.GONE]
        return None

    async def _data(self, _: str) -> str | None:
        envelope, self._envelope = self._envelope, _SmtpEnvelope()
        if not envelope.recipients:
            return "503 5.5.1 No recipients"
        await self._say("354 End data with a single dot")
        body = await self._body()
        if body is None:
            return "552 5.3.4 The mail is too large"
        scripted = next((found for one in envelope.recipients if (found := _script(one))), None)
        try:
            entry = self._receive(envelope, parse(body)._replace(problem=scripted))
        except TemporaryError:
            return "452 4.3.1 The ledger cannot be written"
        if scripted is not None:
            return scripted
        if entry.did in CUTS:
            self._writer.transport.abort()
            return None
        if entry.did in (FaultKind.SLOW, FaultKind.DRIP):
            await self._world.environment.sleep(entry.wait)
        if entry.did is FaultKind.REFUSED:
            return f"{entry.code if _THREE_DIGITS.fullmatch(entry.code) else '554'} Simulated error"
        return _FAULTS.get(entry.did, f"250 2.0.0 OK queued as {CHANNEL}-{entry.n}")

    async def _body(self) -> bytes | None:
        """Read the mail and remove dot stuffing; None if it is too large, which is reported at its end."""
        body, whole = bytearray(), True
        while (line := await self._reader.readuntil(b"\r\n")) != b".\r\n":
            whole = whole and len(body) + len(line) <= MAX_SIZE
            if whole:
                body += line[1:] if line.startswith(b".") else line
        return bytes(body) if whole else None

    def _receive(self, envelope: _SmtpEnvelope, mail: ProviderArrival) -> SandboxEntry:
        """Record one entry per recipient, all with the same fault: a mail has one reply."""
        several = len(envelope.recipients) > 1
        first, *others = sorted(
            envelope.recipients, key=lambda one: recipient_fault(FaultContext(CHANNEL, one, 1)) is None
        )

        def arrival(to: str, fault: SandboxFault | None) -> ProviderArrival:
            return mail._replace(id=f"{mail.id}/{to}" if several else mail.id, to=to, fault=fault)

        entry = self._world.receive(arrival(first, None))
        for other in others:
            self._world.receive(arrival(other, SandboxFault(entry.did, entry.wait, entry.code)))
        return entry


def parse(body: bytes) -> ProviderArrival:
    """Parse a mail, without its recipient. Its id is the part of Message-ID before the @."""
    mail = message_from_bytes(body, policy=policy.default)
    id = str(mail.get("message-id", "")).strip().strip("<>").rpartition("@")[0]
    files = [
        {"name": part.get_filename() or "", "type": part.get_content_type(), "size": len(_content(part))}
        for part in mail.iter_attachments()
    ]
    data: dict[str, object] = {"from": str(mail.get("from", ""))}
    data |= {name: str(mail[name]) for name in ("cc", "reply-to") if mail[name]}
    data |= {"attachments": files} if files else {}
    return ProviderArrival(CHANNEL, id, "", _words(mail), str(mail.get("subject", "")), data)


def _words(mail: EmailMessage[Any, Any]) -> str:
    part = mail.get_body(("plain", "html"))
    if part is None:
        return ""
    charset = part.get_content_charset("utf-8")
    with contextlib.suppress(LookupError):
        return _content(part).decode(charset, "replace").replace("\r\n", "\n").removesuffix("\n")
    return _content(part).decode(errors="replace")


def _content(part: MIMEPart[Any, Any]) -> bytes:
    found = part.get_payload(decode=True)
    return found if isinstance(found, bytes) else b""


def _unpacked(text: str) -> str:
    try:
        return b64decode(text, validate=True).decode(errors="replace")
    except (binascii.Error, ValueError):
        return ""
