"""Quantiles over frames: those of statistics and of groups, over types, orders of values, frames and little memory."""

import math
import random
from decimal import Decimal

import pyarrow as pa
import pytest

from engine.errors import MemoryBudgetError
from engine.graph.sort_key import SortKey
from engine.graph.window import WindowCall, WindowFrame
from engine.window.evaluator import WindowEvaluator
from engine.window.quantiles import quantiles

SHARES = (0.0, 0.3, 0.5, 1.0)
FRAMES = ((-6, 0), (None, 0), (3, 9), (0, None), (-90, -40))


def framed(workshop, column, bounds, batch_rows=30, budget=1 << 20, shares=SHARES):
    table = pa.table({"id": range(len(column)), "x": column})
    frame = WindowFrame("rows", *bounds)
    calls = [WindowCall("quantile", "x", f"q{share}", frame, factor=share) for share in shares]
    with workshop.operator(4) as (_, space):
        evaluator = WindowEvaluator(table.schema, [], [SortKey("id")], calls, budget, space)
        try:
            batches = [made for batch in table.to_batches(batch_rows) for made in evaluator.add(batch)]
            batches += evaluator.finish()
        finally:
            evaluator.close()
    found = pa.Table.from_batches(batches)
    return {share: found[f"q{share}"].combine_chunks() for share in shares}


def of_groups(column, bounds, share):
    """The quantile of each frame, as a group of its own."""
    start, end = bounds
    frames = [
        (0 if start is None else max(0, row + start), len(column) if end is None else max(0, row + end + 1))
        for row in range(len(column))
    ]
    values = [column.slice(first, max(0, stop - first)) for first, stop in frames]
    places = [0]
    for one in values:
        places.append(places[-1] + len(one))
    return quantiles(pa.concat_arrays(values), None, pa.array(places, pa.int64()), share)


def columns():
    rng = random.Random(5)

    def some(make, data_type, rows=200):
        return pa.array([None if rng.random() < 0.2 else make() for _ in range(rows)], data_type)

    return {
        "floats": some(lambda: rng.choice([rng.gauss(0, 1), 0.0, -0.0, math.inf, -math.inf, math.nan]), pa.float64()),
        "few": some(lambda: rng.randrange(3), pa.int64()),
        "rising": pa.array(range(300), pa.int64()),
        "falling": pa.array(range(300, 0, -1), pa.int64()),
        "ends": some(lambda: rng.choice([-(2**63), 2**63 - 1, 0]), pa.int64()),
        "times": some(lambda: rng.randrange(-(10**12), 10**12), pa.timestamp("us", "UTC")),
        "spans": some(lambda: rng.randrange(-(10**6), 10**6), pa.duration("ms")),
        "decimals": some(lambda: Decimal(rng.randrange(-(10**9), 10**9)).scaleb(-2), pa.decimal128(20, 2)),
        "wide": some(lambda: Decimal(rng.randrange(-(10**37), 10**37)), pa.decimal128(38, 0)),
        "nulls": pa.nulls(30, pa.float64()),
        "one": pa.array([2.5]),
    }


@pytest.mark.parametrize("name", columns())
def test_quantiles_of_frames_are_those_of_groups(workshop, name):
    column = columns()[name]
    for bounds in FRAMES:
        found = framed(workshop, column, bounds)
        for share in SHARES:
            assert repr(found[share].to_pylist()) == repr(of_groups(column, bounds, share).to_pylist()), bounds


@pytest.mark.parametrize("order", ["random", "rising", "falling", "waves"])
def test_values_enter_and_leave_frames_of_many_chunks(workshop, order):
    rng = random.Random(6)
    values = [rng.randrange(3_000) for _ in range(4_000)]
    values = {
        "random": values,
        "rising": sorted(values),
        "falling": sorted(values, reverse=True),
        "waves": [1000 * math.sin(row / 300) + value % 7 for row, value in enumerate(values)],
    }[order]
    width = 900
    found = framed(workshop, pa.array(values), (-width + 1, 0), batch_rows=500, shares=(0.25,))[0.25].to_pylist()
    for row in [*range(0, 4_000, 397), 3_999]:
        frame = sorted(values[max(0, row - width + 1) : row + 1])
        place = 0.25 * (len(frame) - 1)
        low = int(place)
        high = frame[min(low + 1, len(frame) - 1)]
        assert math.isclose(found[row], frame[low] + (place - low) * (high - frame[low]), abs_tol=1e-9)


def test_a_frame_with_more_values_than_memory_says_so(workshop):
    column = pa.array([float(value % 1_000) for value in range(20_000)])
    assert framed(workshop, column, (-1_000, 0), 500, 1 << 16, (0.5,))[0.5][10_000].as_py() == 499.0
    with pytest.raises(MemoryBudgetError, match="the values of one frame need more than the 65536 bytes"):
        framed(workshop, column, (-10_000, 0), 500, 1 << 16, (0.5,))
