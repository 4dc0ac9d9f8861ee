"""A browser and an engine for the tests of this folder; without Chromium they are skipped, and counted."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from .stage import Sample, Stage, browser, chromium, fill, serving


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def chrome() -> AsyncIterator[Browser]:
    """One browser for all tests of a file."""
    if chromium() is None:
        pytest.skip("no Chromium: install it (apt-get install chromium) to test the pages in a browser")
    async with browser() as started:
        yield started


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def stage(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    """An engine that serves on a free port."""
    folder: Path = tmp_path_factory.mktemp("stage")
    async with serving(f"sqlite:///{folder}/tidings.db") as built:
        yield built


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def sample(stage: Stage) -> Sample:
    """Something of everything."""
    return await fill(stage.app)
