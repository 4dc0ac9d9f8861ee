"""E-mail: what leaves, what each reply means, where doubt begins, what the simulated server makes of it."""

from __future__ import annotations

import asyncio
import shutil
import signal
import socket
import ssl
import subprocess
import sys
from base64 import b64encode
from collections.abc import AsyncIterator
from datetime import timedelta
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import aiosmtplib
import pytest
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword

from tidings.model.errors import CallerError, Misconfigured
from tidings.model.message import Message
from tidings.model.outcome import Done, Outcome, Reject, Retry, Unknown
from tidings.model.task import Category, OnUnknown
from tidings.outbound.channels.base import Channel, probe
from tidings.outbound.channels.email import EmailSettings
from tidings.outbound.channels.registry import build
from tidings.sandbox import read_ledger
from tidings.sandbox.providers.smtp import SmtpServer
from tidings.sandbox.server import _listen_for_mail
from tidings.sandbox.simulator import SandboxSimulator

from ..receiver import silent
from .postbox import AFTER_PART, HANG_UP, SILENCE, Postbox, postbox

pytestmark = pytest.mark.slow

NOW = 1_790_000_060_000_000  # 2026-09-21 14:14:20
PASSWORD = "canary-password"
SENDER = "Tidings <hello@example.org>"
PATIENT, SHORT = 20.0, 0.5


@pytest.fixture
async def box() -> AsyncIterator[Postbox]:
    """A server that does as it is told."""
    async with postbox() as ready:
        yield ready


@pytest.fixture
async def world() -> AsyncIterator[SandboxSimulator]:
    """What the simulated mail server knows."""
    world = SandboxSimulator(None)
    yield world
    world.close()


@pytest.fixture
async def server(world: SandboxSimulator) -> AsyncIterator[SmtpServer]:
    """The simulated mail server."""
    server = SmtpServer(world)
    await server.start(socket.create_server(("127.0.0.1", 0)))
    yield server
    await server.stop()


def mailer(port: int, **options: Any) -> Channel:
    """A channel aimed at a port of this machine."""
    given = {"host": "127.0.0.1", "port": port, "security": "none", "sender": SENDER, "deadline": PATIENT}
    return build("mail", "email", {**given, **options}, now=lambda: NOW)


def message(to: str = "ada@example.org", *, id: str = "0190-a1", **content: Any) -> Message:
    """A mail to somebody."""
    return Message(id, "default", "mail", to, {"text": "Grüße", "subject": "Hällo", **content}, NOW)


async def send(port: int, what: Message, **options: Any) -> Outcome:
    """What came of one attempt."""
    channel = mailer(port, **options)
    try:
        return await channel.send(what)
    finally:
        await channel.close()


# What leaves


async def test_a_mail_leaves_byte_for_byte_as_the_standard_has_it(box: Postbox) -> None:
    """RFC 5321 and 5322: envelope, headers in order, text that every server takes, lines of CRLF."""
    outcome = await send(box.port, message())

    assert outcome == Done(receipt="250 2.0.0 Ok: queued as 4F1C")
    greeting, mail, to, data, end = box.lines
    assert greeting.startswith("EHLO ")
    assert (mail, to, data) == (
        f"MAIL FROM:<hello@example.org> SIZE={len(box.mails[0])}",
        "RCPT TO:<ada@example.org>",
        "DATA",
    )
    assert end == "QUIT"
    assert box.mails[0] == (
        b"From: Tidings <hello@example.org>\r\n"
        b"To: ada@example.org\r\n"
        b"Subject: =?utf-8?b?SMOkbGxv?=\r\n"
        b"Date: Mon, 21 Sep 2026 14:14:20 +0000\r\n"
        b"Message-ID: <0190-a1@example.org>\r\n"
        b'Content-Type: text/plain; charset="utf-8"\r\n'
        b"Content-Transfer-Encoding: base64\r\n"
        b"MIME-Version: 1.0\r\n"
        b"\r\n"
        b"R3LDvMOfZQ0K\r\n"
    )


async def test_lines_that_begin_with_a_dot_are_escaped(
    box: Postbox, server: SmtpServer, world: SandboxSimulator
) -> None:
    """A mail cannot end itself, and the reader sees one dot."""
    text = "first\n.\n..second\nRCPT TO:<eve@example.org>"
    await send(box.port, message(text=text))
    await send(server.port, message(text=text))

    assert b"\r\n..\r\n...second\r\n" in box.mails[0]
    assert world.recent[-1].text == text


async def test_every_attempt_has_the_same_bytes_except_the_date(box: Postbox) -> None:
    """Message-ID and the boundaries come from the id, so whoever removes duplicates can."""
    rich = message(data={"html": "<b>Grüße</b>", "attachments": [{"name": "a.bin", "content": "AAEC"}]})
    for _ in range(2):
        await send(box.port, rich)

    assert box.mails[0] == box.mails[1]


async def test_several_recipients_html_and_files_arrive(
    box: Postbox, server: SmtpServer, world: SandboxSimulator
) -> None:
    """To, Cc and Bcc in the envelope, Bcc in no header; both texts; the file as it was."""
    file = bytes(range(256)) * 40
    data = {
        "html": "<p>Grüße</p>",
        "cc": ["Bob Ö <bob@example.org>"],
        "bcc": "carol@example.org",
        "reply_to": "desk@example.org",
        "headers": {"X-Order": "7", "List-Unsubscribe": "<https://example.org/off>"},
        "attachments": [{"name": "Plan ä.pdf", "type": "application/pdf", "content": b64encode(file).decode()}],
    }
    what = message("Ada <ada@example.org>, ada2@example.org", data=data)
    assert isinstance(await send(box.port, what), Done)
    assert isinstance(await send(server.port, what), Done)

    assert [line[8:] for line in box.lines if line.startswith("RCPT")] == [
        f"<{name}@example.org>" for name in ("ada", "ada2", "bob", "carol")
    ]
    mail = message_from_bytes(box.mails[0], policy=policy.default)
    assert isinstance(mail, EmailMessage)
    assert b"carol" not in box.mails[0]
    assert str(mail["cc"]) == "Bob Ö <bob@example.org>"
    assert (mail["reply-to"], mail["x-order"]) == ("desk@example.org", "7")
    plain, html = (mail.get_body((kind,)) for kind in ("plain", "html"))
    assert plain is not None and html is not None
    assert (plain.get_content(), html.get_content()) == ("Grüße\r\n", "<p>Grüße</p>\r\n")
    (got,) = mail.iter_attachments()
    assert (got.get_filename(), got.get_content_type(), got.get_content()) == ("Plan ä.pdf", "application/pdf", file)
    assert {entry.to: entry.copy for entry in world.recent} == {
        f"{name}@example.org": 1 for name in ("ada", "ada2", "bob", "carol")
    }


async def test_an_international_domain_is_encoded_as_ascii(box: Postbox) -> None:
    """IDNA in the envelope and in the header."""
    await send(box.port, message("ada@bücher.example"))

    assert "RCPT TO:<ada@xn--bcher-kva.example>" in box.lines


async def test_a_connection_is_kept_and_a_stale_one_is_replaced(box: Postbox) -> None:
    """Mails in a row share a line; a server that hung up meanwhile costs nothing but a new line."""
    channel = mailer(box.port)
    for number in range(3):
        assert isinstance(await channel.send(message(id=f"m-{number}")), Done)
    assert box.connections == 1
    box.say("MAIL", HANG_UP)
    assert isinstance(await channel.send(message(id="m-3")), Done)
    box.say("MAIL", "421 4.4.2 Idle too long")
    assert isinstance(await channel.send(message(id="m-4")), Done)
    await channel.close()

    assert (box.connections, len(box.mails)) == (3, 5)


async def test_a_connection_is_reused_after_a_refusal(box: Postbox) -> None:
    """RSET in between, so that no recipient of one mail gets another."""
    channel = mailer(box.port)
    box.say("RCPT", "550 5.1.1 No such user")
    assert isinstance(await channel.send(message()), Reject)
    assert isinstance(await channel.send(message(id="m-2")), Done)
    await channel.close()

    assert box.connections == 1
    verbs = [line.partition(" ")[0] for line in box.lines if line[0] in "MR"]
    assert verbs == ["MAIL", "RCPT", "RSET", "MAIL", "RCPT"]


async def test_a_few_connections_serve_many_mails(box: Postbox) -> None:
    """`connections` is the most at once, however many slots there are."""
    channel = mailer(box.port, connections=2)
    outcomes = await asyncio.gather(*(channel.send(message(id=f"m-{n}")) for n in range(20)))
    await channel.close()

    assert all(isinstance(outcome, Done) for outcome in outcomes)
    assert box.connections <= 2


# What a reply means: one row per code of the table (provider-apis 5.5)

TEMPORARY, PERMANENT = Category.TEMPORARY, Category.PERMANENT
THROTTLING, VALIDATION = Category.THROTTLING, Category.VALIDATION

AT_RECIPIENT = [
    # code, enhanced, outcome, category, whole channel
    ("421", "", Retry, TEMPORARY, False),
    ("450", "", Retry, TEMPORARY, False),
    ("451", "", Retry, TEMPORARY, False),
    ("452", "", Retry, TEMPORARY, False),
    ("454", "4.7.0", Retry, TEMPORARY, False),
    ("455", "", Retry, TEMPORARY, False),
    *((str(code), "", Reject, VALIDATION, False) for code in range(500, 505)),
    ("521", "", Reject, PERMANENT, False),
    ("556", "", Reject, PERMANENT, False),
    *((str(code), "", Reject, PERMANENT, True) for code in (530, 534, 535, 538)),
    ("541", "", Reject, PERMANENT, False),
    ("554", "", Reject, PERMANENT, False),
    ("550", "", Reject, PERMANENT, False),
    ("551", "", Reject, PERMANENT, False),
    ("552", "", Reject, PERMANENT, False),
    ("553", "", Reject, VALIDATION, False),
    ("555", "", Reject, VALIDATION, False),
    ("499", "", Retry, TEMPORARY, False),  # unknown: the first digit decides
    ("599", "", Reject, PERMANENT, False),
    *(("550", f"5.1.{z}", Reject, PERMANENT, False) for z in (1, 2, 3, 6, 10)),
    ("550", "5.2.1", Reject, PERMANENT, False),
    ("450", "4.2.1", Retry, TEMPORARY, False),
    ("552", "5.2.2", Retry, TEMPORARY, False),
    ("452", "4.2.2", Retry, TEMPORARY, False),
    ("552", "5.2.3", Reject, VALIDATION, False),
    ("552", "5.3.4", Reject, VALIDATION, False),
    ("552", "5.5.3", Retry, TEMPORARY, False),  # too many recipients: an old server's 452
    ("451", "4.3.0", Retry, TEMPORARY, False),
    ("451", "4.4.1", Retry, TEMPORARY, False),
    ("550", "5.4.4", Reject, PERMANENT, False),
    ("554", "5.4.6", Reject, PERMANENT, False),
    ("550", "5.5.4", Reject, VALIDATION, False),
    ("550", "5.6.1", Reject, VALIDATION, False),
    ("550", "5.7.1", Reject, PERMANENT, False),
    ("450", "4.7.1", Retry, THROTTLING, False),
    ("550", "5.7.8", Reject, PERMANENT, True),
    ("550", "5.7.9", Reject, PERMANENT, True),
]


@pytest.mark.parametrize("stage", ["smtp", "data"])
@pytest.mark.parametrize(("code", "enhanced", "kind", "category", "whole"), AT_RECIPIENT)
async def test_smtp_replies_map_to_retry_categories(
    server: SmtpServer,
    world: SandboxSimulator,
    stage: str,
    code: str,
    enhanced: str,
    kind: type,
    category: Category,
    whole: bool,
) -> None:
    """A4: to a recipient, and at the end of the mail; the words say what the server said."""
    if (stage, enhanced) == ("data", "5.5.3"):
        kind, category = Reject, VALIDATION  # of recipients there is no word any more
    name = "-".join(part for part in (stage, code, enhanced) if part)
    outcome = await send(server.port, message(f"{name}@example.org"))

    assert type(outcome) is kind
    assert isinstance(outcome, Retry | Reject)
    assert (outcome.category, outcome.whole_channel) == (category, whole)
    assert getattr(outcome, "after", None) is None
    assert f"{code} {enhanced}".strip() in outcome.reason
    assert not world.recent[-1].delivered


@pytest.mark.parametrize(
    ("code", "kind", "category", "whole"),
    [
        ("550-5.7.1", Reject, PERMANENT, True),  # this sender may not send: nobody's mail would go
        ("553", Reject, VALIDATION, True),
        ("552-5.3.4", Reject, VALIDATION, False),  # about this mail's size
        ("451-4.3.0", Retry, TEMPORARY, False),
        ("421-4.7.0", Retry, THROTTLING, True),  # too fast, whoever it is for
    ],
)
async def test_a_refused_sender_pauses_the_channel(
    server: SmtpServer, code: str, kind: type, category: Category, whole: bool
) -> None:
    """A4: the work stays pending while a person looks; a mail with a sender of its own fails alone."""
    outcome = await send(server.port, message(), sender=f"smtp-{code}@example.org")
    alone = await send(server.port, message(data={"from": f"smtp-{code}@example.org"}), allow_from=True)

    assert type(outcome) is kind and isinstance(outcome, Retry | Reject)
    assert (outcome.category, outcome.whole_channel) == (category, whole)
    assert isinstance(alone, Retry | Reject) and not alone.whole_channel


@pytest.mark.parametrize(
    ("code", "kind", "category", "whole"),
    [
        ("535-5.7.8", Reject, PERMANENT, True),
        ("534-5.7.9", Reject, PERMANENT, True),
        ("454-4.7.0", Retry, TEMPORARY, False),
    ],
)
async def test_a_bad_login_pauses_the_channel(
    server: SmtpServer, code: str, kind: type, category: Category, whole: bool
) -> None:
    """A4: a bad credential is permanent and about everybody; a login that fails for now is tried again."""
    outcome = await send(server.port, message(), username=f"smtp-{code}", password=PASSWORD)

    assert type(outcome) is kind and isinstance(outcome, Retry | Reject)
    assert (outcome.category, outcome.whole_channel) == (category, whole)
    assert PASSWORD not in str(outcome)


@pytest.mark.parametrize(
    ("code", "kind", "category", "whole"),
    [
        ("554-5.7.1", Reject, PERMANENT, True),
        ("421-4.3.2", Retry, TEMPORARY, False),
        ("450-4.7.1", Retry, THROTTLING, True),
    ],
)
async def test_a_refused_greeting_is_retried_or_pauses_the_channel(
    server: SmtpServer, code: str, kind: type, category: Category, whole: bool
) -> None:
    """A4: what is said before there is a recipient is about us."""
    outcome = await send(server.port, message(), helo_name=f"smtp-{code}")

    assert type(outcome) is kind and isinstance(outcome, Retry | Reject)
    assert (outcome.category, outcome.whole_channel) == (category, whole)


# Several recipients, some refused


async def test_one_refused_recipient_rejects_the_whole_mail(server: SmtpServer, world: SandboxSimulator) -> None:
    """All or none, so that a second try sends nobody a second copy."""
    outcome = await send(server.port, message("ada@example.org, gone@example.org"))

    assert isinstance(outcome, Reject) and "gone@example.org" in outcome.reason
    assert not any(entry.delivered for entry in world.recent)


async def test_partial_delivery_leaves_refused_recipients_out(server: SmtpServer, world: SandboxSimulator) -> None:
    """`partial`: the others get it, and the receipt names who did not."""
    outcome = await send(server.port, message("ada@example.org, gone@example.org"), partial=True)

    assert isinstance(outcome, Done) and outcome.receipt is not None
    assert "not to gone@example.org (550 5.1.1" in outcome.receipt
    assert [entry.to for entry in world.recent if entry.delivered] == ["ada@example.org"]


@pytest.mark.parametrize("partial", [True, False])
async def test_a_temporarily_refused_recipient_delays_the_whole_mail(
    server: SmtpServer, world: SandboxSimulator, partial: bool
) -> None:
    """Nothing has been sent yet, so waiting costs no duplicate."""
    outcome = await send(server.port, message("ada@example.org, smtp-450-4.7.1@example.org"), partial=partial)

    assert isinstance(outcome, Retry)
    assert not any(entry.delivered for entry in world.recent)


async def test_a_mail_without_accepted_recipients_is_rejected(server: SmtpServer) -> None:
    """`partial` does not send mail to nobody."""
    assert isinstance(await send(server.port, message("gone@example.org"), partial=True), Reject)


# Where doubt begins: at the final dot


@pytest.mark.parametrize("act", [HANG_UP, SILENCE, "Huh? What was that?", "354 End data", "250-\x00" + "x" * 40_000])
async def test_no_answer_after_the_final_dot_is_unknown(box: Postbox, act: str) -> None:
    """RFC 5321: the server may have taken it. Cut, silent or senseless: on_unknown decides."""
    box.say("DOT", act)
    outcome = await send(box.port, message(), deadline=SHORT if act == SILENCE else PATIENT)

    assert isinstance(outcome, Unknown)
    assert len(box.mails) == 1


@pytest.mark.parametrize("verb", ["GREETING", "EHLO", "MAIL", "RCPT", "DATA"])
@pytest.mark.parametrize("act", [HANG_UP, SILENCE, "Huh?"])
async def test_a_failure_before_the_final_dot_is_retried(box: Postbox, verb: str, act: str) -> None:
    """F22, F24: no doubt, a plain retry; the server has not seen the end of the mail."""
    box.say(verb, act)
    outcome = await send(box.port, message(), deadline=SHORT if act == SILENCE else PATIENT)

    assert isinstance(outcome, Retry)
    assert (outcome.category, box.mails) == (Category.TEMPORARY, [])


async def test_a_connection_lost_within_the_mail_is_retried(box: Postbox) -> None:
    """A large file half way: the dot was never written, so there is no doubt."""
    box.say("DOT", AFTER_PART)
    big = [{"name": "big.bin", "content": b64encode(bytes(6_000_000)).decode()}]
    outcome = await send(box.port, message(data={"attachments": big}), max_size=16 << 20)

    assert isinstance(outcome, Retry)


async def test_a_reply_after_the_final_dot_decides_even_if_the_connection_breaks(box: Postbox) -> None:
    """The refusal counts, whatever becomes of the line."""
    box.say("DOT", "451 4.3.0 Try later")
    box.say("RSET", HANG_UP)
    outcome = await send(box.port, message())

    assert isinstance(outcome, Retry) and "451" in outcome.reason


async def test_a_failed_connection_is_retried() -> None:
    """F22, F23: nobody there, or nobody who answers."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        refused = await send(reserved.getsockname()[1], message())
    with silent() as url:
        stalled = await send(int(url.rpartition(":")[2]), message(), deadline=SHORT)
    strange = await send(25, message(), host=f"{'x' * 70}.invalid")

    assert isinstance(refused, Retry) and isinstance(stalled, Retry) and isinstance(strange, Retry)


@pytest.mark.parametrize(
    ("word", "kind", "copies"),
    [("lost", Unknown, 1), ("cut", Unknown, 0), ("down", Retry, 0), ("throttle-5", Retry, 0), ("slow-1", Done, 1)],
)
async def test_the_faults_of_the_sandbox_work_by_name(
    server: SmtpServer, world: SandboxSimulator, word: str, kind: type, copies: int
) -> None:
    """A lost answer and a lost mail look the same from here; only the ledger knows."""
    outcome = await send(server.port, message(f"ada+{word}@example.org"))

    assert isinstance(outcome, kind)
    assert sum(entry.delivered for entry in world.recent) == copies


async def test_a_closed_channel_sends_nothing(box: Postbox) -> None:
    """And says so as a plain retry."""
    channel = mailer(box.port)
    await channel.close()

    assert isinstance(await channel.send(message()), Retry)
    assert box.connections == 0


# TLS and secrets


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for localhost, and its key in the same file."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    key = path.with_name("key.pem")
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"),
            *("-keyout", str(key), "-out", str(path)),
        ],
        check=True,
        capture_output=True,
    )
    path.write_text(path.read_text() + key.read_text())
    return path


@pytest.mark.parametrize("security", ["starttls", "tls"])
async def test_tls_is_used_and_the_certificate_verified(
    world: SandboxSimulator, certificate: Path, security: str
) -> None:
    """A certificate that nobody vouches for gets nothing; one that is known gets the login and the mail."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server = SmtpServer(world, tls=context, wrapped=security == "tls")
    await server.start(socket.create_server(("127.0.0.1", 0)))
    login = {"security": security, "username": "ada", "password": PASSWORD}
    unknown = await send(server.port, message(), **login)
    known = await send(server.port, message(), ca_file=str(certificate), **login)
    careless = await send(server.port, message(), verify=False, **login)
    await server.stop()

    assert isinstance(unknown, Retry) and "certificate" in unknown.reason
    assert isinstance(known, Done) and isinstance(careless, Done)
    assert len(world.recent) == 2


async def test_a_server_without_starttls_gets_no_password(box: Postbox) -> None:
    """Whoever strips STARTTLS off the line learns nothing; the channel is paused, its work waits."""
    outcome = await send(box.port, message(), security="starttls", username="ada", password=PASSWORD)

    assert outcome == Reject(
        Category.PERMANENT, "nothing can be sent: the server does not offer STARTTLS", whole_channel=True
    )
    assert not any(line.startswith("AUTH") for line in box.lines)


async def test_a_server_without_a_login_pauses_the_channel(box: Postbox) -> None:
    """The account can never be used there."""
    box.say("EHLO", "250 mail.example")
    outcome = await send(box.port, message(), username="ada", password=PASSWORD)

    assert isinstance(outcome, Reject) and outcome.whole_channel


async def test_the_password_is_in_no_reason_receipt_log_or_repr(box: Postbox, caplog: pytest.LogCaptureFixture) -> None:
    """S9: even if the server says it back."""
    caplog.set_level("DEBUG")
    options = {"username": "ada", "password": PASSWORD}
    box.say("AUTH", f"535 5.7.8 {PASSWORD} is wrong")
    box.say("DOT", f"250 OK {PASSWORD}", f"550 {PASSWORD}\x1b[2J")
    said = [str(await send(box.port, message(), **options)) for _ in range(4)]
    said.append(str(await probe(mailer(box.port, **options))))
    settings = EmailSettings(host="x", sender=SENDER, password=PASSWORD)

    assert PASSWORD not in "".join(said) + caplog.text + repr(settings) + repr(settings.server)
    assert "\x1b" not in "".join(said)


# What is refused before it is accepted


@pytest.mark.parametrize(
    ("to", "content", "field"),
    [
        ("", {}, "to"),
        ("ada", {}, "to"),
        ("ada@", {}, "to"),
        ("ada@example..org", {}, "to"),
        ("a b@example.org", {}, "to"),
        ("ada@example.org\r\nBcc: eve@example.org", {}, "to"),
        ("ada@example.org, ", {}, None),
        ("Ada <ada@example.org", {}, "to"),
        ("<ada@example.org> x", {}, "to"),
        ("jörg@example.org", {}, "to"),
        ("ada@example.org", {"subject": "a\r\nBcc: eve@example.org"}, "subject"),
        ("ada@example.org", {"data": {"colour": "red"}}, "data.colour"),
        ("ada@example.org", {"data": {"from": "eve@example.org"}}, "data.from"),
        ("ada@example.org", {"data": {"cc": 5}}, "data.cc"),
        ("ada@example.org", {"data": {"cc": ["a@b.c"] * 101}}, "data.cc"),
        ("ada@example.org", {"data": {"html": 5}}, "data.html"),
        ("ada@example.org", {"data": {"headers": {"Bcc": "eve@example.org"}}}, "data.headers"),
        ("ada@example.org", {"data": {"headers": {"X-A": "a\nb"}}}, "data.headers.X-A"),
        ("ada@example.org", {"data": {"headers": {"X-A:": "a"}}}, "data.headers"),
        ("ada@example.org", {"data": {"attachments": "a.pdf"}}, "data.attachments"),
        ("ada@example.org", {"data": {"attachments": [{"path": "/etc/passwd"}]}}, "data.attachments[0]"),
        (
            "ada@example.org",
            {"data": {"attachments": [{"name": "a", "content": "/etc/passwd"}]}},
            "data.attachments[0].content",
        ),
        (
            "ada@example.org",
            {"data": {"attachments": [{"name": "../a", "content": "AA=="}]}},
            "data.attachments[0].name",
        ),
        (
            "ada@example.org",
            {"data": {"attachments": [{"name": "a", "type": "message/rfc822", "content": "AA=="}]}},
            "data.attachments[0].type",
        ),
        (
            "ada@example.org",
            {"data": {"attachments": [{"name": "a", "content": b64encode(bytes(2000)).decode()}]}},
            "data",
        ),
    ],
)
async def test_invalid_mail_is_refused_with_a_remedy(
    box: Postbox, to: str, content: dict[str, Any], field: str | None
) -> None:
    """Bad input: one sentence, the field, the remedy; and nothing leaves if it comes as far as that."""
    channel = mailer(box.port, max_size=2048)
    if field is None:
        channel.check(to, content)
    else:
        with pytest.raises(CallerError) as caught:
            channel.check(to, content)
        assert (caught.value.field, bool(caught.value.remedy)) == (field, True)
        outcome = await channel.send(Message("m", "default", "mail", to, content, NOW))
        assert isinstance(outcome, Reject) and outcome.category is Category.VALIDATION
        assert box.mails == []
    await channel.close()


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"host": "mail example"}, "host"),
        ({"host": "http://mail.example"}, "host"),
        ({"port": 0}, "port"),
        ({"port": "x"}, "port"),
        ({"security": "ssl"}, "security"),
        ({"sender": "nobody"}, "sender"),
        ({"sender": "a@b.c, d@e.f"}, "sender"),
        ({"subject": "a\nb"}, "subject"),
        ({"username": "ada"}, "password"),
        ({"password": PASSWORD}, "username"),
        ({"host": "mail.example", "username": "ada", "password": PASSWORD}, "security"),
        ({"ca_file": "/nowhere.pem"}, "ca_file"),
        ({"connections": 0}, "connections"),
        ({"hello": "my host"}, "hello"),
        ({"partial": "perhaps"}, "partial"),
    ],
)
def test_an_invalid_email_option_stops_the_start(options: dict[str, Any], field: str) -> None:
    """The error names the option and the remedy; no secret is repeated, and none may travel in clear."""
    with pytest.raises(Misconfigured) as caught:
        mailer(**{"port": 25, **options})

    assert caught.value.field == field
    assert PASSWORD not in str(caught.value)


def test_host_and_sender_are_required() -> None:
    """There is no mail server that would be right for everybody."""
    with pytest.raises(Misconfigured, match="it is missing"):
        build("mail", "email", {"sender": SENDER})


def test_mail_with_an_unknown_outcome_is_held() -> None:
    """With its honest reason."""
    traits = mailer(25).traits

    assert traits.on_unknown is OnUnknown.HOLD
    assert "Message-ID" in traits.why_on_unknown
    assert traits.deadline == timedelta(seconds=PATIENT)


# channels test, and the world's own client


async def test_a_probe_connects_and_logs_in_without_sending(server: SmtpServer, world: SandboxSimulator) -> None:
    """Connect and log in; the answer says who we are, or what is wrong."""
    good = await probe(mailer(server.port, username="ada", password="right"))
    bad = await probe(mailer(server.port, username="ada", password="wrong"))

    assert isinstance(good, Done) and good.receipt is not None and "as ada" in good.receipt
    assert isinstance(bad, Reject) and bad.whole_channel
    assert len(world.recent) == 0


async def test_aiosmtplib_works_with_the_simulated_server(server: SmtpServer, world: SandboxSimulator) -> None:
    """aiosmtplib as anybody would use it: with login, several recipients, a refused one among them."""
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Subject"] = "me@example.org", "ada@example.org", "Hi"
    mail.set_content("hello\n.\nbye")
    refused, said = await aiosmtplib.send(
        mail,
        recipients=["ada@example.org", "gone@example.org"],
        hostname="127.0.0.1",
        port=server.port,
        username="me",
        password="secret",
        start_tls=False,
    )

    assert (list(refused), said.startswith("2.0.0 OK")) == (["gone@example.org"], True)
    assert [entry.text for entry in world.recent if entry.delivered] == ["hello\n.\nbye"]


class Judge:
    """A handler of aiosmtpd that keeps what it takes and refuses one recipient."""

    def __init__(self) -> None:
        self.taken: list[Envelope] = []

    async def handle_RCPT(self, _server: SMTP, _session: object, envelope: Envelope, to: str, _options: object) -> str:
        if to.startswith("gone@"):
            return "550 5.1.1 No such user"
        envelope.rcpt_tos.append(to)
        return "250 2.1.5 OK"

    async def handle_DATA(self, _server: SMTP, _session: object, envelope: Envelope) -> str:
        self.taken.append(envelope)
        return "250 2.0.0 OK, queued as 42"


@pytest.mark.filterwarnings("ignore:Requiring AUTH")
@pytest.mark.parametrize("security", ["none", "starttls", "tls"])
async def test_aiosmtpd_accepts_what_is_sent(certificate: Path, security: str) -> None:
    """Judge: aiosmtpd, strict about the protocol: greeting, STARTTLS, login, dots, letters, sizes, refusals."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    judge, logins = Judge(), list[LoginPassword]()

    def authenticate(*asked: Any) -> AuthResult:
        logins.append(asked[-1])
        return AuthResult(success=logins[-1].password == PASSWORD.encode(), handled=False)

    def made() -> SMTP:
        over_tls = security == "starttls"
        tls: dict[str, Any] = {"tls_context": context, "require_starttls": True} if over_tls else {}
        return SMTP(
            judge, hostname="judge.example", data_size_limit=50_000, command_call_limit=20,
            authenticator=authenticate, auth_required=security != "none", auth_require_tls=over_tls, **tls,
        )  # fmt: skip

    listening = await asyncio.get_running_loop().create_server(
        made, "127.0.0.1", 0, ssl=context if security == "tls" else None
    )
    port = listening.sockets[0].getsockname()[1]
    login = {"username": "ada", "password": PASSWORD, "ca_file": str(certificate)} if security != "none" else {}
    text = "first\n.\n..second\n" + "Grüße " * 300
    channel = mailer(port, security=security, helo_name="client.example", **login)
    taken = await channel.send(message("Ada <ada@example.org>, bob@bücher.example", text=text))
    again = await channel.send(message(data={"html": "<b>hi</b>", "attachments": [{"name": "a", "content": "AAEC"}]}))
    gone = await channel.send(message("gone@example.org"))
    large = await channel.send(message(text="x" * 60_000))
    after = await channel.send(message())
    await channel.close()
    wrong = await send(port, message(), security=security, **{**login, "password": "no"}) if login else None
    listening.close()
    await listening.wait_closed()

    assert (taken, again, after) == (Done("250 2.0.0 OK, queued as 42"),) * 3
    assert [envelope.rcpt_tos for envelope in judge.taken[:1]] == [["ada@example.org", "bob@xn--bcher-kva.example"]]
    first = message_from_bytes(judge.taken[0].original_content or b"", policy=policy.default)
    assert first.get_content().replace("\r\n", "\n").rstrip("\n") == text
    assert isinstance(gone, Reject) and (gone.category, gone.whole_channel) == (Category.PERMANENT, False)
    assert isinstance(large, Reject) and large.category is Category.VALIDATION
    if login:
        assert logins[0].login == b"ada"
        assert isinstance(wrong, Reject) and wrong.whole_channel


async def test_the_simulated_server_answers_protocol_errors(server: SmtpServer) -> None:
    """Wrong order, wrong words, too much: the answers of the standard."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)

    async def ask(line: str) -> str:
        writer.write(f"{line}\r\n".encode())
        answer = (await reader.readuntil(b"\r\n")).decode()
        while answer[3] == "-":
            answer = (await reader.readuntil(b"\r\n")).decode()
        return answer[:3]

    assert (await reader.readuntil(b"\r\n")).startswith(b"220 ")
    talk: list[tuple[str, str]] = [
        ("MAIL FROM:<a@b.c>", "503"),
        ("EHLO me", "250"),
        ("HUH", "502"),
        ("RCPT TO:<a@b.c>", "503"),
        ("DATA", "503"),
        ("MAIL a@b.c", "501"),
        (f"MAIL FROM:<a@b.c> SIZE={11 << 20}", "552"),
        ("MAIL FROM:<a@b.c>", "250"),
        ("RCPT TO:<nobody>", "501"),
        ("RSET", "250"),
        ("NOOP", "250"),
        ("VRFY ada", "252"),
        ("STARTTLS", "502"),
        ("AUTH CRAM-MD5", "504"),
        ("AUTH PLAIN !!!", "535"),
        ("QUIT", "221"),
    ]
    for line, code in talk:
        assert (line, await ask(line)) == (line, code)
    writer.close()


async def test_the_sandbox_as_a_program_takes_mail_on_a_port_of_its_own(tmp_path: Path) -> None:
    """As `tidings sandbox` runs it; the port that it says is the port that takes mail."""
    ledger = tmp_path / "ledger.jsonl"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tidings.sandbox", "--port", "0", "--ledger", str(ledger)),
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    lines = [(await process.stdout.readline()).decode() for _ in range(3)]
    told = next(line for line in lines if "accepts mail" in line)
    outcome = await send(int(told.rpartition(":")[2]), message())
    process.terminate()

    assert await process.wait() in (0, -signal.SIGTERM)
    assert isinstance(outcome, Done)
    assert [entry.to for entry in read_ledger(ledger)] == ["ada@example.org"]


def test_an_occupied_mail_port_stops_the_sandbox_only_if_it_was_configured() -> None:
    """The next port is a courtesy; a port that somebody named is a promise."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        assert _listen_for_mail("127.0.0.1", port - 1, None) is None
        with pytest.raises(Misconfigured, match="in use"):
            _listen_for_mail("127.0.0.1", port - 1, port)
