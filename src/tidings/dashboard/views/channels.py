"""Channels, with their sessions, QR codes and connection tests, and their gradual rollout."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from ...access.permissions import OPERATE
from ...outbound.rollout.service import ROLLOUT_MODES
from ...outbound.sessions import qr_codes
from ..forms import Form, integer
from ..live_updates import Fragments
from ..renderer import Views, get, post
from ..responses import pick_action, redirect, redirect_on_error, unknown_action

QR_CODE_LIFETIME = 10_000_000  # microseconds after which the browser fetches the QR code again


class ChannelViews(Views):
    """Channels, and the page of one with its session, its QR code and a connection test."""

    @get("/channels", engine_wide=True)
    async def page(self, _: Request) -> Response:
        """List all channels by name."""
        return self._renderer.page("channels.html", items=await self._outbound.channels.all())

    @get("/channels/{name}", engine_wide=True)
    async def show(self, request: Request, name: str) -> Response:
        """Show one channel: state, session and limits."""
        return self._renderer.page("channel.html", channel=name, fragments=await self._render(name), trial=None)

    @post("/channels/{name}/test", OPERATE, engine_wide=True)
    async def test(self, request: Request, form: Form, name: str) -> Response:
        """Check the credentials with the provider; sends nothing."""
        trial = await self._outbound.channels.probe_channel(name)
        return self._renderer.page("channel.html", channel=name, fragments=await self._render(name), trial=trial)

    @get("/channels/{name}/live", engine_wide=True)
    async def live(self, request: Request, name: str) -> Response:
        return await self._renderer.answer_live(request, lambda: self._render(name))

    @get("/channels/{name}/code.svg", OPERATE, engine_wide=True)
    async def code(self, request: Request, name: str) -> Response:
        """Return the QR code to scan as SVG; it is fetched from the provider each time and never stored."""
        scan = await self._outbound.channels.scan(name)
        if scan.code is None:  # the page is about to update itself
            return Response(status_code=204)
        return Response(
            qr_codes.render_svg(scan.code), media_type="image/svg+xml", headers={"cache-control": "no-store"}
        )

    @post("/channels/{name}/{action}", OPERATE, engine_wide=True)
    async def switch(self, request: Request, form: Form, name: str, action: str) -> Response:
        """Pause or resume one channel."""
        await pick_action(self._outbound.channels, action, "pause", "resume")(name)
        return redirect("/")

    async def _render(self, name: str) -> Fragments:
        channel, turn = await self._outbound.channels.one(name), self._outbound.clock.now() // QR_CODE_LIFETIME
        return {
            "status": self._renderer.piece("channel_state.html", channel=channel, turn=turn),
            "facts": self._renderer.piece("channel_facts.html", channel=channel),
        }


class RolloutViews(Views):
    """Gradual rollout of channels: mode, share, history, change and undo."""

    @get("/rollout", engine_wide=True)
    async def page(self, _: Request) -> Response:
        """List all channels with mode and share."""
        return self._renderer.page("rollouts.html", items=await self._outbound.rollout.all())

    @get("/rollout/{name}", engine_wide=True)
    async def show(self, request: Request, name: str) -> Response:
        """Show the rollout of one channel and its history."""
        found = await self._outbound.rollout.show(name)
        return self._renderer.page(
            "rollout.html", rollout=found, modes=ROLLOUT_MODES, problem=request.query_params.get("problem")
        )

    @post("/rollout/{name}/{action}", OPERATE, engine_wide=True)
    async def act(self, request: Request, form: Form, name: str, action: str) -> Response:
        """Change the rollout, or undo the last change."""
        target = f"/rollout/{name}"
        with redirect_on_error(target):
            match action:
                case "set":
                    share, reason = integer(form, "share"), form.get("reason")
                    await self._outbound.rollout.set(name, mode=form.get("mode"), share=share, reason=reason)
                case "undo":
                    await self._outbound.rollout.back(name)
                case _:
                    raise unknown_action(action)
        return redirect(target)
