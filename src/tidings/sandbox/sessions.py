"""States of simulated WhatsApp sessions, permanent or temporary, which survive a restart.

They are stored in a small file beside the ledger, replaced atomically; without a ledger they are lost with
the process. A temporary state ends by the clock, not by a timer.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import orjson

from tidings.model.errors import Invalid, StoreUnavailable
from tidings.model.time import SECOND

from .environment import SandboxEnvironment

LONGEST = 86_400.0
MAX_SESSIONS = 100
ROTATES = 20  # seconds after which the QR code changes


class SandboxSession(NamedTuple):
    """A state; if temporary, until when; and the state after it, or after a restart."""

    state: str
    until: int | None = None
    then: str = ""


class SandboxSessions:
    """All sessions by provider and name."""

    def __init__(
        self, ledger: Path | None, environment: SandboxEnvironment, first: Mapping[tuple[str, str], str]
    ) -> None:
        self._path = None if ledger is None else ledger.with_name(ledger.name + ".sessions")
        self._environment = environment
        self._all: dict[tuple[str, str], SandboxSession] = {
            key: SandboxSession(state, then=state) for key, state in first.items()
        }
        self._recall()

    def state(self, provider: str, name: str) -> str | None:
        """Return the current state; None for an unknown session."""
        found = self._all.get((provider, name))
        if found is None:
            return None
        is_over = found.until is not None and self._environment.wall() >= found.until
        return found.then if is_over else found.state

    def next_state(self, provider: str, name: str) -> str:
        """Return the state after the current one: after a temporary state, or after a restart."""
        found = self._all.get((provider, name))
        return found.then if found is not None else ""

    def names(self, provider: str) -> list[str]:
        """Return the sessions of one provider."""
        return [name for of, name in self._all if of == provider]

    def put(self, provider: str, name: str, state: str, *, seconds: float | None = None, then: str = "") -> None:
        """Set a state, permanently or for some seconds."""
        if (provider, name) not in self._all and len(self._all) >= MAX_SESSIONS:
            raise Invalid("Too many sessions", remedy="Delete one first", field="session")
        until = None if seconds is None else self._environment.wall() + round(seconds * SECOND)
        self._keep({**self._all, (provider, name): SandboxSession(state, until, then)})

    def drop(self, provider: str, name: str) -> None:
        """Remove a session."""
        self._keep({key: it for key, it in self._all.items() if key != (provider, name)})

    def code(self, name: str) -> str:
        """Return the QR code; it changes every twenty seconds."""
        return f"2@sandbox-{name},{self._environment.wall() // (ROTATES * SECOND):x}"

    def _keep(self, sessions: dict[tuple[str, str], SandboxSession]) -> None:
        if self._path is not None:
            lines = [[*key, *session] for key, session in sessions.items()]
            beside = self._path.with_name(self._path.name + ".new")
            try:
                beside.write_bytes(orjson.dumps(lines))
                os.replace(beside, self._path)
            except OSError as error:
                problem = f"The sandbox cannot write its sessions {self._path}: {error.strerror}"
                raise StoreUnavailable(problem, remedy="Check the disk; nothing was changed") from error
        self._all = sessions

    def _recall(self) -> None:
        if self._path is None or not self._path.exists():
            return
        with suppress(OSError, ValueError, TypeError):  # a torn or foreign file must not prevent a start
            lines = orjson.loads(self._path.read_bytes())
            self._all = {(str(of), str(name)): SandboxSession(*rest) for of, name, *rest in lines}


def asked_state(body: object, field: str, states: Collection[str]) -> tuple[str, float | None]:
    """Return the state that a command sets, and for how long: None means until the next command."""
    given = body if isinstance(body, dict) else {}
    state, seconds = given.get(field), given.get("for_seconds")
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if seconds is not None and not (is_number and 0 < seconds <= LONGEST):
        raise Invalid(f"for_seconds must be greater than 0 and at most {LONGEST:g}", field="for_seconds")
    if state not in states:
        raise Invalid(f"Unknown state {state!r}", remedy=f"Use {', '.join(states)}", field=field)
    return str(state), None if seconds is None else float(seconds)
