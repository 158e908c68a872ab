"""Memory and spill over time: what real jobs record, and how it is drawn."""

from __future__ import annotations

import re

import msgspec
import pyarrow as pa
import pytest

from engine import Environment
from engine.gateways.memory_use import MemoryPoint
from engine.profile.job_profile import JobProfile
from engine.profile.memory_drawing import memory_drawing
from engine.profile.profile_page import profile_page
from tests.profile.profiles import profile_of_run

JOB = JobProfile("0" * 32, "job", "FINISHED", 0, 10_000)
POINTS = (
    MemoryPoint(2_000, 400, 100, 50, 0, 0, 400),
    MemoryPoint(6_000, 1_000, 500, 50, 100, 0, 600, 2),
    MemoryPoint(10_000, 800, 500, 0, 100, 7_000, 500, 2),
)


def drawn(*points):
    return memory_drawing(msgspec.structs.replace(JOB, memory=points))


def paths(text):
    """Return the points of each path by its class."""
    found = re.findall(r'<path d="M([^"]*?)Z?" class="(\w+)">', text)
    lines = {kind: path.split("L") for path, kind in found if kind != "tick"}
    return {kind: [tuple(map(float, each.split())) for each in places] for kind, places in lines.items()}


def test_the_line_is_all_memory_and_the_areas_lie_on_each_other():
    lines = paths(drawn(*POINTS))
    assert lines["resident"] == [(244.6, 84.0), (264.0, 84.0), (652.0, 18.0), (1040.0, 40.0)]
    height = {kind: [round(128 - y, 1) for _, y in lines[kind]][2:-1] for kind in ("managed", "arrow", "network")}
    assert height["managed"] == [11.0, 55.0, 55.0]
    assert height["arrow"] == [16.5, 60.5, 55.0], "on the managed memory"
    assert height["network"] == [16.5, 71.5, 66.0]
    assert lines["spilled"][1:-1][-1] == (1040.0, 144.0)


def test_the_pointer_finds_the_values_of_each_moment_without_a_script():
    found = re.findall(
        r'<rect x="([\d.]+)" y="18" width="([\d.]+)" height="176"><title>([^<]*)</title></rect>', drawn(*POINTS)
    )
    assert [(float(x), float(width)) for x, width, _ in found] == [(244.6, 19.4), (264.0, 388.0), (652.0, 388.0)]
    assert [told for *_, told in found] == [
        "2.0 s: 400 B, managed 100 B, Arrow 50 B",
        "6.0 s: 1 KB, managed 500 B, Arrow 50 B, network 100 B",
        "10.0 s: 800 B, managed 500 B, network 100 B, spilled 7 KB",
    ]


def test_the_legend_tells_peaks_and_the_largest_of_several_processes():
    text = drawn(*POINTS)
    assert "all of the processes, at most <b>1 KB</b> of 2 TaskManagers, most of one 600 B" in text, text
    assert "managed memory, at most <b>500 B</b>" in text and "spilled so far: <b>7 KB</b>" in text
    assert 'aria-label="memory over time, at most 1 KB; spilled 7 KB"' in text


def test_what_there_is_none_of_is_not_drawn():
    assert drawn() == "" and drawn(MemoryPoint(5)) == ""
    text = drawn(MemoryPoint(5_000, 100, 50), MemoryPoint(9_000, 100, 0))
    assert text.count("spilled") == 2 and "Arrow" not in text and "network" not in text


@pytest.mark.parametrize("managed", ["8mb", "2gb"])
def test_a_real_job_has_its_memory_and_spill_over_time(managed):
    numbers = pa.table({"n": [number * 7_919 % 1_000_003 for number in range(400_000)], "text": ["x" * 30] * 400_000})
    with Environment(config={"parallelism.default": 1, "taskmanager.memory.managed.size": managed}) as env:
        for times in (3, 9, 27):  # until it takes longer than the time between two reports
            job = profile_of_run(env.from_arrow(pa.concat_tables([numbers] * times)).sort("n"))
            if job.duration_ms > 600:
                break
    times = [point.time_ms for point in job.memory]
    assert times and times == sorted(times) and times[-1] <= job.duration_ms + 1000
    assert max(point.resident_bytes for point in job.memory) > 50 << 20
    spilled = sum(each.spilled_bytes for vertex in job.vertices for each in vertex.attempts)
    assert job.memory[-1].spilled_bytes == spilled and (spilled > 0) is (managed == "8mb")
    page = profile_page(job)
    assert "Memory and spill" in page and len(page) < 100_000
    assert msgspec.json.decode(msgspec.json.encode(job), type=JobProfile) == job
