"""Schedules from the page: a form for a new one or for changes, with its next firings before it is saved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from ...access.permissions import OPERATE, READ, SEND
from ...model.errors import Invalid, NotFound, TidingsError
from ...outbound.schedules.catch_up import CATCH_UP_POLICIES
from ...outbound.schedules.recurrence import RULE_KINDS
from ...outbound.service import OutboundService
from ..forms import integer, read_form, split_words
from ..renderer import PageRenderer, ViewRoute, Views, json_response, redirect

AHEAD = 5
MADE = ("message", "broadcast")
MAKING = ("channel", "to", "list", "text", "subject", "template")  # fields of what it makes
PLAIN = ("name", "timezone", "start", "end", "catch_up", "catch_up_window")


def routes(desk: OutboundService, frame: PageRenderer) -> list[ViewRoute]:
    """Their routes; they stand before those of one schedule."""
    views = _ScheduleForms(desk, frame)
    return [
        ViewRoute("GET", "/schedules/new", views.blank),
        ViewRoute("POST", "/schedules/preview", views.preview, READ),
        ViewRoute("POST", "/schedules", views.create, SEND),
        ViewRoute("GET", "/schedules/{id}/edit", views.filled),
        ViewRoute("POST", "/schedules/{id}/edit", views.edit, OPERATE),
    ]


class _ScheduleForms(Views):
    async def blank(self, _: Request) -> Response:
        """The form for a new one."""
        return await self._page({"kind": "daily", "timezone": self._frame.timezone.key, "makes": "message"})

    async def filled(self, request: Request) -> Response:
        """The form with what one schedule says."""
        schedule = await self._desk.schedules.show(request.path_params["id"])
        return await self._page(_typed(schedule), schedule=schedule)

    async def preview(self, request: Request) -> Response:
        """When it would fire, while the form is being filled in."""
        return json_response({"preview": self._firings(await read_form(request))})

    async def create(self, request: Request) -> Response:
        """Save a new one, or only show when it would fire; a mistake is told beside its field."""
        form = await read_form(request)
        if form.get("do") == "preview":
            return await self._page(form)
        try:
            made = await self._desk.schedules.create(
                {**_timing(form), form.get("makes", ""): _making(form)},
                timezone=self._frame.timezone,
                key=form.get("key"),
            )
        except TidingsError as error:
            return await self._page(form, error)
        return redirect(f"/schedules/{made.answer['id']}")

    async def edit(self, request: Request) -> Response:
        """Save changes; what the form has no field for stays as it is."""
        id_, form = request.path_params["id"], await read_form(request)
        schedule = await self._desk.schedules.show(id_)
        if form.get("do") == "preview":
            return await self._page(form, schedule=schedule)
        kept = {name: value for name, value in schedule[schedule["makes"]].items() if name not in MAKING}
        emptied: dict[str, Any] = dict.fromkeys(("start", "end", "count", "skip"))
        try:
            body = {**emptied, **_timing(form), schedule["makes"]: kept | _making(form)}
            before = _typed(schedule)
            if (form.get("kind"), form.get("rule")) == (before["kind"], before["rule"]):
                body["rule"] = schedule["rule"]  # with the parts that one line does not show
            await self._desk.schedules.edit(id_, body)
        except NotFound:
            raise
        except TidingsError as error:
            return await self._page(form, error, schedule=schedule)
        return redirect(f"/schedules/{id_}")

    def _firings(self, form: Mapping[str, str]) -> str:
        try:
            timing = {name: value for name, value in _timing(form).items() if name in _FORESEEN}
            found = self._desk.schedules.foresee({**timing, "n": AHEAD}, timezone=self._frame.timezone)
        except TidingsError as error:
            return self._frame.piece("firings.html", error=error)
        return self._frame.piece("firings.html", found=found, error=None)

    async def _page(
        self,
        form: Mapping[str, str],
        error: TidingsError | None = None,
        schedule: Mapping[str, Any] | None = None,
    ) -> Response:
        if error is not None and error.field is not None:
            error.field = error.field.removeprefix("message.").removeprefix("broadcast.")
        templates = await self._desk.templates.page(limit=200)
        return self._frame.form(
            "schedule_form.html",
            form,
            error,
            schedule=schedule,
            kinds=RULE_KINDS,
            policies=CATCH_UP_POLICIES,
            lists=await self._desk.audience.names(),
            templates=[found["name"] for found in templates.items],
            preview=self._firings(form) if form.get("rule") else "",
        )


_FORESEEN = ("rule", "timezone", "start", "end", "count", "skip")


def _timing(form: Mapping[str, str]) -> dict[str, Any]:
    """When it fires, as a caller of the API would write it."""
    if "rule" not in form:
        raise Invalid("the rule is empty", field="rule", remedy="write when it fires, such as 09:00")
    timing: dict[str, Any] = {name: form[name] for name in PLAIN if name in form}
    if (count := integer(form, "count")) is not None:
        timing["count"] = count
    if "skip" in form:
        timing["skip"] = split_words(form["skip"])
    return timing | {"rule": {form.get("kind", "daily"): form["rule"]}}


def _making(form: Mapping[str, str]) -> dict[str, Any]:
    """What it makes: a template's words or its own, for one person or for a list."""
    if form.get("makes") not in MADE:
        raise Invalid("nothing says what it makes", field="makes", remedy="choose a message or a broadcast")
    whom = "to" if form["makes"] == "message" else "list"
    names = ("channel", whom, *(("template",) if "template" in form else ("text", "subject")))
    return {name: form[name] for name in names if name in form}


def _typed(schedule: Mapping[str, Any]) -> dict[str, str]:
    """A schedule as its form shows it."""
    made = schedule[schedule["makes"]]
    kind, rule = next(iter(schedule["rule"].items()))
    typed = {
        **{name: schedule[name] for name in PLAIN},
        **{name: made.get(name) for name in MAKING},
        "makes": schedule["makes"],
        "count": schedule["count"],
        "skip": ", ".join(schedule["skip"]),
        "kind": kind,
        "rule": rule if isinstance(rule, str) else _in_one_line(rule),
    }
    return {name: str(value) for name, value in typed.items() if value is not None}


def _in_one_line(rule: Mapping[str, Any]) -> str:
    """A rule that was written with its parts, as one line."""
    days = ", ".join(str(day) for day in rule.get("on", ()))
    times = ", ".join(at.removesuffix(":00") if len(at) > 5 else at for at in rule.get("at", ()))
    return f"{days} {times}".strip()
