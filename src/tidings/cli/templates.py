"""`tidings templates`: contents with gaps, kept in versions; look at them and try them out."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from . import output, shell_completion
from .commands import CommandContext, command
from .help import examples
from .options import After, Limit, argument, channel_option, option
from .output import Column, Row

group = typer.Typer(help="Contents with gaps: save, try, use.", no_args_is_help=True)

Name = Annotated[str, argument("NAME", "The template's name or id.", complete=shell_completion.templates)]
Key = Annotated[str | None, option("KEY", "Idempotency key: the same call again changes nothing.")]
Version = Annotated[int | None, option("N", "Which version; the newest unless given.")]
Var = Annotated[list[str] | None, option("--var", "NAME=VALUE", "A value for a gap; repeat it.")]


@dataclass(frozen=True)
class ContentOptions:
    """What a version says."""

    text: Annotated[str | None, option("--text", "-t", "TEXT", "What it says, with gaps; - reads it.")] = None
    subject: Annotated[str | None, option("TEXT", "A heading; may have gaps.")] = None
    data: Annotated[str | None, option("JSON", "A JSON object; its strings may have gaps.")] = None
    declare: Annotated[
        list[str] | None,
        option(
            "NAME[:TYPE][=DEFAULT]",
            "A gap: text unless it says number, date, boolean or list; repeat it for each.",
        ),
    ] = None
    file: Annotated[Path | None, option("FILE", "A JSON file with text, subject, data and variables.")] = None

    def given(self) -> dict[str, Any]:
        """What was given, the options over the file."""
        options = {
            "text": sys.stdin.read().rstrip("\n") if self.text == "-" else self.text,
            "subject": self.subject,
            "data": _parsed(self.data, "--data"),
            "variables": dict(map(_declared, self.declare)) if self.declare else None,
        }
        return {**_read(self.file), **{name: value for name, value in options.items() if value is not None}}


@command(
    group,
    epilog=examples(
        "tidings templates add welcome --text 'Hello {{ name }}' --declare name",
        "tidings templates add bill --file bill.json",
    ),
)
async def add(
    ask: CommandContext,
    name: Annotated[str, argument("NAME", "What to call it.")],
    *,
    content: ContentOptions,
    key: Key = None,
) -> None:
    """Save a new template. What it cannot say is told now."""
    body = {"name": name, **content.given()}
    _told(await ask.desk.templates.create(body, key=key), as_json=ask.as_json)


@command(group, epilog=examples("tidings templates edit welcome --text 'Good morning {{ name }}'"))
async def edit(
    ask: CommandContext,
    name: Name,
    *,
    content: ContentOptions,
    key: Key = None,
) -> None:
    """Save the next version. What is not given stays as it is; versions before stay, too."""
    from ..model.errors import Invalid

    given = content.given()
    if not given:
        raise Invalid(
            "nothing is to be changed", remedy="give --text, --subject, --data, --declare or --file"
        )
    newest = await ask.desk.templates.show(name)
    kept = {part: newest[part] for part in ("text", "subject", "data", "variables")}
    _told(await ask.desk.templates.revise(name, kept | given, key=key), as_json=ask.as_json)


@command(group, "list", epilog=examples("tidings templates list", "tidings templates list --retired"))
async def list_(
    ask: CommandContext,
    *,
    retired: Annotated[bool, typer.Option("--retired", help="Those out of use, too.")] = False,
    limit: Limit = 20,
    after: After = None,
) -> None:
    """Templates, by name."""
    page = await ask.desk.templates.page(retired=retired, limit=limit, after=after)
    now = ask.desk.clock.now()
    columns = [
        Column("name", lambda row: row["name"], keep=True),
        Column("version", lambda row: row["version"], right=True),
        Column.time("changed", "changed_at", now),
        Column("state", lambda row: "retired" if row["retired_at"] else "in use"),
        Column("id", lambda row: row["id"], keep=True),
    ]
    nothing = "no templates yet; save one: tidings templates add"
    ask.listing(page.items, columns, more=page.next, nothing=nothing)


@command(
    group, epilog=examples("tidings templates show welcome", "tidings templates show welcome --version 2")
)
async def show(
    ask: CommandContext,
    name: Name,
    *,
    version: Version = None,
) -> None:
    """What a template says, and its gaps."""
    row = await ask.desk.templates.show(name, version=version)
    ask.answer(row, lambda: _print(row))


@command(group, epilog=examples("tidings templates versions welcome"))
async def versions(
    ask: CommandContext,
    name: Name,
    *,
    limit: Limit = 20,
    after: After = None,
) -> None:
    """All that a template has said, newest first."""
    page = await ask.desk.templates.versions(name, limit=limit, after=after)
    now = ask.desk.clock.now()
    columns = [
        Column("version", lambda row: row["version"], right=True),
        Column.time("saved", "saved_at", now),
        Column("variables", lambda row: ", ".join(row["variables"])),
        Column("text", lambda row: row["text"] or row["data"]),
    ]
    ask.listing(page.items, columns, more=page.next, nothing="no versions")


@command(
    group,
    epilog=examples(
        "tidings templates preview welcome --var name=Ada",
        "tidings templates preview welcome --channel phone --to ada",
        """tidings templates preview bill --contact '{"language": "de", "timezone": "Europe/Berlin"}'""",
    ),
)
async def preview(
    ask: CommandContext,
    name: Name,
    *,
    version: Version = None,
    var: Var = None,
    contact: Annotated[str | None, option("JSON", "Who it is written to, made up for the preview.")] = None,
    channel: Annotated[str | None, channel_option("With --to: take this contact.")] = None,
    to: Annotated[str | None, option("WHO", "The recipient's address.")] = None,
) -> None:
    """What a template would say to somebody. Nothing is sent; examples stand in for values not given."""
    body = {
        "version": version, "variables": values(var), "contact": _parsed(contact, "--contact"),
        "channel": channel, "to": to,
    }  # fmt: skip
    made = await ask.desk.templates.preview(name, body)
    if ask.as_json:
        output.say_json(made)
        return
    output.facts(
        [
            ("subject", made["subject"], None),
            ("text", made["text"], _whole(made["text"])),
            *output.fields(made, "data", "contact"),
            ("by example", ", ".join(made["examples"]), None),
        ]
    )


@command(group, epilog=examples("tidings templates retire welcome"))
async def retire(ask: CommandContext, name: Name) -> None:
    """Take a template out of use. What was made of it stays."""
    _turned(ask, await ask.desk.templates.retire(name))


@command(group, epilog=examples("tidings templates restore welcome"))
async def restore(ask: CommandContext, name: Name) -> None:
    """Bring a retired template back."""
    _turned(ask, await ask.desk.templates.restore(name))


def _turned(ask: CommandContext, row: Row) -> None:
    ask.answer(
        row,
        lambda: output.say((row["name"], "bold"), " is retired" if row["retired_at"] else " is in use"),
    )


def values(given: Sequence[str] | None) -> dict[str, str]:
    """What `--var` says: a name, then what stands in its gap."""
    from ..model.errors import Invalid

    found: dict[str, str] = {}
    for pair in given or ():
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise Invalid(f"--var {pair!r} has no value", field="var", remedy="write --var NAME=VALUE")
        found[name] = value
    return found


def _read(file: Path | None) -> dict[str, Any]:
    if file is None:
        return {}
    from ..model.errors import Invalid

    try:
        found = _parsed(file.read_text(encoding="utf-8"), str(file))
    except (OSError, UnicodeDecodeError) as error:
        raise Invalid(f"{file} cannot be read ({error})", field="file", remedy="name a JSON file") from None
    if not isinstance(found, dict):
        raise Invalid(f"{file} is not a JSON object", field="file", remedy='write {"text": "…"}')
    return found


def _parsed(text: str | None, what: str) -> Any:
    if text is None:
        return None
    import orjson

    from ..model.errors import Invalid

    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise Invalid(
            f"{what} is not JSON ({error})",
            remedy="""write it as '{"name": "value"}'""",
            field=what.strip("-"),
        ) from None


def _declared(gap: str) -> tuple[str, Mapping[str, Any]]:
    head, equals, default = gap.partition("=")
    name, _, kind = head.partition(":")
    return name, {"type": kind or "text", **({"default": default} if equals else {})}


def _told(created: Any, *, as_json: bool) -> None:
    row = created.answer
    if as_json:
        output.say_json({**row, "replayed": created.replayed})
    elif not output.on_terminal():
        print(f"{row['id']}\t{row['name']}\t{row['version']}")
    else:
        before = " was saved before as version " if created.replayed else " is saved as version "
        output.say(("✓ ", "green"), (row["name"], "bold"), before, str(row["version"]))


def _print(row: Row) -> None:
    output.facts(
        [
            *output.fields(row, "name", "id", "version"),
            ("saved", row["saved_at"], None),
            ("retired", row["retired_at"], None),
            ("subject", row["subject"], None),
            ("text", row["text"], _whole(row["text"])),
            ("data", row["data"], None),
        ]
    )
    output.say()
    gaps = [{"name": name, **said} for name, said in row["variables"].items()]
    columns = [
        Column("variable", lambda gap: gap["name"], keep=True),
        *Column.plain("type", "required", "default", "example"),
    ]
    output.listing(gaps, columns, as_json=False, nothing="no gaps")


def _whole(text: str | None) -> str | None:
    """With its lines, but nothing else that could move a cursor."""
    return None if text is None else "\n".join(map(output.flat, text.split("\n")))
