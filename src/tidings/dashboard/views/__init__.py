"""The views: parse, call one function, render. Forms work without a script; the script only adds comfort."""

from __future__ import annotations

from fastapi import FastAPI

from ...inbound.calendar.desk import ShiftDesk
from ...inbound.desk import InboundDesk
from ...inbound.workflow.building import Workflows
from ...outbound.desk import Desk
from ..frame import Frame
from . import beside, broadcasts, calendar, cases, channels, dead, home, inbox, messages, roster, schedules


def add_routes(
    api: FastAPI, desk: Desk, frame: Frame, shifts: ShiftDesk, inbound: InboundDesk, workflows: Workflows
) -> None:
    """Every page and every form."""
    found = [
        home.ways(desk, frame),
        messages.ways(desk, frame),
        broadcasts.ways(desk, frame),
        schedules.ways(desk, frame),
        calendar.ways(shifts, frame),
        inbox.ways(inbound, frame),
        cases.ways(workflows, frame),
        roster.ways(inbound, frame),
        dead.ways(desk, frame),
        channels.ways(desk, frame),
        beside.ways(api, frame),
    ]
    for way in (way for ways in found for way in ways):
        api.add_route(way.path, frame.told(way.view), methods=[way.method], include_in_schema=False)
