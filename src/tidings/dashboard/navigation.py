"""The navigation: every page that has a link of its own, in groups that fit on a phone.

The first row names the groups, the second the pages of the group one is in. A page says which entry it
belongs to with `{% set here = "messages" %}`. A new page is one line here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..access.caller import Caller
from ..access.rules import ADMIN, READ, Action, area_of


class Entry(NamedTuple):
    """One page, and who is shown the way to it; the page itself has its own rule."""

    here: str
    path: str
    title: str
    action: Action = READ
    whole: bool = False


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
            Entry("calendar", "/calendar", "Shifts", whole=True),
            Entry("roster", "/roster", "Roster"),
        ),
    ),
    Group(
        "Engine",
        (
            Entry("channels", "/channels", "Channels", whole=True),
            Entry("alerts", "/alerts", "Alerts", whole=True),
            Entry("migrations", "/migrations", "Migrations"),
            Entry("rollout", "/rollout", "Roll-out", whole=True),
            Entry("subscriptions", "/subscriptions", "Subscriptions"),
            Entry("keys", "/keys", "Keys", ADMIN),
            Entry("audit", "/audit", "Audit", ADMIN),
            Entry("settings", "/settings", "Settings", ADMIN, whole=True),
            Entry("docs", "/docs", "API"),
        ),
    ),
)


def seen_by(caller: Caller) -> list[Group]:
    """What somebody is shown: the pages that they may look at."""
    found = []
    for group in GROUPS:
        entries = tuple(
            entry
            for entry in group.entries
            if caller.may(entry.action, area=area_of(entry.path), whole=entry.whole)
        )
        if entries:
            found.append(Group(group.title, entries))
    return found


def group_of(here: str | None, groups: Sequence[Group]) -> Group | None:
    """The group that a page belongs to; None for the first page."""
    return next((group for group in groups if here in {entry.here for entry in group.entries}), None)
