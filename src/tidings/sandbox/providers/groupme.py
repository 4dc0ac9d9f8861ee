"""Simulated GroupMe: bot posts, messages to people and groups with `source_guid`, and message lists.

A repeated `source_guid` within a minute is refused with 409, as with GroupMe; bot posts have none.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from tidings.model.time import SECOND
from tidings.sandbox.group_chats import ChatMessage, GroupChats
from tidings.sandbox.ledger import SandboxEntry
from tidings.sandbox.provider_endpoint import ProviderMethod, ProviderRequest, http_status, is_wrong, provider_route
from tidings.sandbox.responses import SandboxJson
from tidings.sandbox.simulator import ProviderArrival, SandboxSimulator

CHANNEL = "groupme"
BOT = "bot"
GROUP = "group:"
MAX_TEXT = 1000
GUARDED_FOR = 60.0  # seconds
MAX_GUIDS = 100_000
MOST_LISTED = 100
DIRECT_PAGE = 20

ERRORS: Mapping[int, str] = {
    400: "Text is required",
    401: "unauthorized",
    403: "forbidden",
    404: "not found",
    409: "Duplicate message",
    420: "Enhance Your Calm",
    429: "rate limited",
    500: "internal server error",
    502: "bad gateway",
    503: "service unavailable",
}


def routes(world: SandboxSimulator) -> Sequence[BaseRoute]:
    """Return the routes: three to send, two lists, and the token's owner."""
    groupme = _GroupMeProvider(world)
    bot = ProviderMethod(read_bot, lambda *_: Response(status_code=202), _refused)
    return [
        provider_route(world, "/v3/bots/post", bot),
        provider_route(world, "/v3/direct_messages", ProviderMethod(groupme.read_direct, groupme.answer, _refused)),
        Route("/v3/direct_messages", groupme.list_direct, methods=["GET"]),
        provider_route(world, "/v3/groups/{id}/messages", ProviderMethod(groupme.read_group, groupme.answer, _refused)),
        Route("/v3/groups/{id}/messages", groupme.list_group, methods=["GET"]),
        Route("/v3/users/me", _me, methods=["GET"]),
    ]


def read_bot(asked: ProviderRequest) -> ProviderArrival:
    """Parse a bot post."""
    text, data = asked.text("text"), (asked.fields or {}).get("attachments") or None
    problem = None
    if is_wrong(asked.text("bot_id")):
        problem = "404"
    elif (not text and not data) or len(text) > MAX_TEXT:
        problem = "400"
    return asked.arrival(CHANNEL, BOT, text, data, problem)


class _GroupMeProvider:
    """The account's routes, which remember each `source_guid` for a minute."""

    def __init__(self, world: SandboxSimulator) -> None:
        self._world = world
        self._guids: OrderedDict[str, float] = OrderedDict()

    def read_direct(self, asked: ProviderRequest) -> ProviderArrival:
        """Parse a message to a person."""
        fields = _inner(asked, "direct_message")
        return self._read(asked, fields, str(fields.get("recipient_id") or ""))

    def read_group(self, asked: ProviderRequest) -> ProviderArrival:
        """Parse a message to a group."""
        return self._read(asked, _inner(asked, "message"), f"{GROUP}{asked.path['id']}")

    def answer(self, _: ProviderRequest, arrival: ProviderArrival, entry: SandboxEntry) -> Response:
        """Return the message in GroupMe's envelope."""
        self._remember(arrival.id)
        made = _message(entry)
        # A direct message has both names: clients differ in which one they read.
        direct = {} if entry.to.startswith(GROUP) else {"direct_message": made}
        return _envelope({"message": made, **direct}, 201)

    async def list_direct(self, request: Request) -> Response:
        """Return the newest messages to a person."""
        asked = ProviderRequest(request.scope)
        if is_wrong(_token(asked)):
            return _error(401)
        sent = [_message(entry) for entry in self._sent(asked.query.get("other_user_id", ""))]
        page = page_of(sent, {**asked.query, "limit": str(DIRECT_PAGE)})  # it ignores a limit
        return _envelope({"count": len(sent), "direct_messages": page}, 200) if sent else Response(status_code=304)

    async def list_group(self, request: Request) -> Response:
        """Return a group's messages, ours and those of people: the newest, or around one of three ids."""
        asked = ProviderRequest(request.scope)
        if is_wrong(_token(asked)):
            return _error(401)
        group, chats = asked.path["id"], self._world.chats
        sent = [_message(entry) for to in (f"{GROUP}{group}", BOT) for entry in self._sent(to)]
        said = [_said(line, chats) for line in chats.of(CHANNEL, group) if line.edits is None]
        listed = sorted([*sent, *said], key=lambda one: int(str(one["id"])))
        page = page_of(listed, asked.query)
        return _envelope({"count": len(listed), "messages": page}, 200) if page else Response(status_code=304)

    def _sent(self, to: str) -> list[SandboxEntry]:
        conversation = self._world.conversations.find(CHANNEL, to)
        return [entry for entry in conversation.entries if entry.delivered] if conversation else []

    def _read(self, asked: ProviderRequest, fields: Mapping[str, Any], to: str) -> ProviderArrival:
        guid, text = str(fields.get("source_guid") or ""), fields.get("text")
        text = text if isinstance(text, str) else ""
        data = fields.get("attachments") or None
        problem = None
        if is_wrong(_token(asked)):
            problem = "401"
        elif not guid or not to or (not text and not data) or len(text) > MAX_TEXT:
            problem = "400"
        elif self._world.environment.ticks() - self._guids.get(guid, -GUARDED_FOR) < GUARDED_FOR:
            problem = "409"
        return ProviderArrival(CHANNEL, guid[:256], to[:256], text, data=data, sender=asked.sender, problem=problem)

    def _remember(self, guid: str) -> None:
        self._guids[guid] = self._world.environment.ticks()
        self._guids.move_to_end(guid)
        if len(self._guids) > MAX_GUIDS:
            self._guids.popitem(last=False)


async def _me(request: Request) -> Response:
    if is_wrong(_token(ProviderRequest(request.scope))):
        return _error(401)
    return _envelope({"id": "1", "name": "Sandbox", "email": "sandbox@example.com"}, 200)


def _refused(_asked: ProviderRequest, _entry: SandboxEntry, code: str) -> Response:
    return _error(http_status(code) or 400)


def page_of(oldest_first: Sequence[Mapping[str, Any]], query: Mapping[str, str]) -> list[Mapping[str, Any]]:
    """Return a page as GroupMe does: `after_id` the next, `since_id` the newest, `before_id` backwards."""
    limit = query.get("limit", "20")
    most = max(1, min(int(limit), MOST_LISTED)) if limit.isdigit() else 20
    places = {name: int(value) for name, value in query.items() if name.endswith("_id") and value.isdigit()}
    found = list(oldest_first)
    if "after_id" in places:
        return [one for one in found if int(one["id"]) > places["after_id"]][:most]
    if "since_id" in places:
        found = [one for one in found if int(one["id"]) > places["since_id"]]
    elif "before_id" in places:
        found = [one for one in found if int(one["id"]) < places["before_id"]]
    return found[::-1][:most]


def id_of(one: ChatMessage | SandboxEntry) -> str:
    """Return an id like GroupMe's: a number that grows with time."""
    return f"{one.at // SECOND}{one.n:08d}"


def _said(line: ChatMessage, chats: GroupChats) -> dict[str, object]:
    """Return a person's message, or the system message about a deletion."""
    gone = None if line.deletes is None else chats.find(CHANNEL, line.deletes)
    by = "system" if line.system or gone is not None else "bot" if line.bot else "user"
    more: dict[str, object] = {}
    if gone is not None:
        data = {"deleted_at": line.at // SECOND, "deletion_actor": "sender", "message_id": id_of(gone)}
        more["event"] = {"type": "message.deleted", "data": data}
    if line.edited_at is not None:
        more["updated_at"] = line.edited_at // SECOND
    sender = "system" if by == "system" else line.sender
    if line.reply_to:
        more["attachments"] = [{"type": "reply", "reply_id": line.reply_to}]
    name, more["group_id"] = line.name or line.sender, line.chat
    return _shape(line, f"sandbox-{line.n}", sender, by, name=name, text=line.text or None, **more)


def _message(entry: SandboxEntry) -> dict[str, object]:
    by = "bot" if entry.to == BOT else "user"
    to = {"group_id": entry.to.removeprefix(GROUP)} if entry.to.startswith(GROUP) else {"recipient_id": entry.to}
    return _shape(entry, entry.id, "1", by, name="Sandbox", text=entry.text, **to)


def _shape(one: ChatMessage | SandboxEntry, guid: str, sender: str, by: str, **more: object) -> dict[str, object]:
    own = {"id": id_of(one), "source_guid": guid, "created_at": one.at // SECOND, "user_id": sender}
    usual = {"system": by == "system", "avatar_url": None, "platform": "gm"}
    lists: dict[str, object] = {"favorited_by": [], "attachments": []}
    return {**own, "sender_id": sender, "sender_type": by, **usual, **lists, **more}


def _inner(asked: ProviderRequest, name: str) -> Mapping[str, Any]:
    found = (asked.fields or {}).get(name)
    return found if isinstance(found, dict) else {}


def _token(asked: ProviderRequest) -> str:
    return asked.headers.get("x-access-token") or asked.query.get("token", "")


def _envelope(response: Mapping[str, Any], status: int) -> Response:
    return SandboxJson({"response": response, "meta": {"code": status}}, status_code=status)


def _error(status: int) -> Response:
    errors = [ERRORS.get(status, "Simulated error")]
    return SandboxJson({"response": None, "meta": {"code": status, "errors": errors}}, status_code=status)
