"""Lists of frames: the values of Python's slices, in parts that are bounded, and an error for one that has no room."""

import random

import pyarrow as pa
import pytest

from engine.errors import MemoryBudgetError
from engine.graph.sort_key import SortKey
from engine.graph.window import WindowCall, WindowFrame
from engine.window.evaluator import WindowEvaluator
from engine.window.frame_lists import PART_BYTES

FRAMES = ((-3, 1), (None, 0), (2, 4), (-6, -4), (None, None), (0, None))


def framed(workshop, table, bounds, *, where=None, batch_rows=40, budget=1 << 20):
    """The batches of an evaluation of lists of ``x``."""
    calls = [
        WindowCall("list", "x", "found", WindowFrame("rows", *bounds), default=where),
        WindowCall("row_number", None, "number"),
        WindowCall("count", "x", "there", WindowFrame("rows", *bounds)),
    ]
    with workshop.operator(4) as (_, space):
        evaluator = WindowEvaluator(table.schema, [], [SortKey("id")], calls, budget, space)
        try:
            batches = [made for batch in table.to_batches(batch_rows) for made in evaluator.add(batch)]
            batches += evaluator.finish()
        finally:
            evaluator.close()
    return batches


def table_of(values, data_type, seed=1):
    rng = random.Random(seed)
    kept = pa.array([rng.choice([True, False, None]) for _ in values])
    return pa.table({"id": range(len(values)), "x": pa.array(values, data_type), "ok": kept})


@pytest.mark.parametrize("budget", [1 << 20, 0])
@pytest.mark.parametrize(
    ("values", "data_type"),
    [
        ([None, 1, 2, 3, None] * 40, pa.int64()),
        (["a", None, "", "bb"] * 40, pa.string()),
        ([[1], [], None, [2, None]] * 40, pa.list_(pa.int64())),
        ([{"a": 1}, None, {"a": None}] * 40, pa.struct([("a", pa.int64())])),
        ([True, None], pa.bool_()),
        ([None] * 50, pa.float64()),
    ],
)
def test_lists_of_frames_are_slices(workshop, values, data_type, budget):
    table = table_of(values, data_type)
    oks = table["ok"].to_pylist()
    for bounds in FRAMES:
        for where in (None, "ok"):
            found = pa.Table.from_batches(framed(workshop, table, bounds, where=where, budget=budget))
            assert found["number"].to_pylist() == list(range(1, len(values) + 1))
            assert found["id"].to_pylist() == list(range(len(values)))
            for row, one in enumerate(found["found"].to_pylist()):
                first = 0 if bounds[0] is None else max(0, row + bounds[0])
                stop = len(values) if bounds[1] is None else max(0, row + bounds[1] + 1)
                frame = range(first, min(stop, len(values)))
                wanted = [values[each] for each in frame if where is None or oks[each]]
                assert one == (wanted or None), (bounds, where, row)


def test_the_lists_of_a_block_leave_in_parts(workshop):
    table = table_of(list(range(4_000)), pa.int64())
    batches = framed(workshop, table, (-999, 0), batch_rows=4_000, budget=16 << 20)
    assert len(batches) > 20
    assert all(batch.column("found").nbytes < 2 * PART_BYTES for batch in batches)
    found = pa.Table.from_batches(batches)
    assert found["found"][3_999].as_py() == list(range(3_000, 4_000))
    assert found["there"].to_pylist() == [min(row + 1, 1_000) for row in range(4_000)]


def test_a_list_that_is_larger_than_memory_says_so(workshop):
    table = table_of(["x" * 1_000] * 3_000, pa.string())
    with pytest.raises(MemoryBudgetError, match="the list of one frame has more than 1048576 bytes"):
        framed(workshop, table, (None, 0), budget=1 << 16)
