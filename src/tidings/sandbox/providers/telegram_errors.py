"""The errors of the simulated Telegram, by the names that faults use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class TelegramErrorReply(NamedTuple):
    """An error as Telegram returns it."""

    status: int
    description: str
    parameters: Mapping[str, object] | None = None


BAD_REQUEST = "Bad Request: "
FORBIDDEN = "Forbidden: "
NOT_FOUND = TelegramErrorReply(404, "Not Found")
UNAUTHORIZED = TelegramErrorReply(401, "Unauthorized")
NO_METHOD = TelegramErrorReply(404, "Not Found: method not found")

ERRORS: Mapping[str, TelegramErrorReply] = {
    "chat_not_found": TelegramErrorReply(400, BAD_REQUEST + "chat not found"),
    "private_chat_not_found": TelegramErrorReply(400, BAD_REQUEST + "private chat not found"),
    "chat_id_empty": TelegramErrorReply(400, BAD_REQUEST + "chat_id is empty"),
    "text_empty": TelegramErrorReply(400, BAD_REQUEST + "message text is empty"),
    "text_must_be_non_empty": TelegramErrorReply(400, BAD_REQUEST + "text must be non-empty"),
    "message_too_long": TelegramErrorReply(400, BAD_REQUEST + "message is too long"),
    "text_too_long": TelegramErrorReply(400, BAD_REQUEST + "text is too long"),
    "parse_mode": TelegramErrorReply(400, BAD_REQUEST + "unsupported parse_mode"),
    "entities": TelegramErrorReply(
        400, BAD_REQUEST + "can't parse entities: Can't find end tag corresponding to start tag \"b\""
    ),
    "reply_not_found": TelegramErrorReply(400, BAD_REQUEST + "message to be replied not found"),
    "thread_not_found": TelegramErrorReply(400, BAD_REQUEST + "message thread not found"),
    "topic_closed": TelegramErrorReply(400, BAD_REQUEST + "TOPIC_CLOSED"),
    "button_url": TelegramErrorReply(400, BAD_REQUEST + "BUTTON_URL_INVALID"),
    "wrong_url": TelegramErrorReply(400, BAD_REQUEST + "wrong HTTP URL specified"),
    "markup_too_long": TelegramErrorReply(400, BAD_REQUEST + "reply markup is too long"),
    "no_write_access": TelegramErrorReply(400, BAD_REQUEST + "have no write access to the chat"),
    "not_enough_rights": TelegramErrorReply(400, BAD_REQUEST + "not enough rights to send text messages to the chat"),
    "need_administrator": TelegramErrorReply(400, BAD_REQUEST + "need administrator rights in the channel chat"),
    "chat_restricted": TelegramErrorReply(400, BAD_REQUEST + "CHAT_RESTRICTED"),
    "chat_write_forbidden": TelegramErrorReply(400, BAD_REQUEST + "CHAT_WRITE_FORBIDDEN"),
    "peer_id_invalid": TelegramErrorReply(400, BAD_REQUEST + "PEER_ID_INVALID"),
    "migrated": TelegramErrorReply(400, BAD_REQUEST + "group chat was upgraded to a supergroup chat"),
    "migrated_long_ago": TelegramErrorReply(400, BAD_REQUEST + "group chat was migrated to a supergroup chat"),
    "group_deactivated": TelegramErrorReply(400, BAD_REQUEST + "group is deactivated"),
    "logged_out": TelegramErrorReply(400, "Logged out"),
    "unauthorized": UNAUTHORIZED,
    "invalid_token": TelegramErrorReply(401, "Unauthorized: invalid token specified"),
    "blocked": TelegramErrorReply(403, FORBIDDEN + "bot was blocked by the user"),
    "deactivated": TelegramErrorReply(403, FORBIDDEN + "user is deactivated"),
    "cannot_initiate": TelegramErrorReply(403, FORBIDDEN + "bot can't initiate conversation with a user"),
    "to_a_bot": TelegramErrorReply(403, FORBIDDEN + "bot can't send messages to bots"),
    "to_the_bot": TelegramErrorReply(403, FORBIDDEN + "the bot can't send messages to the bot"),
    "kicked": TelegramErrorReply(403, FORBIDDEN + "bot was kicked from the group chat"),
    "kicked_from_supergroup": TelegramErrorReply(403, FORBIDDEN + "bot was kicked from the supergroup chat"),
    "kicked_from_channel": TelegramErrorReply(403, FORBIDDEN + "bot was kicked from the channel chat"),
    "not_a_member": TelegramErrorReply(403, FORBIDDEN + "bot is not a member of the channel chat"),
    "group_deleted": TelegramErrorReply(403, FORBIDDEN + "the group chat was deleted"),
    "method_not_found": NO_METHOD,
    "not_found": NOT_FOUND,
    "two_pollers": TelegramErrorReply(
        409, "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
    ),
    "webhook_active": TelegramErrorReply(
        409,
        "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first",
    ),
    "webhook_set": TelegramErrorReply(409, "Conflict: terminated by setWebhook request"),
    "too_large": TelegramErrorReply(413, "Request Entity Too Large"),
    "misdirected": TelegramErrorReply(421, "Misdirected Request: unallowed token specified"),
    "restart": TelegramErrorReply(500, "Internal Server Error: restart"),
}
"""Names of errors and their replies, in the order of the reference."""
