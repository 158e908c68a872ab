"""The eight channel selectors and the hash selector: each row goes to the channel that its rule names."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import DataError, IllegalTransitionError, PlanError, SchemaError
from engine.exchange.channel_selector import (
    BroadcastSelector,
    ForwardSelector,
    GlobalSelector,
    RebalanceSelector,
    RescaleSelector,
    ShuffleSelector,
    SubtaskStateMapper,
)
from engine.exchange.key_selector import CustomSelector, HashSelector, KeyGroupSelector
from engine.exchange.selector_choice import selector_for
from engine.graph.ship_strategy import PartitionerSpec

SCHEMA = pa.schema([("k", pa.int64()), ("s", pa.string())])
UP = SubtaskStateMapper.ARBITRARY
NONE = SubtaskStateMapper.UNSUPPORTED


def rows(count: int) -> pa.RecordBatch:
    return pa.record_batch({"k": list(range(count)), "s": [str(k) for k in range(count)]}, schema=SCHEMA)


@pytest.mark.parametrize(
    ("kind", "keys", "pointwise", "upstream", "downstream"),
    [
        ("GLOBAL", (), False, UP, SubtaskStateMapper.FIRST),
        ("SHUFFLE", (), False, UP, SubtaskStateMapper.ROUND_ROBIN),
        ("REBALANCE", (), False, UP, SubtaskStateMapper.ROUND_ROBIN),
        ("RESCALE", (), True, NONE, NONE),
        ("BROADCAST", (), False, NONE, NONE),
        ("FORWARD", (), True, NONE, NONE),
        ("KEYGROUP", ("k",), False, UP, SubtaskStateMapper.RANGE),
        ("CUSTOM", ("k",), False, UP, SubtaskStateMapper.FULL),
        ("HASH", ("k", "s"), False, UP, SubtaskStateMapper.FULL),
    ],
)
def test_every_partitioner_has_its_selector_with_name_pattern_and_mappers(
    kind: str, keys: tuple[str, ...], pointwise: bool, upstream: str, downstream: str
) -> None:
    spec = PartitionerSpec(kind, keys)
    selector = selector_for(spec, SCHEMA, 3)
    assert str(selector) == kind
    assert selector.is_pointwise == pointwise == spec.is_pointwise
    assert (selector.upstream_mapper, selector.downstream_mapper) == (upstream, downstream)
    assert selector.is_broadcast == (kind == "BROADCAST")
    twin = selector.copy()
    assert twin is not selector
    assert twin == selector
    assert hash(twin) == hash(selector)
    assert selector != selector_for(spec, SCHEMA, 4)
    assert selector != (GlobalSelector(3) if kind != "GLOBAL" else ForwardSelector(3))


def test_broadcast_has_no_channel_to_select() -> None:
    with pytest.raises(NotImplementedError, match="no channel to select"):
        BroadcastSelector(3).channels_of(rows(1))


def test_global_and_forward_always_choose_channel_0() -> None:
    assert set(GlobalSelector(5).channels_of(rows(1000))) == {0}
    assert set(ForwardSelector(1).channels_of(rows(1000))) == {0}


def test_shuffle_is_uniform_over_a_million_rows() -> None:
    selector = ShuffleSelector(7, 42)
    counts: Counter[int] = Counter()
    batch = rows(50_000)
    for _ in range(20):
        counts.update(selector.channels_of(batch))
    expected = 1_000_000 / 7
    chi_square = sum((counts[channel] - expected) ** 2 / expected for channel in range(7))
    assert chi_square < 22.46  # 0.1 % for 6 degrees of freedom; the seed makes it repeatable
    assert set(counts) == set(range(7))


def test_shuffle_is_repeatable_with_a_seed_and_different_without() -> None:
    batch = rows(100)
    assert ShuffleSelector(9, 5).channels_of(batch) == ShuffleSelector(9, 5).channels_of(batch)
    assert ShuffleSelector(9, 5).channels_of(batch) != ShuffleSelector(9, 6).channels_of(batch)
    assert ShuffleSelector(9).channels_of(batch) != ShuffleSelector(9).channels_of(batch)


@given(st.integers(1, 9), st.lists(st.integers(1, 30), min_size=1, max_size=8))
def test_rebalance_differs_by_at_most_one_and_goes_on_where_it_was(channel_count: int, sizes: list[int]) -> None:
    selector = RebalanceSelector(channel_count)
    channels = [channel for size in sizes for channel in selector.channels_of(rows(size))]
    counts = Counter(dict.fromkeys(range(channel_count), 0)) + Counter(channels)
    all_counts = [counts[channel] for channel in range(channel_count)]
    assert max(all_counts) - min(all_counts) <= 1
    assert all((a + 1) % channel_count == b for a, b in itertools.pairwise(channels))


def test_rebalance_begins_anywhere() -> None:
    assert len({RebalanceSelector(4).channels_of(rows(1))[0] for _ in range(100)}) > 1


def test_rescale_begins_with_channel_0_and_wraps() -> None:
    selector = RescaleSelector(2)
    assert selector.channels_of(rows(3)) == [0, 1, 0]
    assert selector.channels_of(rows(2)) == [1, 0]


@pytest.mark.parametrize(
    ("values", "group"),
    [
        (["EUR"], 110),
        (["USD"], 69),
        (["hello"], 35),
        (pa.array([0, 1, 42, -1], pa.int32()), [94, 86, 29, 80]),
        (pa.array([1000000007, -(2**63)], pa.int64()), [96, 108]),
    ],
)
def test_key_groups_are_those_of_flink(values: Any, group: Any) -> None:
    batch = pa.record_batch({"k": pa.array(values)})
    selector = KeyGroupSelector(128, batch.schema, ["k"])
    assert selector.channels_of(batch) == (group if isinstance(group, list) else [group])
    operators = KeyGroupSelector(4, batch.schema, ["k"]).channels_of(batch)
    assert operators == [g * 4 // 128 for g in selector.channels_of(batch)]


def test_a_null_key_is_refused_by_key_groups_only() -> None:
    batch = pa.record_batch({"k": pa.array([1, None], pa.int64())})
    with pytest.raises(DataError, match="Assigned key must not be null!"):
        KeyGroupSelector(2, batch.schema, ["k"]).channels_of(batch)
    assert len(HashSelector(2, batch.schema, ["k"]).channels_of(batch)) == 2


def test_the_number_of_key_groups_has_bounds() -> None:
    selector = KeyGroupSelector(4, SCHEMA, ["k"])
    for groups in (3, 40_000):
        with pytest.raises(PlanError, match="key groups"):
            selector.configure(groups)
    selector.configure(4)
    assert selector.max_parallelism == 4


def test_equal_keys_share_a_channel_and_channels_are_even() -> None:
    selector = HashSelector(4, SCHEMA, ["k"])
    first = selector.channels_of(rows(40_000))
    assert first == selector.copy().channels_of(rows(40_000))
    assert all(9_500 < count < 10_500 for count in Counter(first).values())


def test_keys_that_are_equal_as_keys_share_a_channel() -> None:
    nan = float("nan")
    batch = pa.record_batch({"k": [0.0, -0.0, nan, -nan, None, None]})
    channels = HashSelector(1000, batch.schema, ["k"]).channels_of(batch)
    assert channels[0] == channels[1]
    assert channels[2] == channels[3]
    assert channels[4] == channels[5]


def test_null_keys_go_to_one_channel_or_to_all_in_turn() -> None:
    batch = pa.record_batch({"k": pa.array([None] * 8 + [1], pa.int64()), "s": ["x"] * 9})
    assert len(set(HashSelector(4, batch.schema, ["k"]).channels_of(batch)[:8])) == 1
    spread = HashSelector(4, batch.schema, ["s", "k"], spread_nulls=True)
    assert spread.channels_of(batch)[:8] == [0, 1, 2, 3] * 2
    assert spread.channels_of(batch)[8] == HashSelector(4, batch.schema, ["s", "k"]).channels_of(batch)[8]


def test_custom_channels_come_from_a_column_that_does_not_travel() -> None:
    channels = pa.array([9, 2, 0, 1, 9], pa.int32()).slice(1, 3)
    batch = rows(3).append_column("__channel", channels)
    selector = CustomSelector(3, "__channel")
    sent = selector.travelling(batch)
    assert sent.equals(rows(3))
    assert selector.channels_of(sent) == [2, 0, 1]


@pytest.mark.parametrize("answer", [-1, 2, None])
def test_a_custom_channel_that_is_none_is_an_error(answer: Any) -> None:
    batch = rows(2).append_column("__channel", pa.array([0, answer], pa.int32()))
    with pytest.raises(DataError, match="channel"):
        CustomSelector(2, "__channel").travelling(batch)


def test_custom_rows_without_their_channels_are_refused() -> None:
    with pytest.raises(IllegalTransitionError, match="without their channels"):
        CustomSelector(2, "__channel").channels_of(rows(1))


def test_what_cannot_be_selected_is_refused_with_a_reason() -> None:
    with pytest.raises(PlanError, match="at least one channel"):
        GlobalSelector(0)
    with pytest.raises(SchemaError, match="no column 'q'"):
        HashSelector(2, SCHEMA, ["q"])
    with pytest.raises(PlanError, match="at least one key"):
        HashSelector(2, SCHEMA, [])
    with pytest.raises(PlanError, match="says where rows go"):
        selector_for(PartitionerSpec("CUSTOM", ()), SCHEMA, 2)
    with pytest.raises(PlanError, match="unknown partitioner 'X'"):
        selector_for(PartitionerSpec("X"), SCHEMA, 2)
