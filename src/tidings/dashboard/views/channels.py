"""Channels, and the page of one with its session, its QR code and a connection test."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from ...access.permissions import OPERATE, READ
from ...app import App
from ...outbound.sessions import qr_codes
from ..live_updates import Fragments
from ..renderer import PageRenderer, ViewRoute

QR_CODE_LIFETIME = 10_000_000  # microseconds after which the browser fetches the QR code again


def routes(app: App, renderer: PageRenderer) -> list[ViewRoute]:
    """Return the channel routes."""
    service = app.outbound

    async def page(_: Request) -> Response:
        """List all channels by name."""
        return renderer.page("channels.html", items=await service.channels.all())

    async def show(request: Request) -> Response:
        """Show one channel: state, session and limits."""
        name = request.path_params["name"]
        return renderer.page("channel.html", channel=name, fragments=await render(name), trial=None)

    async def test(request: Request) -> Response:
        """Check the credentials with the provider; sends nothing."""
        name = request.path_params["name"]
        trial = await service.channels.probe_channel(name)
        return renderer.page("channel.html", channel=name, fragments=await render(name), trial=trial)

    async def live(request: Request) -> Response:
        """Stream the page of one channel."""
        return await renderer.answer_live(request, lambda: render(request.path_params["name"]))

    async def code(request: Request) -> Response:
        """Return the QR code to scan as SVG; it is fetched from the provider each time and never stored."""
        scan = await service.channels.scan(request.path_params["name"])
        if scan.code is None:  # the page is about to update itself
            return Response(status_code=204)
        return Response(
            qr_codes.render_svg(scan.code), media_type="image/svg+xml", headers={"cache-control": "no-store"}
        )

    async def render(name: str) -> Fragments:
        channel, turn = await service.channels.one(name), service.clock.now() // QR_CODE_LIFETIME
        return {
            "status": renderer.piece("channel_state.html", channel=channel, turn=turn),
            "facts": renderer.piece("channel_facts.html", channel=channel),
        }

    return [
        ViewRoute("GET", "/channels", page, READ, whole=True),
        ViewRoute("GET", "/channels/{name}", show, READ, whole=True),
        ViewRoute("GET", "/channels/{name}/live", live, READ, whole=True),
        ViewRoute("GET", "/channels/{name}/code.svg", code, OPERATE, whole=True),
        ViewRoute("POST", "/channels/{name}/test", test, OPERATE, whole=True),
    ]
