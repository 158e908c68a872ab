"""SideBySide: columns of batches of the same rows as one, of any type, and of parts of larger ones."""

from __future__ import annotations

import pyarrow as pa
import pytest

from engine.records.side_by_side import SideBySide

NUMBERS = pa.array([1, None, 3, 4], pa.int64())
TEXTS = pa.array(["a", "bb", None, "a"])
LISTS = pa.array([[1], None, [2, None], []], pa.list_(pa.int32()))


def left_of() -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"n": NUMBERS, "coded": TEXTS.dictionary_encode()})


def right_of() -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"t": TEXTS, "nothing": pa.nulls(4), "lists": LISTS})


def test_columns_come_in_the_order_asked_for() -> None:
    joined = SideBySide(["lists", "coded", "t"]).of([left_of(), right_of()])

    joined.validate(full=True)
    assert joined.equals(pa.RecordBatch.from_pydict({"lists": LISTS, "coded": TEXTS.dictionary_encode(), "t": TEXTS}))


def test_all_columns_come_as_they_are_and_of_parts_of_batches_the_part() -> None:
    side = SideBySide()
    for begin, count in ((0, 4), (1, 3), (2, 0), (3, 1)):
        left, right = left_of().slice(begin, count), right_of().slice(begin, count)
        joined = side.of([left, right])
        joined.validate(full=True)
        assert joined.to_pydict() == left.to_pydict() | right.to_pydict()
        assert [column.null_count for column in joined.columns] == [
            column.null_count for column in (*left.columns, *right.columns)
        ]


def test_batches_of_other_types_follow() -> None:
    side = SideBySide(["t", "n"])
    assert side.of([left_of(), right_of()]).schema.field("n").type == pa.int64()
    other = pa.RecordBatch.from_pydict({"n": NUMBERS.cast(pa.float64())})
    assert side.of([other, right_of()]).equals(pa.RecordBatch.from_pydict({"t": TEXTS, "n": NUMBERS.cast("double")}))


def test_columns_outlive_what_they_come_from() -> None:
    joined = SideBySide().of([left_of(), right_of()])
    column = joined.column(1)
    del joined
    assert column.to_pylist() == TEXTS.to_pylist()


def test_batches_of_other_numbers_of_rows_are_refused() -> None:
    with pytest.raises(pa.ArrowInvalid, match="the same number of rows"):
        SideBySide().of([left_of(), right_of().slice(1)])


def test_a_batch_of_no_columns_has_rows() -> None:
    assert SideBySide([]).of([left_of().select([]), right_of().select([])]).num_rows == 4
