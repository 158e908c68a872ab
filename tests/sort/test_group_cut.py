"""Sorts whose reader wants the first rows of each group: those are there, and runs are small."""

import random

import pyarrow as pa
import pytest

from engine.graph.sort_key import SortKey
from engine.graph.window import GroupLimit
from engine.sort.external_sorter import ExternalSorter

KEYS = (SortKey("k"), SortKey("d"), SortKey("id"))
ROWS = 1_500


def rows():
    rng = random.Random(3)
    keys = [rng.choice([None, "a", "b", "a long key that has no room in a prefix"]) for _ in range(ROWS)]
    return pa.record_batch({"k": keys, "d": [rng.randrange(50) for _ in keys], "id": list(range(ROWS))})


def place(function, row, group):
    if function == "row_number":
        return 1 + sum((other["d"], other["id"]) < (row["d"], row["id"]) for other in group)
    before = [other["d"] for other in group if other["d"] < row["d"]]
    return 1 + len(before if function == "rank" else set(before))


def cut(workshop, batch, pages, limit, step):
    """Return the rows that are left of a batch that comes ``step`` rows at a time, and how many bytes were spilled."""
    with workshop.operator(pages) as (pool, space):
        sorter = ExternalSorter(batch.schema, KEYS, pool, space)
        sorter.cut_groups(limit)
        for start in range(0, batch.num_rows, step):
            sorter.add_batch(batch.slice(start, step))
        sorter.finish()
        found = [row for made in sorter.batches() for row in made.to_pylist()]
        spilled = sorter.spilled_bytes
        sorter.close()
    return found, spilled


@pytest.mark.parametrize("pages", [6, 16, 400])
@pytest.mark.parametrize("function", ["row_number", "rank", "dense_rank"])
@pytest.mark.parametrize("count", [0, 1, 7])
def test_rows_up_to_the_limit_are_there_and_few_others(workshop, pages, function, count):
    batch = rows()
    found, spilled = cut(workshop, batch, pages, GroupLimit(function, count, 1, 1), 500)
    plain = batch.to_pylist()
    groups = {}
    for row in plain:
        groups.setdefault(row["k"], []).append(row)
    wanted = {row["id"] for group in groups.values() for row in group if place(function, row, group) <= count}
    assert wanted <= {row["id"] for row in found}
    order = [(row["k"] is not None, row["k"] or "", row["d"], row["id"]) for row in found]
    assert order == sorted(order)
    # of two rows or more a group the first ones fit, where they are known as rows come
    is_judged = function != "dense_rank" and count == 1 and pages > 6
    assert (spilled > 0) == (pages < 400 and count > 0 and not is_judged)
    if function == "row_number":
        assert len(found) < ROWS // 2


def test_without_keys_all_rows_are_one_group(workshop):
    batch = rows()
    with workshop.operator(400) as (pool, space):
        sorter = ExternalSorter(batch.schema, (SortKey("id"),), pool, space)
        sorter.cut_groups(GroupLimit("row_number", 5, 0, 0))
        sorter.add_batch(batch)
        sorter.finish()
        assert [row for made in sorter.batches() for row in made.column("id").to_pylist()] == [0, 1, 2, 3, 4]
        sorter.close()


@pytest.mark.parametrize("function", ["row_number", "rank", "dense_rank"])
@pytest.mark.parametrize("count", [3, 400])  # few of the rows; more than the memory keeps
@pytest.mark.parametrize("pages", [100, 1000])  # one memory; two halves, each for a third of the rows
def test_rows_beyond_the_limit_are_dropped_again_and_again(workshop, function, count, pages):
    rng = random.Random(7)
    total = 60_000
    groups = [rng.choice([None, "a", "a longer key of a group"]) for _ in range(total)]
    places = [rng.randrange(1_000) for _ in groups]
    batch = pa.record_batch({"k": groups, "d": places, "id": range(total), "text": ["x" * 40] * total})
    found, spilled = cut(workshop, batch, pages, GroupLimit(function, count, 1, 1), 3_000)
    wanted = []
    by_group = {}
    for key, place_in_order, number in sorted(
        zip(groups, places, range(total), strict=True), key=lambda row: (row[0] is not None, row[0] or "", *row[1:])
    ):
        by_group.setdefault(key, []).append((place_in_order, number))
    for rows_of_group in by_group.values():
        ranks = {}
        for at, (place_in_order, _) in enumerate(rows_of_group):
            ranks.setdefault(place_in_order, (at + 1, len(ranks) + 1))
        for at, (place_in_order, number) in enumerate(rows_of_group):
            rank = {"row_number": at + 1, "rank": ranks[place_in_order][0], "dense_rank": ranks[place_in_order][1]}
            if rank[function] <= count:
                wanted.append(number)
    kept = [row["id"] for row in found]
    of_them = set(wanted)
    assert [number for number in kept if number in of_them] == wanted
    is_judged = function != "dense_rank" and count == 3
    assert (spilled == 0) == (is_judged or (pages == 1000 and len(wanted) < 2_000))
    assert len(kept) < total // 2 or count > 3
