"""What simulation and drills have found, as stories: each but the fifth failed before it was mended."""

from __future__ import annotations

from . import stories


def test_a_node_with_a_wrong_clock_keeps_its_first_rate_limit_slots() -> None:
    """It knows the database's time before its first claim (B13)."""
    report = stories.wrong_clock().tell()

    assert (report.violations, report.counts["late_p100"] < 2) == ({}, True)


def test_a_reaper_that_slept_does_not_bury_the_living() -> None:
    """A node that has beaten since it was read is alive, and keeps its tasks (B5)."""
    report = stories.sleeping_reaper().tell()

    assert (report.violations, report.met["NodeLost"], report.met["NodeFenced"]) == ({}, 0, 0)


def test_tasks_claimed_after_their_node_was_declared_dead_are_reaped() -> None:
    """The claim was on its way when its node died; nobody expected anything more (B5)."""
    report = stories.late_claim().tell()

    assert (report.violations, report.met["claimed for the dead"]) == ({}, 1)


def test_an_attempt_cancelled_before_it_started_is_not_unknown() -> None:
    """Its start could not be written in time, so nothing left, and no person need decide (E2)."""
    report = stories.late_start().tell()

    assert (report.violations, report.counts["held"], report.counts["delivered"]) == ({}, 0, 1)


def test_a_result_that_comes_after_its_claim_has_gone_changes_nothing_and_is_kept() -> None:
    """Another node is sending again by then: it is the one that settles (B5)."""
    report = stories.late_settle().tell()

    assert (report.violations, report.met["ClaimLost"]) == ({}, 1)


def test_a_claim_whose_response_was_lost_is_released_without_other_events() -> None:
    """E1: its node lives, so no reaper takes it away; it used to wait for whatever came next."""
    report = stories.unknown_commit().tell()

    assert (report.violations, report.counts["delivered"]) == ({}, 1)
    assert report.met["claim unanswered, given back"] == 1
    assert report.counts["late_p100"] < 2


def test_a_beat_that_failed_is_tried_again_at_once() -> None:
    """B5: a node on a bad line uses every chance to say that it lives, so that nobody takes its work."""
    report = stories.flickering_line().tell()

    assert (report.violations, report.met["NodeLost"], report.met["NodeFenced"]) == ({}, 0, 0)
