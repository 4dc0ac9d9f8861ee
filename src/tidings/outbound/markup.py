"""Markup: how a channel reads a part of a message, and how a value is kept from meaning anything in it.

Only values are escaped; what the author of a template wrote stays as it is. Plain parts are left alone.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Mapping
from enum import Enum
from typing import NamedTuple, Protocol, runtime_checkable

Escape = Callable[[str], str]

_MARKDOWN_V2 = re.compile(r"([_*\[\]()~`>#+\-=|{}.!\\])")
_MARKDOWN = re.compile(r"([_*`\[])")
_DISCORD = re.compile(r"@(?=everyone|here)|<(?=[@#/:]|a:|t:|id:)|\](?=\()")
_APART = "\u200b"  # a space without width: it is not seen, and what it parts means nothing any more


def _slack(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


class Markup(Enum):
    """What a part is read as; the value escapes a text for it."""

    HTML = (html.escape,)
    SLACK = (_slack,)  # mrkdwn: links, people and @channel need < and >
    DISCORD = (lambda text: _DISCORD.sub(lambda found: found[0] + _APART, text),)  # mentions and masked links
    MARKDOWN_V2 = (lambda text: _MARKDOWN_V2.sub(r"\\\1", text),)
    MARKDOWN = (lambda text: _MARKDOWN.sub(r"\\\1", text),)  # Telegram's older one

    @property
    def escape(self) -> Escape:
        """A text that says the same in this markup, and nothing else."""
        escape: Escape = self.value[0]
        return escape


class MarkupSpot(NamedTuple):
    """A text within a content: its place (`data.blocks[0].text`), the object around it, and all of `data`."""

    place: str
    inside: Mapping[str, object]
    data: Mapping[str, object]


@runtime_checkable
class HasMarkup(Protocol):
    """What a channel may fill besides: it reads markup in some parts of a message."""

    def markup(self, spot: MarkupSpot) -> Markup | None:
        """What the text there is read as; None: as plain text."""
