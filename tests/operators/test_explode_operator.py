"""Lists as rows against plain Python: kinds of lists, nulls, empty ones, positions, and batches within bounds."""

import decimal
import random

import pyarrow as pa
import pytest

from engine import Environment, col, count, sum_
from engine.operators.explode_operator import exploded
from engine.records.arrow_batch import batch_bytes
from engine.records.batch_limits import BATCH_BYTES_MAX, BATCH_ROWS_MAX

ELEMENTS = {
    "int64": (pa.int64(), [1, None, -5]),
    "text": (pa.string(), ["", "ä" * 20, None]),
    "bool": (pa.bool_(), [True, None, False]),
    "decimal": (pa.decimal128(5, 2), [decimal.Decimal("1.50"), None]),
    "struct": (pa.struct([("a", pa.int32()), ("b", pa.string())]), [{"a": 1, "b": None}, None, {"a": None, "b": "x"}]),
    "list": (pa.list_(pa.int8()), [[1, None], [], None]),
    "null": (pa.null(), [None]),
}


def by_hand(rows, position, keep_empty):
    """What exploding column x of rows (dicts) gives."""
    found = []
    for row in rows:
        elements = [None] if not row["x"] and keep_empty else row["x"] or []
        for place, element in enumerate(elements):
            made = {**row, "x": element}
            if position:
                made["i"] = place if row["x"] else None
            found.append(made)
    return found


def some_rows(values, rng, count=300, longest=5):
    lists = [rng.choice([None, [], [rng.choice(values) for _ in range(rng.randrange(longest))]]) for _ in range(count)]
    return [{"k": number, "x": each, "w": rng.choice([None, "w" * number])} for number, each in enumerate(lists)]


@pytest.mark.parametrize("keep_empty", [True, False])
@pytest.mark.parametrize("position", ["i", ""])
@pytest.mark.parametrize("kind", ELEMENTS)
def test_rows_are_those_of_plain_python(kind, position, keep_empty):
    data_type, values = ELEMENTS[kind]
    rows = some_rows(values, random.Random(3))
    for list_type in (pa.list_(data_type), pa.large_list(data_type)):
        schema = pa.schema([("k", pa.int64()), ("x", list_type), ("w", pa.string())])
        batch = pa.RecordBatch.from_pylist([{"k": -1, "x": None, "w": None}, *rows], schema).slice(1)
        found = [row for piece in exploded(batch, "x", position, keep_empty) for row in piece.to_pylist()]
        assert found == by_hand(rows, position, keep_empty)


def test_lists_of_fixed_size_and_maps_have_elements_too():
    pairs = pa.array([[1, 2], None, [3, None]], pa.list_(pa.int64(), 2))
    batch = pa.record_batch({"x": pairs}).slice(1)
    assert [piece.to_pylist() for piece in exploded(batch, "x", "i", True)] == [
        [{"x": None, "i": None}, {"x": 3, "i": 0}, {"x": None, "i": 1}]
    ]
    entries = pa.array([[("a", 1)], None, [], [("b", None), ("c", 2)]], pa.map_(pa.string(), pa.int64()))
    (piece,) = exploded(pa.record_batch({"x": entries}).slice(1), "x", "", False)
    assert piece.to_pylist() == [{"x": {"key": "b", "value": None}}, {"x": {"key": "c", "value": 2}}]


def test_batches_stay_within_bounds_whatever_row_is_the_widest():
    wide = "w" * 50_000
    rows = [{"k": number, "w": "", "x": [0, 1]} for number in range(1000)]
    rows[500] = {"k": 500, "w": wide, "x": list(range(300))}
    rows[501] = {"k": 501, "w": None, "x": list(range(40_000))}
    batch = pa.RecordBatch.from_pylist(rows)
    pieces = list(exploded(batch, "x", "i", True))
    assert max(piece.num_rows for piece in pieces) <= BATCH_ROWS_MAX
    assert max(batch_bytes(piece) for piece in pieces) < 2 * BATCH_BYTES_MAX
    assert sum(piece.num_rows for piece in pieces) == 998 * 2 + 300 + 40_000
    long = [row for piece in pieces for row in zip(*(piece.column(name).to_pylist() for name in "kxi"), strict=True)]
    assert [row for row in long if row[0] == 501] == [(501, place, place) for place in range(40_000)]


def test_one_wide_row_among_empty_ones_is_bounded_too():
    rows = [{"w": "", "x": [] if number else None} for number in range(8_000)]
    rows[4_000] = {"w": "w" * 100_000, "x": list(range(3_000))}
    rows[4_001] = {"w": "", "x": None}
    pieces = list(exploded(pa.RecordBatch.from_pylist(rows), "x", "", False))
    assert sum(piece.num_rows for piece in pieces) == 3_000
    assert max(batch_bytes(piece) for piece in pieces) < 2 * BATCH_BYTES_MAX


def test_wide_elements_of_one_row_come_in_several_batches():
    batch = pa.record_batch({"k": [1], "x": [["x" * 100_000] * 200]})
    pieces = list(exploded(batch, "x", "", True))
    assert max(batch_bytes(piece) for piece in pieces) <= BATCH_BYTES_MAX
    assert sum(piece.num_rows for piece in pieces) == 200


def test_no_rows_and_no_other_columns_are_no_special_case():
    lists = pa.array([[1], [], None], pa.list_(pa.int64()))
    assert list(exploded(pa.record_batch({"x": lists.slice(3)}), "x", "", True)) == []
    assert list(exploded(pa.record_batch({"x": lists.slice(1)}), "x", "", False)) == []
    assert [piece.to_pydict() for piece in exploded(pa.record_batch({"x": lists}), "x", "", True)] == [
        {"x": [1, None, None]}
    ]


@pytest.mark.parametrize("settings", [{}, {"taskmanager.memory.managed.size": "2mb", "debug.force-spill": True}])
def test_a_job_adds_up_what_lists_hold(settings):
    table = pa.table({"k": list(range(2000)), "x": [list(range(number % 7)) for number in range(2000)]})
    with Environment(config={"parallelism.default": 2, **settings}) as environment:
        made = environment.from_arrow(table).rebalance().explode("x").group_by("k").agg(n=count(), s=sum_("x"))
        found = sorted(made.to_arrow().to_pylist(), key=lambda row: row["k"])
        few = environment.from_arrow(table).explode("x", keep_empty=False).filter(col("x") >= 0).limit(7)
        assert few.count() == 7
    assert found == [{"k": k, "n": max(1, k % 7), "s": sum(range(k % 7)) if k % 7 else None} for k in range(2000)]
