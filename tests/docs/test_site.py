"""The documentation site builds strictly, loads nothing from other hosts, and has each page as Markdown."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest

from .pages import DOCS, ROOT, links

pytestmark = pytest.mark.xdist_group("site")

ASSETS = {"script": "src", "link": "href", "img": "src", "source": "src", "iframe": "src", "object": "data"}


def build(folder: Path, site: Path) -> subprocess.CompletedProcess[str]:
    """Build the site of a repository as `make docs` does, but strictly."""
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)],
        cwd=folder, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site."""
    folder = tmp_path_factory.mktemp("site")
    done = build(ROOT, folder)
    assert done.returncode == 0, done.stderr
    return folder


class Page(HTMLParser):
    """The assets, the links and the classes of an HTML page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.assets: list[str] = []
        self.links: list[str] = []
        self.classes: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect what the tag refers to."""
        values = {name: value or "" for name, value in attrs}
        self.classes.update(values.get("class", "").split())
        if tag in ASSETS and ASSETS[tag] in values:
            self.assets.append(values[ASSETS[tag]])
        if tag == "a" and "href" in values:
            self.links.append(values["href"])


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, Page]:
    """Every page of the site by its address within the site."""
    return {path.parent.relative_to(site).as_posix(): Page(path) for path in site.rglob("index.html")}


def is_external(address: str) -> bool:
    """Whether an address names a host."""
    return re.match(r"([a-z]+:)?//", address) is not None


# -- the built site


def test_the_site_loads_no_script_style_image_or_font_from_another_host(site: Path, pages: dict[str, Page]) -> None:
    """Neither a page nor a style sheet names a host; no page has a diagram, which would load a script."""
    for path, page in pages.items():
        assert [asset for asset in page.assets if is_external(asset)] == [], path
        assert "mermaid" not in page.classes, path
    for sheet in site.rglob("*.css"):
        addresses = re.findall(r"(?:url\(|@import(?!\s+url))\s*[\"']?([^\"')\s]+)", sheet.read_text(encoding="utf-8"))
        assert [address for address in addresses if is_external(address)] == [], sheet


def test_every_relative_link_of_the_site_leads_to_a_file(site: Path, pages: dict[str, Page]) -> None:
    """Also links out of docs/, and those of pages that live outside docs/."""
    known = {path.relative_to(site).as_posix() for path in [site, *site.rglob("*")]}
    for path, page in pages.items():
        for link in [*page.links, *page.assets]:
            target = os.path.normpath(os.path.join(path, unquote(urldefrag(link).url)))
            assert re.match(r"[a-z]+:", link) or target in known, f"{path}: {link}"


def test_every_page_is_in_llms_txt_and_has_its_markdown_beside_the_html(site: Path, pages: dict[str, Page]) -> None:
    """page.md is beside page/index.html, and llms.txt has its title and a description."""
    text = (site / "llms.txt").read_text(encoding="utf-8")
    entries = re.findall(r"^- \[[^\]]+\]\(([^)]+\.md)\): \S.*$", text, re.MULTILINE)
    listed = {re.sub(r"(^|/)index$", "", entry.removesuffix(".md")) or "." for entry in entries}

    assert text.startswith("# Tidings\n\n> Tidings is ")
    assert len(entries) == text.count("\n- ") == len(set(entries))
    assert listed == set(pages) - {"."}
    for entry in [*entries, "index.md"]:
        assert (site / entry).read_text(encoding="utf-8").startswith("# "), entry


def test_the_links_between_the_markdown_pages_of_the_site_lead_to_files(site: Path) -> None:
    """A program that reads only Markdown can follow them."""
    for path in site.rglob("*.md"):
        for link in links(path.read_text(encoding="utf-8")):
            place = urldefrag(link).url
            assert re.match(r"[a-z]+:", link) or (path.parent / place).exists(), f"{path.name}: {link}"


def test_the_navigation_has_the_groups_of_the_index(site: Path) -> None:
    """By kind of page; how-to guides by subject."""
    text = (site / "how-to/send/index.html").read_text(encoding="utf-8")
    tabs = re.findall(r'<a href="[^"]+" class="md-tabs__link">\s*(.*?)\s*</a>', text, re.DOTALL)

    assert [re.sub(r"\s+", " ", tab) for tab in tabs] == [
        "Home", "Tutorial", "How-to guides", "Reference", "Explanation", "Examples", "Project",
    ]  # fmt: skip
    for group in re.findall(r"^### (.+)$", (DOCS / "README.md").read_text(encoding="utf-8"), re.MULTILINE):
        assert re.search(rf'<span class="md-ellipsis">\s*{group}\s*</span>', text), group


# -- what the build refuses


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A repository with the project's configuration and two pages, one of them outside docs/."""
    for name in ("mkdocs.yml", "tools/docs_site.py", "src/tidings/dashboard/static/icon.svg"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/README.md").write_text(
        "# Docs\n\nA summary.\n\n## Guides\n\n- [Send](send.md): send it.\n- [Design](../DESIGN.md): why.\n"
    )
    (tmp_path / "docs/send.md").write_text("# Send\n\nSee [why](../DESIGN.md#why) and [data](../data.csv).\n")
    (tmp_path / "DESIGN.md").write_text("# Design\n\n## Why\n\n[Send](docs/send.md), `[x](gone.md)`\n")
    (tmp_path / "data.csv").write_text("a,b\n")
    (tmp_path / "notes.md").write_text("# Notes\n")
    return tmp_path


def test_pages_and_files_outside_docs_become_part_of_the_site(small: Path) -> None:
    """Pages that the index lists are pages; other linked files are copied; code stays as it is."""
    done = build(small, small / "out")

    assert done.returncode == 0, done.stderr
    assert (small / "out/project/design/index.html").exists()
    assert (small / "out/project/data.csv").read_text() == "a,b\n"
    assert "[why](project/design.md#why) and [data](project/data.csv)" in (small / "out/send.md").read_text()
    assert "[Send](../send.md), `[x](gone.md)`" in (small / "out/project/design.md").read_text()


def test_the_build_fails_for_a_broken_link_and_for_a_page_that_the_index_does_not_list(small: Path) -> None:
    """Each problem is named, and each is an error."""
    with (small / "docs/send.md").open("a") as page:
        page.write("[a](gone.md) [b](../notes.md) [c](../gone.csv) [d](../DESIGN.md#gone) [e](/absolute.md)")
    with (small / "DESIGN.md").open("a") as page:
        page.write("[f](docs/send.md#gone)")
    (small / "docs/new.md").write_text("# New\n")
    problems = [
        "docs/send.md links to docs/gone.md, which docs/README.md does not list",
        "docs/send.md links to notes.md, which docs/README.md does not list",
        "docs/send.md links to gone.csv, which is not a file of the repository",
        "docs/send.md has the absolute link /absolute.md",
        "'send.md' contains a link 'project/design.md#gone'",
        "'project/design.md' contains a link '../send.md#gone'",
        'not included in the "nav" configuration:\n  - new.md',
    ]

    done = build(small, small / "out")
    warnings = re.findall(r"^WARNING(?:(?!^INFO).)*", done.stderr, re.MULTILINE | re.DOTALL)

    assert done.returncode == 1
    assert [problem for problem in problems if problem not in "".join(warnings)] == [], done.stderr
