"""The reference is complete and true, links lead somewhere, and the diagram is the table of moves.

Whoever adds a setting, a command, a route, an event, an error, a state, a table, a policy, a kind of channel
or a crash point and forgets the page is told here; so is a page that speaks of one that has gone.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import apsw
import pytest
import typer.main
from fastapi import FastAPI
from starlette.routing import BaseRoute, Mount, Route

from tidings import config
from tidings.api import create_api
from tidings.app import build
from tidings.cli.program import full_program
from tidings.config.loader import NOT_SETTINGS
from tidings.dashboard import add_dashboard
from tidings.inbound.llm import settings as model_settings
from tidings.kernel import breaker, crash_points, retry
from tidings.model import errors, task
from tidings.model.errors import TidingsError
from tidings.model.message import Draft
from tidings.model.outcome import Outcome
from tidings.observability import events, log
from tidings.outbound.channels import options, registry
from tidings.outbound.draft_parser import MESSAGE_FIELDS
from tidings.outbound.events import event_types
from tidings.outbound.health import HealthStatus
from tidings.sandbox import create_sandbox
from tidings.store.migrations import load_migrations, migrate_sqlite

from .pages import DOCS, ROOT, anchors, blocks, code, codes, every_page, links, named, page, sections, tables

T = TypeVar("T")

SHARED = {"--database", "--config", "--json", "--help"}  # told once, for all commands


def classes(module: ModuleType, root: type[T]) -> list[type[T]]:
    """The root and its descendants that a module defines."""
    return [
        kind
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, root) and kind.__module__ == module.__name__
    ]


# -- settings


def test_every_setting_has_its_entry() -> None:
    """Name by name: nothing is missing, nothing is there that is not a setting."""
    known = {item.name for item in fields(config.Settings)} - {"origins"}

    assert known == set(named(sections(page("reference/settings.md"))["Settings"], "setting"))


def test_the_defaults_are_those_of_the_program() -> None:
    """What a page calls a default is read like a setting and compared."""
    rows = named(sections(page("reference/settings.md"))["Settings"], "setting")
    simple = [item for item in fields(config.Settings) if "parse" in item.metadata and item.default is not None]

    told = {item.name: item.metadata["parse"](_value(code(rows[item.name]["default"]))) for item in simple}

    assert {item.name: item.default for item in simple} == told


def test_alert_thresholds_are_documented_with_their_defaults(tmp_path: Path) -> None:
    """Name by name, as they would be written."""
    rows = named(sections(page("reference/settings.md"))["Alerts"], "threshold")
    lines = [f'{name} = "{code(row["default"])}"' for name, row in rows.items()]
    (tmp_path / "tidings.toml").write_text("\n".join(["[alerts]", *lines]))
    loaded = config.load(environ={}, folder=tmp_path)

    assert loaded.alerts == config.Settings().alerts
    assert list(rows) == list(loaded.describe()["alerts"])


def _value(text: str) -> Any:
    return [] if text == "[]" else text


def test_every_option_of_a_channel_has_its_entry() -> None:
    """Those that all have, and those of each kind under its own heading."""
    parts = sections(page("reference/settings.md"))

    assert {"kind", *options.COMMON} == set(named(parts["Options of every channel"], "option"))
    for name, kind in registry.KINDS.items():
        assert name in parts, f"the kind {name} has no heading"
        assert set(kind.options) == set(named(parts[name], "option")), name


def test_every_option_of_the_language_model_has_its_entry() -> None:
    """Name by name."""
    parts = sections(page("reference/settings.md"))

    assert set(model_settings.OPTIONS) == set(named(parts["inbound.model"], "option"))


def test_the_deadline_of_each_channel_kind_is_documented() -> None:
    """It differs by kind, so each kind says its own."""
    parts = sections(page("reference/settings.md"))
    for name, kind in registry.KINDS.items():
        default = inspect.signature(kind.settings).parameters["deadline"].default

        assert f"`deadline` is {default.total_seconds():g} s" in parts[name], name


def test_every_built_in_policy_is_documented_in_its_own_words() -> None:
    """One line each, as `tidings config` would print it."""
    rows = named(sections(page("reference/settings.md"))["Ready-made policies"], "policy")

    assert {name: retry.describe_policy(policy) for name, policy in retry.POLICIES.items()} == {
        name: row["in one line"] for name, row in rows.items()
    }


def test_every_crash_point_has_its_entry() -> None:
    """In the order in which a message passes them."""
    parts = sections(page("reference/settings.md"))

    assert list(crash_points.POINTS) == list(named(parts["Crash points"], "point"))
    story = page("explanation/life-of-a-task.md")
    assert all(f"crash point `{name}`" in story for name in crash_points.POINTS)


def test_every_variable_that_is_no_setting_has_its_entry() -> None:
    """Each beginning that the configuration passes over stands for at least one variable."""
    told = set(named(sections(page("reference/settings.md"))["Variables that are no settings"], "variable"))

    assert all(name.startswith(NOT_SETTINGS) for name in told)
    assert all(any(name.startswith(start) for name in told) for start in NOT_SETTINGS)


# -- commands


def commands() -> Iterator[tuple[str, set[str]]]:
    """Every command with its options."""

    def walk(command: Any, name: str) -> Iterator[tuple[str, set[str]]]:
        if hasattr(command, "commands"):
            for word, inner in command.commands.items():
                yield from walk(inner, f"{name} {word}")
        else:
            yield (
                name,
                {
                    option
                    for parameter in command.params
                    if parameter.param_type_name == "option"
                    for option in (*parameter.opts, *parameter.secondary_opts)
                },
            )

    return walk(typer.main.get_command(full_program()), "tidings")


COMMANDS = dict(commands())


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_its_entry(name: str) -> None:
    """With its own options, long and short, and no other."""
    text = sections(page("reference/cli.md")).get(name)
    assert text is not None, f"{name} has no heading in reference/cli.md"
    told = {word for cell in named(text, "option").values() for word in codes(cell["option"])}

    short = {"-d"} | SHARED
    assert COMMANDS[name] - short == told - short


def test_every_command_answers_in_json() -> None:
    """But those that serve, and those whose answer is a file of its own form."""
    silent = {name.removeprefix("tidings ") for name, known in COMMANDS.items() if "--json" not in known}
    assert silent == {"serve", "sandbox", "broadcasts export", "migrate export"}


def test_options_shared_by_all_commands_are_documented_once() -> None:
    """So that no command needs to repeat it."""
    rows = named(sections(page("reference/cli.md"))["Shared options"], "option")

    assert set(rows) == SHARED


def test_no_documented_command_is_missing() -> None:
    """A heading that begins with the program's name is a command."""
    told = {name for name in sections(page("reference/cli.md")) if name.startswith("tidings ")}

    assert told == set(COMMANDS)


def test_every_exit_code_is_documented() -> None:
    """Those of the errors are in the table of the commands."""
    told = named(sections(page("reference/cli.md"))["Exit codes"], "code")

    assert {str(kind.exit_code) for kind in classes(errors, TidingsError)} <= set(told)


# -- routes


@pytest.fixture
async def api(tmp_path: Path) -> FastAPI:
    """The application as `serve` builds it; nothing is opened."""
    app = build(config.load(environ={}, folder=tmp_path))
    api = create_api(app)
    add_dashboard(api, app)
    return api


def routes(found: list[BaseRoute]) -> Iterator[str]:
    """ "GET /path" for each; a mounted folder counts as GET."""
    for route in found:
        if isinstance(route, Mount):
            yield f"GET {route.path}"
        else:
            assert isinstance(route, Route), f"a kind of route that this test does not know: {route!r}"
            path = re.sub(r":\w+}", "}", route.path)
            yield from (f"{method} {path}" for method in (route.methods or set()) - {"HEAD", "OPTIONS"})


def told_routes(text: str) -> set[str]:
    return {word for word in codes(text) if re.fullmatch(r"(GET|POST|PUT|PATCH|DELETE) /\S*", word)}


async def test_every_route_has_its_entry(api: FastAPI) -> None:
    """Of the API, of the pages and of the simulated phone; nothing else is told."""
    text, head, phone = page("reference/api.md").partition("\n## The simulated phone\n")
    assert head

    assert set(routes(api.routes)) == told_routes(text)
    assert set(routes(create_sandbox(None).routes)) == told_routes(phone)


def test_every_field_of_a_message_has_its_entry() -> None:
    """What may be sent, with its type."""
    rows = named(sections(page("reference/api.md"))["POST /v1/messages"], "field")

    assert {name: field.type for name, field in MESSAGE_FIELDS.items()} == {
        name: row["type"] for name, row in rows.items()
    }


async def test_every_field_of_a_message_is_documented(tmp_path: Path) -> None:
    """Of one in a list, and of one by itself."""
    app = build(config.load(environ={}, folder=tmp_path, flags={"database": f"sqlite:///{tmp_path}/t.db"}))
    await app.open()
    accepted = await app.messages.accept(Draft(channel="console", to="ada", text="hello"))
    listed = (await app.messages.page()).items[0]
    shown = await app.messages.show(accepted.id)
    await app.close()
    text = sections(page("reference/api.md"))["Messages"]
    told = {word for row in named(text, "field").values() for word in codes(row["field"])}

    assert set(listed) == told
    assert set(shown) - set(listed) <= codes(text)


async def test_every_parameter_of_a_list_is_documented(api: FastAPI) -> None:
    """By name, under the heading of its route."""
    parts = sections(page("reference/api.md"))
    for path, operations in api.openapi()["paths"].items():
        for parameter in operations.get("get", {}).get("parameters", ()):
            if parameter["in"] == "query":
                assert parameter["name"] in codes(parts[f"GET {path}"]), f"{path}: {parameter['name']}"


# -- errors, events, states, tables


def test_every_error_has_its_entry() -> None:
    """With its code, its HTTP status and its exit code."""
    rows = named(page("reference/errors.md"), "class")
    told = {name: (code(row["code"]), int(row["HTTP"]), int(row["exit"])) for name, row in rows.items()}
    kinds: list[Any] = classes(errors, TidingsError)

    assert {kind.__name__: (kind.code, kind.status, kind.exit_code) for kind in kinds} == told


def test_the_tree_of_errors_is_drawn_as_it_is() -> None:
    """Indented under its parent, in the order of the module."""

    def drawn(kind: type, depth: int = 0) -> Iterator[str]:
        yield "  " * depth + kind.__name__
        for child in kinds:
            if kind in child.__bases__:
                yield from drawn(child, depth + 1)

    kinds = classes(errors, TidingsError)

    assert "\n".join(drawn(TidingsError)) + "\n" in [block.text for block in blocks(page("reference/errors.md"))]


def test_every_error_status_is_documented_with_the_api() -> None:
    """A caller finds each code beside its status."""
    rows = tables(sections(page("reference/api.md"))["Errors"])
    told = {(int(row["status"]), word) for row in rows for word in codes(row["code"])}
    kinds: list[Any] = classes(errors, TidingsError)
    abstract = {"error", "bad_request", "misconfigured"}  # never an answer

    assert {(kind.status, kind.code) for kind in kinds if kind.code not in abstract} <= told


def test_every_event_has_its_entry() -> None:
    """With its name in the log, its level and its fields."""
    rows = named(page("reference/events.md"), "event")
    kinds: list[Any] = [kind for kind in classes(events, events.Event) if kind is not events.Event]

    assert {kind.__name__ for kind in kinds} == set(rows)
    for kind in kinds:
        row = rows[kind.__name__]
        level = {10: "debug", 20: "info", 30: "warning", 40: "error"}[log._LEVELS.get(kind, 20)]
        told = (code(row["in the log"]), row["level"], codes(row["fields"]))
        assert told == (log._snake(kind.__name__), level, {item.name for item in fields(kind)}), kind


def test_every_event_for_others_has_its_entry() -> None:
    """With what it tells, in the words of the program."""
    rows = named(sections(page("reference/events.md"))["Events for subscribers"], "type")

    assert dict(event_types.EVENT_TYPES) == {name: row["what it tells"] for name, row in rows.items()}


def test_every_state_has_its_entry() -> None:
    """Of messages, breakers, nodes and health; every category, outcome and rule for the unknown."""
    text = page("reference/states.md")
    shown = named(sections(text)["Messages"], "state")

    words = {"sent" if state is task.TaskState.DONE else str(state) for state in task.TaskState}
    assert words | {"skipped"} == set(shown)
    assert {str(state) for state in task.TaskState} == set(named(text, "state of a task"))
    assert {str(category) for category in task.Category} == set(named(text, "category"))
    assert {kind.__name__ for kind in Outcome.__args__} == set(named(text, "outcome"))
    assert {str(rule) for rule in task.OnUnknown} == set(named(text, "value"))
    assert {str(state) for state in breaker.BreakerState} == set(named(text, "breaker"))
    assert {str(status) for status in HealthStatus} == set(named(text, "status"))
    checked = re.search(
        r"create table nodes .*?check \(state in \((.+?)\)\)", load_migrations("sqlite")[0].sql, re.DOTALL
    )
    assert checked is not None
    assert set(re.findall(r"'(\w+)'", checked[1])) == set(named(sections(text)["Nodes"], "state"))


def test_every_table_has_its_entry() -> None:
    """With all its columns, as the migrations make them; both databases have the same tables."""
    connection = apsw.Connection(":memory:")
    connection.create_scalar_function("tidings_now", lambda *_: 0, 0)
    migrate_sqlite(connection, upgrade=True)
    names = [row[0] for row in connection.execute("select name from sqlite_schema where type = 'table'")]
    known = {
        name: {row[1] for row in connection.execute(f"pragma table_info({name})")}
        for name in names
        if not name.startswith("sqlite_")
    }
    rows = named(page("reference/sql.md"), "table")

    assert known == {name: codes(row["columns"]) for name, row in rows.items()}
    made = {
        name
        for migration in load_migrations("postgres")
        for name in re.findall(r"(?m)^create table (\w+) \(", migration.sql)
    }
    assert made | {"schema_migrations"} == set(rows)


def test_every_column_of_a_task_is_explained() -> None:
    """The table of columns has them all."""
    rows = named(page("reference/sql.md"), "table")
    explained = named(page("reference/sql.md"), "column").values()
    told = {word for row in explained for word in codes(row["column"])}

    assert told == codes(rows["tasks"]["columns"])


# -- the diagram


def test_the_diagram_is_the_table_of_moves() -> None:
    """Arrow by arrow: from `[*]` into pending, every legal move, and out of what is final."""
    diagram = next(b.text for b in blocks(page("explanation/life-of-a-task.md")) if b.words == ("mermaid",))
    arrows = re.findall(r"^\s*(\S+) --> (\w+|\[\*\])(?:: .+)?$", diagram, re.MULTILINE)
    legal = [(str(origin), str(to)) for origin, targets in task.TRANSITIONS.items() for to in targets]
    ends = [(str(state), "[*]") for state in task.FINAL_STATES]

    assert len(arrows) == diagram.count("-->")
    assert sorted(arrows) == sorted([("[*]", "pending"), *legal, *ends])


# -- words and links


WORDS = """
    task, message, schedule, occurrence, broadcast, channel, inbox message, workflow, migration job, batch,
    record, outcome, dead letter, node, claim, fence, lease, slot, lane, turn, tally, duty, throttle, pause
"""


@pytest.mark.parametrize("word", [word.strip() for word in WORDS.split(",")])
def test_the_words_of_the_design_are_in_the_glossary(word: str) -> None:
    """Each by itself or in a row that it shares."""
    told = {name.strip() for row in named(page("glossary.md"), "word") for name in row.split(",")}

    assert word in told


def test_the_glossary_is_in_order() -> None:
    """So that a word is found."""
    words = list(named(page("glossary.md"), "word"))

    assert words == sorted(words)


@pytest.mark.parametrize("path", list(every_page()), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_link_leads_somewhere(path: Path) -> None:
    """To a file or folder of this tree, and to a heading that is there."""
    for link in links(path.read_text(encoding="utf-8")):
        if re.match(r"[a-z]+:", link):
            continue
        place, _, anchor = link.partition("#")
        target = (path.parent / place).resolve() if place else path
        assert target.exists(), f"{path.name}: {link}"
        assert target.is_relative_to(ROOT), f"{path.name}: {link}"
        if anchor:
            assert anchor in anchors(target.read_text(encoding="utf-8")), f"{path.name}: {link}"


def test_every_page_is_found_from_the_first() -> None:
    """The index links to all of them."""
    index = DOCS / "README.md"
    linked = {(DOCS / link).resolve() for link in links(index.read_text(encoding="utf-8"))}

    assert {path for path in DOCS.rglob("*.md") if path != index} <= linked
