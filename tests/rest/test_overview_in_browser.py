"""The overview in a real browser: it is live, searched by the keyboard, fits a phone, and runs its own script only."""

from __future__ import annotations

import pytest

from engine.rest import overview_feed
from tests.jobmaster.job_graphs import job_graph
from tests.rest.browser import browser_page, needs_browser
from tests.rest.details import NASTY
from tests.rest.rest_world import scenario

pytestmark = [pytest.mark.thorough, needs_browser]

SHOWN = "document.getElementById('jobs').textContent"


def test_a_page_lives_without_a_reload_and_is_used_by_the_keyboard(monkeypatch):
    monkeypatch.setattr(overview_feed, "_PAUSE_S", 0.1)
    monkeypatch.setattr(overview_feed, "_FRESH_S", 0.0)

    async def body(world):
        await world.run(job_graph([1], name=NASTY))
        async with browser_page() as page:
            await page.go(f"http://{world.server.address}/")
            await page.until("document.getElementById('live').textContent === 'live'")
            await page.value("window.kept = 1; document.querySelector('#jobs a').focus()")
            focused = await page.value("document.activeElement.getAttribute('href')")
            await world.run(job_graph([1], name="daily sums"))
            await page.until(f"{SHOWN}.includes('daily sums')")
            assert await page.value("document.activeElement.getAttribute('href')") == focused, "the focus stays"
            await page.press("/")
            for letter in "SUMS":
                await page.press(letter)
            await page.until("location.search === '?name=SUMS'")
            await page.until(f"{SHOWN}.includes('1 of 2 jobs fit')")
            await page.press("Escape")
            await page.until("location.search === ''")
            await page.until(f"{SHOWN}.includes('2 of 2 jobs')")
            assert await page.value("window.kept") == 1, "it was not loaded again"

    scenario(body)


def test_no_other_script_runs_and_a_phone_needs_no_scrolling_aside(monkeypatch):
    monkeypatch.setattr(overview_feed, "_PAUSE_S", 0.1)

    async def body(world):
        await world.run(job_graph([1], name="<img src=x onerror='window.run = 1'><script>window.run = 1</script>"))
        async with browser_page() as page:
            size = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}
            await page.call("Emulation.setDeviceMetricsOverride", **size)
            await page.go(f"http://{world.server.address}/")
            await page.until("document.getElementById('live').textContent === 'live'")
            inline = (
                "const s = document.createElement('script'); s.textContent = 'window.run = 1'; document.body.append(s)"
            )
            await page.value(f"{inline}; 0")
            assert await page.value("window.run") is None
            assert await page.value("document.documentElement.scrollWidth") <= 390
            small = "[...document.querySelectorAll('input, select')].filter(each => each.offsetHeight < 44).length"
            assert await page.value(small) == 0, "fields are large enough for fingers"

    scenario(body)
