"""The pages of one engine, put onto its API."""

from __future__ import annotations

import hashlib
from functools import cache, partial
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from jinja2 import Environment, FileSystemLoader
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from .. import __version__
from ..access.caller import current_caller
from ..access.permissions import Permission
from ..access.tenant_scope import scope_to_tenant
from ..app import App
from ..model.time import iso
from . import template_filters, views
from .live_updates import LiveStreams
from .navigation import group_of, visible_groups
from .renderer import PageRenderer

HERE = Path(__file__).parent
FOR_EVER = "public, max-age=31536000, immutable"  # addresses change with their content


class Dashboard:
    """What was added; `close` ends the live streams."""

    def __init__(self, live: LiveStreams) -> None:
        self.close = live.close


def add_dashboard(api: FastAPI, app: App) -> Dashboard:
    """Put the pages onto an API, behind its gate."""
    app = scope_to_tenant(app)  # everything that a page reaches is done for its caller's tenant
    settings, live = app.settings, LiveStreams()
    frame = PageRenderer(
        _environment(app), live, app.clock, timezone=settings.timezone, phone_port=_phone_port(app),
        is_still_valid=app.access.door.is_still_valid,
    )  # fmt: skip
    views.add_routes(
        api,
        app.desk,
        frame,
        app.shifts,
        app.inbound,
        app.workflows,
        settings,
        app.migrations,
        app.access,
    )
    api.state.problem_page = frame.problem
    api.mount("/static", _Files(directory=HERE / "static"), name="static")
    return Dashboard(live)


def _environment(app: App) -> Environment:
    environment = Environment(
        loader=FileSystemLoader(HERE / "templates"), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    filters: dict[str, Any] = {
        "state_word": template_filters.state_word,
        "tone": template_filters.tone,
        "stage_tone": template_filters.stage_tone,
        "recipient_tone": template_filters.recipient_tone,
        "moment_of": template_filters.moment_of,
        "counted": template_filters.counted,
        "timeline": template_filters.timeline,
        "sentence": partial(template_filters.sentence, timezone=app.settings.timezone),
        "codes": template_filters.codes,
        "day": template_filters.day,
        "system": template_filters.system,
        "full": partial(template_filters.full, timezone=app.settings.timezone),
        "clock": partial(template_filters.clock, timezone=app.settings.timezone),
    }
    environment.filters.update(filters)
    environment.globals.update(
        version=__version__,
        asset=cache(_asset),
        now=lambda: iso(app.clock.now()),
        channels=sorted(app.settings.channels),
        phones=_phones(app),
        timezone=app.settings.timezone.key,
        may=_may,
        caller=current_caller,
        tiles=template_filters.TILES,
        in_doubt=template_filters.UNKNOWN_OUTCOME_LABELS,
        navigation=lambda: visible_groups(current_caller()),
        group_of=lambda here: group_of(here, visible_groups(current_caller())),
    )
    return environment


def _may(action: str, *, whole: bool = False) -> bool:
    """Whether a button is shown to whoever looks; the gate decides when it is pressed."""
    return current_caller().may(Permission(action), whole=whole)


def _phones(app: App) -> list[str]:
    """The channels whose messages arrive on the pretend phone."""
    return sorted(name for name, channel in app.channels.items() if channel.kind == "sandbox")


def _phone_port(app: App) -> int | None:
    return app.settings.sandbox_port if _phones(app) and app.settings.sandbox else None


def _asset(name: str) -> str:
    """The address of a file, changed whenever the file is."""
    digest = hashlib.sha256((HERE / "static" / name).read_bytes()).hexdigest()[:10]
    return f"/static/{name}?v={digest}"


class _Files(StaticFiles):
    """Our own files; a browser may keep them for ever."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        if scope["query_string"] and response.status_code == 200:
            response.headers["cache-control"] = FOR_EVER
        return response
