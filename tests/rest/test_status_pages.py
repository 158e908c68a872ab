"""Pages for people: whatever a job calls itself, it is text."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from msgspec.structs import replace

from engine.gateways.job_details import InputDetails
from engine.gateways.job_queue import WaitingJob, WaitingReason
from engine.gateways.messages import JobList, JobOverview
from engine.gateways.task_executors import TaskExecutorList
from engine.insight.log_folder import LogFolder
from engine.rest.html import page as whole_page
from engine.rest.html import tag
from engine.rest.job_page import View, job_page
from engine.rest.plan_drawing import plan_drawing
from engine.rest.status_pages import cluster_page, history_page
from tests.jobmaster.job_graphs import job_graph
from tests.rest.details import JOB_ID, NASTY, job
from tests.rest.rest_world import scenario

VOID = {"meta", "br"}


class Outline(HTMLParser):
    """Checks that tags are closed in order, and collects text and names of tags."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.names: set[str] = set()
        self.text = ""
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, name, attributes):
        self.names.add(name)
        self.tags.append((name, dict(attributes)))
        assert not any(key.startswith("on") for key, _ in attributes)
        if name not in VOID:
            self.open.append(name)

    def handle_endtag(self, name):
        assert self.open.pop() == name

    def handle_data(self, data):
        self.text += data


def test_a_job_whose_name_is_a_script_is_shown_and_not_run():
    page = job_page(job(NASTY), 11_000)
    outline = Outline(page)
    assert "script" not in outline.names and NASTY in outline.text
    assert "<script" not in page.lower()
    jobs = JobList((JobOverview(JOB_ID, NASTY, "RUNNING", 900, -1),))
    page = cluster_page(jobs, TaskExecutorList(()), 11_000)
    assert "script" not in Outline(page).names and NASTY in Outline(page).text


def test_attributes_are_escaped_as_well():
    assert tag("a", "x", href='"><b>') == '<a href="&quot;&gt;&lt;b&gt;">x</a>'


def test_the_page_of_a_job_shows_subtasks_plan_and_failures():
    outline = Outline(job_page(job(), 11_000))
    for text in (
        "RUNNING",
        "1 of 3",
        "subtasks finished",
        "2.0 KB",
        "9.0 MB",
        "70.0 MB",
        "join",
        "hash",
        "attempt 2",
        "ValueError",
        "restarted",
    ):
        assert text in outline.text
    assert "svg" in outline.names


def test_a_page_loads_itself_again_only_while_something_goes_on():
    assert 'http-equiv="refresh"' in job_page(job(), 11_000)
    assert 'http-equiv="refresh"' not in job_page(job(status="FAILED"), 11_000)


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


def test_what_is_open_and_whether_a_page_loads_itself_again_stand_in_its_address():
    """A page that loads itself again would close what a person has opened."""

    def opened(view):
        tags = Outline(job_page(job(), 11_000, view)).tags
        return [attributes["id"] for name, attributes in tags if name == "details" and "id" in attributes
                and "open" in attributes]  # fmt: skip

    assert opened(View()) == []
    assert opened(View(vertex=1)) == ["v1"]
    running = job_page(job(), 11_000, View(vertex=1))
    assert 'href="?vertex=0#v0"' in running and 'href="?vertex=1&amp;refresh=off"' in running
    still = job_page(job(), 11_000, View(vertex=1, refreshes=False))
    assert 'http-equiv="refresh"' not in still
    assert 'href="?vertex=0&amp;refresh=off#v0"' in still and 'href="?vertex=1"' in still


def test_a_failed_attempt_shows_its_cause_and_a_history_links_to_no_process():
    shown = job_page(job(), 11_000)
    assert Outline(shown).text.count(f"ValueError: {NASTY}") >= 2, "in the list of failures and beside the attempt"
    assert "/taskmanagers/" in shown and "log-files" in shown and ".log" in shown
    past = job_page(job(status="FAILED"), 11_000, View(has_processes=False))
    assert "/taskmanagers/" not in past and "log-files" not in past and ".log" not in past


def test_what_fails_while_a_job_is_cancelled_did_not_go_wrong():
    cancelled = job(status="CANCELED")
    for at_ms, is_shown in ((4000, False), (6000, True)):
        details = replace(cancelled, timestamps_ms={**cancelled.timestamps_ms, "CANCELLING": at_ms})
        assert ("What went wrong" in job_page(details, 11_000)) == is_shown


def test_a_history_shows_jobs_and_speaks_of_no_task_managers():
    jobs = JobList((JobOverview(JOB_ID, "prices", "FINISHED", 900, 1900),))
    text = Outline(history_page(jobs, 11_000)).text
    assert "prices" in text and "1.0 s" in text and "TaskManager" not in text


def test_tables_have_captions_and_heads_and_can_be_scrolled_with_the_keyboard():
    for shown in (job_page(job(), 11_000), cluster_page(JobList(()), TaskExecutorList(()), 0)):
        tags = Outline(shown).tags
        names = [name for name, _ in tags]
        assert names.count("table") == names.count("caption")
        assert names.count("h1") == names.count("main") == 1
        assert all(attributes.get("scope") == "col" for name, attributes in tags if name == "th")
        regions = [attributes for name, attributes in tags if attributes.get("role") == "region"]
        assert len(regions) >= names.count("table")
        assert all(attributes["aria-label"] and attributes["tabindex"] == "0" for attributes in regions)


def contrast(one, other):
    """Return the contrast of two colours as WCAG has it."""

    def luminance(colour):
        digits = colour.removeprefix("#")
        digits = "".join(2 * digit for digit in digits) if len(digits) == 3 else digits
        parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    bright, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


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


def test_a_source_stands_right_before_what_reads_it_first():
    details = job()
    scan, join = details.vertices
    last = replace(
        join,
        id="f" * 32,
        inputs=(InputDetails(join.id, "HASH", "BLOCKING"), InputDetails("e" * 32, "BROADCAST", "BLOCKING")),
    )
    late = replace(scan, id="e" * 32)
    drawn = plan_drawing(replace(details, vertices=(scan, join, late, last)))
    boxes = [(int(attributes["x"]), int(attributes["y"])) for name, attributes in Outline(drawn).tags if name == "rect"]
    at_scan, at_join, at_late, at_last = boxes
    assert at_scan[0] < at_join[0] == at_late[0] < at_last[0] and at_late[1] > at_join[1]
    assert len(set(boxes)) == 4


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

    scenario(body, logs=LogFolder(tmp_path / "flink-me-jobmanager-0-here.log"))


def test_a_job_that_waits_for_slots_shows_its_place_in_the_list_and_on_its_page():
    waiting = WaitingJob(2, 3, 4, 8, WaitingReason.SLOTS)
    jobs = JobList((JobOverview(JOB_ID, "prices", "RUNNING", 900, -1, waiting=waiting),))
    for page in (
        cluster_page(jobs, TaskExecutorList(()), 11_000),
        job_page(replace(job(), waiting=waiting), 11_000),
    ):
        assert "WAITING" in Outline(page).text and "place 2 of 3 in the queue: 4 slots needed" in Outline(page).text
