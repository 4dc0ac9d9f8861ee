"""Screenshots of the dashboard for the documentation: `make screenshots`."""

from __future__ import annotations

import asyncio
import math
import random
import sys
import tempfile
from contextlib import chdir
from pathlib import Path

from playwright.async_api import Browser, Page, ViewportSize

from tidings.app import App
from tidings.model.time import MINUTE, SECOND
from tidings.outbound import trend_sampler as charts
from tidings.store.port import Step

from .stage import Sample, browser, chromium, fill, first_of, serving, settled, watch

FOLDER = Path(__file__).parents[2] / "docs" / "screenshots"
WIDE, PHONE = ViewportSize(width=1280, height=860), ViewportSize(width=390, height=844)


def screenshots(sample: Sample) -> dict[str, str]:
    """Return the path of each screenshot; `-phone` and `-dark` select the viewport and the color scheme."""
    return {
        "overview": "/",
        "overview-dark": "/",
        "overview-phone": "/",
        "message": f"/messages/{sample.message}",
        "broadcasts": "/broadcasts",
        "broadcast-new": "/broadcasts/new?list=volunteers&template=rain-warning",
        "schedules": "/schedules",
        "schedule-edit": f"/schedules/{sample.schedule}/edit",
        "upcoming": "/upcoming",
        "upcoming-phone": "/upcoming",
        "templates": "/templates",
        "template": "/templates/rain-warning?channel=phone&to=ada",
        "dead": "/dead",
        "dead-dark": "/dead",
        "contacts": "/contacts",
        "contact": f"/contacts/{sample.contact}",
        "lists": "/lists",
        "list": f"/lists/{sample.list}",
        "suppressions": "/suppressions",
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
    """Take all screenshots; return their number."""
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
            await _make_changes(page, stage.url)
            await _fill_charts(stage.app)
            wanted = screenshots(sample)
            for name, path in wanted.items():
                await _take(chrome, name, stage.url + path, folder)
            return len(wanted)


async def _make_changes(page: Page, url: str) -> None:
    """Make changes, so that the audit log has entries."""
    for path, body in (
        ("channels/mail/pause", {"reason": "the provider is down"}),
        ("channels/mail/resume", {}),
        ("messages", {"channel": "phone", "to": "joan", "text": "The bus leaves at ten", "in": "90m"}),
    ):
        answer = await page.request.post(f"{url}/v1/{path}", data=body)
        assert answer.ok, await answer.text()


async def _fill_charts(app: App) -> None:
    """Fill the charts with fifteen minutes of data."""
    now, chance = app.clock.now(), random.Random(1)
    steps = [
        Step("attempt_tally_add", {"now": now - ago * MINUTE, "queue": "phone", "outcome": what, "n": n, "ms": n * 40})
        for ago in range(1, 15)
        for what, n in (("done", chance.randint(220, 380)), ("retry:temporary", chance.randint(0, 6)))
    ]
    await app.store.write(steps)
    past = app.outbound.overview._watch._samples
    for ago in range(14 * 6, 0, -1):
        due = max(0, round(30 * math.sin(ago / 9)) + chance.randint(-6, 12))
        past.appendleft(charts.QueueSample(now - (14 * 6 + 1 - ago) * 10 * SECOND, due, due / 40))


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
    print(f"{asyncio.run(take(FOLDER))} screenshots in {FOLDER}")
