"""Filing: what becomes of something said, before anybody handles it. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..model import durations
from ..model.time import micros
from .domain import IncomingKind, IncomingMessage, Speaker
from .sources.settings import SourceSettings

_FOR = re.compile(r"\s*\{\{\s*@([^{}]{1,100}?)\s*\}\}\s*")
_SYSTEM, _OURS, _BOT = "the platform itself said it", "we sent it ourselves", "a bot said it"
_OTHER_GROUP = "it is of another group than this source's"
_REMEDIES = {
    _SYSTEM: "only what people say is handled",
    _OURS: "only what others say is handled",
    _BOT: "only what people say is handled; let a person on the roster say it",
    _OTHER_GROUP: "give its group a source of its own under [inbound.sources], and let it be said again",
}
"""Reasons that stand for good, and what can be done instead."""

CHANGES = frozenset({IncomingKind.EDIT, IncomingKind.DELETE})


class Impersonation(NamedTuple):
    """Somebody else for whom a message speaks: {{@name}} in front of it."""

    name: str
    rest: str


class SenderLookup(NamedTuple):
    """What was looked up about one message before it is judged."""

    speaker: Speaker | None = None
    is_ours: bool = False  # one of our own sends
    named: tuple[Speaker, ...] = ()  # who is called as {{@name}} says


class AdmissionResult(NamedTuple):
    """What becomes of it. `ended` None: it is handled."""

    incoming: IncomingMessage
    ended: str | None = None
    reason: str | None = None
    speaks_for: str | None = None
    note: tuple[str, str] | None = None  # what and detail, for the roster's log


def find_impersonation(text: str) -> Impersonation | None:
    """Whom a text wants to speak for."""
    found = _FOR.match(text)
    return None if found is None else Impersonation(found[1], text[found.end() :])


def admit(
    incoming: IncomingMessage,
    source: SourceSettings,
    known: SenderLookup,
    *,
    now: int,
    since: int = 0,
    production: bool = True,
) -> AdmissionResult:
    """Skipped or expired with a reason, or to be handled."""
    reason = _not_to_be_handled(incoming, source, known, since)
    if reason is not None:
        return AdmissionResult(incoming, "skipped", reason)
    named = find_impersonation(incoming.text)
    if incoming.kind in CHANGES:
        filed = AdmissionResult(incoming)  # whoever it is of: the message that it changes says who spoke
    elif named is not None:
        filed = _for_another(incoming, source, known, named, production=production)
    elif known.speaker is None:
        filed = AdmissionResult(
            incoming, "skipped", f"unknown sender {incoming.sender or 'without an id'}: not on the roster"
        )
    else:
        filed = AdmissionResult(incoming)
    if filed.ended is None and incoming.at + micros(source.expire_after) <= now:
        reason = f"it was older than {durations.humanize(source.expire_after)} when it came in"
        return filed._replace(ended="expired", reason=reason)
    return filed


def _not_to_be_handled(
    incoming: IncomingMessage, source: SourceSettings, known: SenderLookup, since: int
) -> str | None:
    if incoming.kind is IncomingKind.SYSTEM:
        return _SYSTEM
    if known.is_ours:
        return _OURS
    if incoming.own:
        return _BOT
    if source.group is not None and incoming.conversation != source.group:
        return _OTHER_GROUP
    if incoming.at < since:
        return "it was said before this source was known"
    return None


class RetryRefusal(NamedTuple):
    """Why a message cannot be handled after all, and what can be done instead."""

    problem: str
    remedy: str


def retry_refusal(row: Mapping[str, Any]) -> RetryRefusal | None:
    """Whether something forbids that a message which was skipped or has expired is handled after all."""
    if row["deleted_at"] is not None:
        return RetryRefusal("its sender deleted it", "ask the sender to say it again, if it is still wanted")
    if row["reason"] in _REMEDIES:
        return RetryRefusal(row["reason"], _REMEDIES[row["reason"]])
    if row["kind"] in CHANGES:
        return RetryRefusal(
            "it only changes another message", "ask the sender to say in a new one what is meant"
        )
    if find_impersonation(row["text"]) is not None:
        remedy = "let them say it themselves, or say it again without the name in front"
        return RetryRefusal("it wants to speak for somebody else", remedy)
    return None


def _for_another(
    incoming: IncomingMessage,
    source: SourceSettings,
    known: SenderLookup,
    named: Impersonation,
    *,
    production: bool,
) -> AdmissionResult:
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
        return AdmissionResult(
            incoming, "skipped", refusal, note=("refused", f"as {named.name!r}: {refusal}")
        )
    person = known.named[0]
    spoke = f"as {person.name} ({person.id}): {named.rest[:200]}"
    return AdmissionResult(
        incoming._replace(text=named.rest), speaks_for=person.id, note=("spoke_for", spoke)
    )
