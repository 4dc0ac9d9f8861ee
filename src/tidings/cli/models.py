"""`tidings models`: the language model's prompts, what it answers, what it was asked, and what that cost."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import output
from .commands import CommandContext, command
from .help import examples
from .options import Limit, argument, option
from .output import Column

if TYPE_CHECKING:
    from ..inbound.domain import Extraction, Intent
    from ..inbound.llm.settings import ModelSettings

group = typer.Typer(help="The language model: prompts, calls, costs, recordings.", no_args_is_help=True)

QUESTIONS = ("intent", "extract")


@command(group, epilog=examples("tidings models prompts"))
async def prompts(ask: CommandContext) -> None:
    """The prompts in use, each with its version and hash. One that cannot be used is told."""
    from ..inbound.llm import prompt

    settings = _settings(ask)
    rows = [
        {"prompt": one.name, "version": one.version, "role": str(one.role), "model": settings.model(one.role),
         "max_tokens": one.max_tokens, "temperature": one.temperature, "hash": one.hash}
        for one in prompt.load_prompts(settings.prompts).values()
    ]  # fmt: skip
    columns = [
        Column("prompt", lambda row: row["prompt"], keep=True),
        Column("version", lambda row: row["version"], right=True),
        *Column.plain("role", "model"),
        Column("hash", lambda row: row["hash"], spare=True),
    ]
    ask.listing(rows, columns, nothing="no prompts")


@command(
    group,
    "ask",
    epilog=examples('tidings models ask "no crew for 42 saturday night" --squads 34,42 --squad 42'),
)
async def ask_(
    ask: CommandContext,
    text: Annotated[str, argument("TEXT", "What somebody says.")],
    *,
    question: Annotated[
        str, option("--question", "-q", "NAME", "intent: is it a request? extract: for what?")
    ] = "intent",
    squads: Annotated[str, option("NAMES", "All squads, separated by commas.")] = "34,35,42,43,54",
    squad: Annotated[str, option("NAME", "The squad of whoever says it.")] = "42",
) -> None:
    """Ask the model as the engine does. It costs what a message costs; nothing is done with the answer."""
    from ..inbound.domain import InterpreterContext, Speaker
    from ..inbound.llm import prompt
    from ..inbound.llm.journal import trace_calls
    from ..inbound.llm.model_client import ModelClient
    from ..inbound.llm.model_interpreter import ModelInterpreter
    from ..model.errors import Invalid

    if question not in QUESTIONS:
        raise Invalid(f"there is no question {question!r}", remedy="Use intent or extract", field="question")
    settings, app = _settings(ask), ask.app
    names = tuple(name.strip() for name in squads.split(",") if name.strip())
    someone = Speaker("cli", "somebody", squad, "member")
    scene = InterpreterContext(app.clock.now(), app.settings.timezone.key, names, someone, text)
    line = ModelClient(settings, app.store, app.clock)
    trace = f"cli-{app.clock.new_id()}"
    try:
        with trace_calls(trace), output.working("asking the model", is_shown=not ask.as_json):
            mind = ModelInterpreter(settings, prompt.load_prompts(settings.prompts), line)
            found = await (mind.intent(scene) if question == "intent" else mind.extract(scene))
    finally:
        await line.close()
    made = await line.journal.of(trace)
    answer = {
        name: list(value) if isinstance(value, tuple) else value for name, value in _plain(found).items()
    }
    spent = {"calls": len(made), "cost": _money(sum(call["cost"] for call in made))}
    ask.answer(
        {**answer, **spent}, lambda: output.facts([(k, v, None) for k, v in {**answer, **spent}.items()])
    )


@command(group, epilog=examples("tidings models calls", "tidings models calls --message inbox-17"))
async def calls(
    ask: CommandContext,
    *,
    message: Annotated[str | None, option("ID", "Only those that this message caused.")] = None,
    limit: Limit = 20,
    before: Annotated[int | None, option("N", "Older than this call.")] = None,
) -> None:
    """Every call to a model, newest first: prompt, tokens, cost, and what came of it."""
    from ..inbound.llm.journal import ModelJournal
    from ..model.time import iso

    journal = ModelJournal(ask.app.store, ask.app.clock)
    found = await (journal.newest(before=before, limit=limit) if message is None else journal.of(message))
    rows = [{**row, "at": iso(row["at"]), "cost": _money(row["cost"])} for row in found]
    now = ask.app.clock.now()
    columns = [
        Column("call", lambda row: row["id"], keep=True, right=True),
        Column.time("at", "at", now),
        Column("message", lambda row: row["trace"]),
        Column("prompt", lambda row: f"{row['prompt']} {row['version']}"),
        *Column.plain("model", "state"),
        Column("tokens", lambda row: row["tokens_in"] + row["tokens_out"], right=True),
        Column("cost", lambda row: row["cost"], right=True),
        Column("ms", lambda row: row["ms"], right=True),
        Column("problem", lambda row: row["error"], spare=True),
    ]
    more = str(found[-1]["id"]) if message is None and len(found) == limit else None
    ask.listing(rows, columns, more=more, nothing="no calls yet")


@command(group, epilog=examples("tidings models costs --since 2027-01-01"))
async def costs(
    ask: CommandContext,
    *,
    since: Annotated[str, option("DAY", "From this day on (UTC).")] = "2000-01-01",
) -> None:
    """Calls, tokens and money by day, model, prompt and version."""
    from datetime import date

    from ..inbound.llm.journal import ModelJournal
    from ..model.errors import Invalid

    try:
        first = date.fromisoformat(since).isoformat()
    except ValueError:
        raise Invalid(f"{since!r} is not a day", remedy="Write it as 2027-01-31", field="since") from None
    found = await ModelJournal(ask.app.store, ask.app.clock).days(first)
    rows = [{**row, "cost": _money(row["cost"])} for row in found]
    columns = [
        Column("day", lambda row: row["day"], keep=True),
        Column("model", lambda row: row["model"]),
        Column("prompt", lambda row: f"{row['prompt']} {row['version']}"),
        Column("calls", lambda row: row["calls"], right=True),
        Column("tokens in", lambda row: row["tokens_in"], right=True),
        Column("tokens out", lambda row: row["tokens_out"], right=True),
        Column("cost", lambda row: row["cost"], right=True),
    ]
    ask.listing(rows, columns, nothing="nothing was spent")


@command(group, epilog=examples("tidings models record answers.jsonl"))
async def record(
    ask: CommandContext,
    file: Annotated[Path, argument("FILE", "Gets one line per answer.")],
) -> None:
    """Write every answer into a file from which tests replay them. It holds what people wrote about."""
    import orjson

    from ..inbound.llm.journal import ModelJournal
    from ..model.errors import Invalid

    count = 0
    try:
        with file.open("xb") as out:
            async for line in ModelJournal(ask.app.store, ask.app.clock).cassette():
                out.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
                count += 1
    except OSError as error:
        problem = f"{file} cannot be written ({error.strerror})"
        raise Invalid(problem, remedy="Name a new file in a folder that can be written to") from None
    ask.answer({"file": str(file), "answers": count}, lambda: output.say(f"{count} answers are in {file}"))


def _settings(ask: CommandContext) -> ModelSettings:
    from ..model.errors import Misconfigured

    settings = ask.app.settings.inbound.model
    if settings is None:
        raise Misconfigured(
            "there is no language model in the settings",
            remedy="Add [inbound.model] with base_url and small; without one the rules do the understanding",
            field="inbound.model",
        )
    return settings


def _plain(found: Intent | Extraction) -> dict[str, Any]:
    from ..inbound.domain import Intent

    if isinstance(found, Intent):
        return found._asdict()
    return {**found._asdict(), "requests": [request._asdict() for request in found.requests]}


def _money(billionths: int) -> str:
    """Exact, and without an exponent."""
    from decimal import Decimal

    from ..inbound.llm.settings import BILLION

    return f"{(Decimal(billionths) / BILLION).normalize():f}"
