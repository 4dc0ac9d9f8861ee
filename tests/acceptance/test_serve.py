"""Real `tidings serve` processes: killed, stopped, started again, two on one file."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from tidings.sandbox import read_ledger

from .program import PATIENCE, environment, free_port, get, post, run, serving, until

pytestmark = [pytest.mark.crash, pytest.mark.timeout(180)]


def ledger(folder: Path) -> Counter[str]:
    """How many copies of each message have arrived at the pretend phone."""
    path = folder / "data" / "sandbox.jsonl"
    return Counter(entry.id for entry in read_ledger(path) if entry.delivered) if path.exists() else Counter()


def show(folder: Path, id_: str, *words: str) -> dict[str, Any]:
    answer = run("messages", "show", id_, "--json", *words, folder=folder)
    assert answer.returncode == 0, answer.stderr
    found: dict[str, Any] = json.loads(answer.stdout)
    return found


def send(folder: Path, to: str, *words: str) -> str:
    answer = run("send", "--channel", "phone", "--to", to, "--text", "hello", *words, folder=folder)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout.partition("\t")[0]


def moves(row: dict[str, Any]) -> list[tuple[str, str]]:
    return [(line["from"], line["to"]) for line in row["history"]]


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """The flag that names the database; none for the default, a SQLite file in ./data."""
    if request.param == "sqlite":
        return ()
    return ("--database", request.getfixturevalue("postgres_url"))


def test_a_message_survives_kill_9_and_arrives_once_with_its_history(tmp_path: Path, database: tuple[str, ...]) -> None:
    """The newcomer's story (E1, B5, A7): schedule, kill -9, start again, it arrives once."""
    with serving(tmp_path, *database) as first:
        id_ = send(tmp_path, "ada", "--in", "4s", *database)
        first.kill()
    assert ledger(tmp_path)[id_] == 0

    with serving(tmp_path, *database) as second:
        until(lambda: _sent(second.address("dashboard"), id_), "the message as sent")
        assert second.stop() == 0

    assert ledger(tmp_path)[id_] == 1
    row = show(tmp_path, id_, *database)
    assert (row["state"], row["attempts"], row["unknown"]) == ("sent", 1, False)
    assert moves(row) == [("pending", "processing"), ("processing", "sent")]
    assert row["receipt"]
    assert row["scheduled_at"] <= row["executed_at"] <= row["sent_at"]


def test_an_attempt_cut_off_by_a_kill_is_shown_as_uncertain(tmp_path: Path, database: tuple[str, ...]) -> None:
    """E2, E1: the phone took it, the answer was lost with the process; it is sent again and says so."""
    soon = {"TIDINGS_NODE_TIMEOUT": "2s", "TIDINGS_HEARTBEAT_INTERVAL": "500ms"}
    with serving(tmp_path, *database, env=soon) as first:
        id_ = send(tmp_path, "slow-2", *database)
        until(lambda: ledger(tmp_path)[id_], "the first copy at the phone")
        first.kill()

    with serving(tmp_path, *database, env=soon) as second:
        until(lambda: _sent(second.address("dashboard"), id_), "the message as sent")

    row = show(tmp_path, id_, *database)
    assert (row["state"], row["unknown"]) == ("sent", True)
    assert ledger(tmp_path)[id_] == 2
    assert "twice" in row["why"]


def test_sigterm_finishes_what_is_in_hand(tmp_path: Path) -> None:
    """E8: nothing more is accepted, the message under way is sent and written down, the exit code is 0."""
    with serving(tmp_path) as served:
        page = served.address("dashboard")
        id_ = send(tmp_path, "slow-2")
        until(lambda: ledger(tmp_path)[id_], "the message at the phone")

        assert served.stop(signal.SIGTERM) == 0

    assert "Stopped." in served.told
    row = show(tmp_path, id_)
    assert (row["state"], row["unknown"], ledger(tmp_path)[id_]) == ("sent", False, 1)
    with pytest.raises(OSError, match="refused"):
        get(f"{page}/health")
    nodes = run("nodes", "list", "--json", folder=tmp_path).stdout
    assert json.loads(nodes) == {"items": [], "next": None}


def test_a_second_signal_stops_at_once(tmp_path: Path) -> None:
    """A person who asks twice does not want to wait; the database knows what is open."""
    with serving(tmp_path) as served:
        id_ = send(tmp_path, "slow-9")
        until(lambda: ledger(tmp_path)[id_], "the message at the phone")
        served.process.send_signal(signal.SIGINT)
        served.hears("Stopping")

        assert served.stop(signal.SIGINT) == 128 + signal.SIGINT

    assert "Stopped." not in served.told
    assert show(tmp_path, id_)["state"] == "processing"


def test_open_pages_do_not_hold_up_the_stop(tmp_path: Path) -> None:
    """The live streams of the page and of the phone are ended first."""
    with serving(tmp_path) as served:
        streams = (f"{served.address('dashboard')}/live", f"{served.address('sandbox')}/sandbox/stream")
        with urlopen(streams[0], timeout=PATIENCE) as page, urlopen(streams[1], timeout=PATIENCE) as phone:
            assert page.readline()
            assert phone.readline()

            assert served.stop() == 0

    assert served.told[-1] == "Stopped."
    assert not [line for line in served.logged if "Cancel" in line]


def test_a_second_process_on_one_file_accepts_and_takes_over(tmp_path: Path) -> None:
    """Rule 12: one works, the other accepts and reads; kill -9 of the first, and the second works."""
    shared = {"TIDINGS_SANDBOX_PORT": str(free_port())}
    with serving(tmp_path, env=shared) as first, serving(tmp_path, env=shared) as second:
        assert any("sending" in line and "up to" in line for line in first.told)
        assert any("standby" in line and "takes over" in line for line in second.told)
        assert any("run by another process" in line for line in second.told)

        early = post(f"{second.address('dashboard')}/v1/messages", {"channel": "phone", "to": "ada", "text": "early"})
        until(lambda: _sent(second.address("dashboard"), early["id"]), "a message accepted by the second")
        late = post(
            f"{second.address('dashboard')}/v1/messages", {"channel": "phone", "to": "ada", "text": "late", "in": "2s"}
        )
        first.kill()

        second.hears("node_joined")
        until(lambda: _sent(second.address("dashboard"), late["id"]), "a message after the take-over")

    assert ledger(tmp_path) == {early["id"]: 1, late["id"]: 1}
    by = [show(tmp_path, message["id"])["history"][0]["node"] for message in (early, late)]
    assert by[0] < by[1]


def test_two_processes_on_one_postgres_share_the_work(tmp_path: Path, postgres_url: str) -> None:
    """B5: both work, and no message is worked on twice."""
    shared = {"TIDINGS_SANDBOX_PORT": str(free_port()), "TIDINGS_CONCURRENCY": "2"}
    words = ("--database", postgres_url)
    lines = "\n".join(json.dumps({"channel": "phone", "to": f"p{n}", "text": "x"}) for n in range(200))
    with serving(tmp_path, *words, env=shared) as first, serving(tmp_path, *words, env=shared) as second:
        assert all(any("sending" in line and "up to" in line for line in s.told) for s in (first, second))
        answer = run("send", "--file", "-", "--database", postgres_url, folder=tmp_path, stdin=lines)
        assert answer.stdout == "accepted\t200\nrefused\t0\n", answer.stderr
        until(lambda: len(ledger(tmp_path)) == 200, "all at the phone")
        assert (first.stop(), second.stop()) == (0, 0)

    assert set(ledger(tmp_path).values()) == {1}


def test_a_taken_port_is_one_sentence_and_changes_nothing(tmp_path: Path) -> None:
    """Bad input: port in use. Exit code 2, nothing made, nothing left running."""
    with serving(tmp_path / "..", "--no-sandbox", "--database", f"sqlite:///{tmp_path}/other.db") as served:
        port = served.address("dashboard").rpartition(":")[2]
        mine = tmp_path / "mine"
        mine.mkdir()

        answer = run("serve", "--port", port, folder=mine)

    assert answer.stdout == ""
    assert answer.returncode == 2
    assert answer.stderr == (
        f"error: port {port} on 127.0.0.1 is in use. Stop the other process, or choose another port with --port\n"
    )
    assert list(mine.iterdir()) == []


def test_where_others_reach_it_a_key_is_needed_and_one_in_the_database_will_do(tmp_path: Path) -> None:
    """S1, S20: refused before anything is made; with an admin's key in the database it starts behind it."""
    refused = run("serve", "--host", "0.0.0.0", "--port", "0", folder=tmp_path)
    assert (refused.returncode, list(tmp_path.iterdir())) == (78, [])
    assert "there is no admin key. Run: tidings keys create NAME --role admin" in refused.stderr
    assert run("keys", "create", "ops", "--role", "operator", folder=tmp_path).returncode == 0
    assert run("serve", "--host", "0.0.0.0", "--port", "0", folder=tmp_path).returncode == 78
    assert run("keys", "create", "ada", "--role", "admin", folder=tmp_path).returncode == 0

    with serving(tmp_path, "--host", "0.0.0.0", "--no-sandbox") as served:
        port = served.address("dashboard").rpartition(":")[2]
        with pytest.raises(HTTPError, match="401"):
            get(f"http://127.0.0.1:{port}/v1/messages")


def test_a_foreign_program_on_the_sandbox_port_is_reported_with_the_remedies(tmp_path: Path) -> None:
    """Another phone is shared, anything else is in the way."""
    with serving(tmp_path, "--no-sandbox") as stranger:
        port = stranger.address("dashboard").rpartition(":")[2]
        answer = run("serve", "--port", "0", folder=tmp_path, env={"TIDINGS_SANDBOX_PORT": port})

    assert answer.returncode == 2
    assert answer.stderr.startswith(f"error: port {port} on 127.0.0.1 is in use. ")
    assert "TIDINGS_SANDBOX_PORT" in answer.stderr
    assert "--no-sandbox" in answer.stderr


def test_api_only_accepts_but_sends_nothing(tmp_path: Path) -> None:
    """A process that only accepts leaves the work lock to others."""
    with serving(tmp_path, "--api-only") as served:
        id_ = send(tmp_path, "ada")
        page = served.address("dashboard")

        assert get(f"{page}/v1/messages/{id_}")["state"] == "pending"
        assert "no process is working" in run("messages", "why", id_, folder=tmp_path).stdout
        with pytest.raises(HTTPError) as caught:
            get(f"{page}/health")
        assert caught.value.code == 503


def test_the_line_that_is_shown_works_when_pasted(tmp_path: Path) -> None:
    """The first thing a newcomer does is to paste it."""
    with serving(tmp_path) as served:
        line = next(line.strip() for line in served.told if " send " in line)
        answer = subprocess.run(
            shlex.split(line), cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False
        )
        assert answer.returncode == 0, answer.stderr
        id_ = answer.stdout.partition("\t")[0]
        assert get(f"{served.address('dashboard')}/v1/messages/{id_}")["to"] == "ada"


def test_every_line_of_the_log_is_one_json_object(tmp_path: Path) -> None:
    """A9: one format for all, libraries included; no line for each request."""
    with serving(tmp_path, "--log-level", "debug") as served:
        id_ = send(tmp_path, "gone")
        url = f"{served.address('dashboard')}/v1/messages/{id_}"
        until(lambda: get(url)["state"] == "failed", "the failure")
        assert served.stop() == 0

    facts = [json.loads(line) for line in served.logged]
    assert {"attempt_failed", "batch_settled", "node_joined"} <= {fact["event"] for fact in facts}
    assert all({"time", "level", "logger"} <= fact.keys() for fact in facts)
    assert not [line for line in served.logged if "GET /" in line]


def _sent(page: str, id_: str) -> bool:
    return bool(get(f"{page}/v1/messages/{id_}")["state"] == "sent")
