"""Messages that people write in simulated chats, in bounded memory.

`POST /sandbox/said` sends a message as a person: {"channel": "groupme", "chat": "9", "sender": "1001",
"name": "Ada", "text": "hello"}; `edits` or `deletes` name an earlier one. Numbers are shared with the ledger,
so messages of people and of the engine are in one order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tidings.model.errors import Invalid, NotFound

from .waha_payloads import said_event
from .whatsapp_webhooks import contact, is_user_id, message, user_id_of, webhook

MOST = 20_000
MAX_NAME = 256
MAX_TEXT = 20_000
CHAT_CHANNELS = ("groupme", "telegram", "whatsapp_cloud", "waha", "twilio")  # the last three send it as a webhook
_TEXTS = ("channel", "chat", "sender", "name", "text")
_FLAGS = ("system", "bot")


@dataclass(slots=True)
class ChatMessage:
    """One message of a person."""

    n: int
    at: int
    channel: str
    chat: str
    sender: str
    name: str
    text: str
    system: bool = False
    bot: bool = False
    reply_to: str | None = None
    edits: int | None = None  # the number of the edited message
    deletes: int | None = None
    edited_at: int | None = None
    becomes: str | None = None  # the sender's new number or id on WhatsApp


class GroupChats:
    """All messages of people, oldest first."""

    def __init__(self, most: int = MOST) -> None:
        self._lines: deque[ChatMessage] = deque(maxlen=most)

    def add(self, line: ChatMessage) -> None:
        """Add a message; an edit also changes the edited one."""
        changed = self.find(line.channel, line.edits) if line.edits is not None else None
        if changed is not None:
            changed.text, changed.edited_at = line.text, line.at
        self._lines.append(line)

    def of(self, channel: str, chat: str | None = None) -> Iterator[ChatMessage]:
        """Yield the messages of a channel, or of one chat."""
        return (line for line in self._lines if line.channel == channel and chat in (None, line.chat))

    def find(self, channel: str, n: int) -> ChatMessage | None:
        """Return one message by its number."""
        return next((line for line in self.of(channel) if line.n == n), None)


def parse_chat_message(given: object, chats: GroupChats, *, n: int, at: int) -> ChatMessage:
    """Parse a command into a message; raises Invalid or NotFound."""
    if not isinstance(given, dict):
        raise Invalid("The body is not a JSON object", remedy='{"channel": "groupme", "chat": "9", ...}')
    said: dict[str, Any] = {name: str(given.get(name) or "")[:MAX_TEXT] for name in _TEXTS}
    if said["channel"] not in CHAT_CHANNELS:
        problem = f"Unknown channel {said['channel']!r}"
        raise Invalid(problem, field="channel", remedy=f"Use {' or '.join(CHAT_CHANNELS)}")
    for name in ("chat", "sender"):
        if not 0 < len(said[name]) <= MAX_NAME:
            raise Invalid(f"{name} is missing", field=name, remedy="Give the group and the person")
    said |= {name: given.get(name) is True for name in _FLAGS}
    said |= {name: _earlier(chats, said["channel"], name, given.get(name)) for name in ("edits", "deletes")}
    said |= {name: None if given.get(name) is None else str(given[name])[:MAX_NAME] for name in ("reply_to", "becomes")}
    return ChatMessage(n, at, **said)


def _earlier(chats: GroupChats, channel: str, name: str, given: object) -> int | None:
    if given is None:
        return None
    if not isinstance(given, int) or chats.find(channel, given) is None:
        raise NotFound(f"Unknown message number {given!r}", field=name)
    return given


def _meta(line: ChatMessage, number: str) -> dict[str, object]:
    """The message as a webhook of WhatsApp Cloud."""
    return webhook(number, [contact(line.sender, line.name)], messages=[message(line)])


def _twilio(line: ChatMessage, account: str) -> dict[str, object]:
    """The form of an SMS, or of a WhatsApp message if the sender has the prefix `whatsapp:` or a user id."""
    person = line.sender.removeprefix("whatsapp:")
    on_whatsapp = person != line.sender or is_user_id(person)
    sid, prefix = f"SM{line.n:032x}", "whatsapp:" if on_whatsapp else ""
    fields: dict[str, object] = {
        "MessageSid": sid, "SmsSid": sid, "SmsMessageSid": sid, "SmsStatus": "received", "AccountSid": account,
        "From": prefix + person, "To": f"{prefix}+15550001111",
        "Body": line.text, "NumMedia": "0", "NumSegments": "1", "ApiVersion": "2010-04-01",
    }  # fmt: skip
    return fields | ({"ExternalUserId": user_id_of(person), "ProfileName": line.name} if on_whatsapp else {})


EVENTS: Mapping[str, Callable[[ChatMessage, str], tuple[str, dict[str, Any]]]] = {
    "waha": said_event,
    "whatsapp_cloud": lambda line, number: ("message", _meta(line, number)),
    "twilio": lambda line, account: ("message", _twilio(line, account)),
}
"""The event and the payload of the webhook about a message, by channel."""
