"""Codes: what a person scans to link a phone to a session, as text, for a terminal and as a picture.

A code is asked for when somebody looks and never kept: whoever scans it is linked.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import NamedTuple

from ...model.errors import Conflict, NotFound
from ..channels.base import Channel
from ..channels.session import HasQrCode, HasSession, SessionStatus
from ..events import event_types

QR_BORDER = 4  # modules of white around a code, as readers want it


class SessionQrCode(NamedTuple):
    """A session as somebody sees it who wants to link it."""

    channel: str
    session_state: str
    reason: str
    code: str | None


async def read_qr_code(channels: Mapping[str, Channel], name: str) -> SessionQrCode:
    """The session's state, and the code to scan now if it is logged out and there is one."""
    channel = channels.get(name)
    if channel is None:
        known = ", ".join(sorted(channels.keys() - {event_types.EVENTS_CHANNEL})) or "none"
        raise NotFound(f"there is no channel {name!r}", field="name", remedy=f"configured channels: {known}")
    if not isinstance(channel, HasSession):
        raise Conflict(
            f"a channel of kind {channel.kind} has no session",
            remedy="nothing has to be linked",
            field="name",
        )
    found = await channel.status()
    code = None
    if found.link is SessionStatus.LOGGED_OUT and isinstance(channel, HasQrCode):
        code = await channel.code()
    return SessionQrCode(name, str(found.link), found.why, code)


def render_terminal(code: str, *, colours: bool) -> str:
    """The code in half blocks. With colours it is dark on light whatever those of the terminal are."""
    out = io.StringIO()
    import segno  # only where a code is shown: it takes a tenth of a second to load

    segno.make_qr(code).terminal(out=out, border=QR_BORDER, compact=True)
    lines = out.getvalue().splitlines()
    return "\n".join(f"\x1b[97;40m{line}\x1b[0m" if colours else line for line in lines if line) + "\n"


def render_svg(code: str) -> bytes:
    """The code as a picture that any size can be given to."""
    out = io.BytesIO()
    import segno

    segno.make_qr(code).save(
        out, kind="svg", border=QR_BORDER, light="#fff", omitsize=True, xmldecl=False, nl=False
    )
    return out.getvalue()
