"""Subscriptions: who is told of what happens, and the page of one: its state, a test, another secret."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from ...access.permissions import ADMIN
from ...model.errors import TidingsError
from ...outbound.events import event_types
from ...outbound.service import OutboundService
from ..forms import read_form, split_words
from ..renderer import (
    PageRenderer,
    ViewRoute,
    Views,
    next_page_query,
    redirect,
    redirect_on_error,
    unknown_action,
)

PAGE = 50
DONE = {"test": "A test is on its way.", "pause": "It is told nothing now.", "resume": "It is told again."}


def routes(desk: OutboundService, frame: PageRenderer) -> list[ViewRoute]:
    """Their routes."""
    views = _SubscriptionViews(desk, frame)
    return [
        ViewRoute("GET", "/subscriptions", views.page),
        ViewRoute("POST", "/subscriptions", views.add, ADMIN),
        ViewRoute("GET", "/subscriptions/{id}", views.show),
        ViewRoute("POST", "/subscriptions/{id}/{action}", views.act, ADMIN),
    ]


class _SubscriptionViews(Views):
    async def page(
        self, request: Request, form: Mapping[str, str] | None = None, error: TidingsError | None = None
    ) -> Response:
        """Subscriptions, newest first, and the form for a new one."""
        after = request.query_params.get("after") or None
        found = await self._desk.subscriptions.page(limit=PAGE, after=after)
        return self._frame.form(
            "subscriptions.html",
            form,
            error,
            items=found.items,
            more=next_page_query(found),
            types=event_types.EVENT_TYPES,
        )

    async def add(self, request: Request) -> Response:
        """A new one; its secret is shown on the page that follows, and never again."""
        form = await read_form(request)
        body = {"url": form.get("url", ""), "events": split_words(form.get("events", ""))}
        try:
            made = await self._desk.subscriptions.add(body, key=form.get("key"))
        except TidingsError as error:
            return await self.page(request, form, error)
        return self._one(made.answer, secret=made.answer["secret"])

    async def show(self, request: Request) -> Response:
        """One subscription."""
        found = await self._desk.subscriptions.show(request.path_params["id"])
        query = request.query_params
        return self._one(found, problem=query.get("problem"), done=DONE.get(query.get("done", "")))

    async def act(self, request: Request) -> Response:
        """What a person asks of one subscription."""
        id_, action = request.path_params["id"], request.path_params["action"]
        subscriptions = self._desk.subscriptions
        with redirect_on_error(f"/subscriptions/{id_}"):
            match action:
                case "test":
                    await subscriptions.test(id_)
                case "rotate":
                    rotated = await subscriptions.rotate(id_)
                    return self._one(rotated, secret=rotated["secret"])
                case "pause" | "resume":
                    await subscriptions.edit(id_, {"active": action == "resume"})
                case "remove":
                    await subscriptions.remove(id_)
                    return redirect("/subscriptions")
                case _:
                    raise unknown_action(action)
        return redirect(f"/subscriptions/{id_}", done=action)

    def _one(self, subscription: Mapping[str, Any], **more: Any) -> Response:
        shown = {"secret": None, "problem": None, "done": None} | more
        return self._frame.page("subscription.html", subscription=subscription, **shown)
