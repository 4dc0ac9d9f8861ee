"""The drill's own report: what is told, and when it may say that all is well (R5, R7)."""

from __future__ import annotations

import random
from pathlib import Path

from tidings.config import load
from tidings.drill.checker import EngineRecord, InjectedFault, InjectionKind, ProducerEntry, ReceivedCopy, check_logs
from tidings.drill.report import PRODUCER, DrillEvidence, DrillReport, as_json, build_report, report_figures
from tidings.drill.workload import ATTEMPT_DEADLINE, DrillOptions, plan_kills, plan_messages, settings_file

COURSE = DrillOptions(messages=2, kills=1, workers=2, seconds=1.0, on_unknown="resend", seed=7)
TRIED = [ProducerEntry("a", "x", 10.0, 9.0, 9.1), ProducerEntry("b", "x", 10.0, 9.0, 12.0)]
BOOKS = {"a": EngineRecord("done", False, id="id-a"), "b": EngineRecord("done", False, id="id-b")}
KILL = InjectedFault(InjectionKind.KILL, 1, 10.2, 10.2, "random", {"a": False})


def told(
    copies: list[ReceivedCopy], books: dict[str, EngineRecord] = BOOKS, faults: tuple[InjectedFault, ...] = (KILL,)
) -> DrillReport:
    """The report over these logs."""
    verdict = check_logs(TRIED, copies, faults, books, deadline=ATTEMPT_DEADLINE)
    evidence = DrillEvidence(TRIED, copies, faults, books, verdict, repeated=1)
    return build_report(evidence, COURSE, lease=3.0, seconds=4.5)


def copy(at: float, ref: str, pid: int = 1) -> ReceivedCopy:
    """One arrival."""
    return ReceivedCopy(at, ref, f"id-{ref}", 1, pid, "x")


def test_a_duplicate_explained_by_a_kill_is_reported_but_allowed() -> None:
    """The duplicate is counted with its witness, the wait of what was in dead hands, and its moment (R7)."""
    books = {**BOOKS, "a": EngineRecord("done", True, id="id-a")}

    found = told([copy(10.1, "a"), copy(13.4, "a", pid=2), copy(12.5, "b", pid=2)], books)

    assert found.is_clean and found.proves
    assert (found.accepted, found.repeated, found.delivered, found.copies) == (2, 1, 2, 1)
    assert (list(found.witnessed), list(found.silent)) == (["a"], [])
    assert [round(wait, 1) for wait in found.waits] == [3.2]
    assert found.moments["sent, not recorded"] == 1
    assert as_json(found)["duplicated"] == {"witnessed": 1, "silent": 0, "copies": 1}


def test_a_duplicate_that_the_engine_does_not_know_of_is_silent() -> None:
    """The witness alone does not do: the history must say so, too, and the id to look at is told."""
    found = told([copy(10.1, "a"), copy(13.4, "a", pid=2), copy(12.5, "b", pid=2)])

    assert not found.is_clean
    assert list(found.silent) == ["a"]
    assert found.violations == {"unflagged": ["a (id-a)"]}
    assert [figure.name for figure in report_figures(found) if figure.is_wrong] == ["duplicated"]


def test_what_was_accepted_and_never_seen_is_lost() -> None:
    """With the id under which the engine says that it is done."""
    found = told([copy(10.1, "a")])

    assert not found.is_clean and list(found.lost) == ["b"]
    assert found.violations == {"lost": ["b (id-b)"]}
    assert as_json(found)["ok"] is False


def test_late_counts_from_when_a_message_was_due_and_accepted() -> None:
    """Beyond the lease and five seconds; what a dead producer asked for later does not count."""
    punctual = told([copy(10.1, "a"), copy(19.9, "b", pid=2)])  # accepted at 12.0
    late = told([copy(18.1, "a"), copy(12.1, "b", pid=2)])

    assert (punctual.late, late.late) == (0, 1)
    assert as_json(late)["late_after_s"] == 8.0


def test_a_drill_without_a_kill_between_send_and_record_proves_nothing() -> None:
    """A producer's death is no worker's (R7)."""
    killed = InjectedFault(InjectionKind.KILL, 9, 10.0, 10.0, PRODUCER)

    found = told([copy(10.1, "a"), copy(12.1, "b")], faults=(killed,))

    assert found.is_clean and not found.proves
    assert found.killed == {"workers": 0, "producers": 1}


def test_the_same_seed_is_the_same_plan() -> None:
    """Messages lie within the time given, blows among the messages; every fourth is the producer's (R8)."""
    assert plan_messages(100, 5.0, 1) == plan_messages(100, 5.0, 1) != plan_messages(100, 5.0, 2)
    assert all(line.accept <= line.due <= line.accept + 1 and line.accept < 5 for line in plan_messages(100, 5.0, 1))
    strikes = plan_kills(8, 100, random.Random(3))
    assert strikes == sorted(strikes) and strikes[0].after > 0 and strikes[-1].after < 100
    assert [blow.is_producer for blow in strikes].count(True) == 2


def test_the_processes_of_a_drill_know_one_channel_and_keep_the_users_lease(tmp_path: Path) -> None:
    """Whatever stands in a database URL; no real channel is named."""
    chosen = load(environ={"TIDINGS_NODE_TIMEOUT": "7s", "TIDINGS_CONCURRENCY": "11"}, folder=tmp_path)
    file = tmp_path / "drill.toml"
    url = 'postgresql://ada:"p\\w@host/name?schema=tidings_drill_1'
    file.write_text(settings_file(chosen, url, "hold"))
    file.chmod(0o600)

    made = load(file, environ={})

    assert (made.database, made.concurrency, made.node_timeout, made.sandbox) == (url, 11, chosen.node_timeout, False)
    assert list(made.channels) == ["drill"]
    assert made.channels["drill"].options["on_unknown"] == "hold"
