"""The views: parse, call one function, render. Forms work without a script; the script only adds comfort."""

from __future__ import annotations

from fastapi import FastAPI

from ...access.desk import AccessDesk
from ...access.rules import stated
from ...config import Settings
from ...inbound.calendar.desk import ShiftDesk
from ...inbound.desk import InboundDesk
from ...inbound.workflow.building import Workflows
from ...migration.desk import Migrations
from ...outbound.desk import Desk
from ..buttons import Buttons
from ..frame import Frame
from . import (
    ahead,
    alerts,
    audit,
    beside,
    broadcast_forms,
    broadcasts,
    calendar,
    cases,
    channels,
    contacts,
    dead,
    home,
    inbox,
    keys,
    lists,
    messages,
    migrations,
    opt_outs,
    rollout,
    roster,
    schedule_forms,
    schedules,
    settings,
    subscriptions,
    templates,
)


def add_routes(
    api: FastAPI,
    desk: Desk,
    frame: Frame,
    shifts: ShiftDesk,
    inbound: InboundDesk,
    workflows: Workflows,
    chosen: Settings,
    migrating: Migrations,
    access: AccessDesk,
) -> None:
    """Every page and every form."""
    found = [
        channels.ways(desk, frame),
        home.ways(desk, frame),
        messages.ways(desk, frame),
        broadcast_forms.ways(desk, frame),
        broadcasts.ways(desk, frame),
        schedule_forms.ways(desk, frame),
        schedules.ways(desk, frame),
        ahead.ways(desk, frame),
        templates.ways(desk, frame),
        contacts.ways(desk, frame),
        lists.ways(desk, frame),
        opt_outs.ways(desk, frame),
        calendar.ways(shifts, frame),
        inbox.ways(inbound, frame),
        cases.ways(workflows, frame),
        roster.ways(inbound, frame),
        dead.ways(desk, frame),
        migrations.ways(migrating, frame),
        rollout.ways(desk, frame),
        subscriptions.ways(desk, frame),
        settings.ways(chosen, frame),
        alerts.ways(desk, frame),
        keys.ways(access, frame),
        audit.ways(access, frame),
        beside.ways(api, frame),
    ]
    frame.shown_to = Buttons(way for ways in found for way in ways).shown_to
    for way in (way for ways in found for way in ways):
        view = stated(frame.told(way.view), way.rule)
        api.add_route(way.path, view, methods=[way.method], include_in_schema=False)
