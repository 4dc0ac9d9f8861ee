"""`tidings docs` in a pipe and on a terminal, and the pages that errors, alerts and pages of the dashboard name."""

from __future__ import annotations

import ast
import json
import os
import pty
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tidings.cli.docs import HOME, cut_section, find_page, manual, read_index, short_topic
from tidings.outbound.alerts.rules import RULES

from .program import environment, run

ROOT = Path(__file__).parents[2]
PAGES = read_index((manual() / HOME).read_text(encoding="utf-8"))
TIDINGS = ROOT / ".venv/bin/tidings"


def test_the_list_has_the_pages_and_groups_of_the_index(tmp_path: Path) -> None:
    """In a pipe, one line per page under a heading; in JSON, with the description."""
    lines = run("docs", folder=tmp_path).stdout.splitlines()
    items = json.loads(run("docs", "--json", folder=tmp_path).stdout)["items"]

    assert lines[0] == "topic\ttitle\tsection\tdescription"
    assert len(lines) - 1 == len(items) == len(PAGES)
    assert items[1]["section"] == "How-to guides: Send messages"
    assert len({item["topic"] for item in items}) == len(items)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.topic)
def test_every_page_is_found_by_its_short_and_its_full_name(page: object) -> None:
    """And its file is there, with a title."""
    (one,) = [known for known in PAGES if known == page]

    assert find_page(PAGES, one.topic) == find_page(PAGES, short_topic(one, PAGES)) == one
    assert (manual() / one.source).read_text(encoding="utf-8").startswith("# ")


def test_a_page_is_printed_as_it_is_in_a_pipe(tmp_path: Path) -> None:
    """Also by words, by its path in the repository, and one section of it with its subsections."""
    text = (ROOT / "docs/how-to/rate-limits.md").read_text(encoding="utf-8")
    section = run("docs", "postgresql#failover", folder=tmp_path).stdout
    shown = json.loads(run("docs", "rate-limits", "--json", folder=tmp_path).stdout)

    for words in (["rate-limits"], ["rate", "limits"], ["docs/how-to/rate-limits.md"]):
        assert run("docs", *words, folder=tmp_path).stdout == text
    assert section.startswith("## Failover\n") and "\n## " not in section
    assert (shown["text"], shown["path"]) == (text, str(ROOT / "docs/how-to/rate-limits.md"))


def test_a_heading_in_a_code_block_does_not_end_a_section() -> None:
    """A comment of a shell script begins with the same sign."""
    assert cut_section("# A\n## B\n```\n# c\n```\n### D\n## E\n", "b", "a") == "## B\n```\n# c\n```\n### D\n"


def test_search_lists_the_pages_with_all_words_the_best_first(tmp_path: Path) -> None:
    """Each with a line that has them."""
    found = json.loads(run("docs", "--search", "Ordering", "KEY", "--json", folder=tmp_path).stdout)["items"]

    assert found[0]["topic"] == "ordering-keys"
    assert all("ordering" in text and "key" in text for row in found for text in [page_text(row["topic"])])
    assert json.loads(run("docs", "--search", "xyzzy", "--json", folder=tmp_path).stdout)["items"] == []


def page_text(topic: str) -> str:
    return (manual() / find_page(PAGES, topic).source).read_text(encoding="utf-8").lower()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["snd"], "there is no page 'snd'. Did you mean send"),
        (["whatsapp"], "Did you mean whatsapp-cloud or whatsapp-session?"),
        (["errors"], "'errors' names 2 pages. Use runbooks/errors or reference/errors"),
        (["postgresql#failove"], "the page postgresql has no section 'failove'. Did you mean postgresql#failover?"),
        (["--search"], "--search has no words"),
        (["qqqqqq"], "there is no page 'qqqqqq'. Run: tidings docs"),
    ],
)
def test_a_wrong_topic_is_an_error_with_near_matches(words: list[str], told: str, tmp_path: Path) -> None:
    """With exit code 2, and nothing on stdout."""
    done = run("docs", *words, folder=tmp_path)

    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr


def test_on_a_terminal_a_page_is_formatted_and_goes_through_the_pager(tmp_path: Path) -> None:
    """The pager of the user gets the page without the marks of Markdown; the index names its groups."""
    pager = tmp_path / "pager"
    pager.write_text("#!/bin/sh\necho PAGED\ncat\n")
    pager.chmod(0o700)

    page, index = on_terminal("rate-limits", pager=pager), on_terminal(pager=pager)

    assert "PAGED" in page and "Set rate limits" in page and "# Set rate limits" not in page
    assert "How-to guides: Control delivery\n" in index and "tidings docs TOPIC" in index


def on_terminal(*words: str, pager: Path) -> str:
    """Run `tidings docs` on a terminal and return what it shows, without colors."""
    ours, theirs = pty.openpty()
    env = environment({"PAGER": str(pager), "TERM": "xterm", "COLUMNS": "120"})
    with subprocess.Popen([TIDINGS, "docs", *words], stdin=theirs, stdout=theirs, stderr=theirs, env=env) as done:
        os.close(theirs)
        shown = b"".join(read_all(ours))
    os.close(ours)
    assert done.returncode == 0, shown
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown.decode()).replace("\r\n", "\n")


def read_all(terminal: int) -> Iterator[bytes]:
    """Read until the other end is closed, which Linux reports as an error."""
    try:
        while data := os.read(terminal, 65536):
            yield data
    except OSError:
        return


# -- pages that the program names


def texts() -> Iterator[tuple[str, str]]:
    """Every text that a user may meet, by its file: strings of the code except docstrings, and templates."""
    for path in sorted((ROOT / "src/tidings").rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        notes = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in notes:
                yield path.name, node.value
    for path in sorted((ROOT / "src/tidings").rglob("*.html")):
        yield path.name, path.read_text(encoding="utf-8")


def test_the_program_names_pages_only_as_the_command_that_shows_them() -> None:
    """An installed package has no docs/ beside it; each named page and section is there."""
    named = []
    for file, text in texts():
        assert text == str(HOME) or not re.search(r"\b(docs|how-to|reference|explanation)/\S*\.md", text), (
            f"{file}: {text}"
        )
        named += re.findall(r"see: tidings docs (\S+)", text)

    assert {"receipts", "postgresql#failover", "inbound-sources", "access"} <= set(named)
    for topic, _, anchor in (name.partition("#") for name in [*named, *(rule.runbook for rule in RULES.values())]):
        page = find_page(PAGES, topic)
        assert not anchor or cut_section((manual() / page.source).read_text(encoding="utf-8"), anchor, topic)
