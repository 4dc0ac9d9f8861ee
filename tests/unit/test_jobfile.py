"""Job files: three forms, one Job; credentials by reference; nothing unknown gets through (C1, C3)."""

from __future__ import annotations

import json
from copy import deepcopy
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tidings.kernel.retry import Backoff
from tidings.migration import job_file, retry_policy
from tidings.migration.connectors.port import ErrorKind, SystemLimits
from tidings.migration.credentials import CredentialLookup, refuse_plaintext_secrets, resolve_references
from tidings.migration.job_file import MigrationJob, read_job, read_job_file
from tidings.migration.mapping import map_parser
from tidings.migration.mapping.rules import FieldKind, OnError, OnMissing, OnUnresolved
from tidings.migration.verification_report import DifferenceCode
from tidings.model.errors import Invalid, Misconfigured

TOML = """
name = "affinity to attio"
tenant = "acme"

[source]
kind = "affinity"
key = "env:AFFINITY_KEY"

[target]
kind = "attio"
key = "file:attio.key"

[limits]
writes_per_second = 20
concurrency = 4

[retry]
max_attempts = 6
[retry.timeout]
max_attempts = 2

[not_migrated]
interactions = "mailboxes are connected again"

[types.people]
from = "persons"
group = "country"
[types.people.fields]
name = "name"
born = { type = "date", default = 2000-01-01 }
company = { path = "organization_id", reference = "companies" }

[types.companies]
from = "organizations"
fields = { name = { path = "name", required = true } }
"""

YAML = """
name: affinity to attio
tenant: acme
source: {kind: affinity, key: "env:AFFINITY_KEY"}
target: {kind: attio, key: "file:attio.key"}
limits: {writes_per_second: 20, concurrency: 4}
retry: {max_attempts: 6, timeout: {max_attempts: 2}}
not_migrated: {interactions: mailboxes are connected again}
types:
  people:
    from: persons
    group: country
    fields:
      name: name
      born: {type: date, default: 2000-01-01}
      company: {path: organization_id, reference: companies}
  companies:
    from: organizations
    fields: {name: {path: name, required: true}}
"""


def job(tmp_path: Path, text: str, name: str = "job.toml") -> MigrationJob:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return read_job_file(path)


@pytest.fixture
def definition(tmp_path: Path) -> dict[str, Any]:
    """A good definition, free to be spoilt."""
    return deepcopy(dict(job(tmp_path, TOML).definition))


def test_toml_yaml_and_json_say_the_same(tmp_path: Path) -> None:
    """One Job, whatever it was written in, and again from what is stored of it."""
    first = job(tmp_path, TOML)
    same = [
        job(tmp_path, YAML, "job.yaml"),
        job(tmp_path, json.dumps(first.definition), "job.json"),
        read_job(json.loads(json.dumps(first.definition)), is_local=True),
    ]

    assert [one == first for one in same] == [True, True, True]
    assert {one.mapping_hash for one in same} == {first.mapping_hash}
    assert first.waves == [["companies"], ["people"]]
    assert (first.tenant, first.source.kind, first.target.options) == ("acme", "affinity", {"key": "file:attio.key"})
    assert first.type("people").batch_size == 1000 and first.type("companies").batch_size == 500


def test_the_hash_of_the_map_changes_with_the_map_alone(definition: dict[str, Any]) -> None:
    """Which version of the map wrote a record is known; a new limit is no new map."""
    before = read_job(definition).mapping_hash

    definition["limits"] = {"concurrency": 1}
    assert read_job(definition).mapping_hash == before
    definition["types"]["companies"]["fields"]["name"]["path"] = "title"
    assert read_job(definition).mapping_hash != before


def test_the_default_retry_policies_of_a_job_are_those_of_c3(definition: dict[str, Any]) -> None:
    """C3: 5 tries from 2 s doubling to an hour; rate_limit 10; timeout 3 from 5 s; 5xx tells after 3."""
    definition["retry"] = {}
    usual = read_job(definition).retry
    server, timeout = usual.rule(ErrorKind.SERVER), usual.rule(ErrorKind.TIMEOUT)

    assert server is not None and timeout is not None
    assert (server.max_attempts, server.initial_delay, server.max_delay) == (
        5,
        timedelta(seconds=2),
        timedelta(hours=1),
    )
    assert (timeout.max_attempts, timeout.backoff, timeout.initial_delay) == (3, Backoff.LINEAR, timedelta(seconds=5))
    assert usual.rules[ErrorKind.RATE_LIMIT].max_attempts == 10
    assert usual.alert_after[ErrorKind.SERVER] == 3
    for fatal in (ErrorKind.CREDENTIALS, ErrorKind.PERMISSION, ErrorKind.NOT_FOUND, ErrorKind.VALIDATION):
        assert usual.rule(fatal) is None

    definition["retry"] = {"max_attempts": 6, "timeout": {"max_attempts": 2}, "fatal": ["unclassified"]}
    own = read_job(definition).retry
    assert own.rules[ErrorKind.SERVER].max_attempts == 6
    assert own.rules[ErrorKind.TIMEOUT].max_attempts == 2
    assert own.rule(ErrorKind.UNKNOWN) is None


def test_a_job_can_only_lower_the_limits_of_a_system(tmp_path: Path) -> None:
    """A limit of the job never exceeds the system's own."""
    caps = job(tmp_path, TOML).caps

    assert caps.within(SystemLimits(100, 25, None, 8, 1)) == SystemLimits(100, 20, None, 4, 1)
    assert caps.within(SystemLimits(100, 5, 1000, 2, 50)) == SystemLimits(100, 5, 1000, 2, 50)
    assert (caps.soft, caps.hard) == (timedelta(minutes=50), timedelta(hours=1))


@pytest.mark.parametrize(
    ("place", "value", "field", "said"),
    [
        ("nmae", "x", "nmae", "did you mean 'name'"),
        ("name", "", "name", "write a text"),
        ("tenant", "a b", "tenant", "letters"),
        ("source", {}, "source.kind", "is missing"),
        ("source.kind", "afinity", "source.kind", "Did you mean 'affinity'"),
        ("source.kind", "attio", "source.kind", "cannot be a source"),
        ("source.page_sze", 5, "source.page_sze", "did you mean 'page_size'"),
        ("source.key", "canary-1", "source.key", "env:NAME"),
        ("source.url", "https://user:canary-1@example.org", "source.url", "env:NAME"),
        ("source.url", "https://example.org/?api_key=canary-1", "source.url", "env:NAME"),
        ("types", {}, "types", "is missing"),
        ("types.people.feilds", {}, "types.people.feilds", "did you mean 'fields'"),
        ("types.people.fields", {}, "types.people.fields", "is missing"),
        ("types.people.after", ["deals"], "types.people.after", "is not a type of the job"),
        ("types.people.batch_size", 50, "types.people.batch_size", "100 to 10,000"),
        ("types.people.hook", "os:system", "types.people.hook", "from a file"),
        ("types.companies.after", ["people"], "types.people", "depend on each other"),
        ("types.people.fields.x", {"reference": "company"}, "types.people.fields.x.reference", "companies"),
        ("retry.retry_on", ["validation"], "retry.retry_on", "use a list of"),
        ("retry.fatal", ["timeout"], "retry.timeout", "add it to retry_on"),
        ("retry.jitter", 2, "retry.jitter", "fraction"),
        ("retry.backoff", "table", "retry.backoff", "use one of"),
        ("retry.initial_delay", "soon", "retry.initial_delay", "duration"),
        ("limits.writes_per_second", 0, "limits.writes_per_second", "greater than zero"),
        ("limits.soft_limit", "2h", "limits.soft_limit", "shorter"),
        ("not_migrated.persons", "no", "not_migrated.persons", "is migrated"),
    ],
)  # fmt: skip
def test_an_invalid_job_file_is_rejected_with_the_place_of_the_error(
    definition: dict[str, Any], place: str, value: object, field: str, said: str
) -> None:
    """Bad input: the field, the nearest name, the remedy; a secret is never repeated (S9)."""
    inner = definition
    *way, last = place.split(".")
    for step in way:
        inner = inner[step]
    inner[last] = value

    with pytest.raises(Invalid) as caught:
        read_job(definition)

    assert caught.value.field == field and said in str(caught.value) and caught.value.remedy
    assert "canary-1" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("job.txt", "", ".toml"),
        ("job.toml", "name = ", "cannot be read"),
        ("job.json", "[1]", "not a table"),
        ("job.json", "[" * 5000, "cannot be read"),
        ("job.yaml", "name: a\nname: b\n", "line 2 repeats the key 'name'"),
        ("job.yaml", "a: &x [1]\nb: *x\n", "line 2 has an alias"),
        ("job.yaml", "a: !!python/object/apply:os.system [ls]", "cannot be read"),
        ("job.yaml", "types: {people: {fields: {no: x}}}", "in quotes"),
        ("job.yaml", "a: [", "cannot be read"),
    ],
)
def test_an_unreadable_file_is_reported_in_one_sentence(tmp_path: Path, name: str, text: str, said: str) -> None:
    """Never a traceback, never a quiet guess."""
    with pytest.raises(Invalid) as caught:
        job(tmp_path, text, name)

    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    """The path is named."""
    with pytest.raises(Invalid, match=r"none\.toml cannot be read"):
        read_job_file(tmp_path / "none.toml")


def test_credentials_are_looked_up_where_they_are_used(tmp_path: Path) -> None:
    """From the environment or a file, also inside lists and tables; one that is missing is named."""
    (tmp_path / "attio.key").write_text("s3cret\n", encoding="utf-8")
    options = {"key": "file:attio.key", "headers": {"x": ["env:TOKEN"]}, "url": "https://example.org"}

    found = resolve_references(options, "target", CredentialLookup({}, {"TOKEN": "t"}, tmp_path))

    assert found == {"key": "s3cret", "headers": {"x": ["t"]}, "url": "https://example.org"}
    for missing in ("env:NOBODY", "file:nothing.key"):
        with pytest.raises(Misconfigured, match=r"target\.key refers to"):
            resolve_references({"key": missing}, "target", CredentialLookup({}, {}, tmp_path))


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ("Job files", job_file.KEYS),
        ("Record types", map_parser.TYPE_KEYS),
        ("Fields", (*map_parser.FIELD_KEYS, *FieldKind, *OnMissing, *OnError, *OnUnresolved)),
        ("Retry", retry_policy.KEYS),
        ("Limits", job_file.LIMIT_KEYS),
        ("Verification", tuple(DifferenceCode)),
    ],
)
def test_every_key_has_its_entry_in_the_reference(section: str, words: tuple[str, ...]) -> None:
    """What can be written is told, under its own heading."""
    page = (Path(__file__).parents[2] / "docs/reference/job-files.md").read_text(encoding="utf-8")
    part = page if section == "Job files" else page.split(f"\n## {section}\n")[1].split("\n## ")[0]

    assert [word for word in words if f"`{word}`" not in part] == []


def test_the_example_of_the_reference_is_a_job(tmp_path: Path) -> None:
    """What the page shows can be copied."""
    page = (Path(__file__).parents[2] / "docs/reference/job-files.md").read_text(encoding="utf-8")

    shown = job(tmp_path, page.split("```toml\n")[1].split("```")[0])

    assert shown.waves == [["companies"], ["people"], ["deals"]]


def test_a_secret_is_distinguished_from_a_record_key() -> None:
    """S9: names that sound like credentials, headers and queries included; a key of records is none."""
    fine: dict[str, Any] = {
        "key_header": "Idempotency-Key",
        "headers": {"Authorization": "env:AUTH", "Accept": "text/plain"},
        "body": {"key": "{%key%}", "token": "{%fields.token%}"},
        "url": "https://example.org/{%key%}?key=id",
    }
    refuse_plaintext_secrets(fine, "target", {"token"})

    for name, value in [
        ("token", "canary"),
        ("headers", {"X-Api-Key": "canary"}),
        ("headers", {"Authorization": "Bearer canary"}),
        ("url", "https://example.org/?access_token=canary"),
        ("url", "postgresql://user:canary@db/name"),
        ("body", [{"password": 4711}]),
    ]:
        with pytest.raises(Invalid, match="in plain text") as caught:
            refuse_plaintext_secrets({**fine, name: value}, "target", {"token"})
        assert "canary" not in str(caught.value)
