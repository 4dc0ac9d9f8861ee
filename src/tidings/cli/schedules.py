"""`tidings schedules`: rules that make messages or broadcasts at instants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import output, shell_completion
from .commands import CommandContext, command
from .help import examples
from .options import After, Limit, argument, channel_option, option
from .output import Column, Row

if TYPE_CHECKING:
    from ..app import App

group = typer.Typer(help="Schedules: recurring messages and broadcasts.", no_args_is_help=True)

ScheduleId = Annotated[str, argument("ID", "The schedule's id.", complete=shell_completion.schedules)]
Channel = Annotated[str | None, channel_option("Which way out.")]
To = Annotated[str | None, option("WHO", "Who gets it.")]
Text = Annotated[str | None, option("--text", "-t", "TEXT", "What it says.")]
Message = Annotated[str | None, option("JSON", "All fields of the message, instead of the three above.")]
Broadcast = Annotated[str | None, option("JSON", "Make a broadcast of these fields.")]
Key = Annotated[str | None, option("KEY", "Idempotency key: the same call again changes nothing.")]
Number = Annotated[int, option("--number", "-n", "N", "How many firings to show.")]


@dataclass(frozen=True)
class TimingOptions:
    """When it fires."""

    cron: Annotated[str | None, option("FIELDS", "5 fields, or 6 with seconds first; or @daily.")] = None
    every: Annotated[str | None, option("LENGTH", "An interval: 90m, 12h, 7d.")] = None
    daily: Annotated[str | None, option("TIMES", "Times of day: '09:00, 18:30'.")] = None
    weekly: Annotated[str | None, option("DAYS TIMES", "For example 'mon, fri 09:00'.")] = None
    monthly: Annotated[str | None, option("DAYS TIMES", "For example '1, last, first monday 09:00'.")] = None
    yearly: Annotated[str | None, option("DAYS TIMES", "For example '12-24 18:00'.")] = None
    rrule: Annotated[str | None, option("RRULE", "RFC 5545, without DTSTART.")] = None
    timezone: Annotated[str | None, option("NAME", "Its time zone; the configured one unless given.")] = None
    start: Annotated[str | None, option("WHEN", "Not before this day or time.")] = None
    end: Annotated[str | None, option("WHEN", "Not after this day or time.")] = None
    count: Annotated[int | None, option("N", "Make so many, then end.")] = None
    skip: Annotated[list[str] | None, option("DAY", "A day without it; may be repeated.")] = None

    def rule(self) -> dict[str, str]:
        """The rule, under its kind."""
        kinds = ("cron", "every", "daily", "weekly", "monthly", "yearly", "rrule")
        return _given(**{kind: getattr(self, kind) for kind in kinds})

    def body(self) -> dict[str, Any]:
        """The fields of a new schedule."""
        limits = _given(start=self.start, end=self.end, count=self.count, skip=self.skip or None)
        return {"rule": self.rule(), **_given(timezone=self.timezone), **limits}


@dataclass(frozen=True)
class ScheduleOptions(TimingOptions):
    """When it fires, its name, and what happens to missed ones."""

    name: Annotated[str | None, option("TEXT", "What people call it.")] = None
    catch_up: Annotated[str | None, option("skip|latest|all", "What to do about missed ones.")] = None
    catch_up_window: Annotated[str | None, option("DURATION", "Catch-up window; 1h.")] = None

    def texts(self) -> dict[str, str]:
        """What is given beside the timing."""
        return _given(name=self.name, catch_up=self.catch_up, catch_up_window=self.catch_up_window)


@dataclass(frozen=True)
class EditOptions(ScheduleOptions):
    """The same of a schedule that exists; an empty value takes a field away."""

    count: Annotated[int | None, option("N", "Make so many, then end; 0 takes it away.")] = None

    def change(self) -> dict[str, Any]:
        """The fields that change."""
        texts = _given(timezone=self.timezone, start=self.start, end=self.end) | self.texts()
        fields: dict[str, Any] = {} if not (rule := self.rule()) else {"rule": rule}
        fields |= {field: value or None for field, value in texts.items()}
        if self.count is not None:
            fields["count"] = self.count or None
        if self.skip is not None:
            fields["skip"] = [day for day in self.skip if day] or None
        return fields


@command(
    group,
    epilog=examples(
        'tidings schedules add --daily 09:00 --timezone Europe/Berlin -c phone --to ada -t "good morning"',
        'tidings schedules add --cron "0 9 * * 1-5" --skip 2026-12-25 -c phone --to ada -t "stand-up"',
        'tidings schedules add --yearly "12-24 18:00" -c phone --to ada -t "merry Christmas"',
    ),
)
async def add(
    ask: CommandContext,
    *,
    terms: ScheduleOptions,
    channel: Channel = None,
    to: To = None,
    text: Text = None,
    message: Message = None,
    broadcast: Broadcast = None,
    key: Key = None,
) -> None:
    """Make a schedule. The answer says when it fires next."""
    fields = terms.body() | terms.texts()
    fields |= _made(channel, to, text, message, broadcast)
    made = await ask.desk.schedules.create(fields, timezone=ask.app.settings.timezone, key=key)
    _answer(ask, made.answer, "made before" if made.replayed else "made")


@command(group, "list", epilog=examples("tidings schedules list --state paused"))
async def list_(
    ask: CommandContext,
    *,
    state: Annotated[
        str | None,
        option(
            "STATE", "active, paused or ended.", complete=shell_completion.one_of("active", "paused", "ended")
        ),
    ] = None,
    limit: Limit = 20,
    after: After = None,
) -> None:
    """Schedules, newest first."""
    page = await ask.desk.schedules.page(state=state, limit=limit, after=after)
    now = ask.app.clock.now()
    columns = [
        Column("id", lambda row: row["id"], keep=True),
        Column("state", lambda row: row["state"], _state),
        Column.time("next", "next_at", now),
        Column.time("last", "last_at", now),
        Column("made", lambda row: row["made"], right=True, spare=True),
        Column("when", lambda row: row["rule_in_words"], lambda row: "{rule_in_words}, {zone}".format(**row)),
        Column("name", lambda row: row["name"]),
    ]  # fmt: skip
    nothing = "no such schedules" if state else "no schedules yet; make one: tidings schedules add"
    ask.listing(page.items, columns, more=page.next, nothing=nothing)


@command(group, epilog=examples("tidings schedules show ID"))
async def show(ask: CommandContext, schedule: ScheduleId) -> None:
    """One schedule: its rule in words, what it makes, last and next run."""
    row = await ask.desk.schedules.show(schedule)
    ask.answer(row, lambda: _print(ask.app, row))


@command(
    group, epilog=examples("tidings schedules edit ID --daily 10:00", 'tidings schedules edit ID --end ""')
)
async def edit(
    ask: CommandContext,
    schedule: ScheduleId,
    *,
    changed: EditOptions,
    message: Annotated[str | None, option("JSON", "All fields of the message.")] = None,
    broadcast: Broadcast = None,
    text: Annotated[str | None, option("--text", "-t", "TEXT", "What the message says.")] = None,
) -> None:
    """Change a schedule, at once. An empty value takes a field away."""
    fields = changed.change()
    fields |= _given(message=_parsed(message, "message"), broadcast=_parsed(broadcast, "broadcast"))
    if text is not None:
        before = (await ask.desk.schedules.show(schedule)).get("message") or {}
        fields["message"] = {**before, **fields.get("message", {}), "text": text}
    _answer(ask, await ask.desk.schedules.edit(schedule, fields), "changed")


@command(group, epilog=examples("tidings schedules pause ID"))
async def pause(ask: CommandContext, schedule: ScheduleId) -> None:
    """Make nothing until it is resumed."""
    _answer(ask, await ask.desk.schedules.pause(schedule), "paused")


@command(group, epilog=examples("tidings schedules resume ID"))
async def resume(ask: CommandContext, schedule: ScheduleId) -> None:
    """Go on with the next instant from now."""
    _answer(ask, await ask.desk.schedules.resume(schedule), "resumed")


@command(group, epilog=examples("tidings schedules end ID"))
async def end(ask: CommandContext, schedule: ScheduleId) -> None:
    """Make nothing more; its log stays."""
    _answer(ask, await ask.desk.schedules.end(schedule), "ended")


@command(group, epilog=examples("tidings schedules remove ID"))
async def remove(ask: CommandContext, schedule: ScheduleId) -> None:
    """End a schedule and forget it, with its log. What it has made stays."""
    _answer(ask, await ask.desk.schedules.remove(schedule), "removed")


@command(group, epilog=examples("tidings schedules run ID", "tidings schedules run ID --key monday"))
async def run(
    ask: CommandContext,
    schedule: ScheduleId,
    *,
    key: Key = None,
) -> None:
    """Make it once now, beside its rule."""
    made = await ask.desk.schedules.run(schedule, key=key)
    row = {**made.answer, "replayed": made.replayed}
    ask.done(row, f"is the {row['makes']} that was made")


@command(
    group,
    epilog=examples(
        "tidings schedules preview ID",
        'tidings schedules preview --cron "30 2 * * *" --timezone Europe/Berlin --start 2027-03-27 -n 3',
    ),
)
async def preview(
    ask: CommandContext,
    schedule: Annotated[str | None, argument("ID", "A schedule's id; or give a rule.")] = None,
    *,
    timing: TimingOptions,
    number: Number = 10,
) -> None:
    """When a schedule, or a rule that is not saved, fires next."""
    _one_of(schedule, timing.rule())
    if schedule is not None:
        items = await ask.desk.schedules.preview(schedule, number)
    else:
        found = ask.desk.schedules.foresee({**timing.body(), "n": number}, timezone=ask.app.settings.timezone)
        items = found["items"]
        if output.on_terminal() and not ask.as_json:
            output.say((found["rule_in_words"], "dim"))
    columns = [
        Column("at", lambda row: row["at"], keep=True),
        Column("local", lambda row: row["local"], lambda row: str(row["words"]), keep=True),
        Column("note", lambda row: row["note"]),
    ]
    ask.listing(items, columns, nothing="it fires no more")


@command(group, epilog=examples("tidings schedules log ID", "tidings schedules log ID --limit 100 --json"))
async def log(
    ask: CommandContext,
    schedule: ScheduleId,
    *,
    limit: Limit = 20,
    after: After = None,
) -> None:
    """What became of each occurrence, newest first."""
    page = await ask.desk.schedules.occurrences(schedule, limit=limit, after=after)
    columns = [
        Column("at", lambda line: line["at"], keep=True),
        Column("local", lambda line: line["local"], keep=True, spare=True),
        Column("outcome", lambda line: line["outcome"]),
        Column("made", lambda line: line["made"], keep=True),
        Column("detail", lambda line: line["detail"]),
    ]
    ask.listing(page.items, columns, more=page.next, nothing="nothing happened yet")


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _made(
    channel: str | None, to: str | None, text: str | None, message: str | None, broadcast: str | None
) -> dict[str, Any]:
    """What it makes, from the short options or from JSON; a text alone completes the latter."""
    plain = _given(channel=channel, to=to, text=text)
    if broadcast is not None:
        return {"broadcast": _parsed(broadcast, "broadcast"), **({"message": plain} if plain else {})}
    return {"message": {**(_parsed(message, "message") or {}), **plain} or None}


def _parsed(said: str | None, name: str) -> dict[str, Any] | None:
    if said is None:
        return None
    import orjson

    from ..model.errors import Invalid

    try:
        found = orjson.loads(said)
    except orjson.JSONDecodeError as error:
        remedy = """write it as '{"name": "value"}'"""
        raise Invalid(f"--{name} is not JSON ({error})", remedy=remedy, field=name) from None
    if not isinstance(found, dict):
        raise Invalid(f"--{name} is not a JSON object", remedy="""write '{"name": "value"}'""", field=name)
    return found


def _one_of(schedule: str | None, rule: dict[str, str]) -> None:
    if (schedule is None) == (not rule):
        from ..model.errors import Invalid

        problem = (
            "an id and a rule are both given" if rule else "nothing says which schedule or rule is meant"
        )
        raise Invalid(problem, remedy="give one id, or one of --cron, --every, --daily ...", field="rule")


def _answer(ask: CommandContext, row: Row, done: str) -> None:
    ask.done(row, done)
    if row.get("next_at") is not None and not ask.as_json:
        timezone, now = _zone(row), ask.app.clock.now()
        output.say(f"  fires {row['rule_in_words']}; next {output.full_time(row['next_at'], timezone, now)}")


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
    limit = f"{row['made']} of {row['count']}" if row["count"] else None
    output.facts(
        [
            *output.fields(row, "id", "name"),
            ("state", row["state"], _state(row)),
            ("problem", row["problem"], None),
            ("fires", row["rule_in_words"], None),
            ("rule", row["rule"], ""),
            ("timezone", row["timezone"], None),
            ("next", row["next_at"], output.full_time(row["next_at"], timezone, now)),
            ("last", row["last_at"], output.full_time(row["last_at"], timezone, now)),
            ("last made", row["last_made"], None),
            ("made", row["made"], limit),
            ("start", row["start"], output.full_time(row["start"], timezone, now)),
            ("end", row["end"], output.full_time(row["end"], timezone, now)),
            ("skip", ", ".join(row["skip"]), None),
            ("catch up", row["catch_up"], f"{row['catch_up']}, within {row['catch_up_window']}"),
            ("makes", row["makes"], None),
            (row["makes"], row[row["makes"]], _in_words(row[row["makes"]])),
        ]
    )


def _in_words(made: Row) -> str:
    """What it makes, as one would say it; whatever else there is to it stays as it was given."""
    said = {name: value for name, value in made.items() if name not in ("channel", "to", "text")}
    to = f" to {made['to']}" if made.get("to") else ""
    text = f": {made['text']}" if made.get("text") else ""
    return output.flat(f"on {made.get('channel')}{to}{text}") + (f"; {output.flat(said)}" if said else "")
