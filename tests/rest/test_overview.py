"""The overview: search, filters, pages, progress; TaskManagers and JobManagers; its script and what it may do."""

from __future__ import annotations

import re
import shutil
import subprocess
import urllib.parse

import pytest
from msgspec.structs import replace

from engine.gateways.job_queue import WaitingJob, WaitingReason
from engine.gateways.messages import ListJobs
from engine.rest.job_progress import left_text, progress_of
from engine.rest.overview_page import overview_page, overview_parts
from engine.rest.overview_query import PAGE_JOBS, OverviewQuery
from engine.rest.overview_script import SCRIPT, SCRIPT_HASH
from engine.rpc.http_messages import HttpError
from tests.jobmaster.job_graphs import job_graph
from tests.rest.details import NASTY
from tests.rest.overview import NOW_MS, job, snapshot, worker
from tests.rest.rest_world import scenario
from tests.rest.test_status_pages import Outline

WAITS = WaitingJob(2, 3, 4, 2, WaitingReason.SLOTS)


def chosen(query, *jobs):
    return [each.name for each in OverviewQuery.of(query).choose(jobs, NOW_MS).jobs]


def test_jobs_are_found_by_name_id_user_state_and_time():
    jobs = (
        job(1, "Daily sums", user="ann"),
        job(2, "hourly", "FINISHED", 9000, 7200, user="bob"),
        job(3, "sums of today", "FAILED", 200, 100),
        job(0xABC << 100, "waits", waiting=WAITS),
    )
    assert chosen({}, *jobs) == ["Daily sums", "waits", "sums of today", "hourly"]
    assert chosen({"name": " SUMS"}, *jobs) == ["Daily sums", "sums of today"]
    assert chosen({"name": jobs[3].job_id.value[:8]}, *jobs) == ["waits"]
    assert chosen({"user": "bob"}, *jobs) == ["hourly"]
    assert chosen({"state": "running"}, *jobs) == ["Daily sums"]
    assert chosen({"state": "WAITING"}, *jobs) == ["waits"]
    assert chosen({"within": "1h"}, *jobs) == ["Daily sums", "waits", "sums of today"]
    assert chosen({"within": "24h", "state": "FINISHED"}, *jobs) == ["hourly"]


@pytest.mark.parametrize("query", [{"state": "LOST"}, {"within": "1y"}, {"page": "0"}, {"page": "-1"}, {"page": "²"}])
def test_a_query_that_cannot_be_is_refused(query):
    with pytest.raises(HttpError, match=next(iter(query))):
        OverviewQuery.of(query)


def test_many_jobs_have_pages_whose_addresses_keep_the_query():
    jobs = [job(number, f"n{number}", "FINISHED", 10_000 - number, 5) for number in range(2 * PAGE_JOBS + 1)]
    query = OverviewQuery.of({"name": "n&x", "page": "2"})
    assert query.choose(jobs, NOW_MS).fitting == 0
    query = OverviewQuery.of({"name": "n", "page": "2"})
    found = query.choose(jobs, NOW_MS)
    assert (len(found.jobs), found.fitting, found.page, found.pages) == (PAGE_JOBS, len(jobs), 2, 3)
    assert OverviewQuery.of({"page": "99"}).choose(jobs, NOW_MS).page == 3, "jobs that are gone took pages with them"
    links = [
        attributes["href"] for name, attributes in Outline(overview_page(snapshot(jobs), query)).tags if name == "a"
    ]
    steps = [dict(urllib.parse.parse_qsl(link[1:])) for link in links if link.startswith("?")]
    assert steps == [{"name": "n"}, {"name": "n", "page": "3"}]


def test_a_share_is_rounded_down_and_a_time_left_needs_a_basis():
    def progress(finished, running, created=0, begun_ago_s=60, **fields):
        tasks = {"FINISHED": finished, "RUNNING": running, "CREATED": created}
        return progress_of(job(1, tasks=tasks, begun_ms=NOW_MS - 1000 * begun_ago_s, **fields), NOW_MS)

    assert progress_of(job(1), NOW_MS) is None
    assert progress(199, 1).percent == 99
    assert progress(2, 2).left_ms is None, "two are no basis"
    assert progress(4, 10, 90).left_ms is None, "nor is less than a tenth"
    assert progress(10, 10, 20).left_ms == 180_000
    assert progress(10, 10, 20, begun_ago_s=-5).left_ms == 0, "a clock was set back"
    assert progress(10, 10, waiting=WAITS).left_ms is None
    assert progress_of(job(1, tasks={"FINISHED": 9, "RUNNING": 1}), NOW_MS).left_ms is None


@pytest.mark.parametrize(
    ("left_ms", "text"),
    [
        (None, "time left not known"),
        (9_000, "seconds left"),
        (34_000, "about 30 s left"),
        (100_000, "about 2 min left"),
        (5_000_000, "about 1 h left"),
    ],
)
def test_a_time_left_is_told_in_coarse_steps(left_ms, text):
    assert left_text(left_ms) == text


def test_a_job_whose_name_is_a_script_is_shown_and_not_run():
    shown = overview_page(snapshot([job(1, NASTY, user=NASTY, tasks={"RUNNING": 1})]), OverviewQuery(name=NASTY))
    outline = Outline(shown)
    assert [name for name, _ in outline.tags].count("script") == 1
    assert NASTY in outline.text.replace(SCRIPT, "")


def test_running_jobs_show_progress_and_waiting_ones_their_place():
    tasks = {"FINISHED": 6, "RUNNING": 6}
    jobs = (job(1, tasks=tasks, begun_ms=NOW_MS - 60_000), job(2, "later", tasks={"CREATED": 4}, waiting=WAITS))
    shown = overview_parts(snapshot(jobs), OverviewQuery())
    text = Outline(shown["jobs"]).text
    assert "50\u00a0% · 6 of 12" in text and "about 1 min left" in text
    assert "WAITING" in text and "place 2 of 3" in text and text.count("left") == 1
    failing = Outline(overview_parts(snapshot([replace(jobs[0], status="FAILING")]), OverviewQuery())["jobs"]).text
    assert "6 of 12" in failing and "left" not in failing
    assert "longest wait" in shown["cards"]
    assert "user" not in text, "where no job has one"
    named = Outline(overview_parts(snapshot([job(1, user="ann"), job(2)]), OverviewQuery())["jobs"])
    assert [attributes["href"] for name, attributes in named.tags if name == "a"][1] == "?user=ann"


def test_task_managers_show_memory_disk_tasks_and_what_is_wrong():
    used = {
        "Status.Process.Memory.Resident": 100e6,
        "Status.Memory.Managed.Used": float(32 << 20),
        "Status.Tasks.Running": 3.0,
        "Status.Disk.Free./a": 50.0,
        "Status.Disk.Used./a": 50.0,
        "Status.Disk.Free./b": 5e9,
        "Status.Disk.Used./b": 95e9,
    }
    workers = (worker(1), worker(2, "1.1"))
    shown = overview_parts(snapshot(workers=workers, used={workers[0].resource_id.value: used}), OverviewQuery())
    outline = Outline(shown["workers"])
    for text in ("100 MB", "33.6 MB of 67.1 MB", "5 GB (5 %)", "does not answer", "host-1", "1.1"):
        assert text in outline.text
    bad = [attributes for name, attributes in outline.tags if attributes.get("class") == "bad"]
    assert len(bad) == 4, "a full disk, a silent process, two versions"


def test_a_limit_that_is_nearly_used_up_is_marked_before_a_disk_with_room():
    used = {
        "Status.Process.Memory.Resident": 100e6,
        "Status.Disk.Free./a": 50e9,
        "Status.Disk.Used./a": 50e9,
        "Status.Disk.Limit./a": 1e9,
        "Status.Disk.Counted./a": 0.95e9,
    }
    first = worker(1)
    outline = Outline(
        overview_parts(snapshot(workers=(first,), used={first.resource_id.value: used}), OverviewQuery())["workers"]
    )
    assert "50 MB (5 %) of limit" in outline.text
    assert [each["title"] for _, each in outline.tags if each.get("class") == "bad"] == ["limit of /a"]


def test_the_leader_and_the_job_managers_beside_it_are_told():
    own = {"Status.Leader.Epoch": 7.0, "Status.ZooKeeper.Connected": 0.0}
    shown = overview_parts(snapshot(own=own, job_managers=(("b:1", True), ("c:1", False))), OverviewQuery())
    text = Outline(shown["managers"]).text
    for part in ("under epoch 7", "no connection to ZooKeeper", "standing by: b:1", "not there: c:1"):
        assert part in text


def test_a_history_shows_jobs_and_speaks_of_no_task_managers():
    page = overview_page(snapshot([job(1, "prices", "FINISHED", 100, 99)]), OverviewQuery(), is_history=True)
    text = Outline(page).text.replace(SCRIPT, "")
    assert "prices" in text and "1.0 s" in text and "TaskManager" not in text


def test_every_field_has_a_label_and_every_region_a_name():
    tags = Outline(overview_page(snapshot([job(1)], [worker(1)]), OverviewQuery(state="FAILED"))).tags
    fields = [attributes for name, attributes in tags if name in ("input", "select")]
    assert {each["name"] for each in fields} == {"name", "user", "state", "within"}
    assert [name for name, _ in tags].count("label") == len(fields)
    assert all(attributes["aria-label"] for _, attributes in tags if attributes.get("role") in ("region", "search"))
    assert [attributes["value"] for name, attributes in tags if name == "option" and "selected" in attributes] == [
        "FAILED",
        "",
    ]


def test_only_the_script_of_the_page_may_run_and_it_reaches_this_server_only():
    async def body(world):
        await world.run(job_graph([1], name=NASTY))
        async with world.session.get("/?state=finished") as response:
            policy, page = response.headers["Content-Security-Policy"], await response.text()
        words = dict(part.strip().split(" ", 1) for part in policy.split(";"))
        assert words["default-src"] == "'none'"
        assert words["script-src"] == f"'{SCRIPT_HASH}'"
        assert {words[name] for name in ("connect-src", "form-action")} == {"'self'"}
        assert NASTY in Outline(page).text
        assert f"<script>{SCRIPT}</script>" in page, "the hash is that of the whole text between the tags"
        assert "none of" in await world.get("/?state=lost", 400)

    scenario(body)


@pytest.mark.skipif(shutil.which("node") is None, reason="node is missing")
def test_the_script_is_one_that_a_browser_can_read():
    done = subprocess.run(
        ["node", "--check", "-"], input=SCRIPT, text=True, capture_output=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert "</" not in SCRIPT and not re.search(r"https?:|eval|Function", SCRIPT)


def test_a_job_says_when_its_first_subtask_began():
    async def body(world):
        assert await world.run(job_graph([2, 1])) == "FINISHED"
        (ended,) = (await world.cluster.gateway.ask(ListJobs())).jobs
        assert ended.start_ms <= ended.begun_ms <= ended.end_ms

    scenario(body)
