"""Equality and order of keys agree with plain Python; normalized keys never contradict them."""

from __future__ import annotations

import functools
import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import SchemaError
from engine.graph.sort_key import SortKey
from engine.records.comparator import KeyEquality, RowComparator
from engine.records.normalized_key import NormalizedKey
from engine.records.row_codec import RowCodec
from tests.native import _records_probe as probe
from tests.records.batches import KEY_TYPES, NESTED_TYPES, batches, columns


def key_value(value: Any) -> Any:
    """Return a value under which Python compares as keys do."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value + 0.0)
    return value.encode() if isinstance(value, str) else value


def compare(left: list[Any], right: list[Any], keys: list[SortKey]) -> int:
    """Compare two rows of key values: the oracle."""
    for one, other, key in zip(left, right, keys, strict=True):
        if one is None or other is None:
            if (one is None) != (other is None):
                return 1 if (one is None) == key.nulls_last else -1
            continue
        first, second = key_value(one), key_value(other)
        if first != second:
            return (1 if first > second else -1) * (-1 if key.descending else 1)
    return 0


@st.composite
def keyed_batches(draw: st.DrawFn, max_rows: int = 8) -> tuple[pa.RecordBatch, list[SortKey]]:
    count = draw(st.integers(1, max_rows))
    names = draw(st.lists(st.sampled_from(sorted(KEY_TYPES)), min_size=1, max_size=4, unique=True))
    fields, arrays = [], []
    for name in names:
        nullable = draw(st.booleans()) or name == "null"
        pool = draw(columns(KEY_TYPES[name], 3, nulls=nullable))
        # Few values, so that ties are frequent and the next key decides.
        arrays.append(pool.take(pa.array(draw(st.lists(st.integers(0, 2), min_size=count, max_size=count)))))
        fields.append(pa.field(name, KEY_TYPES[name], nullable=nullable))
    keys = [SortKey(name, descending=draw(st.booleans()), nulls_last=draw(st.booleans())) for name in names]
    order = draw(st.permutations(range(len(names))))
    schema = pa.schema([fields[index] for index in order])
    return pa.RecordBatch.from_arrays([arrays[index] for index in order], schema=schema), keys


def key_rows(batch: pa.RecordBatch, keys: list[SortKey]) -> list[list[Any]]:
    taken = [batch.column(key.column).to_pylist() for key in keys]
    return [[column[row] for column in taken] for row in range(batch.num_rows)]


@settings(max_examples=200, deadline=None)
@given(keyed_batches())
def test_comparator_agrees_with_the_oracle(case: tuple[pa.RecordBatch, list[SortKey]]) -> None:
    batch, keys = case
    codec = RowCodec(batch.schema)
    rows = key_rows(batch, keys)
    expected = [[compare(left, right, keys) for right in rows] for left in rows]
    assert probe.compare_all(RowComparator(codec, keys), codec.to_rows(batch)) == expected


@settings(max_examples=200, deadline=None)
@given(keyed_batches())
def test_normalized_keys_never_contradict_the_comparator(case: tuple[pa.RecordBatch, list[SortKey]]) -> None:
    batch, keys = case
    codec = RowCodec(batch.schema)
    normalized = NormalizedKey(codec, keys)
    prefixes = probe.prefixes(normalized, codec.to_rows(batch))
    rows = key_rows(batch, keys)
    for left, left_prefix in zip(rows, prefixes, strict=True):
        for right, right_prefix in zip(rows, prefixes, strict=True):
            order = compare(left, right, keys)
            by_prefix = (left_prefix > right_prefix) - (left_prefix < right_prefix)
            assert by_prefix in (0, order)
            if normalized.decides or not probe.is_open(normalized, left_prefix):
                assert by_prefix == order


@settings(max_examples=200, deadline=None)
@given(keyed_batches(), st.data())
def test_equality_agrees_with_the_oracle(case: tuple[pa.RecordBatch, list[SortKey]], data: st.DataObject) -> None:
    batch, keys = case
    rows = key_rows(batch, keys)
    key_columns = [batch.schema.get_field_index(key.column) for key in keys]
    # The right side has the same columns in another place, and one more.
    extra = pa.array(range(batch.num_rows), pa.int16())
    names = [*reversed(batch.schema.names), "extra"]
    fields = [batch.schema.field(name) for name in names[:-1]]
    right = pa.RecordBatch.from_arrays(
        [*reversed(batch.columns), extra], schema=pa.schema([*fields, pa.field("extra", pa.int16())])
    )
    left_codec, right_codec = RowCodec(batch.schema), RowCodec(right.schema)
    equality = KeyEquality(left_codec, key_columns, right_codec, [names.index(key.column) for key in keys])
    expected = [[compare(one, other, keys) == 0 for other in rows] for one in rows]
    right_page = right_codec.to_rows(right)
    assert probe.rows_equal(equality, left_codec.to_rows(batch), right_page) == expected
    assert probe.batch_equals_rows(equality, batch, right_page) == expected


def prefix(values: list[Any], data_type: pa.DataType, nullable: bool = False, **order: bool) -> list[str]:
    schema = pa.schema([pa.field("key", data_type, nullable=nullable)])
    codec = RowCodec(schema)
    page = codec.to_rows(pa.RecordBatch.from_arrays([pa.array(values, data_type)], schema=schema))
    return [f"{value:016x}" for value in probe.prefixes(NormalizedKey(codec, [SortKey("key", **order)]), page)]


def test_prefixes_are_flinks_normalized_keys() -> None:
    assert prefix([0, -1], pa.int32()) == ["8000000000000000", "7fffffff00000000"]
    assert prefix([1], pa.int64()) == ["8000000000000001"]
    floats = prefix([1.5, -1.5, -0.0, 0.0, float("nan")], pa.float32())
    assert [text[:8] for text in floats] == ["bfc00000", "403fffff", "80000000", "80000000", "ffc00000"]
    assert prefix([-1.5], pa.float64()) == ["4007ffffffffffff"]
    assert prefix(["EUR"], pa.string()) == ["4555520000000000"]


@pytest.mark.parametrize("order", [{}, {"descending": True}, {"nulls_last": True}])
@pytest.mark.parametrize(
    ("values", "data_type"),
    [
        ([*range(-(2**63), 3 - 2**63), 0, *range(2**63 - 3, 2**63)], pa.int64()),
        ([-math.inf, 0.0, math.nan], pa.float64()),
    ],
)
def test_rows_of_one_prefix_alone_may_differ_where_null_is_a_number(
    values: list[Any], data_type: pa.DataType, order: dict[str, bool]
) -> None:
    batch = pa.record_batch({"key": pa.array([*values, None], data_type), "more": pa.nulls(len(values) + 1, pa.int8())})
    codec = RowCodec(batch.schema)
    alone = NormalizedKey(codec, [SortKey("key", **order)])
    prefixes = probe.prefixes(alone, codec.to_rows(batch))
    twice = {each for each in prefixes if prefixes.count(each) > 1}
    # Infinity is no number of all zeros, so nothing but null has its prefix.
    assert len(twice) == (data_type == pa.int64())
    assert {each for each in prefixes if probe.is_open(alone, each)} == twice
    more = NormalizedKey(codec, [SortKey("key", **order), SortKey("more")])
    assert all(probe.is_open(more, each) for each in prefixes)


def test_a_marker_is_one_bit_and_does_not_turn_with_descending() -> None:
    assert prefix([0, None], pa.int32(), nullable=True) == ["c000000000000000", "4000000000000000"]
    assert prefix([0, None], pa.int32(), nullable=True, nulls_last=True) == ["4000000000000000", "c000000000000000"]
    assert prefix([0, -1, None], pa.int8(), nullable=True, descending=True) == [
        "bf80000000000000",
        "c000000000000000",
        "3f80000000000000",
    ]
    assert prefix(["EUR", None], pa.string(), nullable=True) == ["a2aaa90000000000", "0000000000000000"]


def decides(*columns: tuple[pa.DataType, bool]) -> bool:
    schema = pa.schema([pa.field(f"c{index}", kind, nullable=null) for index, (kind, null) in enumerate(columns)])
    return NormalizedKey(RowCodec(schema), [SortKey(name) for name in schema.names]).decides


def test_prefixes_decide_when_every_key_fits_with_its_marker() -> None:
    assert decides((pa.int64(), False))
    assert not decides((pa.int64(), True))
    assert decides((pa.int32(), True), (pa.int16(), True), (pa.int8(), True), (pa.bool_(), True))
    assert decides((pa.int32(), False), (pa.float32(), False))
    assert not decides((pa.int32(), True), (pa.float32(), False))
    assert not decides((pa.string(), False))
    assert not decides((pa.int8(), False), (pa.string(), False))
    assert not decides((pa.int64(), False), (pa.int8(), False))
    assert decides((pa.decimal128(9, 2), True))
    assert decides((pa.decimal128(18, 2), False))
    assert not decides((pa.decimal128(19, 2), False))
    assert decides((pa.binary(7), True))
    assert not decides((pa.binary(9), False))
    assert decides((pa.date32(), True), (pa.null(), True))


def test_neighbours_of_64_bits_stay_apart_also_where_there_may_be_nulls() -> None:
    assert len(set(prefix(list(range(100)), pa.int64(), nullable=True))) == 100
    least, most = -(2**63), 2**63 - 1
    edges = [None, least, least + 1, -1, 0, most - 1, most]
    for descending in (False, True):
        for nulls_last in (False, True):
            found = prefix(edges, pa.int64(), nullable=True, descending=descending, nulls_last=nulls_last)
            first, values = found[0], found[:0:-1] if descending else found[1:]
            assert first == ("f" * 16 if nulls_last else "0" * 16)
            assert values == sorted(values)
            assert first not in values
            assert len(set(values)) == 5  # the two at the end where nulls are
    # it takes all bits, so another key has none; behind another key it has a marker
    schema = pa.schema([("b", pa.bool_()), ("n", pa.int64())])
    page = RowCodec(schema).to_rows(pa.record_batch([[True, True, True], [None, 4, 2**62]], schema=schema))
    keys = NormalizedKey(RowCodec(schema), [SortKey("b"), SortKey("n")])
    assert [value >> 61 for value in probe.prefixes(keys, page)] == [0b110, 0b111, 0b111]


def test_sorting_by_prefix_and_comparator_is_sorting() -> None:
    words = [None, "b", "a", "aaaaaaaaaa", "aaaaaaaaab", "aaaaaaaaa", "", "ä", "z"]
    schema = pa.schema([("key", pa.string())])
    batch = pa.record_batch([pa.array(words)], schema=schema)
    codec = RowCodec(schema)
    keys = [SortKey("key", descending=True, nulls_last=True)]
    page = codec.to_rows(batch)
    prefixes = probe.prefixes(NormalizedKey(codec, keys), page)
    signs = probe.compare_all(RowComparator(codec, keys), page)

    def order(one: int, other: int) -> int:
        first, second = prefixes[one], prefixes[other]
        return (first > second) - (first < second) or signs[one][other]

    ordered = sorted(range(len(words)), key=functools.cmp_to_key(order))
    assert [words[index] for index in ordered] == [
        "ä",
        "z",
        "b",
        "aaaaaaaaab",
        "aaaaaaaaaa",
        "aaaaaaaaa",
        "a",
        "",
        None,
    ]


@pytest.mark.parametrize("name", sorted(NESTED_TYPES))
def test_nested_columns_are_refused_as_keys(name: str) -> None:
    codec = RowCodec(pa.schema([("fine", pa.int8()), ("value", NESTED_TYPES[name])]))
    with pytest.raises(SchemaError, match=r"column 'value' of type .* cannot be a key; use"):
        RowComparator(codec, [SortKey("fine"), SortKey("value")])
    with pytest.raises(SchemaError, match=r"column 'value' of type .* cannot be a key; use"):
        NormalizedKey(codec, [SortKey("value")])
    with pytest.raises(SchemaError, match=r"column 'value' of type .* cannot be a key; use"):
        KeyEquality(codec, [1], codec, [1])


def test_extension_columns_are_refused_as_keys() -> None:
    codec = RowCodec(pa.schema([("id", pa.uuid())]))
    with pytest.raises(SchemaError, match=r"column 'id' of type .* cannot be a key"):
        RowComparator(codec, [SortKey("id")])


def test_keys_of_different_types_cannot_be_compared() -> None:
    left = RowCodec(pa.schema([("a", pa.int32()), ("s", pa.string())]))
    right = RowCodec(pa.schema([("b", pa.int64()), ("t", pa.large_string()), ("u", pa.date32())]))
    KeyEquality(left, [1], right, [1])
    with pytest.raises(SchemaError, match="'a' of type int32 and 'b' of type int64 cannot be compared; cast"):
        KeyEquality(left, [0], right, [0])
    with pytest.raises(SchemaError, match="'a' of type int32 and 'u' of type date32"):
        KeyEquality(left, [0], right, [2])
    with pytest.raises(SchemaError, match="1 key columns cannot be compared with 2"):
        KeyEquality(left, [0], right, [0, 1])


def test_unknown_and_ambiguous_sort_columns_are_refused() -> None:
    codec = RowCodec(pa.schema([("a", pa.int8()), ("a", pa.int8())]))
    with pytest.raises(SchemaError, match="column 'b' is not there; the columns are a, a"):
        RowComparator(codec, [SortKey("b")])
    with pytest.raises(SchemaError, match="column 'a' is there 2 times"):
        NormalizedKey(codec, [SortKey("a")])


def test_large_strings_equal_strings_across_sides() -> None:
    left = pa.record_batch({"k": pa.array(["a", "", "long enough for more than one word", None])})
    right = pa.record_batch({"k": pa.array(["a", "", "long enough for more than one word", None], pa.large_string())})
    left_codec, right_codec = RowCodec(left.schema), RowCodec(right.schema)
    identity = [[one == other for other in range(4)] for one in range(4)]
    forth = KeyEquality(left_codec, [0], right_codec, [0])
    back = KeyEquality(right_codec, [0], left_codec, [0])
    assert probe.batch_equals_rows(forth, left, right_codec.to_rows(right)) == identity
    assert probe.batch_equals_rows(back, right, left_codec.to_rows(left)) == identity


@settings(max_examples=50, deadline=None)
@given(batches(KEY_TYPES, max_rows=6))
def test_a_batch_equals_its_own_rows_and_equal_keys_have_equal_hashes(batch: pa.RecordBatch) -> None:
    codec = RowCodec(batch.schema)
    keys = list(range(batch.num_columns))
    page = codec.to_rows(batch)
    matches = probe.batch_equals_rows(KeyEquality(codec, keys, codec, keys), batch, page)
    hashes = probe.hashes_of_batch(batch, keys)
    words = [hashes[row * 8 : row * 8 + 8] for row in range(batch.num_rows)]
    for one in range(batch.num_rows):
        assert matches[one][one]
        for other in range(batch.num_rows):
            assert not matches[one][other] or words[one] == words[other]
