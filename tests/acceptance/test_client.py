"""The Python client, against a real engine over a real socket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from tidings import ApiError, Client, SyncClient

from .program import serving


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An engine on its own ports."""
    with serving(tmp_path_factory.mktemp("client"), env={"TIDINGS_SANDBOX_PORT": "0"}) as engine:
        yield engine.address("dashboard")


class Cut:
    """A proxy that passes calls on and loses the first answers."""

    def __init__(self, target: str, losses: int) -> None:
        self._host, _, port = target.removeprefix("http://").partition(":")
        self._port, self.losses, self.calls = int(port), losses, 0
        self.url = ""

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, one call."""
        self.calls += 1
        inner_reader, inner = await asyncio.open_connection(self._host, self._port)
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(
            (int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")), 0
        )
        inner.write(head.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n") + await reader.readexactly(length))
        answer = await inner_reader.read()
        if self.losses > 0:
            self.losses -= 1
        else:
            writer.write(answer)
            await writer.drain()
        inner.close()
        writer.close()


@pytest.fixture
async def cut(address: str) -> AsyncIterator[Cut]:
    """That proxy."""
    made = Cut(address, losses=2)
    server = await asyncio.start_server(made.handle, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    yield made
    server.close()


async def test_a_call_whose_answer_was_lost_is_repeated_and_done_once(cut: Cut, address: str) -> None:
    """Retries with idempotency keys: two answers lost, three calls, one message."""
    async with Client(cut.url, first_wait=0.0) as tidings:
        made = await tidings.send("phone", "cut", "hello", in_="2h")
    assert cut.calls == 3
    async with Client(address) as tidings:
        found = [row async for row in tidings.messages(to="cut", limit=1)]
        assert [row["id"] for row in found] == [made["id"]]
        assert (await tidings.message(made["id"]))["text"] == "hello"
        assert "scheduled for" in (await tidings.why(made["id"]))["why"]
        assert (await tidings.cancel(made["id"]))["state"] == "cancelled"


async def test_a_refusal_names_the_field_and_the_remedy_and_is_not_repeated(address: str) -> None:
    """Bad input: the engine's own words, as attributes."""
    async with Client(address) as tidings:
        with pytest.raises(ApiError) as refused:
            await tidings.send("fone", "ada", "hello")
    error = refused.value
    assert (error.status, error.code, error.field) == (422, "invalid", "channel")
    assert error.remedy is not None
    assert error.remedy.split()[0] in str(error).lower().split() or error.remedy[1:10] in str(error)


async def test_an_unreachable_server_is_reported_with_its_address() -> None:
    """Unreachable: one clear sentence after the last try."""
    async with Client("http://127.0.0.1:9", attempts=2, first_wait=0.0, deadline=timedelta(seconds=2)) as tidings:
        with pytest.raises(ApiError, match=r"no response from http://127\.0\.0\.1:9"):
            await tidings.get("/v1/messages")


def test_the_same_without_asyncio(address: str, tmp_path: Path) -> None:
    """The thin wrapper: messages, broadcasts, schedules, contacts."""
    with SyncClient(address) as tidings:
        sent = tidings.send("phone", "eve", "hello", in_="10 min", key="once")
        assert tidings.send("phone", "eve", "hello", in_="10 min", key="once")["id"] == sent["id"]
        assert [row["id"] for row in tidings.messages(to="eve")] == [sent["id"]]
        cast = tidings.broadcast("phone", addresses=["a", "b"], text="hi", trigger="MANUAL")
        assert cast["total"] == 2
        rule = tidings.schedule({"daily": "09:00"}, message={"channel": "phone", "to": "ada", "text": "up"})
        assert rule["state"] == "active"
        assert tidings.contact(name="Ada", addresses={"phone": "ada"})["name"] == "Ada"
        assert tidings.why(sent["id"])["why"]
