"""Groups of rows in any order against those of sorted ones: shapes x memory; nothing is left behind."""

import random

import pyarrow as pa
import pytest

from engine.errors import MemoryBudgetError, SpillError
from engine.graph.sort_key import SortKey
from engine.graph.window import SortedCall
from engine.partitions.parted_input import PartedInput
from engine.partitions.partition_files import PartitionFiles, partitions_of_memory
from engine.records.bounded_batches import SmallBatches
from engine.records.wide_rows import WIDE_BYTES
from engine.window import grouped_rows, partitioned_groups
from engine.window.partitioned_groups import PartitionedGroups
from engine.window.sorted_groups import sorted_schema
from tests.partitions.test_recursion import Threads
from tests.window.results_of import results_of

PAGE = 4096
#: pages with which rows are parted
PAGES_MIN = 256
NAN = float("nan")

LISTS = (SortedCall("list", "s", "all"), SortedCall("list", "s", "kept", where="w"), SortedCall("only", "s", "one"))
QUANTILES = (SortedCall("quantile", "x", "low", share=0.25), SortedCall("quantile", "x", "most", share=1.0))

#: how the key of a row is drawn
SHAPES = {
    "one group": lambda rng, row, rows: 7,
    "own groups": lambda rng, row, rows: row,
    "some": lambda rng, row, rows: rng.randrange(rows // 20 + 1),
    "one giant": lambda rng, row, rows: rng.choice([1, 1, 1, rng.randrange(rows)]),
    "nulls": lambda rng, row, rows: rng.choice([None, None, rng.randrange(50)]),
}
#: pages of the pool, rows, bytes of the budget
MEMORY = {
    "fits": (2048, 3000, 8 << 20),
    "half": (PAGES_MIN, 30_000, 1 << 20),
    "small budget": (PAGES_MIN, 6_000, 60_000),
    "few pages": (24, 6_000, 60_000),
}


def table(shape, rows, seed=1, text=False):
    rng = random.Random(seed)
    keys = [SHAPES[shape](rng, row, rows) for row in range(rows)]
    if text:
        keys = [None if key is None else f"key {key}" for key in keys]
    columns = {
        "k": keys,
        "x": [rng.choice([None, NAN, 0.0, rng.randrange(100), rng.random()]) for _ in range(rows)],
        "s": [rng.choice([None, "a", "bb", f"text {row}"]) for row in range(rows)],
        "w": [rng.choice([None, False, True]) for _ in range(rows)],
    }
    types = {"k": pa.string() if text else pa.int64(), "x": pa.float64(), "s": pa.string(), "w": pa.bool_()}
    return pa.table({name: pa.array(values, types[name]) for name, values in columns.items()})


def groups_of(rows):
    """Rows of each key, as they came."""
    found = {}
    for row in rows.to_pylist():
        found.setdefault(row["k"], []).append(row)
    return found


def between(values, share):
    values = sorted((value for value in values if value is not None), key=lambda value: (value != value, value))
    if not values:
        return None
    place = share * (len(values) - 1)
    low, high = values[int(place)], values[min(int(place) + 1, len(values) - 1)]
    return low if place == int(place) or low == high else low * (1 - place % 1) + high * (place % 1)


def wanted(rows, calls):
    made = {}
    for key, group in groups_of(rows).items():
        texts, kept = [row["s"] for row in group], [row["s"] for row in group if row["w"]]
        reals = [row["x"] for row in group]
        values = {
            "all": texts,
            "kept": kept or None,
            "one": next((text for text in texts if text is not None), None),
            "low": between(reals, 0.25),
            "most": between(reals, 1.0),
        }
        made[key] = {call.name: values[call.name] for call in calls}
    return made


def evaluated(pool, space, rows, calls, budget, batch_rows=1000, order=(), **options):
    groups = PartitionedGroups(rows.schema, ["k"], calls, order, pool, budget, space, **options)
    return pa.Table.from_batches(results_of(groups, rows, batch_rows), sorted_schema(rows.schema, ["k"], calls))


def is_same(left, right):
    return left == right or left == pytest.approx(right, nan_ok=True)


def check(found, rows, calls):
    theirs, ours = wanted(rows, calls), found.to_pylist()
    assert len(ours) == len(theirs)
    for row in ours:
        for name, value in theirs[row["k"]].items():
            assert is_same(row[name], value), (row["k"], name)


@pytest.fixture
def few(monkeypatch):
    """No rows, and no groups, are so few that they are not parted."""
    monkeypatch.setattr(partitioned_groups, "FEW_ROWS", 0)
    monkeypatch.setattr(partitioned_groups, "SmallBatches", lambda: SmallBatches(1, rows_enough=1))
    monkeypatch.setattr(grouped_rows, "RUN_ROWS_MIN", 1 << 40)


@pytest.mark.parametrize("calls", ["lists", "quantiles"])
@pytest.mark.parametrize("memory", MEMORY)
@pytest.mark.parametrize("shape", SHAPES)
def test_groups_of_all_shapes_agree_with_python(workshop, few, shape, memory, calls):
    pages, count, budget = MEMORY[memory]
    rows = table(shape, count, text=shape == "some")
    calls = LISTS if calls == "lists" else QUANTILES
    with workshop.operator(pages, PAGE) as (pool, space):
        check(evaluated(pool, space, rows, calls, budget), rows, calls)
        assert memory != "half" or space.spilled_bytes > 0
        assert memory != "fits" or (space.spilled_bytes == 0 and pool.pages_peak > 0)


@pytest.mark.parametrize("memory", MEMORY)
@pytest.mark.parametrize("shape", SHAPES)
def test_lists_in_an_order_agree_with_python(workshop, few, shape, memory):
    pages, count, budget = MEMORY[memory]
    rows = table(shape, count, text=shape == "some")
    order = [SortKey("w", descending=True, nulls_last=True), SortKey("x")]
    calls = (SortedCall("list", "s", "all"),)

    def place(row):
        real = row["x"]
        return (row["w"] is None, not row["w"], real is not None, real != real, real if real is not None else 0)

    with workshop.operator(pages, PAGE) as (pool, space):
        found = evaluated(pool, space, rows, calls, max(budget, 1 << 20), order=order)
    theirs = {key: [row["s"] for row in sorted(group, key=place)] for key, group in groups_of(rows).items()}
    assert dict(zip(found["k"].to_pylist(), found["all"].to_pylist(), strict=True)) == theirs


@pytest.mark.parametrize("shape", SHAPES)
def test_few_rows_touch_no_page(workshop, shape):
    rows = table(shape, 3000)
    with workshop.operator(PAGES_MIN, PAGE) as (pool, space):
        check(evaluated(pool, space, rows, QUANTILES, 4 << 20), rows, QUANTILES)
        assert pool.pages_peak == 0
        assert space.spilled_bytes == 0


@pytest.mark.parametrize("shape", SHAPES)
def test_forced_to_spill_it_gives_the_same(workshop, shape):
    rows = table(shape, 2000)
    with workshop.operator(PAGES_MIN, PAGE) as (pool, space):
        check(evaluated(pool, space, rows, LISTS, 1 << 20, force_spill=True), rows, LISTS)
        assert space.spilled_bytes > 0
    with workshop.operator(12, PAGE) as (pool, space):
        check(evaluated(pool, space, rows, QUANTILES, 1 << 20, force_spill=True), rows, QUANTILES)
        assert space.spilled_bytes > 0


def test_a_partition_that_is_too_large_is_parted_again_and_a_giant_group_is_sorted(workshop, few, monkeypatch):
    levels, sorts = [], []
    begin, sorting = PartitionedGroups._begin_level, partitioned_groups._Sorting
    monkeypatch.setattr(
        PartitionedGroups, "_begin_level", lambda self, level: levels.append(level) or begin(self, level)
    )
    monkeypatch.setattr(partitioned_groups, "_Sorting", lambda groups: sorts.append(1) or sorting(groups))
    with workshop.operator(PAGES_MIN, PAGE) as (pool, space):
        rows = table("some", 40_000)
        check(evaluated(pool, space, rows, QUANTILES, 20_000), rows, QUANTILES)
        assert set(levels) == {0, 1}
        assert sorts == []
        levels.clear()
        rows = table("one group", 20_000)
        check(evaluated(pool, space, rows, QUANTILES, 60_000), rows, QUANTILES)
        assert levels == [0]
        assert sorts == [1]


KEYED = (*QUANTILES, SortedCall("quantile", "k", "key", share=0.5))


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize("calls", [QUANTILES, KEYED, LISTS], ids=["quantiles", "of a key too", "lists"])
def test_few_groups_are_not_parted_whatever_threads_have_made(workshop, monkeypatch, calls, ahead):
    monkeypatch.setattr(partitioned_groups, "FEW_ROWS", 0)
    rows = table("nulls", 20_000)
    with workshop.operator(PAGES_MIN, PAGE) as (pool, space):
        groups = PartitionedGroups(rows.schema, ["k"], calls, (), pool, 16 << 20, space)
        groups.do_together(Threads())
        for number, batch in enumerate(rows.combine_chunks().to_batches(2000)):
            assert list(groups.add(batch, groups.ahead(batch) if ahead and number % 3 else None)) == []
        found = pa.Table.from_batches(groups.finish(), groups.schema)
        assert pool.pages_peak == 0
        keys = found.column("k").to_pylist()
        if calls is KEYED:
            assert found.column("key").to_pylist() == keys
            found, calls = found.drop_columns("key"), QUANTILES
        check(found, rows, calls)
        assert keys == list(groups_of(rows))
        groups.close()


def test_rows_of_pages_are_parted_however_few_groups_they_have(workshop, monkeypatch):
    monkeypatch.setattr(partitioned_groups, "FEW_ROWS", 0)
    rows = table("nulls", 20_000)
    with workshop.operator(2048, PAGE) as (pool, space):
        groups = PartitionedGroups(rows.schema, ["k"], QUANTILES, (), pool, 16 << 20, space)
        groups.expect_pages()
        for batch in rows.combine_chunks().to_batches(20_000):
            assert not groups.router.takes_all
            list(groups.add(batch))
        assert groups.router.takes_all
        check(pa.Table.from_batches(groups.finish(), groups.schema), rows, QUANTILES)
        groups.close()


def test_groups_that_become_many_are_parted_with_what_was_grouped_before(workshop, monkeypatch):
    monkeypatch.setattr(partitioned_groups, "FEW_ROWS", 0)
    rows = pa.concat_tables([table("nulls", 20_000), table("own groups", 20_000, seed=2)])
    with workshop.operator(2048, PAGE) as (pool, space):
        groups = PartitionedGroups(rows.schema, ["k"], LISTS, (), pool, 16 << 20, space)
        batches = rows.combine_chunks().to_batches(10_000)
        made = [groups.ahead(batch) for batch in batches]
        for batch, each in zip(batches, made, strict=True):
            assert list(groups.add(batch, each)) == []
        assert groups.ahead(batches[0]) is None
        check(pa.Table.from_batches(groups.finish(), groups.schema), rows, LISTS)
        assert pool.pages_peak > 0
        groups.close()


def test_a_list_beyond_the_budget_is_an_error_that_names_its_group(workshop, few):
    rows = pa.table({"k": [1] * 3000, "s": [f"{row:01000}" for row in range(3000)]})
    wanted = "l: the list of the group k=1 has more than"
    with workshop.operator(PAGES_MIN, PAGE) as (pool, space), pytest.raises(MemoryBudgetError, match=wanted):
        evaluated(pool, space, rows, [SortedCall("list", "s", "l")], 1 << 20)


def test_values_that_lie_outside_of_their_rows_are_grouped_in_turns(workshop, few, monkeypatch):
    written, write = [], PartedInput.write
    monkeypatch.setattr(PartedInput, "write", lambda *given: written.append(1) or write(*given))
    texts = [f"{row} " + "x" * WIDE_BYTES for row in range(6)]
    rows = pa.table({"k": [row % 4 for row in range(6)], "s": texts, "x": [1.0] * 6})
    calls = [SortedCall("only", "s", "one"), SortedCall("list", "x", "all")]
    with workshop.operator(2 * PAGES_MIN, PAGE) as (pool, space):
        found = evaluated(pool, space, rows, calls, 1 << 20, batch_rows=2)
        assert {row["k"]: row["one"] for row in found.to_pylist()} == {key: texts[key] for key in range(4)}
        assert sorted(found["all"].to_pylist()) == [[1.0], [1.0], [1.0, 1.0], [1.0, 1.0]]
        space.close()  # with the files of wide values
    assert written


def test_keys_that_do_not_come_first_are_put_there(workshop, few):
    rows = table("some", 3000).select(["x", "s", "k", "w"])
    with workshop.operator(PAGES_MIN, PAGE) as (pool, space):
        groups = PartitionedGroups(rows.schema, ["k"], QUANTILES, (), pool, 1 << 20, space)
        assert groups.router is None
        groups.close()
        check(evaluated(pool, space, rows, QUANTILES, 1 << 20), rows, QUANTILES)


def test_it_can_be_closed_at_any_time(workshop, few):
    rows = table("some", 30_000)
    for taken in (0, 5, 30):
        for given in (0, 1, 2):
            with workshop.operator(PAGES_MIN, PAGE) as (pool, space):
                groups = PartitionedGroups(rows.schema, ["k"], QUANTILES, (), pool, 1 << 20, space)
                for batch in rows.combine_chunks().to_batches(1000)[:taken]:
                    list(groups.add(batch))
                results = groups.finish()
                for _ in range(given):
                    next(results, None)
                results.close()
                groups.close()
                groups.close()


def test_a_disk_that_fails_leaves_nothing(workshop, few, monkeypatch):
    rows = table("some", 30_000)
    with workshop.operator(PAGES_MIN, PAGE) as (pool, space):
        writer = PartitionFiles.writer

        def failing(self, partition):
            if partition == 20:
                raise SpillError("told to")
            return writer(self, partition)

        monkeypatch.setattr(PartitionFiles, "writer", failing)
        with pytest.raises(SpillError):
            evaluated(pool, space, rows, QUANTILES, 1 << 20)


def test_no_rows_have_no_groups(workshop):
    with workshop.operator(PAGES_MIN, PAGE) as (pool, space):
        assert evaluated(pool, space, table("some", 0), QUANTILES, 1 << 20).num_rows == 0


def test_pages_for_which_rows_are_parted():
    count, _ = partitions_of_memory(PAGES_MIN, PAGE)
    assert partitioned_groups.PARTITION_PAGES_MIN * count == PAGES_MIN
