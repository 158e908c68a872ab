"""Spilling, recursion, the block-wise path and rows larger than a page: that they happen, and what they leave."""

import random

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from engine.graph.said_operators import JoinType
from engine.memory.budget import Budget, Kind
from engine.records import wide_rows
from tests.join.join_oracle import (
    ALL_TYPES,
    LEFT_ONLY,
    assert_joins_like_oracle,
    hash_join,
    join_memory,
    run_join,
    spill_files,
)

TYPES = [how for how in ALL_TYPES if how is not JoinType.CROSS]


def numbered(keys, width=40):
    return pa.table(
        {
            "k": pa.array(keys, pa.int64()),
            "n": range(len(keys)),
            "t": [str(n) * (n % width // 8) for n in range(len(keys))],
        }
    )


def drawn(seed, rows, domain):
    chance = random.Random(seed)
    return numbered([chance.randrange(domain) for _ in range(rows)])


def test_only_what_does_not_fit_is_spilled(tmp_path):
    build, probe = drawn(1, 4000, 4000), drawn(2, 1000, 4000)
    half = assert_joins_like_oracle(tmp_path, JoinType.INNER, probe, build, [0], [0], pages=40)
    # 64 partitions at most, of 40 pages 16
    assert 0 < half.counters["partitions_spilled"] < 16
    assert half.counters["repartition_count"] == 0


@pytest.mark.parametrize("how", TYPES)
@pytest.mark.parametrize("build_is_left", [False, True])
def test_a_build_side_far_larger_than_memory_recurses(tmp_path, monkeypatch, how, build_is_left):
    monkeypatch.setattr("engine.join.spilled_pair.PASSES_CHEAP", 1)
    build, probe = drawn(3, 6000, 3000), drawn(4, 9000, 3000)
    left, right = (build, probe) if build_is_left else (probe, build)
    run = assert_joins_like_oracle(tmp_path, how, left, right, [0], [0], build_is_left=build_is_left, pages=6)
    assert run.counters["repartition_count"] > 0
    assert run.counters["level_max"] >= 1
    assert run.pages_peak <= 6


def heavy(rows, size, tail):
    """Rows of the key 7, together ``rows * size`` bytes, and one of each key of ``tail``."""
    keys = [7] * rows + list(tail) + [None] * 3
    return pa.table({"k": pa.array(keys, pa.int64()), "n": range(len(keys)), "t": ["x" * size] * len(keys)})


@pytest.mark.parametrize("how", TYPES)
@pytest.mark.parametrize("build_is_left", [False, True])
@pytest.mark.parametrize("heavier", ["build", "probe", "both"])
def test_one_key_larger_than_memory_is_joined_block_wise(tmp_path, how, build_is_left, heavier):
    rows = {"build": (300, 4), "probe": (4, 300), "both": (120, 130)}[heavier]
    build, probe = heavy(rows[0], 600, range(60)), heavy(rows[1], 600, range(20, 90))
    left, right = (build, probe) if build_is_left else (probe, build)
    run = assert_joins_like_oracle(tmp_path, how, left, right, [0], [0], build_is_left=build_is_left, pages=6)
    assert run.counters["block_pass_count"] > 2
    assert (run.counters["reversed_count"] > 0) == (heavier == "build")
    if heavier == "both":
        assert run.counters["block_wise_count"] >= 1
        assert run.counters["repartition_count"] <= 1
    assert run.pages_peak <= 6


@pytest.mark.parametrize("how", TYPES)
@pytest.mark.parametrize("build_is_left", [False, True])
@pytest.mark.parametrize("pages", [6, 20])
def test_a_pair_is_built_from_its_smaller_file(tmp_path, how, build_is_left, pages):
    build, probe = drawn(5, 1000 * pages, 3000), drawn(6, 80 * pages, 3000)
    left, right = (build, probe) if build_is_left else (probe, build)
    run = assert_joins_like_oracle(tmp_path, how, left, right, [0], [0], build_is_left=build_is_left, pages=pages)
    assert run.counters["reversed_count"] > 0
    assert run.counters["repartition_count"] == 0
    assert run.pages_peak <= pages


@pytest.mark.parametrize("build_is_left", [False, True])
@pytest.mark.parametrize("pages", [64, 6])
def test_a_cross_join_streams_over_blocks_of_its_build_side(tmp_path, build_is_left, pages):
    left, right = heavy(150, 300, []), heavy(90, 300, [])
    run = assert_joins_like_oracle(
        tmp_path, JoinType.CROSS, left, right, [], [], build_is_left=build_is_left, pages=pages
    )
    assert (run.counters["block_wise_count"] > 0) == (pages == 6)
    assert run.counters["spilled_bytes"] < 2 * (left.nbytes + right.nbytes)
    assert run.pages_peak <= pages


def test_a_key_heavy_on_the_probe_side_is_streamed_not_scattered_deep(tmp_path):
    build, probe = drawn(5, 2500, 2500), numbered([7] * 9900 + list(range(100)))
    run = assert_joins_like_oracle(tmp_path, JoinType.INNER, probe, build, [0], [0], pages=12)
    assert run.counters["partitions_spilled"] > 0
    assert run.pages_peak <= 12


@pytest.mark.parametrize("how", TYPES)
@pytest.mark.parametrize("build_is_left", [False, True])
@pytest.mark.parametrize("pages", [6, 24, 400])
def test_rows_larger_than_a_page_or_the_budget_join(tmp_path, how, build_is_left, pages):
    def table(rows, size):
        return pa.table(
            {
                "k": pa.array([n % 13 if n % 11 else None for n in range(rows)], pa.int64()),
                "t": [chr(97 + n % 26) * (size if n % 3 == 0 else n) for n in range(rows)],
            }
        )

    left, right = table(40, 10_000), table(30, 60_000)
    run = assert_joins_like_oracle(
        tmp_path, how, left, right, [0], [0], build_is_left=build_is_left, pages=pages, batch_rows=7
    )
    assert run.pages_peak <= pages
    assert (run.counters["spilled_bytes"] > 0) == (pages < 400)


def test_a_very_wide_row_on_its_way_to_disk_waits_for_its_room(tmp_path, monkeypatch):
    rooms = []
    monkeypatch.setattr(wide_rows, "WIDE_BYTES", 30_000)

    class Noting(Budget):
        def step(self, kind, size, is_ended):
            rooms.append(size)
            return super().step(kind, size, is_ended)

    monkeypatch.setattr(wide_rows, "process_budget", budget := Noting())
    table = pa.table({"k": range(20), "t": ["a" * (60_000 if k % 4 == 0 else 9000) for k in range(20)]})
    assert_joins_like_oracle(tmp_path, JoinType.INNER, table, table, [0], [0], pages=6)
    assert len(rooms) >= 10 and min(rooms) > 60_000, "five rows of each side, and those only"
    assert budget.held(Kind.ARROW) == 0


@pytest.mark.parametrize("how", TYPES)
@pytest.mark.parametrize("build_is_left", [False, True])
def test_probe_rows_without_match_are_not_spilled(tmp_path, how, build_is_left):
    build, probe = drawn(8, 6000, 6000), drawn(9, 6000, 60_000)
    left, right = (build, probe) if build_is_left else (probe, build)
    run = assert_joins_like_oracle(tmp_path, how, left, right, [0], [0], build_is_left=build_is_left, pages=64)
    waiting = run.counters["probe_rows_spilled"] + run.counters["probe_rows_filtered"]
    assert waiting > 1500
    # a tenth of them has a match
    assert run.counters["probe_rows_spilled"] < 0.2 * waiting
    assert run.pages_peak <= 64


def test_a_filter_with_too_many_keys_is_given_up(tmp_path):
    build, probe = drawn(8, 20_000, 20_000), drawn(9, 500, 200_000)
    run = assert_joins_like_oracle(tmp_path, JoinType.LEFT, probe, build, [0], [0], pages=9)
    assert run.counters["probe_rows_filtered"] < 50
    assert run.pages_peak <= 9


def test_spilled_bytes_stay_below_twice_the_input(tmp_path):
    build, probe = drawn(6, 20_000, 20_000), drawn(7, 20_000, 20_000)
    run = assert_joins_like_oracle(tmp_path, JoinType.INNER, probe, build, [0], [0], pages=40)
    assert run.counters["partitions_spilled"] > 3
    assert run.counters["spilled_bytes"] < 2 * (build.nbytes + probe.nbytes)


@pytest.mark.parametrize("how", TYPES)
@pytest.mark.parametrize("build_is_left", [False, True])
def test_three_hundred_thousand_rows_join_like_duckdb(tmp_path, how, build_is_left):
    chance = np.random.default_rng(11)
    left = pa.table({"k": chance.integers(0, 90_000, 300_000), "x": chance.integers(0, 1 << 30, 300_000)})
    right = pa.table({"k": chance.integers(0, 120_000, 100_000), "y": chance.integers(0, 1 << 30, 100_000)})
    run = run_join(tmp_path, how, left, right, [0], [0], build_is_left=build_is_left, pages=160, page_size=8192)
    assert run.counters["partitions_spilled"] > 0
    database = duckdb.connect()
    for name, table in (("a", left), ("b", right), ("joined", pa.Table.from_batches(run.batches))):
        database.register(name, table)
    columns, totals = "c0, c1, c2, c3", "a.k c0, a.x c1, b.k c2, b.y c3"
    if how in LEFT_ONLY:
        columns, totals = "c0, c1", "a.k c0, a.x c1"
    expected = f"(select {totals} from a {how.value} join b on a.k = b.k)"
    totals = f"select count(*), count(c0), sum(hash({columns}) % 1000000007) from "
    assert database.sql(totals + "joined").fetchall() == database.sql(totals + expected).fetchall()


def test_matches_of_one_row_come_out_in_bounded_batches_before_the_end(tmp_path):
    build, probe = numbered([1] * 100_000, width=1), numbered([1, 1])
    run = run_join(tmp_path, JoinType.INNER, probe, build, [0], [0], output=[(0, 1), (1, 1)], pages=2048)
    assert sum(batch.num_rows for batch in run.batches) == 200_000
    assert len({batch.num_rows for batch in run.batches[:-1]}) == 1
    assert 8192 <= run.batches[0].num_rows <= 32768


@pytest.mark.parametrize("stage", ["build", "probe", "pairs", "block-wise"])
def test_a_join_that_is_given_up_leaves_nothing(tmp_path, stage):
    build = numbered([7] * 3000) if stage == "block-wise" else drawn(8, 4000, 500)
    probe = drawn(9, 3000, 500) if stage != "block-wise" else numbered([7] * 50)
    output, schema = [(0, 1), (1, 1)], pa.schema([("l", pa.int64()), ("r", pa.int64())])
    with join_memory(tmp_path, 8, 4096) as (pool, space):
        sides = (build.schema, probe.schema, [0], [0], False)
        join = hash_join(JoinType.LEFT, *sides, output, schema, pool, space)
        for batch in build.to_batches(max_chunksize=500):
            join.add_build_batch(batch)
        if stage != "build":
            join.finish_build()
            for batch in probe.to_batches(max_chunksize=500):
                for _ in join.probe(batch):
                    pass
        if stage in {"pairs", "block-wise"}:
            rest = join.finish_probe()
            assert next(rest).num_rows > 0
        assert pool.pages_used > 0
        assert join.spilled_bytes >= 0
        join.close()
        assert pool.pages_used == 0
    assert spill_files(tmp_path) == []


@pytest.mark.parametrize("match_share", [0, 1])
def test_a_filter_that_keeps_nothing_out_is_given_up(tmp_path, match_share):
    build = drawn(8, 6000, 6000)
    present = build["k"].to_numpy()
    asked = np.tile(present, 150) if match_share else np.arange(10_000, 910_000)
    probe = pa.table({"k": np.concatenate([asked, np.arange(10_000, 40_000)])})
    run = run_join(tmp_path, JoinType.SEMI, probe, build, [0], [0], pages=64)
    assert sum(batch.num_rows for batch in run.batches) == (len(asked) if match_share else 0)
    waiting = run.counters["probe_rows_spilled"] + run.counters["probe_rows_filtered"]
    assert waiting > 1.2 * (1 << 18)
    # the last rows have no match: nobody looks any more after so many that had one
    filtered = run.counters["probe_rows_filtered"]
    assert filtered == 0 if match_share else filtered > 0.9 * waiting
