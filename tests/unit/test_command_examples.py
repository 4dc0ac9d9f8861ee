"""Issue 7, part 6: every command's help ends with something to paste, and what it shows is really taken."""

import shlex
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from tidings.cli.program import full_program

ROOT: Any = typer.main.get_command(full_program())
SHELL = {"|", ">", "<"}


def leaves(command: Any, *path: str) -> Iterator[tuple[str, Any]]:
    """Every command that does something, by its whole name."""
    inner = getattr(command, "commands", None)
    if inner is None:
        yield " ".join(path), command
        return
    for word, one in inner.items():
        yield from leaves(one, *path, word)


LEAVES = dict(leaves(ROOT, "tidings"))


def shown(command: Any) -> list[str]:
    """The lines under 'Examples', those that go on in the next line joined."""
    head, _, text = (command.epilog or "").partition("Examples:\n")
    assert head.strip() in ("", "\b")
    return [line.strip() for line in text.replace("\\\n", " ").splitlines()]


def words(line: str) -> list[str] | None:
    """What the program is given by one line of a shell; None if the line does not call it."""
    parts = shlex.split(line)
    if "tidings" not in parts:
        return None
    given = parts[parts.index("tidings") + 1 :]
    end = next((at for at, word in enumerate(given) if word in SHELL), len(given))
    return given[:end]


def reached(given: list[str]) -> str:
    """The whole name of the command that takes these words; whatever it would refuse is an error."""
    command, context, path = ROOT, ROOT.make_context("tidings", list(given)), ["tidings"]
    while hasattr(command, "commands"):
        name, command, rest = command.resolve_command(context, [*context._protected_args, *context.args])
        context = command.make_context(name, rest, parent=context)
        path.append(name)
    return " ".join(path)


@pytest.mark.parametrize("name", LEAVES)
def test_every_command_has_an_example_that_it_takes(name: str) -> None:
    """Issue 7, part 6: at least one line calls this very command, with options and values it knows."""
    lines = shown(LEAVES[name])
    calls = [given for line in lines if (given := words(line)) is not None]

    assert calls, f"{name} has no example; give it one with epilog=examples(...)"
    assert {name} == {reached(given) for given in calls}


def test_an_example_fits_the_width_of_a_help_page() -> None:
    """Lines are kept as they are, so none may be wider than the help around it."""
    lines = [line for command in LEAVES.values() for line in command.epilog.splitlines()]

    assert not [line for line in lines if len(line) > 110]


def test_an_example_with_an_option_that_is_not_there_would_be_found() -> None:
    """The test above is no comfort unless it can fail."""
    with pytest.raises(Exception, match="--colour"):
        reached(["nodes", "list", "--colour"])
