"""`tidings models`: prompts, calls, costs and recordings of the language model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import output
from .commands import CommandContext, command
from .options import Limit, argument, option
from .output import Column

if TYPE_CHECKING:
    from ..inbound.domain import Extraction, Intent
    from ..inbound.llm.settings import ModelSettings

group = typer.Typer(help="Inspect the language model: prompts, calls, costs, recordings.", no_args_is_help=True)

QUESTIONS = ("intent", "extract")


@command(group, "tidings models prompts")
async def prompts(ctx: CommandContext) -> None:
    """List the prompts in use with version and hash. Reports an invalid prompt."""
    from ..inbound.llm import prompt

    settings = _settings(ctx)
    rows = [
        {"prompt": one.name, "version": one.version, "role": str(one.role), "model": settings.model(one.role),
         "max_tokens": one.max_tokens, "temperature": one.temperature, "hash": one.hash}
        for one in prompt.load_prompts(settings.prompts).values()
    ]  # fmt: skip
    columns = Column.plain("prompt:keep", "version:right", "role", "model", "hash:spare")
    ctx.listing(rows, columns, nothing="no prompts")


@command(group, 'tidings models ask "no crew for 42 saturday night" --squads 34,42 --squad 42', name="ask")
async def ask_(
    ctx: CommandContext,
    text: Annotated[str, argument("TEXT", "Text of a message.")],
    *,
    question: Annotated[
        str, option("--question", "-q", "NAME", "intent (is it a request?) or extract (for what?).")
    ] = "intent",
    squads: Annotated[str, option("NAMES", "All squads, comma-separated.")] = "34,35,42,43,54",
    squad: Annotated[str, option("NAME", "Squad of the sender.")] = "42",
) -> None:
    """Ask the model as the engine does, and print its answer and cost. Nothing else happens."""
    from ..inbound.domain import InterpreterContext, Speaker
    from ..inbound.llm import prompt
    from ..inbound.llm.journal import trace_calls
    from ..inbound.llm.model_client import ModelClient
    from ..inbound.llm.model_interpreter import ModelInterpreter
    from ..model.errors import Invalid

    if question not in QUESTIONS:
        raise Invalid(f"unknown question {question!r}", remedy="use intent or extract", field="question")
    settings, app = _settings(ctx), ctx.app
    names = tuple(name.strip() for name in squads.split(",") if name.strip())
    speaker = Speaker("cli", "somebody", squad, "member")
    context = InterpreterContext(app.clock.now(), app.settings.timezone.key, names, speaker, text)
    client = ModelClient(settings, app.store, app.clock)
    trace = f"cli-{app.clock.new_id()}"
    try:
        with trace_calls(trace), output.working("asking the model", is_shown=not ctx.as_json):
            interpreter = ModelInterpreter(settings, prompt.load_prompts(settings.prompts), client)
            found = await (interpreter.intent(context) if question == "intent" else interpreter.extract(context))
    finally:
        await client.close()
    made = await client.journal.of(trace)
    answer = {name: list(value) if isinstance(value, tuple) else value for name, value in _plain(found).items()}
    spent = {"calls": len(made), "cost": _money(sum(call["cost"] for call in made))}
    ctx.answer({**answer, **spent}, lambda: output.facts([(k, v, None) for k, v in {**answer, **spent}.items()]))


@command(group, "tidings models calls", "tidings models calls --message inbox-17")
async def calls(
    ctx: CommandContext,
    *,
    message: Annotated[str | None, option("ID", "Filter by the message that caused the call.")] = None,
    limit: Limit = 20,
    before: Annotated[int | None, option("N", "Show calls older than this one.")] = None,
) -> None:
    """List calls to the model with prompt, tokens, cost and result, newest first."""
    from ..inbound.llm.journal import ModelJournal
    from ..model.time import iso

    journal = ModelJournal(ctx.app.store, ctx.app.clock)
    found = await (journal.newest(before=before, limit=limit) if message is None else journal.of(message))
    rows = [{**row, "at": iso(row["at"]), "cost": _money(row["cost"])} for row in found]
    columns = [
        *Column.plain("call=id:keep,right", "at:time", "message=trace"),
        Column("prompt", lambda row: f"{row['prompt']} {row['version']}"),
        *Column.plain("model", "state"),
        Column("tokens", lambda row: row["tokens_in"] + row["tokens_out"], right=True),
        *Column.plain("cost:right", "ms:right", "problem=error:spare"),
    ]
    more = str(found[-1]["id"]) if message is None and len(found) == limit else None
    ctx.listing(rows, columns, more=more, nothing="no calls yet")


@command(group, "tidings models costs --since 2027-01-01")
async def costs(
    ctx: CommandContext, *, since: Annotated[str, option("DATE", "First day (UTC), such as 2027-01-31.")] = "2000-01-01"
) -> None:
    """Sum up calls, tokens and cost by day, model, prompt and version."""
    from datetime import date

    from ..inbound.llm.journal import ModelJournal
    from ..model.errors import Invalid

    try:
        first = date.fromisoformat(since).isoformat()
    except ValueError:
        raise Invalid(f"{since!r} is not a date", remedy="write it as 2027-01-31", field="since") from None
    found = await ModelJournal(ctx.app.store, ctx.app.clock).days(first)
    rows = [{**row, "cost": _money(row["cost"])} for row in found]
    columns = [
        *Column.plain("day:keep", "model"),
        Column("prompt", lambda row: f"{row['prompt']} {row['version']}"),
        *Column.plain("calls:right", "tokens_in:right", "tokens_out:right", "cost:right"),
    ]
    ctx.listing(rows, columns, nothing="no calls in this period")


@command(group, "tidings models record answers.jsonl")
async def record(ctx: CommandContext, file: Annotated[Path, argument("FILE", "New file.")]) -> None:
    """Record every answer of the model in a file that tests can replay. Contains personal data."""
    import orjson

    from ..inbound.llm.journal import ModelJournal
    from ..model.errors import Invalid

    count = 0
    try:
        with file.open("xb") as out:
            async for line in ModelJournal(ctx.app.store, ctx.app.clock).cassette():
                out.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
                count += 1
    except OSError as error:
        problem = f"{file} cannot be written ({error.strerror})"
        raise Invalid(problem, remedy="give the name of a new file in a writable folder") from None
    ctx.answer({"file": str(file), "answers": count}, lambda: output.say(f"wrote {count} answers to {file}"))


def _settings(ctx: CommandContext) -> ModelSettings:
    from ..model.errors import Misconfigured

    settings = ctx.app.settings.inbound.model
    if settings is None:
        raise Misconfigured(
            "no language model is configured",
            remedy="add [inbound.model] with base_url and small; without it only rules are used",
            field="inbound.model",
        )
    return settings


def _plain(found: Intent | Extraction) -> dict[str, Any]:
    from ..inbound.domain import Intent

    if isinstance(found, Intent):
        return found._asdict()
    return {**found._asdict(), "requests": [request._asdict() for request in found.requests]}


def _money(billionths: int) -> str:
    """Return an exact amount, without an exponent."""
    from decimal import Decimal

    from ..inbound.llm.settings import BILLION

    return f"{(Decimal(billionths) / BILLION).normalize():f}"
