"""Every page in a real Chromium: opened and used, without an error on its console, accessible to all."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from time import monotonic
from typing import Any

import pytest
from playwright.async_api import Browser, ConsoleMessage, Page, expect

from .stage import AXE, Sample, Stage, places, settled

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.xdist_group("browser")]

TABS = 3
RULES = "{runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'], resultTypes: ['violations']}"


@asynccontextmanager
async def tab(chrome: Browser, **options: Any) -> AsyncIterator[Page]:
    """A page whose console must stay clean until it is closed."""
    context = await chrome.new_context(**options)
    page = await context.new_page()
    page.set_default_timeout(20_000)
    troubles: list[str] = []

    def hear(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            troubles.append(f"{page.url}: {message.text}")

    page.on("console", hear)
    page.on("pageerror", lambda error: troubles.append(f"{page.url}: {error}"))
    page.on("dialog", lambda dialog: asyncio.ensure_future(dialog.accept()))
    try:
        yield page
    finally:
        await context.close()
    assert troubles == []


async def findings(page: Page) -> list[str]:
    """What axe finds serious on this page."""
    await page.evaluate(AXE.read_text(encoding="utf-8"))
    found = await page.evaluate(f"axe.run(document, {RULES})")
    return [
        f"{page.url}: {one['id']}: {one['nodes'][0]['html'][:200]}"
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
    ]


async def test_every_page_opens_cleanly_and_is_accessible(
    chrome: Browser, stage: Stage, sample: Sample
) -> None:
    """No console error, and axe without serious findings: light and dark, wide and on a phone."""
    async with tab(chrome) as first:
        await settled(first, stage.url)
    queue = list(enumerate(places(sample)))
    found: list[str] = []

    async def look() -> None:
        phone, desk = {"width": 390, "height": 844}, {"width": 1280, "height": 900}
        async with tab(chrome, viewport=desk) as page:
            while queue:
                number, path = queue.pop()
                # Both shapes and both colours come up in turn; a page is the same in all of them.
                await page.set_viewport_size(phone if number % 2 else desk)
                await page.emulate_media(color_scheme="dark" if number % 3 == 0 else "light")
                answer = await page.goto(stage.url + path, wait_until="load")
                assert answer is not None and answer.status == 200, path
                wide = await page.evaluate("document.documentElement.scrollWidth - innerWidth")
                found.extend([f"{path} is {wide} px too wide"] if wide > 0 else [])
                found.extend(await findings(page))

    await asyncio.gather(*(look() for _ in range(TABS)))
    assert found == []


async def test_a_message_is_sent_and_seen_live(chrome: Browser, stage: Stage, sample: Sample) -> None:
    """The overview is at most two seconds behind, without loading it again."""
    async with tab(chrome) as page, tab(chrome) as other:
        await page.goto(stage.url)
        await expect(page.locator("#state")).to_have_text("live")
        await other.goto(stage.url)
        await other.fill(".compose [name=to]", "rosalind")
        await other.fill(".compose [name=text]", "hello from the page")
        await other.fill(".compose [name=at]", "in 10 min")
        await expect(other.locator("#heard")).to_contain_text("in 10 min")
        began = monotonic()
        await other.click("button:text-is('Send')")
        await page.locator("#rows", has_text="rosalind").wait_for()
        assert monotonic() - began < 2.0
        await expect(page.locator("#trend svg")).to_have_count(4)
        assert "Accepted for rosalind" in await other.inner_text(".told")


async def test_a_contact_and_a_list_are_made(chrome: Browser, stage: Stage, sample: Sample) -> None:
    """B5: by their forms; the list then leads to a broadcast."""
    async with tab(chrome) as page:
        await page.goto(f"{stage.url}/contacts")
        await page.click("text=New contact")
        await page.fill("[name=name]", "Mary Jackson")
        await page.fill("[name='addresses.phone']", "mary")
        await page.click("button.main")
        await page.locator("h1", has_text="Mary Jackson").wait_for()
        await page.click("button:has-text('Opt out')")
        await page.locator(".pill", has_text="opted out").wait_for()
        await page.goto(f"{stage.url}/opt-outs")
        await page.click("[aria-label='Write again to mary']")
        await expect(page.locator(".rows")).not_to_contain_text("mary")
        await page.goto(f"{stage.url}/lists")
        await page.fill("[name=name]", "engineers")
        await page.click("button.main")
        await page.select_option("[name=channel]", "phone")
        await page.fill("[name=address]", "mary")
        await page.click("button.main")
        await page.locator(".rows", has_text="Mary Jackson").wait_for()
        await page.click("text=Write to them")
        await expect(page.locator("[name=list]")).to_have_value("engineers")


async def test_a_template_shows_what_it_says_while_it_is_written(
    chrome: Browser, stage: Stage, sample: Sample
) -> None:
    """E7: the preview follows the typing."""
    async with tab(chrome) as page:
        await page.goto(f"{stage.url}/templates/new")
        await page.fill("[name=name]", "thanks")
        await page.fill("[name=variables]", "town = Bonn")
        await page.fill("[name=text]", "Thank you, {{ contact.name }} of {{ town }}")
        await page.locator("#preview", has_text="Thank you, Ada Example of Bonn").wait_for()
        await page.click("button.main")
        await page.locator("h1", has_text="thanks").wait_for()


async def test_a_schedule_shows_its_firings_before_it_is_saved(
    chrome: Browser, stage: Stage, sample: Sample
) -> None:
    """A8: the preview follows the typing; saved, it stands in the calendar."""
    async with tab(chrome) as page:
        await page.goto(f"{stage.url}/schedules/new")
        await page.select_option("[name=kind]", "every")
        await page.fill("[name=rule]", "6h")
        await expect(page.locator("#preview li")).to_have_count(5)
        await page.fill("[name=name]", "Every six hours")
        await page.fill("[name=to]", "grace")
        await page.fill("[name=text]", "How is it going?")
        await page.click("button.main")
        await page.locator("h1", has_text="Every six hours").wait_for()
        await page.click("button:has-text('Pause')")
        await page.locator(".pill", has_text="paused").wait_for()
        await page.click("button:has-text('Resume')")
        await page.goto(f"{stage.url}/ahead")
        await expect(page.locator(".days")).to_contain_text("Every six hours")


async def test_a_broadcast_is_previewed_made_and_started(
    chrome: Browser, stage: Stage, sample: Sample
) -> None:
    """B1: the count and the words are seen first; progress is live."""
    async with tab(chrome) as page:
        await page.goto(f"{stage.url}/broadcasts/new")
        await page.fill("[name=addresses]", "ada\ngrace\njoan")
        await page.fill("[name=text]", "Meeting moved to ten")
        await page.locator("#preview", has_text="3 people get it").wait_for()
        await page.click("button.main")
        await page.click("button:has-text('Start now (3)')")
        await page.locator("#standing", has_text="3 of 3").wait_for()
        await page.locator("#standing", has_text="completed").wait_for()


async def test_dead_letters_are_chosen_with_the_keyboard_and_retried(
    chrome: Browser, stage: Stage, sample: Sample
) -> None:
    """B7: j walks through the list; chosen ones are given up."""
    async with tab(chrome) as page:
        await settled(page, stage.url)
        await page.goto(f"{stage.url}/dead")
        await page.keyboard.press("j")
        focused = await page.evaluate("document.activeElement.getAttribute('href')")
        assert re.fullmatch(r"/messages/[0-9a-f-]+", focused)
        await page.click("button:has-text('Choose all')")
        assert (
            await page.locator("input[name=id]:checked").count()
            == await page.locator("input[name=id]").count()
        )
        await page.click("button:has-text('Discard the chosen')")
        await page.locator(".told", has_text="4 discarded").wait_for()


async def test_subscriptions_channels_and_roll_out_are_switched(
    chrome: Browser, stage: Stage, sample: Sample
) -> None:
    """B14: the engine's own pages do what their buttons say."""
    async with tab(chrome) as page:
        await page.goto(f"{stage.url}/subscriptions")
        await page.fill("[name=url]", "http://127.0.0.1:9/other")
        await page.fill("[name=events]", "message.failed")
        await page.click("button.main")
        await page.locator("code", has_text="whsec_").wait_for()
        await page.goto(f"{stage.url}/rollout/phone")
        await page.fill("[name=share]", "50")
        await page.click("button.main")
        await page.locator("h1", has_text="live, 50 %").wait_for()
        await page.click("button:has-text('Back to live, 100 %')")
        await page.locator("h1", has_text="live, 100 %").wait_for()
        await page.goto(f"{stage.url}/channels/phone")
        await page.click("button:has-text('Try it out')")
        await page.locator("[role=status].told").wait_for()
        await page.goto(f"{stage.url}/roster")
        await page.fill("[name=sender]", "49170")
        await page.fill("[name=name]", "Ada")
        await page.fill("form[action='/roster/put'] [name=squad]", "6")
        await page.click("form[action='/roster/put'] button")
        await page.locator(".rows", has_text="49170").wait_for()
