"""Rows that cannot be among the first of their group are kept out of a sort; those that are come in its order."""

import random

import pyarrow as pa
import pytest

from engine.graph.sort_key import SortKey
from engine.graph.window import GroupLimit
from engine.records.row_codec import RowCodec
from engine.sort.external_sorter import ExternalSorter

ROWS = 12_000
NAN = float("nan")


def order_of_number(value):
    """Return what numbers are ordered by: nulls first, NaN last and equal to itself, -0.0 as 0.0."""
    if value is None:
        return (0, 0.0)
    return (2, 0.0) if value != value else (1, value + 0.0)


def table(seed, *, groups, has_text=False, is_clustered=False):
    rng = random.Random(seed)
    different = [None, NAN, 0.0, -0.0, *map(float, range(1, groups))]
    keys = rng.choices(different, k=ROWS)
    if is_clustered:
        keys.sort(key=order_of_number)
    columns = {"k": keys, "d": rng.choices([None, *range(40)], k=ROWS), "id": list(range(ROWS))}
    if has_text:
        columns["text"] = [rng.choice([None, "", "short", "of more than some bytes " * 3]) for _ in keys]
    return pa.record_batch(columns)


def first_rows(workshop, batch, keys, limit, *, pages=4_000, step=700, as_rows=False):
    """Return the rows that are left, and how many bytes were spilled."""
    with workshop.operator(pages) as (pool, space):
        sorter = ExternalSorter(batch.schema, keys, pool, space)
        sorter.cut_groups(limit)
        for start in range(0, batch.num_rows, step):
            part = batch.slice(start, step)
            if as_rows:
                sorter.add_rows(RowCodec(part.schema).to_rows(part))
            else:
                sorter.add_batch(part)
        sorter.finish()
        found = [row for made in sorter.batches() for row in made.to_pylist()]
        spilled = sorter.spilled_bytes
        sorter.close()
    return found, spilled


def wanted_ids(batch, function, count):
    """Return the rows wanted of each group by k in the order of d, descending; rows with equal keys as they come."""
    groups = {}
    for row in batch.to_pylist():
        groups.setdefault(order_of_number(row["k"]), []).append(row)
    found = []
    for _, group in sorted(groups.items()):
        ordered = sorted(group, key=lambda row: (row["d"] is not None, -(row["d"] or 0)))
        for at, row in enumerate(ordered):
            before = at if function == "row_number" else [other["d"] for other in ordered].index(row["d"])
            if before < count:
                found.append(row["id"])
    return found


@pytest.mark.parametrize("count", [1, 2, 3, 8])
@pytest.mark.parametrize("function", ["row_number", "rank"])
@pytest.mark.parametrize("has_text", [False, True])
@pytest.mark.parametrize(("is_clustered", "as_rows"), [(False, False), (True, False), (False, True)])
def test_the_first_rows_of_each_group_are_left_in_order_of_arrival(
    workshop, count, function, has_text, is_clustered, as_rows
):
    batch = table(count, groups=400, has_text=has_text, is_clustered=is_clustered)
    keys = (SortKey("k"), SortKey("d", descending=True))
    found, _ = first_rows(workshop, batch, keys, GroupLimit(function, count, 1, 1), as_rows=as_rows)
    assert [row["id"] for row in found] == wanted_ids(batch, function, count)
    by_id = {row["id"]: row for row in batch.to_pylist()}
    assert all(repr(row) == repr(by_id[row["id"]]) for row in found)


@pytest.mark.parametrize("has_text", [False, True])
@pytest.mark.parametrize("is_clustered", [False, True])
def test_few_groups_need_no_memory_for_all_rows(workshop, has_text, is_clustered):
    batch = table(7, groups=40, has_text=has_text, is_clustered=is_clustered)
    keys = (SortKey("k"), SortKey("d", descending=True))
    found, spilled = first_rows(workshop, batch, keys, GroupLimit("row_number", 1, 1, 1), pages=32)
    assert ([row["id"] for row in found], spilled) == (wanted_ids(batch, "row_number", 1), 0)


@pytest.mark.parametrize("pages", [8, 40, 130, 4_000])
@pytest.mark.parametrize("groups", [50, 3_000])
@pytest.mark.parametrize("has_text", [False, True])
def test_rows_that_leave_the_memory_lose_nothing(workshop, pages, groups, has_text):
    batch = table(pages, groups=groups, has_text=has_text)
    keys = (SortKey("k"), SortKey("d", descending=True))
    found, _ = first_rows(workshop, batch, keys, GroupLimit("row_number", 2, 1, 1), pages=pages)
    wanted = wanted_ids(batch, "row_number", 2)
    of_them = set(wanted)
    assert [row["id"] for row in found if row["id"] in of_them] == wanted


def test_without_an_order_the_rows_that_come_first_are_left(workshop):
    batch = table(1, groups=300)
    found, _ = first_rows(workshop, batch, (SortKey("k"),), GroupLimit("row_number", 2, 1, 0))
    groups = {}
    for row in batch.to_pylist():
        groups.setdefault(order_of_number(row["k"]), []).append(row["id"])
    assert [row["id"] for row in found] == [number for _, group in sorted(groups.items()) for number in group[:2]]


def test_groups_of_several_keys_and_of_text(workshop):
    rng = random.Random(5)
    keys = [(rng.choice([None, "", "a", "a key that is longer than a prefix"]), rng.randrange(30)) for _ in range(ROWS)]
    batch = pa.record_batch(
        {
            "name": [name for name, _ in keys],
            "n": [number for _, number in keys],
            "d": [rng.random() for _ in keys],
        }
    )
    order = (SortKey("name"), SortKey("n"), SortKey("d"))
    found, spilled = first_rows(workshop, batch, order, GroupLimit("row_number", 1, 2, 1), pages=64)
    least = {}
    for row in batch.to_pylist():
        key = (row["name"], row["n"])
        least[key] = min(least.get(key, 2.0), row["d"])
    assert {(row["name"], row["n"]): row["d"] for row in found} == least
    assert (len(found), spilled) == (len(least), 0)


@pytest.mark.parametrize("share", [1, 2])
def test_where_most_groups_are_new_all_rows_are_sorted(workshop, share):
    numbers = list(range(100_000 // share)) * share
    random.Random(3).shuffle(numbers)
    batch = pa.record_batch({"k": numbers, "d": list(range(len(numbers)))})
    found, _ = first_rows(workshop, batch, (SortKey("k"), SortKey("d")), GroupLimit("row_number", 1, 1, 1), step=9_000)
    first = {}
    for place, number in enumerate(numbers):
        first.setdefault(number, place)
    assert [(row["k"], row["d"]) for row in found] == sorted(first.items())
