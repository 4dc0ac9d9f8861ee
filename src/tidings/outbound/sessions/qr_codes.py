"""The QR code that links a phone to a session, for a terminal or as SVG.

A code is requested when it is shown and never stored, because anyone who scans it is linked.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import NamedTuple

from ...model.errors import Conflict
from ..channels.base import Channel, unknown_channel
from ..channels.session import HasQrCode, HasSession, SessionStatus

QR_BORDER = 4  # quiet zone in modules, as scanners require


class SessionQrCode(NamedTuple):
    """A session's status and its QR code, if any."""

    channel: str
    session_state: str
    reason: str
    code: str | None


async def read_qr_code(channels: Mapping[str, Channel], name: str) -> SessionQrCode:
    """Read the session's status, and its QR code if it is logged out."""
    channel = channels.get(name)
    if channel is None:
        raise unknown_channel(name, channels)
    if not isinstance(channel, HasSession):
        raise Conflict(
            f"a channel of kind {channel.kind} has no session", remedy="there is nothing to link", field="name"
        )
    found = await channel.status()
    code = None
    if found.link is SessionStatus.LOGGED_OUT and isinstance(channel, HasQrCode):
        code = await channel.code()
    return SessionQrCode(name, str(found.link), found.why, code)


def render_terminal(code: str, *, colours: bool) -> str:
    """The code in half blocks; with `colours` dark on light in any terminal theme."""
    out = io.StringIO()
    import segno  # slow to import

    segno.make_qr(code).terminal(out=out, border=QR_BORDER, compact=True)
    lines = out.getvalue().splitlines()
    return "\n".join(f"\x1b[97;40m{line}\x1b[0m" if colours else line for line in lines if line) + "\n"


def render_svg(code: str) -> bytes:
    """The code as a scalable SVG."""
    out = io.BytesIO()
    import segno

    segno.make_qr(code).save(out, kind="svg", border=QR_BORDER, light="#fff", omitsize=True, xmldecl=False, nl=False)
    return out.getvalue()
