"""Recurring schedules, the page of one with its occurrences, and the form for a new one or for changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from ...access.permissions import OPERATE, READ, SEND
from ...model.errors import Invalid, NotFound, TidingsError
from ...outbound.schedules.catch_up import CATCH_UP_POLICIES
from ...outbound.schedules.recurrence import RULE_KINDS
from ..forms import Form, integer, query_values, split_words
from ..renderer import Views, get, post
from ..responses import json_response, next_page_query, pick_action, redirect, redirect_on_error

PREVIEWED = 5
CONTENT_KINDS = ("message", "broadcast")
CONTENT_FIELDS = ("channel", "to", "list", "text", "subject", "template")
PLAIN = ("name", "timezone", "start", "end", "catch_up", "catch_up_window")
PAGE = 50
UPCOMING = 10
LOGGED = 25


class ScheduleViews(Views):
    @get("/schedules/new")
    async def blank(self, _: Request) -> Response:
        return await self._page({"kind": "daily", "timezone": self._renderer.timezone.key, "creates": "message"})

    @get("/schedules/{id}/edit")
    async def filled(self, request: Request, id_: str) -> Response:
        schedule = await self._outbound.schedules.show(id_)
        return await self._page(_form_values(schedule), schedule=schedule)

    @post("/schedules/preview", READ)
    async def preview(self, request: Request, form: Form) -> Response:
        """Return the next occurrences, while the form is being filled in."""
        return json_response({"preview": self._preview(form)})

    @post("/schedules", SEND)
    async def create(self, request: Request, form: Form) -> Response:
        """Create the schedule, or only preview it; an error is shown next to its field."""
        if form.get("do") == "preview":
            return await self._page(form)
        try:
            made = await self._outbound.schedules.create(
                {**_timing(form), form.get("creates", ""): _content(form)},
                timezone=self._renderer.timezone,
                key=form.get("key"),
            )
        except TidingsError as error:
            return await self._page(form, error)
        return redirect(f"/schedules/{made.answer['id']}")

    @post("/schedules/{id}/edit", OPERATE)
    async def edit(self, request: Request, form: Form, id_: str) -> Response:
        """Save changes; values without a form field are kept."""
        schedule = await self._outbound.schedules.show(id_)
        if form.get("do") == "preview":
            return await self._page(form, schedule=schedule)
        kept = {name: value for name, value in schedule[schedule["creates"]].items() if name not in CONTENT_FIELDS}
        emptied: dict[str, Any] = dict.fromkeys(("start", "end", "count", "excluded_dates"))
        try:
            body = {**emptied, **_timing(form), schedule["creates"]: kept | _content(form)}
            before = _form_values(schedule)
            if (form.get("kind"), form.get("rule")) == (before["kind"], before["rule"]):
                body["rule"] = schedule["rule"]  # keeps parts that the form does not show
            await self._outbound.schedules.edit(id_, body)
        except NotFound:
            raise
        except TidingsError as error:
            return await self._page(form, error, schedule=schedule)
        return redirect(f"/schedules/{id_}")

    def _preview(self, form: Form) -> str:
        try:
            timing = {name: value for name, value in _timing(form).items() if name in _PREVIEW_FIELDS}
            found = self._outbound.schedules.foresee({**timing, "n": PREVIEWED}, timezone=self._renderer.timezone)
        except TidingsError as error:
            return self._renderer.piece("schedule_preview.html", error=error)
        return self._renderer.piece("schedule_preview.html", found=found, error=None)

    async def _page(
        self, form: Form, error: TidingsError | None = None, schedule: Mapping[str, Any] | None = None
    ) -> Response:
        if error is not None and error.field is not None:
            error.field = error.field.removeprefix("message.").removeprefix("broadcast.")
        templates = await self._outbound.templates.page(limit=200)
        return self._renderer.form(
            "schedule_form.html",
            form,
            error,
            schedule=schedule,
            kinds=RULE_KINDS,
            policies=CATCH_UP_POLICIES,
            lists=await self._outbound.audience.names(),
            templates=[found["name"] for found in templates.items],
            preview=self._preview(form) if form.get("rule") else "",
        )

    @get("/schedules")
    async def page(self, request: Request) -> Response:
        """List schedules, newest first."""
        asked = query_values(request, "state", "after")
        found = await self._outbound.schedules.page(limit=PAGE, **asked)
        return self._renderer.listing("schedules.html", found, asked)

    @get("/schedules/{id}")
    async def show(self, request: Request, id_: str) -> Response:
        """Show one schedule: its rule, upcoming and past occurrences."""
        query = request.query_params
        schedule = await self._outbound.schedules.show(id_)
        upcoming = [] if schedule["state"] == "ended" else await self._outbound.schedules.preview(id_, UPCOMING)
        log = await self._outbound.schedules.occurrences(id_, limit=LOGGED, after=query.get("after") or None)
        return self._renderer.page(
            "schedule.html",
            schedule=schedule,
            upcoming=upcoming,
            log=log.items,
            more=next_page_query(log),
            problem=query.get("problem"),
        )

    @post("/schedules/{id}/{action}", OPERATE)
    async def act(self, request: Request, form: Form, id_: str, action: str) -> Response:
        with redirect_on_error(f"/schedules/{id_}"):
            await pick_action(self._outbound.schedules, action, "pause", "resume", "end", "run")(id_)
        return redirect(f"/schedules/{id_}")


_PREVIEW_FIELDS = ("rule", "timezone", "start", "end", "count", "excluded_dates")


def _timing(form: Form) -> dict[str, Any]:
    """Return the timing as in the body of an API request."""
    if "rule" not in form:
        raise Invalid("the rule is empty", field="rule", remedy="enter a rule, such as 09:00")
    timing: dict[str, Any] = {name: form[name] for name in PLAIN if name in form}
    if (count := integer(form, "count")) is not None:
        timing["count"] = count
    if "excluded_dates" in form:
        timing["excluded_dates"] = split_words(form["excluded_dates"])
    return timing | {"rule": {form.get("kind", "daily"): form["rule"]}}


def _content(form: Form) -> dict[str, Any]:
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
