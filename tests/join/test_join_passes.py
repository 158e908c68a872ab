"""Spilled pairs joined part by part of their keys: results, and how often rows are written."""

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from engine.graph.said_operators import JoinType
from engine.records.row_codec import RowCodec
from tests.join.join_oracle import ALL_TYPES, assert_joins_like_oracle, run_join

TYPES = [how for how in ALL_TYPES if how is not JoinType.CROSS]
#: bytes of a row of `table`
ROW_BYTES = 64


def table(keys):
    return pa.table({"k": keys, "n": np.arange(len(keys)), "t": [f"{index:0>20}" for index in range(len(keys))]})


def row_bytes(given):
    codec = RowCodec(given.schema)
    return sum(len(codec.to_rows(batch)) for batch in given.to_batches())


def sides(case, rows):
    """Keys of build and probe side, that are so many rows together."""
    chance = np.random.default_rng(1)
    builds = rows // (11 if case == "a small build side" else 2)
    build, probe = chance.permutation(builds), chance.integers(0, builds, rows - builds)
    if case == "a heavy probe key":
        probe[chance.random(len(probe)) < 0.12] = 7
    if case == "one probe key":
        probe[chance.random(len(probe)) < 0.99] = 7
    if case == "a heavy build key":
        build[chance.random(len(build)) < 0.12] = builds + 1
    return build, probe


@pytest.mark.thorough
@pytest.mark.parametrize("pages", [6, 12, 32])
@pytest.mark.parametrize(
    "case", ["equal sides", "a small build side", "a heavy probe key", "one probe key", "a heavy build key"]
)
def test_rows_of_a_hundred_times_the_memory_are_written_twice_at_most(tmp_path, pages, case):
    build, probe = (table(keys) for keys in sides(case, 100 * pages * 4096 // ROW_BYTES))
    run = run_join(tmp_path, JoinType.INNER, probe, build, [0], [0], pages=pages, output=[(0, 1), (1, 1)])
    taken = row_bytes(build) + row_bytes(probe)
    assert taken > 80 * pages * 4096
    assert 0.5 * taken < run.raw_bytes <= 2 * taken
    assert run.pages_peak <= pages
    result = pa.Table.from_batches(run.batches)
    query = "count(*), sum(c0::HUGEINT * c1), sum(c0), sum(c1)"
    expected = f"SELECT {query} FROM (SELECT p.n AS c0, b.n AS c1 FROM probe p JOIN build b USING (k))"
    with duckdb.connect() as connection:
        for name, given in (("build", build), ("probe", probe), ("result", result)):
            connection.register(name, given)
        assert connection.sql(f"SELECT {query} FROM result").fetchall() == connection.sql(expected).fetchall()


def repeated(keys, times, size):
    return pa.table({"k": np.repeat(keys, times), "t": ["x" * size] * (len(keys) * times)})


@pytest.mark.parametrize("how", TYPES)
@pytest.mark.parametrize("build_is_left", [False, True])
def test_parts_of_several_blocks_and_parts_without_build_rows_join_like_others(tmp_path, how, build_is_left):
    # Each build key takes more than a third of the memory, so that parts have none, one or too many of them.
    build, probe = repeated(range(0, 24, 2), 16, 600), repeated(range(200), 6, 300)
    left, right = (build, probe) if build_is_left else (probe, build)
    run = assert_joins_like_oracle(tmp_path, how, left, right, [0], [0], build_is_left=build_is_left, pages=6)
    assert run.counters["block_pass_count"] > run.counters["partitions_spilled"] > 0
    assert run.counters["repartition_count"] == 0
    assert run.counters["block_wise_count"] > 0
    assert run.pages_peak <= 6
