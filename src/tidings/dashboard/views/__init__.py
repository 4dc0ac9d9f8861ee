"""The views: parse, call one function, render. Forms work without JavaScript.

alerts: alerts and acknowledgement.
audit: the audit log.
broadcast_forms: the form for a new broadcast, with a preview.
broadcasts: broadcasts with live progress.
calendar: the shift calendar and undo.
cases: cases, notices and conversations.
channels: channels, their sessions and QR codes.
contacts: contacts and their details.
dead_letters: dead letters by cause; retry and discard.
docs_and_sign_in: the API reference and the sign-in form.
home: the overview, with a form for a new message.
inbox: inbound messages.
keys: API keys.
lists: contact lists and saved filters.
messages: messages and their timelines.
migrations: migration jobs with live progress.
rollout: gradual rollout of channels.
roster: the people who may write to the inbox.
schedule_forms: the form for a schedule, with its next occurrences.
schedules: schedules and their occurrences.
settings: effective settings, with secrets masked.
subscriptions: event subscriptions.
suppressions: the suppression list.
templates: templates, versions and previews.
upcoming: upcoming messages by day.
"""

from __future__ import annotations

from fastapi import FastAPI

from ...access.permissions import with_rule
from ...access.service import AccessService
from ...config import Settings
from ...inbound.calendar.service import CalendarService
from ...inbound.service import InboundService
from ...inbound.workflow.service import WorkflowService
from ...migration.service import MigrationService
from ...outbound.service import OutboundService
from ..form_permissions import FormPermissions
from ..renderer import PageRenderer
from . import (
    alerts,
    audit,
    broadcast_forms,
    broadcasts,
    calendar,
    cases,
    channels,
    contacts,
    dead_letters,
    docs_and_sign_in,
    home,
    inbox,
    keys,
    lists,
    messages,
    migrations,
    rollout,
    roster,
    schedule_forms,
    schedules,
    settings,
    subscriptions,
    suppressions,
    templates,
    upcoming,
)


def add_routes(
    api: FastAPI,
    desk: OutboundService,
    frame: PageRenderer,
    shifts: CalendarService,
    inbound: InboundService,
    workflows: WorkflowService,
    chosen: Settings,
    migrating: MigrationService,
    access: AccessService,
) -> None:
    """Every page and every form."""
    found = [
        channels.routes(desk, frame),
        home.routes(desk, frame),
        messages.routes(desk, frame),
        broadcast_forms.routes(desk, frame),
        broadcasts.routes(desk, frame),
        schedule_forms.routes(desk, frame),
        schedules.routes(desk, frame),
        upcoming.routes(desk, frame),
        templates.routes(desk, frame),
        contacts.routes(desk, frame),
        lists.routes(desk, frame),
        suppressions.routes(desk, frame),
        calendar.routes(shifts, frame),
        inbox.routes(inbound, frame),
        cases.routes(workflows, frame),
        roster.routes(inbound, frame),
        dead_letters.routes(desk, frame),
        migrations.routes(migrating, frame),
        rollout.routes(desk, frame),
        subscriptions.routes(desk, frame),
        settings.routes(chosen, frame),
        alerts.routes(desk, frame),
        keys.routes(access, frame),
        audit.routes(access, frame),
        docs_and_sign_in.routes(api, frame),
    ]
    frame.shown_to = FormPermissions(way for ways in found for way in ways).shown_to
    for way in (way for ways in found for way in ways):
        view = with_rule(frame.told(way.view), way.rule)
        api.add_route(way.path, view, methods=[way.method], include_in_schema=False)
