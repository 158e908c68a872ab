"""Rows batch by batch group by group against a dict, and the runs that are left of them."""

import itertools
import random

import pyarrow as pa
import pytest

from engine.window.grouped_rows import RUN_ROWS_MIN, GroupedBatch, GroupedRows

SCHEMA = pa.schema({"a": pa.int64(), "b": pa.string(), "row": pa.int32()})


def batch(groups, rows, first=0, seed=1):
    rng = random.Random(seed)
    numbers = [rng.randrange(groups) for _ in range(rows)]
    keys = [None if number == 1 else number for number in numbers], [f"key {number % 7}" for number in numbers]
    return pa.RecordBatch.from_arrays([pa.array(each) for each in (*keys, range(first, first + rows))], schema=SCHEMA)


def groups_of(batches):
    found = {}
    for row in itertools.chain.from_iterable(each.to_pylist() for each in batches):
        found.setdefault((row["a"], row["b"]), []).append(row["row"])
    return found


def held(batches):
    rows = GroupedRows()
    for each in batches:
        rows.add(GroupedBatch.of(each, 2))
    return rows


@pytest.mark.parametrize("groups", [1, 3, 60, 5000])
def test_runs_are_the_rows_of_their_groups_as_they_came(groups):
    batches = [batch(groups, rows, first, rows) for first, rows in ((0, 900), (900, 1), (901, 50), (951, 1000))]
    rows, wanted = held(batches), groups_of(batches)
    runs = rows.runs()
    assert rows.row_count == 1951
    assert list(zip(*(key.to_pylist() for key in runs.keys), strict=True)) == list(wanted)
    numbers, starts = rows.column(0).to_pylist(), runs.starts.to_pylist()
    order, bounds = runs.order.to_pylist(), runs.bounds.to_pylist()
    found = [
        [number for run in order[begin:end] for number in numbers[starts[run] : starts[run + 1]]]
        for begin, end in itertools.pairwise(bounds)
    ]
    assert found == list(wanted.values())
    everything, order, bounds = rows.in_order(runs)
    numbers = everything.column("row").take(order).to_pylist()
    assert [numbers[begin:end] for begin, end in itertools.pairwise(bounds.to_pylist())] == list(wanted.values())
    assert rows.row_count == 0


def test_rows_come_back_with_their_keys():
    batches = [batch(9, 300), batch(2, 30, 300)]
    rows = held([batches[0].slice(10), batches[1]])
    back = list(rows.taken())
    assert [each.schema for each in back] == [SCHEMA] * 2
    assert groups_of(back) == groups_of([batches[0].slice(10), batches[1]])
    assert list(rows.taken()) == [] and rows.row_count == 0


def test_runs_are_long_while_groups_are_few():
    rows = held([batch(10, 10 * RUN_ROWS_MIN), batch(1, 100)])
    assert rows.are_long
    for number in range(2):
        rows.add(GroupedBatch.of(batch(10**6, 100, seed=number), 2))
    assert not rows.are_long
