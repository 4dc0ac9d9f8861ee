"""`tidings docs`: the documentation of this version, from the installed package or the source tree.

The wheel has the repository's Markdown pages, `deploy/` and `examples/` in `tidings/manual`, at their paths in
the repository, so that links between pages work. `docs/README.md` is the only list of pages.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from difflib import get_close_matches
from functools import cache
from itertools import groupby
from operator import itemgetter
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, NamedTuple

import typer

from ..model.errors import Invalid, NotFound
from . import output
from .options import AsJson, argument

EXAMPLES = (
    "tidings docs",
    "tidings docs rate-limits",
    "tidings docs postgresql#failover",
    "tidings docs --search quiet hours",
    "tidings docs deploy --path",
)
HOME = PurePosixPath("docs/README.md")
_TITLE = re.compile(r"(?P<marks>#{2,3}) (?P<title>.+)")
_ENTRY = re.compile(r"- \[(?P<title>[^\]]+)\]\((?P<link>[^)#]+)\): (?P<description>.+)")
_HEADING = re.compile(r"^(?:```.*?^```[ \t]*$|(?P<marks>#{1,6}) +(?P<title>.+?) *$)", re.MULTILINE | re.DOTALL)


class DocPage(NamedTuple):
    """A page as the index lists it: the headings above it, and its path in the repository."""

    section: tuple[str, ...]
    title: str
    source: PurePosixPath
    description: str

    @property
    def topic(self) -> str:
        """The full name: its path without `docs/`, `.md` and `README`; pages of the root are below `project/`."""
        parts = self.source.with_suffix("").parts
        parts = ("project", parts[0].lower()) if len(parts) == 1 else parts[parts[0] == HOME.parts[0] :]
        return "/".join(parts).removesuffix("/README")


def docs(
    words: Annotated[list[str] | None, argument("TOPIC", "Page, such as send, or page#section; or words.")] = None,
    search: Annotated[bool, typer.Option("--search", help="List the pages that contain all words.")] = False,
    path: Annotated[bool, typer.Option("--path", help="Print the path of the file or folder.")] = False,
    as_json: AsJson = False,
) -> None:
    """Read the documentation.

    Without a topic, lists all pages. The pages are part of the installation, and match its version.
    """
    pages = read_index(_read(HOME))
    if search and not words:
        raise Invalid("--search has no words", remedy="write for example: tidings docs --search rate limits")
    if words and search:
        output.listing(
            _matches(pages, words),
            output.Column.plain("topic:keep", "title", "match"),
            as_json=as_json,
            nothing="no page contains all of these words",
        )
    elif words:
        wanted, _, anchor = "-".join(words).partition("#")
        page = find_page(pages, wanted)
        text = cut_section(_read(page.source), anchor, short_topic(page, pages)) if anchor else _read(page.source)
        _show_page({**_row(page, pages), "path": str(manual() / page.source), "text": text}, path, as_json)
    elif path:
        print(manual())
    else:
        _show_index([_row(page, pages) for page in pages], as_json)


@cache
def manual() -> Path:
    """Return the folder of the pages: in the installed package or, in a source tree, the repository."""
    package = Path(__file__).parents[1]
    for folder in (package / "manual", package.parents[1]):
        if (folder / HOME).is_file():
            return folder
    raise NotFound("this installation has no documentation", remedy="install tidings from its wheel or its sdist")


def read_index(text: str) -> list[DocPage]:
    """Parse the pages of the index with their sections."""
    pages: list[DocPage] = []
    section: tuple[str, ...] = ()
    for line in re.sub(r"\n  +", " ", text).splitlines():
        if heading := _TITLE.fullmatch(line):
            section = (*section[: len(heading["marks"]) - 2], heading["title"])
        elif (entry := _ENTRY.fullmatch(line)) and section:
            source = PurePosixPath(os.path.normpath(HOME.parent / entry["link"]))
            pages.append(DocPage(section, entry["title"], source, entry["description"]))
    return pages


def find_page(pages: Sequence[DocPage], wanted: str) -> DocPage:
    """Return the page with this name or end of a name. Raises Invalid with near matches."""
    name = wanted.lower().removeprefix("docs/").removesuffix(".md")
    found = [page for page in pages if f"/{page.topic}".endswith(f"/{name}") or name == f"{page.topic}/readme"]
    if len(found) == 1:
        return found[0]
    topics = [short_topic(page, pages) for page in found or pages]
    if found:
        raise Invalid(f"{wanted!r} names {len(found)} pages", field="TOPIC", remedy=f"use {' or '.join(topics)}")
    near = [topic for topic in topics if name in topic] or get_close_matches(name, topics, 3, 0.5)
    hint = f"Did you mean {' or '.join(near[:3])}?" if near else "Run: tidings docs"
    raise Invalid(f"there is no page {wanted!r}", field="TOPIC", remedy=hint)


def short_topic(page: DocPage, pages: Sequence[DocPage]) -> str:
    """Return the shortest end of a topic that no other page shares."""
    parts = page.topic.split("/")
    tails = ("/".join(parts[-count:]) for count in range(1, len(parts)))
    others = [f"/{other.topic}" for other in pages if other != page]
    return next((tail for tail in tails if not any(other.endswith(f"/{tail}") for other in others)), page.topic)


def cut_section(text: str, anchor: str, topic: str) -> str:
    """Return the section with this anchor, with its subsections. Raises Invalid with near matches."""
    headings = [(found, _slug(found["title"])) for found in _HEADING.finditer(text) if found["marks"]]
    for at, (found, slug) in enumerate(headings):
        if slug == anchor.lower():
            rest = (later for later, _ in headings[at + 1 :] if len(later["marks"]) <= len(found["marks"]))
            end = next(rest, None)
            return text[found.start() : end.start() if end else len(text)]
    near = get_close_matches(anchor, [slug for _, slug in headings], 3, 0.4) or [slug for _, slug in headings[1:4]]
    hint = " or ".join(f"{topic}#{slug}" for slug in near)
    raise Invalid(f"the page {topic} has no section {anchor!r}", field="TOPIC", remedy=f"Did you mean {hint}?")


def _slug(heading: str) -> str:
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


def _read(source: PurePosixPath) -> str:
    return (manual() / source).read_text(encoding="utf-8")


def _row(page: DocPage, pages: Sequence[DocPage]) -> dict[str, Any]:
    topic, section = short_topic(page, pages), ": ".join(page.section)
    return {"topic": topic, "title": page.title, "section": section, "description": page.description}


def _matches(pages: Sequence[DocPage], words: Sequence[str]) -> list[dict[str, Any]]:
    """Return the pages that contain all words, the best first, each with the line that has most of them."""
    wanted = [word.lower() for given in words for word in given.split()]
    found = []
    for page in pages:
        text = _read(page.source)
        if all(word in text.lower() for word in wanted):
            lines = [line.strip() for line in text.splitlines() if line.strip()]
            best = max(lines, key=lambda line: sum(word in line.lower() for word in wanted))
            listed = f"{page.topic} {page.title} {page.description}".lower()
            score = (sum(word in listed for word in wanted), sum(word in best.lower() for word in wanted))
            found.append((score, {**_row(page, pages), "match": best}))
    return [row for _, row in sorted(found, key=lambda one: one[0], reverse=True)]


def _show_index(rows: Sequence[output.Row], as_json: bool) -> None:
    if as_json or not output.on_terminal():
        columns = output.Column.plain("topic", "title", "section", "description")
        output.listing(rows, columns, as_json=as_json, nothing="")
        return
    width = max(len(row["topic"]) for row in rows)
    for section, group in groupby(rows, key=itemgetter("section")):
        output.say((f"{section}", "bold"))
        for row in group:
            output.say((f"  {row['topic']:<{width}}", "cyan"), f"  {row['title']}")
    output.say(("Read a page with: tidings docs TOPIC", "dim"))


def _show_page(row: output.Row, only_path: bool, as_json: bool) -> None:
    """Print a page: formatted and in a pager on a terminal, otherwise as it is."""
    if as_json:
        output.say_json(row)
    elif only_path:
        print(row["path"].removesuffix("/README.md"))
    elif not output.on_terminal():
        print(row["text"], end="")
    else:
        from rich.markdown import Markdown

        os.environ.setdefault("LESS", "-FRX")  # keeps colors, and exits at once if the page fits on the screen
        terminal = output.console()
        with terminal.pager(styles=True):
            terminal.print(Markdown(row["text"], hyperlinks=False))
