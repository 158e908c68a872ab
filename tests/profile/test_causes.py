"""The rules that name a cause: a document of a job for each, and one like it in which the cause is not there."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from engine.profile.cause_rules import off_by
from engine.profile.causes import causes_of, with_causes
from engine.profile.job_profile import (
    AttemptProfile,
    EdgeProfile,
    FailureProfile,
    JobProfile,
    OperatorProfile,
    StoreProfile,
    VertexProfile,
)
from engine.profile.spreads import with_spreads
from engine.profile.wait_rules import length, most_at_once

END_MS = 58_000
MANAGER = "cd" * 16


def attempts(*numbers, **same):
    """Return an attempt of each subtask that ran from the start to the end, or as its numbers say."""
    ran = {"scheduled_ms": 0, "running_ms": 0, "ready_ms": 0, "end_ms": END_MS, "task_manager": 0}
    return tuple(AttemptProfile(index, "FINISHED", **{**ran, **same, **each}) for index, each in enumerate(numbers))


def vertex(operators, made, **fields):
    name = " -> ".join(operator.name for operator in operators)
    return VertexProfile(name, "FINISHED", len({each.subtask for each in made}), 0, END_MS,
                         operators=tuple(operators), attempts=tuple(made), **fields)  # fmt: skip


def job(*vertices, **fields):
    listed = tuple(with_spreads(each, END_MS) for each in vertices)
    made = JobProfile(
        "ab" * 16, "job", "FINISHED", 0, END_MS, has_ended=True, vertices=listed, task_managers=(MANAGER,)
    )
    return with_causes(replace(made, **fields))


def skewed(most_rows=5_100_000, **fields):
    group = OperatorProfile("group by customer", "aggregate", keys=("customer",), rows_in=6_000_000, time_ms=60_000,
                            heavy=(("42", 0.85), ("7", 0.01)), **fields)  # fmt: skip
    light = {"rows_in": 300_000, "end_ms": 10_000}
    return job(vertex([group], attempts(light, {"rows_in": most_rows}, light, light)))


def test_a_subtask_with_too_many_rows_is_named_with_its_key():
    (cause, *_) = skewed().causes
    assert cause.kind == "skew" and cause.vertex == 0
    assert cause.text == "group by customer: subtask 2 of 4 has 17 times the rows (key 42: 5.1 M); 48.0 s of 58.0 s"


def test_a_key_is_not_named_when_its_rows_are_spread_or_not_as_many():
    assert "(5.1 M)" in skewed(spread=("42",)).causes[0].text
    assert "(2.0 M)" in skewed(most_rows=2_000_000).causes[0].text
    assert "skew" not in {cause.kind for cause in skewed(most_rows=600_000).causes}


def test_a_slow_function_is_named_with_its_line():
    scan = OperatorProfile("scan", "source", time_ms=1000)
    called = OperatorProfile("map", "python", rows_in=1000, time_ms_most=52_780, time_ms=52_780,
                             function="slow_risk_score", file="/home/me/risk.py", line=12)  # fmt: skip
    made = attempts({"function_ms": 52_780, "cpu_ms": 5000})
    (cause, *_) = job(vertex([scan, called], made)).causes
    assert cause.text == "slow_risk_score takes 91% of the time (risk.py, line 12): 1 000 rows; 52.8 s of 58.0 s"
    fast = replace(called, time_ms_most=1000, time_ms=1000)
    assert "slow function" not in {each.kind for each in job(vertex([scan, fast], made)).causes}


@pytest.mark.parametrize(
    ("numbers", "advice"),
    [
        ({"function_ms": 52_000}, "Write it as expressions, or as a function of whole batches"),
        ({"function_ms": 52_000, "takes_batches": True}, "It is given whole batches already"),
        ({"function_ms": 3000, "takes_batches": True}, "It waits more than it computes: an async function"),
        (
            {"function_ms": 3000, "opening_ms_most": 48_000},
            "48.0 s of it is its setup= or open(), once in each subtask",
        ),
        ({}, "Write it as expressions, or as a function of whole batches"),
    ],
)
def test_the_advice_for_a_slow_function_fits_what_it_does(numbers, advice):
    called = OperatorProfile("map", "python", rows_in=1000, time_ms_most=52_780, time_ms=52_780, **numbers)
    (cause, *_) = job(vertex([called], attempts({"function_ms": 52_780, "cpu_ms": 5000}))).causes
    assert cause.kind == "slow function" and cause.advice.startswith(advice)


def test_spilling_is_told_with_the_memory_that_would_avoid_it():
    sort = OperatorProfile("sort by k", "sort", bytes_in=1_000_000_000, spilled_bytes=3_000_000_000, time_ms=58_000,
                           time_ms_most=58_000, spilled_raw_bytes_most=426_000_000)  # fmt: skip
    (cause, *_) = job(vertex([sort], attempts({"spilled_bytes": 3_000_000_000}))).causes
    assert cause.kind == "spilling"
    assert cause.text.startswith("sort by k spilled 3 times its input (3 GB): 512 MB more memory in each slot would")
    little = replace(sort, spilled_bytes=1000)
    assert "spilling" not in {each.kind for each in job(vertex([little], attempts({"spilled_bytes": 1000}))).causes}


def test_a_bad_estimate_is_told_where_it_begins():
    kept = OperatorProfile("filter x = 3", "filter", expected_rows=5_000, rows_out=2_000_000, origin="guess")
    after = OperatorProfile("project", "project", expected_rows=5_000, rows_out=2_000_000)
    causes = job(vertex([kept, after], attempts({}))).causes
    (cause,) = [each for each in causes if each.kind == "bad estimate"]
    assert cause.text == "estimate off by 400 at filter x = 3: 5 000 rows expected (guess), 2.0 M came"
    for fine in (replace(kept, expected_rows=300_000), replace(kept, expected_rows=-1), replace(kept, rows_out=7)):
        assert "bad estimate" not in {each.kind for each in job(vertex([fine], attempts({}))).causes}


def test_rows_that_were_not_wanted_any_more_are_no_bad_estimate():
    scan = OperatorProfile("scan", "source", expected_rows=9e9, rows_out=100_000)
    limit = OperatorProfile("limit 10", "limit", expected_rows=10, rows_out=10)
    assert "bad estimate" in {each.kind for each in job(vertex([scan], attempts({}))).causes}
    assert "bad estimate" not in {each.kind for each in job(vertex([scan, limit], attempts({}))).causes}


def test_rows_without_a_partner_that_a_scan_drops_are_no_bad_estimate():
    scan = OperatorProfile("scan", "source", expected_rows=800_000, rows_out=42_000, filtered_rows=750_000)
    assert "bad estimate" not in {each.kind for each in job(vertex([scan], attempts({}))).causes}
    few = replace(scan, filtered_rows=7)
    assert "bad estimate" in {each.kind for each in job(vertex([few], attempts({}))).causes}


@pytest.mark.parametrize(("requests", "kind"), [(0, "slow disk"), (12_000, "slow store")])
def test_a_source_that_waits_is_told_with_its_disk_or_store(requests, kind):
    scan = OperatorProfile("scan orders", "source", rows_out=9, bytes_out=1_000_000_000, file_bytes=1_200_000_000)
    made = attempts({"cpu_ms": 10_000, "requests": requests})
    stores = (StoreProfile("s3://sales", 12_000, 96_000_000),) if requests else ()
    (cause, *_) = job(vertex([scan], made), stores=stores).causes
    assert cause.kind == kind and "scan orders waits for" in cause.text and "48.0 s of 58.0 s" in cause.text
    told = "s3://sales: 48.0 s of 58.0 s, 12 000 requests of 8 KB" if requests else "for 1.2 GB, 25 MB a second"
    assert told in cause.text
    busy = job(vertex([scan], attempts({"cpu_ms": 57_000, "requests": requests})))
    assert kind not in {each.kind for each in busy.causes}


def test_a_job_of_which_nothing_ran_has_waited_for_slots():
    scan = OperatorProfile("scan", "source")
    (cause, *_) = job(vertex([scan], attempts({"scheduled_ms": 40_000, "running_ms": 40_000}))).causes
    assert (cause.kind, cause.text) == ("slots", "waited for slots: nothing of it ran for 40.0 s of 58.0 s")
    (cause,) = job(waiting="place 2 of 3").causes
    assert cause.kind == "slots" and "place 2 of 3" in cause.text
    assert "slots" not in {each.kind for each in job(vertex([scan], attempts({}))).causes}


def test_a_small_job_that_takes_free_slots_has_not_waited_for_them():
    scan = OperatorProfile("scan", "source")
    made = attempts({"scheduled_ms": 40, "running_ms": 50, "end_ms": 130})
    (cause,) = job(vertex([scan], made), duration_ms=130).causes
    assert cause.kind == "longest"


def test_subtasks_that_run_in_turns_have_waited_for_slots():
    scan = OperatorProfile("scan", "source")
    turns = [{"scheduled_ms": at, "running_ms": at, "end_ms": at + 29_000} for at in (0, 0, 29_000, 29_000)]
    (cause, *_) = job(vertex([scan], attempts(*turns))).causes
    assert cause.text.startswith(
        "waited for slots: 4 subtasks of scan had at most 2 at a time; the last one waited 29.0 s"
    )


def test_a_lost_task_manager_is_told_with_what_had_to_be_made_again():
    scan = OperatorProfile("scan", "source")
    made = (
        AttemptProfile(0, "FAILED", 0, 0, 0, 0, 0, 0, 30_000),
        AttemptProfile(0, "FINISHED", 1, 0, 30_000, 31_000, 31_000, 31_000, END_MS),
    )
    lost = FailureProfile(30_000, "TaskExecutorLostError", "no heartbeat for 3 s", "scan (1/1)", MANAGER)
    (cause, *_) = job(vertex([scan], made), failures=(lost,)).causes
    assert cause.kind == "restarts"
    assert cause.text == "TaskManager cdcdcdcd was lost: 1 attempt of tasks had to be made again; 31.0 s of 58.0 s"
    other = replace(lost, type_name="OSError", message="disk")
    assert "after OSError: disk" in job(vertex([scan], made), failures=(other,)).causes[0].text


def test_the_pause_before_a_restart_is_no_wait_for_slots():
    scan = OperatorProfile("scan", "source")
    made = (
        AttemptProfile(0, "FAILED", 0, 0, 0, 0, 0, 0, 30_000),
        AttemptProfile(0, "FINISHED", 1, 0, 30_000, 41_000, 41_000, 41_000, END_MS, created_ms=40_000),
    )
    found = job(vertex([scan], made), failures=(FailureProfile(30_000, "WorkerError", "killed", "scan (1/1)"),))
    assert found.vertices[0].parts["pause"] == 10_000 and found.vertices[0].parts["slot"] == 1000
    (cause,) = (each for each in found.causes if each.kind == "restarts")
    assert cause.text.endswith("; 41.0 s of 58.0 s, 10.0 s of it pauses of the restart strategy")
    (waited,) = (each.text for each in job(vertex([scan], (replace(made[1], created_ms=-1),))).causes[:1])
    assert waited == "waited for slots: nothing of it ran for 11.0 s of 58.0 s"
    assert not any("10.0 s" in each.text for each in found.causes if each.kind == "slots")


def test_tiny_files_are_counted():
    scan = OperatorProfile(
        "scan clicks", "source", time_ms=50_000, time_ms_most=50_000, files=12_000, file_bytes=48_000_000
    )
    (cause, *_) = job(vertex([scan], attempts({"cpu_ms": 20_000}))).causes
    assert cause.text == "scan clicks reads 12,000 tiny files of 4 KB each; 50.0 s of 58.0 s"
    large = replace(scan, file_bytes=10**12)
    assert "tiny files" not in {each.kind for each in job(vertex([large], attempts({}))).causes}


def test_a_cross_join_is_told_with_its_pairs():
    join = OperatorProfile("inner join", "cross", rows_out=1_000_000_000, time_ms=50_000, time_ms_most=50_000)
    sides = OperatorProfile("scan", "source", rows_out=31_600)
    edges = (EdgeProfile(0, "FORWARD", rows=31_600), EdgeProfile(1, "BROADCAST", rows=31_600))
    short = attempts({"end_ms": 100})
    made = job(vertex([sides], short), vertex([sides], short), vertex([join], attempts({}), inputs=edges))
    cause = made.causes[0]
    assert (cause.kind, cause.vertex) == ("cross join", 2)
    assert "every row meets every row (31 600 × 31 600), 1.0 G rows come out" in cause.text
    keyed = replace(join, kind="hash_join")
    assert "cross join" not in {each.kind for each in job(vertex([keyed], attempts({}))).causes}


def test_processors_that_were_busy_with_others_are_told():
    sort = OperatorProfile("sort by k", "sort", time_ms=58_000)
    (cause, *_) = job(vertex([sort], attempts({"cpu_ms": 10_000, "runnable_ms": 48_000}))).causes
    assert cause.text == "sort by k was ready and had no processor: 48.0 s of 58.0 s"


def test_a_failure_comes_before_all_else():
    failed = FailureProfile(57_000, "ValueError", "bad price\nin row 7", "map (1/4)", MANAGER)
    made = skewed()
    causes = causes_of(replace(made, state="FAILED", failures=(failed,)))
    assert [cause.kind for cause in causes][:2] == ["failure", "skew"]
    assert causes[0].text == "failed in map (1/4): ValueError: bad price"


def test_where_nothing_stands_out_the_longest_operator_is_named():
    scan = OperatorProfile("scan", "source", time_ms=1000)
    sort = OperatorProfile("sort by k", "sort", time_ms=57_000)
    (cause,) = job(vertex([scan, sort], attempts({"cpu_ms": END_MS}))).causes
    assert cause.kind == "longest"
    assert cause.text == "nothing stands out: sort by k took the longest, 58.0 s of 58.0 s (work)"
    assert job().causes == ()


@pytest.mark.parametrize(
    ("expected", "real", "ratio"), [(-1, 9, 1), (10, 10, 1), (5, 2000, 400), (2000, 5, 400), (0, 0, 1)]
)
def test_an_estimate_is_off_either_way(expected, real, ratio):
    assert off_by(expected, real) == ratio


def test_spans_of_time_are_added_up_once_and_counted_where_they_meet():
    spans = [(0, 10), (5, 20), (30, 40), (32, 33)]
    assert length(spans) == 30 and length(()) == 0
    assert most_at_once(spans) == 2 and most_at_once([(0, 5), (5, 9)]) == 1 and most_at_once(()) == 0


@pytest.mark.parametrize(
    ("state", "begins"), [("CANCELED", "cancelled after"), ("CANCELLING", "is being cancelled after")]
)
def test_a_cancelled_job_says_so_first_however_short_it_was(state, begins):
    made = attempts({}, {"end_ms": -1})
    told = job(vertex([OperatorProfile("scan", "source")], made), state=state, has_ended=state == "CANCELED")
    first, *_ = told.causes
    assert first.kind == "cancellation" and first.text == f"{begins} 58.0 s: 2 of 2 subtasks had finished"
    assert job(state=state, has_ended=state == "CANCELED", duration_ms=3).causes[0].kind == "cancellation"


def test_a_job_that_failed_at_once_says_so_first():
    failure = FailureProfile(0, "ValueError", "no such column")
    first, *_ = job(state="FAILED", duration_ms=2, failures=(failure,)).causes
    assert first.text == "failed: ValueError: no such column"
