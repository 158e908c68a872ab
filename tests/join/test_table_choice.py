"""Which kind of table a build side gets, and that the join is the same with each of them."""

import numpy as np
import pyarrow as pa
import pytest

from engine.graph.said_operators import JoinType
from engine.join.borrowed_build import borrow_build
from engine.join.replicated_keys import ReplicatedKeys
from tests.join.join_oracle import hash_join, join_memory, oracle_join, rows_of, table_rows

ROWS = 66_000
NUMBERS = np.random.default_rng(5).permutation(ROWS)
SPREAD = NUMBERS * 10**9
FEW = pa.array(NUMBERS % 7)
MANY = pa.array(NUMBERS)


def table_of(keys, values):
    return pa.table({"k": pa.array(keys), "v": values})


SIDES = {
    "close together, few rows that differ": (table_of(NUMBERS, FEW), "dictionary"),
    "close together, many rows that differ": (table_of(NUMBERS, MANY), "dense"),
    "close together, twice each": (table_of(NUMBERS // 2, FEW), "dense"),
    "far apart": (table_of(SPREAD, FEW), "tagged"),
    "texts": (table_of([str(number) for number in NUMBERS], FEW), "tagged"),
    "too few for a dictionary": (table_of(NUMBERS[:3000] % 3000, FEW.slice(0, 3000)), "dense"),
    "none": (table_of(NUMBERS[:0], FEW.slice(0, 0)), "tagged"),
}


def new_join(build, pool, space, **options):
    probe = pa.schema([build.schema.field("k"), ("n", pa.int64())])
    schema = pa.schema([("n", pa.int64()), ("v", pa.int64())])
    output = [(0, 1), (1, 1)]
    how = options.pop("how", JoinType.LEFT)
    return hash_join(how, build.schema, probe, [0], [0], False, output, schema, pool, space, **options)


def fill(join, build):
    for batch in build.to_batches(max_chunksize=9000):
        join.add_build_batch(batch)
    join.finish_build()


def probe_of(build):
    keys = build["k"].slice(0, 500).combine_chunks() if build.num_rows else pa.array([1, 2, 3])
    strangers = pa.array([None, None], keys.type)
    return pa.table({"k": pa.concat_arrays([keys, strangers]), "n": range(len(keys) + 2)}).combine_chunks()


@pytest.mark.parametrize("name", SIDES)
@pytest.mark.parametrize("borrows", [False, True])
def test_the_table_follows_from_the_rows_and_finds_the_same(tmp_path, name, borrows):
    build, kind = SIDES[name]
    probe = probe_of(build)
    with join_memory(tmp_path, 4000, 4096) as (pool, space):
        joins = [new_join(build, pool, space)]
        fill(joins[0], build)
        if borrows:
            joins.append(new_join(build, pool, space))
            borrow_build(joins[1], joins[0])
        assert joins[-1].table_kind == kind
        found = rows_of([*joins[-1].probe(probe.to_batches()[0]), *joins[-1].finish_probe()])
        for join in joins[::-1]:
            join.close()
    pairs = oracle_join(JoinType.LEFT, table_rows(probe), table_rows(build), [0], [0], (2, 2))
    expected = {}
    for (_, number, _, value), count in pairs.items():
        expected[number, value] = expected.get((number, value), 0) + count
    assert found == expected


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"how": JoinType.FULL}, "dense"),  # build rows carry a matched bit of their own
        ({"replicated": ReplicatedKeys(frozenset({7}), is_build=True)}, "dense"),
        ({"row_limit": 10**6}, "dense"),
        ({"row_limit": 8}, "tagged"),  # some partitions are spilled
    ],
    ids=str,
)
def test_a_dictionary_is_not_for_every_join(tmp_path, options, kind):
    build, _ = SIDES["close together, few rows that differ"]
    with join_memory(tmp_path, 4000, 4096) as (pool, space):
        join = new_join(build, pool, space, **options)
        fill(join, build)
        assert join.table_kind == kind
        join.close()
