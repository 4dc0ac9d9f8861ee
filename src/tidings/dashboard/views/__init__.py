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
sla: messages sent on time, by day and channel.
subscriptions: event subscriptions.
suppressions: the suppression list.
templates: templates, versions and previews.
upcoming: upcoming messages by day.
"""

from __future__ import annotations

from fastapi import FastAPI

from ...access.permissions import with_rule
from ...app import App
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
    sla,
    subscriptions,
    suppressions,
    templates,
    upcoming,
)

VIEWS = (  # a path with a fixed segment comes before one with a parameter in its place
    channels, home, messages, broadcast_forms, broadcasts, schedule_forms, schedules, upcoming, templates,
    contacts, lists, suppressions, calendar, inbox, cases, roster, dead_letters, migrations, rollout,
    subscriptions, settings, alerts, sla, keys, audit, docs_and_sign_in,
)  # fmt: skip


def add_routes(api: FastAPI, app: App, renderer: PageRenderer) -> None:
    """Add all views to the API."""
    routes = [route for view in VIEWS for route in view.routes(app, renderer)]
    renderer.shown_to = FormPermissions(routes).shown_to
    for route in routes:
        view = with_rule(renderer.show_errors(route.view), route.rule)
        api.add_route(route.path, view, methods=[route.method], include_in_schema=False)
