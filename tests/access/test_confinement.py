"""What a migration may touch: files in one folder, secrets of the configuration, listed hosts (S10)."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tidings.config import load
from tidings.migration.connectors import api_client, registry
from tidings.migration.connectors.http import HttpSource
from tidings.migration.connectors.options import Connector, ConnectorReach
from tidings.migration.connectors.port import ConnectorError, ErrorKind
from tidings.migration.credentials import Credential
from tidings.migration.job_file import read_job
from tidings.model.errors import Misconfigured

from ..acceptance.harness import AppHarness, house
from ..acceptance.program import run
from ..contract.receiver import answer, receiving

TYPES = {"people": {"fields": {"name": "name"}}}
ATTIO = {"kind": "attio", "key": "credential:crm"}


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest) -> str:
    """Both databases."""
    return str(request.getfixturevalue(f"{request.param}_url"))


@pytest.fixture
async def home(database: str, tmp_path: Path) -> AsyncIterator[AppHarness]:
    """An engine whose API takes files below one folder, and one credential."""
    credentials = {
        "crm": Credential("a-secret-of-the-crm", frozenset({"api.attio.com"})),
        "warehouse": Credential(f"sqlite:///{tmp_path}/warehouse.db"),
    }
    folder = tmp_path / "migrations"
    async with house(database, migration_folder=folder, migration_api_files=True, credentials=credentials) as made:
        yield made


def job(source: dict[str, Any], target: dict[str, Any]) -> dict[str, Any]:
    """A job that moves people."""
    return {"name": "move", "source": source, "target": target, "types": TYPES}


def secret_file(folder: Path) -> Path:
    """A file that only the engine's own user may read."""
    path = folder / "secret.csv"
    path.write_text("id,name\n1,canary-of-the-file\n")
    path.chmod(0o600)
    return path


async def ran(home: AppHarness, body: dict[str, Any]) -> dict[str, Any]:
    """Create and run a job through the API; gives its status."""
    made = await home.http.post("/v1/migrations", json=body)
    assert made.status_code == 201, made.text
    id_ = made.json()["id"]
    await home.http.post(f"/v1/migrations/{id_}/run")
    for _ in range(20):
        home.clock.advance(1)
        await home.work()
    shown: dict[str, Any] = (await home.http.get(f"/v1/migrations/{id_}")).json()
    return shown


async def test_files_and_databases_are_closed_to_the_api_unless_a_setting_opens_them(
    database: str, tmp_path: Path
) -> None:
    """High 1: by default neither a file nor a database can be named in a body; nothing is kept."""
    path = secret_file(tmp_path)
    async with house(database) as home:
        for source in (
            {"kind": "csv", "path": str(path)},
            {"kind": "ndjson", "path": str(path)},
            {"kind": "sql", "url": f"sqlite:///{tmp_path}/x.db"},
        ):
            answer = await home.http.post("/v1/migrations", json=job(source, {"kind": "http", "url": "https://e.org"}))
            assert answer.status_code == 422 and answer.json()["error"]["field"] == "source.kind"
            assert "canary" not in answer.text and answer.json()["error"]["remedy"]
        assert (await home.http.get("/v1/migrations")).json()["items"] == []


@pytest.mark.parametrize("path", ["{secret}", "../secret.csv", "x/../../secret.csv", "/etc/passwd", "link.csv"])
async def test_a_job_of_the_api_reads_no_file_outside_its_folder(home: AppHarness, tmp_path: Path, path: str) -> None:
    """High 1: absolute paths, `..` and links that lead out read nothing, and no record shows the content."""
    secret = secret_file(tmp_path)
    own = tmp_path / "migrations" / "default"
    own.mkdir(parents=True)
    (own / "link.csv").symlink_to(secret)
    body = job({"kind": "csv", "path": path.format(secret=secret)}, {"kind": "csv", "path": "out.csv"})
    if path != "link.csv":
        refused = await home.http.post("/v1/migrations", json=body)
        assert refused.status_code == 422 and refused.json()["error"]["field"] == "source.path"
        assert "canary" not in refused.text
        return
    shown = await ran(home, body)

    assert shown["counts"] == {} and shown["state"] in ("paused", "failed", "running"), shown
    everything = json.dumps(shown) + (await home.http.get(f"/v1/migrations/{shown['id']}/records")).text
    assert "canary" not in everything and not (own / "out.csv").exists()


@pytest.mark.parametrize("path", ["{there}/loot.csv", "{there}", "../../there/loot.csv", "door/loot.csv"])
async def test_a_job_of_the_api_writes_no_file_outside_its_folder(home: AppHarness, tmp_path: Path, path: str) -> None:
    """High 1: a linked folder is not entered either."""
    own, there = tmp_path / "migrations" / "default", tmp_path / "there"
    own.mkdir(parents=True)
    there.mkdir(0o700)
    (own / "door").symlink_to(there)
    (own / "people.csv").write_text("id,name\n1,Ada\n")
    body = job({"kind": "csv", "path": str(own / "people.csv")}, {"kind": "csv", "path": path.format(there=there)})
    if path.startswith("door"):
        await ran(home, body)
    else:
        refused = await home.http.post("/v1/migrations", json=body)
        assert refused.status_code == 422 and refused.json()["error"]["field"] == "target.path"

    assert list(there.iterdir()) == []


async def test_a_link_that_appears_after_the_check_is_not_followed(home: AppHarness, tmp_path: Path) -> None:
    """High 1: the file is swapped for a link between creation and run; the open itself refuses it."""
    secret, own = secret_file(tmp_path), tmp_path / "migrations" / "default"
    own.mkdir(parents=True)
    (own / "people.csv").write_text("id,name\n1,Ada\n")
    body = job({"kind": "csv", "path": "people.csv"}, {"kind": "csv", "path": "out.csv"})
    id_ = (await home.http.post("/v1/migrations", json=body)).json()["id"]
    assert (await home.http.get(f"/v1/migrations/{id_}/lint")).status_code == 200
    (own / "people.csv").unlink()
    (own / "people.csv").symlink_to(secret)
    await home.http.post(f"/v1/migrations/{id_}/run")
    for _ in range(5):
        home.clock.advance(1)
        await home.work()

    shown = (await home.http.get(f"/v1/migrations/{id_}")).text
    assert "symbolic link" in shown and "canary" not in shown
    assert not (own / "out.csv").exists()


async def test_files_of_the_api_are_the_tenants_own_and_readable_by_their_owner_only(
    home: AppHarness, tmp_path: Path
) -> None:
    """High 1: relative paths count from a folder of the tenant; files get mode 0600, folders 0700."""
    own = tmp_path / "migrations" / "default"
    own.mkdir(parents=True)
    (own / "people.csv").write_text("id,name\n1,Ada\n")
    before = os.umask(0)
    try:
        shown = await ran(home, job({"kind": "csv", "path": str(own / "people.csv")},
                                    {"kind": "ndjson", "path": "new/there"}))  # fmt: skip
    finally:
        os.umask(before)

    assert shown["counts"] == {"written": 1}
    made = own / "new" / "there" / "people.ndjson"
    assert "Ada" in made.read_text() and made.stat().st_mode & 0o777 == 0o600
    assert made.parent.stat().st_mode & 0o777 == 0o700


async def test_references_are_resolved_for_the_operator_only(
    home: AppHarness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """High 1: `env:` and `file:` in a body are refused wherever they stand; nothing is resolved."""
    monkeypatch.setenv("CANARY", "canary-of-the-environment")
    for reference in ("env:CANARY", f"file:{secret_file(tmp_path)}"):
        for source, field in (
            ({"kind": "affinity", "key": reference}, "source.key"),
            ({"kind": "http", "url": "https://evil.example", "token": reference}, "source.token"),
            ({"kind": "http", "url": "https://evil.example", "headers": {"x-a": reference}},
             "source.headers.x-a"),
            ({"kind": "http", "url": "https://evil.example", "id": reference}, "source.id"),
        ):  # fmt: skip
            answer = await home.http.post("/v1/migrations", json=job(source, {"kind": "csv", "path": "out.csv"}))
            assert answer.status_code == 422 and answer.json()["error"]["field"] == field, answer.text
            assert "canary" not in answer.text


async def test_a_credential_goes_only_to_the_hosts_that_the_configuration_lists(home: AppHarness) -> None:
    """High 1: whoever may use a credential cannot have it sent elsewhere, nor shown."""
    target = {"kind": "csv", "path": "out.csv"}
    for source, says in (
        ({**ATTIO, "url": "https://evil.example"}, "evil.example"),
        ({**ATTIO, "url": "https://api.attio.com:8443"}, "api.attio.com:8443"),
        ({"kind": "http", "url": "https://evil.example", "token": "credential:crm"}, "evil.example"),
        ({"kind": "http", "url": "https://api.attio.com", "id": "credential:crm"}, "accepts no credential"),
        ({"kind": "http", "url": "https://e.org", "token": "credential:warehouse"}, "e.org"),
        ({"kind": "http", "url": "https://e.org", "token": "credential:unknown"}, "not configured"),
        ({"kind": "sql", "url": "credential:crm"}, "credential for an HTTP API"),
    ):
        body = job(target, source) if source["kind"] == "attio" else job(source, target)
        answer = await home.http.post("/v1/migrations", json=body)
        assert answer.status_code == 422 and says in answer.text, answer.text
        assert "a-secret-of-the-crm" not in answer.text and "warehouse.db" not in answer.text
    good = await home.http.post("/v1/migrations", json=job(target, ATTIO))
    assert good.status_code == 201, good.text
    allowed = job({"kind": "sql", "url": "credential:warehouse"}, target)
    assert (await home.http.post("/v1/migrations", json=allowed)).status_code == 201


async def test_a_map_repaired_through_the_api_cannot_widen_a_job_of_the_operator(
    home: AppHarness, tmp_path: Path
) -> None:
    """High 1: systems that were named by the operator stay; other ones are checked like a new job's."""
    secret = secret_file(tmp_path)
    source = {"kind": "csv", "path": str(secret), "name": "old"}
    target = {"kind": "csv", "path": str(tmp_path / "new.csv"), "name": "new"}
    local = read_job(job(source, target), is_local=True)
    id_ = (await home.app.migrations.create(local, by="operator")).id
    await home.http.post(f"/v1/migrations/{id_}/run")
    for _ in range(5):
        home.clock.advance(1)
        await home.work()
    assert "canary" in (tmp_path / "new.csv").read_text(), "the operator may name any file"

    there = f"/v1/migrations/{id_}/job"
    assert (await home.http.put(there, json=job(source, target))).status_code == 200
    elsewhere = target | {"path": str(tmp_path / "loot.csv")}
    await home.http.put(there, json=job(source, elsewhere))
    await home.http.post(f"/v1/migrations/{id_}/run")
    for _ in range(5):
        home.clock.advance(1)
        await home.work()
    assert not (tmp_path / "loot.csv").exists()


INWARD = ("https://127.0.0.1", "https://2130706433", "https://[::1]", "https://10.1.2.3", "http://169.254.169.254",
          "https://169.254.169.254", "https://[fd00:ec2::254]", "https://168.63.129.16", "http://crm",
          "https://crm.example:8443")  # fmt: skip


async def test_a_job_of_the_api_names_no_address_inside_the_network(home: AppHarness) -> None:
    """High 1, S6: addresses that are not public, http and other ports are refused before anything is kept."""
    out = {"kind": "csv", "path": "out.csv"}
    web = {"kind": "http", "url": "https://e.org"}
    cells = [
        cell
        for url in INWARD
        for cell in (
            ({"kind": "http", "url": url + "/people"}, out, "source.url"),
            ({"kind": "affinity", "url": url, "key": "credential:crm"}, out, "source.url"),
            (web, {"kind": "attio", "url": url, "key": "credential:crm"}, "target.url"),
            (web, {"kind": "http", "url": url}, "target.url"),
            (web, {**web, "find_url": url + "/{%key%}"}, "target.find_url"),
        )
    ]
    for source, target, field in cells:
        refused = await home.http.post("/v1/migrations", json=job(source, target))
        assert refused.status_code == 422, (source, target, refused.text)
        assert refused.json()["error"]["field"] == field and refused.json()["error"]["remedy"]
    assert (await home.http.get("/v1/migrations")).json()["items"] == []


async def test_a_host_that_resolves_to_a_private_address_is_not_called(home: AppHarness) -> None:
    """High 1, S6: every address of a name is checked when it is called, whatever it was before."""
    shown = await ran(home, job({"kind": "http", "url": "https://localhost/"}, {"kind": "csv", "path": "out.csv"}))

    assert shown["state"] == "paused" and "not called: the host has an address that is not public" in str(shown)


async def test_a_setting_opens_private_networks_to_the_api_but_no_metadata_service(
    database: str, tmp_path: Path
) -> None:
    """High 1, S6: for a sandbox or a system of one's own; a redirect is not followed either."""
    opened = {"migration_api_private": True, "migration_api_files": True, "migration_folder": tmp_path}
    out = {"kind": "csv", "path": "out.csv"}
    async with receiving() as receiver, house(database, **opened) as home:
        metadata = {"kind": "http", "url": "http://169.254.169.254/latest"}
        refused = await home.http.post("/v1/migrations", json=job(metadata, out))
        assert refused.status_code == 422 and refused.json()["error"]["field"] == "source.url"

        receiver.script(answer(302, location=f"{receiver.url}/secret"))
        source = {"kind": "http", "url": f"http://localhost:{receiver.port}/people"}
        moved = await ran(home, job(source, out))
        assert moved["state"] == "paused" and "HTTP 302" in str(moved)
        assert {one.path for one in receiver.requests} == {"/people"}

        receiver.script(answer(200, b'[{"id": 1, "name": "Ada"}]'))
        await home.http.post(f"/v1/migrations/{moved['id']}/resume")
        for _ in range(20):
            home.clock.advance(1)
            await home.work()
        assert "Ada" in (tmp_path / "default" / "out.csv").read_text()


async def test_an_operators_connector_is_called_at_the_checked_address_and_never_at_a_metadata_service(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """S6: a name is looked up once and the connection goes there; one forbidden address spoils the others."""
    found = ["127.0.0.2", "127.0.0.1"]  # nobody listens at the first one

    async def look_up(_host: str, **_: Any) -> list[str]:
        return found

    monkeypatch.setattr(api_client, "resolve_host", look_up)
    async with receiving() as receiver:
        receiver.script(answer(200, b'[{"id": 1}]'))
        here = registry.source("http", {"url": f"http://crm:{receiver.port}/people"})
        page = await here.page("people", None)
        await here.close()
        found.append("169.254.169.254")
        there = registry.source("http", {"url": f"http://crm:{receiver.port}/people"})
        with pytest.raises(ConnectorError, match="not public") as refused:
            await there.page("people", None)
        await there.close()

    assert [record.id for record in page.records] == ["1"]
    assert refused.value.failure is ErrorKind.PERMISSION and not refused.value.sent
    assert len(receiver.requests) == 1


async def test_a_connector_that_takes_no_rules_is_closed_to_the_api(
    home: AppHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """High 1: another package's connector must say that it keeps to them; otherwise nothing holds it."""
    other = Connector(SimpleNamespace, {"url": str}, source=HttpSource, reach=ConnectorReach.NETWORK)
    monkeypatch.setattr(registry, "CONNECTORS", {**registry.CONNECTORS, "other": other})
    target = {"kind": "csv", "path": "out.csv"}
    refused = await home.http.post("/v1/migrations", json=job({"kind": "other", "url": "https://e.org"}, target))

    assert refused.status_code == 422 and refused.json()["error"]["field"] == "source.kind"


def test_the_operator_names_any_file_and_reference_on_the_command_line(tmp_path: Path) -> None:
    """A job file that is typed may do what its author may; what it writes is readable by its owner only."""
    (tmp_path / "people.csv").write_text("id,name\n1,Ada\n")
    written = json.dumps(job({"kind": "csv", "path": "people.csv"}, {"kind": "csv", "path": "out/people.csv"}))
    (tmp_path / "job.json").write_text(written)
    done = run("migrate", "run", "job.json", "--json", folder=tmp_path)

    assert done.returncode == 0, done.stderr
    assert "Ada" in (tmp_path / "out" / "people.csv").read_text()
    assert (tmp_path / "out" / "people.csv").stat().st_mode & 0o777 == 0o600


def test_credentials_of_the_configuration_are_read_by_reference_and_never_shown(tmp_path: Path) -> None:
    """The file is the place where `env:` and `file:` count; a malformed table stops the start."""
    path = tmp_path / "tidings.toml"
    path.write_text('[credentials.crm]\nvalue = "env:CRM"\nhosts = ["API.attio.com"]\n')
    settings = load(path, environ={"CRM": "canary"})
    assert settings.credentials["crm"] == Credential("canary", frozenset({"api.attio.com"}))
    assert "canary" not in repr(settings) and settings.describe()["credentials"]["crm"]["value"] == "env:CRM"
    for text, says in (
        ("[credentials.crm]\n", "has no value"),
        ('[credentials.crm]\nvalue = "env:CRM"\nhost = "x"\n', "unknown option 'host'"),
        ('[credentials.crm]\nvalue = "env:CRM"\nhosts = ["https://x/"]\n', "is not a host"),
        ('[credentials."a b"]\nvalue = "env:CRM"\n', "has an invalid name"),
        ('[credentials]\ncrm = "x"\n', "is not a table"),
    ):
        path.write_text(text)
        with pytest.raises(Misconfigured, match=says):
            load(path, environ={"CRM": "canary"})
