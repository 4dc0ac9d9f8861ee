"""The navigation: every page that has a link of its own, in groups that fit on a phone.

The first row names the groups, the second the pages of the group one is in. A page says which entry it
belongs to with `{% set here = "messages" %}`. A new page is one line here.
"""

from __future__ import annotations

from typing import NamedTuple


class Entry(NamedTuple):
    """One page."""

    here: str
    path: str
    title: str


class Group(NamedTuple):
    """Pages that belong together; its name leads to the first of them."""

    title: str
    entries: tuple[Entry, ...]


GROUPS = (
    Group(
        "Sending",
        (
            Entry("messages", "/messages", "Messages"),
            Entry("broadcasts", "/broadcasts", "Broadcasts"),
            Entry("schedules", "/schedules", "Schedules"),
            Entry("ahead", "/ahead", "Going out"),
            Entry("templates", "/templates", "Templates"),
            Entry("dead", "/dead", "Dead letters"),
        ),
    ),
    Group(
        "People",
        (
            Entry("contacts", "/contacts", "Contacts"),
            Entry("lists", "/lists", "Lists"),
            Entry("opt-outs", "/opt-outs", "Opt-outs"),
        ),
    ),
    Group(
        "Incoming",
        (
            Entry("inbox", "/inbox", "Inbox"),
            Entry("conversations", "/conversations", "Conversations"),
            Entry("cases", "/cases", "Cases"),
            Entry("calendar", "/calendar", "Shifts"),
            Entry("roster", "/roster", "Roster"),
        ),
    ),
    Group(
        "Engine",
        (
            Entry("channels", "/channels", "Channels"),
            Entry("alerts", "/alerts", "Alerts"),
            Entry("migrations", "/migrations", "Migrations"),
            Entry("rollout", "/rollout", "Roll-out"),
            Entry("subscriptions", "/subscriptions", "Subscriptions"),
            Entry("settings", "/settings", "Settings"),
            Entry("docs", "/docs", "API"),
        ),
    ),
)


def group_of(here: str | None) -> Group | None:
    """The group that a page belongs to; None for the first page."""
    return next((group for group in GROUPS if here in {entry.here for entry in group.entries}), None)
