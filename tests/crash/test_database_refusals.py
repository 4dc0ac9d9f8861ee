"""The database refuses instead of being away: a role that may not log in, a read-only server."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tidings.drill.checker import InjectedFault, InjectionKind
from tidings.drill.engine_records import read_engine_records
from tidings.drill.harness import DrillProcess

from ..time_limits import until
from .conftest import Report
from .databases import ROLE, PostgresDatabase
from .rig import Options, drill, message_refs, scaled

pytestmark = [pytest.mark.crash, pytest.mark.postgres]

_END_SESSIONS = f"select pg_terminate_backend(pid) from pg_stat_activity where usename = '{ROLE}'"
_REFUSALS = {
    "no login": (f"alter role {ROLE} nologin", f"alter role {ROLE} login"),
    "read-only": (
        f"alter role {ROLE} set default_transaction_read_only = on",
        f"alter role {ROLE} reset default_transaction_read_only",
    ),
}


def _refused_results(worker: DrillProcess) -> int:
    lines = worker.log.read_text().splitlines()
    return sum('"event":"store_error"' in line and '"settle"' in line for line in lines)


@pytest.mark.parametrize("on_unknown", ["resend", "hold"])
@pytest.mark.parametrize("refusal", list(_REFUSALS))
async def test_results_are_kept_while_the_database_refuses(
    tmp_path: Path, fresh_postgres: Callable[[], PostgresDatabase], refusal: str, on_unknown: str, report: Report
) -> None:
    """Messages were delivered while a role could not log in or the server was read-only: their results are
    written when the refusal ends. None is recorded as failed, so nobody sends one again."""
    database = fresh_postgres()
    begin_refusing, end_refusing = _REFUSALS[refusal]
    refs = message_refs("m", scaled(20, 80))
    options = Options(on_unknown=on_unknown, slots=len(refs), lease=30)
    async with drill(tmp_path / "drill", database, options, {"delay": (1, 1.2)}) as rig:
        worker = rig.spawn(deadline=10)
        await rig.working(worker)
        await rig.producer.produce(refs)
        assert await rig.until_seen(len(refs))
        begin = time.time()
        try:
            for statement in (begin_refusing, _END_SESSIONS):
                await database.rows(statement)
            assert await until(lambda: _refused_results(worker) >= 3), "no result was refused"
        finally:
            for statement in (end_refusing, _END_SESSIONS):
                await database.rows(statement)
        rig.note(InjectedFault(InjectionKind.CUT, 0, begin, time.time(), refusal))
        idle = await rig.idle()
        states = {book.state for book in (await read_engine_records(database)).values()}
        unknown = sum(book.unknown for book in (await read_engine_records(database)).values())
        code = await rig.stop(worker)
        verdict = await rig.verdict()
    report(rig, verdict)

    assert idle and code == 0
    assert (states, unknown) == ({"done"}, 0), "a delivered message was recorded as something else"
    assert not verdict.violations and not verdict.duplicates
