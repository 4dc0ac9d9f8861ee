"""Admission: decides on arrival whether a message is handled, skipped or expired. Pure.

On test systems, testers may send messages on behalf of others with {{@name}} (impersonation).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..model import durations
from ..model.time import micros
from .domain import IncomingKind, IncomingMessage, Speaker
from .opt_out_keywords import OptOutKeyword, keyword_of
from .sources.settings import SourceSettings

_FOR = re.compile(r"\s*\{\{\s*@([^{}]{1,100}?)\s*\}\}\s*")
_SYSTEM, _OURS, _BOT = "sent by the platform", "sent by Tidings itself", "sent by a bot"
_NO_SOURCE = "which no source has"
_OTHER_GROUP = "sent in a group that does not belong to this source"
_REMEDIES = {
    _SYSTEM: "only messages from people are handled",
    _OURS: "only messages from other people are handled",
    _BOT: "only messages from people are handled; ask a person on the roster to send it",
    _OTHER_GROUP: "configure a source for that group under [inbound.sources] and ask the sender to resend it",
}
"""Reasons that a retry cannot change, with the remedy."""

CHANGES = frozenset({IncomingKind.EDIT, IncomingKind.DELETE})


class Impersonation(NamedTuple):
    """A message on behalf of another person: {{@name}} in front of the text."""

    name: str
    rest: str


class SenderLookup(NamedTuple):
    """What was looked up about the sender of a message."""

    speaker: Speaker | None = None
    is_ours: bool = False  # sent by Tidings
    named: tuple[Speaker, ...] = ()  # people with the name of an impersonation
    is_two_way: bool = False  # there is a channel to answer on


class AdmissionResult(NamedTuple):
    """The decision about one message. `ended` None: it is handled."""

    incoming: IncomingMessage
    ended: str | None = None
    reason: str | None = None
    speaks_for: str | None = None
    note: tuple[str, str] | None = None  # an entry for the roster's log
    keyword: OptOutKeyword | None = None


def find_impersonation(text: str) -> Impersonation | None:
    """Return the impersonation at the start of a text, if any."""
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
    """Decide whether a message is handled, or skipped or expired with a reason."""
    reason = _not_to_be_handled(incoming, source, known, since)
    if reason is not None:
        return AdmissionResult(incoming, "skipped", reason)
    if known.is_two_way and (keyword := keyword_of(incoming, source)) is not None:
        return AdmissionResult(incoming, "done", str(keyword), keyword=keyword)
    named = find_impersonation(incoming.text)
    if incoming.kind in CHANGES:
        filed = AdmissionResult(incoming)  # the speaker is that of the original message
    elif named is not None:
        filed = _for_another(incoming, source, known, named, production=production)
    elif known.speaker is None:
        hidden = ", and WhatsApp hides the number; add this id" if incoming.sender.endswith("@lid") else ""
        filed = AdmissionResult(
            incoming, "skipped", f"unknown sender {incoming.sender or 'without an id'}: not on the roster{hidden}"
        )
    else:
        filed = AdmissionResult(incoming)
    if filed.ended is None and incoming.at + micros(source.expire_after) <= now:
        reason = f"it was older than {durations.humanize(source.expire_after)} on arrival"
        return filed._replace(ended="expired", reason=reason)
    return filed


def _not_to_be_handled(
    incoming: IncomingMessage, source: SourceSettings, known: SenderLookup, since: int
) -> str | None:
    if incoming.is_elsewhere:
        return f"sent to {incoming.account}, {_NO_SOURCE}"
    if incoming.kind is IncomingKind.SYSTEM:
        return _SYSTEM
    if known.is_ours:
        return _OURS
    if incoming.own:
        return _BOT
    if source.group is not None and incoming.conversation != source.group:
        return _OTHER_GROUP
    if incoming.at < since:
        return "sent before this source was configured"
    return None


def retry_refusal(row: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return why a skipped or expired message cannot be retried, with the remedy; None if it can."""
    if row["deleted_at"] is not None:
        return "its sender deleted it", "ask the sender to resend it if it is still needed"
    if str(row["reason"]).endswith(_NO_SOURCE):
        remedy = "configure its number or session as a channel with a source, and ask the sender to resend it"
        return row["reason"], remedy
    if row["reason"] in _REMEDIES:
        return row["reason"], _REMEDIES[row["reason"]]
    if row["kind"] in CHANGES:
        return "it only changes another message", "ask the sender to send a new message"
    if find_impersonation(row["text"]) is not None:
        remedy = "ask that person to send it, or resend it without the name in front"
        return "it was sent on behalf of someone else", remedy
    return None


def _for_another(
    incoming: IncomingMessage, source: SourceSettings, known: SenderLookup, named: Impersonation, *, production: bool
) -> AdmissionResult:
    """Allow impersonation only on a test system, if the source allows it, by a tester; log every attempt."""
    refusal = None
    if production:
        refusal = "impersonation is disabled in production"
    elif not source.allow_speaking_for:
        refusal = "this source does not allow impersonation"
    elif incoming.sender not in source.testers:
        refusal = "its sender is not a tester"
    elif not known.named:
        refusal = f"nobody on the roster is named {named.name!r}"
    elif len(known.named) > 1:
        refusal = f"several people on the roster are named {named.name!r}"
    if refusal is not None:
        return AdmissionResult(incoming, "skipped", refusal, note=("refused", f"as {named.name!r}: {refusal}"))
    person = known.named[0]
    spoke = f"as {person.name} ({person.id}): {named.rest[:200]}"
    return AdmissionResult(incoming._replace(text=named.rest), speaks_for=person.id, note=("spoke_for", spoke))
