"""The command line as a user meets it: what it prints, what it refuses, and with which exit code."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import pytest
from rich.text import Text

from tidings import __version__
from tidings.cli import table_layout
from tidings.cli.errors import run_safely
from tidings.cli.program import full_program, program
from tidings.config import load
from tidings.doctor import (
    ChannelBacklog,
    FindingSeverity,
    channel_status,
    check_backlog,
    check_clock,
    check_dead_letters,
    check_disk,
    check_nodes,
)
from tidings.model.time import SECOND

from .program import environment, free_port, run, serving

NOW = 1_800_000_000 * SECOND


class Answer(NamedTuple):
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Tidings = Callable[..., Answer]


@pytest.fixture
def tidings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Tidings:
    """The program in this process, which is quick; a folder of its own, nothing set by accident."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("TIDINGS_")]:
        monkeypatch.delenv(name)

    def call(*words: str, stdin: str = "") -> Answer:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        capfd.readouterr()
        code = run_safely(lambda **options: program(list(words), prog_name="tidings", **options))
        return Answer(code, *capfd.readouterr())

    return call


def hello(*words: str) -> tuple[str, ...]:
    return ("send", "--channel", "phone", "--to", "ada", "--text", "hello", *words)


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, (*path, name))


def all_commands() -> list[tuple[str, ...]]:
    from typer.main import get_command

    return list(commands(get_command(full_program())))


# -- help and start


def test_help_costs_no_import_of_the_engine() -> None:
    """`tidings --help` is there at once: what only some commands need is imported by them."""
    heavy = {"apsw", "asyncpg", "dateparser", "fastapi", "pyreqwest", "rich", "structlog", "uvicorn"}
    code = f"""if True:
        import sys
        from tidings.cli.program import full_program
        full_program()
        print(sorted({heavy!r} & sys.modules.keys()))"""

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"


def test_a_command_that_is_named_loads_no_other_noun() -> None:
    """A command starts in the time of its own noun, and of no other."""
    code = """if True:
        import sys
        from tidings.cli.program import program_for
        program_for(["nodes", "list"])
        print(sorted({"tidings.cli.nodes", "tidings.cli.schedules"} & sys.modules.keys()))"""

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "['tidings.cli.nodes']\n"


@pytest.mark.parametrize("path", all_commands(), ids=" ".join)
def test_every_command_explains_itself(tidings: Tidings, path: tuple[str, ...]) -> None:
    """Each has a sentence, and each option says what it is for."""
    answer = tidings(*path, "--help")

    assert answer.code == 0
    usage, _, rest = answer.out.partition("\n\n")
    assert usage.startswith(f"Usage: {' '.join(('tidings', *path))}")
    assert rest.strip().split("\n")[0].strip()
    assert "<" not in rest.partition("Options:")[2]


def test_the_sections_of_the_help_name_every_command(tidings: Tidings) -> None:
    """A command that is added shows up."""
    shown = tidings("--help").out

    assert all(f"\n  {path[0]} " in shown for path in all_commands() if len(path) == 1)


def test_the_version_is_printed_as_text_and_as_json(tidings: Tidings) -> None:
    """`tidings version` and `tidings --version`."""
    assert tidings("version").out == tidings("--version").out == f"tidings {__version__}\n"


# -- sending


def test_send_echoes_the_id_and_the_full_time(tidings: Tidings) -> None:
    """The time is repeated in full, so that a misunderstanding is seen at once."""
    answer = tidings(*hello("--in", "10 min"))

    id_, when = answer.out.rstrip("\n").split("\t")
    row = tidings("messages", "show", id_, "--json").json
    assert answer.code == 0
    assert when.endswith("Z), in 10 min") or when.endswith(", in 9 min 59 s")
    assert row["scheduled_at"][:19] + "Z" in when
    assert (row["state"], row["to"], row["channel"], row["text"]) == ("pending", "ada", "phone", "hello")


def test_send_takes_everything_that_a_message_can_have(tidings: Tidings) -> None:
    """Each flag ends up in the message."""
    row = tidings(
        *hello("--subject", "s", "--data", '{"a": [1]}', "--at", "tomorrow 9am", "--priority", "0"),
        *("--ordering-key", "k", "--expires-in", "2h", "--max-attempts", "2", "--json"),
    ).json

    assert (row["subject"], row["data"], row["priority"]) == ("s", {"a": [1]}, 0)
    assert (row["ordering_key"], row["max_attempts"]) == ("k", 2)
    assert row["scheduled_at"][11:] == "09:00:00.000Z"
    assert row["expires_at"][11:] == "11:00:00.000Z"


def test_the_text_may_come_from_standard_input(tidings: Tidings) -> None:
    """`--text -` reads it; the last line's end is not part of it."""
    row = tidings("send", "-c", "phone", "--to", "ada", "--text", "-", "--json", stdin="two\nlines\n").json

    assert row["text"] == "two\nlines"


def test_the_same_key_changes_nothing_the_second_time(tidings: Tidings) -> None:
    """B4: the first answer again, also for 'in 10 min', which is another time each time."""
    first = tidings(*hello("--in", "10 min", "--key", "k", "--json")).json
    second = tidings(*hello("--in", "10 min", "--key", "k", "--json")).json
    other = tidings(*hello("--in", "11 min", "--key", "k"))

    assert (first["id"], first["replayed"], second["replayed"]) == (second["id"], False, True)
    assert other.code == 2
    assert "used before" in other.err
    assert len(tidings("messages", "list", "--json").json["items"]) == 1


def test_messages_are_sent_from_a_file_and_a_bad_line_is_reported(tidings: Tidings, tmp_path: Path) -> None:
    """Each line stands alone; flags fill in what lines leave out; the exit code says that one was bad."""
    lines = [
        {"to": "a", "text": "1"},
        {"to": "b", "text": "2", "channel": "console"},
        {"to": "c", "text": "3", "in": "1h"},
        {"to": "", "text": "4"},
        {"to": "e", "txt": "5"},
        [],
    ]
    body = "\n".join(map(json.dumps, lines)) + "\n\nnot json\n"
    (tmp_path / "lines.ndjson").write_text(body)

    answer = tidings("send", "--file", "lines.ndjson", "--channel", "phone", "--in", "10 min")

    assert answer.code == 2
    assert answer.out == "accepted\t3\nrefused\t4\n"
    told = answer.err.splitlines()
    assert [line.partition(":")[0] for line in told] == ["line 4", "line 5", "line 6", "line 8"]
    assert told[1] == "line 5: unknown field 'txt'. Did you mean 'text'?"
    rows = {row["to"]: row for row in tidings("messages", "list", "--json").json["items"]}
    assert [rows[name]["channel"] for name in "abc"] == ["phone", "console", "phone"]


def test_a_file_with_a_key_can_be_repeated(tidings: Tidings) -> None:
    """A call that broke off is simply made again."""
    body = json.dumps({"to": "a", "text": "1"}) + "\n"
    for _ in range(2):
        answer = tidings("send", "--file", "-", "-c", "phone", "--key", "k", "--json", stdin=body)
        assert answer.json == {"accepted": 1, "refused": 0}

    assert len(tidings("messages", "list", "--json").json["items"]) == 1


# -- looking and changing


def test_a_list_in_a_pipe_is_plain_and_stable(tidings: Tidings) -> None:
    """One line each, tabs between, ISO times, nothing cut, no colours, control characters made harmless."""
    text = "x" * 300 + "\n\x1b[31mred\ttab"
    id_ = tidings(*hello("--text", text, "--at", "2031-01-01T00:00:00Z")).out.partition("\t")[0]

    answer = tidings("messages", "list")

    assert answer.out.splitlines() == [
        "id\tstate\twhen\tchannel\tto\tattempts\ttext",
        f"{id_}\tpending\t2031-01-01T00:00:00.000Z\tphone\tada\t0\t{'x' * 300}  [31mred tab",
    ]


def test_lists_are_filtered_and_paged(tidings: Tidings) -> None:
    """`next` of a page is where the following one begins."""
    for to in ("ada", "bob", "ada"):
        tidings("send", "-c", "phone", "--to", to, "--text", "x", "--in", "1h")

    first = tidings("messages", "list", "--limit", "2", "--json").json
    second = tidings("messages", "list", "--limit", "2", "--after", first["next"], "--json").json
    to_ada = tidings("messages", "list", "--to", "ada", "--json").json

    assert [len(page["items"]) for page in (first, second, to_ada)] == [2, 1, 2]
    assert tidings("messages", "list", "--state", "sent").out.count("\n") == 1
    assert tidings("messages", "list", "--state", "done").code == 2


def test_a_waiting_message_is_explained_rescheduled_and_cancelled(tidings: Tidings) -> None:
    """A6, A7: what a person may do, with its history; final states stay."""
    id_ = tidings(*hello("--in", "1h")).out.partition("\t")[0]

    assert tidings("messages", "why", id_).out.startswith("scheduled for 20")
    later = tidings("messages", "reschedule", id_, "--in", "2h")
    assert later.out.startswith(f"{id_} is due ")
    assert tidings("messages", "cancel", id_).out == f"{id_} cancelled\n"
    again = tidings("messages", "cancel", id_)
    assert (again.code, again.err) == (
        2,
        f"error: the message is cancelled and cannot be cancelled. See: tidings messages show {id_}\n",
    )
    shown = tidings("messages", "show", id_).out.splitlines()
    assert shown[:2] == [f"id\t{id_}", "state\tcancelled"]
    assert shown[-1].split("\t")[1:3] == ["pending", "cancelled"]


def test_channels_are_paused_and_resumed(tidings: Tidings) -> None:
    """A pause has a reason, which every face shows."""
    id_ = tidings(*hello()).out.partition("\t")[0]

    assert tidings("channels", "pause", "phone", "--reason", "for tea").out == "phone is paused: for tea\n"
    assert tidings("messages", "why", id_).out == (
        "the channel 'phone' is paused: for tea\nwhat to do: fix the cause, then: tidings channels resume phone\n"
    )
    listed = {row["name"]: row for row in tidings("channels", "list", "--json").json["items"]}
    assert (listed["phone"]["state"], listed["console"]["state"]) == ("paused", "open")
    assert tidings("channels", "resume", "phone").out == "phone resumed\n"
    unknown = tidings("channels", "pause", "fax")
    assert (unknown.code, unknown.err.startswith("error: there is no channel 'fax'")) == (2, True)


def test_dead_letters_are_listed_grouped_retried_and_discarded(tidings: Tidings, tmp_path: Path) -> None:
    """B7: with every reason; --all asks first, and where nobody can answer it wants --yes."""
    ids: list[str] = []
    with serving(tmp_path):
        for _ in range(3):
            answer = tidings("send", "-c", "phone", "--to", "gone", "--text", "x", "--wait")
            assert answer.code == 1
            assert "failed permanently" in answer.out
            ids.append(answer.out.partition("\t")[0])

    listed = tidings("dead", "list", "--category", "permanent", "--json").json["items"]
    groups = tidings("dead", "groups", "--json").json["items"]
    assert [row["id"] for row in listed] == ids[::-1]
    assert "404" in listed[0]["error"]
    assert [(group["channel"], group["category"], group["count"]) for group in groups] == [("phone", "permanent", 3)]

    assert tidings("dead", "retry", ids[0]).out == f"{ids[0]} retried\n"
    refused = tidings("dead", "retry", ids[0])
    assert (refused.code, "only a failed message" in refused.err) == (2, True)
    assert tidings("dead", "discard", ids[1]).out == f"{ids[1]} discarded\n"
    unsure = tidings("dead", "discard", "--all")
    assert (unsure.code, "--yes" in unsure.err) == (2, True)
    assert tidings("dead", "discard").code == tidings("dead", "discard", ids[2], "--all").code == 2
    assert tidings("dead", "discard", "--all", "--category", "temporary", "--yes").out == "0 discarded\n"
    assert tidings("dead", "discard", "--all", "--yes").out == "1 discarded\n"
    assert tidings("dead", "list").out.count("\n") == 1


def test_waiting_for_a_message_tells_how_it_ended(tidings: Tidings, tmp_path: Path) -> None:
    """`--wait` exits with 0 when it was sent; the log then has it (E9), as CSV too."""
    with serving(tmp_path):
        answer = tidings(*hello("--text", "=1+1", "--wait"))

    assert answer.code == 0
    id_, said = answer.out.partition("\t")[0], answer.out.splitlines()[1]
    assert said.startswith("✓ sent at 20")
    logged = tidings("log", "--json").json["items"]
    assert [(row["id"], row["to"], row["attempts"]) for row in logged] == [(id_, "ada", 1)]
    sheet = tidings("log", "--csv")
    assert sheet.code == 0, sheet.err
    rows = list(csv.DictReader(io.StringIO(sheet.out)))
    assert [(row["id"], row["text"]) for row in rows] == [(id_, "'=1+1")]


# -- the database, the settings, the doctor


def test_a_backup_is_a_whole_database_and_never_overwrites(tidings: Tidings, tmp_path: Path) -> None:
    """The copy is opened as a database of its own; an existing file is left alone."""
    tidings(*hello("--in", "1h"))

    assert tidings("db", "backup", "copies/one.db", "--json").json["path"] == "copies/one.db"
    copy = tidings("messages", "list", "--database", "sqlite:///copies/one.db", "--json").json
    assert [row["to"] for row in copy["items"]] == ["ada"]
    before = (tmp_path / "copies/one.db").read_bytes()
    again = tidings("db", "backup", "copies/one.db")
    assert (again.code, "already exists" in again.err) == (2, True)
    assert (tmp_path / "copies/one.db").read_bytes() == before
    assert not list((tmp_path / "copies").glob("*.partial"))


def test_a_backup_of_postgres_names_its_own_tool_without_the_password(tidings: Tidings) -> None:
    """Nothing was copied, so the exit code is not 0."""
    answer = tidings("db", "backup", "x.dump", "--database", "postgresql://u:secret@h/x")

    assert answer.code == 2
    assert "pg_dump --format=custom --file=x.dump 'postgresql://u:***@h/x'" in answer.err
    assert "secret" not in answer.err


def test_check_and_upgrade_say_how_the_schema_stands(tidings: Tidings, tmp_path: Path) -> None:
    """`check` makes nothing; `upgrade` makes an empty database and is idle when there is nothing to do."""
    missing = tidings("db", "check")
    assert (missing.code, list(tmp_path.iterdir())) == (2, [])
    assert tidings("db", "upgrade", "--json").json["schema"] == "current"
    assert tidings("db", "check", "--json").json["schema"] == "current"


def test_the_settings_are_shown_with_their_origin_and_without_secrets(
    tidings: Tidings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Secrets never come out, whichever form is asked for."""
    monkeypatch.setenv("TIDINGS_API_KEYS", "0123456789abcdef0123")
    monkeypatch.setenv("TIDINGS_DATABASE", "postgresql://u:secret@h/x")

    plain, as_json = tidings("config").out, tidings("config", "--json").out

    assert "database\tpostgresql://u:***@h/x\tTIDINGS_DATABASE\tdatabase URL" in plain
    assert "port\t8020\tdefault\t" in plain
    assert "0123456789" not in plain + as_json
    assert ":secret@" not in plain + as_json


def test_the_doctor_is_content_with_a_healthy_engine(tidings: Tidings, tmp_path: Path) -> None:
    """Exit code 0, each check told."""
    with serving(tmp_path):
        answer = tidings("doctor", "--json")

    found = {row["check"]: row for row in answer.json["items"]}
    assert (answer.code, {row["status"] for row in found.values()}) == (0, {"ok"})
    assert "holds the work lock" in found["nodes"]["message"]
    assert list(found) == [
        *("settings", "folder", "disk", "database", "clock", "nodes", "channels", "messages", "dead letters")
    ]


def test_the_doctor_changes_nothing_where_there_is_no_database(tidings: Tidings, tmp_path: Path) -> None:
    """A newcomer may ask first."""
    answer = tidings("doctor")

    assert answer.code == 0
    assert "there is no database data/tidings.db yet\ttidings serve creates it" in answer.out
    assert list(tmp_path.iterdir()) == []


def test_the_doctor_names_what_a_person_must_mend(tidings: Tidings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit code 1, with the remedy beside each finding."""
    tidings("channels", "pause", "phone", "--reason", "for tea")
    tidings("send", "-c", "console", "--to", "ada", "--text", "x", "--at", "2026-01-01T00:00:00Z", "--past", "send")

    answer = tidings("doctor", "--json")

    wrong = [(row["message"], row["remedy"]) for row in answer.json["items"] if row["status"] == "error"]
    assert answer.code == 1
    assert wrong[0] == ("phone is paused: for tea", "fix the cause, then run: tidings channels resume phone")
    assert wrong[1][0].startswith("1 overdue on console, the oldest by ")
    assert wrong[1][1] == "start one: tidings serve"

    monkeypatch.setenv("TIDINGS_CONCURRENCY", "none")
    broken = tidings("doctor", "--json")
    assert (broken.code, [row["check"] for row in broken.json["items"]]) == (1, ["settings"])


@pytest.mark.postgres
def test_the_same_commands_work_on_postgres(tidings: Tidings, postgres_url: str) -> None:
    """Nothing above the store knows which database it has."""
    words = ("--database", postgres_url)
    id_ = tidings(*hello("--in", "1h", *words)).out.partition("\t")[0]

    assert tidings("messages", "show", id_, "--json", *words).json["state"] == "pending"
    assert tidings("messages", "cancel", id_, *words).code == 0
    assert tidings("channels", "list", "--json", *words).json["items"][0]["name"] == "console"
    assert tidings("db", "check", *words).code == 0
    assert tidings("doctor", *words).code == 0


# -- findings, from values alone


@pytest.mark.parametrize(
    ("drift", "behind", "status"),
    [
        (0, 0, FindingSeverity.OK),
        (0.9, 0, FindingSeverity.OK),
        (-2, 0, FindingSeverity.WARNING),
        (11, 0, FindingSeverity.ERROR),
        (0, 3600, FindingSeverity.ERROR),
    ],
)
def test_clocks_that_disagree_are_found(drift: float, behind: int, status: FindingSeverity) -> None:
    """B13: over 1 s is worth knowing, over 10 s is wrong; on SQLite a clock that was set back counts."""
    found = check_clock(timedelta(seconds=drift), seen=NOW + behind * SECOND, now=NOW)

    assert found.status is status
    assert bool(found.remedy) is (status is not FindingSeverity.OK)


@pytest.mark.parametrize(
    ("free", "status"),
    [(10 << 20, FindingSeverity.ERROR), (500 << 20, FindingSeverity.WARNING), (9 << 30, FindingSeverity.OK)],
)
def test_a_disk_that_runs_full_is_found(free: int, status: FindingSeverity) -> None:
    """Before it is too late to accept anything."""
    assert check_disk(Path("data"), free).status is status


def test_processes_that_died_are_found_without_alarm() -> None:
    """The next one that works takes over, so a person need not."""
    node_timeout = timedelta(seconds=10)
    nodes = [
        {"id": 1, "name": "a", "state": "live", "seen_at": NOW},
        {"id": 2, "name": "b", "state": "live", "seen_at": NOW - 100 * SECOND},
        {"id": 3, "name": "c", "state": "dead", "seen_at": NOW - 300 * SECOND},
    ]

    on_server = check_nodes(nodes, is_worked_on=None, node_timeout=node_timeout, now=NOW)
    on_file = check_nodes(nodes[:1], is_worked_on=False, node_timeout=node_timeout, now=NOW)

    assert [(found.status, found.message) for found in on_server] == [
        (FindingSeverity.OK, "a works"),
        (FindingSeverity.WARNING, "b has been silent for 1 min 40 s"),
        (FindingSeverity.WARNING, "c has been silent for 5 min"),
    ]
    assert [found.message for found in on_file] == ["no process is working", "a has been silent for 0 s"]


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({}, "ready"),
        ({"paused": True, "blocked_until": NOW + 1}, "paused"),
        ({"blocked_until": NOW + 1}, "waiting"),
        ({"blocked_until": NOW}, "ready"),
        ({"opened_at": NOW - 5, "blocked_until": NOW + 1}, "breaker open"),
        ({"opened_at": NOW - 5, "blocked_until": NOW}, "half open"),
        ({"session_state": "connected"}, "ready"),
        ({"session_state": "logged_out", "blocked_until": NOW + 1}, "logged out"),
        ({"session_state": "reconnecting", "opened_at": NOW - 5, "blocked_until": NOW + 1}, "reconnecting"),
    ],
)
def test_a_channels_standing_is_one_word(changes: dict[str, Any], word: str) -> None:
    """The strongest reason wins."""
    queue = {
        "name": "phone",
        "paused": False,
        "pause_reason": "tea",
        "blocked_until": None,
        "block_reason": "429",
        "session_state": None,
        "session_reason": "SCAN_QR_CODE",
    }

    assert channel_status({**queue, "failures": 5, "opened_at": None, **changes}, NOW).word == word


def test_only_what_could_go_out_counts_as_overdue() -> None:
    """A minute of patience; what a stopped channel keeps back is that channel's finding."""
    queue = {"paused": False, "pause_reason": None, "blocked_until": None, "opened_at": None, "session_state": None}
    queues = [{**queue, "name": "late"}, {**queue, "name": "just"}, {**queue, "name": "off", "paused": True}]
    since = NOW - 120 * SECOND
    waiting = {
        "late": ChannelBacklog(1000, since),
        "just": ChannelBacklog(3, NOW - 59 * SECOND),
        "off": ChannelBacklog(9, since),
    }

    found = check_backlog(waiting, queues, is_worked_on=True, now=NOW)

    assert [one.message for one in found] == ["at least 1,000 overdue on late, the oldest by 2 min"]
    assert check_backlog({}, queues, is_worked_on=True, now=NOW)[0].status is FindingSeverity.OK


def test_dead_letters_are_wrong_until_a_person_decides() -> None:
    """Counted, with those in doubt apart."""
    groups = [{"count": 3, "unknown": True}, {"count": 2, "unknown": False}]

    assert check_dead_letters(groups)[1:3] == (FindingSeverity.ERROR, "5 waiting for a person, 3 of them uncertain")
    assert check_dead_letters([]).status is FindingSeverity.OK


# -- what a terminal shows


def test_columns_fit_the_terminal_and_ids_are_never_cut() -> None:
    """Where it is narrow, spare columns go first, then the last one is cut."""
    shapes = [
        table_layout.ColumnLayout("id", keep=True),
        table_layout.ColumnLayout("to", spare=True),
        table_layout.ColumnLayout("n", right=True),
        table_layout.ColumnLayout("text"),
    ]
    cells = [[Text("i" * 36), Text("ada"), Text("7"), Text("a long text that does not fit")]]

    wide, narrow = table_layout.lay_out(shapes, cells, 100), table_layout.lay_out(shapes, cells, 54)

    assert wide[1].plain == f"{'i' * 36}  ada  7  a long text that does not fit"
    assert [line.plain for line in narrow] == [f"id{' ' * 34}  n  text", f"{'i' * 36}  7  a long text …"]


# -- what is refused


def test_an_unknown_setting_stops_the_start_with_a_hint(tmp_path: Path) -> None:
    """Bad input: unknown setting. Exit code 78, nothing made."""
    (tmp_path / "tidings.toml").write_text("prot = 9000\n")

    answer = run("serve", folder=tmp_path)

    assert answer.returncode == 78
    assert answer.stderr == "error: unknown setting 'prot' in tidings.toml. Did you mean 'port'?\n"
    assert [path.name for path in tmp_path.iterdir()] == ["tidings.toml"]


@pytest.mark.parametrize(
    ("url", "code", "says"),
    [
        ("mysql://localhost/x", 78, "has the unsupported scheme 'mysql'. Use sqlite:///"),
        ("tidings.db", 78, "is not a database URL. Use sqlite:///"),
        ("sqlite://:memory:", 78, "is not durable"),
        ("postgresql://nobody:secret@127.0.0.1:1/x", 75, "PostgreSQL does not respond"),
    ],
)
def test_a_wrong_database_url_is_one_sentence(tmp_path: Path, url: str, code: int, says: str) -> None:
    """Bad input: wrong database URL; the password is never repeated."""
    answer = run(*hello("--database", url), folder=tmp_path)

    assert answer.returncode == code
    assert says in answer.stderr
    assert answer.stderr.count("\n") == 1
    assert "secret" not in answer.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_database_is_refused(tidings: Tidings, tmp_path: Path) -> None:
    """Somebody pointed at the wrong file; it stays as it was."""
    (tmp_path / "notes.txt").write_text("these are my notes, not a database\n" * 200)
    before = (tmp_path / "notes.txt").read_bytes()

    answer = tidings(*hello("--database", "sqlite:///notes.txt"))

    assert answer.code == 70
    assert answer.err.startswith("error: the database file is damaged or not a database. ")
    assert (tmp_path / "notes.txt").read_bytes() == before


@pytest.mark.parametrize("command", [("serve", "--port", "0"), hello(), ("db", "upgrade")], ids=" ".join)
def test_a_database_newer_than_the_code_is_refused(tidings: Tidings, tmp_path: Path, command: tuple[str, ...]) -> None:
    """Bad input: database newer than the code. An upgrade does not mend it either."""
    tidings(*hello("--in", "1h"))
    connection = apsw.Connection(str(tmp_path / "data" / "tidings.db"))
    connection.execute("insert into schema_migrations values (9999, '9999_future', 'x')")
    connection.close()

    answer = run(*command, folder=tmp_path, env={"TIDINGS_SANDBOX_PORT": str(free_port())})

    assert answer.returncode == 70
    assert answer.stderr == (
        "error: the database is newer than this program (it has migration 9999_future). "
        "Upgrade tidings, or restore the backup made before the upgrade\n"
    )


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--channel", "fax"), "error: there is no channel 'fax'. Configured channels: console, phone"),
        (("--at", "2031-01-01T10:00"), "has no time zone. Write 2031-01-01T10:00:00+00:00 for UTC"),
        (("--at", "31 Feb 9am"), "is not a valid time. Write "),
        (("--at", "yesterday"), "is in the past"),
        (("--at", "2020-01-01T00:00Z"), "(CLI: --past send)"),
        (("--in", "10"), "has no unit. Write 30s, 10m, 2h or 7d"),
        (("--in", "1h", "--at", "tomorrow 9am"), "both `at` and `in` are given"),
        (("--to", " "), "the recipient is empty"),
        (("--text", ""), "the message is empty"),
        (("--text", "x" * 300_000), "At most 262,144 are accepted"),
        (("--priority", "11"), "priority is 11. Use 0 (first) to 9 (last)"),
        (("--priority", "high"), "invalid value for '--priority'"),
        (("--data", "[1]"), "data is not an object"),
        (("--data", "{"), "--data is not JSON"),
        (("--txt", "x"), "no such option: --txt"),
        (("--file", "no.ndjson"), "no.ndjson cannot be read (No such file or directory)"),
    ],
    ids=lambda value: " ".join(value)[:30] if isinstance(value, tuple) else "",
)
def test_bad_input_is_one_sentence_and_changes_nothing(tidings: Tidings, words: tuple[str, ...], says: str) -> None:
    """Bad input: each with its remedy, exit code 2, and no message more than before."""
    answer = tidings(*hello(*words))

    assert answer.code == 2
    assert answer.err.startswith("error: ")
    assert answer.err.count("\n") == 1
    assert says in answer.err
    assert tidings("messages", "list", "--json").json["items"] == []


def test_a_mistyped_command_suggests_the_closest(tidings: Tidings) -> None:
    """One sentence, not a page of usage."""
    answer = tidings("sned")

    assert (answer.code, answer.err) == (2, "error: no such command 'sned'. Did you mean 'send'? See: tidings --help\n")


def test_what_nobody_expected_is_one_line_too(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No traceback, but a hint how to see it."""

    def broken(**_: object) -> None:
        raise RuntimeError("boom")

    monkeypatch.delenv("TIDINGS_DEBUG", raising=False)
    assert run_safely(broken) == 70
    assert capfd.readouterr().err == (
        "error: unexpected error (RuntimeError: boom). Set TIDINGS_DEBUG=1 to see the traceback\n"
    )
    monkeypatch.setenv("TIDINGS_DEBUG", "1")
    with pytest.raises(RuntimeError, match="boom"):
        run_safely(broken)
    assert load(environ=dict(os.environ)).port == 8020  # the variable is not taken for a setting


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    """`tidings ... | head -1` ends quietly."""
    command = f"{sys.executable} -m tidings.cli config | head -1"

    done = subprocess.run(
        command, shell=True, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False
    )

    assert (done.stdout, done.stderr) == ("setting\tvalue\tfrom\tabout\n", "")


# -- disks


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[..., Path]]:
    """A file system of 2 MB of our own; `ro` makes it read-only."""
    if os.geteuid() != 0:
        pytest.skip("needs root to mount a small file system")
    place = tmp_path / "disk"
    place.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", place], capture_output=True, check=False)
    if made.returncode:
        pytest.skip(f"mount is not allowed here: {made.stderr.decode().strip()}")

    def remount(*, read_only: bool) -> Path:
        option = "remount,ro" if read_only else "remount,rw"
        subprocess.run(["mount", "-o", option, place], check=True)
        return place

    yield remount
    subprocess.run(["umount", "--lazy", place], check=True)


def test_a_full_disk_is_reported_and_nothing_is_half_accepted(small_disk: Callable[..., Path], tmp_path: Path) -> None:
    """Bad input: full disk. Exit code 75, for the same call may succeed later; what was accepted stays."""
    place = small_disk(read_only=False)
    words = ("--database", f"sqlite:///{place}/tidings.db")
    assert run(*hello("--in", "1h", *words), folder=tmp_path).returncode == 0
    ballast = place / "ballast"
    with pytest.raises(OSError, match="No space left"), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)

    answer = run(*hello("--text", "-", *words), folder=tmp_path, stdin="y" * 200_000)

    assert answer.returncode == 75
    assert answer.stderr.startswith("error: the disk under the database is full. Free space")
    assert answer.stderr.count("\n") == 1
    ballast.unlink()
    listed = run("messages", "list", "--json", *words, folder=tmp_path)
    assert [row["text"] for row in json.loads(listed.stdout)["items"]] == ["hello"]
    assert run(*hello(*words), folder=tmp_path).returncode == 0


def test_a_full_disk_stops_no_server(small_disk: Callable[..., Path], tmp_path: Path) -> None:
    """Work resumes by itself when there is space again."""
    place = small_disk(read_only=False)
    words = ("--database", f"sqlite:///{place}/tidings.db")
    with serving(tmp_path, *words, env={"TIDINGS_CHANNELS__CONSOLE__KIND": "console"}) as served:
        sent = run("send", "-c", "console", "--to", "ada", "--text", "before", "--wait", *words, folder=tmp_path)
        assert sent.returncode == 0, sent.stderr
        ballast = place / "ballast"
        with pytest.raises(OSError, match="No space left"), ballast.open("wb", buffering=0) as file:
            while True:
                file.write(b"x" * 4096)
        big = ("send", "-c", "console", "--to", "ada", "--text", "-", *words)
        assert run(*big, folder=tmp_path, stdin="y" * 200_000).returncode == 75
        ballast.unlink()

        after = run("send", "-c", "console", "--to", "ada", "--text", "after", "--wait", *words, folder=tmp_path)
        assert after.returncode == 0, after.stderr
        assert served.stop() == 0


@pytest.mark.parametrize("exists", [True, False])
def test_a_read_only_disk_is_reported_and_left_unchanged(
    small_disk: Callable[..., Path], tmp_path: Path, exists: bool
) -> None:
    """Bad input: read-only disk. Exit code 70, for a person must look; `serve` and `doctor` say the same."""
    place = small_disk(read_only=False)
    words = ("--database", f"sqlite:///{place}/tidings.db")
    if exists:
        assert run(*hello("--in", "1h", *words), folder=tmp_path).returncode == 0
    small_disk(read_only=True)
    before = {path.name: path.stat().st_size for path in place.iterdir()}

    sent = run(*hello(*words), folder=tmp_path)
    served = run("serve", "--port", "0", "--no-sandbox", *words, folder=tmp_path)
    examined = run("doctor", *words, folder=tmp_path)

    assert (sent.returncode, served.returncode, examined.returncode) == (70, 70, 1)
    assert sent.stderr == served.stderr
    assert sent.stderr.startswith(
        f"error: {place}/tidings.db cannot be written. Check the owner, mode and mount of {place}, or"
    )
    assert "is not writable" in examined.stdout
    assert {path.name: path.stat().st_size for path in place.iterdir()} == before


def test_only_the_channel_that_is_used_needs_its_secrets(tidings: Tidings, tmp_path: Path) -> None:
    """Commands that send nothing work without them; sending on that channel, and `serve`, name what is missing."""
    (tmp_path / "tidings.toml").write_text(
        '[channels.out]\nkind = "noop"\n[channels.bot]\nkind = "telegram"\ntoken = "env:NOPE"\n'
        '[channels.texts]\nkind = "twilio"\naccount_sid = "env:SID"\nauth_token = "file:none"\n'
        '[inbound.sources.chat]\nkind = "telegram"\ntoken = "env:NOPE"\n'
    )
    sent = tidings("send", "-c", "out", "--to", "ada", "--text", "hi", "--in", "1h", "--json")
    assert sent.code == 0, sent.err
    id_ = sent.json["id"]
    for words in (
        ("messages", "list"), ("messages", "why", id_), ("messages", "cancel", id_), ("schedules", "list"),
        ("broadcasts", "list"), ("channels", "list"), ("dead", "list"), ("nodes", "list"), ("inbox", "list"),
        ("contacts", "list"), ("db", "check"), ("audit", "list"),
    ):  # fmt: skip
        answer = tidings(*words)
        assert answer.code == 0, f"{words}: {answer.err}"

    missing = "error: channels.bot.token in tidings.toml refers to the variable NOPE, which is not set. Set NOPE"
    for refused in (
        ("send", "-c", "bot", "--to", "42", "--text", "hi"),
        ("broadcasts", "create", "-c", "bot", "--to", "42", "--text", "hi"),
        ("channels", "test", "bot"),
        ("serve", "--port", "0"),
    ):
        answer = tidings(*refused)
        assert answer.code == 78 and answer.err.startswith(missing), f"{refused}: {answer.err}"
    assert len(tidings("messages", "list", "--json").json["items"]) == 1
