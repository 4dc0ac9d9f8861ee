"""Bulk sending from an NDJSON file: streamed, one transaction per chunk.

An invalid line is reported and skipped. With an idempotency key, an interrupted call can be repeated.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any, BinaryIO

import orjson

from ..model.errors import CallerError, Invalid, TidingsError, TooLarge
from ..outbound.draft_parser import DraftParser
from . import engine, files, output
from .command_audit import audited

if TYPE_CHECKING:
    from ..config import Settings
    from ..model.message import Draft

_REMEDY = 'write one JSON object per line: {"to": "ada", "text": "hello"}'


async def send_file(chosen: Settings, name: str, defaults: Mapping[str, Any], *, key: str | None, as_json: bool) -> int:
    """Accept every valid line. Return exit code 0, or 2 if a line was rejected."""
    accepted = refused = 0
    with files.opened(name) as file:
        async with engine.opened(chosen) as app, audited(app, "messages.accept_many"):
            parser = DraftParser(now=app.clock.now(), timezone=chosen.timezone)
            with files.progress(file, is_shown=not as_json) as show:
                drafts = _drafts(file, parser, defaults, show, most=chosen.max_bulk)
                try:
                    async for lines in app.outbound.messages.accept_many(drafts, key=key):
                        bad = [(line.number, line.error) for line in lines if line.error is not None]
                        files.print_bad_rows(bad, word="line", room=files.MAX_REPORTED - refused)
                        accepted, refused = accepted + len(lines) - len(bad), refused + len(bad)
                except BaseException:  # includes signals
                    print(f"interrupted: {accepted:,} messages were accepted", file=sys.stderr)
                    raise
    if as_json:
        output.say_json({"accepted": accepted, "refused": refused})
    elif output.on_terminal():
        output.say(
            ("✓ " if not refused else "! ", "green" if not refused else "yellow"),
            f"{accepted:,} accepted" + (f", {refused:,} rejected" if refused else ""),
        )
    else:
        print(f"accepted\t{accepted}\nrefused\t{refused}")
    return CallerError.exit_code if refused else 0


async def _drafts(
    file: BinaryIO, parser: DraftParser, defaults: Mapping[str, Any], show: files.Show, *, most: int
) -> AsyncIterator[tuple[int, Draft | TidingsError]]:
    read = 0
    for number, line in enumerate(file, 1):
        read += len(line)
        if number % 1000 == 0:
            show(read)
        if number > most:
            raise TooLarge(f"more than {most:,} lines", remedy="split the file, or raise max_bulk")
        if not line.isspace():
            yield number, _draft(line, parser, defaults)
    show(read)


def _draft(line: bytes, parser: DraftParser, defaults: Mapping[str, Any]) -> Draft | TidingsError:
    """Parse one line; the options fill in missing fields."""
    try:
        fields = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        return Invalid(f"not JSON: {error.msg} at character {error.pos}", remedy=_REMEDY)
    if not isinstance(fields, dict):
        return Invalid("not a JSON object", remedy=_REMEDY)
    has_time = not {"at", "in"}.isdisjoint(fields)
    rest = {name: value for name, value in defaults.items() if not (has_time and name in ("at", "in"))}
    try:
        return parser.draft(rest | fields, keep=True)
    except TidingsError as error:
        return error
