"""The profile of a job: what was expected beside what happened, and what the time of attempts went into."""

from __future__ import annotations

import json
import time

import msgspec
import pyarrow as pa
import pytest
from msgspec.structs import replace

from engine import Environment, col, sum_, udf
from engine.gateways.job_details import InputDetails
from engine.graph.deployment import TaskCounters
from engine.ids import JobId
from engine.profile.job_profile import AttemptProfile, JobProfile
from engine.profile.profile_making import profile_of
from engine.profile.spreads import spread_of
from engine.profile.time_parts import own_ms, time_parts
from tests.profile.profiles import large_job, profile_of_run
from tests.rest.details import attempt, job


def test_a_run_has_what_was_expected_beside_what_happened():
    facts = pa.table({"k": [k % 1000 for k in range(50_000)], "v": [1.0] * 50_000})
    with Environment(config={"parallelism.default": 2}) as env:
        profile = profile_of_run(env.from_arrow(facts).filter(col("k") < 500).group_by("k").agg(s=sum_("v")))
    operators = [operator for vertex in profile.vertices for operator in vertex.operators]
    (scan,) = [each for each in operators if each.kind == "source"]
    (kept,) = [each for each in operators if each.kind == "filter"]
    assert (scan.expected_rows, scan.rows_out, kept.rows_out) == (50_000, 50_000, 25_000)
    assert 0 < kept.expected_rows < 50_000 and kept.origin
    assert profile.state == "FINISHED" and profile.has_ended and profile.causes
    for vertex in profile.vertices:
        assert {each.subtask for each in vertex.attempts} == set(range(vertex.parallelism))
        assert all(each.ready_ms <= each.scheduled_ms <= each.end_ms <= profile.duration_ms for each in vertex.attempts)
    (edge,) = profile.vertices[1].inputs[:1]
    assert edge.rows == sum(each.rows_out for each in profile.vertices[edge.source].current) > 0


def test_a_function_is_known_with_its_place():
    def slow(row):
        return {"n": row.n + 1}

    with Environment(config={"parallelism.default": 1}) as env:
        data = env.from_arrow(pa.table({"n": list(range(100))})).map(slow, schema=pa.schema({"n": "int64"}))
        profile = profile_of_run(data)
    (called,) = [each for vertex in profile.vertices for each in vertex.operators if each.kind == "python"]
    assert "slow" in called.function and called.file == __file__
    assert called.line == slow.__code__.co_firstlineno
    assert not called.takes_batches and called.opening_ms_most < 50


def test_the_time_that_a_function_is_opened_is_known():
    @udf(pa.int64(), batch="numpy", setup=lambda: time.sleep(0.1))
    def score(model, n):
        return n + 1

    with Environment(config={"parallelism.default": 1}) as env:
        data = env.from_arrow(pa.table({"n": list(range(100))})).with_columns(m=score(col("n")))
        profile = profile_of_run(data)
    (called,) = [each for vertex in profile.vertices for each in vertex.operators if each.kind == "python"]
    assert called.takes_batches and called.opening_ms_most >= 100


def test_the_document_has_no_defaults_and_is_read_by_a_release_that_knows_less_or_more():
    profile = profile_of(job(), 11_000)
    document = json.loads(msgspec.json.encode(profile))
    assert msgspec.convert(document, JobProfile) == profile
    assert "spilled_bytes" not in document["vertices"][1]["attempts"][0]
    assert msgspec.convert({**document, "of_tomorrow": 1}, JobProfile) == profile


def test_earlier_attempts_are_there_and_the_latest_ones_count():
    join = profile_of(job(), 11_000).vertices[1]
    assert [(each.subtask, each.attempt) for each in join.attempts] == [(0, 0), (1, 0), (1, 1)]
    assert {(each.subtask, each.attempt) for each in join.current} == {(0, 0), (1, 1)}
    assert join.attempts[1].failure.startswith("ValueError") and spread_of(join, "rows in").most == 4


def test_a_subtask_is_ready_when_the_stored_results_that_it_reads_are_finished():
    details = job()
    scan, join = details.vertices
    assert profile_of(details, 11_000).vertices[1].attempts[0].ready_ms == 5000 - 900
    again = profile_of(details, 11_000).vertices[1].attempts[2]
    assert again.ready_ms == 5000 - 900, "after the attempt before it has failed"
    piped = replace(join, inputs=(InputDetails(scan.id, "HASH", "PIPELINED"),))
    assert profile_of(replace(details, vertices=(scan, piped)), 11_000).vertices[1].attempts[0].ready_ms == 0


def test_the_times_of_a_restart_are_those_of_the_attempt_that_it_made():
    details = job()
    scan, join = details.vertices
    subtasks = tuple(
        replace(each, timestamps_ms={**each.timestamps_ms, "CREATED": 6000, "SCHEDULED": 6500})
        if each.attempt
        else each
        for each in join.subtasks
    )
    again = profile_of(replace(details, vertices=(scan, replace(join, subtasks=subtasks))), 11_000).vertices[1].attempts
    assert (again[2].ready_ms, again[2].created_ms, again[2].scheduled_ms) == (5000 - 900, 6000 - 900, 6500 - 900)
    assert again[0].created_ms == -1


@pytest.mark.parametrize(
    ("numbers", "parts"),
    [
        ({}, {"slot": 100, "start": 50, "work": 850}),
        ({"input_ms": 300, "buffers_ms": 200}, {"slot": 100, "start": 50, "input": 300, "buffers": 200, "work": 350}),
        ({"cpu_ms": 500, "runnable_ms": 250}, {"slot": 100, "start": 50, "work": 500, "processor": 250, "disk": 100}),
        ({"cpu_ms": 500, "requests": 9}, {"slot": 100, "start": 50, "work": 500, "store": 350}),
        ({"cpu_ms": 500, "spilled_bytes": 9}, {"slot": 100, "start": 50, "work": 500, "spill": 350}),
        ({"cpu_ms": 100, "function_ms": 700}, {"slot": 100, "start": 50, "function": 700, "disk": 150}),
        ({"input_ms": 5000}, {"slot": 100, "start": 50, "input": 850}),
    ],
)
def test_the_parts_of_an_attempt_add_up_to_its_time(numbers, parts):
    made = AttemptProfile(0, "FINISHED", ready_ms=0, scheduled_ms=100, running_ms=150, end_ms=1000, **numbers)
    assert time_parts(made, 2000) == parts and sum(parts.values()) == 1000
    waits = numbers.get("input_ms", 0) + numbers.get("buffers_ms", 0)
    assert own_ms(made, 2000) == max(0, 850 - waits)


def test_an_attempt_that_runs_lasts_until_now_and_one_without_a_slot_waits_until_now():
    running = AttemptProfile(0, "RUNNING", ready_ms=0, scheduled_ms=100, running_ms=150)
    assert sum(time_parts(running, 700).values()) == 700
    assert time_parts(AttemptProfile(0, "CREATED", ready_ms=40), 700) == {"slot": 660}
    assert time_parts(AttemptProfile(0, "CREATED", 1, ready_ms=40, created_ms=640), 700) == {"pause": 600, "slot": 60}


def test_a_number_is_uneven_when_its_largest_is_more_than_three_times_the_median_and_large():
    scan, join = job().vertices

    def uneven(*rows):
        subtasks = tuple(replace(attempt(at, "FINISHED"), counters=TaskCounters(n)) for at, n in enumerate(rows))
        made = replace(job(), vertices=(scan, replace(join, subtasks=subtasks, prior=())))
        return spread_of(profile_of(made, 11_000).vertices[1], "rows in")

    spread = uneven(1000, 17_000, 900, 1100)
    assert spread.is_uneven and (spread.least, spread.median, spread.most, spread.subtask) == (900, 1000, 17_000, 1)
    assert not uneven(1000, 3000, 1000).is_uneven and not uneven(1, 90, 1).is_uneven and not uneven(5000).is_uneven
    assert uneven(0, 0, 5000).is_uneven
    assert uneven(1000, 9000).is_uneven, "one of two"


def test_the_jobs_of_an_environment_are_known_by_their_ids():
    assert profile_of(large_job(2, 3), 200_000).job_id == JobId("ef" * 16).value
