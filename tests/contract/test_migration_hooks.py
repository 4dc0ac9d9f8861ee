"""Errors that a hook raises are handled by their kind (C5), in a running job on both databases."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tidings.migration.connectors.port import ConnectorError, ErrorKind, Record
from tidings.migration.jobs import JobState
from tidings.migration.record_states import RecordState
from tidings.model.time import MINUTE, SECOND
from tidings.observability.events import UnexpectedError

from .migration_harness import Moving

HOOKED = {"people": {"fields": {"name": "name"}, "hook": f"{__name__}:hook"}}
Raise = Callable[[Record, int], Exception | None]

calls: dict[str, int] = {}
script: list[Raise] = []


def hook(record: Record, fields: dict[str, Any]) -> dict[str, Any]:
    """Raise what the test says about the n-th call for a record."""
    calls[record.id] = calls.get(record.id, 0) + 1
    if error := script[-1](record, calls[record.id]):
        raise error
    return fields


@pytest.fixture
def five(moving: Moving) -> Moving:
    """Five records in the source."""
    calls.clear()
    moving.give("people", [{"id": str(n), "name": f"P{n}"} for n in range(5)])
    return moving


def only(id_: str, times: int, error: Callable[[], Exception]) -> Raise:
    """Fail for one record, so often."""
    return lambda record, call: error() if record.id == id_ and call <= times else None


async def test_a_temporary_error_of_a_hook_retries_its_record_with_backoff(five: Moving) -> None:
    """The record is mapped again after 2 and 4 s; after five attempts it has failed."""
    script.append(only("3", 2, lambda: ConnectorError(ErrorKind.TEMPORARY, "the geocoder is down")))
    began = five.clock.now()
    id_ = await five.run(HOOKED)

    assert (await five.migrations.status(id_)).counts == {RecordState.WRITTEN: 5}
    assert calls == {"0": 1, "1": 1, "2": 1, "3": 3, "4": 1}
    assert five.clock.now() - began >= 5 * SECOND
    script.append(only("2", 99, lambda: ConnectorError(ErrorKind.TEMPORARY, "the geocoder is down")))
    five.give("people", [{"id": "2", "name": "new"}])
    id_ = await five.run(HOOKED)
    assert (await five.migrations.status(id_)).counts == {RecordState.FAILED: 1}
    log = [line["what"] for line in (await five.migrations.record(id_, "people", "2"))["log"]]
    assert log == ["hook: ready"] * 4 + ["hook: failed"]


@pytest.mark.parametrize(("wait", "least"), [(timedelta(seconds=20), 20 * SECOND), (None, MINUTE)])
async def test_a_rate_limit_of_a_hook_pauses_the_batch(five: Moving, wait: timedelta | None, least: int) -> None:
    """With its wait, or 60 s without one; records mapped before are written, and no other record calls the hook."""
    script.append(only("2", 1, lambda: ConnectorError(ErrorKind.RATE_LIMIT, "slow down", wait=wait)))
    id_ = await five.create(HOOKED)
    await five.migrations.run(id_, by="anna")
    while "2" not in calls:
        await five.step()
    began = five.clock.now()

    assert calls == {"0": 1, "1": 1, "2": 1}
    assert [row["name"] for row in five.books.content("people")] == ["P0", "P1"]
    await five.drive(id_)
    assert five.clock.now() - began >= least
    assert calls == {"0": 1, "1": 1, "2": 2, "3": 1, "4": 1}
    assert (await five.migrations.status(id_)).counts == {RecordState.WRITTEN: 5}


@pytest.mark.parametrize("kind", [ErrorKind.VALIDATION, ErrorKind.PERMANENT])
async def test_a_validation_or_permanent_error_of_a_hook_rejects_its_record(five: Moving, kind: ErrorKind) -> None:
    """It is not retried; the others are written."""
    script.append(only("4", 99, lambda: ConnectorError(kind, "no such street", field="name")))
    id_ = await five.run(HOOKED)

    assert (await five.migrations.status(id_)).counts == {RecordState.WRITTEN: 4, RecordState.REJECTED: 1}
    (cause,) = await five.migrations.dead(id_)
    assert (cause.failure, cause.field, calls["4"]) == (kind, "name", 1) and "no such street" in cause.reason


@pytest.mark.parametrize("plans", [False, True])
async def test_an_authentication_error_of_a_hook_pauses_the_job(five: Moving, plans: bool) -> None:
    """No record is lost; after a resume the job completes."""
    script.append(only("1", 1, lambda: ConnectorError(ErrorKind.CREDENTIALS, "the geocoder's key is wrong")))
    id_ = await five.create(HOOKED)
    await (five.migrations.plan if plans else five.migrations.run)(id_, by="anna")
    view = await five.drive(id_)

    assert (view.state, view.reason) == (JobState.PAUSED, "invalid_credentials: the geocoder's key is wrong")
    await five.migrations.resume(id_, by="anna")
    view = await five.drive(id_)
    assert view.state is (JobState.PLANNED if plans else JobState.COMPLETED)
    if not plans:
        assert (await five.migrations.status(id_)).counts == {RecordState.WRITTEN: 5}


async def test_an_unexpected_exception_of_a_hook_is_logged_with_its_traceback(five: Moving) -> None:
    """Its record is rejected; the log line names job, batch and tenant, once per kind of error."""
    script.append(lambda record, _call: ZeroDivisionError("oops") if record.id in "12" else None)
    id_ = await five.run(HOOKED)

    assert (await five.migrations.status(id_)).counts == {RecordState.WRITTEN: 3, RecordState.REJECTED: 2}
    (line,) = [event for event in five.events if isinstance(event, UnexpectedError)]
    (batch,) = await five.migrations.batches(id_)
    assert (line.job, line.batch, line.tenant, line.error) == (id_, batch["id"], "default", "ZeroDivisionError: oops")
    assert "Traceback" in line.exception and "in hook" in line.exception
