"""MkDocs hook that builds the documentation site from the repository's Markdown files.

`docs/README.md` is the home page and the only list of pages: its headings and links become the navigation and
`llms.txt`. The pages stay plain Markdown that also works on a code host, so this hook

- adds listed pages that live outside `docs/` (`ARCHITECTURE.md`, `deploy/README.md`) below `project/`,
- rewrites relative links to where their targets are in the site, and copies linked files that are not pages,
- writes the Markdown of each page next to its HTML.
"""

from __future__ import annotations

import logging
import os.path
import re
from collections.abc import Callable, Iterator
from itertools import groupby
from operator import attrgetter
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from tidings.cli.docs import HOME, DocPage, read_index

ICON = PurePosixPath("src/tidings/dashboard/static/icon.svg")

_log = logging.getLogger("mkdocs.plugins.docs_site")

_FENCE = re.compile(
    r"^```(?P<language>\w*) ?(?P<word>[^\s`]*)[^\n`]*\n(?P<text>.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL
)
_CODE = re.compile(r"`[^`\n]+`")
_LINK = re.compile(r"(?<=\]\()(?P<path>[^)\s#:]+)(?P<anchor>#[^)\s]*)?(?=\))")
_ARROW = re.compile(r"^\s*(\S+) --> (\w+): (.+)$", re.MULTILINE)


# -- events of MkDocs


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Set the navigation and watch the pages outside docs/."""
    pages = read_index(_home(config))
    config.nav = [{"Home": site_path(HOME)}, *navigation(pages)]
    config.watch.extend(str(_root(config) / page.source) for page in _outside(pages))
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Serve docs/README.md as the home page; add the pages outside docs/ and the icon."""
    home = files.get_file_from_path(HOME.name)
    if home is not None:
        files.remove(home)
    for source in (HOME, *(page.source for page in _outside(read_index(_home(config))))):
        files.append(_file(source, config))
    files.append(_file(ICON, config, "assets/icon.svg"))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Adapt links and fenced blocks to the site."""
    source = _source(page.file, config)

    def link(found: re.Match[str]) -> str:
        target = PurePosixPath(os.path.normpath(source.parent / found["path"]))
        return _relative(_linked(target, source, config, files), page.file.src_uri) + (found["anchor"] or "")

    return "".join(
        _block(part) if part.startswith("```") else _outside_code(part, lambda text: _LINK.sub(link, text))
        for part in _parts(markdown)
    )


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lay out the lists of the home page as cards."""
    if not page.is_homepage:
        return html
    page.meta["hide"] = ["navigation"]
    cards = re.sub(r"<li>(<a [^>]*>.*?</a>): (.*?)</li>", r"<li>\1<span>\2</span></li>", html, flags=re.DOTALL)
    return f'<div class="index">\n{cards}\n</div>'


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Write the page's Markdown next to its HTML: page.md beside page/index.html."""
    path = Path(config.site_dir, page.file.src_uri)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page.markdown or "", encoding="utf-8")
    return output


def on_post_build(config: MkDocsConfig) -> None:
    """Write llms.txt (the llmstxt.org format)."""
    text = llms_text(config.site_name, _summary(_home(config)), read_index(_home(config)))
    Path(config.site_dir, "llms.txt").write_text(text, encoding="utf-8")


# -- the index


def navigation(pages: list[DocPage]) -> list[dict[str, Any]]:
    """Return the pages in the form of the setting `nav`."""
    nav: dict[str, list[dict[str, Any]]] = {}
    for (top, *inner), group in groupby(pages, attrgetter("section")):
        items: list[dict[str, Any]] = [{page.title: site_path(page.source)} for page in group]
        nav.setdefault(top, []).extend([{inner[0]: items}] if inner else items)
    return [{title: items} for title, items in nav.items()]


def llms_text(name: str, summary: str, pages: list[DocPage]) -> str:
    """Return llms.txt; its links lead to the Markdown pages."""
    lines = [f"# {name}", "", f"> {summary}"]
    for section, group in groupby(pages, attrgetter("section")):
        lines += ["", f"## {': '.join(section)}", ""]
        lines += [f"- [{page.title}]({site_path(page.source)}): {page.description}" for page in group]
    return "\n".join(lines) + "\n"


def site_path(source: PurePosixPath) -> str:
    """Return the place of a repository's file in the site: docs/ is its root, all else is below project/."""
    inside = source.parts[0] == HOME.parts[0]
    place = PurePosixPath(*source.parts[1:]) if inside else PurePosixPath("project", source)
    if place.name == "README.md":
        return place.with_name("index.md").as_posix()
    return place.with_name(place.name.lower()).as_posix() if place.suffix == ".md" else place.as_posix()


def _summary(text: str) -> str:
    return text.split("\n\n")[1].replace("\n", " ")


def _home(config: MkDocsConfig) -> str:
    return (_root(config) / HOME).read_text(encoding="utf-8")


def _outside(pages: list[DocPage]) -> list[DocPage]:
    return [page for page in pages if page.source.parts[0] != HOME.parts[0]]


# -- files and links


def _root(config: MkDocsConfig) -> Path:
    return Path(config.config_file_path).parent


def _file(source: PurePosixPath, config: MkDocsConfig, place: str | None = None) -> File:
    return File.generated(config, place or site_path(source), abs_src_path=str(_root(config) / source))


def _source(file: File, config: MkDocsConfig) -> PurePosixPath:
    return PurePosixPath(Path(file.abs_src_path or "").relative_to(_root(config)).as_posix())


def _linked(target: PurePosixPath, source: PurePosixPath, config: MkDocsConfig, files: Files) -> str:
    """Return the target's place in the site; a file that is not a page is added to the site."""
    if target.is_absolute():
        _log.warning(f"{source} has the absolute link {target}: make it relative to the page.")
        return target.as_posix()
    place = site_path(target)
    if files.get_file_from_path(place) is None:
        if target.suffix == ".md":
            _log.warning(f"{source} links to {target}, which {HOME} does not list: add it there.")
        elif not (_root(config) / target).is_file():
            _log.warning(f"{source} links to {target}, which is not a file of the repository.")
        else:
            files.append(_file(target, config))
    return place


def _relative(place: str, page: str) -> str:
    return PurePosixPath(os.path.relpath(place, PurePosixPath(page).parent)).as_posix()


# -- Markdown


def _parts(markdown: str) -> Iterator[str]:
    """Split into prose and fenced blocks, in order."""
    end = 0
    for block in _FENCE.finditer(markdown):
        yield markdown[end : block.start()]
        yield block[0]
        end = block.end()
    yield markdown[end:]


def _outside_code(text: str, change: Callable[[str], str]) -> str:
    """Apply a change to everything that is not between back-quotes."""
    codes = [*_CODE.findall(text), ""]
    return "".join(change(part) + code for part, code in zip(_CODE.split(text), codes, strict=True))


def _block(block: str) -> str:
    """Make a file's name after a fence's language the title; drop other words, which only the tests read."""
    found = _FENCE.fullmatch(block)
    assert found is not None
    if found["language"] == "mermaid":
        return _transitions(found["text"])
    title = f' title="{found["word"]}"' if "." in found["word"] else ""
    return f"```{found['language']}{title}\n{found['text']}```"


def _transitions(diagram: str) -> str:
    """Return a state diagram as a table: drawing it would need a script from another host."""
    rows = [
        f"| {'new' if origin == '[*]' else f'`{origin}`'} | `{to}` | {cause} |"
        for origin, to, cause in _ARROW.findall(diagram)
    ]
    return "\n".join(["| from | to | cause |", "| --- | --- | --- |", *rows])
