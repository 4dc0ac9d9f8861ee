"""Workers as users start them: one queue only, recycled, and with a log that names each failed attempt."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .program import PATIENCE, get, run, serving, until

pytestmark = [pytest.mark.crash, pytest.mark.timeout(180)]
TWO = '[channels.mail]\nkind = "noop"\n\n[channels.phone]\nkind = "noop"\n'


def accept(folder: Path, *channels: str) -> None:
    lines = "\n".join(json.dumps({"channel": channel, "to": "ada", "text": "x"}) for channel in channels)
    answer = run("send", "--file", "-", folder=folder, stdin=lines)
    assert answer.returncode == 0, answer.stderr


def states(folder: Path) -> set[tuple[str, str]]:
    listed: dict[str, Any] = json.loads(run("messages", "list", "--json", folder=folder).stdout)
    return {(item["channel"], item["state"]) for item in listed["items"]}


def test_a_worker_that_is_given_one_queue_leaves_the_others_alone(tmp_path: Path) -> None:
    """C12: `--queue` and `--concurrency`, as on the command line of a fleet."""
    (tmp_path / "tidings.toml").write_text(TWO)
    accept(tmp_path, "mail", "phone")

    with serving(tmp_path, "--queue", "phone", "--concurrency", "5") as served:
        until(lambda: ("phone", "sent") in states(tmp_path), "the message on its queue")
        assert served.stop() == 0

    assert states(tmp_path) == {("phone", "sent"), ("mail", "pending")}


def test_a_process_ends_with_75_after_the_messages_it_may_send(tmp_path: Path) -> None:
    """C12: it shuts down gracefully, and what is left over is sent by its successor."""
    (tmp_path / "tidings.toml").write_text(TWO)
    with serving(tmp_path, "--max-messages-per-process", "20", "--concurrency", "5") as served:
        accept(tmp_path, *["phone"] * 60)
        assert served.process.wait(PATIENCE) == 75

    with serving(tmp_path) as served:
        until(lambda: states(tmp_path) == {("phone", "sent")}, "the rest, by its successor")
        assert served.stop() == 0


def test_a_process_over_its_memory_limit_drains_and_ends_with_75(tmp_path: Path) -> None:
    """C12: `max_memory_per_process`, measured on the real process; a limit that it does not reach changes nothing."""
    (tmp_path / "tidings.toml").write_text(f'max_memory_per_process = "1MiB"\n\n{TWO}')
    accept(tmp_path, *["phone"] * 20)
    with serving(tmp_path) as served:
        assert served.process.wait(PATIENCE) == 75
    (reason,) = [fact for line in served.logged if (fact := json.loads(line))["event"] == "process_recycling"]
    assert "MiB of memory in use" in reason["reason"]
    assert not {state for _, state in states(tmp_path)} - {"sent", "pending"}, "it leaves nothing in flight"

    with serving(tmp_path, "--max-memory-per-process", "64GiB") as served:
        until(lambda: states(tmp_path) == {("phone", "sent")}, "the rest, by its successor")
        assert served.stop() == 0


def test_the_log_names_each_failed_attempt(tmp_path: Path) -> None:
    """A9: time, level, logger, event, tenant, node, task, attempt, category, duration; batches count."""
    with serving(tmp_path, "--log-level", "debug") as served:
        sent = run("send", "--channel", "phone", "--to", "gone", "--text", "x", folder=tmp_path)
        id_ = sent.stdout.partition("\t")[0]
        page = served.address("dashboard")
        until(lambda: get(f"{page}/v1/messages/{id_}")["state"] == "failed", "the failure")
        assert served.stop() == 0

    facts = [json.loads(line) for line in served.logged]
    (failed,) = [fact for fact in facts if fact["event"] == "attempt_failed"]
    assert (failed["level"], failed["logger"], failed["tenant"]) == ("warning", "tidings", "default")
    assert (failed["attempt"], failed["category"], failed["queue"]) == (1, "permanent", "phone")
    assert failed["time"].endswith("Z") and failed["duration_ms"] > 0
    assert isinstance(failed["node"], int) and failed["message"] == id_
    (batch,) = [fact for fact in facts if fact["event"] == "batch_settled"]
    assert (batch["record_count"], batch["outcomes"]) == (1, {"failed:permanent": 1})
