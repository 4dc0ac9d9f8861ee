"""The form for a new schedule or for changes, with a preview of its next occurrences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from ...access.permissions import OPERATE, READ, SEND
from ...app import App
from ...model.errors import Invalid, NotFound, TidingsError
from ...outbound.schedules.catch_up import CATCH_UP_POLICIES
from ...outbound.schedules.recurrence import RULE_KINDS
from ...outbound.service import OutboundService
from ..forms import integer, read_form, split_words
from ..renderer import PageRenderer, ViewRoute, Views
from ..responses import json_response, redirect

PREVIEWED = 5
CONTENT_KINDS = ("message", "broadcast")
CONTENT_FIELDS = ("channel", "to", "list", "text", "subject", "template")
PLAIN = ("name", "timezone", "start", "end", "catch_up", "catch_up_window")


def routes(app: App, renderer: PageRenderer) -> list[ViewRoute]:
    """Return the schedule form routes; they must come before those of one schedule."""
    views = _ScheduleForms(app.outbound, renderer)
    return [
        ViewRoute("GET", "/schedules/new", views.blank),
        ViewRoute("POST", "/schedules/preview", views.preview, READ),
        ViewRoute("POST", "/schedules", views.create, SEND),
        ViewRoute("GET", "/schedules/{id}/edit", views.filled),
        ViewRoute("POST", "/schedules/{id}/edit", views.edit, OPERATE),
    ]


class _ScheduleForms(Views[OutboundService]):
    async def blank(self, _: Request) -> Response:
        """Show the form for a new schedule."""
        return await self._page({"kind": "daily", "timezone": self._renderer.timezone.key, "creates": "message"})

    async def filled(self, request: Request) -> Response:
        """Show the form with the values of one schedule."""
        schedule = await self._service.schedules.show(request.path_params["id"])
        return await self._page(_form_values(schedule), schedule=schedule)

    async def preview(self, request: Request) -> Response:
        """Return the next occurrences, while the form is being filled in."""
        return json_response({"preview": self._preview(await read_form(request))})

    async def create(self, request: Request) -> Response:
        """Create the schedule, or only preview it; an error is shown next to its field."""
        form = await read_form(request)
        if form.get("do") == "preview":
            return await self._page(form)
        try:
            made = await self._service.schedules.create(
                {**_timing(form), form.get("creates", ""): _content(form)},
                timezone=self._renderer.timezone,
                key=form.get("key"),
            )
        except TidingsError as error:
            return await self._page(form, error)
        return redirect(f"/schedules/{made.answer['id']}")

    async def edit(self, request: Request) -> Response:
        """Save changes; values without a form field are kept."""
        id_, form = request.path_params["id"], await read_form(request)
        schedule = await self._service.schedules.show(id_)
        if form.get("do") == "preview":
            return await self._page(form, schedule=schedule)
        kept = {name: value for name, value in schedule[schedule["creates"]].items() if name not in CONTENT_FIELDS}
        emptied: dict[str, Any] = dict.fromkeys(("start", "end", "count", "excluded_dates"))
        try:
            body = {**emptied, **_timing(form), schedule["creates"]: kept | _content(form)}
            before = _form_values(schedule)
            if (form.get("kind"), form.get("rule")) == (before["kind"], before["rule"]):
                body["rule"] = schedule["rule"]  # keeps parts that the form does not show
            await self._service.schedules.edit(id_, body)
        except NotFound:
            raise
        except TidingsError as error:
            return await self._page(form, error, schedule=schedule)
        return redirect(f"/schedules/{id_}")

    def _preview(self, form: Mapping[str, str]) -> str:
        try:
            timing = {name: value for name, value in _timing(form).items() if name in _PREVIEW_FIELDS}
            found = self._service.schedules.foresee({**timing, "n": PREVIEWED}, timezone=self._renderer.timezone)
        except TidingsError as error:
            return self._renderer.piece("schedule_preview.html", error=error)
        return self._renderer.piece("schedule_preview.html", found=found, error=None)

    async def _page(
        self, form: Mapping[str, str], error: TidingsError | None = None, schedule: Mapping[str, Any] | None = None
    ) -> Response:
        if error is not None and error.field is not None:
            error.field = error.field.removeprefix("message.").removeprefix("broadcast.")
        templates = await self._service.templates.page(limit=200)
        return self._renderer.form(
            "schedule_form.html",
            form,
            error,
            schedule=schedule,
            kinds=RULE_KINDS,
            policies=CATCH_UP_POLICIES,
            lists=await self._service.audience.names(),
            templates=[found["name"] for found in templates.items],
            preview=self._preview(form) if form.get("rule") else "",
        )


_PREVIEW_FIELDS = ("rule", "timezone", "start", "end", "count", "excluded_dates")


def _timing(form: Mapping[str, str]) -> dict[str, Any]:
    """Return the timing as in the body of an API request."""
    if "rule" not in form:
        raise Invalid("the rule is empty", field="rule", remedy="enter a rule, such as 09:00")
    timing: dict[str, Any] = {name: form[name] for name in PLAIN if name in form}
    if (count := integer(form, "count")) is not None:
        timing["count"] = count
    if "excluded_dates" in form:
        timing["excluded_dates"] = split_words(form["excluded_dates"])
    return timing | {"rule": {form.get("kind", "daily"): form["rule"]}}


def _content(form: Mapping[str, str]) -> dict[str, Any]:
    """Return the message or broadcast that the schedule creates."""
    if form.get("creates") not in CONTENT_KINDS:
        raise Invalid("the content type is missing", field="creates", remedy="choose a message or a broadcast")
    recipient = "to" if form["creates"] == "message" else "list"
    names = ("channel", recipient, *(("template",) if "template" in form else ("text", "subject")))
    return {name: form[name] for name in names if name in form}


def _form_values(schedule: Mapping[str, Any]) -> dict[str, str]:
    """Return a schedule as form values."""
    made = schedule[schedule["creates"]]
    kind, rule = next(iter(schedule["rule"].items()))
    values = {
        **{name: schedule[name] for name in PLAIN},
        **{name: made.get(name) for name in CONTENT_FIELDS},
        "creates": schedule["creates"],
        "count": schedule["count"],
        "excluded_dates": ", ".join(schedule["excluded_dates"]),
        "kind": kind,
        "rule": rule if isinstance(rule, str) else _in_one_line(rule),
    }
    return {name: str(value) for name, value in values.items() if value is not None}


def _in_one_line(rule: Mapping[str, Any]) -> str:
    """Format a structured rule as one line."""
    days = ", ".join(str(day) for day in rule.get("on", ()))
    times = ", ".join(at.removesuffix(":00") if len(at) > 5 else at for at in rule.get("at", ()))
    return f"{days} {times}".strip()
