"""Window functions over sorted batches against DuckDB: functions x frames x keys x nulls x ties x batches x memory."""

import random

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.graph.sort_key import SortKey
from engine.graph.window import RUNNING_FRAME, WHOLE_FRAME, WindowCall, WindowFrame
from engine.window.evaluator import WindowEvaluator
from tests.window.duckdb_windows import differences, sorted_by, table_of, windows_of

AGGREGATES = ("count", "sum", "avg", "min", "max", "stddev", "variance")
VALUES = ("first_value", "last_value")


def numbers(seed, rows, spread=6, partitions=3):
    rng = random.Random(seed)
    keys = [rng.choice([None, *range(partitions)]) for _ in range(rows)]
    days = [rng.choice([None, *range(spread)]) for _ in range(rows)]
    return pa.table(
        {
            "k": pa.array(keys, pa.int32()),
            "d": pa.array(days, pa.int64()),
            "x": pa.array([rng.choice([None, *range(-20, 20)]) for _ in range(rows)], pa.int16()),
            "f": pa.array([rng.choice([None, 0.5, -1.25, 3.0, 1e6]) for _ in range(rows)], pa.float64()),
            "s": pa.array([rng.choice([None, "", "a", "ab", "zebra", "ü"]) for _ in range(rows)], pa.string()),
            "id": pa.array(range(rows), pa.int64()),
        }
    )


def evaluated(workshop, table, partition_by, order_by, calls, batch_rows=7, budget=1 << 20, force_spill=False):
    """What the evaluator gives for a table, sorted and cut into batches."""
    ordered = sorted_by(table, partition_by, order_by)
    with workshop.operator(4) as (_, space):
        evaluator = WindowEvaluator(table.schema, partition_by, order_by, calls, budget, space, force_spill=force_spill)
        batches = []
        for batch in ordered.combine_chunks().to_batches(batch_rows):
            batches += evaluator.add(batch)
        batches += evaluator.finish()
        evaluator.close()
        spilled = space.spilled_bytes
    return table_of(batches, evaluator.schema), spilled


def check(workshop, table, partition_by, order_by, calls, batch_rows=(7,), **how):
    """Compare with DuckDB for each size of batches; return the bytes spilled in the last one."""
    wanted = windows_of(table, partition_by, order_by, calls)
    for rows in batch_rows:
        found, spilled = evaluated(workshop, table, partition_by, order_by, calls, rows, **how)
        assert found.schema.names == [*table.schema.names, *(call.name for call in calls)]
        assert differences(found, wanted, calls) == []
    return spilled


def rankings(order_count):
    names = ("row_number", "rank", "dense_rank", "percent_rank", "cume_dist")
    calls = [WindowCall(name, None, name, order_count=order_count) for name in names]
    calls += [WindowCall("ntile", None, f"ntile{n}", order_count=order_count, count=n) for n in (1, 3, 100)]
    for name in ("lag", "lead"):
        for n in (0, 1, 3, 1000):
            calls.append(WindowCall(name, "s", f"{name}{n}", count=n))
        calls.append(WindowCall(name, "d", f"{name}_default", count=2, default="id"))
    return calls


def over_frame(frame, order_count, column="x"):
    calls = [WindowCall(name, column, name, frame, order_count) for name in AGGREGATES]
    calls += [WindowCall("count_all", None, "rows", frame, order_count)]
    calls += [WindowCall("min", "s", "least_text", frame, order_count)]
    calls += [WindowCall("max", "s", "greatest_text", frame, order_count)]
    return calls


def values_of(frame, order_count, column="x"):
    """Calls that take the value of one row: the order must say which."""
    calls = [WindowCall(name, column, name, frame, order_count) for name in VALUES]
    return calls + [WindowCall("nth_value", column, f"nth{n}", frame, order_count, n) for n in (1, 2, 5)]


KEYS = (SortKey("d"), SortKey("id"))
FRAMES = [
    RUNNING_FRAME,
    WHOLE_FRAME,
    WindowFrame("range", 0, None),
    WindowFrame("range", 0, 0),
    *(
        WindowFrame("rows", start, end)
        for start, end in [
            (None, 0), (None, None), (0, None), (0, 0), (-2, 0), (-2, 2), (1, 3), (-3, -1), (None, -2), (None, 3),
            (2, None), (-1000, 0), (0, 1000), (-5, None),
        ]
    ),
]  # fmt: skip


SIZES = (1, 2, 7, 49, 100)


@pytest.mark.parametrize("partition_by", [["k"], [], ["k", "s"]], ids=str)
@pytest.mark.parametrize("force_spill", [False, True])
def test_rankings_and_shifts_agree_with_duckdb(workshop, partition_by, force_spill):
    check(workshop, numbers(1, 120), partition_by, KEYS, rankings(1), SIZES, force_spill=force_spill)


@pytest.mark.sample("pairs")
@pytest.mark.parametrize("frame", FRAMES, ids=str)
@pytest.mark.parametrize("force_spill", [False, True])
@pytest.mark.parametrize(("partition_by", "column"), [(["k"], "x"), ([], "f"), (["k"], "f")], ids=str)
def test_frames_agree_with_duckdb(workshop, frame, force_spill, partition_by, column):
    calls = [*over_frame(frame, 1, column), *values_of(frame, 2, column)]
    check(workshop, numbers(2, 120), partition_by, KEYS, calls, (1, 49), force_spill=force_spill)


RANGES = [(-2, 0), (None, -1), (0, 2), (1, 2), (-3, -1), (-1, None), (None, 2), (3, None), (-100, 100)]


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("nulls_last", [False, True])
@pytest.mark.parametrize("bounds", RANGES, ids=str)
def test_ranges_agree_with_duckdb(workshop, descending, nulls_last, bounds):
    table = numbers(3, 200, spread=15)
    keys = (SortKey("d", descending, nulls_last),)
    frame = WindowFrame("range", *bounds)
    check(workshop, table, ["k"], keys, over_frame(frame, 1), (1, 49), force_spill=descending)


def test_calls_with_a_part_of_the_order_share_it(workshop):
    table = numbers(4, 120, spread=3)
    keys = (SortKey("d", True), SortKey("x"), SortKey("id"))
    calls = []
    for count in range(4):
        named = [*rankings(count), *over_frame(RUNNING_FRAME, count)]
        calls += [WindowCall(c.function, c.argument, f"{c.name}_{count}", c.frame, count, c.count, c.default)
                  for c in named]  # fmt: skip
    check(workshop, table, ["k"], keys, calls)


def test_one_partition_far_beyond_the_budget_is_spilled_and_right(workshop):
    table = numbers(5, 20_000, spread=50)
    calls = [*rankings(1), *over_frame(WHOLE_FRAME, 0), *(
        WindowCall(c.function, c.argument, f"slide_{c.name}", c.frame, 0, c.count)
        for c in over_frame(WindowFrame("rows", -3_000, 2_000), 0)
    )]  # fmt: skip
    spilled = check(workshop, table, [], KEYS, calls, (200,), budget=20_000)
    assert spilled > 200_000


frames = st.tuples(
    st.sampled_from(["rows", "range"]),
    st.one_of(st.none(), st.integers(-6, 6)),
    st.one_of(st.none(), st.integers(-6, 6)),
).filter(lambda frame: frame[1] is None or frame[2] is None or frame[1] <= frame[2])


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_frame_agrees_with_duckdb(workshop, data):
    rows = data.draw(st.integers(1, 60))
    table = numbers(data.draw(st.integers(0, 1000)), rows, spread=data.draw(st.integers(1, 12)))
    frame = WindowFrame(*data.draw(frames))
    key = SortKey("d", data.draw(st.booleans()), data.draw(st.booleans()))
    keys = (key, SortKey("id")) if frame.kind == "rows" else (key,)
    calls = over_frame(frame, 1, data.draw(st.sampled_from(["x", "f"])))
    if frame.kind == "rows":  # else nobody knows which of equal rows is the first
        calls += values_of(frame, 2)
    partition_by = data.draw(st.sampled_from([[], ["k"], ["s"], ["k", "s"]]))
    check(workshop, table, partition_by, keys, calls,
          (data.draw(st.sampled_from([1, 2, 7, 49])),), force_spill=data.draw(st.booleans()))  # fmt: skip
