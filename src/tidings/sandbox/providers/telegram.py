"""Simulated Telegram Bot API: the methods for sending, with Telegram's errors.

Every well-formed token is a bot, except those whose second half begins with `wrong`; a malformed one gets the
answer of the public host. Fault codes: the names in `ERRORS`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from html.parser import HTMLParser
from itertools import count
from typing import Any
from urllib.parse import parse_qsl

import orjson
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from tidings.model.errors import Invalid, TemporaryError, TooLarge
from tidings.model.time import SECOND
from tidings.sandbox.faults import FaultKind
from tidings.sandbox.group_chats import ChatMessage, GroupChats
from tidings.sandbox.ledger import SandboxEntry
from tidings.sandbox.providers.telegram_errors import (
    BAD_REQUEST,
    ERRORS,
    NO_METHOD,
    NOT_FOUND,
    UNAUTHORIZED,
    TelegramErrorReply,
)
from tidings.sandbox.responses import FaultyResponse, SandboxJson, read_body
from tidings.sandbox.simulator import ProviderArrival, SandboxSimulator

CHANNEL = "telegram"
MAX_TEXT = 4096
MAX_CAPTION = 1024
MAX_BYTES = 32_768
MEDIA = {f"send{name}".lower(): name.lower() for name in
         ("Photo", "Document", "Video", "Audio", "Voice", "Animation")}  # fmt: skip

_WEBHOOK = ("setwebhook", "deletewebhook", "getwebhookinfo")
_SECRET = re.compile(r"[A-Za-z0-9_-]{1,256}", re.ASCII)
_TOKEN = re.compile(r"([0-9]{1,20}):[A-Za-z0-9_-]{3,128}", re.ASCII)
_CHAT = re.compile(r"-?[0-9]{1,16}|@\w{3,64}", re.ASCII)


def routes(world: SandboxSimulator) -> Sequence[BaseRoute]:
    """Return one route for all methods, as Telegram has it."""
    return [Route("/bot{token}/{method}", _TelegramProvider(world).call, methods=["GET", "POST"])]


class _TelegramProvider:
    def __init__(self, world: SandboxSimulator) -> None:
        self._world = world
        self._unnamed = count(1)

    async def call(self, request: Request) -> Response:
        """Execute a method."""
        token = _TOKEN.fullmatch(request.path_params["token"])
        method = request.path_params["method"].lower()
        if token is None:
            return _refuse(NOT_FOUND)
        if token[0].partition(":")[2].startswith("wrong"):
            return _refuse(UNAUTHORIZED)
        bot = _bot(int(token[1]))
        if method == "getme":
            return _yes(_me(bot))
        if method not in ("sendmessage", "getupdates", *MEDIA, *_WEBHOOK):
            return _refuse(NO_METHOD)
        try:
            given = await _parameters(request)
            if method == "getupdates":
                return _yes(updates_of(self._world.chats, given))
            if method in _WEBHOOK:
                return self._webhook(token[1], method, given)
            problem = _problem(method, given)
            entry = self._world.receive(self._arrival(request, method, given, problem))
        except ClientDisconnect:
            return Response()  # an incomplete request is not recorded
        except (orjson.JSONDecodeError, UnicodeDecodeError):
            return _refuse(TelegramErrorReply(400, BAD_REQUEST + "can't parse JSON object"))
        except (TooLarge, HTTPException):
            return _refuse(ERRORS["too_large"])
        except TemporaryError:
            return _refuse(ERRORS["restart"])
        return FaultyResponse(entry, _answer(entry, given, method, bot, problem), self._world.environment)

    def _webhook(self, bot: str, method: str, given: Mapping[str, Any]) -> Response:
        """Handle setWebhook, deleteWebhook and getWebhookInfo."""
        callbacks, secret = self._world.callbacks, str(given.get("secret_token") or "")
        if method == "getwebhookinfo":
            target = callbacks.target(CHANNEL, bot)
            url = "" if target is None else target.url
            return _yes({"url": url, "has_custom_certificate": False, "pending_update_count": 0})
        if secret and not _SECRET.fullmatch(secret):
            return _refuse(TelegramErrorReply(400, BAD_REQUEST + "secret token contains unallowed characters"))
        try:
            url = str(given.get("url") or "") if method == "setwebhook" else ""
            callbacks.point(CHANNEL, bot, url, secret)
        except Invalid:
            return _refuse(TelegramErrorReply(400, BAD_REQUEST + "bad webhook: invalid url"))
        return _yes(True)

    def _arrival(
        self, request: Request, method: str, given: Mapping[str, Any], problem: TelegramErrorReply | None
    ) -> ProviderArrival:
        """Return the arrival. Telegram has no client id, so a sender may give one in a header."""
        id_ = request.headers.get("x-request-id", "")[:256]
        said = given.get("text" if method == "sendmessage" else "caption")
        extras = {key: value for key, value in given.items() if key not in ("chat_id", "text", "caption")}
        return ProviderArrival(
            CHANNEL,
            id=id_ or f"unnamed-{self._world.environment.wall()}-{next(self._unnamed)}",
            to=str(given.get("chat_id") or "")[:256],
            text=said if isinstance(said, str) else "",
            data=extras or None,
            problem=None if problem is None else problem.description,
        )


async def _parameters(request: Request) -> dict[str, Any]:
    """Return query and body together; the body as JSON, form or multipart."""
    given: dict[str, Any] = dict(request.query_params)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "multipart/form-data":
        async with request.form(max_files=10, max_fields=100) as form:
            given |= {
                key: f"attach://{value.filename}" if isinstance(value, UploadFile) else _value(value)
                for key, value in form.items()
            }
        return given
    body = await read_body(request.receive)
    if kind == "application/json":
        found = orjson.loads(body or b"{}")
        return given | (found if isinstance(found, dict) else {})
    return given | {key: _value(value) for key, value in parse_qsl(body.decode(), keep_blank_values=True)}


def _value(text: str) -> Any:
    """Parse a form value; nested objects are JSON texts."""
    if text[:1] not in ("{", "["):
        return text
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text


def _problem(method: str, given: Mapping[str, Any]) -> TelegramErrorReply | None:
    """Return the error of an invalid request, before any fault."""
    chat = str(given.get("chat_id") or "")
    if not chat:
        return ERRORS["chat_id_empty"]
    if not _CHAT.fullmatch(chat):
        return ERRORS["chat_not_found"]
    mode = str(given.get("parse_mode") or "none").lower()
    if mode not in ("none", "html", "markdown", "markdownv2"):
        return ERRORS["parse_mode"]
    if method != "sendmessage" and not given.get(MEDIA[method]):
        return TelegramErrorReply(400, f"{BAD_REQUEST}there is no {MEDIA[method]} in the request")
    return _wrong_text(method, given, mode)


def _wrong_text(method: str, given: Mapping[str, Any], mode: str) -> TelegramErrorReply | None:
    said = str(given.get("text" if method == "sendmessage" else "caption") or "")
    if method == "sendmessage" and not said.strip():
        return ERRORS["text_empty"]
    if len(said.encode(errors="replace")) > MAX_BYTES:
        return ERRORS["text_too_long"]
    if mode == "html":
        plain = _HtmlText()
        wrong = plain.read(said)
        if wrong is not None:
            return TelegramErrorReply(400, f"{BAD_REQUEST}can't parse entities: {wrong}")
        said = "".join(plain.text)
    if method != "sendmessage":
        return TelegramErrorReply(400, f"{BAD_REQUEST}message caption is too long") if len(said) > MAX_CAPTION else None
    return ERRORS["message_too_long"] if len(said) > MAX_TEXT and mode in ("none", "html") else None


class _HtmlText(HTMLParser):
    """Extracts the text without tags, and finds an unclosed tag."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.text: list[str] = []
        self._open: list[str] = []
        self._wrong: str | None = None

    def read(self, marked_up: str) -> str | None:
        """Parse the markup; return what is wrong with it."""
        self.feed(marked_up)
        self.close()
        if self._wrong is None and self._open:
            return f'Can\'t find end tag corresponding to start tag "{self._open[-1]}"'
        return self._wrong

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open.pop() != tag:
            self._wrong = self._wrong or f'Unmatched end tag at byte offset {self.getpos()[1]}, found "</{tag}>"'


def _answer(
    entry: SandboxEntry,
    given: Mapping[str, Any],
    method: str,
    bot: Mapping[str, object],
    problem: TelegramErrorReply | None,
) -> Response:
    if problem is not None:
        return _refuse(problem)
    match entry.did:
        case FaultKind.THROTTLED:
            wait = math.ceil(entry.wait)
            return _refuse(TelegramErrorReply(429, f"Too Many Requests: retry after {wait}", {"retry_after": wait}))
        case FaultKind.ERROR:
            return _refuse(ERRORS["restart"])
        case FaultKind.GONE:
            return _refuse(ERRORS["chat_not_found"])
        case FaultKind.REFUSED:
            return _refuse(_named(entry))
        case _:
            return _yes(_message(entry, given, method, bot))


def _named(entry: SandboxEntry) -> TelegramErrorReply:
    """Return the error that a fault names, or by its status."""
    if entry.code == "migrated":
        number = int(entry.to) if entry.to.lstrip("-").isdigit() else 1
        new = {"migrate_to_chat_id": -1_000_000_000_000 - abs(number)}
        return ERRORS["migrated"]._replace(parameters=new)
    by_status = {"401": UNAUTHORIZED, "403": ERRORS["blocked"], "404": NOT_FOUND, "500": ERRORS["restart"]}
    return ERRORS.get(entry.code) or by_status.get(entry.code) or TelegramErrorReply(400, BAD_REQUEST + entry.code)


def _refuse(refusal: TelegramErrorReply) -> SandboxJson:
    body: dict[str, object] = {"ok": False, "error_code": refusal.status, "description": refusal.description}
    headers = None
    if refusal.parameters:
        body["parameters"] = refusal.parameters
        wait = refusal.parameters.get("retry_after")
        headers = None if wait is None else {"retry-after": str(wait)}
    return SandboxJson(body, status_code=refusal.status, headers=headers)


def _yes(result: object) -> SandboxJson:
    return SandboxJson({"ok": True, "result": result})


def updates_of(chats: GroupChats, given: Mapping[str, Any]) -> list[dict[str, object]]:
    """Return messages of people from an offset on; update numbers follow their order."""
    first = int(given["offset"]) if str(given.get("offset", "")).lstrip("-").isdigit() else 0
    most = int(given["limit"]) if str(given.get("limit", "")).isdigit() else 100
    lines = list(chats.of(CHANNEL))
    wanted = [line for number, line in enumerate(lines, 1) if number >= first]
    if first < 0:
        wanted = lines[first:]
    start = len(lines) - len(wanted) + 1
    return [_update(line, start + i, lines) for i, line in enumerate(wanted[: max(1, min(most, 100))])]


def _update(line: ChatMessage, number: int, lines: Sequence[ChatMessage]) -> dict[str, object]:
    edited = next((one for one in lines if one.n == line.edits), None)
    message: dict[str, object] = {
        "message_id": (edited or line).n,
        **_sender(line),
        "chat": _chat(line.chat),
        "date": (edited or line).at // SECOND,
        "new_chat_title" if line.system else "text": line.text,
        **({"edit_date": line.at // SECOND} if edited else {}),
    }
    return {"update_id": number, "edited_message" if edited else "message": message}


def _sender(line: ChatMessage) -> dict[str, object]:
    """Return the sender; a chat as sender is an anonymous admin or a channel, behind a bot of Telegram's."""
    if line.sender.startswith("-") and line.sender[1:].isdigit():
        service = {"id": 1087968824, "is_bot": True, "first_name": "Group", "username": "GroupAnonymousBot"}
        return {"from": service, "sender_chat": _chat(line.sender)}
    id_ = int(line.sender) if line.sender.isdigit() else 1
    return {"from": {"id": id_, "is_bot": line.bot, "first_name": line.name or line.sender}}


def _bot(id_: int) -> dict[str, object]:
    return {"id": id_, "is_bot": True, "first_name": "Sandbox", "username": f"sandbox_{id_}_bot"}


def _me(bot: Mapping[str, object]) -> dict[str, object]:
    can = {"can_join_groups": True, "can_read_all_group_messages": False, "supports_inline_queries": False}
    return {**bot, **can}


def _message(
    entry: SandboxEntry, given: Mapping[str, Any], method: str, bot: Mapping[str, object]
) -> dict[str, object]:
    """Return a sent message as Telegram describes it; its number is that of the ledger."""
    file = {"file_id": f"file-{entry.n}", "file_unique_id": f"unique-{entry.n}"}
    said = str(given.get("text" if method == "sendmessage" else "caption") or "")
    if str(given.get("parse_mode")).lower() == "html":
        plain = _HtmlText()
        plain.read(said)
        said = "".join(plain.text)
    message: dict[str, object] = {
        **_numbers(entry, given),
        "from": bot,
        "chat": _chat(str(given["chat_id"])),
        "date": entry.at // SECOND,
    }
    match method:
        case "sendmessage":
            return {**message, "text": said}
        case "sendphoto":
            media: object = [{**file, "width": 90, "height": 90}]
        case "sendvideo" | "sendanimation":
            media = {**file, "width": 90, "height": 90, "duration": 1}
        case "sendaudio" | "sendvoice":
            media = {**file, "duration": 1}
        case _:
            media = file
    return {**message, MEDIA[method]: media, **({"caption": said} if said else {})}


def _numbers(entry: SandboxEntry, given: Mapping[str, Any]) -> dict[str, object]:
    wanted = given.get("ephemeral_message_parameters")
    if not isinstance(wanted, dict):
        return {"message_id": entry.n}
    receiver = {"id": wanted.get("receiver_user_id"), "is_bot": False, "first_name": "Ann"}
    return {"message_id": 0, "ephemeral_message_id": entry.n, "receiver_user": receiver}


def _chat(chat: str) -> dict[str, object]:
    if chat.startswith("@"):
        return {"id": -1_001_000_000_000, "type": "channel", "title": chat[1:], "username": chat[1:]}
    number = int(chat)
    if number > 0:
        return {"id": number, "type": "private", "first_name": "Ann"}
    return {"id": number, "type": "supergroup" if chat.startswith("-100") else "group", "title": "A group"}
