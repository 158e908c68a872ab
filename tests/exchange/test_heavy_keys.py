"""Rows of heavy keys are spread or replicated, and the first one of each producer goes home."""

from __future__ import annotations

import datetime
import decimal
from collections import Counter
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.exchange.heavy_hashes import heavy_hashes
from engine.exchange.key_selector import HashSelector
from engine.exchange.selector_choice import selector_for
from engine.graph.ship_strategy import HeavyKeys, PartitionerSpec, ResultPartitionType
from tests.exchange.test_record_writer import SCHEMA, batch_of, exchange
from tests.exchange.world import BLOCKING, PIPELINED, World, descriptor


def selector_of(heavy: HeavyKeys, channels: int = 4, **options: Any) -> HashSelector:
    selector = selector_for(PartitionerSpec("HASH", ("k",), heavy=heavy, **options), SCHEMA, channels)
    assert isinstance(selector, HashSelector)
    return selector


def keys_batch(keys: list[int | None]) -> pa.RecordBatch:
    return batch_of([(key, str(row)) for row, key in enumerate(keys)])


def replicating(world: World, result_type: ResultPartitionType) -> Any:
    spec = PartitionerSpec("HASH", ("k",), heavy=HeavyKeys(replicated=(("7",),)))
    return world.partition(msgspec.structs.replace(descriptor(3, result_type=result_type), partitioner=spec))


def home_of(key: int, channels: int) -> int:
    (channel,) = HashSelector(channels, SCHEMA, ("k",)).channels_of(keys_batch([key]))
    return channel


def test_the_first_row_of_a_spread_key_goes_home_and_the_others_to_all_in_turn() -> None:
    selector = selector_of(HeavyKeys(spread=(("7",), ("-1",))))
    channels = selector.channels_of(keys_batch([7, 7, -1, 7, 7, -1, 7, 7]))
    assert channels[0] == home_of(7, 4)
    assert channels[2] == home_of(-1, 4)
    assert [channels[row] for row in (1, 3, 4, 5, 6, 7)] == [0, 1, 2, 3, 0, 1]


def test_a_key_goes_home_once_for_each_producer_not_for_each_batch() -> None:
    selector = selector_of(HeavyKeys(spread=(("7",),)))
    assert selector.channels_of(keys_batch([7])) == [home_of(7, 4)]
    assert selector.channels_of(keys_batch([7, 7, 7])) == [0, 1, 2]
    twin = selector.copy()
    assert twin.channels_of(keys_batch([7, 7])) == [home_of(7, 4), 0]


def test_keys_that_are_not_split_go_where_they_always_go() -> None:
    heavy = HeavyKeys(spread=(("7",),), replicated=(("8",),))
    keys: list[int | None] = [key for key in range(1000) if key not in (7, 8)]
    assert selector_of(heavy).channels_of(keys_batch(keys)) == HashSelector(4, SCHEMA, ("k",)).channels_of(
        keys_batch(keys)
    )


def test_null_keys_are_spread_beside_heavy_ones() -> None:
    selector = selector_of(HeavyKeys(spread=(("7",),)), spread_nulls=True)
    counts = Counter(selector.channels_of(keys_batch([7, None] * 4000)))
    assert max(counts.values()) - min(counts.values()) <= 4


@given(st.lists(st.one_of(st.none(), st.integers(0, 9)), max_size=200))
def test_divide_takes_out_replicated_rows_and_only_those(keys: list[int | None]) -> None:
    selector = selector_of(HeavyKeys(replicated=(("3",), ("4",))))
    assert selector.replicates
    rest, copies = selector.divide(keys_batch(keys))
    found = [[] if part is None else part.column(0).to_pylist() for part in (rest, copies)]
    assert found == [[key for key in keys if key not in (3, 4)], [key for key in keys if key in (3, 4)]]
    assert copies is None or copies.num_rows


def test_without_replicated_keys_nothing_is_divided() -> None:
    assert not selector_of(HeavyKeys(spread=(("7",),))).replicates


@pytest.mark.parametrize("result_type", [PIPELINED, BLOCKING])
def test_a_writer_sends_replicated_rows_to_every_channel_and_counts_them_once(world: World, result_type: Any) -> None:
    partition = replicating(world, result_type)
    rows = [(key % 10, "x" * (key % 50)) for key in range(3000)]
    received = exchange(world, partition, [batch_of(rows[start : start + 700]) for start in range(0, 3000, 700)])
    heavy_rows = Counter(row for row in rows if row[0] == 7)
    for part in received:
        assert Counter(row for row in part if row[0] == 7) == heavy_rows
    others = Counter(row for part in received for row in part if row[0] != 7)
    assert others == Counter(row for row in rows if row[0] != 7)
    assert partition.rows == 3000


def test_replicated_rows_larger_than_a_buffer_reach_every_channel(world: World) -> None:
    partition = replicating(world, PIPELINED)
    rows = [(7, "x" * 100_000), (1, "y" * 90_000), (7, "z")]
    received = exchange(world, partition, [batch_of(rows)])
    for part in received:
        assert [row for row in part if row[0] == 7] == [rows[0], rows[2]]


_DAY = datetime.datetime(2020, 1, 2, tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    ("data_type", "value", "text"),
    [
        (pa.int8(), -1, "-1"),
        (pa.int64(), -1, "-1"),
        (pa.uint64(), (1 << 64) - 1, str((1 << 64) - 1)),
        (pa.float64(), 7.0, "7"),
        (pa.float64(), -0.0, "0"),
        (pa.float32(), 0.5, "0.5"),
        (pa.bool_(), True, "true"),
        (pa.decimal128(12, 4), decimal.Decimal("1.5"), "1.50"),
        (pa.decimal256(40, 2), decimal.Decimal(7), "7"),
        (pa.date32(), _DAY.date(), "2020-01-02"),
        (pa.timestamp("us"), _DAY.replace(tzinfo=None), "2020-01-02"),
        (pa.timestamp("ns", "UTC"), _DAY, "2020-01-02 00:00:00Z"),
        (pa.string(), "EUR", "EUR"),
        (pa.string(), "", ""),
        (pa.large_string(), "é" * 300, "é" * 300),
        (pa.binary(), b"ab", "ab"),
    ],
)
def test_the_hash_of_a_text_is_that_of_the_value(data_type: pa.DataType, value: Any, text: str) -> None:
    schema = pa.schema([("x", pa.int8()), ("k", data_type)])
    batch = pa.record_batch([[1], pa.array([value], data_type)], schema=schema)
    hashes = heavy_hashes(schema, ("k",), HeavyKeys(spread=((text,),)))
    assert list(hashes.spread) == HashSelector(4, schema, ("k",)).hashes_of(batch)


def test_two_columns_are_one_key() -> None:
    hashes = heavy_hashes(SCHEMA, ("s", "k"), HeavyKeys(replicated=(("a", "7"),)))
    expected = HashSelector(4, SCHEMA, ("s", "k")).hashes_of(batch_of([(7, "a")]))
    assert list(hashes.replicated) == expected


def test_what_is_no_value_of_the_type_is_left_out() -> None:
    heavy = HeavyKeys(spread=(("EUR",), ("7",), ("99999999999999999999",)))
    assert len(heavy_hashes(SCHEMA, ("k",), heavy).spread) == 1
    times = pa.schema([("k", pa.time64("us"))])
    assert heavy_hashes(times, ("k",), HeavyKeys(spread=(("01:02:03",),))).spread == ()


def test_texts_of_one_value_with_both_roles_cancel_each_other() -> None:
    schema = pa.schema([("k", pa.float64())])
    heavy = HeavyKeys(spread=(("1",), ("2",)), replicated=(("1.0",), ("3",)))
    mirrored = HeavyKeys(spread=heavy.replicated, replicated=heavy.spread)
    one, other = heavy_hashes(schema, ("k",), heavy), heavy_hashes(schema, ("k",), mirrored)
    assert (one.spread, one.replicated) == (other.replicated, other.spread)
    assert (len(one.spread), len(one.replicated)) == (1, 1)
