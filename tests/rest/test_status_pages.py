"""Pages for people: whatever a job calls itself, it is text."""

from __future__ import annotations

from html.parser import HTMLParser

from engine.gateways.messages import JobList, JobOverview, TaskExecutorList
from engine.rest.html import tag
from engine.rest.status_pages import cluster_page, job_page
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
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, name, attributes):
        self.names.add(name)
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
    for text in ("RUNNING", "1 of 3 finished", "2.0 KB", "join", "hash", "attempt 2", "ValueError", "restarted"):
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
