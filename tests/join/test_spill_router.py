"""Probe rows taken from pages before they are decoded: the same result, the same rows in the same files."""

import random

import pyarrow as pa
import pytest

from engine.errors import CorruptBlockError
from engine.exchange.page_reader import PageReader
from engine.graph.said_operators import JoinType
from engine.join.spill_router import SpillRouter
from engine.records.row_codec import RowCodec
from tests.join.join_oracle import ALL_TYPES, assert_joins_like_oracle, hash_join, join_memory

KEYED = [how for how in ALL_TYPES if how is not JoinType.CROSS]


def draw(seed, rows, domain, tag):
    chance = random.Random(seed)
    keys = [None if chance.random() < 0.1 else chance.randrange(domain) for _ in range(rows)]
    return pa.table({"k": pa.array(keys, pa.int64()), "n": range(rows), "t": [tag * (n % 30) for n in range(rows)]})


class Routed:
    """Probes with pages of rows, as an exchange brings them, through a router."""

    def __init__(self):
        self.taken = 0

    def __call__(self, join, batch):
        router = SpillRouter(join)
        reader = PageReader(batch.schema, router=router)
        codec = RowCodec(batch.schema)
        for start in range(0, batch.num_rows, 100):
            reader.add_row(codec.to_rows(batch.slice(start, 100)))
        for staged in reader.take_batches():
            yield from join.probe(staged)
        self.taken += router.row_count


@pytest.mark.sample("pairs")
@pytest.mark.parametrize("how", KEYED)
@pytest.mark.parametrize("build_is_left", [False, True])
@pytest.mark.parametrize("pages", [24, 6], ids=["half", "six pages"])
@pytest.mark.parametrize("domain", [500, 5000], ids=["most match", "few match"])
@pytest.mark.parametrize("batch_rows", [1, 700, 8192])
def test_sifted_rows_join_like_decoded_ones(tmp_path, how, build_is_left, pages, domain, batch_rows):
    build, probe = draw(1, 2500, 900, "b"), draw(2, 300 if batch_rows == 1 else 2000, domain, "p")
    left, right = (build, probe) if build_is_left else (probe, build)
    options = {"build_is_left": build_is_left, "pages": pages, "batch_rows": batch_rows}
    routed = Routed()
    run = assert_joins_like_oracle(tmp_path / "1", how, left, right, [0], [0], probe_with=routed, **options)
    plain = assert_joins_like_oracle(tmp_path / "2", how, left, right, [0], [0], **options)
    assert routed.taken >= run.counters["probe_rows_spilled"] > 0
    assert run.counters["probe_rows_spilled"] == plain.counters["probe_rows_spilled"]
    assert run.raw_bytes == plain.raw_bytes


def table(rows):
    return pa.table({"k": [f"key {n}" for n in range(rows)], "n": range(rows)}).to_batches()[0]


def filled_join(pool, space, rows):
    schema = table(1).schema
    join = hash_join(
        JoinType.SEMI, schema, schema, [0], [0], False, [(0, 0)], pa.schema([("k", pa.string())]), pool, space
    )
    join.add_build_batch(table(rows))
    join.finish_build()
    return join


def test_a_damaged_row_is_an_error_before_its_key_is_read(tmp_path):
    with join_memory(tmp_path, 6, 4096) as (pool, space):
        join = filled_join(pool, space, 3000)
        rows = bytearray(RowCodec(table(1).schema).to_rows(table(1)))
        rows[8:12] = (1 << 20).to_bytes(4, "little")  # where the string begins
        reader = PageReader(table(1).schema, router=SpillRouter(join))
        with pytest.raises(CorruptBlockError, match="another writer"):
            reader.add_row(rows)
        join.close()


def test_nothing_is_written_for_an_output_that_nobody_needs(tmp_path):
    with join_memory(tmp_path, 6, 4096) as (pool, space):
        join = filled_join(pool, space, 3000)
        router = SpillRouter(join)
        router.drops_all = True
        reader = PageReader(table(1).schema, router=router)
        reader.add_row(RowCodec(table(1).schema).to_rows(table(500)))
        assert reader.staged_rows == 0
        assert join.probe_rows_spilled == 0
        join.close()


def test_a_join_whose_build_side_is_not_complete_has_no_router(tmp_path):
    with join_memory(tmp_path, 6, 4096) as (pool, space):
        join = filled_join(pool, space, 10)
        list(join.finish_probe())
        with pytest.raises(ValueError, match="complete build side"):
            SpillRouter(join)
        join.close()
