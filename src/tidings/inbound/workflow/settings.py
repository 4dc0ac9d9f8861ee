"""Settings of workflows: the part of [inbound] that says what a squad may ask for and whom to call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from .rules import House


@dataclass(frozen=True, slots=True)
class WorkflowSettings:
    """What holds for all conversations."""

    enabled: bool = False
    zone: str = "UTC"
    squads: tuple[str, ...] = ("34", "35", "42", "43", "54")
    commanders: tuple[str, ...] = ("officer", "admin")  # roles that may act for other squads
    start_at: int = 50  # a request of this confidence starts a workflow (D9)
    review_at: int = 30  # from here on it is listed for review
    most_questions: int = 2
    idle: timedelta = timedelta(hours=24)
    case_within: timedelta = timedelta(hours=1)
    admins: tuple[str, ...] = ()  # channel:address
    replies: Mapping[str, str] = field(default_factory=dict)  # channel by source; none: of the same name
    calendar: str = "shifts"
    runner: str = "auto"

    @property
    def house(self) -> House:
        """The rules of the house."""
        return House(self.squads, self.zone, self.commanders, self.most_questions)
