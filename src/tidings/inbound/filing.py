"""Filing: what becomes of something said, before anybody handles it (D2, D5). Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..model import durations
from ..model.time import micros
from .sources.settings import SourceSettings
from .words import Incoming, Said, Speaker

_FOR = re.compile(r"\s*\{\{\s*@([^{}]{1,100}?)\s*\}\}\s*")
_REASONS = {
    Said.EDIT: "an edit: the message it belongs to is marked",
    Said.DELETE: "a deletion: the message it belongs to is marked",
    Said.SYSTEM: "the platform itself said it",
}


_OURS, _BOT = "we sent it ourselves", "a bot said it"
_OTHER_GROUP = "it is of another group than this source's"
_FINAL = frozenset({*_REASONS.values(), _OURS, _BOT, _OTHER_GROUP})


class Named(NamedTuple):
    """Somebody else for whom a message speaks: {{@name}} in front of it."""

    name: str
    rest: str


class Known(NamedTuple):
    """What was looked up about one message before it is judged."""

    speaker: Speaker | None = None
    is_ours: bool = False  # one of our own sends
    named: tuple[Speaker, ...] = ()  # who is called as {{@name}} says


class Filed(NamedTuple):
    """What becomes of it. `ended` None: it is handled."""

    incoming: Incoming
    ended: str | None = None
    reason: str | None = None
    speaks_for: str | None = None
    note: tuple[str, str] | None = None  # what and detail, for the roster's log


def spoken_for(text: str) -> Named | None:
    """Whom a text wants to speak for."""
    found = _FOR.match(text)
    return None if found is None else Named(found[1], text[found.end() :])


def file(
    incoming: Incoming,
    source: SourceSettings,
    known: Known,
    *,
    now: int,
    since: int = 0,
    production: bool = True,
) -> Filed:
    """Skipped or expired with a reason, or to be handled."""
    reason = _not_to_be_handled(incoming, source, known, since)
    if reason is not None:
        return Filed(incoming, "skipped", reason)
    named = spoken_for(incoming.text)
    if named is not None:
        filed = _for_another(incoming, source, known, named, production=production)
    elif known.speaker is None:
        filed = Filed(
            incoming, "skipped", f"unknown sender {incoming.sender or 'without an id'}: not on the roster"
        )
    else:
        filed = Filed(incoming)
    if filed.ended is None and incoming.at + micros(source.expires) <= now:
        reason = f"it was older than {durations.spell(source.expires)} when it came in"
        return filed._replace(ended="expired", reason=reason)
    return filed


def _not_to_be_handled(incoming: Incoming, source: SourceSettings, known: Known, since: int) -> str | None:
    if incoming.kind in _REASONS:
        return _REASONS[incoming.kind]
    if known.is_ours:
        return _OURS
    if incoming.own:
        return _BOT
    if source.group is not None and incoming.conversation != source.group:
        return _OTHER_GROUP
    if incoming.at < since:
        return "it was said before this source was known"
    return None


def why_not(row: Mapping[str, Any]) -> str | None:
    """Why a message that was skipped or has expired cannot be handled after all; None if it can."""
    if row["deleted_at"] is not None:
        return "its sender deleted it"
    if row["reason"] in _FINAL:
        return str(row["reason"])
    if spoken_for(row["text"]) is not None:
        return "it wants to speak for somebody else"
    return None


def _for_another(
    incoming: Incoming, source: SourceSettings, known: Known, named: Named, *, production: bool
) -> Filed:
    """Only on a test system, where the source allows it, by a named tester; each try is written down."""
    refusal = None
    if production:
        refusal = "nobody speaks for somebody else in production"
    elif not source.allow_speaking_for:
        refusal = "this source does not let anybody speak for somebody else"
    elif incoming.sender not in source.testers:
        refusal = "its sender is not a tester"
    elif not known.named:
        refusal = f"nobody on the roster is called {named.name!r}"
    elif len(known.named) > 1:
        refusal = f"several people on the roster are called {named.name!r}"
    if refusal is not None:
        return Filed(incoming, "skipped", refusal, note=("refused", f"as {named.name!r}: {refusal}"))
    person = known.named[0]
    spoke = f"as {person.name} ({person.id}): {named.rest[:200]}"
    return Filed(incoming._replace(text=named.rest), speaks_for=person.id, note=("spoke_for", spoke))
