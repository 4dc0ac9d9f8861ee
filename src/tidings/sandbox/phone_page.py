"""The sandbox phone: a server-rendered page, kept live by server-sent events (SSE) with rendered fragments.

The same macros render conversation rows and messages on the first load and in the stream; the script only
inserts them.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode
from zlib import crc32

import orjson
from jinja2 import Environment, FileSystemLoader
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from .control_routes import faults_of
from .conversations import SandboxConversation
from .faults import RECIPIENT_FAULTS
from .group_chats import CHAT_CHANNELS
from .live_feed import FeedBatch
from .simulator import SandboxSimulator

HERE = Path(__file__).parent
ROWS = 200  # listed conversations; the others are counted
KEEP_ALIVE = 15.0
COALESCE = 0.1  # seconds between batches, so that a drill at full speed causes few renderings
HUES = 8
SESSIONS: Mapping[str, tuple[str, str, tuple[str, str, str]]] = {
    "waha": ("/sandbox/waha/{name}", "status", ("WORKING", "STARTING", "SCAN_QR_CODE")),
    "gateway": ("/sandbox/gateway", "connectionState", ("CONNECTED", "OPENING", "UNPAIRED")),
    "evolution": ("/sandbox/evolution/{name}", "state", ("open", "connecting", "qr")),
}
"""Control route of a provider's sessions, the field for their state, and its values: works, away, out."""
HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}


def routes(simulator: SandboxSimulator) -> Sequence[BaseRoute]:
    """Return the routes of the page, its stream and its static files."""
    page = _PhonePage(simulator)
    return [
        Route("/", page.show, methods=["GET"]),
        Route("/sandbox", page.show, methods=["GET"]),
        Route("/sandbox/stream", page.stream, methods=["GET"]),
        Mount("/sandbox/static", StaticFiles(directory=HERE / "static"), name="static"),
    ]


@dataclass(frozen=True, slots=True)
class _ConversationView:
    """A conversation as shown in the templates."""

    of: SandboxConversation
    key: str
    href: str
    hue: int
    initials: str


def _view(conversation: SandboxConversation) -> _ConversationView:
    key = f"{conversation.channel}/{conversation.to}"
    query = urlencode({"channel": conversation.channel, "to": conversation.to})
    words = re.findall(r"[^\W\d_]+|\d+", conversation.to)
    initials = "".join(word[0] for word in words[:2]).upper() if words and words[0].isalpha() else "#"
    return _ConversationView(conversation, key, f"?{query}", crc32(key.encode()) % HUES, initials)


# Each template is compiled once per process.
_TEMPLATES = Environment(loader=FileSystemLoader(HERE), autoescape=True, trim_blocks=True, lstrip_blocks=True)


class _PhonePage:
    def __init__(self, simulator: SandboxSimulator) -> None:
        self._simulator = simulator

    @property
    def _macros(self) -> Any:
        return _TEMPLATES.get_template("pieces.html").module

    async def show(self, request: Request) -> Response:
        """Show the page with the conversation in the query, or with the newest one."""
        views = [_view(one) for one in islice(self._simulator.conversations.newest_first(), ROWS)]
        picked = self._picked(request.query_params)
        html = _TEMPLATES.get_template("page.html").render(
            root=request.scope.get("root_path", ""),
            views=views,
            more=len(self._simulator.conversations) - len(views),
            open=picked or (views[0] if views else None),
            picked=picked is not None,
            counts=self._simulator.tally.counts(),
            faults=faults_of(self._simulator),
            words=RECIPIENT_FAULTS,
            can_report=self._simulator.callbacks.can_tell,
            sessions=self._sessions(),
            chat_channels=CHAT_CHANNELS,
        )
        return HTMLResponse(html, headers=HEADERS)

    async def stream(self, _: Request) -> Response:
        """Stream server-sent events: `news` with fragments, `stale` when the page must reload its content."""
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        return StreamingResponse(self._events(), media_type="text/event-stream", headers=headers)

    async def _events(self) -> AsyncIterator[bytes]:
        with self._simulator.feed.listen() as listener:
            # A page that reconnects may have missed updates.
            yield b"retry: 1000\nevent: stale\ndata: {}\n\n"
            while (batch := await listener.next(KEEP_ALIVE)) is not None:
                yield self._event(batch)
                await self._simulator.environment.sleep(COALESCE)

    def _event(self, batch: FeedBatch) -> bytes:
        if batch.missed:
            return b"event: stale\ndata: {}\n\n"
        if not batch.entries and not batch.faults_changed:
            return b": keep-alive\n\n"
        return b"event: news\ndata: " + orjson.dumps(self._news(batch)) + b"\n\n"

    def _news(self, batch: FeedBatch) -> dict[str, object]:
        news: dict[str, object] = {"counts": self._simulator.tally.counts()}
        if batch.faults_changed:
            news["faults"] = faults_of(self._simulator)
            news["sessions"] = str(self._macros.sessions(self._sessions()))
        keys = dict.fromkeys((entry.channel, entry.to) for entry in batch.entries)
        found = [one for key in keys if (one := self._simulator.conversations.find(*key)) is not None]
        views = [_view(one) for one in sorted(found, key=lambda one: one.last.n)]
        news["rows"] = [{"key": view.key, "html": str(self._macros.row(view, False))} for view in views]
        news["messages"] = [
            {
                "key": f"{entry.channel}/{entry.to}",
                "n": entry.n,
                "html": str(self._macros.message(entry, self._simulator.callbacks.can_tell(entry.n))),
            }
            for entry in batch.entries
            if entry.to
        ]
        return news

    def _sessions(self) -> list[dict[str, object]]:
        """Return the simulated sessions with the request of each button."""
        return [
            {
                "provider": provider,
                "name": name,
                "state": self._simulator.sessions.state(provider, name),
                "path": path.format(name=quote(name, safe="")),
                "field": field,
                **dict(zip(("works", "away", "out"), states, strict=True)),
            }
            for provider, (path, field, states) in SESSIONS.items()
            for name in self._simulator.sessions.names(provider)
        ]

    def _picked(self, query: Mapping[str, str]) -> _ConversationView | None:
        found = self._simulator.conversations.find(query.get("channel", ""), query.get("to", ""))
        return None if found is None else _view(found)
