"""Channels: all of them, and the page of one, with its session and the code that links a phone to it."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from ...access.permissions import OPERATE, READ
from ...outbound.service import OutboundService
from ...outbound.sessions import qr_codes
from ..live_updates import Fragments
from ..renderer import PageRenderer, ViewRoute

TURNS = 10_000_000  # microseconds after which the picture of a code is fetched anew


def routes(desk: OutboundService, frame: PageRenderer) -> list[ViewRoute]:
    """Their routes."""

    async def page(_: Request) -> Response:
        """Every channel, by name."""
        return frame.page("channels.html", items=await desk.channels.all())

    async def show(request: Request) -> Response:
        """One channel: how it stands, its session, its limits."""
        name = request.path_params["name"]
        return frame.page("channel.html", channel=name, fragments=await render(name), trial=None)

    async def probe_channel(request: Request) -> Response:
        """Ask its provider who we are; nothing is sent."""
        name = request.path_params["name"]
        trial = await desk.channels.probe_channel(name)
        return frame.page("channel.html", channel=name, fragments=await render(name), trial=trial)

    async def live(request: Request) -> Response:
        """The stream of one channel's page."""
        return await frame.answer_live(request, lambda: render(request.path_params["name"]))

    async def code(request: Request) -> Response:
        """The code to scan, as a picture; asked for anew each time, and kept nowhere."""
        scan = await desk.channels.scan(request.path_params["name"])
        if scan.code is None:  # a page that still shows it learns the rest a moment later
            return Response(status_code=204)
        return Response(
            qr_codes.render_svg(scan.code), media_type="image/svg+xml", headers={"cache-control": "no-store"}
        )

    async def render(name: str) -> Fragments:
        channel, turn = await desk.channels.one(name), desk.clock.now() // TURNS
        return {
            "standing": frame.piece("channel_standing.html", channel=channel, turn=turn),
            "facts": frame.piece("channel_facts.html", channel=channel),
        }

    return [
        ViewRoute("GET", "/channels", page, READ, whole=True),
        ViewRoute("GET", "/channels/{name}", show, READ, whole=True),
        ViewRoute("GET", "/channels/{name}/live", live, READ, whole=True),
        ViewRoute("GET", "/channels/{name}/code.svg", code, OPERATE, whole=True),
        ViewRoute("POST", "/channels/{name}/try", probe_channel, OPERATE, whole=True),
    ]
