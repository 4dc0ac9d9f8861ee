"""`tidings templates`: message templates with variables, kept in versions."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from . import output, shell_completion
from .commands import CommandContext, command
from .options import After, Key, Limit, Var, argument, channel_option, option, parse_json, parse_pairs
from .output import Column, Row

group = typer.Typer(help="Save, preview and version message templates.", no_args_is_help=True)

Name = Annotated[str, argument("NAME", "Template name or id.", complete=shell_completion.templates)]
Version = Annotated[int | None, option("N", "Version of the template. [newest]")]


@dataclass(frozen=True)
class ContentOptions:
    """The content of a template version."""

    text: Annotated[
        str | None, option("--text", "-t", "TEXT", "Text with {{ variables }}, or - to read it from stdin.")
    ] = None
    subject: Annotated[str | None, option("TEXT", "Subject; may contain variables.")] = None
    data: Annotated[str | None, option("JSON", "JSON object; its strings may contain variables.")] = None
    declare: Annotated[
        list[str] | None,
        option("NAME[:TYPE][=DEFAULT]", "Variable; TYPE is text, number, date, boolean or list. Repeatable. [text]"),
    ] = None
    file: Annotated[Path | None, option("FILE", "JSON file with text, subject, data and variables.")] = None

    def given(self) -> dict[str, Any]:
        """Return the given content; options override the file."""
        options = {
            "text": sys.stdin.read().rstrip("\n") if self.text == "-" else self.text,
            "subject": self.subject,
            "data": parse_json(self.data, "--data"),
            "variables": dict(map(_declared, self.declare)) if self.declare else None,
        }
        return {**_read(self.file), **{name: value for name, value in options.items() if value is not None}}


@command(
    group,
    "tidings templates add welcome --text 'Hello {{ name }}' --declare name",
    "tidings templates add bill --file bill.json",
)
async def add(
    ctx: CommandContext,
    name: Annotated[str, argument("NAME", "Name of the new template.")],
    *,
    content: ContentOptions,
    key: Key = None,
) -> None:
    """Save a new template. Errors in it are reported immediately."""
    body = {"name": name, **content.given()}
    _print_saved(await ctx.outbound.templates.create(body, key=key), as_json=ctx.as_json)


@command(group, "tidings templates edit welcome --text 'Good morning {{ name }}'")
async def edit(ctx: CommandContext, name: Name, *, content: ContentOptions, key: Key = None) -> None:
    """Save a new version of a template. Fields that are not given stay the same."""
    from ..model.errors import Invalid

    given = content.given()
    if not given:
        raise Invalid("nothing to change", remedy="add --text, --subject, --data, --declare or --file")
    newest = await ctx.outbound.templates.show(name)
    kept = {part: newest[part] for part in ("text", "subject", "data", "variables")}
    _print_saved(await ctx.outbound.templates.revise(name, kept | given, key=key), as_json=ctx.as_json)


@command(group, "tidings templates list", "tidings templates list --retired", name="list")
async def list_(
    ctx: CommandContext,
    *,
    retired: Annotated[bool, typer.Option("--retired", help="Include retired templates.")] = False,
    limit: Limit = 20,
    after: After = None,
) -> None:
    """List templates by name."""
    page = await ctx.outbound.templates.page(retired=retired, limit=limit, after=after)
    columns = [
        *Column.plain("name:keep", "version:right", "changed=changed_at:time"),
        Column("state", lambda row: "retired" if row["retired_at"] else "in use"),
        *Column.plain("id:keep"),
    ]
    nothing = "no templates yet; save one with: tidings templates add"
    ctx.listing(page.items, columns, more=page.next, nothing=nothing)


@command(group, "tidings templates show welcome", "tidings templates show welcome --version 2")
async def show(ctx: CommandContext, name: Name, *, version: Version = None) -> None:
    """Show a template with its variables."""
    row = await ctx.outbound.templates.show(name, version=version)
    ctx.answer(row, lambda: _print(row))


@command(group, "tidings templates versions welcome")
async def versions(ctx: CommandContext, name: Name, *, limit: Limit = 20, after: After = None) -> None:
    """List the versions of a template, newest first."""
    page = await ctx.outbound.templates.versions(name, limit=limit, after=after)
    columns = [
        *Column.plain("version:right", "saved=saved_at:time"),
        Column("variables", lambda row: ", ".join(row["variables"])),
        Column("text", lambda row: row["text"] or row["data"]),
    ]
    ctx.listing(page.items, columns, more=page.next, nothing="no versions")


@command(
    group,
    "tidings templates preview welcome --var name=Ada",
    "tidings templates preview welcome --channel phone --to ada",
    """tidings templates preview bill --contact '{"language": "de", "timezone": "Europe/Berlin"}'""",
)
async def preview(
    ctx: CommandContext,
    name: Name,
    *,
    version: Version = None,
    var: Var = None,
    contact: Annotated[
        str | None, option("JSON", "Fields of a made-up contact: name, timezone, language, tags, attributes.")
    ] = None,
    channel: Annotated[str | None, channel_option("With --to: use the contact with this address.")] = None,
    to: Annotated[str | None, option("ADDRESS", "Address of an existing contact.")] = None,
) -> None:
    """Render a template without sending it. Missing variables get their example values."""
    body = {
        "version": version, "variables": parse_pairs(var, "--var"),
        "contact": parse_json(contact, "--contact"), "channel": channel, "to": to,
    }  # fmt: skip
    made = await ctx.outbound.templates.preview(name, body)
    if ctx.as_json:
        output.say_json(made)
        return
    output.facts(
        [
            ("subject", made["subject"], None),
            ("text", made["text"], _whole(made["text"])),
            *output.fields(made, "data", "contact"),
            ("example values", ", ".join(made["examples"]), None),
        ]
    )


@command(group, "tidings templates retire welcome")
async def retire(ctx: CommandContext, name: Name) -> None:
    """Retire a template. Messages that use it are not affected."""
    _print_state(ctx, await ctx.outbound.templates.retire(name))


@command(group, "tidings templates restore welcome")
async def restore(ctx: CommandContext, name: Name) -> None:
    """Restore a retired template."""
    _print_state(ctx, await ctx.outbound.templates.restore(name))


def _print_state(ctx: CommandContext, row: Row) -> None:
    ctx.answer(row, lambda: output.say((row["name"], "bold"), " is retired" if row["retired_at"] else " is in use"))


def _read(file: Path | None) -> dict[str, Any]:
    if file is None:
        return {}
    from ..model.errors import Invalid

    try:
        found: dict[str, Any] = parse_json(file.read_text(encoding="utf-8"), str(file), is_object=True)
    except (OSError, UnicodeDecodeError) as error:
        raise Invalid(f"{file} cannot be read ({error})", field="file", remedy="give a JSON file") from None
    return found


def _declared(variable: str) -> tuple[str, Mapping[str, Any]]:
    head, equals, default = variable.partition("=")
    name, _, kind = head.partition(":")
    return name, {"type": kind or "text", **({"default": default} if equals else {})}


def _print_saved(created: Any, *, as_json: bool) -> None:
    row = created.answer
    if as_json:
        output.say_json({**row, "replayed": created.replayed})
    elif not output.on_terminal():
        print(f"{row['id']}\t{row['name']}\t{row['version']}")
    else:
        before = " was already saved as version " if created.replayed else " saved as version "
        output.say(("✓ ", "green"), (row["name"], "bold"), before, str(row["version"]))


def _print(row: Row) -> None:
    output.facts(
        [
            *output.fields(row, "name", "id", "version", "saved=saved_at", "retired=retired_at", "subject"),
            ("text", row["text"], _whole(row["text"])),
            *output.fields(row, "data"),
        ]
    )
    output.say()
    variables = [{"name": name, **rest} for name, rest in row["variables"].items()]
    columns = Column.plain("variable=name:keep", "type", "required", "default", "example")
    output.listing(variables, columns, nothing="no variables")


def _whole(text: str | None) -> str | None:
    """Return a text with its line breaks, but without other control characters."""
    return None if text is None else "\n".join(map(output.flat, text.split("\n")))
