"""The navigation menu: groups of pages.

The first row shows the groups, the second the pages of the current group. A template names its entry with
`{% set here = "messages" %}`. To add a page, add one line here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..access.caller import Caller
from ..access.permissions import ADMIN, READ, Permission, area_of


class NavigationEntry(NamedTuple):
    """A link, and the permission needed to see it; the page itself has its own access rule."""

    here: str
    path: str
    title: str
    action: Permission = READ
    engine_wide: bool = False


class NavigationGroup(NamedTuple):
    """A group of pages; its title links to the first of them."""

    title: str
    entries: tuple[NavigationEntry, ...]


GROUPS = (
    NavigationGroup(
        "Sending",
        (
            NavigationEntry("messages", "/messages", "Messages"),
            NavigationEntry("broadcasts", "/broadcasts", "Broadcasts"),
            NavigationEntry("schedules", "/schedules", "Schedules"),
            NavigationEntry("upcoming", "/upcoming", "Upcoming"),
            NavigationEntry("templates", "/templates", "Templates"),
            NavigationEntry("dead", "/dead", "Dead letters"),
        ),
    ),
    NavigationGroup(
        "People",
        (
            NavigationEntry("contacts", "/contacts", "Contacts"),
            NavigationEntry("lists", "/lists", "Lists"),
            NavigationEntry("suppressions", "/suppressions", "Suppressions"),
        ),
    ),
    NavigationGroup(
        "Incoming",
        (
            NavigationEntry("inbox", "/inbox", "Inbox"),
            NavigationEntry("conversations", "/conversations", "Conversations"),
            NavigationEntry("cases", "/cases", "Cases"),
            NavigationEntry("calendar", "/calendar", "Shifts", engine_wide=True),
            NavigationEntry("roster", "/roster", "Roster"),
        ),
    ),
    NavigationGroup(
        "Engine",
        (
            NavigationEntry("channels", "/channels", "Channels", engine_wide=True),
            NavigationEntry("alerts", "/alerts", "Alerts", engine_wide=True),
            NavigationEntry("sla", "/sla", "SLA", engine_wide=True),
            NavigationEntry("migrations", "/migrations", "Migrations"),
            NavigationEntry("rollout", "/rollout", "Rollout", engine_wide=True),
            NavigationEntry("subscriptions", "/subscriptions", "Subscriptions"),
            NavigationEntry("keys", "/keys", "API keys", ADMIN),
            NavigationEntry("audit", "/audit", "Audit log", ADMIN),
            NavigationEntry("settings", "/settings", "Settings", ADMIN, engine_wide=True),
            NavigationEntry("docs", "/docs", "API"),
        ),
    ),
)


def visible_groups(caller: Caller) -> list[NavigationGroup]:
    """Return the groups with the pages that the caller may read."""

    def is_visible(entry: NavigationEntry) -> bool:
        return caller.may(entry.action, area=area_of(entry.path), engine_wide=entry.engine_wide)

    groups = (NavigationGroup(group.title, tuple(filter(is_visible, group.entries))) for group in GROUPS)
    return [group for group in groups if group.entries]


def group_of(here: str | None, groups: Sequence[NavigationGroup]) -> NavigationGroup | None:
    """Return the group of a page; None for the overview."""
    return next((group for group in groups if here in {entry.here for entry in group.entries}), None)
