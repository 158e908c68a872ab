"""Rows as functions are given them: what is kept of them stays, what is let go is filled again."""

import gc
import sys
import weakref

import numpy as np
import pyarrow as pa
import pytest

from engine.errors import DataError
from engine.functions.group_rows import GROUP_START
from engine.functions.row import View
from engine.functions.row_appender import RowAppender
from engine.functions.row_loop import RowLoop
from engine.functions.row_reader import GroupedRows, RowReader, RowStream

SCHEMA = pa.schema([("n", pa.int64()), ("t", pa.string())])


def batch_of(numbers):
    return pa.record_batch([pa.array(numbers, pa.int64()), pa.array([f"t{n}" for n in numbers])], schema=SCHEMA)


def called(function, reader):
    """Call a function with each row of a reader; return what it gave."""
    appender = RowAppender(pa.schema([("x", pa.string())]), 1000)
    assert RowLoop(function, appender, "map").map(reader) is False
    return appender.finish().column(0).to_pylist()


def test_rows_that_are_kept_stay_as_they_were():
    kept = []
    called(lambda row: (kept.append(row) if row.n % 2 else None,), RowReader([batch_of(range(10))]))
    assert kept == [(n, f"t{n}") for n in range(1, 10, 2)]


def test_a_row_that_nobody_keeps_is_made_once():
    seen = set()
    called(lambda row: (seen.add(id(row)),), RowReader([batch_of(range(1000))]))
    assert len(seen) == 1


#: with every count of digits that an int has, and those that Python shares
NUMBERS = [n + d for n in (0, 256, 1 << 30, 1 << 31, 1 << 60, (1 << 63) - 2) for d in (-1, 0, 1)] + [-(1 << 63)]
FRACTIONS = [0.0, -0.0, 1.5, -2.25, 1e308, float("inf"), float("nan")]


@pytest.mark.parametrize(
    ("values", "data_type"),
    [
        (NUMBERS, pa.int64()),
        ([n for n in NUMBERS if abs(n) < 1 << 31], pa.int32()),
        (FRACTIONS, pa.float64()),
        ([None, *NUMBERS], pa.int64()),
        ([None, *FRACTIONS], pa.float64()),
    ],
)
def test_a_number_behind_any_other_is_what_it_is(values, data_type):
    pairs = pa.array([value for first in values for second in values for value in (first, second)], data_type)
    seen, reader = [], RowReader([pa.record_batch({"n": pairs})])
    called(lambda row: (seen.append(repr(row.n)) or "",), reader)
    assert seen == [repr(value) for value in pairs.to_pylist()]


@pytest.mark.parametrize("shown", [lambda n: n, lambda n: n / 2, lambda n: -n, lambda n: n + (1 << 40)])
def test_numbers_that_are_kept_stay_as_they_were(shown):
    values = [shown(n) for n in range(1000, 1100)]
    kept = [row.n for row in RowStream(iter([pa.record_batch({"n": values})])) if int(row.n) % 3 == 0]
    assert kept == [value for value in values if int(value) % 3 == 0]


def test_a_number_that_nobody_keeps_is_made_once():
    for values in (range(1000, 1900), [n + 0.5 for n in range(900)]):
        seen = set()
        called(lambda row, seen=seen: (seen.add(id(row.n)),), RowReader([pa.record_batch({"n": pa.array(values)})]))
        assert len(seen) == 1


def test_rows_take_turns_in_a_loop_that_holds_one():
    seen = set()
    for row in RowStream(iter([batch_of(range(1000))])):
        seen.add(id(row))
    assert len(seen) == 2


def test_rows_of_a_loop_that_keeps_some_stay_as_they_were():
    kept = [row for row in RowStream(iter([batch_of(range(20))])) if row.n % 3 == 0]
    assert kept == [(n, f"t{n}") for n in range(0, 20, 3)]


def test_a_very_wide_row_is_not_kept_for_being_filled_again():
    text = "x" * (9 << 20)
    stream = RowStream(iter([pa.record_batch({"n": [1, 2, 3], "t": [text, "b", "c"]})]))
    first = next(stream).t
    for row in stream:
        assert row.t != first
        if row.n == 3:
            assert sys.getrefcount(first) == 2


def test_a_hash_is_that_of_the_row_at_hand():
    found = set(called(lambda row: str(hash(row)), RowReader([batch_of(range(100))])))
    assert found == {str(hash((n, f"t{n}"))) for n in range(100)}


def test_values_come_as_arguments_where_no_row_is_wanted():
    assert called(lambda t: t * 2, RowReader([batch_of([1, 2])], [1], by_values=True)) == ["t1t1", "t2t2"]
    both = RowReader([batch_of([1, 2])], [1, 0], by_values=True)
    assert called(lambda t, n: t * n, both) == ["t1", "t2t2"]
    assert both.current == (2, "t2")


def test_the_current_row_is_whole_also_where_the_function_sees_a_part_of_it():
    reader = RowReader([batch_of([7, 8])], [0])
    assert reader.current is None

    def look(row):
        assert row._fields == ("n",)
        assert reader.current == (row.n, f"t{row.n}")
        assert reader.current is reader.current
        return (None,)

    called(look, reader)


def test_the_columns_are_let_go_with_the_last_row():
    values = np.zeros(2, np.int64)
    held = weakref.ref(values)
    column = pa.Array.from_buffers(pa.int64(), 2, [None, pa.py_buffer(values)])
    batches = [pa.record_batch([column], names=["n"])]
    stream = RowStream(batches.pop() for _ in range(1))
    del values, column
    next(stream)
    gc.collect()
    assert held() is not None
    next(stream)
    gc.collect()
    assert held() is None


def test_a_stream_goes_over_all_batches_and_remembers_what_ended_it():
    stream = RowStream(iter([batch_of([]), batch_of([1, 2]), batch_of([]), batch_of([3])]))
    assert [row.n for row in stream] == [1, 2, 3]
    assert list(stream) == []
    assert stream.error is None

    def failing():
        yield batch_of([1])
        raise MemoryError("no more")

    stream = RowStream(failing())
    with pytest.raises(MemoryError):
        list(stream)
    assert isinstance(stream.error, MemoryError)
    assert stream.current == (1, "t1")


def test_a_value_that_python_does_not_have_ends_a_stream():
    days = pa.array([0, 2**31 - 1], pa.int32()).view(pa.date32())
    stream = RowStream(iter([pa.record_batch([days], names=["day"])]))
    next(stream)
    with pytest.raises(DataError, match="'day'"):
        next(stream)
    assert isinstance(stream.error, DataError)


@pytest.mark.parametrize("sizes", [[10], [1] * 10, [3, 0, 4, 3]])
def test_groups_are_cut_where_the_marks_are_whatever_the_batches(sizes):
    starts = [1, 0, 0, 1, 1, 0, 0, 0, 1, 0]
    table = pa.table({"n": range(10), GROUP_START: pa.array(starts, pa.int8())})
    batches, begin = [], 0
    for size in sizes:
        batches.extend(table.slice(begin, size).to_batches() or [table.slice(0, 0).to_batches()])
        begin += size
    batches = [batch for batch in batches if isinstance(batch, pa.RecordBatch)]
    whole = GroupedRows(iter(batches), [View(("n",), (0,))], (GROUP_START,))
    found = []
    while whole.next_group():
        found.append([row.n for row in whole.rows(0, whole.number)])
    assert found == [[0, 1, 2], [3], [4, 5, 6, 7], [8, 9]]
    skipped = GroupedRows(iter(batches), [View(("n",), (0,))], (GROUP_START,))
    firsts = []
    while skipped.next_group():
        firsts.append(next(skipped.rows(0, skipped.number)).n)
    assert firsts == [0, 3, 4, 8]
