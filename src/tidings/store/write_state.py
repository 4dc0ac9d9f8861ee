"""Whether the database accepts writes, as seen by the writes of this process. It never probes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic

from ..model.errors import StoreFull, StoreRefused

REFUSAL_HOLD = 30.0  # seconds that a refusal counts: without new writes nobody would notice its end

_FOR_ALL = ("read-only", "login refused")  # reasons that apply to every write


class WriteState:
    """The results of recent writes: both stores record theirs, and health checks read the refusal."""

    def __init__(self) -> None:
        self._reason: str | None = None
        self._until = 0.0

    @property
    def refusal(self) -> str | None:
        """Why writes are refused; None while they are not."""
        return self._reason if monotonic() < self._until else None

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Record the error that ends the block, if it is a refusal."""
        try:
            yield
        except (StoreFull, StoreRefused) as error:
            self._reason, self._until = error.reason, monotonic() + REFUSAL_HOLD
            raise

    def wrote(self) -> None:
        """Record a successful statement. It does not disprove a full disk: it may have fitted into a page."""
        if self._reason in _FOR_ALL:
            self._reason = None

    def stored(self, rows: object) -> None:
        """Record that new rows were stored, if there were any."""
        if rows:
            self._reason = None
