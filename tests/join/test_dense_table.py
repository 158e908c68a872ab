"""Build rows by the number that is their key: the same rows as by its hash, wherever keys lie and however they come."""

import random

import pyarrow as pa
import pytest

from engine.graph.said_operators import JoinType
from engine.join.borrowed_build import borrow_build, can_be_borrowed
from tests.join.join_oracle import assert_joins_like_oracle, hash_join, join_memory, rows_of

KEYED = [how for how in JoinType if how is not JoinType.CROSS]
ORDERS = {
    "ascending": sorted,
    "descending": lambda keys: sorted(keys, reverse=True),
    "in no order": lambda keys: random.Random(5).sample(keys, len(keys)),
    "two runs": lambda keys: sorted(keys[::2]) + sorted(keys[1::2]),
}


def table_of(keys, key_type=None, tag="b"):
    keys = keys if isinstance(keys, pa.Array) else pa.array(keys, key_type or pa.int64())
    return pa.table({"k": keys, "n": range(len(keys)), "t": [tag * (n % 30) for n in range(len(keys))]})


def joined(folder, build, probe, how=JoinType.INNER, **options):
    """Join like the oracle; return whether the keys were found to be dense."""
    seen = []

    def probe_with(join, batch):
        seen.append(join.table_kind == "dense")
        return join.probe(batch)

    left, right = (build, probe) if options.get("build_is_left") else (probe, build)
    run = assert_joins_like_oracle(folder, how, left, right, [0], [0], probe_with=probe_with, **options)
    assert len(set(seen)) == 1
    return seen[0], run


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("how", KEYED)
@pytest.mark.parametrize("build_is_left", [False, True])
def test_keys_with_gaps_and_repeats_join_like_the_oracle(tmp_path, order, how, build_is_left):
    keys = [-900 + 3 * n for n in range(900)] + [-900 + 3 * n for n in range(0, 900, 7)]
    probe = table_of([None if n % 50 == 0 else -1000 + n for n in range(3000)], tag="p")
    build = table_of(ORDERS[order](keys))
    assert joined(tmp_path, build, probe, how, build_is_left=build_is_left, pages=300, batch_rows=97)[0]


@pytest.mark.parametrize("null_keys", [0, 3])
@pytest.mark.parametrize("how", [JoinType.INNER, JoinType.FULL])
def test_the_lowest_and_highest_key_may_come_last(tmp_path, how, null_keys):
    keys = [*random.Random(7).sample(range(0, 12000, 3), 4000), *range(0, 12000, 60), *[None] * null_keys, -2000, 14000]
    build = table_of(keys)
    probe = table_of(range(-2500, 14500, 2), tag="p")
    assert joined(tmp_path, build, probe, how, pages=900, batch_rows=97)[0]


@pytest.mark.parametrize(
    ("key_type", "low", "high"),
    [
        (pa.int8(), -128, 127),
        (pa.uint8(), 0, 255),
        (pa.int16(), -32768, -32000),
        (pa.uint16(), 65000, 65535),
        (pa.int32(), -(2**31), -(2**31) + 700),
        (pa.uint32(), 2**32 - 700, 2**32 - 1),
        (pa.int64(), -400, 400),
        (pa.int64(), -(2**63), -(2**63) + 700),
        (pa.int64(), 2**63 - 700, 2**63 - 1),
        (pa.uint64(), 2**63 - 300, 2**63 + 300),
        (pa.uint64(), 2**64 - 700, 2**64 - 1),
    ],
)
def test_every_integer_is_found_up_to_its_bounds(tmp_path, key_type, low, high):
    keys = list(range(low, high + 1))
    build = table_of(keys[::2], key_type)
    probe = table_of([*keys, 0, 1, 127], key_type, tag="p")
    assert joined(tmp_path, build, probe, pages=300, batch_rows=100)[0]


@pytest.mark.parametrize("key_type", [pa.date32(), pa.timestamp("s"), pa.time32("s")])
def test_dates_and_times_are_numbers(tmp_path, key_type):
    keys = pa.array(range(100, 800), pa.int32() if key_type != pa.timestamp("s") else pa.int64()).cast(key_type)
    assert joined(tmp_path, table_of(keys), table_of(keys.slice(50), tag="p"), pages=300)[0]


@pytest.mark.parametrize("key_type", [pa.float64(), pa.string(), pa.decimal128(19, 0), pa.bool_()])
def test_other_keys_are_hashed(tmp_path, key_type):
    keys = pa.array([n % 2 for n in range(30)], pa.int64()).cast(key_type)
    assert not joined(tmp_path, table_of(keys), table_of(keys.slice(5), tag="p"), pages=300)[0]


@pytest.mark.parametrize(("step", "is_dense"), [(1, True), (8, True), (40, False), (10**15, False)])
def test_keys_far_apart_are_hashed(tmp_path, step, is_dense):
    keys = random.Random(1).sample([n * step - 5 * step for n in range(9000)], 9000)
    probe = table_of([keys[n % 9000] + n % 2 for n in range(3000)], tag="p")
    assert joined(tmp_path, table_of(keys), probe, pages=600)[0] == is_dense


def test_one_key_far_from_the_others_has_all_hashed(tmp_path):
    keys = [*range(3000), 2**40, *range(0, 3000, 3)]
    dense, _ = joined(tmp_path, table_of(keys), table_of(range(-5, 3100), tag="p"), pages=600, batch_rows=512)
    assert not dense


@pytest.mark.parametrize("how", [JoinType.INNER, JoinType.FULL, JoinType.SEMI, JoinType.ANTI])
@pytest.mark.parametrize("build_is_left", [False, True])
@pytest.mark.parametrize("pages", [6, 20, 30, 34, 38, 42, 50, 80])
def test_memory_that_ends_while_rows_come_changes_nothing(tmp_path, how, build_is_left, pages):
    build = table_of([n // 2 * 3 for n in range(2000)])
    probe = table_of(range(-10, 3100), tag="p")
    dense, run = joined(tmp_path, build, probe, how, build_is_left=build_is_left, pages=pages, batch_rows=128)
    assert dense if pages == 80 else not dense or pages > 6
    assert run.counters["partitions_spilled"] == 0 or pages < 42


@pytest.mark.parametrize("how", KEYED)
@pytest.mark.parametrize("build_is_left", [False, True])
@pytest.mark.parametrize("pages", [40, 60])
def test_rows_that_stay_when_others_are_spilled_are_found_by_number(tmp_path, how, build_is_left, pages):
    keys = random.Random(3).sample(range(4000), 4000)
    build, probe = table_of([*keys, *keys[:500]]), table_of([None, *range(-3, 4003, 2)], tag="p")
    dense, run = joined(tmp_path, build, probe, how, build_is_left=build_is_left, pages=pages, batch_rows=128)
    assert dense
    assert run.counters["partitions_spilled"] > 0
    assert run.counters["probe_rows_spilled"] > 0


@pytest.mark.parametrize(("step", "is_dense"), [(1, True), (2, True), (6, False)])
def test_a_table_by_number_that_is_hardly_larger_has_a_few_rows_more_spilled(tmp_path, step, is_dense):
    keys = [step * key for key in random.Random(3).sample(range(9000), 9000)]
    build = pa.table({"k": keys, "n": range(9000)})
    probe = table_of(range(0, step * 9000, 2), tag="p")
    dense, run = joined(tmp_path, build, probe, pages=74, batch_rows=512)
    assert dense == is_dense
    assert run.counters["partitions_spilled"] > 0


@pytest.mark.parametrize("keys_at", ["before", "after"])
def test_a_table_by_number_that_takes_more_than_one_by_hash_is_not_for_what_stays(tmp_path, keys_at):
    outliers = [-(6 * 4000), 6 * 4000]
    keys = random.Random(4).sample(range(4000), 4000)
    build = table_of([*outliers, *keys] if keys_at == "before" else [*keys, *outliers])
    dense, run = joined(tmp_path, build, table_of(range(0, 4000, 3), tag="p"), pages=60, batch_rows=128)
    assert not dense
    assert run.counters["partitions_spilled"] > 0


def test_keys_are_not_looked_at_again_for_every_partition_that_is_spilled(tmp_path):
    """Rows without key say nothing of keys, so what is left is found by hash."""
    keys = random.Random(3).sample(range(4000), 4000)
    build = table_of([*keys[:2000], None, *keys[2000:]])
    probe = table_of(range(0, 4000, 3), tag="p")
    dense, run = joined(tmp_path, build, probe, JoinType.FULL, pages=60, batch_rows=128)
    assert not dense
    assert run.counters["partitions_spilled"] > 0


@pytest.mark.parametrize("how", [JoinType.INNER, JoinType.RIGHT, JoinType.FULL])
def test_build_rows_without_key_come_out_beside_dense_ones(tmp_path, how):
    build = table_of([None if n % 5 == 0 else n for n in range(1000)])
    assert joined(tmp_path, build, table_of(range(500), tag="p"), how, pages=300, batch_rows=64)[0]


def test_dense_keys_are_borrowed(tmp_path):
    build, probe = table_of([n // 2 for n in range(1500)]), table_of(range(-9, 900), tag="p")
    schema = pa.schema([probe.schema.field(0), build.schema.field(1).with_name("m"), build.schema.field(2)])
    arguments = (JoinType.INNER, build.schema, probe.schema, [0], [0], False, [(0, 0), (1, 1), (1, 2)], schema)
    with join_memory(tmp_path, 300, 4096) as (pool, space):
        owner, borrower = hash_join(*arguments, pool, space), hash_join(*arguments, pool, space)
        owner.add_build_batch(build.to_batches()[0])
        owner.finish_build()
        assert can_be_borrowed(owner)
        borrow_build(borrower, owner)
        assert borrower.table_kind == "dense"
        rows = rows_of([*borrower.probe(probe.to_batches()[0]), *borrower.finish_probe()])
        borrower.close()
        owner.close()
    texts = build["t"].to_pylist()
    assert rows == {(n // 2, n, texts[n]): 1 for n in range(1500)}


def test_what_is_closed_before_its_end_gives_its_pages_back(tmp_path):
    build = table_of([n // 2 for n in range(1500)])
    schema = pa.schema([build.schema.field(0)])
    with join_memory(tmp_path, 300, 4096) as (pool, space):
        join = hash_join(JoinType.INNER, build.schema, build.schema, [0], [0], False, [(0, 0)], schema, pool, space)
        join.add_build_batch(build.to_batches()[0])
        assert pool.pages_used > 0
        join.close()
