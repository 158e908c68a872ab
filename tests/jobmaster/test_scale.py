"""Scheduling costs by subtasks, not by their square, and so does what is kept of them."""

import gc
import json
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest

from engine.jobmaster.job_status import JobStatus
from tests.jobmaster.scale_world import ScaleWorld

ROOT = Path(__file__).parents[2]


def calls_of(world):
    """Run a job; return how many functions were called for each subtask."""
    count = 0

    def note(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        world.run()
    finally:
        sys.setprofile(None)
    assert world.state.status is JobStatus.FINISHED
    return count / world.deployed


def test_calls_for_a_subtask_do_not_grow_with_the_job():
    small = calls_of(ScaleWorld(stages=3, width=50, executors=25, slots=4))
    assert calls_of(ScaleWorld(stages=3, width=400, executors=200, slots=4)) < 1.5 * small
    assert calls_of(ScaleWorld(stages=24, width=50, executors=25, slots=4)) < 1.5 * small
    assert calls_of(ScaleWorld(stages=3, width=400, executors=25, slots=4)) < 1.5 * small


def kept_bytes(world):
    """Run a job; return what is kept of each subtask at its end."""
    gc.collect()
    tracemalloc.start(1)
    try:
        world.run()
        gc.collect()
        return tracemalloc.get_traced_memory()[0] / world.deployed
    finally:
        tracemalloc.stop()


def test_what_is_kept_of_a_subtask_has_no_part_for_each_reader():
    small = kept_bytes(ScaleWorld(stages=8, width=50, executors=25, slots=4))
    large = kept_bytes(ScaleWorld(stages=8, width=400, executors=200, slots=4))
    assert large < 1.5 * small


def test_what_is_kept_of_a_subtask_is_a_kilobyte():
    assert kept_bytes(ScaleWorld(stages=24, width=100, executors=50, slots=4)) < 1000


@pytest.mark.thorough
def test_a_hundred_thousand_subtasks_on_a_thousand_task_executors_fit_in_eighty_megabytes_and_a_kilobyte_each():
    words = (sys.executable, "-m", "tests.jobmaster.scale_world", "100", "1000", "1000", "4")
    done = subprocess.run(words, capture_output=True, text=True, check=True, cwd=ROOT)
    told = json.loads(done.stdout)
    assert told["status"] == "FINISHED" and told["subtasks"] == 100_000
    assert told["peak_bytes"] < 80e6 + 1000 * told["subtasks"], told
