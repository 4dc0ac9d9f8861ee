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
from ..access.behalf import on_behalf
from ..access.caller import current
from ..access.rules import Action
from ..app import App
from ..model.time import iso
from . import views, words
from .frame import Frame
from .live import Live
from .navigation import group_of, seen_by

HERE = Path(__file__).parent
FOR_EVER = "public, max-age=31536000, immutable"  # addresses change with their content


class Pages:
    """What was added; `close` ends the live streams."""

    def __init__(self, live: Live) -> None:
        self.close = live.close


def add_pages(api: FastAPI, app: App) -> Pages:
    """Put the pages onto an API, behind its gate."""
    app = on_behalf(app)  # everything that a page reaches is done for its caller's tenant
    settings, live = app.settings, Live()
    frame = Frame(
        _environment(app), live, app.clock, zone=settings.zone, phone_port=_phone_port(app),
        still_opens=app.access.door.still_opens,
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
    return Pages(live)


def _environment(app: App) -> Environment:
    environment = Environment(
        loader=FileSystemLoader(HERE / "templates"), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    filters: dict[str, Any] = {
        "state_word": words.state_word,
        "tone": words.tone,
        "stage_tone": words.stage_tone,
        "recipient_tone": words.recipient_tone,
        "moment_of": words.moment_of,
        "counted": words.counted,
        "timeline": words.timeline,
        "sentence": partial(words.sentence, zone=app.settings.zone),
        "codes": words.codes,
        "day": words.day,
        "system": words.system,
        "full": partial(words.full, zone=app.settings.zone),
        "clock": partial(words.clock, zone=app.settings.zone),
    }
    environment.filters.update(filters)
    environment.globals.update(
        version=__version__,
        asset=cache(_asset),
        now=lambda: iso(app.clock.now()),
        channels=sorted(app.settings.channels),
        phones=_phones(app),
        zone=app.settings.zone.key,
        may=_may,
        caller=current,
        tiles=words.TILES,
        in_doubt=words.IN_DOUBT,
        navigation=lambda: seen_by(current()),
        group_of=lambda here: group_of(here, seen_by(current())),
    )
    return environment


def _may(action: str, *, whole: bool = False) -> bool:
    """Whether a button is shown to whoever looks; the gate decides when it is pressed."""
    return current().may(Action(action), whole=whole)


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
