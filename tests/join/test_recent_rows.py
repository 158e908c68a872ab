"""Semi and anti joins of frequent keys with frequent keys: one build row of each key is enough."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from engine.graph.said_operators import JoinType
from engine.join.hash_join import HashJoin
from engine.records.row_codec import RowCodec
from tests.join.join_oracle import rows_of, run_join, table_rows

PAGES, PAGE_BYTES = 6, 4096
#: of a row with such a key
ROW_BYTES = 24
KEYS = {
    "number": lambda keys: {"k": keys},
    "text": lambda keys: {"k": [f"key {key}" for key in keys]},
    "two": lambda keys: {"k": [key % 10 if key % 7 else None for key in keys], "l": [f"{key // 10}" for key in keys]},
    "wide text": lambda keys: {"k": [f"{key:0>200}" for key in keys]},
    # Equal keys of which each comes in two forms of bytes.
    "float": lambda keys: {"k": [key * (-0.0 if index % 2 else 0.0) for index, key in enumerate(keys)]},
}


def heavy(rows, seed, share=0.99, others=300):
    chance = np.random.default_rng(seed)
    return np.where(chance.random(rows) < share, 7, chance.integers(0, others, rows)).tolist()


def add_rows(join, batch):
    join.add_build_rows(RowCodec(batch.schema).to_rows(batch))


def expected_rows(how, left, right, width):
    there = {row[:width] for row in table_rows(right) if None not in row[:width]}
    is_wanted = how is JoinType.SEMI
    return Counter(row for row in table_rows(left) if (row[:width] in there) is is_wanted)


@pytest.mark.parametrize("how", [JoinType.SEMI, JoinType.ANTI])
@pytest.mark.parametrize("build_is_left", [False, True])
@pytest.mark.parametrize("kind", ["number", "text", "two"])
@pytest.mark.parametrize("add", [HashJoin.add_build_batch, add_rows])
def test_a_frequent_key_on_both_sides_is_joined_in_one_pass(tmp_path, how, build_is_left, kind, add):
    rows = 20 * PAGES * PAGE_BYTES // ROW_BYTES
    right = pa.table(KEYS[kind](heavy(rows, 1, others=200)))
    left = pa.table(KEYS[kind](heavy(rows // 2, 2)))
    left = left.append_column("pad", pa.array(["x" * 40] * left.num_rows))
    keys = list(range(right.num_columns))
    options = {"build_is_left": build_is_left, "pages": PAGES, "page_size": PAGE_BYTES, "add_build": add}
    run = run_join(tmp_path, how, left, right, keys, keys, **options)
    assert rows_of(run.batches) == expected_rows(how, left, right, len(keys))
    assert run.counters["build_rows"] == (left if build_is_left else right).num_rows
    assert run.counters["block_wise_count"] == 0, "a pass over the probe file for each memory of equal keys"
    assert run.pages_peak <= PAGES


@pytest.mark.parametrize("how", [JoinType.SEMI, JoinType.ANTI])
@pytest.mark.parametrize("kind", ["wide text", "float"])
def test_equal_keys_that_are_not_known_as_such_all_stay(tmp_path, how, kind):
    right, left = (pa.table(KEYS[kind](heavy(rows, rows, 0.5))) for rows in (3000, 300))
    run = run_join(tmp_path, how, left, right, [0], [0], pages=PAGES, page_size=PAGE_BYTES)
    assert rows_of(run.batches) == expected_rows(how, left, right, 1)
    assert run.counters["partitions_spilled"] > 0


@pytest.mark.parametrize("add", [HashJoin.add_build_batch, add_rows])
@pytest.mark.parametrize("nulls", [0, 1, 50])
def test_not_in_knows_of_nulls_between_repeated_keys(tmp_path, nulls, add):
    right = heavy(20_000, 3, 0.5)
    right[5 : 5 + nulls] = [None] * nulls
    left = [*range(400), None, 7, 7]
    run = run_join(
        tmp_path, JoinType.ANTI, pa.table({"k": left}), pa.table({"k": pa.array(right, pa.int64())}), [0], [0],
        pages=PAGES, page_size=PAGE_BYTES, add_build=add, null_aware=True,
    )  # fmt: skip
    assert rows_of(run.batches) == (Counter() if nulls else Counter((key,) for key in range(300, 400)))


def test_rows_that_others_ask_for_are_all_kept(tmp_path):
    right, left = pa.table({"k": [1, 1, 1, 2]}), pa.table({"k": [1, 2, 3]})
    for how, rows in ((JoinType.INNER, 4), (JoinType.LEFT, 5), (JoinType.RIGHT, 4), (JoinType.FULL, 5)):
        run = run_join(tmp_path, how, left, right, [0], [0])
        assert sum(rows_of(run.batches).values()) == rows
    run = run_join(tmp_path, JoinType.SEMI, right, left, [0], [0], build_is_left=True)
    assert rows_of(run.batches) == Counter({(1,): 3, (2,): 1})
