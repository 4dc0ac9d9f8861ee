"""The views: parse, call one function, render. Forms work without JavaScript.

access: API keys and the audit log.
broadcasts: broadcasts with live progress, and the form for a new one, with a preview.
channels: channels, their sessions and QR codes, and their gradual rollout.
contacts: contacts, contact lists and the suppression list.
engine: alerts, the SLA, the effective settings, the API reference and the sign-in form.
home: the overview, with a form for a new message.
inbound: inbound messages, cases, conversations, the roster and the shift calendar.
messages: messages and their timelines, dead letters by cause, and upcoming messages.
migrations: migration jobs with live progress.
schedules: schedules and their occurrences, and the form for them, with a preview.
subscriptions: event subscriptions.
templates: templates, versions and previews.
"""

from __future__ import annotations

from fastapi import FastAPI

from ...app import App
from ..form_permissions import FormPermissions
from ..renderer import PageRenderer
from .access import ApiKeyViews, AuditLogViews
from .broadcasts import BroadcastViews
from .channels import ChannelViews, RolloutViews
from .contacts import ContactListViews, ContactViews, SuppressionViews
from .engine import EngineViews
from .home import HomeViews
from .inbound import CaseViews, InboxViews, RosterViews, ShiftCalendarViews
from .messages import DeadLetterViews, MessageViews, UpcomingViews
from .migrations import MigrationViews
from .schedules import ScheduleViews
from .subscriptions import SubscriptionViews
from .templates import TemplateViews

VIEWS = (
    HomeViews, MessageViews, DeadLetterViews, UpcomingViews, BroadcastViews, ScheduleViews, TemplateViews,
    ContactViews, ContactListViews, SuppressionViews, InboxViews, CaseViews, RosterViews, ShiftCalendarViews,
    MigrationViews, ChannelViews, RolloutViews, SubscriptionViews, EngineViews, ApiKeyViews, AuditLogViews,
)  # fmt: skip


def add_routes(api: FastAPI, app: App, renderer: PageRenderer) -> None:
    """Add all views to the API."""
    endpoints = [endpoint for views in VIEWS for endpoint in views(app, renderer).endpoints()]
    renderer.shown_to = FormPermissions(route for route, _ in endpoints).shown_to
    for route, view in endpoints:
        api.add_route(route.path, view, methods=[route.method], include_in_schema=False)
