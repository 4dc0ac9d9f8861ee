"""`tidings schedules`: recurring messages and broadcasts."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import output, shell_completion
from .commands import CommandContext, command
from .options import After, Key, Limit, OfChannel, OfRecipient, argument, channel_option, drop_none, option, parse_json
from .output import Column, Row

if TYPE_CHECKING:
    from ..app import App

group = typer.Typer(help="Schedule recurring messages and broadcasts.", no_args_is_help=True)

ScheduleId = Annotated[str, argument("ID", "Schedule id.", complete=shell_completion.schedules)]
Channel = Annotated[str | None, channel_option("Channel to send on.")]
To = Annotated[str | None, option("RECIPIENT", "Recipient.")]
Text = Annotated[str | None, option("--text", "-t", "TEXT", "Message text.")]
Message = Annotated[str | None, option("JSON", "All fields of the message; --channel, --to and --text override it.")]
Broadcast = Annotated[str | None, option("JSON", "Create a broadcast with these fields instead of a message.")]
Number = Annotated[int, option("--number", "-n", "N", "Number of runs to show, 1 to 366.")]


@dataclass(frozen=True)
class TimingOptions:
    """The rule of a schedule and its bounds."""

    cron: Annotated[str | None, option("FIELDS", "Cron expression: 5 fields, 6 with seconds first, or @daily.")] = None
    every: Annotated[str | None, option("DURATION", "Interval, such as 90m, 12h or 7d.")] = None
    daily: Annotated[str | None, option("TIMES", "Times of day, such as '09:00, 18:30'.")] = None
    weekly: Annotated[str | None, option("DAYS TIMES", "Weekdays and times, such as 'mon, fri 09:00'.")] = None
    monthly: Annotated[str | None, option("DAYS TIMES", "Days and times, such as '1, last, first monday 09:00'.")] = (
        None
    )
    yearly: Annotated[str | None, option("DAYS TIMES", "Dates and times, such as '12-24 18:00'.")] = None
    rrule: Annotated[str | None, option("RRULE", "RFC 5545 recurrence rule, without DTSTART.")] = None
    timezone: Annotated[str | None, option("NAME", "Time zone of the rule. [the setting timezone]")] = None
    start: Annotated[str | None, option("WHEN", "First day or time.")] = None
    end: Annotated[str | None, option("WHEN", "Last day or time.")] = None
    count: Annotated[int | None, option("N", "End after N runs.")] = None
    exclude_date: Annotated[list[str] | None, option("DATE", "Date without a run. Repeatable.")] = None

    def rule(self) -> dict[str, str]:
        """Return the given rule by its kind."""
        kinds = ("cron", "every", "daily", "weekly", "monthly", "yearly", "rrule")
        return drop_none(**{kind: getattr(self, kind) for kind in kinds})

    def body(self) -> dict[str, Any]:
        """Return the fields of a new schedule."""
        limits = drop_none(start=self.start, end=self.end, count=self.count, excluded_dates=self.exclude_date or None)
        return {"rule": self.rule(), **drop_none(timezone=self.timezone), **limits}


@dataclass(frozen=True)
class ScheduleOptions(TimingOptions):
    """The rule of a schedule, its name and its catch-up policy."""

    name: Annotated[str | None, option("TEXT", "Display name.")] = None
    tag: Annotated[list[str] | None, option("TAG", "Tag to filter by. Repeatable.")] = None
    overlap: Annotated[
        str | None, option("allow|skip|wait", "What to do while the previous run is not finished. [allow]")
    ] = None
    catch_up: Annotated[str | None, option("skip|latest|all", "Which missed runs to make up for.")] = None
    catch_up_window: Annotated[str | None, option("DURATION", "How late a missed run is still made up for. [1h]")] = (
        None
    )

    def texts(self) -> dict[str, str]:
        """Return the name and the policies, if given."""
        policies = drop_none(overlap=self.overlap, catch_up=self.catch_up, catch_up_window=self.catch_up_window)
        return drop_none(name=self.name) | policies


@dataclass(frozen=True)
class EditOptions(ScheduleOptions):
    """Changes of an existing schedule; an empty value removes a field."""

    count: Annotated[int | None, option("N", "End after N runs; 0 removes the limit.")] = None

    def change(self) -> dict[str, Any]:
        """Return the fields that change."""
        texts = drop_none(timezone=self.timezone, start=self.start, end=self.end) | self.texts()
        fields: dict[str, Any] = {} if not (rule := self.rule()) else {"rule": rule}
        fields |= {field: value or None for field, value in texts.items()}
        if self.count is not None:
            fields["count"] = self.count or None
        if self.tag is not None:
            fields["tags"] = [tag for tag in self.tag if tag]
        if self.exclude_date is not None:
            fields["excluded_dates"] = [day for day in self.exclude_date if day] or None
        return fields


@dataclass(frozen=True)
class ScheduleFilterOptions:
    """Which schedules: the fields of a filter."""

    state: Annotated[
        str | None,
        option("STATE", "active, paused or ended.", complete=shell_completion.one_of("active", "paused", "ended")),
    ] = None
    channel: OfChannel = None
    to: OfRecipient = None
    timezone: Annotated[str | None, option("NAME", "Filter by time zone.")] = None
    name: Annotated[str | None, option("TEXT", "Filter by a part of the name.")] = None
    tag: Annotated[str | None, option("TAG", "Filter by tag.")] = None


@command(
    group,
    'tidings schedules add --daily 09:00 --timezone Europe/Berlin -c phone --to ada -t "good morning"',
    'tidings schedules add --cron "0 9 * * 1-5" --exclude-date 2026-12-25 -c phone --to ada -t "standup"',
    'tidings schedules add --yearly "12-24 18:00" -c phone --to ada -t "merry Christmas"',
)
async def add(
    ctx: CommandContext,
    *,
    terms: ScheduleOptions,
    channel: Channel = None,
    to: To = None,
    text: Text = None,
    message: Message = None,
    broadcast: Broadcast = None,
    key: Key = None,
) -> None:
    """Create a schedule and print its next run."""
    fields = terms.body() | terms.texts() | drop_none(tags=terms.tag)
    fields |= _content(channel, to, text, message, broadcast)
    made = await ctx.outbound.schedules.create(fields, timezone=ctx.app.settings.timezone, key=key)
    answer(ctx, made.answer, "already created" if made.replayed else "created")


@command(group, "tidings schedules list --state paused", "tidings schedules list --tag rounds", name="list")
async def list_(ctx: CommandContext, *, chosen: ScheduleFilterOptions, limit: Limit = 20, after: After = None) -> None:
    """List schedules, newest first."""
    page = await ctx.outbound.schedules.page(**asdict(chosen), limit=limit, after=after)
    columns = [
        *Column.plain("id:keep"),
        Column("state", lambda row: row["state"], _state),
        *Column.plain("next=next_at:time", "last=last_at:time", "runs:right,spare"),
        Column("rule", lambda row: row["rule_in_words"], _rule_and_zone),
        *Column.plain("name"),
    ]
    nothing = (
        "no matching schedules"
        if any(asdict(chosen).values())
        else "no schedules yet; create one with: tidings schedules add"
    )
    ctx.listing(page.items, columns, more=page.next, nothing=nothing)


@command(group, "tidings schedules show ID")
async def show(ctx: CommandContext, schedule: ScheduleId) -> None:
    """Show a schedule: rule, content, last and next run."""
    row = await ctx.outbound.schedules.show(schedule)
    ctx.answer(row, lambda: _print(ctx.app, row))


@command(group, "tidings schedules edit ID --daily 10:00", 'tidings schedules edit ID --end ""')
async def edit(
    ctx: CommandContext,
    schedule: ScheduleId,
    *,
    changed: EditOptions,
    message: Annotated[str | None, option("JSON", "All fields of the message.")] = None,
    broadcast: Broadcast = None,
    text: Annotated[str | None, option("--text", "-t", "TEXT", "Message text.")] = None,
) -> None:
    """Change a schedule immediately. An empty value removes a field."""
    fields = changed.change()
    fields |= drop_none(
        message=parse_json(message, "--message", is_object=True),
        broadcast=parse_json(broadcast, "--broadcast", is_object=True),
    )
    if text is not None:
        before = (await ctx.outbound.schedules.show(schedule)).get("message") or {}
        fields["message"] = {**before, **fields.get("message", {}), "text": text}
    answer(ctx, await ctx.outbound.schedules.edit(schedule, fields), "changed")


@command(group, "tidings schedules run ID", "tidings schedules run ID --key monday")
async def run(ctx: CommandContext, schedule: ScheduleId, *, key: Key = None) -> None:
    """Run a schedule once now, in addition to its rule."""
    made = await ctx.outbound.schedules.run(schedule, key=key)
    row = {**made.answer, "replayed": made.replayed}
    ctx.done(row, f"is the {row['creates']} that was created")


@command(
    group,
    "tidings schedules preview ID",
    'tidings schedules preview --cron "30 2 * * *" --timezone Europe/Berlin --start 2027-03-27 -n 3',
)
async def preview(
    ctx: CommandContext,
    schedule: Annotated[str | None, argument("ID", "Schedule id; omit it to preview a rule.")] = None,
    *,
    timing: TimingOptions,
    number: Number = 10,
) -> None:
    """Show the next runs of a schedule, or of a rule without saving it."""
    _one_of(schedule, timing.rule())
    if schedule is not None:
        items = await ctx.outbound.schedules.preview(schedule, number)
    else:
        found = ctx.outbound.schedules.foresee({**timing.body(), "n": number}, timezone=ctx.app.settings.timezone)
        items = found["items"]
        if output.on_terminal() and not ctx.as_json:
            output.say((found["rule_in_words"], "dim"))
    columns = [
        *Column.plain("at:keep"),
        Column("local", lambda row: row["local"], lambda row: str(row["words"]), keep=True),
        *Column.plain("note"),
    ]
    ctx.listing(items, columns, nothing="no more runs")


@command(group, "tidings schedules log ID", "tidings schedules log ID --limit 100 --json")
async def log(ctx: CommandContext, schedule: ScheduleId, *, limit: Limit = 20, after: After = None) -> None:
    """List past runs with their outcome, newest first."""
    page = await ctx.outbound.schedules.occurrences(schedule, limit=limit, after=after)
    columns = Column.plain("at:keep", "local:keep,spare", "outcome", "created:keep", "detail")
    ctx.listing(page.items, columns, more=page.next, nothing="no runs yet")


def _content(
    channel: str | None, to: str | None, text: str | None, message: str | None, broadcast: str | None
) -> dict[str, Any]:
    """Return the content from the short options or from JSON; the options override the JSON."""
    plain = drop_none(channel=channel, to=to, text=text)
    if broadcast is not None:
        return {
            "broadcast": parse_json(broadcast, "--broadcast", is_object=True),
            **({"message": plain} if plain else {}),
        }
    return {"message": {**(parse_json(message, "--message", is_object=True) or {}), **plain} or None}


def _one_of(schedule: str | None, rule: dict[str, str]) -> None:
    if (schedule is None) == (not rule):
        from ..model.errors import Invalid

        problem = "an id and a rule are both given" if rule else "no schedule and no rule are given"
        raise Invalid(problem, remedy="give an id, or one of --cron, --every, --daily …", field="rule")


def answer(ctx: CommandContext, row: Row, done: str) -> None:
    """Print what was done to a schedule, and its next run."""
    ctx.done(row, done)
    if row.get("next_at") is not None and not ctx.as_json:
        timezone, now = _zone(row), ctx.app.clock.now()
        output.say(f"  runs {row['rule_in_words']}; next {output.full_time(row['next_at'], timezone, now)}")


def _rule_and_zone(row: Row) -> str:
    return f"{row['rule_in_words']}, {row['timezone']}"


def _zone(row: Row) -> Any:
    from ..inputs.timezones import parse_timezone

    return parse_timezone(row["timezone"])


def _state(row: Row) -> Any:
    from rich.text import Text

    styles = {"active": "green", "paused": "yellow", "ended": "dim"}
    problem = Text("!", "bold red") if row["problem"] else Text()
    return Text(row["state"], styles.get(row["state"], "")) + problem


def _print(app: App, row: Row) -> None:
    timezone, now = _zone(row), app.clock.now()
    limit = f"{row['runs']} of {row['count']}" if row["count"] else None
    output.facts(
        [
            *output.fields(row, "id", "name"),
            ("state", row["state"], _state(row)),
            *output.fields(row, "problem", "runs=rule_in_words"),
            ("rule", row["rule"], ""),
            *output.fields(row, "timezone"),
            *output.times(row, timezone, now, "next=next_at", "last=last_at"),
            *output.fields(row, "last_created"),
            ("run count", row["runs"], limit),
            *output.times(row, timezone, now, "start", "end"),
            ("excluded dates", ", ".join(row["excluded_dates"]), None),
            ("tags", ", ".join(row["tags"]), None),
            *output.fields(row, "overlap", "waits_for"),
            ("catch up", row["catch_up"], f"{row['catch_up']}, within {row['catch_up_window']}"),
            *output.fields(row, "creates"),
            (row["creates"], row[row["creates"]], _describe(row[row["creates"]])),
        ]
    )


def _describe(made: Row) -> str:
    """Return the content in words, and its other fields as JSON."""
    rest = {name: value for name, value in made.items() if name not in ("channel", "to", "text")}
    to = f" to {made['to']}" if made.get("to") else ""
    text = f": {made['text']}" if made.get("text") else ""
    return output.flat(f"on {made.get('channel')}{to}{text}") + (f"; {output.flat(rest)}" if rest else "")
