"""The state that all simulated providers share: one ledger, one set of faults, one set of phones.

Invariant: a request is in the ledger before it is shown or answered. A provider parses its wire format into a
`ProviderArrival`, passes it to `receive`, and answers as the returned `SandboxEntry` says.
"""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import NamedTuple

import orjson

from . import faults
from .access import LOCAL, SandboxAccess
from .callbacks import SandboxCallbacks
from .conversations import SandboxConversations
from .duplicate_counts import DuplicateCounts
from .environment import SandboxEnvironment
from .faults import DELIVERS, FaultContext, FaultKind, FaultRule, FaultRules, SandboxFault
from .group_chats import ChatMessage, GroupChats, parse_chat_message
from .ledger import MAX_TEXT, SandboxEntry, SandboxLedger, content_hash
from .live_feed import LiveFeed
from .sessions import SandboxSessions

RECENT = 1_000
MAX_DATA = 1_000  # characters kept for display
LINKED = {("waha", "default"): "WORKING", ("gateway", "default"): "CONNECTED", ("evolution", "default"): "open"}


class ProviderArrival(NamedTuple):
    """A request as the provider parsed it. `problem` says why it was rejected before any fault."""

    channel: str
    id: str
    to: str
    text: str = ""
    subject: str = ""
    data: object = None
    attempt: int | None = None  # None: not sent, so it is counted
    sender: int | None = None
    problem: str | None = None
    fault: SandboxFault | None = None  # already decided: several entries of one request share a fault


class SandboxSimulator:
    """The shared state of all simulated providers."""

    def __init__(
        self, ledger_path: Path | None, environment: SandboxEnvironment | None = None, access: SandboxAccess = LOCAL
    ) -> None:
        self.environment = environment or SandboxEnvironment()
        self.ledger = SandboxLedger(ledger_path)
        self.tally = DuplicateCounts()
        self.conversations = SandboxConversations()
        self.chats = GroupChats()
        self.sessions = SandboxSessions(ledger_path, self.environment, LINKED)
        self.recent: deque[SandboxEntry] = deque(maxlen=RECENT)
        self.feed = LiveFeed()
        self.callbacks = SandboxCallbacks(self.environment, access)
        self._rules: FaultRules = ()
        self._last_n = 0
        self._last_rule = 0
        self._recall()

    def receive(self, arrival: ProviderArrival) -> SandboxEntry:
        """Decide the fault of a request, record it and show it; the provider then acts as `did` says.

        Raises TemporaryError when it cannot be recorded: then it has not happened.
        """
        now = self.environment.ticks()
        copies, refusals = self.tally.seen(arrival.channel, arrival.id)
        attempt = arrival.attempt or copies + (refusals.times if refusals else 0) + 1
        waited = now - refusals.first if refusals else None
        fault, rule = SandboxFault(FaultKind.INVALID), None
        if arrival.fault is not None and arrival.problem is None:
            fault = arrival.fault
        elif arrival.problem is None:
            call = FaultContext(arrival.channel, arrival.to, attempt, waited)
            fault, rule = faults.decide(call, self._rules, now=now, draw=self.environment.draw)
        entry = SandboxEntry(
            n=self._last_n + 1,
            at=self.environment.wall(),
            channel=arrival.channel,
            id=arrival.id,
            to=arrival.to,
            attempt=attempt,
            did=fault.kind,
            wait=fault.seconds,
            copy=copies + 1 if fault.kind in DELIVERS else 0,
            hash=content_hash(arrival.text, arrival.subject, arrival.data),
            sender=arrival.sender,
            text=arrival.text[:MAX_TEXT],
            subject=arrival.subject[:MAX_TEXT],
            data=orjson.dumps(arrival.data).decode()[:MAX_DATA] if arrival.data else "",
            code=fault.code,
        )
        self.ledger.append(entry)
        self._remember(entry, now)
        self.feed.tell(entry)
        if rule is not None and faults.is_spent(rule):
            self._spend(rule, now)
        return entry

    def say(self, given: object) -> ChatMessage:
        """Add a person's chat message; it is not a request, so it is not in the ledger."""
        line = parse_chat_message(given, self.chats, n=self._last_n + 1, at=self.environment.wall())
        self._last_n = line.n
        self.chats.add(line)
        entry = _entry_of(line)
        self.conversations.add(entry)
        self.feed.tell(entry)
        return line

    def rules(self) -> FaultRules:
        """Return the active faults, newest first."""
        return faults.active(self._rules, self.environment.ticks())

    def break_(self, command: object) -> FaultRule:
        """Set a fault; raises Invalid."""
        now = self.environment.ticks()
        rule = faults.parse_rule(command, id=self._last_rule + 1, now=now)
        self._last_rule = rule.id
        self._change(faults.with_rule(faults.active(self._rules, now), rule))
        return rule

    def heal(self, id: int | None = None) -> int:
        """Clear one fault, or all; return how many were active."""
        before = self.rules()
        after = () if id is None else faults.without_rule(before, id)
        self._change(after)
        return len(before) - len(after)

    def put_session(self, provider: str, name: str, state: str, *, seconds: float | None, then: str) -> None:
        """Set the state of a session, permanently or temporarily, and show it."""
        self.sessions.put(provider, name, state, seconds=seconds, then=then)
        self.feed.tell(None)

    def close(self) -> None:
        """End the live pages and close the ledger."""
        self.feed.close()
        self.callbacks.close()
        self.ledger.close()

    def _spend(self, rule: FaultRule, now: float) -> None:
        """Count a use; pages are notified only of changes that they show."""
        rules = faults.spend(self._rules, rule, now)
        if rule.times is None:
            self._rules = rules
        else:
            self._change(rules)

    def _change(self, rules: FaultRules) -> None:
        self._rules = rules
        self.feed.tell(None)

    def _recall(self) -> None:
        """Rebuild the phones from the end of the ledger after a restart."""
        entries, self.tally.whole = self.ledger.tail()
        now = self.environment.ticks()
        for entry in entries:
            self._remember(entry, now)

    def _remember(self, entry: SandboxEntry, ticks: float) -> None:
        self._last_n = max(self._last_n, entry.n)
        self.tally.add(entry, ticks=ticks)
        self.conversations.add(entry)
        self.recent.append(entry)


def _entry_of(line: ChatMessage) -> SandboxEntry:
    """Return the ledger entry of a person's message, for display in its conversation."""
    return SandboxEntry(
        n=line.n,
        at=line.at,
        channel=line.channel,
        id=f"said-{line.n}",
        to=f"group:{line.chat}" if line.channel == "groupme" else line.chat,
        attempt=1,
        did=FaultKind.SAID,
        wait=0.0,
        copy=0,
        hash=content_hash(line.text),
        text=line.text[:MAX_TEXT],
        subject=line.name or line.sender,
    )
