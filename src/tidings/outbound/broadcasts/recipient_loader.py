"""Load recipients: validate, deduplicate and write them before any task exists.

A stream is written one chunk per transaction, each conditional on the one before. Two uploads cannot mix, an
interrupted one continues where it stopped (the rows already loaded must be identical), and nothing is sent
before one statement freezes the snapshot.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from datetime import tzinfo
from typing import TYPE_CHECKING, Any, NamedTuple
from zoneinfo import ZoneInfo

import orjson

from ...inputs.timezones import parse_timezone
from ...kernel.clock import Clock
from ...model.broadcast import BroadcastOptions, BroadcastState, load_broadcast_options
from ...model.errors import Conflict, InProgress, Invalid, Misconfigured, TidingsError
from ...model.time import SECOND
from ...store.port import Row, Step, Store, TableRows, WriteConflict
from ..channels.base import Channel
from ..contacts.contact_fields import normalize_address
from ..message_validation import check_size
from .contact_matches import FindContacts, MatchedRecipient, match_contacts
from .recipient_parser import BroadcastRecipient, NumberedRecipient

if TYPE_CHECKING:
    from ..templates.renderer import CompiledTemplate  # Jinja is slow to import

RECIPIENT_COLUMNS = (
    "accepted_at", "scheduled_at", "id", "tenant", "channel", "recipient", "content", "group_id", "part",
    "contact", "variables", "timezone",
)  # fmt: skip
SLICE = 100  # rows validated before yielding to the event loop
MAX_SHOWN = 3  # sample recipients of a dry run
MAX_SAMPLES = 20  # reported duplicates and invalid rows
MAX_CHUNK_SIZE = 8 << 20  # characters of rendered content in one transaction
MAX_PARTS = 1000
LEASE = 30 * SECOND  # how long a loader may be silent before another takes over


class RecipientLoadResult(NamedTuple):
    """Samples of duplicate and refused rows, with their numbers."""

    repeated: list[Row]
    refused: list[Row]


class RecipientDryRun(NamedTuple):
    """The result of a dry run."""

    seen: int
    taken: int
    first: list[BroadcastRecipient]  # samples of accepted recipients


class BroadcastContent(NamedTuple):
    """The content: one for all recipients, or a template rendered for each."""

    content: str  # encoded; '' when each has its own
    compiled: CompiledTemplate | None = None
    variables: Mapping[str, Any] = {}
    timezone: tzinfo = ZoneInfo("UTC")
    largest: int = 256 * 1024
    channel: Channel | None = None  # values are escaped for it

    def of(self, recipient: BroadcastRecipient) -> dict[str, Any]:
        """The content for one recipient."""
        if self.compiled is None:
            found: dict[str, Any] = orjson.loads(self.content)
            return found
        return self.compiled.render(
            {**self.variables, **recipient.variables},
            contact=None if recipient.person is None else recipient.person.card,
            recipient=recipient.address,
            timezone=self.timezone,
            largest=self.largest,
            strict=False,
            channel=self.channel,
        )


class _RecipientChunk:
    """The rows of one transaction."""

    def __init__(self) -> None:
        self.rows: dict[str, tuple[int, list[Any]]] = {}  # by address: line, values
        self.lines = self.repeated = self.refused = self.size = 0


class RecipientLoader:
    """Loads the recipients of one broadcast."""

    def __init__(
        self, store: Store, clock: Clock, row: Row, channel: Channel, wording: BroadcastContent, people: FindContacts
    ) -> None:
        self._store = store
        self._clock = clock
        self._row = row
        self._lot: int = row["group_id"]
        self._options: BroadcastOptions = load_broadcast_options(row["options"])
        self._channel = channel
        self._wording = wording
        self._people = people
        self._common = None if wording.compiled is not None else wording.of(BroadcastRecipient(""))
        self._parts: dict[str | None, int] = {}
        self._zones: dict[str, str] = {}
        self._digest = hashlib.sha256()
        self._result = RecipientLoadResult([], [])
        self._bad: list[tuple[int, TidingsError]] = []

    async def load(self, recipients: AsyncIterator[NumberedRecipient]) -> RecipientLoadResult:
        """Load the rows that are not loaded yet. An invalid row refuses all, except with `skip_bad`."""
        self._parts = {
            part["timezone"]: part["part"] for part in await self._store.read("broadcast_parts", group_id=self._lot)
        }
        chunk, known, seen = _RecipientChunk(), self._row["lines"], 0
        async for number, mark, recipient in self._matched(recipients, known):
            seen += 1
            self._digest.update(mark)
            if not seen % SLICE:
                await asyncio.sleep(0)
            if seen <= known:
                if seen == known and self._digest.hexdigest() != self._row["digest"]:
                    self._differ()
                continue
            self._add(chunk, number, recipient)
            if self._bad and not self._options.skip_bad:
                if len(self._bad) >= MAX_SAMPLES:
                    break
                continue
            if chunk.lines >= self._store.bulk or chunk.size >= MAX_CHUNK_SIZE:
                await self._write(chunk, seen)
                chunk = _RecipientChunk()
        if seen < known:
            self._differ()
        if self._bad and not self._options.skip_bad:
            raise _refusal(self._bad)
        if chunk.lines:
            await self._write(chunk, seen)
        return self._result

    async def dry_run(self, recipients: AsyncIterator[NumberedRecipient]) -> RecipientDryRun:
        """Validate without writing anything."""
        chunk, first = _RecipientChunk(), list[BroadcastRecipient]()
        async for number, _, recipient in self._matched(recipients):
            is_taken = self._add(chunk, number, recipient)
            if is_taken and isinstance(recipient, BroadcastRecipient) and len(first) < MAX_SHOWN:
                first.append(recipient)
            if not chunk.lines % SLICE:
                await asyncio.sleep(0)
        if self._bad and not self._options.skip_bad:
            raise _refusal(self._bad)
        return RecipientDryRun(chunk.lines, len(chunk.rows), first)

    def _matched(self, recipients: AsyncIterator[NumberedRecipient], known: int = 0) -> AsyncIterator[MatchedRecipient]:
        return match_contacts(recipients, self._people, most=self._store.bulk, after=known)

    def _differ(self) -> None:
        raise Invalid(
            f"this upload differs from the one that was started in its first {self._row['lines']:,} rows",
            field="recipients",
            remedy="send the same rows again, or cancel this broadcast and create a new one",
        )

    def _add(self, chunk: _RecipientChunk, number: int, recipient: BroadcastRecipient | TidingsError) -> bool:
        """Add one row to the chunk, or record why not; returns whether it was added."""
        chunk.lines += 1
        try:
            if isinstance(recipient, TidingsError):
                raise recipient
            address = normalize_address(recipient.address)
            if address in chunk.rows:
                self._repeat(chunk, number, address)
                return False
            content = self._content(recipient if recipient.address == address else recipient._replace(address=address))
            timezone = self._timezone(recipient.timezone)
            part = self._part(timezone)
        except Misconfigured:
            raise  # concerns the channel, not this row
        except TidingsError as error:
            chunk.refused += 1
            self._bad = [*self._bad[: MAX_SAMPLES - 1], (number, error)]
            if len(self._result.refused) < MAX_SAMPLES:
                refused = {"row": number, "problem": error.problem, "field": error.field, "remedy": error.remedy}
                self._result.refused.append(refused)
            return False
        variables = orjson.dumps(recipient.variables).decode() if recipient.variables else None
        chunk.size += len(content) + len(variables or "")
        chunk.rows[address] = (number, [content, self._lot, part, recipient.contact, variables, timezone])
        return True

    def _content(self, recipient: BroadcastRecipient) -> str:
        """The rendered content ('' if shared by all); raises if the channel could never send it."""
        if self._common is not None:
            self._channel.check(recipient.address, self._common)
            return ""
        made = self._wording.of(recipient)
        self._channel.check(recipient.address, made)
        encoded = orjson.dumps(made).decode()
        check_size(encoded, self._wording.largest, "variables")
        return encoded

    def _timezone(self, said: str | None) -> str | None:
        """The name of a time zone; raises Invalid."""
        if said is not None and said not in self._zones:
            self._zones[said] = parse_timezone(said).key
        return None if said is None else self._zones[said]

    def _part(self, timezone: str | None) -> int:
        """The part of a recipient by time zone; one part for all if zones do not matter."""
        place = timezone if self._options.by_zone else None
        if place not in self._parts:
            if len(self._parts) >= MAX_PARTS:
                raise Invalid("there are too many time zones", field="timezone", remedy="use fewer of them")
            self._parts[place] = len(self._parts)
        return self._parts[place]

    def _repeat(self, chunk: _RecipientChunk, number: int, address: str) -> None:
        chunk.repeated += 1
        if len(self._result.repeated) < MAX_SAMPLES:
            self._result.repeated.append({"row": number, "address": address})

    async def _write(self, chunk: _RecipientChunk, seen: int) -> None:
        """Write one chunk after the previous one, without recipients that are already loaded."""
        asked = orjson.dumps(list(chunk.rows)).decode()
        for row in await self._store.read("group_known", group_id=self._lot, recipients=asked) if chunk.rows else ():
            number, _ = chunk.rows.pop(row["recipient"])
            self._repeat(chunk, number, row["recipient"])
        now, new_id, row = self._clock.now(), self._clock.new_id, self._row
        at = now if row["scheduled_at"] is None else row["scheduled_at"]
        head = (row["tenant"], row["channel"])
        values = [(now, at, new_id(), *head, address, *rest) for address, (_, rest) in chunk.rows.items()]
        try:
            await self._store.keep(TableRows("messages", RECIPIENT_COLUMNS, values), also=self._steps(chunk, seen, now))
        except WriteConflict:
            raise InProgress(
                "another call is loading this broadcast", remedy="wait until that call has ended"
            ) from None
        self._row = {**row, "lines": seen}

    def _steps(self, chunk: _RecipientChunk, seen: int, now: int) -> list[Step]:
        places = {part: timezone for timezone, part in self._parts.items()}
        counts = Counter(rest[2] for _, rest in chunk.rows.values())
        loaded = {
            "group_id": self._lot, "expected": self._row["lines"], "lines": seen, "added": len(chunk.rows),
            "repeated": chunk.repeated, "refused": chunk.refused, "digest": self._digest.hexdigest(),
            "check_at": now + LEASE,
        }  # fmt: skip
        return [
            Step("broadcast_loaded", loaded, needed=True),
            *(
                Step("broadcast_part_add", {"group_id": self._lot, "part": part, "timezone": places[part], "added": n})
                for part, n in sorted(counts.items())
            ),
        ]


def check_loading(row: Row) -> None:
    """Raise Conflict unless the broadcast still loads its recipients."""
    if row["state"] != BroadcastState.LOADING:
        raise Conflict(
            f"the recipients of this broadcast are complete; it is {row['state']}",
            remedy="create a new broadcast for more recipients",
        )


def _refusal(bad: list[tuple[int, TidingsError]]) -> Invalid:
    shown = "; ".join(f"row {number}: {error.problem}" for number, error in bad[:MAX_SAMPLES])
    more = " or more" if len(bad) >= MAX_SAMPLES else ""
    rows = "1 row is" if len(bad) == 1 else f"{len(bad)} rows{more} are"
    return Invalid(
        f"{rows} invalid, so nothing is sent: {shown}",
        field="recipients",
        remedy="fix the rows and send them again, or set skip_bad to leave them out",
    )
