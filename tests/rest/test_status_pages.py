"""Pages for people: whatever a job calls itself, it is text."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from engine.gateways.job_queue import WaitingJob, WaitingReason
from engine.insight.log_folder import LogFolder
from engine.rest.overview_page import overview_page
from engine.rest.overview_query import OverviewQuery
from engine.shown_pages import page as whole_page
from engine.shown_pages import tag
from tests.jobmaster.job_graphs import job_graph
from tests.rest.details import NASTY, job
from tests.rest.outline import Outline, contrast, job_page
from tests.rest.overview import job as listed_job
from tests.rest.overview import snapshot
from tests.rest.rest_world import scenario


def test_a_job_whose_name_is_a_script_is_shown_and_not_run():
    page = job_page(job(NASTY))
    outline = Outline(page)
    assert "script" not in outline.names and NASTY in outline.text
    assert "<script" not in page.lower()


def test_attributes_are_escaped_as_well():
    assert tag("a", "x", href='"><b>') == '<a href="&quot;&gt;&lt;b&gt;">x</a>'


def test_pages_are_served_and_may_load_nothing():
    async def body(world):
        graph = job_graph([1], name=NASTY)
        await world.run(graph)
        for path in ("/", f"/jobs/{graph.job_id}/page"):
            async with world.session.get(path) as response:
                assert response.status == 200 and response.content_type == "text/html"
                assert response.headers["Content-Security-Policy"].startswith("default-src 'none'")
                assert NASTY in Outline(await response.text()).text

    scenario(body)


def test_tables_have_captions_and_heads_and_can_be_scrolled_with_the_keyboard():
    for shown in (job_page(job(), 11_000), overview_page(snapshot(), OverviewQuery())):
        tags = Outline(shown).tags
        names = [name for name, _ in tags]
        assert names.count("table") == names.count("caption")
        assert names.count("h1") == names.count("main") == 1
        assert all(attributes.get("scope") == "col" for name, attributes in tags if name == "th")
        regions = [attributes for name, attributes in tags if attributes.get("role") == "region"]
        assert len(regions) >= names.count("table")
        assert all(attributes["aria-label"] and attributes["tabindex"] == "0" for attributes in regions)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_and_lines_stand_out_in_both_schemes(scheme):
    style = whole_page("")
    light, dark = re.findall(r":root {([^}]*)}", style)
    colours = dict(re.findall(r"--(\w+): (#\w+)", light if scheme == "light" else dark))
    for text in ("text", "quiet", "mark"):
        for ground in ("back", "soft"):
            assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
    for line in ("good", "bad", "going", "warn"):
        assert contrast(colours[line], colours["back"]) >= 3, line
    badges = re.findall(r"\.(?:state|[A-Z]{5,}) {[^}]*background: (#\w+)", style)
    assert len(badges) >= 6 and all(contrast(badge, "#fff") >= 4.5 for badge in badges)


def test_processes_and_log_files_have_pages_and_so_have_errors(tmp_path):
    (tmp_path / "flink-me-jobmanager-0-here.log").write_text("a line")

    async def body(world):
        graph = job_graph([1])
        await world.run(graph)
        executor = world.cluster.task_executors[0].resource_id

        async def shown(path, status=200):
            async with world.session.get(path) as response:
                assert (response.status, response.content_type) == (status, "text/html"), path
                return Outline(await response.text()).text

        text = await shown("/jobmanager/page")
        assert "rest.port" in text and "flink-me-jobmanager-0-here.log" in text and "MainThread" in text
        text = await shown(f"/taskmanagers/{executor}/page")
        assert executor.value in text and "resident memory" in text
        assert "log files" in (await shown(f"/jobs/{graph.job_id}/log-files")).lower()
        for path in ("/jobs/{}/page", "/jobs/{}/log-files", "/taskmanagers/{}/page"):
            assert "Not found" in await shown(path.format("0" * 32), 404)
        assert "Not a valid address" in await shown("/jobs/a-name/page", 400)

    scenario(body, logs=LogFolder(tmp_path / "flink-me-jobmanager-0-here.log"))


def test_a_job_that_waits_for_slots_shows_its_place_in_the_list_and_on_its_page():
    waiting = WaitingJob(2, 3, 4, 8, WaitingReason.SLOTS)
    overview = overview_page(snapshot([listed_job(1, waiting=waiting)]), OverviewQuery())
    for page in (overview, job_page(replace(job(), waiting=waiting), 11_000)):
        assert "WAITING" in Outline(page).text and "place 2 of 3 in the queue: 4 slots needed" in Outline(page).text
