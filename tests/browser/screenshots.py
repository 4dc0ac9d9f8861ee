"""Pictures of the pages for the documentation: `make screenshots`."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from contextlib import chdir
from pathlib import Path

from playwright.async_api import Browser

from .stage import Sample, browser, chromium, fill, first_of, serving, settled, watch

FOLDER = Path(__file__).parents[2] / "docs" / "screenshots"
WIDE, PHONE = {"width": 1280, "height": 860}, {"width": 390, "height": 844}


def pictures(sample: Sample) -> dict[str, str]:
    """Each picture with the page it shows; `-phone` and `-dark` are looks of it."""
    return {
        "overview": "/",
        "overview-dark": "/",
        "overview-phone": "/",
        "message": f"/messages/{sample.message}",
        "broadcasts": "/broadcasts",
        "broadcast-new": "/broadcasts/new?list=volunteers&template=rain-warning",
        "schedules": "/schedules",
        "schedule-edit": f"/schedules/{sample.schedule}/edit",
        "ahead": "/ahead",
        "ahead-phone": "/ahead",
        "templates": "/templates",
        "template": "/templates/rain-warning?channel=phone&to=ada",
        "dead": "/dead",
        "dead-dark": "/dead",
        "contacts": "/contacts",
        "contact": f"/contacts/{sample.contact}",
        "lists": "/lists",
        "list": f"/lists/{sample.list}",
        "opt-outs": "/opt-outs",
        "channels": "/channels",
        "channel": "/channels/phone",
        "rollout": "/rollout/mail",
        "subscriptions": "/subscriptions",
        "subscription": f"/subscriptions/{sample.subscription}",
        "settings": "/settings",
        "inbox": "/inbox",
        "calendar": "/calendar",
        "roster": "/roster",
        "conversation": "/conversations/crew/8",
        "cases": "/cases",
        "alerts": "/alerts",
        "alerts-phone": "/alerts",
        "migrations": "/migrations",
        "migration": f"/migrations/{sample.job}",
        "keys": "/keys",
        "audit": "/audit",
    }


async def take(folder: Path) -> int:
    """All of them; gives how many."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="tidings-screenshots-") as place, chdir(place):
        Path("data").mkdir()
        async with serving("sqlite:///data/tidings.db") as stage, browser() as chrome:
            sample = await fill(stage.app)
            page = await chrome.new_page()
            await settled(page, stage.url)
            await first_of(page, f"{stage.url}/cases")
            await watch(stage.app)
            await stage.app.migrations.plan(sample.job, by="ada")
            wanted = pictures(sample)
            for name, path in wanted.items():
                await _take(chrome, name, stage.url + path, folder)
            return len(wanted)


async def _take(chrome: Browser, name: str, url: str, folder: Path) -> None:
    context = await chrome.new_context(
        viewport=PHONE if name.endswith("-phone") else WIDE,
        color_scheme="dark" if name.endswith("-dark") else "light",
        reduced_motion="reduce",
    )
    page = await context.new_page()
    await page.goto(url)
    await page.screenshot(path=folder / f"{name}.png", full_page=True)
    await context.close()


if __name__ == "__main__":
    if chromium() is None:
        sys.exit("no Chromium: install it (apt-get install chromium)")
    print(f"{asyncio.run(take(FOLDER))} pictures in {FOLDER}")
