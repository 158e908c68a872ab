"""Sort, join and group by agree with plain Python: types x nulls x duplicates x skew x batches x subtasks x memory.

A pairwise sample by default, the whole product under ``make torture``.
"""

import functools
import zlib
from collections import defaultdict

import pyarrow as pa
import pytest

from engine import col, count, count_distinct, max_, min_, sum_
from tests.integration.row_oracle import assert_same_order, assert_same_rows, plain, rows_of
from tests.property.matrix import IS_TORTURE, combinations, name_of
from tests.property.rows import TYPES, table

ROWS, OTHER_ROWS = 500, 60
#: the first rows come in batches as small as a case says, the others in batches of LARGE_BATCH or more
SMALL_BATCH_ROWS = ROWS if IS_TORTURE else 100
LARGE_BATCH = 49
#: pages of 4 KiB for each subtask; the rows of a test are about twelve
PAGES = {"fits": None, "half": 8, "minimum": 6}

AXES = {
    "type": TYPES,
    "nulls": ["none", "some", "all"],
    "duplicates": ["unique", "few", "one"],
    "skew": ["even", "heavy"],
    "batch": [1, 2, 7, 49, 8192],
    "parallelism": [1, 3, 8],
    "memory": list(PAGES),
}
JOINS = ["inner", "left", "right", "full", "semi", "anti"]


def every(**more):
    return pytest.mark.parametrize("case", combinations(AXES | more), ids=name_of)


def seed_of(case, extra=""):
    return zlib.crc32((name_of(case) + extra).encode())


def left_table(case, rows=ROWS):
    return table(case["type"], case["nulls"], case["duplicates"], case["skew"], rows, seed_of(case))


def read(environment, rows, case):
    small = rows.slice(0, SMALL_BATCH_ROWS).to_batches(case["batch"])
    large = rows.slice(SMALL_BATCH_ROWS).to_batches(max(case["batch"], LARGE_BATCH))
    return environment.from_arrow(pa.Table.from_batches([*small, *large], rows.schema))


@pytest.fixture
def environment(case, open_environment):
    settings = {"parallelism__default": case["parallelism"]}
    if PAGES[case["memory"]] is not None:
        settings["taskmanager__memory__managed__size"] = f"{PAGES[case['memory']] * 4 * case['parallelism']}kb"
    return open_environment(**settings)


@every(order=["up", "down", "up nulls last", "down nulls last"])
def test_sort_agrees(case, environment):
    rows = left_table(case)
    descending, nulls_last = case["order"].startswith("down"), case["order"].endswith("last")
    by_key = read(environment, rows, case).sort(["k", "v"], descending=[descending, False], nulls_last=nulls_last)
    assert_same_order(rows_of(by_key.to_arrow()), sorted(rows_of(rows), key=sort_key(descending, nulls_last)))


def sort_key(descending, nulls_last):
    def compare(left, right):
        if left[0] is None or right[0] is None:
            if (left[0] is None) != (right[0] is None):
                return 1 if (left[0] is None) == nulls_last else -1
        elif (x := ordered(left[0])) != (y := ordered(right[0])):
            return (1 if x > y else -1) * (-1 if descending else 1)
        return left[1] - right[1]

    return functools.cmp_to_key(compare)


def ordered(value):
    """Return what orders like the value by the contract: NaN is the largest number, strings compare by bytes."""
    if isinstance(value, float):
        return (1, 0.0) if value != value else (0, value)
    return value.encode() if isinstance(value, str) else value


@every(how=JOINS)
def test_join_agrees(case, environment):
    left = left_table(case)
    right = table(case["type"], "some", "few", "even", OTHER_ROWS, seed_of(case, "right")).rename_columns(
        ["k", "w", "t"]
    )
    joined = read(environment, left, case).join(read(environment, right, case), on="k", how=case["how"])
    assert_same_rows(rows_of(joined.to_arrow()), join(rows_of(left), rows_of(right), case["how"]))


def join(left, right, how):
    matches = defaultdict(list)
    for row in right:
        if row[0] is not None:
            matches[plain(row[0])].append(row)
    found = {plain(row[0]) for row in left if row[0] is not None}
    of_left = [(row, matches.get(plain(row[0]), []) if row[0] is not None else []) for row in left]
    if how in ("semi", "anti"):
        return [row for row, others in of_left if bool(others) == (how == "semi")]
    result = [(*row, *other[1:]) for row, others in of_left for other in others]
    if how in ("left", "full"):
        result += [(*row, None, None) for row, others in of_left if not others]
    if how in ("right", "full"):
        result += [(row[0], None, None, *row[1:]) for row in right if row[0] is None or plain(row[0]) not in found]
    return result


@every()
def test_group_by_agrees(case, environment):
    rows = left_table(case)
    grouped = (
        read(environment, rows, case)
        .group_by("k")
        .agg(
            rows=count(),
            strings=count(col("s")),
            total=sum_(col("v")),
            first=min_(col("v")),
            longest=max_(col("s")),
            kinds=count_distinct(col("s")),
        )
    )
    assert_same_rows(rows_of(grouped.to_arrow()), group(rows_of(rows)))


def group(rows):
    groups = defaultdict(list)
    for row in rows:
        groups[plain(row[0])].append(row)
    result = []
    for members in groups.values():
        strings = [row[2] for row in members if row[2] is not None]
        numbers = [row[1] for row in members]
        result.append(
            (
                members[0][0],
                len(members),
                len(strings),
                sum(numbers),
                min(numbers),
                max(strings, default=None),
                len(set(strings)),
            )
        )
    return result
