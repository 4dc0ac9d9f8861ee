"""Event subscriptions (webhooks), and the page of one: state, test event, secret rotation."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from ...access.permissions import ADMIN
from ...model.errors import TidingsError
from ...outbound.events import event_types
from ..forms import Form, split_words
from ..renderer import Views, get, post
from ..responses import next_page_query, redirect, redirect_on_error, unknown_action

PAGE = 50
DONE = {"test": "Test event queued.", "pause": "Subscription turned off.", "resume": "Subscription turned on."}


class SubscriptionViews(Views):
    @get("/subscriptions")
    async def page(self, request: Request, form: Form | None = None, error: TidingsError | None = None) -> Response:
        """List subscriptions, newest first, with the form for a new one."""
        after = request.query_params.get("after") or None
        found = await self._outbound.subscriptions.page(limit=PAGE, after=after)
        return self._renderer.form(
            "subscriptions.html",
            form,
            error,
            items=found.items,
            more=next_page_query(found),
            types=event_types.EVENT_TYPES,
        )

    @post("/subscriptions", ADMIN)
    async def add(self, request: Request, form: Form) -> Response:
        """Create a subscription; the response shows its secret once."""
        body = {"url": form.get("url", ""), "events": split_words(form.get("events", ""))}
        try:
            made = await self._outbound.subscriptions.add(body, key=form.get("key"))
        except TidingsError as error:
            return await self.page(request, form, error)
        return self._renderer.page("subscription.html", subscription=made.answer, secret=made.answer["secret"])

    @get("/subscriptions/{id}")
    async def show(self, request: Request, id_: str) -> Response:
        found = await self._outbound.subscriptions.show(id_)
        problem, done = request.query_params.get("problem"), DONE.get(request.query_params.get("done", ""))
        return self._renderer.page("subscription.html", subscription=found, problem=problem, done=done)

    @post("/subscriptions/{id}/{action}", ADMIN)
    async def act(self, request: Request, form: Form, id_: str, action: str) -> Response:
        subscriptions = self._outbound.subscriptions
        with redirect_on_error(f"/subscriptions/{id_}"):
            match action:
                case "test":
                    await subscriptions.test(id_)
                case "rotate":
                    rotated = await subscriptions.rotate(id_)
                    return self._renderer.page("subscription.html", subscription=rotated, secret=rotated["secret"])
                case "pause" | "resume":
                    await subscriptions.edit(id_, {"active": action == "resume"})
                case "remove":
                    await subscriptions.remove(id_)
                    return redirect("/subscriptions")
                case _:
                    raise unknown_action(action)
        return redirect(f"/subscriptions/{id_}", done=action)
