"""Escape template values for a channel's markup, to prevent markup injection.

Only values are escaped, not the template's own text. Plain-text parts are unchanged.
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
_APART = "\u200b"  # a zero-width space breaks the token invisibly


def _slack(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


class Markup(Enum):
    """A markup language; the value is its escape function."""

    HTML = (html.escape,)
    SLACK = (_slack,)  # mrkdwn: links, people and @channel need < and >
    DISCORD = (lambda text: _DISCORD.sub(lambda found: found[0] + _APART, text),)  # mentions and masked links
    MARKDOWN_V2 = (lambda text: _MARKDOWN_V2.sub(r"\\\1", text),)
    MARKDOWN = (lambda text: _MARKDOWN.sub(r"\\\1", text),)  # Telegram's older one

    @property
    def escape(self) -> Escape:
        """The function that escapes plain text for this markup."""
        escape: Escape = self.value[0]
        return escape


class MarkupSpot(NamedTuple):
    """A text within a content: its path (`data.blocks[0].text`), the enclosing object, and all of `data`."""

    place: str
    inside: Mapping[str, object]
    data: Mapping[str, object]


@runtime_checkable
class HasMarkup(Protocol):
    """Optional protocol of channels that interpret markup."""

    def markup(self, spot: MarkupSpot) -> Markup | None:
        """The markup of the text at this spot; None for plain text."""
