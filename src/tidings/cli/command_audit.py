"""Audit log entries for commands: one for each command that changes something, whatever its result."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..app import App

READ_ONLY_COMMANDS = frozenset(
    {
        "alerts.list", "audit.list", "audit.verify", "broadcast_recipients.recipients",
        "broadcast_recipients.reports", "broadcasts.list", "broadcasts.show", "broadcasts.watch",
        "calendar.history", "calendar.show", "cases.list", "cases.notices", "cases.show", "channels.list",
        "channels.show", "contacts.find",
        "contacts.list", "contacts.show", "conversations.conversation", "conversations.conversations",
        "conversations.replay", "dead.groups", "dead.list", "inbox.list", "inbox.show", "inbox.sources",
        "import.list", "keys.list", "lists.list", "lists.members", "lists.show", "log.log", "messages.list",
        "messages.show", "messages.why", "migrate.lint", "migrate.list", "migrate.status", "migrate.verify",
        "migrate_records.audit", "migrate_records.batches", "migrate_records.crosswalk", "migrate_records.dead",
        "migrate_records.log", "migrate_records.records", "models.calls", "models.costs",
        "models.prompts", "nodes.list",
        "rollout.compare", "rollout.list", "rollout.show", "roster.list", "schedules.list",
        "schedules.log", "schedules.preview", "schedules.show", "subscriptions.list",
        "subscriptions.show", "suppressions.list", "templates.list", "templates.preview",
        "templates.show", "templates.versions", "top.top",
    }
)  # fmt: skip
"""Commands that write no audit entry."""

_SELF_AUDITED = "keys."  # they write the entry in the transaction of the change


@asynccontextmanager
async def audited(app: App, what: str, target: str | None = None) -> AsyncIterator[None]:
    """Run the body as the command-line caller, and write the audit entry afterwards."""
    from dataclasses import replace

    from ..access.audit import audit_entry
    from ..access.caller import COMMAND_LINE, acting_as
    from ..model.errors import TidingsError

    caller = replace(COMMAND_LINE, origin=_user())
    with acting_as(caller):
        try:
            yield
        except TidingsError as error:
            if what not in READ_ONLY_COMMANDS:
                await app.access.audit.note(audit_entry(caller, what, target=target, status=error.status))
            raise
        if what not in READ_ONLY_COMMANDS and not what.startswith(_SELF_AUDITED):
            await app.access.audit.note(audit_entry(caller, what, target=target, status=200))


def _user() -> str | None:
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return None
