"""Deadlines after a pause: an answer that is already here is used."""

from __future__ import annotations

import asyncio
import time

import pytest

from tidings.wire.deadlines import LATE, deadline


async def _paused_while_an_answer_comes(*, has_left: bool) -> str:
    """Hold up the whole loop beyond the deadline; the answer is read right after the late timer."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[str] = loop.create_future()

    def pause() -> None:
        wakes = time.monotonic() + 3 * LATE
        while time.monotonic() < wakes:
            pass
        loop.call_later(LATE / 2, arrive)

    def arrive() -> None:
        if not answer.done():
            answer.set_result("200")

    loop.call_soon(pause)
    async with deadline(LATE / 2, has_left=lambda: has_left):
        return await answer


async def test_a_deadline_that_expires_during_a_pause_leaves_time_to_read_the_answer() -> None:
    """The late timer does not overrule what has arrived."""
    assert await _paused_while_an_answer_comes(has_left=True) == "200"


async def test_a_request_that_had_not_left_before_a_pause_is_given_up_at_once() -> None:
    """It must not go out after its deadline."""
    with pytest.raises(TimeoutError):
        await _paused_while_an_answer_comes(has_left=False)


async def test_a_deadline_without_a_pause_raises_a_timeout_error() -> None:
    """Nothing came, and nothing was held up."""
    with pytest.raises(TimeoutError):
        async with deadline(0.001):
            await asyncio.get_running_loop().create_future()
