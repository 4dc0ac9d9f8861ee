"""The navigation: every page that has a link of its own, in groups that fit on a phone.

The first row names the groups, the second the pages of the group one is in. A page says which entry it
belongs to with `{% set here = "messages" %}`. A new page is one line here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..access.caller import Caller
from ..access.permissions import ADMIN, READ, Permission, area_of


class NavigationEntry(NamedTuple):
    """One page, and who is shown the way to it; the page itself has its own rule."""

    here: str
    path: str
    title: str
    action: Permission = READ
    whole: bool = False


class NavigationGroup(NamedTuple):
    """Pages that belong together; its name leads to the first of them."""

    title: str
    entries: tuple[NavigationEntry, ...]


GROUPS = (
    NavigationGroup(
        "Sending",
        (
            NavigationEntry("messages", "/messages", "Messages"),
            NavigationEntry("broadcasts", "/broadcasts", "Broadcasts"),
            NavigationEntry("schedules", "/schedules", "Schedules"),
            NavigationEntry("ahead", "/ahead", "Going out"),
            NavigationEntry("templates", "/templates", "Templates"),
            NavigationEntry("dead", "/dead", "Dead letters"),
        ),
    ),
    NavigationGroup(
        "People",
        (
            NavigationEntry("contacts", "/contacts", "Contacts"),
            NavigationEntry("lists", "/lists", "Lists"),
            NavigationEntry("opt-outs", "/opt-outs", "Opt-outs"),
        ),
    ),
    NavigationGroup(
        "Incoming",
        (
            NavigationEntry("inbox", "/inbox", "Inbox"),
            NavigationEntry("conversations", "/conversations", "Conversations"),
            NavigationEntry("cases", "/cases", "Cases"),
            NavigationEntry("calendar", "/calendar", "Shifts", whole=True),
            NavigationEntry("roster", "/roster", "Roster"),
        ),
    ),
    NavigationGroup(
        "Engine",
        (
            NavigationEntry("channels", "/channels", "Channels", whole=True),
            NavigationEntry("alerts", "/alerts", "Alerts", whole=True),
            NavigationEntry("migrations", "/migrations", "Migrations"),
            NavigationEntry("rollout", "/rollout", "Roll-out", whole=True),
            NavigationEntry("subscriptions", "/subscriptions", "Subscriptions"),
            NavigationEntry("keys", "/keys", "Keys", ADMIN),
            NavigationEntry("audit", "/audit", "Audit", ADMIN),
            NavigationEntry("settings", "/settings", "Settings", ADMIN, whole=True),
            NavigationEntry("docs", "/docs", "API"),
        ),
    ),
)


def visible_groups(caller: Caller) -> list[NavigationGroup]:
    """What somebody is shown: the pages that they may look at."""
    found = []
    for group in GROUPS:
        entries = tuple(
            entry
            for entry in group.entries
            if caller.may(entry.action, area=area_of(entry.path), whole=entry.whole)
        )
        if entries:
            found.append(NavigationGroup(group.title, entries))
    return found


def group_of(here: str | None, groups: Sequence[NavigationGroup]) -> NavigationGroup | None:
    """The group that a page belongs to; None for the first page."""
    return next((group for group in groups if here in {entry.here for entry in group.entries}), None)
