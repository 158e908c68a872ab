"""Lists, quantiles and single values of sorted groups against plain Python: nulls x group sizes x batches x memory."""

import random

import pyarrow as pa
import pytest

from engine.errors import MemoryBudgetError
from engine.graph.window import SortedCall
from engine.window.group_kernels import first_kept, group_starts, kept_before
from engine.window.sorted_groups import LIST_BYTES_MIN, SEARCH_ROWS_MIN, SortedGroups, sorted_schema
from tests.window.results_of import results_of

CALLS = (
    SortedCall("list", "s", "all"),
    SortedCall("list", "s", "kept", where="w"),
    SortedCall("quantile", "x", "low", share=0.25),
    SortedCall("quantile", "x", "most", share=1.0),
    SortedCall("quantile", "t", "time", share=0.5),
    SortedCall("only", "s", "one"),
)


def rows_of(seed, keys, longest):
    """Rows sorted by their keys."""
    rng = random.Random(seed)
    columns = {"k": [], "x": [], "t": [], "s": [], "w": []}
    for key in [*range(keys), None]:
        count = rng.randrange(1, longest)
        nulls = rng.choice([0, 0, rng.randrange(count), count])
        values = [*(rng.randrange(1000) for _ in range(count - nulls)), *[None] * nulls]
        rng.shuffle(values)
        columns["k"] += [key] * count
        columns["x"] += [None if value is None else value / 2 for value in values]
        columns["t"] += values
        columns["s"] += [rng.choice([None, "a", "bb", "c" * 20]) for _ in range(count)]
        columns["w"] += [rng.choice([None, False, True]) if rng.random() < 0.9 else False for _ in range(count)]
    types = {"k": pa.int64(), "x": pa.float64(), "t": pa.timestamp("s"), "s": pa.string(), "w": pa.bool_()}
    return pa.table({name: pa.array(values, types[name]) for name, values in columns.items()})


def between(values, share):
    values = sorted(value for value in values if value is not None)
    if not values:
        return None
    place = share * (len(values) - 1)
    low = int(place)
    return values[low] + (values[min(low + 1, len(values) - 1)] - values[low]) * (place - low)


def wanted(rows):
    found = []
    for key in dict.fromkeys(rows["k"].to_pylist()):
        group = [row for row in rows.to_pylist() if row["k"] == key]
        texts = [row["s"] for row in group]
        kept = [row["s"] for row in group if row["w"]]
        times = between([None if row["t"] is None else row["t"].timestamp() for row in group], 0.5)
        found.append(
            {
                "k": key,
                "all": texts,
                "kept": kept or None,
                "low": between([row["x"] for row in group], 0.25),
                "most": between([row["x"] for row in group], 1.0),
                "time": times,
                "one": next((text for text in texts if text is not None), None),
            }
        )
    return found


def evaluated(workshop, rows, keys, calls, batch_rows, budget=1 << 20, force_spill=False):
    with workshop.operator(4) as (_, space):
        groups = SortedGroups(rows.schema, keys, calls, budget, space, force_spill=force_spill)
        batches = results_of(groups, rows, batch_rows)
        return pa.Table.from_batches(batches, sorted_schema(rows.schema, keys, calls)), space.spilled_bytes


@pytest.mark.parametrize("batch_rows", [1, 3, 64, 5000])
@pytest.mark.parametrize("longest", [2, 9, 150])
def test_groups_of_all_sizes_agree_with_python(workshop, longest, batch_rows):
    rows = rows_of(longest, 12, longest)
    found, _ = evaluated(workshop, rows, ["k"], CALLS, batch_rows, force_spill=batch_rows == 3)
    ours = found.to_pylist()
    for row in ours:
        row["time"] = None if row["time"] is None else row["time"].timestamp()
    for mine, theirs in zip(ours, wanted(rows), strict=True):
        if theirs["time"] is not None:
            assert abs(mine.pop("time") - theirs.pop("time")) <= 0.5
        assert mine == theirs


def test_a_group_that_reaches_over_batches_spills(workshop):
    rows = pa.table({"k": [1] * 4000, "x": [float(number) for number in range(4000)]})
    calls = (SortedCall("quantile", "x", "q", share=0.5),)
    found, spilled = evaluated(workshop, rows, ["k"], calls, 100, budget=4_000)
    assert found["q"].to_pylist() == [1999.5]
    assert spilled > 16_000
    assert evaluated(workshop, rows, ["k"], calls, 100)[1] == 0


@pytest.mark.parametrize("share", [0.0, 0.3, 0.5, 1.0])
def test_a_group_larger_than_memory_is_searched_on_disk(workshop, share):
    count = 3 * SEARCH_ROWS_MIN
    reals = [None if row % 7 == 0 else float(row * 7919 % 10_007) for row in range(count)]
    times = pa.array([row * 7919 % 10_007 for row in range(count)], pa.timestamp("us"))
    rows = pa.table({"k": [1] * count, "x": reals, "t": times})
    calls = (SortedCall("quantile", "x", "x", share=share), SortedCall("quantile", "t", "t", share=share))
    found, spilled = evaluated(workshop, rows, ["k"], calls, 2000, budget=4_000)
    assert spilled > 0
    assert found["x"].to_pylist() == [pytest.approx(between(reals, share))]
    wanted_time = between([value.value for value in times], share)
    assert abs(found["t"][0].value - wanted_time) <= 0.5


def test_without_keys_there_is_one_group_whatever_the_rows_are(workshop):
    rows = rows_of(1, 3, 5)
    assert evaluated(workshop, rows.select(["s"]), [], CALLS[-1:], 4)[0].num_rows == 1
    nothing = evaluated(workshop, rows.slice(0, 0), [], CALLS, 4)[0]
    assert nothing.to_pylist() == [dict.fromkeys(("all", "kept", "low", "most", "time", "one"))]
    assert evaluated(workshop, rows.slice(0, 0), ["k"], CALLS, 4)[0].num_rows == 0


def test_a_list_beyond_the_budget_is_an_error_only_where_its_values_are_kept(workshop):
    text = "x" * 1000
    rows = pa.table({"k": [1] * 2000, "s": [text] * 2000, "w": [number % 100 == 0 for number in range(2000)]})
    assert rows.nbytes > LIST_BYTES_MIN
    kept = SortedCall("list", "s", "l", where="w")
    assert len(evaluated(workshop, rows, ["k"], [kept], 100, budget=1)[0]["l"][0]) == 20
    for name, shown in (("l", "l"), ("__aggregate0", "collect_list or string_agg")):
        wanted = f"^{shown}: the list of the group k=1 has more than .*managed.size where that is set, else"
        with pytest.raises(MemoryBudgetError, match=wanted):
            evaluated(workshop, rows, ["k"], [SortedCall("list", "s", name)], 100, budget=1)


def test_kernels_over_slices():
    levels = pa.array([9, 0, 1, 2, 1, 9], pa.uint8()).slice(1, 4)
    assert group_starts(levels, 1).to_pylist() == [0, 1, 3]
    kept = pa.array([True, False, True, True, False, True]).slice(1)
    bounds = pa.array([7, 0, 2, 3, 5]).slice(1)
    assert kept_before(kept, bounds).to_pylist() == [0, 1, 2, 3]
    assert kept_before(kept, pa.array([1, 3])).to_pylist() == [0, 2]
    assert first_kept(kept, pa.array([0, 1, 3, 4])).to_pylist() == [None, 1, None]
