"""Confirmation: an uncertain request is executed only after a yes; a no drops it. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .instance import RequestSlots, Workflow, request

CONFIRM = "confirm"
"""The value of `Workflow.asked` while a yes or no is awaited."""

_YES = (
    r"(?:yes|yep|yeah|yup|ya|yea|y|si|correct|right|exactly|confirm|confirmed|affirmative|sure|ok|okay|k|10 4"
    r"|perfect|good|fine|please|do it|book it|go ahead|go for it|please do|it is|that is it|you got it"
    r"|(?:that|it|this|all)(?: is|s)? (?:right|correct|it|good|fine|perfect)|(?:sounds|looks) (?:good|right))"
)
_NO = (
    r"(?:no|nope|nah|n|wrong|negative|not right|incorrect"
    r"|(?:that|it|this)(?: is|s)? (?:wrong|not right|not it))"
)
_POLITE = r"(?:thanks|thank you|thx|ty|sir|bot|sorry|please|pls|all)"
_IS_YES = re.compile(rf"(?:(?:oh|um|uh|ah) )*{_YES}(?: (?:{_YES}|{_POLITE}))*")
_IS_NO = re.compile(rf"(?:(?:oh|um|uh|ah|sorry) )*{_NO}(?: (?:{_NO}|{_POLITE}))*")
_THUMBS_UP = re.compile(r"[👍👌✅✔💯]")
_THUMBS_DOWN = re.compile(r"[👎❌🚫]")


def is_yes(text: str) -> bool:
    """Return whether the text is a yes and nothing else; a longer text may mean something different."""
    return bool(_IS_YES.fullmatch(_plain(text)))


def is_no(text: str) -> bool:
    """Return whether the text is a no and nothing else."""
    return bool(_IS_NO.fullmatch(_plain(text)))


def needs_yes(flow: Workflow, wants: Sequence[RequestSlots], text: str, *, is_loose: bool) -> bool:
    """Return whether these requests still need a confirmation. Once asked, only a yes to them counts."""
    if flow.asked != CONFIRM:
        return is_loose
    return is_changed(flow, wants) or not is_yes(text)


def is_changed(flow: Workflow, wants: Sequence[RequestSlots]) -> bool:
    """Return whether the requests differ from those that were last read back."""
    return [request(want) for want in wants] != list(flow.requests)


def _plain(text: str) -> str:
    said = _THUMBS_DOWN.sub(" no ", _THUMBS_UP.sub(" yes ", text.lower())).replace("'", "").replace("’", "")
    return " ".join("".join(c if c.isalnum() else " " for c in said).split())
