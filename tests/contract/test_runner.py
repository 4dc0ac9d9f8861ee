"""What the runner promises, in virtual time, on both databases."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tidings.kernel.clock import ManualClock
from tidings.kernel.retry import POLICIES
from tidings.kernel.runner import RunnerStep
from tidings.kernel.worker import Worker
from tidings.model.errors import Conflict
from tidings.model.message import Message
from tidings.model.outcome import Defer, Done, Outcome, Reject, Retry, Unknown
from tidings.model.task import Category, OnUnknown
from tidings.model.time import DAY, MINUTE, SECOND
from tidings.observability.events import ClaimLost, TasksExpired
from tidings.store.port import Step, Store

from .kernel_harness import KernelHarness, Script


def flaky(times: int, outcome: Outcome) -> Script:
    """A script that gives `outcome` so many times, then succeeds."""
    left = [times]

    def script(_message: Message) -> Outcome:
        left[0] -= 1
        return outcome if left[0] >= 0 else Done("ok")

    return script


BUSY = Retry(Category.TEMPORARY, "busy")


async def test_a_message_is_sent_once_and_has_its_whole_history(store: Store, clock: ManualClock) -> None:
    """From accepted to sent, each move readable (A7), the first try at once (A3)."""
    world = await KernelHarness(store, clock, lambda _m: Done("r-1")).open()
    id_ = await world.send()

    assert await world.step() == RunnerStep(1, 0, 1)
    assert await world.step(seconds=3600) == RunnerStep(0, 0, 0)

    shown = await world.show(id_)
    assert world.channel.ids == [id_]
    assert (shown["state"], shown["attempts"], shown["receipt"]) == ("sent", 1, "r-1")
    assert [(line["from"], line["to"]) for line in shown["history"]] == [
        ("pending", "processing"),
        ("processing", "sent"),
    ]


async def test_a_failed_try_is_repeated_after_its_delay_and_not_before(store: Store, clock: ManualClock) -> None:
    """Delay 5 min × attempts² ± 15 %, six tries in all, then a dead letter with every reason (A3, B7)."""
    world = await KernelHarness(store, clock, lambda _m: BUSY).open()
    id_ = await world.send(expires_at=clock.now() + 30 * DAY)
    for attempt in range(1, 6):
        assert (await world.step()).claimed == 1
        low, high = 300 * attempt**2 * 0.85, 300 * attempt**2 * 1.15
        assert (await world.step(seconds=low - 1)).claimed == 0
        clock.advance(high - low + 2)
        # the breaker of the only channel may have opened meanwhile: a probe goes out all the same
    assert (await world.step()).claimed == 1

    shown = await world.show(id_)
    assert (shown["state"], shown["attempts"], shown["category"], shown["error"]) == ("failed", 6, "temporary", "busy")
    assert sum(line["to"] == "processing" for line in shown["history"]) == 6


@pytest.mark.parametrize("category", [Category.PERMANENT, Category.VALIDATION])
async def test_what_cannot_work_is_not_tried_again(store: Store, clock: ManualClock, category: Category) -> None:
    """Permanent and validation errors fail for good at once (A4)."""
    world = await KernelHarness(store, clock, lambda _m: Reject(category, "no such person")).open()
    id_ = await world.send()
    await world.step()

    assert (await world.show(id_))["state"] == "failed"
    assert (await world.step(seconds=86_400)).claimed == 0


async def test_throttling_waits_as_long_as_the_platform_says_and_spends_no_try(
    store: Store, clock: ManualClock
) -> None:
    """Retry-After wins; the throttles have a counter of their own (A4)."""
    wait = Retry(Category.THROTTLING, "429", timedelta(seconds=77))
    world = await KernelHarness(store, clock, flaky(3, wait)).open()
    id_ = await world.send()
    for _ in range(3):
        assert (await world.step()).claimed == 1
        assert (await world.step(seconds=76.9)).claimed == 0
        clock.advance(0.1)
    await world.step()

    shown = await world.show(id_)
    assert (shown["state"], shown["attempts"]) == ("sent", 1)


async def test_a_message_has_its_own_number_of_tries(store: Store, clock: ManualClock) -> None:
    """`max_attempts` counts the first one (B6)."""
    world = await KernelHarness(store, clock, lambda _m: BUSY).open()
    id_ = await world.send(max_attempts=2)
    await world.step()
    await world.step(seconds=400)

    assert ((shown := await world.show(id_))["state"], shown["attempts"]) == ("failed", 2)


class TestExpiry:
    """Expiry is judged at claim and when a retry would fall after it (B8, rule 8)."""

    async def test_what_came_due_while_nothing_ran_is_sent_within_its_grace(
        self, store: Store, clock: ManualClock
    ) -> None:
        """Catch-up: 23 hours late is still sent."""
        world = await KernelHarness(store, clock).open()
        await world.send()
        assert (await world.step(seconds=23 * 3600)).claimed == 1

    async def test_older_than_its_grace_it_expires_with_an_event(self, store: Store, clock: ManualClock) -> None:
        """25 hours late is not sent any more, and that is said."""
        world = await KernelHarness(store, clock).open()
        id_ = await world.send()

        assert await world.step(seconds=25 * 3600) == RunnerStep(0, 1, 0)
        assert (await world.show(id_))["state"] == "expired"
        assert [TasksExpired(1)] == world.told(TasksExpired)
        assert world.channel.sent == []

    async def test_a_time_in_the_past_given_on_purpose_is_still_sent(self, store: Store, clock: ManualClock) -> None:
        """The grace counts from the later of due and accepted (B2, B8)."""
        world = await KernelHarness(store, clock).open()
        await world.send(at=clock.now() - 3 * DAY)
        assert (await world.step()).claimed == 1

    async def test_a_retry_that_would_come_too_late_is_not_made(self, store: Store, clock: ManualClock) -> None:
        """It waits for its expiry instead, and `why` says so."""
        world = await KernelHarness(store, clock, lambda _m: BUSY).open()
        id_ = await world.send(expires_at=clock.now() + MINUTE)
        await world.step()
        assert "no further attempt before" in (await world.why(id_)).answer

        assert await world.step(seconds=61) == RunnerStep(0, 1, 0)
        assert (await world.show(id_))["state"] == "expired"
        assert len(world.channel.sent) == 1

    async def test_the_sweeper_expires_behind_a_paused_channel(self, store: Store, clock: ManualClock) -> None:
        """Nothing is claimed there, so somebody looks every five minutes."""
        world = await KernelHarness(store, clock).open()
        id_ = await world.send()
        await store.write([Step("queue_pause", {"name": "main", "reason": "by hand"})])
        clock.advance(hours=25)

        assert await world.worker.expirer.step() == 1
        assert await world.worker.expirer.step() == 0
        assert (await world.show(id_))["state"] == "expired"


class TestBreaker:
    """The circuit breaker parks a channel and costs nobody an attempt (A5)."""

    async def test_five_failures_open_it_and_one_probe_closes_it(self, store: Store, clock: ManualClock) -> None:
        """While it is open nothing starts; the others keep their tries."""
        well = [False]
        world = await KernelHarness(store, clock, lambda _m: Done() if well[0] else BUSY).open()
        ids = [await world.send(f"r{i}") for i in range(8)]
        world.worker = world.node(slots=5)
        await world.worker.node.join()
        assert (await world.step()).claimed == 5
        assert (await world.step(seconds=59)).claimed == 0
        assert "breaker open" in (await world.why(ids[7])).answer

        assert (await world.step(seconds=1)).claimed == 1, "one probe"
        assert (await world.step(seconds=59)).claimed == 0, "it failed: open again"
        well[0] = True
        assert (await world.step(seconds=2)).claimed == 1
        assert (await world.step()).claimed == 1, "closed: the rest follows"
        assert (await world.messages.find(ids[7]))["throttles"] == 0
        assert (await world.show(ids[7]))["attempts"] == 1

    async def test_a_broken_channel_never_delays_another(self, store: Store, clock: ManualClock) -> None:
        """Each has its own breaker."""
        world = await KernelHarness(store, clock, channels=("main", "other")).open()
        world.channels["main"].script = lambda _m: BUSY
        for i in range(8):
            await world.send(f"r{i}")
        await world.step()
        good = await world.send(channel="other")
        await world.step()
        assert (await world.show(good))["state"] == "sent"

    async def test_permanent_errors_do_not_open_it(self, store: Store, clock: ManualClock) -> None:
        """Only temporary and system failures count."""
        world = await KernelHarness(store, clock, lambda _m: Reject(Category.PERMANENT, "gone")).open()
        for i in range(9):
            await world.send(f"r{i}")
        assert (await world.step()).claimed == 9
        await world.send()
        assert (await world.step()).claimed == 1


class TestWholeChannel:
    """News about the account and not about the message (A4, rule 13)."""

    async def test_a_bad_credential_pauses_the_channel_and_leaves_its_work_pending(
        self, store: Store, clock: ManualClock
    ) -> None:
        """No attempt is spent; resuming sends everything."""
        well = [False]
        bad = Reject(Category.PERMANENT, "token revoked", whole_channel=True)
        world = await KernelHarness(store, clock, lambda _m: Done() if well[0] else bad).open()
        ids = [await world.send(f"r{i}") for i in range(3)]
        await world.step()
        assert {"pending"} == {(await world.show(id_))["state"] for id_ in ids}
        assert (await world.step(seconds=3600)).claimed == 0
        assert "paused: token revoked" in (await world.why(ids[0])).answer

        well[0] = True
        await store.write([Step("queue_resume", {"name": "main"})])
        assert (await world.step()).claimed == 3
        assert [(await world.show(id_))["attempts"] for id_ in ids] == [1, 1, 1]

    async def test_a_429_for_the_account_parks_the_channel_for_every_node(
        self, store: Store, clock: ManualClock
    ) -> None:
        """The wait is on the channel's row, and no task is rewritten."""
        slow = Retry(Category.THROTTLING, "429", timedelta(seconds=30), whole_channel=True)
        world = await KernelHarness(store, clock, flaky(1, slow), slots=1).open()
        ids = [await world.send(f"r{i}") for i in range(3)]
        await world.step()
        assert (await world.step(seconds=29.9)).claimed == 0
        assert clock.now() + SECOND // 10 == (await world.why(ids[2])).until
        assert (await world.step(seconds=0.1)).claimed == 1


class TestUnknown:
    """Sent but not answered: a policy per channel, counted and never silent (rules 6 and 7)."""

    async def test_resend_sends_the_same_id_again_and_flags_it(self, store: Store, clock: ManualClock) -> None:
        """The receiver removes duplicates by the id; we say that there may be one."""
        world = await KernelHarness(store, clock, flaky(1, Unknown("time-out"))).open()
        id_ = await world.send()
        await world.step()
        await world.step(seconds=400)

        shown = await world.show(id_)
        assert world.channel.ids == [id_, id_]
        assert (shown["state"], shown["unknown"]) == ("sent", True)
        assert "may have it twice" in (await world.why(id_)).answer

    async def test_hold_sends_nothing_again_and_waits_for_a_person(self, store: Store, clock: ManualClock) -> None:
        """A dead letter of its own class."""
        world = await KernelHarness(store, clock, lambda _m: Unknown("time-out"), on_unknown=OnUnknown.HOLD).open()
        id_ = await world.send()
        await world.step()
        assert (await world.step(seconds=80_000)).claimed == 0

        shown = await world.show(id_)
        assert (shown["state"], shown["unknown"], shown["category"]) == ("failed", True, None)
        assert "may or may not have been sent" in (await world.why(id_)).answer

    async def test_ask_looks_it_up_before_it_sends_again(self, store: Store, clock: ManualClock) -> None:
        """Found: done without a second copy. Not found: sent again."""
        world = await KernelHarness(store, clock, flaky(1, Unknown("time-out")), on_unknown=OnUnknown.ASK).open()
        world.channel.answers = lambda _m: Done("found it")
        id_ = await world.send()
        await world.step()
        await world.step(seconds=6)

        assert world.channel.ids == [id_]
        assert (await world.show(id_))["receipt"] == "found it"


class TestDeadNodes:
    """What a dead node left behind (B5, rules 5, 6 and 9)."""

    async def claimed_by_a_dead_node(
        self, world: KernelHarness, *, started: bool, to: tuple[str, ...] = ("ada",)
    ) -> list[str]:
        """Messages in the hands of a node that then vanishes without a word."""
        ids = [await world.send(person, at=world.clock.now() - 9 + i) for i, person in enumerate(to)]
        dead = world.node()
        await dead.node.join()
        from tidings.store.port import ClaimRequest

        tasks = (await world.store.claim(dead.node.id, ClaimRequest({"main": 10}, 10))).tasks
        if started:
            await world.store.start(dead.node.id, tasks)
        return ids

    async def reap(self, world: KernelHarness, *, seconds: float) -> None:
        """A second of the reaper's life, again and again, with the survivor's own beat."""
        for _ in range(round(seconds)):
            world.clock.advance(1)
            await world.worker.node.beat()
            await world.worker.reaper.step()

    async def test_what_had_not_started_goes_back_free_of_charge(self, store: Store, clock: ManualClock) -> None:
        """Within 15 seconds, and without an attempt spent."""
        world = await KernelHarness(store, clock, on_unknown=OnUnknown.HOLD).open()
        ids = await self.claimed_by_a_dead_node(world, started=False)
        await self.reap(world, seconds=12)
        await world.step()

        shown = await world.show(ids[0])
        assert (shown["state"], shown["attempts"], shown["unknown"]) == ("sent", 1, False)

    async def test_what_had_started_is_held_after_its_deadline(self, store: Store, clock: ManualClock) -> None:
        """Under `hold` nothing is sent twice; it becomes a dead letter in doubt."""
        world = await KernelHarness(store, clock, on_unknown=OnUnknown.HOLD).open()
        ids = await self.claimed_by_a_dead_node(world, started=True)
        await self.reap(world, seconds=13)
        await world.step()

        assert ((shown := await world.show(ids[0]))["state"], shown["unknown"]) == ("failed", True)
        assert world.channel.sent == []

    async def test_under_resend_it_is_sent_again_and_flagged(self, store: Store, clock: ManualClock) -> None:
        """It may have left; the recipient removes duplicates by its id."""
        world = await KernelHarness(store, clock).open()
        ids = await self.claimed_by_a_dead_node(world, started=False)
        await self.reap(world, seconds=12)
        await world.step()
        assert ((shown := await world.show(ids[0]))["state"], shown["unknown"]) == ("sent", True)

    async def test_a_late_result_is_fenced_and_counts_as_evidence(self, store: Store, clock: ManualClock) -> None:
        """The node was only slow: its 'sent' settles the message, which is not sent again (A6, F9)."""
        world = await KernelHarness(store, clock).open()
        slow = world.node()
        await slow.node.join()
        id_ = await world.send()
        other: list[object] = []

        def meanwhile(_message: Message) -> Outcome:
            return Done("late")

        world.channel.script = meanwhile
        claimed, _ = await slow.runner._fetch()
        assert claimed == 1
        await slow.runner._executor.quiet()
        if store.sole_worker:
            pytest.skip("one working process: nobody else can reap while it lives")
        await self.reap(world, seconds=12)
        assert (await world.show(id_))["state"] == "pending"

        await slow.runner._settler.step()

        assert (await world.show(id_))["state"] == "sent"
        assert len(world.told(ClaimLost)) == 1
        assert (await world.step()).claimed == 0
        assert not other

    async def test_a_poison_message_is_tried_alone_and_then_set_aside(self, store: Store, clock: ManualClock) -> None:
        """After four deaths, the last ones with nobody else in hand; its neighbours are delivered (F31)."""
        world = await KernelHarness(store, clock, on_unknown=OnUnknown.HOLD).open()
        ids = await self.claimed_by_a_dead_node(world, started=False, to=("poison", "ada", "bob"))
        await self.reap(world, seconds=12)
        for _ in range(6):
            if (await world.show(ids[0]))["state"] == "failed":
                break
            victim = world.node(slots=1)
            await victim.node.join()
            from tidings.store.port import ClaimRequest

            taken = (await world.store.claim(victim.node.id, ClaimRequest({"main": 1}, 1))).tasks
            assert len(taken) == 1
            await self.reap(world, seconds=12)

        shown = await world.show(ids[0])
        assert (shown["state"], shown["category"]) == ("failed", "system")
        assert "crashed its node" in shown["error"]
        for _ in range(4):
            await world.step(seconds=1)
        assert [(await world.show(id_))["state"] for id_ in ids[1:]] == ["sent", "sent"]

    async def test_a_node_given_up_by_others_learns_it_at_its_next_beat(self, store: Store, clock: ManualClock) -> None:
        """Zero rows back: a new incarnation begins."""
        world = await KernelHarness(store, clock).open()
        other = world.node()
        await other.node.join()
        await self.reap(world, seconds=12)
        assert not await other.node.beat()

    async def test_a_failed_read_starts_the_lease_anew(self, store: Store, clock: ManualClock) -> None:
        """After an outage of the database everyone reports first (rule 9)."""
        if store.sole_worker:
            pytest.skip("liveness is the file lock")
        world = await KernelHarness(store, clock).open()
        other = world.node()
        await other.node.join()
        await self.reap(world, seconds=5)
        world.worker.reaper.forget()
        clock.advance(60)  # the outage: nobody reads, nobody beats
        await self.reap(world, seconds=2)
        assert await other.node.beat()

    async def test_watchers_that_live_shorter_than_a_lease_reap_together(
        self, store: Store, clock: ManualClock
    ) -> None:
        """A fleet that crash-loops takes over its dead: what each process observed adds up."""
        if store.sole_worker:
            pytest.skip("liveness is the file lock")
        world = await KernelHarness(store, clock).open()
        dead = world.node()
        await dead.node.join()
        lives = 0
        while await dead.node.beat() if lives == 0 else (await self.state_of(store, dead)) == "live":
            lives += 1
            assert lives < 10, "nobody reaped it"
            shortlived = world.node()
            await shortlived.node.join()
            for _ in range(3):
                await shortlived.reaper.step()
                clock.advance(1)

        assert 3 <= lives <= 6, "a lease of 10 s, of which each life observes 2 or 3"

    async def test_time_in_which_nobody_watched_hardly_counts(self, store: Store, clock: ManualClock) -> None:
        """After an outage of the database, new processes do not declare the others dead at once."""
        if store.sole_worker:
            pytest.skip("liveness is the file lock")
        world = await KernelHarness(store, clock).open()
        other = world.node()
        await other.node.join()
        for _ in range(3):
            newcomer = world.node()
            await newcomer.node.join()
            await newcomer.reaper.step()
            clock.advance(3600)

        assert await other.node.beat()

    async def state_of(self, store: Store, worker: Worker) -> str:
        rows = await store.read("node_list")
        return next((row["state"] for row in rows if row["id"] == worker.node.id), "gone")


class TestPeople:
    """What a person may do, and what is refused (A6, B7)."""

    async def test_cancel_before_the_claim_means_never_sent(self, store: Store, clock: ManualClock) -> None:
        """F35: before intent, never sent."""
        world = await KernelHarness(store, clock).open()
        id_ = await world.send()
        assert (await world.messages.cancel(id_))["state"] == "cancelled"
        assert (await world.step()).claimed == 0
        last = (await world.show(id_))["history"][-1]
        assert (last["from"], last["to"]) == ("pending", "cancelled")

    async def test_cancel_after_it_was_sent_says_too_late(self, store: Store, clock: ManualClock) -> None:
        """F35: after, 'too late' is said."""
        world = await KernelHarness(store, clock).open()
        id_ = await world.send()
        await world.step()
        with pytest.raises(Conflict, match="the message has already been sent"):
            await world.messages.cancel(id_)

    async def test_a_dead_letter_is_retried_with_all_its_tries(self, store: Store, clock: ManualClock) -> None:
        """And its earlier reasons stay readable."""
        world = await KernelHarness(store, clock, flaky(1, Reject(Category.PERMANENT, "blocked"))).open()
        id_ = await world.send()
        await world.step()
        await world.messages.retry(id_)
        await world.step()

        shown = await world.show(id_)
        assert (shown["state"], shown["attempts"]) == ("sent", 1)
        assert "blocked" in [line["detail"] for line in shown["history"]]

    async def test_a_dead_letter_is_discarded(self, store: Store, clock: ManualClock) -> None:
        """It stays readable as cancelled."""
        world = await KernelHarness(store, clock, lambda _m: Reject(Category.PERMANENT, "blocked")).open()
        id_ = await world.send()
        await world.step()
        assert (await world.messages.discard(id_))["state"] == "cancelled"
        with pytest.raises(Conflict, match="only a failed message can be retried"):
            await world.messages.retry(id_)

    async def test_rescheduling_moves_the_due_time_and_its_expiry(self, store: Store, clock: ManualClock) -> None:
        """Forwards and backwards."""
        world = await KernelHarness(store, clock).open()
        id_ = await world.send(at=clock.now() + 60 * SECOND)
        await world.messages.reschedule(id_, clock.now() + 2 * DAY)
        assert (await world.step(seconds=61)).claimed == 0
        await world.messages.reschedule(id_, clock.now())
        assert (await world.step()).claimed == 1

    async def test_a_cancelled_head_passes_its_turn_on(self, store: Store, clock: ManualClock) -> None:
        """The next of its order key can be claimed at once."""
        world = await KernelHarness(store, clock).open()
        first = await world.send(ordering_key="k", at=clock.now() + 60 * SECOND)
        second = await world.send(ordering_key="k", at=clock.now() + 61 * SECOND)
        assert "waits for an earlier message" in (await world.why(second)).answer
        await world.messages.cancel(first)
        await world.step(seconds=61)
        assert world.channel.ids == [second]


async def test_order_is_kept_over_retries(store: Store, clock: ManualClock) -> None:
    """A retrying head holds its key; other keys and messages without one flow on (rule 14)."""
    world = await KernelHarness(store, clock, policy=POLICIES["quick"]).open()
    failing = [True]
    world.channel.script = lambda m: BUSY if m.text == "a1" and failing[0] else Done()
    for text, key in (("a1", "a"), ("a2", "a"), ("b1", "b"), ("free", None), ("a3", "a")):
        await world.send(text=text, ordering_key=key)
    await world.step()
    await world.step()
    assert sorted(m.text for m in world.channel.sent) == ["a1", "b1", "free"]
    failing[0] = False
    for _ in range(3):
        await world.step(seconds=31)
    assert [m.text for m in world.channel.sent if m.text.startswith("a")][1:] == ["a1", "a2", "a3"]


async def test_an_expired_head_passes_its_turn_on(store: Store, clock: ManualClock) -> None:
    """Nothing waits behind what will never be sent."""
    world = await KernelHarness(store, clock).open()
    await world.send(text="a1", ordering_key="a", expires_at=clock.now() + SECOND)
    await world.send(text="a2", ordering_key="a")
    await world.step(seconds=2)
    await world.step()
    assert [m.text for m in world.channel.sent] == ["a2"]


async def test_a_recipient_is_paced_from_start_to_start(store: Store, clock: ManualClock) -> None:
    """Too early is a deferral and costs no attempt (rule 15)."""
    world = await KernelHarness(store, clock, per_recipient=timedelta(seconds=5)).open()
    ids = [await world.send("ada"), await world.send("ada"), await world.send("bob")]
    await world.step()
    assert len(world.channel.sent) == 2
    await world.step(seconds=5)
    assert len(world.channel.sent) == 2, "the way may take 50 ms longer the first time than the second"
    await world.step(seconds=0.05)
    assert len(world.channel.sent) == 3
    assert [(await world.show(id_))["attempts"] for id_ in ids] == [1, 1, 1]


async def test_a_deferral_costs_no_attempt(store: Store, clock: ManualClock) -> None:
    """It waits until the instant it named."""
    at = clock.now() + 30 * SECOND
    world = await KernelHarness(store, clock, flaky(1, Defer(at, "quiet hours"))).open()
    id_ = await world.send()
    await world.step()
    assert "quiet hours" in (await world.show(id_))["error"]
    await world.step(seconds=30)
    assert ((shown := await world.show(id_))["state"], shown["attempts"]) == ("sent", 1)


async def test_a_handler_that_raises_is_a_system_error(store: Store, clock: ManualClock) -> None:
    """Its message is retried and does not vanish."""
    world = await KernelHarness(store, clock).open()

    def broken(_message: Message) -> Outcome:
        raise RuntimeError("bug in a channel")

    world.channel.script = broken
    id_ = await world.send()
    await world.step()
    shown = await world.show(id_)
    assert (shown["state"], shown["category"]) == ("pending", "system")
    assert "bug in a channel" in shown["error"]


async def test_the_pruner_forgets_what_is_old_and_keeps_dead_letters(store: Store, clock: ManualClock) -> None:
    """Done tasks go after their time with their contents; failed ones wait for a person."""
    world = await KernelHarness(store, clock).open()
    sent = await world.send()
    world.channel.script = lambda _m: Done()
    await world.step()
    world.channel.script = lambda _m: Reject(Category.PERMANENT, "no")
    dead = await world.send()
    await world.step()
    clock.advance(hours=24 * 91)
    young = await world.send()

    assert (await world.worker.pruner.step()).tasks == 1

    page = await world.messages.page()
    assert {dead, young} == {item["id"] for item in page.items}
    assert sent not in {item["id"] for item in page.items}


async def test_tallies_are_packed_and_stay_exact(store: Store, clock: ManualClock) -> None:
    """Deltas are appended with each settled batch and summed up later (rule 17)."""
    world = await KernelHarness(store, clock).open()
    for i in range(7):
        await world.send(f"r{i}")
        await world.step()
    before = await store.read("attempt_tally_sums", since=0)
    clock.advance(minutes=5)
    await world.worker.pruner.step()

    assert before == await store.read("attempt_tally_sums", since=0)
    assert [(row["queue"], row["outcome"], row["n"]) for row in before] == [("main", "done", 7)]


async def test_lists_page_through_everything_once(store: Store, clock: ManualClock) -> None:
    """Newest first, by cursor, with filters."""
    world = await KernelHarness(store, clock, slots=100).open()
    ids = [await world.send("ada" if i % 2 else "bob") for i in range(25)]
    await world.step()
    seen: list[str] = []
    after: str | None = None
    while True:
        page = await world.messages.page(state="sent", limit=10, after=after)
        seen += [item["id"] for item in page.items]
        after = page.next
        if after is None:
            break
    assert seen == ids[::-1]
    assert len((await world.messages.page(to="ada", limit=100)).items) == 12
    assert (await world.messages.page(state="failed")).items == []
