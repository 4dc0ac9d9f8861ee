"""Channel tests: every answer of a provider has its verdict and its remedy."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from tidings.model.errors import NotFound
from tidings.model.outcome import Defer, Done, Outcome, Reject, Retry, Skip, Unknown
from tidings.model.task import Category
from tidings.outbound import channel_probes
from tidings.outbound.channel_probes import probe_channel, probe_result
from tidings.outbound.channels.noop import NoopChannel, NoopSettings


@pytest.mark.parametrize(
    ("outcome", "works", "said", "remedy"),
    [
        (Done("@bot"), True, "@bot", ""),
        (Done(), True, "the provider answered", ""),
        (Skip("cannot"), None, "cannot", "tidings send --channel mine"),
        (Reject(Category.PERMANENT, "401", whole_channel=True), False, "401", "credentials"),
        (Reject(Category.VALIDATION, "400"), False, "400", "[channels.mine]"),
        (Retry(Category.TEMPORARY, "refused"), False, "refused", "network"),
        (Unknown("lost"), False, "lost", "again"),
        (Defer(5, "later"), False, "later", "again"),
    ],
)
def test_every_outcome_has_a_verdict(outcome: Outcome, works: bool | None, said: str, remedy: str) -> None:
    """What works, what does not, and what cannot be told without sending."""
    trial = probe_result("mine", "noop", outcome)

    assert (trial.works, trial.said) == (works, said)
    assert remedy in trial.remedy


async def test_a_name_that_is_not_configured_is_told_so() -> None:
    """With the names that are."""
    with pytest.raises(NotFound, match="configured channels: mine"):
        await probe_channel({"mine": NoopChannel()}, "other")


async def test_a_probe_that_never_ends_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the channel's deadline, whatever the kind does."""

    class Hanging(NoopChannel):
        async def probe(self) -> Outcome:
            await asyncio.Event().wait()
            return Done()

    monkeypatch.setattr(channel_probes, "PROBE_GRACE", timedelta())
    channel = Hanging(NoopSettings(deadline=timedelta(milliseconds=10)))
    trial = await probe_channel({"mine": channel}, "mine")

    assert (trial.works, trial.category) == (False, Category.TEMPORARY)
    assert "no answer within" in trial.said
