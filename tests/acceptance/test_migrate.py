"""The faces of migrations: the same job by API, by page and by command line (C1, C4, C8, C9)."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from tidings.access.caller import Caller, acting_as
from tidings.cli.program import program
from tidings.dashboard.views import migrations as migration_views
from tidings.migration.connectors.file_target import FileTarget
from tidings.migration.connectors.port import ConnectorError, ErrorKind
from tidings.migration.job_file import read_job
from tidings.model.errors import Invalid

from .harness import KEY, AppHarness
from .harness import house as housed

BAD = {"3": "nope", "7": "<b>x</b>"}


def definition(folder: Path, **more: Any) -> dict[str, Any]:
    """People from one folder to another; two of twenty have no usable address."""
    folder /= "default"  # what the tenant of that name is confined to
    for name in ("there", "here"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    people = [{"id": str(n), "name": f"P {n}", "mail": BAD.get(str(n), f"p{n}@example.org")} for n in range(20)]
    (folder / "there" / "persons.ndjson").write_text("".join(json.dumps(one) + "\n" for one in people))
    return {
        "name": "people <i>",
        "source": {"kind": "ndjson", "path": str(folder / "there")},
        "target": {"kind": "ndjson", "path": str(folder / "here")},
        "types": {"people": {"from": "persons", "fields": {"name": "name", "mail": {"path": "mail", "type": "email"}}}},
        **more,
    }


def written(folder: Path) -> dict[str, str]:
    """What the target has: addresses by key."""
    lines = (folder / "default" / "here" / "people.ndjson").read_text().splitlines()
    found = [json.loads(line) for line in lines if line.strip()]
    assert len({one["id"] for one in found}) == len(found), "nobody twice"
    return {one["id"]: one["mail"] for one in found}


GOOD = {str(n): f"p{n}@example.org" for n in range(20) if str(n) not in BAD}


@pytest.fixture
async def house(sqlite_url: str, tmp_path: Path) -> AsyncIterator[AppHarness]:
    """An engine that does nothing by itself, and takes files through the API."""
    async with housed(sqlite_url, migration_folder=tmp_path, migration_api_files=True) as made:
        yield made


async def over(house: AppHarness, id_: str) -> dict[str, Any]:
    """Work until the job rests; gives its status."""
    for _ in range(50):
        house.clock.advance(1)
        await house.work()
        shown: dict[str, Any] = (await house.http.get(f"/v1/migrations/{id_}")).json()
        if shown["state"] not in ("planning", "running"):
            return shown
    raise AssertionError(f"it does not end: {shown}")


async def made(house: AppHarness, folder: Path, **more: Any) -> str:
    answer = await house.http.post("/v1/migrations", json=definition(folder, **more))
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


async def test_a_job_is_planned_approved_run_repaired_and_verified_through_the_api(
    house: AppHarness, tmp_path: Path
) -> None:
    """C1, C4, C8, C9: what the plan says is done, only what was mended is written again, all is told."""
    one = f"/v1/migrations/{await made(house, tmp_path)}"
    id_, http = one.rpartition("/")[2], house.http

    assert (await http.post(f"{one}/plan", json={"lookup": True})).json()["state"] == "planning"
    assert (await over(house, id_))["state"] == "planned"
    plan = (await http.get(f"{one}/plan")).json()
    assert plan["actions"] == {"people": {"create": 18, "rejected": 2}} and plan["writes"] == 1
    assert (plan["reads"], plan["calls"]) == (18, 19), "each record is looked up again before it is written"
    creating = (await http.get(f"{one}/plan/records", params={"action": "create", "limit": 5})).json()
    assert [row["source_id"] for row in creating["items"]] == ["0", "1", "2", "4", "5"] and creating["next"]
    assert written(tmp_path) == {}
    refused = await http.post(f"{one}/run")
    assert refused.status_code == 409 and "approve" in refused.text
    await http.post(f"{one}/approve")
    await http.post(f"{one}/run")
    shown = await over(house, id_)

    assert (shown["state"], shown["counts"], shown["quarantined"]) == ("completed", {"rejected": 2, "written": 18}, 2)
    assert written(tmp_path) == GOOD
    (cause,) = (await http.get(f"{one}/dead")).json()["items"]
    assert (cause["count"], cause["field"], cause["example"]) == (2, "mail", "3")
    text = (await http.get(f"{one}/dead/export", params={"cause": cause["fingerprint"]})).text
    rows = [json.loads(line) for line in text.splitlines()]
    assert [(row["id"], row["fields"]["mail"]) for row in rows] == list(BAD.items())
    rows[0]["fields"]["mail"] = "mended@example.org"
    kind = {"content-type": "application/x-ndjson"}
    broken = await http.post(f"{one}/repaired", content=text + '{"id": "4"}\n', headers=kind)
    assert broken.status_code == 422 and "row 3 has no type" in broken.text
    assert (await http.get(one)).json()["state"] == "completed", "nothing was changed"
    given = await http.post(f"{one}/repaired", content=orjson.dumps(rows[0]), headers=kind)
    assert given.json()["opened"] == 1
    assert (await over(house, id_))["counts"] == {"rejected": 1, "written": 19}
    assert written(tmp_path) == {**GOOD, "3": "mended@example.org"}

    lines = [json.loads(line) for line in (await http.post(f"{one}/verify")).text.splitlines()]
    assert [line["difference"]["source_id"] for line in lines[:-1]] == ["7"], "3 is as it was mended"
    assert lines[-1]["report"]["types"][0]["same"] == 19 and lines[-1]["omitted"] == 0
    record = (await http.get(f"{one}/records/people/3")).json()
    assert [line["what"] for line in record["log"]][-1] == "written" and record["raw"]["mail"].startswith("mended")
    found = (await http.get(f"{one}/crosswalk/people", params={"source_id": "3"})).json()["items"]
    assert [row["target_id"] for row in found] == [record["target_id"]]
    trail = (await http.get(f"{one}/audit")).json()["items"]
    assert [line["action"] for line in trail] == [
        *("created", "planning", "planned", "approved", "running", "completed", "replayed", "completed")
    ]
    assert {line["actor"] for line in trail} == {"this machine", "engine"}


async def test_an_idempotency_key_creates_a_job_once(house: AppHarness, tmp_path: Path) -> None:
    """B4: the same key and body get the first answer, also when the job runs; another body is refused."""
    body, key = definition(tmp_path), {"idempotency-key": "job-1"}
    first = await house.http.post("/v1/migrations", json=body, headers=key)
    await house.http.post(f"{first.headers['location']}/run")
    again = await house.http.post("/v1/migrations", json=body, headers=key)

    assert (first.status_code, again.status_code) == (201, 201)
    assert again.json() == first.json() and again.headers["location"] == first.headers["location"]
    assert again.headers["idempotency-replayed"] == "true"
    other = await house.http.post("/v1/migrations", json={**body, "name": "other"}, headers=key)
    assert other.status_code == 422 and "another body" in other.text
    assert len((await house.http.get("/v1/migrations")).json()["items"]) == 1
    trail = (await house.http.get(f"{first.headers['location']}/audit")).json()["items"]
    assert [line["action"] for line in trail] == ["created", "running"]


async def test_a_second_run_writes_nothing_and_a_repaired_map_moves_only_the_rest(
    house: AppHarness, tmp_path: Path
) -> None:
    """C8: after PUT /job with an address for everybody, the two that were quarantined are written."""
    id_ = await made(house, tmp_path)
    one = f"/v1/migrations/{id_}"
    await house.http.post(f"{one}/run")
    await over(house, id_)
    before = (tmp_path / "default" / "here" / "people.ndjson").stat().st_mtime_ns
    await house.http.post(f"{one}/run")

    assert (await over(house, id_))["counts"] == {"rejected": 2, "unchanged": 18}
    assert (tmp_path / "default" / "here" / "people.ndjson").stat().st_mtime_ns == before
    mail = {"path": "mail", "type": "email", "on_error": "leave"}
    types = {"people": {"from": "persons", "fields": {"name": "name", "mail": mail}}}
    changed = await house.http.put(f"{one}/job", json=definition(tmp_path, types=types))
    assert changed.json() == {"id": id_, "opened": 2}
    assert (await over(house, id_))["counts"] == {"unchanged": 18, "written": 2}


async def test_a_bad_request_says_what_is_wrong_and_changes_nothing(house: AppHarness, tmp_path: Path) -> None:
    """Bad input: one sentence with field and remedy; clear secrets, code and other tenants are refused."""
    good, http = definition(tmp_path), house.http
    hook = {"people": {"hook": "os:system", "fields": {"name": "name"}}}
    for body, status, says in (
        ([], 422, "the job is not a table"),
        ({**good, "colour": 1}, 422, "unknown key 'colour'"),
        ({**good, "types": hook}, 422, "hook"),
        ({**good, "tenant": "acme"}, 422, "tenant is 'acme'"),
        ({**good, "source": {"kind": "affinity", "key": "abc"}}, 422, "secret in plain text"),
    ):
        answer = await http.post("/v1/migrations", json=body)
        assert (answer.status_code, says in answer.text) == (status, True), answer.text
    for path in ("", "/plan", "/dead", "/records", "/audit", "/dead/export", "/records/people/1"):
        assert (await http.get(f"/v1/migrations/none{path}")).status_code == 404, path
    assert "use one of" in (await http.get("/v1/migrations", params={"state": "xyz"})).text
    assert "did you mean" in (await http.get("/v1/migrations", params={"state": "runing"})).text
    assert (await http.get("/v1/migrations")).json() == {"items": [], "next": None}


async def test_another_tenants_job_is_not_found(house: AppHarness, tmp_path: Path) -> None:
    """Tenants: neither its status nor its records are shown, nor can it be moved."""
    job = read_job(definition(tmp_path, tenant="acme"), is_local=True)
    theirs = await house.app.migrations.create(job, by="somebody")
    for path in ("", "/dead", "/records", "/dead/export"):
        assert (await house.http.get(f"/v1/migrations/{theirs.id}{path}")).status_code == 404
    assert (await house.http.post(f"/v1/migrations/{theirs.id}/run")).status_code == 404
    assert (await house.http.get(f"/migrations/{theirs.id}")).status_code == 404
    assert (await house.http.get("/v1/migrations")).json()["items"] == []


async def test_the_page_shows_how_far_it_is_and_gives_repaired_records_back(house: AppHarness, tmp_path: Path) -> None:
    """Progress by type and state, causes, records, audit; buttons and a pasted table do what they say."""
    assert "No migrations yet" in (await house.http.get("/migrations")).text
    id_ = await made(house, tmp_path)
    page, http = f"/migrations/{id_}", house.http

    async def press(action: str, **form: str) -> str:
        answer = await http.post(f"{page}/{action}", data=form, follow_redirects=True)
        return answer.text

    assert "running" in await press("run")
    await over(house, id_)
    text = (await http.get(page)).text
    for words in ("<b>20 of 20</b>", "18 written", "mail", "people &lt;i&gt;", "Audit log"):
        assert words in text, words
    assert "<b>x</b>" not in text and 'class="bar"' in text
    live = (await http.get(f"{page}/live", params={"now": "1"})).json()
    assert set(live) == {"trouble", "status", "actions", "types", "batches", "causes", "facts"}
    assert "people &lt;i&gt;" in (await http.get("/migrations")).text
    assert "rejected" in (await http.get(page, params={"state": "rejected"})).text
    record = (await http.get(f"{page}/records/people/7")).text
    assert "Attempts" in record and "<b>x</b>" not in record

    table = (await http.get(f"/v1{page}/dead/export", params={"format": "csv"})).text
    assert "to retry" in await press("repaired", rows=table.replace("nope", "mended@example.org"))
    await over(house, id_)
    assert written(tmp_path)["3"] == "mended@example.org"
    assert "there are no rows" in await press("repaired", rows="")
    assert "row 2 has no id" in await press("repaired", rows="type,fields.mail\npeople,x\n")
    assert "is completed" in await press("pause")
    assert "1 to retry" in await press("replay", type="people")
    assert (await http.post(f"{page}/explode")).status_code == 404


async def test_the_states_of_batches_are_shown_by_the_api_and_on_the_page(
    house: AppHarness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C2: a batch whose target is down is failed with its reason, then completed; each view says so."""
    target = FileTarget.write_many
    down = ConnectorError(ErrorKind.SERVER, "HTTP 503")

    async def refuse(*_: object) -> list[ConnectorError]:
        return [down] * 18

    monkeypatch.setattr(FileTarget, "write_many", refuse)
    id_ = await made(house, tmp_path)
    await house.http.post(f"/v1/migrations/{id_}/run")
    await house.work()

    (batch,) = (await house.http.get(f"/v1/migrations/{id_}/batches")).json()["items"]
    assert (batch["state"], batch["attempt"], batch["size"], batch["reason"]) == ("failed", 2, 20, "18 to retry")
    page = (await house.http.get(f"/migrations/{id_}")).text
    assert '<span class="pill warn">failed</span>' in page and "attempt 2" in page and "18 to retry" in page
    monkeypatch.setattr(FileTarget, "write_many", target)
    await over(house, id_)
    (batch,) = (await house.http.get(f"/v1/migrations/{id_}/batches", params={"state": "completed"})).json()["items"]
    assert (batch["state"], batch["written"]) == ("completed", 18) and batch["attempt"] >= 2
    assert (await house.http.get(f"/v1/migrations/{id_}/batches", params={"state": "failed"})).json()["items"] == []
    assert "use one of" in (await house.http.get(f"/v1/migrations/{id_}/batches", params={"state": "x"})).text
    assert "1 completed" in (await house.http.get(f"/migrations/{id_}")).text


async def planned(house: AppHarness, folder: Path) -> str:
    """A job that was planned, approved and run."""
    id_ = await made(house, folder)
    for action in ("plan", "approve", "run"):
        assert (await house.http.post(f"/v1/migrations/{id_}/{action}")).status_code == 200
        await over(house, id_)
    return id_


async def test_undo_through_the_api_deletes_created_records(house: AppHarness, tmp_path: Path) -> None:
    """C9: a dry run says it and does nothing; a second undoing finds nothing; the trail says who."""
    id_, http = await planned(house, tmp_path), house.http
    undo = f"/v1/migrations/{id_}/undo"

    async def lines(body: dict[str, Any] | None = None) -> list[dict[str, Any]]:
        answer = await http.post(undo, json=body)
        assert answer.status_code == 200, answer.text
        return [json.loads(line) for line in answer.text.splitlines()]

    foreseen = await lines({"dry_run": True})
    assert written(tmp_path) == GOOD
    done = await lines()
    assert written(tmp_path) == {}
    assert [line["record"] for line in foreseen[:-1]] == [line["record"] for line in done[:-1]]
    assert {line["record"]["result"] for line in done[:-1]} == {"erased"}
    end = {"undone": {"id": id_, "dry_run": False, "counts": {"erased": 18}}, "omitted": 0}
    assert done[-1] == end and foreseen[-1]["undone"]["counts"] == {"erased": 18}
    assert (await lines())[-1]["undone"]["counts"] == {}
    trail = (await http.get(f"/v1/migrations/{id_}/audit")).json()["items"]
    assert ("this machine", "undone", "18 erased") in [(x["actor"], x["action"], x["detail"]) for x in trail]

    await http.post(f"/v1/migrations/{id_}/run")
    refused = await http.post(undo)
    assert refused.status_code == 409 and "it can be undone when" in refused.text
    assert (await http.post("/v1/migrations/none/undo")).status_code == 404
    assert (await http.post(undo, json={"dry": True})).status_code == 422


async def test_the_dashboard_previews_an_undo(
    house: AppHarness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The button that deletes comes with the preview, asks again, and says what it did."""
    id_, http = await planned(house, tmp_path), house.http
    page = f"/migrations/{id_}"
    before = (await http.get(page)).text
    assert f'action="{page}/preview-undo"' in before and f'action="{page}/undo"' not in before

    preview = (await http.post(f"{page}/preview-undo", follow_redirects=True)).text
    assert "18 erased" in preview and f'action="{page}/undo" data-confirm="Delete' in preview
    monkeypatch.setattr(migration_views, "UNDO_PREVIEW_RECORDS", 5)
    part = (await http.post(f"{page}/preview-undo", follow_redirects=True)).text
    assert "5 erased of the first 5 records, and more" in part
    assert written(tmp_path) == GOOD

    assert "Undone: 18 erased" in (await http.post(f"{page}/undo", follow_redirects=True)).text
    assert written(tmp_path) == {}


async def test_secret_fields_are_shown_in_the_export_only(house: AppHarness, tmp_path: Path) -> None:
    """S9: neither the log of a record nor its page shows it."""
    mail = {"path": "mail", "type": "email", "secret": True}
    types = {"people": {"from": "persons", "fields": {"name": "name", "mail": mail}}}
    id_ = await made(house, tmp_path, types=types)
    await house.http.post(f"/v1/migrations/{id_}/run")
    await over(house, id_)

    for path in ("/v1/migrations/{}/records/people/3", "/migrations/{}/records/people/3", "/migrations/{}"):
        text = (await house.http.get(path.format(id_))).text
        assert "nope" not in text and "***" in text, path
    assert "nope" in (await house.http.get(f"/v1/migrations/{id_}/dead/export")).text


async def test_viewers_see_no_buttons(sqlite_url: str, tmp_path: Path) -> None:
    """Roles: the page of a viewer has progress and causes, nothing to press, and no way to export."""
    opened = {"migration_folder": tmp_path, "migration_api_files": True}
    async with housed(sqlite_url, api_keys=(KEY,), **opened) as house:
        house.http.headers["x-api-key"] = KEY
        id_ = await made(house, tmp_path)
        await house.http.post(f"/v1/migrations/{id_}/run")
        await over(house, id_)
        key = (await house.http.post("/v1/keys", json={"name": "ada", "role": "viewer"})).json()["key"]
        viewer = house.client(**{"x-api-key": key})
        text = (await viewer.get(f"/migrations/{id_}")).text
        statuses = [
            (await viewer.post(f"/v1/migrations/{id_}/run")).status_code,
            (await viewer.get(f"/v1/migrations/{id_}/dead/export")).status_code,
        ]
        await viewer.aclose()

    assert "18 written" in text and f"/migrations/{id_}/" in text
    assert 'method="post" action="/migrations' not in text and "dead/export" not in text
    assert statuses == [403, 403]


async def test_a_live_job_can_be_paused_resumed_and_cancelled(house: AppHarness, tmp_path: Path) -> None:
    """C9: durable flags; what a person asks is in the audit trail with its reason and whoever asked."""
    one = f"/v1/migrations/{await made(house, tmp_path)}"
    await house.http.post(f"{one}/run")
    paused = await house.http.post(f"{one}/pause", json={"reason": "lunch"})
    assert (paused.json()["state"], paused.json()["reason"]) == ("paused", "lunch")
    await house.work()
    assert (await house.http.get(one)).json()["done"] == 0
    assert (await house.http.post(f"{one}/resume")).json()["state"] == "running"
    with acting_as(Caller("Ada", tenant="default")):
        await house.app.migrations.cancel(one.rpartition("/")[2], by="Ada", reason="wrong list")
    trail = (await house.http.get(f"{one}/audit")).json()["items"]
    assert [(line["actor"], line["action"], line["detail"]) for line in trail[-1:]] == [
        ("Ada", "cancelled", "wrong list")
    ]


def test_the_command_line_runs_repairs_and_verifies_without_a_server(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """C4, C8, C9: `run` works by itself; export, repair and replay touch the two; a file is one job."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.json").write_text(json.dumps(definition(tmp_path)))

    def migrate(*words: str, code: int = 0) -> str:
        database = ["--database", f"sqlite:///{tmp_path}/t.db"]
        assert (program(["migrate", *words, *database], standalone_mode=False) or 0) == code
        return capsys.readouterr().out

    done = json.loads(migrate("run", "job.json", "--json"))
    id_ = done["id"]
    assert done["counts"] == {"rejected": 2, "written": 18} and written(tmp_path) == GOOD
    assert f"{id_} completed: 18 unchanged, 2 rejected of 20" in migrate("run", "job.json")
    assert [row["id"] for row in json.loads(migrate("list", "--json"))["items"]] == [id_]
    told = migrate("dead", id_)
    assert re.search(r"^2\tpeople\trejected\tmail\t3\tvalidation/people/mail/email\t", told, re.MULTILINE)
    migrate("export", id_, "-o", "bad.csv")
    table = (tmp_path / "bad.csv").read_text().replace('"nope"', '"mended@example.org"')
    (tmp_path / "bad.csv").write_text(table.replace("<b>x</b>", "too@example.org"))
    assert json.loads(migrate("replay", id_, "--file", "bad.csv", "--json"))["opened"] == 2
    assert written(tmp_path) == {**GOOD, "3": "mended@example.org", "7": "too@example.org"}
    log = migrate("log", id_, "people", "3")
    assert "source_id\t3" in log and log.rstrip().splitlines()[-1].split("\t")[1] == "written"
    assert '{"written":2,"unchanged":18}' in migrate("status", id_)
    listed = json.loads(migrate("batches", id_, "--state", "completed", "--json"))["items"]
    assert [(row["type"], row["state"], row["size"], row["attempt"]) for row in listed] == [
        ("people", "completed", 2, 1), ("people", "completed", 20, 1),
    ]  # fmt: skip
    assert "command line\treplayed\t2 records" in migrate("audit", id_)
    with pytest.raises(Invalid, match="unknown state"):
        migrate("records", id_, "--state", "lost")


async def test_migrations_have_metrics(house: AppHarness, tmp_path: Path) -> None:
    """C10: jobs, records, errors by kind, how long it took, calls of the month."""
    id_ = await made(house, tmp_path)
    await house.http.post(f"/v1/migrations/{id_}/run")
    await over(house, id_)

    text = (await house.http.get("/metrics")).text

    for line in (
        'migration_jobs{state="completed",tenant="default"} 1.0',
        'migration_records{state="written",tenant="default"} 18.0',
        'migration_records{state="rejected",tenant="default"} 2.0',
        'migration_errors{kind="validation",tenant="default"} 2.0',
    ):
        assert line in text, line
    assert re.search(r'migration_job_seconds\{tenant="default"\} [1-9]', text)
    assert re.search(r'system_calls_this_month\{system="default/ndjson:\w+/write"\} 1.0', text)
