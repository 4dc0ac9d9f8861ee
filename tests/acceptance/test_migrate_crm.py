"""The documented job file, run as a user runs it: from the simulated Affinity to the simulated Attio (C13)."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from tidings.cli.program import full_program
from tidings.sandbox.affinity_data import file_content

from ..contract.channels.conftest import Sandbox, serving

PAGE = Path(__file__).parents[2] / "docs/reference/job-files.md"
CONNECTORS = PAGE.parents[1] / "how-to/connectors.md"
CONTENT = {"organizations": 5, "persons": 20, "opportunities": 4, "activities": 15, "notes": 12, "files": 9}

Command = Callable[..., Any]


async def fill(sandbox: Sandbox) -> None:
    async with httpx.AsyncClient(base_url=sandbox.url) as client:
        (await client.post("/sandbox/affinity", json=CONTENT)).raise_for_status()
        limits = dict.fromkeys(("reads_per_second", "writes_per_second", "uploads_per_second"), 10_000)
        (await client.post("/sandbox/attio", json=limits)).raise_for_status()


async def content(sandbox: Sandbox, system: str) -> Any:
    async with httpx.AsyncClient(base_url=sandbox.url) as client:
        return (await client.get(f"/sandbox/{system}")).json()["content"]


def documented_job(sandbox: Sandbox) -> str:
    """The first job file of the page, at the sandbox's address and without its limits."""
    found = re.search(r"```toml\n(name = .*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    job = found[1].replace(
        'kind = "affinity"', f'kind = "affinity"\nurl = "{sandbox.url}/affinity"\nreads_per_second = 1000'
    )
    rates = "writes_per_second = 1000\nuploads_per_second = 1000\nreads_per_second = 1000"
    return job.replace('kind = "attio"', f'kind = "attio"\nurl = "{sandbox.url}/attio"\n{rates}')


def documented_files() -> str:
    """The map of files of the page on connectors."""
    found = re.search(r"```toml\n(\[types.person_files\].*?)```", CONNECTORS.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    return found[1]


async def files_of(sandbox: Sandbox) -> dict[str, tuple[str, str]]:
    """The files in Attio by name: the source id of the parent record, and what they contain."""
    async with httpx.AsyncClient(base_url=sandbox.url) as client:
        shown = (await client.get("/sandbox/attio")).json()
    here, digests = shown["content"], shown["digests"]
    parents = {one["id"]: one["values"]["affinity_id"][0] for one in (*here["people"], *here["companies"])}
    found = {one["name"]: (parents[one["record_id"]], digests[one["id"]["file_id"]]) for one in here["files"]}
    assert len(found) == len(here["files"])  # no file twice
    return found


async def files_wanted(sandbox: Sandbox) -> dict[str, tuple[str, str]]:
    files = [one for one in (await content(sandbox, "affinity"))["files"] if one["opportunity_id"] is None]
    parents = [str(one["person_id"] or one["organization_id"]) for one in files]
    digests = [hashlib.sha256(file_content(one)).hexdigest() for one in files]
    return {one["name"]: (parent, digest) for one, parent, digest in zip(files, parents, digests, strict=True)}


@pytest.fixture
def tidings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command, and its answer as JSON."""
    monkeypatch.setenv("AFFINITY_KEY", "simulated")
    monkeypatch.setenv("ATTIO_KEY", "simulated")
    monkeypatch.chdir(tmp_path)

    async def run(*words: str, code: int = 0) -> Any:
        given = ["migrate", *words, "--json", "--database", f"sqlite:///{tmp_path}/t.db"]
        result = await asyncio.to_thread(CliRunner().invoke, full_program(), given)
        assert result.exit_code == code, (words, result.output, result.exception)
        return json.loads(result.stdout)

    return run


def linked(people: list[Any], companies: list[Any]) -> dict[str, str]:
    """Who is linked to which company, by the ids of the source."""
    names = {one["id"]: one["values"]["affinity_id"][0] for one in companies}
    return {
        one["values"]["affinity_id"][0]: names[one["values"]["company"][0]["target_record_id"]]
        for one in people
        if one["values"].get("company")
    }


async def test_every_link_of_the_documented_job_arrives_and_a_lost_one_is_reported(
    tmp_path: Path, tidings: Command
) -> None:
    """Lint, plan, run and verify agree on the relations; then one is removed in the target."""
    async with serving() as sandbox:
        await fill(sandbox)
        (tmp_path / "job.toml").write_text(documented_job(sandbox))
        findings = (await tidings("lint", "job.toml"))["items"]
        plan = await tidings("plan", "job.toml")
        id_ = (await tidings("list"))["items"][0]["id"]
        await tidings("approve", id_)
        done = await tidings("run", id_)
        there, here = await content(sandbox, "affinity"), await content(sandbox, "attio")
        verified = await tidings("verify", id_)
        person = here["people"][0]
        async with httpx.AsyncClient(headers={"authorization": "Bearer simulated"}) as client:
            place = f"{sandbox.url}/attio/v2/objects/people/records/{person['id']}"
            (await client.put(place, json={"data": {"values": {"company": []}}})).raise_for_status()
        lost = await tidings("verify", id_, code=1)

    assert [one for one in findings if one["level"] == "error"] == []
    notes = " ".join(plan["notes"])
    assert "people.company: 20 of 20 records have a link" in notes
    assert "deals.associated_company: 4 of 4 records have a link" in notes
    assert "reading the source once takes 9 calls (companies 2, people 2, deals 5)" in notes
    assert "more calls this month" in notes and "field-2 (Salary) is hidden" in notes
    assert done["counts"] == {"written": 29}
    employers = {str(one["id"]): str(one["current_organization_ids"][0]) for one in there["persons"]}
    assert linked(here["people"], here["companies"]) == employers and len(employers) == 20
    first, last = there["persons"][0]["first_name"], there["persons"][0]["last_name"]
    names = {one["values"]["affinity_id"][0]: one["values"]["name"][0] for one in here["people"]}
    assert names["200001"] == {"first_name": first, "last_name": last, "full_name": f"{first} {last}"}
    deals = {one["values"]["affinity_id"][0]: one["values"] for one in here["deals"]}
    assert (deals["300001"]["stage"], deals["300001"]["value"]) == (["In Progress"], [1000])
    relations = {one["type"]: one["relations"] for one in verified["types"]}
    assert verified["passed"] and relations["people"] == {"company": {"source": 20, "target": 20}}
    assert relations["deals"]["associated_company"] == {"source": 4, "target": 4}
    people = next(one for one in lost["types"] if one["type"] == "people")
    assert not lost["passed"] and people["relations"] == {"company": {"source": 20, "target": 19}}
    assert [one["source_id"] for one in people["differences"]] == [person["values"]["affinity_id"][0]]


ACTIVITIES = """
[types.tasks]
from = "activities/reminders"
ignore = ["activity", "emails", "at"]

[types.tasks.fields]
content = { path = "content", required = true }
deadline_at = { path = "due_date", type = "time" }
parent_object = { constant = "people" }
parent_record_id = { path = "person_ids.0", reference = "people" }

[types.calls]
from = "activities/calls"
to = "notes"

[types.calls.fields]
title = { path = "title", default = "Call" }
content = { expression = "join(', ', emails)", required = true }
created_at = { path = "at", type = "time" }
parent_object = { constant = "people" }
parent_record_id = { path = "person_ids.0", reference = "people" }
"""


async def test_activities_become_meetings_tasks_and_notes(tmp_path: Path, tidings: Command) -> None:
    """The documented map of meetings; reminders become tasks, calls notes; a second run writes nothing."""
    meetings = re.search(r"```toml\n(\[types.meetings\].*?)```", CONNECTORS.read_text(encoding="utf-8"), re.DOTALL)
    assert meetings is not None
    async with serving() as sandbox:
        await fill(sandbox)
        job = documented_job(sandbox).partition("[types.deals]")[0]
        (tmp_path / "job.toml").write_text(f"{job}\n{meetings[1]}\n{ACTIVITIES}")
        assert not [one for one in (await tidings("lint", "job.toml"))["items"] if one["level"] == "error"]
        done = await tidings("run", "job.toml")
        again = await tidings("run", "job.toml")
        here = await content(sandbox, "attio")
        verified = await tidings("verify", done["id"])

    assert done["counts"] == {"written": 34} and again["counts"] == {"unchanged": 34}
    for kind, text in (("meetings", "title"), ("tasks", "content_plaintext"), ("notes", "title")):
        here[kind].sort(key=lambda one, text=text: int(one[text].rpartition(" ")[2]))  # they are written in parallel
    assert [one["title"] for one in here["meetings"]] == ["Meeting 1", "Meeting 6", "Meeting 11"]
    assert here["meetings"][0]["participants"][1]["email_address"] == "person-1@company-1.example"
    assert [one["content_plaintext"] for one in here["tasks"]] == ["Reminder 5", "Reminder 10", "Reminder 15"]
    assert [one["title"] for one in here["notes"]] == ["Call 2", "Call 7", "Call 12"]
    assert verified["passed"], verified
    relations = {one["type"]: one["relations"] for one in verified["types"]}
    assert relations["tasks"] == relations["calls"] == {"parent_record_id": {"source": 3, "target": 3}}


async def test_files_arrive_with_their_content_and_verification_counts_them(tmp_path: Path, tidings: Command) -> None:
    """The documented map: lint, plan, run and verify; a second run uploads nothing, and a lost file is reported."""
    async with serving() as sandbox:
        await fill(sandbox)
        job = documented_job(sandbox).partition("[types.deals]")[0]
        (tmp_path / "job.toml").write_text(f"{job}\n{documented_files()}")
        findings = (await tidings("lint", "job.toml"))["items"]
        plan = await tidings("plan", "job.toml")
        id_ = (await tidings("list"))["items"][0]["id"]
        await tidings("approve", id_)
        done = await tidings("run", id_)
        again = await tidings("run", "job.toml")
        found, wanted = await files_of(sandbox), await files_wanted(sandbox)
        verified = await tidings("verify", id_)
        here = await content(sandbox, "attio")
        async with httpx.AsyncClient(headers={"authorization": "Bearer simulated"}) as client:
            place = f"{sandbox.url}/attio/v2/files/{here['files'][0]['id']['file_id']}"
            (await client.delete(place)).raise_for_status()
        lost = await tidings("verify", id_, code=1)

    assert [one for one in findings if one["level"] == "error"] == []
    assert "12 calls (companies 2, company_files 4, people 2, person_files 4)" in " ".join(plan["notes"])
    assert plan["actions"]["person_files"] == plan["actions"]["company_files"] == {"create": 3}
    assert (plan["reads"], plan["writes"]) == (31, 31), plan
    assert done["counts"] == {"written": 31} and again["counts"] == {"unchanged": 31}
    assert found == wanted and len(found) == 6
    counts = {one["type"]: (one["source"], one["target"], one["same"]) for one in verified["types"]}
    assert verified["passed"] and counts["person_files"] == counts["company_files"] == (3, 3, 3)
    assert not lost["passed"] and sum(one["same"] for one in lost["types"] if "files" in one["type"]) == 5


async def test_a_file_is_not_uploaded_again_when_its_answer_is_lost_or_it_is_already_there(
    tmp_path: Path, tidings: Command
) -> None:
    """Three answers are lost; then a database that knows nothing of the first run finds the files by name."""
    async with serving() as sandbox:
        await fill(sandbox)
        job = (
            documented_job(sandbox)
            .partition("[types.deals]")[0]
            .replace('kind = "attio"', 'kind = "attio"\ndeadline = "1s"')
        )
        (tmp_path / "job.toml").write_text(f"{job}\n{documented_files()}")
        sandbox.break_("lost", channel="attio", recipient="files", times=3)
        done = await tidings("run", "job.toml")
        found, wanted = await files_of(sandbox), await files_wanted(sandbox)
        for one in tmp_path.glob("t.db*"):
            one.unlink()
        anew = await tidings("run", "job.toml")
        await tidings("undo", anew["id"], "--yes")  # leaves what that run only found
        after = await files_of(sandbox)
        uploads = [one for one in sandbox.requests if one.path == "/attio/v2/files/upload"]

    assert done["counts"] == {"written": 31} and anew["counts"] == {"written": 25, "unchanged": 6}
    assert found == after == wanted and len(uploads) == 6


@pytest.mark.parametrize("point", ["started:2", "sent:2"])
async def test_a_killed_process_uploads_no_file_twice(point: str, tmp_path: Path, tidings: Command) -> None:
    """SIGKILL before an upload and after it: the next process looks before it uploads, and copies the rest."""
    async with serving() as sandbox:
        await fill(sandbox)
        job = documented_job(sandbox).partition("[types.deals]")[0].replace("[target]", '[target]\ndeadline = "1s"')
        (tmp_path / "job.toml").write_text(job)
        await tidings("run", "job.toml")
        (tmp_path / "files.toml").write_text(f"{job}\n{documented_files()}")
        command = [sys.executable, "-m", "tidings.cli", "migrate", "run", "files.toml"]
        process = await asyncio.create_subprocess_exec(
            *command, "--database", f"sqlite:///{tmp_path}/t.db", env={**os.environ, "TIDINGS_CRASH_AT": point}
        )
        killed = await process.wait()
        id_ = (await tidings("list"))["items"][0]["id"]
        done = await tidings("run", id_)
        found, wanted = await files_of(sandbox), await files_wanted(sandbox)
        uploads = [one for one in sandbox.requests if one.path == "/attio/v2/files/upload"]

    assert killed == -signal.SIGKILL
    assert done["counts"] == {"unchanged": 25, "written": 6}
    assert found == wanted and len(uploads) == 6


async def test_a_file_that_cannot_be_copied_is_rejected_with_the_reason(tmp_path: Path, tidings: Command) -> None:
    """Too large for Attio: the plan says so. A source without content: lint says so."""
    async with serving() as sandbox:
        await fill(sandbox)
        async with httpx.AsyncClient(base_url=sandbox.url) as client:
            large = {**CONTENT, "files": 3, "file_size": 52_428_801}
            (await client.post("/sandbox/affinity", json=large)).raise_for_status()
        job = documented_job(sandbox).partition("[types.deals]")[0]
        (tmp_path / "job.toml").write_text(f"{job}\n{documented_files()}")
        (tmp_path / "other.toml").write_text(f"{job}\n{documented_files()}".replace('"files/persons"', '"notes"'))
        plan = await tidings("plan", "job.toml")
        without = (await tidings("lint", "other.toml", code=1))["items"]

    assert plan["actions"]["person_files"] == {"rejected": 1}, plan
    assert "52,428,801 bytes: Attio accepts at most 52,428,800" in json.dumps(plan), plan
    assert ("person_files", "missing_content") in [(one["type"], one["code"]) for one in without]


async def test_a_relation_that_cannot_be_read_is_an_error_of_lint_and_stops_a_run(
    tmp_path: Path, tidings: Command
) -> None:
    """By path or by expression: the list of persons has no organization_ids, and version 2 has no relations."""
    async with serving() as sandbox:
        await fill(sandbox)
        job = documented_job(sandbox)
        path, expression = '{ path = "current_organization_ids.0"', '{ expression = "organization_ids[0]"'
        (tmp_path / "path.toml").write_text(job.replace(path, '{ path = "organization_ids.0"'))
        (tmp_path / "expression.toml").write_text(job.replace(path, expression).replace('name = "aff', 'name = "2 aff'))
        by_path = (await tidings("lint", "path.toml", code=1))["items"]
        by_expression = (await tidings("lint", "expression.toml", code=1))["items"]
        stopped = await tidings("run", "path.toml", code=1)
        here = await content(sandbox, "attio")

    errors = [one for one in (*by_path, *by_expression) if one["level"] == "error"]
    assert [(one["type"], one["field"], one["code"]) for one in errors] == [
        ("people", "company", "missing_column"),
        ("people", "company", "unreadable_relation"),
    ]
    assert all("current_organization_ids" in one["remedy"] for one in errors)
    assert stopped["state"] == "paused" and here["people"] == []


async def test_a_plan_without_an_answer_about_the_quota_is_still_a_plan(
    tmp_path: Path, tidings: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The report says that the quota is unknown, and why."""
    monkeypatch.setattr("tidings.sandbox.providers.affinity._AffinityProvider.rate_limit", _broken)
    async with serving() as sandbox:
        await fill(sandbox)
        (tmp_path / "job.toml").write_text(documented_job(sandbox))
        plan = await tidings("plan", "job.toml")

    assert any(one.startswith("the monthly quota of the source is unknown: HTTP 500") for one in plan["notes"])
    assert plan["actions"]["people"] == {"create": 20}


async def _broken(*_: object) -> Any:
    raise RuntimeError("on purpose")
