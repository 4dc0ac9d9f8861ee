"""What people read: times as one says them, days, systems, why a moved message waits (issue 7)."""

from zoneinfo import ZoneInfo

import pytest

from tidings.cli import output
from tidings.dashboard import template_filters
from tidings.kernel.task_actions import RESCHEDULED_PREFIX
from tidings.model.time import SECOND, iso
from tidings.outbound.explanation import explain

NOON = 1_800_000_000 * SECOND
SAID = "sent at 2026-11-15T22:38:20.978Z on attempt 1"


@pytest.mark.parametrize(
    ("on_terminal", "said"), [(True, "sent at Sun 15 Nov 2026 22:38:20 UTC on attempt 1"), (False, SAID)]
)
def test_times_are_said_on_a_terminal_and_exact_in_a_pipe(
    monkeypatch: pytest.MonkeyPatch, on_terminal: bool, said: str
) -> None:
    """Programs get what they can parse, people what they can read."""
    monkeypatch.setattr(output, "on_terminal", lambda: on_terminal)

    assert output.readable(SAID) == said


def test_a_page_says_times_in_its_own_zone() -> None:
    """The zone of the settings, as everywhere on the page."""
    said = template_filters.sentence(SAID, ZoneInfo("Asia/Kathmandu"))

    assert said == "Sent at Mon 16 Nov 2026 04:23:20 +0545 on attempt 1."


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("20261122", "Sun 22 Nov 2026"),
        ("2026-11-22", "Sun 22 Nov 2026"),
        ("20269999", "20269999"),
        ("the keys", "the keys"),
        (None, ""),
    ],
)
def test_a_day_is_said_as_one_and_anything_else_is_left_alone(given: str | None, said: str) -> None:
    """Topics of conversations are days, mostly."""
    assert template_filters.day(given) == said


@pytest.mark.parametrize(("name", "said"), [("default/attio:07604e1af0ad/write", "attio, write"), ("ledger", "ledger")])
def test_a_system_is_named_without_its_hash(name: str, said: str) -> None:
    """Tenant and hash tell nobody anything."""
    assert template_filters.system(name) == said


def test_a_message_that_was_moved_says_when_it_goes_out() -> None:
    """Not that it waits because it was moved there; what kept it before that is still told."""
    due = NOON + 600 * SECOND
    row = {"state": "pending", "head": True, "due_at": due, "attempts": 0, "throttles": 0}
    moved = {"detail": f"{RESCHEDULED_PREFIX} {iso(due)}"}

    alone = explain(row, None, [moved], now=NOON, ahead=0, nodes=1)
    tried = explain({**row, "attempts": 1}, None, [{"detail": "busy"}, moved], now=NOON, ahead=0, nodes=1)

    assert alone.answer == f"scheduled for {iso(NOON + 600 * SECOND)}"
    assert tried.answer.startswith("1 attempt, next attempt at") and tried.answer.endswith(": busy")
