"""Fleet processes as users start them: roles, queues and partitions, with a settings file and the environment."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ..launcher import fork_server
from .program import PATIENCE, Serving, environment, run, serving, until

pytestmark = [pytest.mark.crash, pytest.mark.timeout(180)]
FILE = """
poll_interval = "100ms"
history_retention = "7d"

[channels.mail]
kind = "noop"

[channels.phone]
kind = "noop"

[channels.texts]
kind = "noop"
"""


def fleet(folder: Path, url: str) -> dict[str, str]:
    """The environment of one process: the database, and no ports that could collide."""
    (folder / "tidings.toml").write_text(FILE)
    return {"TIDINGS_DATABASE": url, "TIDINGS_SANDBOX": "false", "TIDINGS_NODE_TIMEOUT": "30s"}


def states(folder: Path, env: dict[str, str]) -> dict[str, set[str]]:
    """The states of the messages by channel."""
    listed: dict[str, Any] = json.loads(run("messages", "list", "--json", folder=folder, env=env).stdout)
    found: dict[str, set[str]] = {}
    for item in listed["items"]:
        found.setdefault(item["channel"], set()).add(item["state"])
    return found


def start(folder: Path, env: dict[str, str], *words: str) -> Serving:
    """A process with roles, from the moment it is ready."""
    process = fork_server().start("tidings.cli", "serve", *words, cwd=folder, files=None, env=environment(env))
    served = Serving(process)
    served.hears("is ready: ")
    return served


def test_roles_queues_and_partitions_divide_the_work(tmp_path: Path, postgres_url: str) -> None:
    """B12, C12: a scheduler, workers of one queue, workers of a part, and a poller, each a process of its own."""
    env = fleet(tmp_path, postgres_url)
    added = run(
        "schedules", "add", "--every", "1s", "--count", "2", "-c", "phone", "--to", "ada", "-t", "tick",
        folder=tmp_path, env=env,
    )  # fmt: skip
    assert added.returncode == 0, added.stderr
    processes = [start(tmp_path, env, "--role", "scheduler")]
    try:
        until(lambda: states(tmp_path, env).get("phone") == {"pending"}, "the scheduler makes, and sends nothing")
        for channel in ("mail", "texts"):
            run("send", "-c", channel, "--to", "ada", "--text", "x", folder=tmp_path, env=env)
        processes.append(start(tmp_path, env, "--role", "worker", "--queue", "phone", "--concurrency", "5"))
        until(lambda: states(tmp_path, env)["phone"] == {"sent"}, "the worker of its queue")
        processes.append(start(tmp_path, env, "--role", "poller"))
        assert states(tmp_path, env) == {"phone": {"sent"}, "mail": {"pending"}, "texts": {"pending"}}
        processes += [start(tmp_path, env, "--role", "worker", "--partition", f"{n}/2") for n in (1, 2)]
        until(lambda: {"sent"} == set.union(*states(tmp_path, env).values()), "the two parts together")
        nodes = json.loads(run("nodes", "list", "--json", folder=tmp_path, env=env).stdout)["items"]
        assert len([node for node in nodes if node["state"] == "live"]) == 5
        assert [process.stop() for process in processes] == [0] * 5
    finally:
        for process in processes:
            if process.process.poll() is None:
                process.kill()


def test_limits_of_the_environment_recycle_a_process(tmp_path: Path, postgres_url: str) -> None:
    """C12: `max_messages_per_process` as a variable; exit code 75 for the supervisor, the rest for the successor."""
    env = fleet(tmp_path, postgres_url)
    lines = "\n".join(json.dumps({"channel": "phone", "to": "ada", "text": "x"}) for _ in range(60))
    assert run("send", "--file", "-", folder=tmp_path, env=env, stdin=lines).returncode == 0
    limited = {**env, "TIDINGS_MAX_MESSAGES_PER_PROCESS": "20", "TIDINGS_CONCURRENCY": "5"}
    served = start(tmp_path, limited, "--role", "worker")
    assert served.process.wait(PATIENCE) == 75
    with serving(tmp_path, env=env) as successor:
        until(lambda: states(tmp_path, env) == {"phone": {"sent"}}, "the rest, by its successor")
        assert successor.stop() == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--role", "sender"), "unknown role"),
        (("--role", "transport"), "broker"),
        (("--role", "dispatcher"), "broker"),
        (("--role", "worker", "--partition", "3/2"), "partition"),
        (("--role", "worker", "--queue", "fax"), "fax"),
    ],
)
def test_a_wrong_role_queue_or_partition_is_refused_before_anything_starts(
    tmp_path: Path, words: tuple[str, ...], says: str
) -> None:
    """One sentence with the remedy, and no database file."""
    answer = run("serve", *words, folder=tmp_path)
    assert answer.returncode in (2, 78), answer.stderr
    assert answer.stderr.startswith("error: ") and says in answer.stderr
    assert not (tmp_path / "data").exists()
