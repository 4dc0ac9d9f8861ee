"""Files between systems: streamed, within limits, through the SSRF guard, never uploaded twice in silence (C1)."""

from __future__ import annotations

import asyncio
import hashlib
import io
import tracemalloc
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from tempfile import TemporaryFile
from typing import Any

import httpx
import pytest
from pyreqwest.http import Url

from tidings.migration.connectors import api_client, registry
from tidings.migration.connectors.affinity import AffinitySource
from tidings.migration.connectors.api_client import ApiClient
from tidings.migration.connectors.attio import AttioTarget
from tidings.migration.connectors.attio_items import MAX_FILE
from tidings.migration.connectors.port import ConnectorError, ErrorKind, SupportsDownload, SupportsUpload
from tidings.wire.ssrf_guard import SsrfRules

from .channels.conftest import Sandbox, serving

KEY = "key-of-the-test"
SIZE = 24 << 20

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Any]


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    """Both CRMs, without limits."""
    async with serving() as ready:
        async with httpx.AsyncClient(base_url=ready.url) as client:
            content = {"persons": 2, "organizations": 1, "opportunities": 1, "files": 5}
            (await client.post("/sandbox/affinity", json=content)).raise_for_status()
            limits = dict.fromkeys(("reads_per_second", "writes_per_second", "uploads_per_second"), 10_000)
            (await client.post("/sandbox/attio", json=limits)).raise_for_status()
        yield ready


@pytest.fixture
async def source(sandbox: Sandbox) -> AsyncIterator[AffinitySource]:
    """The source."""
    made = registry.source("affinity", {"url": f"{sandbox.url}/affinity", "key": KEY})
    assert isinstance(made, AffinitySource) and isinstance(made, SupportsDownload)
    yield made
    await made.close()


@pytest.fixture
async def target(sandbox: Sandbox) -> AsyncIterator[AttioTarget]:
    """The target."""
    made = registry.target("attio", {"url": f"{sandbox.url}/attio", "key": KEY})
    assert isinstance(made, AttioTarget) and isinstance(made, SupportsUpload)
    yield made
    await made.close()


@asynccontextmanager
async def listening(handler: Handler) -> AsyncIterator[str]:
    """A server that speaks HTTP by hand."""
    server = await asyncio.start_server(handler, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


def client(url: str, rules: SsrfRules = SsrfRules(allow_private=True, allow_http=True)) -> ApiClient:
    headers = {"authorization": f"Bearer {KEY}"}
    return ApiClient(url, headers=headers, deadline=timedelta(seconds=30), rules=rules, hide=[KEY], now=lambda: 0)


def saying(head: str, body: bytes = b"", times: int = 1) -> Handler:
    """Answers every request with this, then hangs up."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 {head}\r\nConnection: close\r\n\r\n".encode())
        for _ in range(times):
            writer.write(body)
            await writer.drain()
        writer.close()

    return handle


async def refused(call: Any) -> ConnectorError:
    with pytest.raises(ConnectorError) as caught:
        await call
    return caught.value


async def test_files_are_listed_by_their_parent_and_downloaded_without_credentials_for_the_storage(
    sandbox: Sandbox, source: AffinitySource
) -> None:
    """The redirect is followed; the key goes to Affinity only."""
    whole = (await source.page("files", None)).records
    parts = {name: await source.page(f"files/{name}", None) for name in ("persons", "organizations", "opportunities")}
    held = io.BytesIO()
    await source.download("files", whole[1].id, held, 1_000)

    assert {name: [one.id for one in page.records] for name, page in parts.items()} == {
        "persons": ["800001", "800004"], "organizations": ["800002", "800005"], "opportunities": ["800003"],
    }  # fmt: skip
    assert held.getvalue().startswith(b"%PDF of file 800002\n") and len(held.getvalue()) == whole[1].fields["size"]
    assert source.calls_to_read("files/persons", 2) == 3
    asked = {one.path.partition("?")[0]: one.headers for one in sandbox.requests}
    assert asked["/affinity/entity-files/download/800002"]["authorization"] == f"Bearer {KEY}"
    assert KEY not in str(asked["/affinity-storage/800002"])


async def test_an_upload_arrives_whole_and_is_found_by_parent_name_and_size(
    sandbox: Sandbox, target: AttioTarget
) -> None:
    """Quotes and slashes of a name do not end the form; a file of another size is another file."""
    person = await target.write("people", "ada@acme.example", {}, None)
    named = {"name": 'Ünï "a/b".pdf', "size": 70_000, "parent_object": "people", "parent_record_id": person.id}
    fields, content = await target.canonical("files", named), b"\r\n--x" * 14_000
    with TemporaryFile() as file:
        file.write(content)
        written = await target.upload("files", fields, file)
    (found,) = await target.find("files", "1", fields)
    other = await target.find("files", "1", {**fields, "size": 1})
    everything = [one async for _, one in target.read_all("files")]
    async with httpx.AsyncClient(base_url=sandbox.url) as http:
        shown = (await http.get("/sandbox/attio")).json()
    await target.erase("files", written.id)

    assert fields["name"] == "Ünï _a_b_.pdf" and found == everything[0] and found.fields == fields
    assert found.id == written.id and other == [] and len(everything) == 1
    assert shown["digests"] == {written.id: hashlib.sha256(content).hexdigest()}
    assert shown["content"]["files"][0]["content_type"] == "application/pdf"
    assert [one async for one in target.read_all("files")] == []


async def test_a_lost_answer_of_an_upload_is_unknown_and_the_file_is_found(
    sandbox: Sandbox, target: AttioTarget
) -> None:
    """It is not sent again: the lookup finds it."""
    person = await target.write("people", "ada@acme.example", {}, None)
    fields = {"name": "a.pdf", "size": 1, "parent_object": "people", "parent_record_id": person.id}
    sandbox.break_("lost", channel="attio", recipient="files", times=1)
    error = await refused(target.upload("files", fields, io.BytesIO(b"a")))

    assert error.sent and len(await target.find("files", "1", fields)) == 1


async def test_a_file_over_the_limit_is_rejected_with_its_size_before_and_during_the_download(
    source: AffinitySource, target: AttioTarget
) -> None:
    """By what its record says, and by what really comes."""
    large = {"name": "a", "size": MAX_FILE + 1, "parent_object": "people", "parent_record_id": "1"}
    before = await refused(target.canonical("files", large))
    during = await refused(source.download("files", "800001", io.BytesIO(), 999))

    assert (before.failure, before.field) == (during.failure, during.field) == (ErrorKind.VALIDATION, "size")
    assert before.reason == "the file has 52,428,801 bytes: Attio accepts at most 52,428,800"
    assert during.reason == "the file is too large: the target accepts at most 999 bytes"


async def test_a_redirect_to_a_forbidden_address_is_not_followed() -> None:
    """The metadata service of a cloud, and a way out of https."""
    location = "302 Found\r\nLocation: http://169.254.169.254/latest\r\nContent-Length: 0"
    async with listening(saying(location)) as url:
        api = client(url)
        error = await refused(api.download("/file", io.BytesIO(), 10))
        await api.close()
    assert error.failure is ErrorKind.PERMISSION and "not public" in error.reason
    with pytest.raises(ConnectorError, match="leaves https"):
        api_client._redirected(Url("https://api.affinity.co/x"), "http://storage.example/file")


@pytest.mark.parametrize(
    ("head", "failure"),
    [
        ("200 OK\r\nContent-Length: 20", ErrorKind.TEMPORARY),
        ("302 Found\r\nLocation: /again\r\nContent-Length: 0", ErrorKind.PERMANENT),
        ("404 Not Found\r\nContent-Length: 10", ErrorKind.NOT_FOUND),
    ],
    ids=["cut off", "endless redirects", "gone"],
)
async def test_a_download_that_is_not_the_whole_file_is_an_error(head: str, failure: ErrorKind) -> None:
    """Half a file is never taken for a file."""
    async with listening(saying(head, b"0123456789" if "302" not in head else b"")) as url:
        api = client(url)
        error = await refused(api.download("/file", io.BytesIO(), 100))
        await api.close()
    assert error.failure is failure and not error.sent


async def test_large_files_are_streamed_in_both_directions() -> None:
    """24 MB go through less than 4 MB of memory, and the upload states its length."""
    seen: dict[str, int] = {}

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        seen["stated"] = left = int(head.partition("content-length: ")[2].partition("\r\n")[0])
        while left and (chunk := await reader.read(65_536)):
            left -= len(chunk)
        seen["missing"] = left
        writer.write(b'HTTP/1.1 201 Created\r\nContent-Length: 11\r\nConnection: close\r\n\r\n{"data":{}}')
        writer.close()

    giving = saying(f"200 OK\r\nContent-Length: {SIZE}", bytes(65_536), SIZE // 65_536)
    async with listening(giving) as there, listening(take) as here:
        download, upload = client(there), client(here)
        with TemporaryFile() as file:
            tracemalloc.start()
            await download.download("/file", file, SIZE)
            reply = await upload.upload("/upload", {"object": "people"}, "a.bin", file)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert file.tell() == SIZE
        await download.close()
        await upload.close()
    assert reply.status == 201 and seen["missing"] == 0 and SIZE < seen["stated"] < SIZE + 1_000
    assert peak < 4 << 20
