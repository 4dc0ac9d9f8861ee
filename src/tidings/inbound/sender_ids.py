"""Identities of senders: one person keeps one address, also when the platform hides the phone number.

A message with both a user id and an address teaches which belongs to which. A later message with the user id
alone then has the known address, so that the roster, the conversation and replies stay the same.
"""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from ..store.port import Step, Store
from .domain import IncomingMessage
from .source_notices import IDENTITY, NoticeSteps, SourceNotice
from .sources.port import SourceEntry
from .sources.settings import SourceSettings


async def identify(
    store: Store, source: SourceSettings, entries: Sequence[SourceEntry], tell: NoticeSteps
) -> Sequence[SourceEntry]:
    """Return the messages with their senders' known addresses, and the steps that store what each teaches.

    A changed address is reported to admins.
    """
    ids = {id_ for entry in entries for id_ in (entry.incoming.user_id, entry.incoming.formerly) if id_}
    if not ids:
        return entries
    rows = await store.read("sender_id_find", source=source.name, user_ids=orjson.dumps(sorted(ids)).decode())
    known = {row["user_id"]: row["address"] for row in rows}
    found = []
    for entry in entries:
        one, steps = _addressed(entry.incoming, known), []
        if one.user_id and one.user_id != one.sender and known.get(one.user_id) != one.sender:
            known[one.user_id] = one.sender
            place = {"source": source.name, "user_id": one.user_id, "address": one.sender}
            steps.append(Step("sender_id_put", {**place, "at": one.at}))
        if one.formerly not in (None, one.sender):
            moved = {"tenant": source.tenant, "former": one.formerly, "address": one.sender}
            steps += [Step("suppression_follow", moved), *tell(_identity_notice(source, one))]
        found.append(entry._replace(incoming=one, steps=steps))
    return found


def _addressed(one: IncomingMessage, known: dict[str, str]) -> IncomingMessage:
    """The message with the known addresses of its user ids; a new user id keeps the former one's address."""
    former = None if one.formerly is None else known.get(one.formerly, one.formerly)
    if one.user_id != one.sender:
        return one._replace(formerly=former)
    address = known.get(one.sender) or (former if former and former.startswith("+") else one.sender)
    chat = address if one.conversation == one.sender else one.conversation
    return one._replace(sender=address, conversation=chat, formerly=former)


def _identity_notice(source: SourceSettings, one: IncomingMessage) -> SourceNotice:
    """Build the notice about a person with a new address."""
    return SourceNotice(
        IDENTITY,
        source.tenant,
        source.name,
        f"{one.name or one.formerly} changed from {one.formerly} to {one.sender}",
        f"add {one.sender} to the roster and the contacts, and remove {one.formerly}; opt-outs were copied",
        f"{source.name}/{one.formerly}",
    )
