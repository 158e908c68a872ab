"""The page of a job: what it says, what it links to, how large it is, and that it needs nothing else."""

from __future__ import annotations

import re
from itertools import pairwise

from msgspec.structs import replace

from engine.gateways.job_details import InputDetails
from engine.profile.job_profile import Cause
from engine.profile.plan_drawing import plan_drawing
from engine.profile.profile_making import profile_of
from engine.profile.profile_page import profile_page
from tests.profile.profiles import large_job
from tests.rest.details import NASTY, job
from tests.rest.outline import Outline, job_page


def test_the_page_of_a_job_shows_subtasks_plan_and_failures():
    outline = Outline(job_page(job()))
    for text in ("RUNNING", "1 of 3", "subtasks finished", "2 KB", "9.4 MB", "73.4 MB", "join", "hash", "attempt 2",
                 "ValueError", "restarted"):  # fmt: skip
        assert text in outline.text, text
    assert "svg" in outline.names


def test_a_traceback_is_folded_below_the_error():
    details = job(status="FAILED")
    traced = replace(details.failures[0].failure, details="Traceback (most recent call last):\n  File a.py, line 7")
    shown = job_page(replace(details, failures=(replace(details.failures[0], failure=traced),)))
    told, frames = re.findall(r"<pre[^>]*>(.*?)</pre>", shown[shown.index("What went wrong") :], re.DOTALL)[:2]
    assert "ValueError" in told and "line 7" not in told and "line 7" in frames
    assert "<summary>traceback</summary>" in shown and shown.count("<details open") == 1


def test_the_cause_is_the_first_thing_that_is_said_and_its_box_is_marked():
    profile = replace(profile_of(job(), 11_000), causes=(Cause("skew", "too much <here>", 0.5, 1, "do this"),))
    outline = Outline(profile_page(profile))
    before = outline.text[: outline.text.index("too much <here>")]
    assert "do this" in outline.text and "Plan" not in before and "duration" not in before
    boxes = [attributes["class"] for name, attributes in outline.tags if name == "rect" and "rx" in attributes]
    assert [" cause" in box for box in boxes] == [False, True]
    calm = replace(profile, causes=(Cause("longest", "nothing stands out", 0.5, 1),))
    assert "cause" not in plan_drawing(calm)


def test_a_page_loads_itself_again_only_while_something_goes_on():
    assert 'http-equiv="refresh"' in job_page(job())
    assert 'http-equiv="refresh"' not in job_page(job(status="FAILED"))
    assert 'http-equiv="refresh"' not in profile_page(profile_of(job(), 11_000)), "a file cannot"


def test_what_is_open_and_whether_a_page_loads_itself_again_stand_in_its_address():
    def opened(page):
        return [name for name, attributes in Outline(page).tags if name == "details" and "open" in attributes]

    assert len(opened(job_page(job(), opened=1))) == len(opened(job_page(job()))) + 1
    running = job_page(job(), opened=1)
    assert 'href="?vertex=0#v0"' in running and 'href="?vertex=1&amp;refresh=off"' in running
    still = job_page(job(), opened=1, refreshes=False)
    assert 'http-equiv="refresh"' not in still
    assert 'href="?vertex=0&amp;refresh=off#v0"' in still and 'href="?vertex=1"' in still


def test_a_failed_attempt_shows_its_cause_and_a_history_links_to_no_process():
    shown = job_page(job())
    assert Outline(shown).text.count(f"ValueError: {NASTY}") >= 2, "in the list of failures and beside the attempt"
    assert "/taskmanagers/" in shown and "log-files" in shown and ".log" in shown
    past = job_page(job(status="FAILED"), has_processes=False)
    assert "/taskmanagers/" not in past and "log-files" not in past and ".log" not in past


def test_a_page_that_stands_alone_has_no_links_but_to_places_on_it_and_may_load_nothing():
    page = profile_page(profile_of(job(status="FAILED"), 11_000))
    outline = Outline(page)
    targets = {attributes["href"] for name, attributes in outline.tags if name == "a"}
    assert targets and targets <= {f"#{attributes['id']}" for _, attributes in outline.tags if "id" in attributes}
    policies = [
        attributes["content"] for name, attributes in outline.tags if "Policy" in attributes.get("http-equiv", "")
    ]
    assert policies and policies[0].startswith("default-src 'none'")
    assert not {"script", "link", "img", "iframe", "object"} & outline.names
    assert not re.search(r"https?:|url[(]|@import", page)


def test_an_attempt_that_failed_has_a_frame_in_the_timeline_and_waits_are_named():
    page = job_page(job())
    outline = Outline(page)
    assert sum(attributes.get("class") == "failed" for _, attributes in outline.tags) == 1
    for named in ("waited for input", "waited for room in buffers", "work"):
        assert named in outline.text
    assert "subtask 2, attempt 2, running: " in outline.text


def test_what_fails_while_a_job_is_cancelled_did_not_go_wrong():
    cancelled = job(status="CANCELED")
    for at_ms, is_shown in ((4000, False), (6000, True)):
        details = replace(cancelled, timestamps_ms={**cancelled.timestamps_ms, "CANCELLING": at_ms})
        assert ("What went wrong" in job_page(details)) == is_shown


def test_a_source_stands_right_before_what_reads_it_first():
    details = job()
    scan, join = details.vertices
    last = replace(
        join,
        id="f" * 32,
        inputs=(InputDetails(join.id, "HASH", "BLOCKING"), InputDetails("e" * 32, "BROADCAST", "BLOCKING")),
    )
    late = replace(scan, id="e" * 32)
    drawn = plan_drawing(profile_of(replace(details, vertices=(scan, join, late, last)), 11_000))
    rectangles = [attributes for name, attributes in Outline(drawn).tags if name == "rect" and "rx" in attributes]
    boxes = [(int(each["x"]), int(each["y"])) for each in rectangles]
    at_scan, at_join, at_late, at_last = boxes
    assert at_scan[0] < at_join[0] == at_late[0] < at_last[0] and at_late[1] > at_join[1]
    assert len(set(boxes)) == 4


def test_texts_of_lines_to_one_vertex_do_not_overlap():
    profile = profile_of(job(status="FINISHED"), 11_000)
    scan, join = profile.vertices
    edges = tuple(replace(join.inputs[0], source=number) for number in range(4))
    drawn = plan_drawing(replace(profile, vertices=(scan, scan, scan, scan, replace(join, inputs=edges))))
    tags = Outline(drawn).tags
    heights = [int(each["y"]) for name, each in tags if name == "text" and each.get("class") == "label"]
    assert len(heights) == 8 and all(after - before >= 13 for before, after in pairwise(heights))
    *sources, reader = [each for name, each in tags if name == "rect" and "rx" in each]
    assert max(heights) < int(reader["y"]) + int(reader["height"])
    assert all(int(one["y"]) + int(one["height"]) < int(other["y"]) for one, other in pairwise(sources))


def test_an_edge_is_red_where_rows_are_ten_times_what_was_expected():
    profile = profile_of(job(status="FINISHED"), 11_000)
    scan, join = profile.vertices
    for rows, expected, is_red in (
        (5_100_000, 400_000, True),
        (5_100_000, 600_000, False),
        (10, 5000, True),
        (9, 1, False),
    ):
        edge = replace(join.inputs[0], rows=rows, expected_rows=expected)
        drawn = plan_drawing(replace(profile, vertices=(scan, replace(join, inputs=(edge,)))))
        assert ('class="off"' in drawn) == is_red
    assert "9 rows, 70 B" in Outline(drawn).text


def test_the_page_of_a_hundred_vertices_of_a_thousand_subtasks_is_smaller_than_a_megabyte():
    profile = profile_of(large_job(100, 1000), 200_000)
    page = profile_page(profile)
    assert sum(len(vertex.attempts) for vertex in profile.vertices) == 100_000
    assert len(page.encode()) < 1_000_000
    outline = Outline(page)
    assert "and 997 more" in outline.text and "the 2 longest of 1000" in outline.text
    assert all(f"v{place}" in page for place in range(100))


def test_a_notebook_shows_the_page_in_a_frame_that_runs_nothing():
    page = profile_page(profile_of(job(), 11_000))
    frame = page._repr_html_()
    (tag,) = [attributes for name, attributes in Outline(frame).tags if name == "iframe"]
    assert tag["sandbox"] == "" and tag["srcdoc"] == str(page)
