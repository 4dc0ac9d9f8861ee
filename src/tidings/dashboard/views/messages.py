"""Messages with their timelines, dead letters by cause, and upcoming messages by day."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from operator import itemgetter
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from ...access.permissions import OPERATE
from ...inputs.timezones import resolve_wall_time
from ...model.errors import Conflict, Invalid, NotFound
from ...model.time import iso, moment
from ...outbound.dead_letters import MAX_COUNTED
from ...outbound.message_actions import allowed_actions
from ...outbound.upcoming import UpcomingSpan
from ...store.port import Row
from ..forms import Form, number, query_values, read_multi_form
from ..live_updates import Fragments
from ..renderer import Views, get, post
from ..responses import pick_action, redirect, redirect_on_error, unknown_action

PAGE = 50
DAYS = 7
LISTED = 100
MAX_DISTANCE = timedelta(days=3660)


class MessageViews(Views):
    """Messages, and the page of one with its timeline and allowed actions."""

    @get("/messages")
    async def page(self, request: Request) -> Response:
        """List messages by state, channel and recipient."""
        asked = query_values(request, "state", "channel", "to", "after")
        found = await self._outbound.messages.page(limit=PAGE, **asked)
        return self._renderer.listing("messages.html", found, asked)

    @get("/messages/{id}")
    async def show(self, request: Request, id_: str) -> Response:
        """Show one message: state and reason, timeline and allowed actions."""
        message, fragments = await self._outbound.messages.show(id_), await self._render(id_)
        problem, phone = request.query_params.get("problem"), self._renderer.phone(request)
        return self._renderer.page("message.html", message=message, fragments=fragments, problem=problem, phone=phone)

    @get("/messages/{id}/live")
    async def live(self, request: Request, id_: str) -> Response:
        return await self._renderer.answer_live(request, lambda: self._render(id_))

    @post("/messages/{id}/{action}", OPERATE)
    async def act(self, request: Request, form: Form, id_: str, action: str) -> Response:
        """Perform an action; if the state does not allow it, show why."""
        messages, parser = self._outbound.messages, self._renderer.draft_parser()
        with redirect_on_error(f"/messages/{id_}"):
            if action == "reschedule":
                await messages.reschedule(id_, parser.due({"at": form.get("at", "")}) or parser.now)
            else:
                await pick_action(messages, action, "cancel", "retry", "discard")(id_)
        return redirect(f"/messages/{id_}")

    async def _render(self, id_: str) -> Fragments:
        message, why = await self._outbound.messages.show(id_), await self._outbound.why(id_)
        piece, allowed = self._renderer.piece, allowed_actions(message["state"])
        return {
            "status": piece("message_state.html", message=message, why=why, until=iso(why.until)),
            "actions": piece("message_actions.html", message=message, allowed=allowed),
            "timeline": piece("message_timeline.html", message=message),
            "facts": piece("message_facts.html", message=message),
        }


class DeadLetterViews(Views):
    """Dead letters by cause; retry or discard whole causes, with a rate limit, or selected messages."""

    @get("/dead")
    async def show(self, request: Request) -> Response:
        """List dead letters, most frequent cause first."""
        asked = query_values(request, "channel", "category", "unknown", "after")
        filters: dict[str, Any] = {name: asked[name] for name in ("channel", "category") if name in asked}
        unknown = {"yes": True, "no": False}.get(asked.get("unknown", ""))
        page = await self._outbound.dead.page(limit=PAGE, unknown=unknown, after=asked.get("after"), **filters)
        groups = await self._outbound.dead.groups()
        return self._renderer.listing(
            "dead_letters.html",
            page,
            asked,
            groups=groups,
            is_more=sum(group["count"] for group in groups) >= MAX_COUNTED,
            is_filtered=bool(filters) or unknown is not None,
            done=request.query_params.get("done"),
            problem=request.query_params.get("problem"),
        )

    @post("/dead/{action}", OPERATE)
    async def act_on_cause(self, request: Request, form: Form, action: str) -> Response:
        """Retry or discard all messages with one cause; uncertain ones only if the form says so."""
        filters: dict[str, Any] = {name: form[name] for name in ("channel", "category") if name in form}
        filters["unknown"] = form.get("unknown") == "yes"
        with redirect_on_error("/dead"):
            match action:
                case "retry":
                    rate = number(form, "per_second")
                    swept = await self._outbound.dead.retry_all(per_second=rate, **filters)
                    word = "retried" if rate is None else f"retried, {rate:g} per second"
                case "discard":
                    swept, word = await self._outbound.dead.discard_all(**filters), "discarded"
                case _:
                    raise unknown_action(action)
        rest = "; more are left, repeat the action" if swept.more else ""
        return redirect("/dead", done=f"{swept.moved:,} {word}{rest}")

    @post("/dead/chosen/{action}", OPERATE)
    async def act_on_selected(self, request: Request, form: Form, action: str) -> Response:
        """Retry or discard the selected messages; uncertain ones only if the form says so."""
        messages = self._outbound.messages
        move = pick_action(messages, action, "retry", "discard")
        moved = uncertain = gone = 0
        for id_ in (await read_multi_form(request)).get("id", [])[:PAGE]:
            try:
                message = await messages.show(id_)
                if action == "retry" and message["unknown"] and "unknown" not in form:
                    uncertain += 1
                    continue
                await move(id_)
                moved += 1
            except (NotFound, Conflict):
                gone += 1
        done = [f"{moved:,} {'retried' if action == 'retry' else 'discarded'}"]
        done += [f"{uncertain:,} uncertain skipped: include them to retry them"] if uncertain else []
        done += [f"{gone:,} no longer dead letters"] if gone else []
        return redirect("/dead", done="; ".join(done))


class UpcomingViews(Views):
    """Upcoming messages, schedule runs and broadcasts: one week, or one day with its messages by time."""

    @get("/upcoming")
    async def week(self, request: Request) -> Response:
        """Show seven days, starting today or at `from`."""
        today = self._today()
        first = _day(request.query_params.get("from") or today.isoformat(), today)
        dates = [first + timedelta(days=number) for number in range(DAYS + 1)]
        plans = await self._outbound.ahead.plans([self._midnight(day) for day in dates])
        days = list(zip(dates, plans.spans, strict=False))
        return self._renderer.page(
            "upcoming.html",
            days=days,
            today=today,
            most=max((_size(span) for span in plans.spans), default=0),
            size=_size,
            entries=_entries,
            more_schedules=plans.more_schedules,
            earlier=max(first - timedelta(days=DAYS), today - MAX_DISTANCE),
            later=first + timedelta(days=DAYS),
        )

    @get("/upcoming/{day}")
    async def show(self, request: Request, date_: str) -> Response:
        """Show one day: schedule runs, broadcasts and messages."""
        day = _day(date_, self._today())
        begin, end = self._midnight(day), self._midnight(day + timedelta(days=1))
        since = max(begin, _since(request.query_params.get("since"), begin))
        plans = await self._outbound.ahead.plans([begin, end])
        listed = await self._outbound.ahead.messages(since, end, limit=LISTED)
        return self._renderer.page(
            "upcoming_day.html",
            day=day,
            span=plans.spans[0],
            entries=_entries,
            items=listed.items,
            more=urlencode({"since": listed.next}) if listed.next else None,
            is_later=since > begin,
            more_schedules=plans.more_schedules,
            earlier=day - timedelta(days=1),
            later=day + timedelta(days=1),
        )

    def _today(self) -> date:
        return moment(self._renderer.clock.now()).astimezone(self._renderer.timezone).date()

    def _midnight(self, day: date) -> int:
        """Return when a day starts, also where the clock change skips midnight."""
        return resolve_wall_time(datetime.combine(day, time()), self._renderer.timezone).at


def _size(span: UpcomingSpan) -> int:
    """Return the number of entries of one day, for its bar."""
    return span.messages + sum(len(firing["at"]) for firing in span.firings) + len(span.broadcasts)


def _entries(span: UpcomingSpan) -> list[Row]:
    """Return schedule runs and broadcasts, ordered by time."""
    times = [(firing["at"][0], firing) for firing in span.firings if firing["at"]]
    times += [(broadcast["starts_at"], broadcast) for broadcast in span.broadcasts]
    return [plan for _, plan in sorted(times, key=itemgetter(0))]


def _day(text: str, today: date) -> date:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise Invalid(f"{text[:40]!r} is not a date", field="from", remedy=f"use a date such as {today}") from None
    if abs(day - today) > MAX_DISTANCE:
        raise Invalid(f"{day} is more than ten years away", field="from", remedy=f"use a date such as {today}")
    return day


def _since(text: str | None, usual: int) -> int:
    if text is None or not text.isdecimal() or len(text) > 17:
        return usual
    return int(text)
