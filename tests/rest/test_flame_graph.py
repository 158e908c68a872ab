"""Where the time of a process goes: samples of its stacks, their drawing, and who may ask for it."""

from __future__ import annotations

import re
import shutil
import threading

import pytest

from engine.gateways.insight import Stack, StackSample
from engine.insight import stack_sampler
from engine.insight.stack_sampler import sample_stacks
from engine.rest.flame_graph_page import flame_graph, flame_graph_page, folded_text
from engine.rpc.read_access import ReadAccess
from tests.rest.outline import Outline
from tests.rest.rest_world import scenario
from tests.rpc.served import served

SAMPLE = StackSample(
    (
        Stack(("task 1", "run (engine/task.py:1)", "score (job.py:12)"), 700_000),
        Stack(("task 1", "run (engine/task.py:1)"), 200_000, 50_000),
        Stack(("task <2>", "run (engine/task.py:1)"), 100_000),
        Stack(("idle", "wait (threading.py:9)"), 0, 5_000_000),
    ),
    5.0,
    "samples of the process itself",
)


def _spins(stop):
    while not stop.is_set():
        sum(range(1000))


@pytest.fixture
def threads():
    """A thread that works, and one that waits."""
    stop = threading.Event()
    made = [
        threading.Thread(target=_spins, args=(stop,), name="spins"),
        threading.Thread(target=stop.wait, name="waits"),
    ]
    for each in made:
        each.start()
    yield
    stop.set()
    for each in made:
        each.join()


@pytest.fixture
def no_spy(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)


def test_a_thread_that_works_has_the_time_where_it_works_and_one_that_waits_has_none(threads, no_spy):
    found = {stack.frames[0]: stack for stack in sample_stacks(0.3).stacks}
    assert any(frame.startswith("_spins (tests/rest/test_flame_graph.py:") for frame in found["spins"].frames)
    busy = sum(stack.busy_us for stack in sample_stacks(0.3).stacks if stack.frames[0] == "spins")
    assert busy > 10_000
    waits = found["waits"]
    assert waits.waiting_us > 100 * waits.busy_us and waits.frames[-1].startswith("Condition.wait (")


@pytest.mark.parametrize("says", ["exit 1", "echo no permission >&2; exit 1", "true"])
def test_a_py_spy_that_cannot_look_is_told_and_does_not_matter(tmp_path, monkeypatch, says, threads):
    spy = tmp_path / "py-spy"
    spy.write_text(f"#!/bin/sh\n{says}\n")
    spy.chmod(0o755)
    monkeypatch.setattr(shutil, "which", lambda *_, **__: str(spy))
    sample = sample_stacks(0.1)
    assert sample.note.startswith("py-spy could not look at this process: ")
    assert ("no permission" in sample.note) is ("permission" in says)
    assert "spins" in {stack.frames[0] for stack in sample.stacks}


def test_what_py_spy_writes_is_read_without_the_words_of_processes():
    line = (
        'process 7:"/usr/bin/python -m engine --token secret";process 9:"python "a";b;c";thread (11): call;f (a.py) 50'
    )
    assert stack_sampler._spied(line, 100) == Stack(("process 9", "call", "f (a.py)"), 500_000)
    assert stack_sampler._spied('process 7:"python";thread (0x7F): task 1;run (a.py) 1', 100).frames == (
        "task 1",
        "run (a.py)",
    )
    assert stack_sampler._spied('process 7:"python";thread (12);run (a.py) 1', 100).frames[0] == "thread 12"


def test_a_frame_is_as_wide_as_its_share_and_lies_within_its_caller():
    drawn = flame_graph([(stack.frames, stack.busy_us) for stack in SAMPLE.stacks if stack.busy_us], "time")
    boxes = {}
    pattern = r'<svg class="\w+" x="([\d.]+)%" y="(\d+)" width="([\d.]+)%" height="18"><title>(.*?): '
    for x, y, width, title in re.findall(pattern, drawn):
        boxes[int(y) // 18, title] = (float(x), float(width))
    assert boxes[0, "all"] == (0, 100)
    assert boxes[1, "task 1"] == (0, 90) and boxes[1, "task &lt;2&gt;"] == (90, 10)
    assert boxes[3, "score (job.py:12)"] == (0, 70)
    assert "idle" not in drawn


def test_frames_too_narrow_to_be_seen_are_left_out_and_deep_stacks_end():
    stacks = [(("t", f"f{number}"), 1) for number in range(5000)] + [(("t", *map(str, range(300))), 5000)]
    drawn = flame_graph(stacks, "time")
    assert drawn.count("<rect") < 70 and len(drawn) < 30_000


def test_the_page_has_both_times_its_notes_and_no_script():
    page = flame_graph_page("TaskManager 1", "/taskmanagers/1", SAMPLE)
    shown = Outline(page).text
    assert "<script" not in page and "Processes of Python functions are not in it" in page
    assert "score (job.py:12)" in shown and "Waiting" in page and 'href="/taskmanagers/1/page"' in page
    assert "Nothing ran." in flame_graph_page("a", "/a", StackSample((), 1.0))


def test_other_tools_read_the_stacks():
    assert folded_text(SAMPLE).splitlines()[0] == "task 1;run (engine/task.py:1);score (job.py:12) 700000"
    assert len(folded_text(SAMPLE).splitlines()) == 3


def test_a_task_manager_and_the_job_manager_are_looked_at_and_callers_share_a_sample(no_spy):
    async def body(world):
        resource_id = world.cluster.task_executors[0].resource_id
        for base in (f"/taskmanagers/{resource_id}", "/jobmanager"):
            async with world.session.get(f"{base}/flame-graph?seconds=0.2") as response:
                page = await response.text()
                assert response.status == 200, page
                assert response.headers["Content-Security-Policy"].startswith("default-src 'none'")
            assert "On a processor" in page and "by samples of the process itself" in page
            assert f'href="{base}/page"' in page
            assert f"{base}/flame-graph" in await world.get(f"{base}/page")
        folded = await world.get("/jobmanager/flame-graph?seconds=0.2&format=folded")
        assert all(re.fullmatch(r".+ \d+", line) for line in folded.splitlines())
        for wrong in ("seconds=31", "seconds=x", "format=xml&seconds=0.1"):
            await world.get(f"/jobmanager/flame-graph?{wrong}", 400)
        await world.get("/taskmanagers/ffff/flame-graph", 404)

    scenario(body)


def test_the_read_token_does_not_open_what_needs_more_than_the_role_to_read():
    token = b"a token of the tests, 32 bytes!!"
    with served(bind_host="0.0.0.0", readers=ReadAccess(token)) as far:
        given = {"Authorization": f"Bearer {token.decode()}"}
        assert far.ask("GET", "/open/a", headers=given, signed=False)[0] == 200
        assert far.ask("GET", "/for-submit", headers=given, signed=False)[0] == 401
        assert far.ask("GET", "/for-submit")[0] == 200, "the secret opens it"
