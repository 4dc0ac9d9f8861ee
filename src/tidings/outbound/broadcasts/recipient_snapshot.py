"""Create broadcasts and freeze their audience as a recipient snapshot.

Nothing is sent before one statement freezes the snapshot. A call with an idempotency key can be repeated
after any failure: it continues the same broadcast, and loaded rows are not loaded twice.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

import orjson

from ...kernel.clock import Clock
from ...model.broadcast import (
    BroadcastOptions,
    BroadcastState,
    BroadcastTally,
    BroadcastTrigger,
    load_broadcast_options,
)
from ...model.errors import Conflict, Invalid, NotFound, RateLimited, TooLarge
from ...model.time import iso, micros
from ...store.port import IdempotencyRecord, Row, Step, Store, WriteConflict
from ...wire.ssrf_guard import SsrfRules
from ..channels.base import Channel
from ..contacts.contact_lists import ContactListService
from ..contacts.contact_lists import ListRecipient as Person
from ..idempotency import CreateResult, create_once, find_replay, optional_key
from ..message_validation import MessageLimits
from ..schedules.occurrence_builder import Occurrence, PreparedOccurrence
from ..templates.service import TemplateService
from ..tenant_quotas import QUOTA_TAKE
from .quiet_hours import local_start
from .recipient_loader import BroadcastContent, RecipientLoader, RecipientLoadResult, check_loading
from .recipient_parser import NumberedRecipient, from_audience, from_rows, number_recipients
from .request_parser import parse_broadcast
from .serializer import broadcast_event, serialize_broadcast
from .validation import BroadcastValidator

BROADCAST_KIND = "broadcast"
PAGE = 1000  # recipients that a rollback deletes at once
LONGEST_REASON = 500
MAX_PREVIEWED = 300  # recipients of a list that a preview reads
_NOBODY = BroadcastTally(0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
_NO_TIME = ("trigger", "at", "in", "past", "recipients")  # the schedule sets the time, and nothing can be uploaded


class BroadcastCreator:
    """Creates broadcasts and loads their recipients."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        channels: Mapping[str, Channel],
        templates: TemplateService,
        audience: ContactListService,
        *,
        rules: MessageLimits = MessageLimits(),
        timezone: ZoneInfo = ZoneInfo("UTC"),
        webhooks: SsrfRules = SsrfRules(),
    ) -> None:
        self._store = store
        self._clock = clock
        self._checks = BroadcastValidator(channels, templates, rules, webhooks)
        self._audience = audience
        self._keep_keys = micros(rules.keep_keys)
        self._tenants = rules.tenants
        self._zone = timezone

    # -- creating

    async def create(self, body: object, *, key: str | None = None, tenant: str = "default") -> CreateResult:
        """Create a broadcast. Inline addresses and lists are loaded and frozen at once."""
        now, id_ = self._clock.now(), self._clock.new_id()
        until = now + self._keep_keys
        kept = optional_key("broadcasts", key, body, {"id": id_}, tenant=tenant, until=until)
        done = await find_replay(self._store, kept)
        if done is None:
            ready = await self._checks.ready(parse_broadcast(body, now=now, timezone=self._zone), id_, now, tenant)
            if ready.plan.list is not None:
                await self._audience.find(ready.plan.list, tenant=tenant)
            elif ready.plan.addresses is not None:
                loading = self._loading(ready.row, ready.channel, ready.wording)
                if not (await loading.dry_run(number_recipients(ready.plan.addresses))).taken:
                    raise _nobody()
            answer = serialize_broadcast(ready.row, _NOBODY) if ready.plan.is_upload else {"id": id_}
            if kept is not None:
                kept = kept._replace(answer=orjson.dumps(answer).decode())
            done = await create_once(self._store, _adding(ready.row), answer, kept)
        if "state" in done.answer:
            return done
        return await self._finish(done, body, kept, tenant)

    async def _finish(
        self, done: CreateResult, body: object, kept: IdempotencyRecord | None, tenant: str
    ) -> CreateResult:
        """Load and freeze a created broadcast, also one that an earlier call left unfinished."""
        row = await self.find(done.answer["id"], tenant=tenant)
        if row["state"] == BroadcastState.LOADING:
            plan = parse_broadcast(body, now=self._clock.now(), timezone=self._zone)
            recipients = self._source({"addresses": plan.addresses, "list": plan.list}, row)
            try:
                told = await self._load(row, recipients)
                return CreateResult(await self._freeze(row["group_id"], told, kept))
            except (Invalid, NotFound, TooLarge, RateLimited) as error:
                await withdraw(self._store, row["group_id"], error.problem, kept)
                raise
        earlier = await find_replay(self._store, kept)
        if earlier is not None and "state" in earlier.answer:
            return earlier
        return CreateResult(serialize_broadcast(row, _NOBODY._replace(total=row["total"])), replayed=True)

    async def withdraw(self, id_: str, *, reason: str, key: str | None = None, tenant: str = "default") -> None:
        """Roll back a broadcast that was never frozen, with its recipients and its key."""
        row = await self.find(id_, tenant=tenant)
        kept = optional_key("broadcasts", key, None, None, tenant=tenant, until=0)
        await withdraw(self._store, row["group_id"], reason, kept)

    async def foresee(self, body: object, *, tenant: str = "default") -> Row:
        """Preview a request: the number of recipients and the first messages. Writes nothing.

        All addresses are validated as in `create`; of a list only the first are read.
        """
        now = self._clock.now()
        ready = await self._checks.ready(parse_broadcast(body, now=now, timezone=self._zone), "", now, tenant)
        plan, is_all, members = ready.plan, True, None
        people = number_recipients(plan.addresses or [])
        if plan.list is not None:
            found, is_all = await self._audience.first(plan.list, plan.channel, most=MAX_PREVIEWED, tenant=tenant)
            members = (await self._audience.show(plan.list, tenant=tenant))["members"]
            people = from_audience(_each(found))
        dry_run = await self._loading(ready.row, ready.channel, ready.wording).dry_run(people)
        if not dry_run.taken and is_all:
            raise _nobody()
        return {
            "channel": plan.channel,
            "recipients": dry_run.taken,
            "duplicates": dry_run.seen - dry_run.taken,
            "more": not is_all,
            "members": members,
            "starts": plan.starts.value,
            "starts_at": iso(plan.scheduled_at),
            "samples": [{"address": one.address, **ready.wording.of(one)} for one in dry_run.first],
        }

    # -- loading recipients

    async def upload(
        self,
        id_: str,
        rows: AsyncIterator[tuple[int, object]],
        *,
        freezes: bool = True,
        expected: int | None = None,
        tenant: str = "default",
    ) -> Row:
        """Load a stream of recipients and freeze it. Repeat an interrupted upload from its start."""
        row = await self.find(id_, tenant=tenant)
        check_loading(row)
        if load_broadcast_options(row["options"]).source is not None:
            raise Conflict("this broadcast loads its recipients automatically", remedy="wait until it has them")
        told = await self._load(row, from_rows(rows))
        if expected is not None and (seen := (await self.find(id_, tenant=tenant))["lines"]) != expected:
            raise Invalid(
                f"{seen:,} rows were received but {expected:,} expected, so nothing is sent",
                field="expect",
                remedy="upload all rows again, or correct the expected number",
            )
        if freezes:
            return await self._freeze(row["group_id"], told)
        row = await self.find(id_, tenant=tenant)
        return {**serialize_broadcast(row, _NOBODY._replace(total=row["total"])), **_samples(told)}

    async def freeze(self, id_: str, *, tenant: str = "default") -> Row:
        """Freeze the snapshot, so that the broadcast may start."""
        row = await self.find(id_, tenant=tenant)
        check_loading(row)
        return await self._freeze(row["group_id"], RecipientLoadResult([], []))

    async def load_from_source(self, row: Row) -> None:
        """Load and freeze the recipients of a scheduled broadcast; called by the feeder."""
        source = load_broadcast_options(row["options"]).source
        assert source is not None
        try:
            await self._freeze(row["group_id"], await self._load(row, self._source(source, row)))
        except (Invalid, NotFound, TooLarge, RateLimited, Conflict) as error:
            reason = f"its recipients could not be loaded: {error.problem}"[:LONGEST_REASON]
            end = {
                "group_id": row["group_id"],
                "state": BroadcastState.FAILED.value,
                "reason": reason,
                "expected": BroadcastState.LOADING.value,
                "taken": 0,
                "retry_to": -1,
                "parks": False,
                "check_at": None,
            }
            step = Step("broadcast_end", end)
            await self._store.write([step, broadcast_event(row, _NOBODY, BroadcastState.FAILED, reason)])

    def _source(self, source: Mapping[str, Any], row: Row) -> AsyncIterator[NumberedRecipient]:
        if source.get("addresses") is not None:
            return number_recipients(source["addresses"])
        people = self._audience.recipients(source["list"], row["channel"], tenant=row["tenant"])
        return from_audience(people)

    async def _load(self, row: Row, recipients: AsyncIterator[NumberedRecipient]) -> RecipientLoadResult:
        channel, wording = self._checks.channel(row["channel"]), await self._checks.wording(row)
        return await self._loading(row, channel, wording).load(recipients)

    def _loading(self, row: Row, channel: Channel, wording: BroadcastContent) -> RecipientLoader:
        people = partial(self._audience.at, channel=row["channel"], tenant=row["tenant"])
        return RecipientLoader(self._store, self._clock, row, channel, wording, people)

    async def _freeze(self, group_id: int, told: RecipientLoadResult, kept: IdempotencyRecord | None = None) -> Row:
        """Freeze in one conditional transaction; raises Conflict if another call was first."""
        found = await self._store.read("broadcast_row", group_id=group_id)
        if not found:
            raise Conflict("another call has rolled it back meanwhile", remedy="create it again")
        row = found[0]
        if not row["total"]:
            raise _nobody()
        now = self._clock.now()
        starts = await self._starts(row)
        is_now = row["starts"] == BroadcastTrigger.IMMEDIATE
        frozen: Row = {
            **row,
            "state": BroadcastState.RUNNING.value if is_now else BroadcastState.READY.value,
            "frozen_at": now,
            "started_at": now if is_now else None,
            "check_at": now if is_now else min(starts.values(), default=None),
        }
        tally = _NOBODY._replace(total=row["total"], waiting=row["total"])
        answer = {**serialize_broadcast(frozen, tally), **_samples(told)}
        steps = [
            Step("broadcast_freeze", {**frozen, "now": now}, needed=True),
            *self._tenants.take(row["tenant"], row["total"], now),
            *(
                Step("broadcast_part_start", {"group_id": group_id, "part": part, "starts_at": at})
                for part, at in starts.items()
            ),
        ]
        if is_now:
            steps.append(broadcast_event(row, tally, BroadcastState.RUNNING, None))
        if kept is not None:
            kept_answer = {"scope": kept.scope, "key": kept.key, "answer": orjson.dumps(answer).decode()}
            steps.append(Step("idempotency_key_answer", kept_answer))
        try:
            await self._store.write(steps)
        except WriteConflict as lost:
            if lost.args == (QUOTA_TAKE,):
                raise self._tenants.used_up(row["tenant"], now) from None
            raise Conflict("another call has frozen or changed it", remedy="read it again") from None
        await self._store.hint()
        return answer

    async def _starts(self, row: Row) -> dict[int, int]:
        """The start of each part, in its own time zone if requested; empty without a scheduled time."""
        if row["scheduled_at"] is None:
            return {}
        options = load_broadcast_options(row["options"])
        parts = await self._store.read("broadcast_parts", group_id=row["group_id"])
        return {part["part"]: local_start(row["scheduled_at"], part["timezone"], options) for part in parts}

    async def find(self, id_: str, *, tenant: str = "default") -> Row:
        """One broadcast as stored; raises NotFound."""
        rows = await self._store.read("broadcast_find", id=id_, tenant=tenant)
        if not rows:
            raise NotFound(f"there is no broadcast {id_[:60]}", remedy="see: tidings broadcasts list")
        return rows[0]

    # -- for schedules

    async def prepare(self, body: Mapping[str, Any], occurrence: Occurrence) -> PreparedOccurrence:
        """Prepare the broadcast of an occurrence; the feeder loads its recipients."""
        for name in _NO_TIME:
            if body.get(name) is not None:
                raise Invalid(
                    f"{name} is not allowed in a schedule",
                    field=name,
                    remedy="leave it out: the schedule sets the start time",
                )
        plan = parse_broadcast(dict(body), now=occurrence.now, timezone=self._zone)
        source = {name: body[name] for name in ("addresses", "list") if body.get(name) is not None}
        if plan.list is not None:
            await self._audience.find(plan.list, tenant=occurrence.tenant)
        options: BroadcastOptions = replace(plan.options, source=source)
        id_ = self._clock.new_id()
        ready = await self._checks.ready(plan._replace(options=options), id_, occurrence.now, occurrence.tenant)
        row = {
            **ready.row,
            "schedule": occurrence.schedule,
            "occurrence": None if occurrence.schedule is None else occurrence.at,
            "scheduled_at": occurrence.at,
            "starts": BroadcastTrigger.SCHEDULED.value,
            "check_at": occurrence.now,
        }
        return PreparedOccurrence(id_, steps=_adding(row))


def _adding(row: Row) -> list[Step]:
    return [Step("group_add", {"kind": BROADCAST_KIND}), Step("broadcast_add", row)]


def _samples(told: RecipientLoadResult) -> Row:
    """Samples of the rows that were left out."""
    return {"samples": {"duplicates": told.repeated, "refused": told.refused}}


async def _each(people: Sequence[Person]) -> AsyncIterator[Person]:
    for person in people:
        yield person


def _nobody() -> Invalid:
    return Invalid("there are no recipients", field="recipients", remedy="give at least one valid address")


async def withdraw(store: Store, group_id: int, reason: str, kept: IdempotencyRecord | None) -> None:
    """Delete the broadcast, its recipients and its key, unless it has been frozen or changed meanwhile.

    One with recipients is cancelled first, so that no other call continues it; a crash then leaves a cancelled
    broadcast with its reason. The idempotency key is released at once.
    """
    found = await store.read("broadcast_row", group_id=group_id)
    if not found or found[0]["state"] != BroadcastState.LOADING:
        return
    state, lines = BroadcastState.LOADING, found[0]["lines"]
    frees = [] if kept is None else [Step("idempotency_key_drop", {"scope": kept.scope, "key": kept.key}, only_if=0)]
    if lines:
        cancel = {"group_id": group_id, "expected": state.value, "reason": reason[:LONGEST_REASON]}
        if not (await store.write([Step("broadcast_cancel", cancel), *frees]))[0]:
            return
        state, frees = BroadcastState.CANCELLED, []
        page = [Step("group_withdraw", {"group_id": group_id, "limit": PAGE})]
        while len((await store.write(page))[0]) == PAGE:
            pass
    remove = {"group_id": group_id, "expected": state.value, "lines": lines}
    await store.write(
        [
            Step("broadcast_remove", remove),
            Step("broadcast_parts_remove", {"group_id": group_id}, only_if=0),
            Step("group_remove", {"group_id": group_id}, only_if=0),
            *frees,
        ]
    )
