"""Key groups: Flink's numbers, Java's hash codes."""

from __future__ import annotations

import decimal
import struct
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import DataError, SchemaError
from engine.records.key_group import (
    KeyGroupAssigner,
    default_max_parallelism,
    key_group,
    key_group_range,
    murmur_hash,
    operator_index,
)


def groups(values: Sequence[Any], data_type: pa.DataType, max_parallelism: int = 128) -> list[int]:
    batch = pa.record_batch({"key": pa.array(values, data_type)})
    return KeyGroupAssigner(batch.schema, [0], max_parallelism).key_groups(batch)


def codes(values: Sequence[Any], data_type: pa.DataType) -> list[int]:
    batch = pa.record_batch({"key": pa.array(values, data_type)})
    return KeyGroupAssigner(batch.schema, [0], 128).java_hash_codes(batch)


def int32(value: int) -> int:
    return (value + 2**31) % 2**32 - 2**31


def java_string_hash(text: str) -> int:
    units = struct.unpack(f"<{len(text.encode('utf-16-le')) // 2}H", text.encode("utf-16-le"))
    code = 0
    for unit in units:
        code = 31 * code + unit
    return int32(code)


def test_groups_are_those_measured_on_flink() -> None:
    assert groups(["EUR", "USD", "hello"], pa.string()) == [110, 69, 35]
    assert groups([0, 1, 42, -1], pa.int32()) == [94, 86, 29, 80]
    assert groups([1000000007, -(2**63)], pa.int64()) == [96, 108]


def test_operators_are_those_measured_on_flink() -> None:
    texts = [operator_index(group, 128, 4) for group in groups(["EUR", "USD", "hello"], pa.string())]
    assert texts == [3, 2, 1]
    assert operator_index(groups([42], pa.int32())[0], 128, 4) == 0
    assert [key_group_range(128, 3, index) for index in range(3)] == [(0, 42), (43, 85), (86, 127)]


def test_default_max_parallelism_is_flinks() -> None:
    found = {parallelism: default_max_parallelism(parallelism) for parallelism in (1, 85, 86, 200, 1000, 100_000)}
    assert found == {1: 128, 85: 128, 86: 256, 200: 512, 1000: 2048, 100_000: 32768}


@given(st.integers(1, 400), st.integers(1, 400))
def test_ranges_part_the_groups_among_the_operators(max_parallelism: int, parallelism: int) -> None:
    parallelism = min(parallelism, max_parallelism)
    for index in range(parallelism):
        first, last = key_group_range(max_parallelism, parallelism, index)
        for group in range(first, last + 1):
            assert operator_index(group, max_parallelism, parallelism) == index
    assert (
        sum(
            last - first + 1
            for first, last in (key_group_range(max_parallelism, parallelism, i) for i in range(parallelism))
        )
        == max_parallelism
    )


@settings(max_examples=200, deadline=None)
@given(st.lists(st.text(max_size=12)))
def test_strings_hash_as_java_strings_of_utf16(texts: list[str]) -> None:
    expected = [java_string_hash(text) for text in texts]
    assert codes(texts, pa.string()) == codes(texts, pa.large_string()) == expected


def test_strings_beyond_the_basic_plane_are_two_units() -> None:
    # Java: "\uD83D\uDE00".hashCode() == 1772899, "é".hashCode() == 233, "€".hashCode() == 8364
    assert codes(["😀", "é", "€", ""], pa.string()) == [1772899, 233, 8364, 0]


def test_numbers_hash_as_in_java() -> None:
    assert codes([0, 1, -1, 2**63 - 1, -(2**63), 1000000007], pa.int64()) == [0, 1, 0, -(2**31), -(2**31), 1000000007]
    assert codes([7, -7], pa.int8()) == codes([7, -7], pa.int16()) == codes([7, -7], pa.int32()) == [7, -7]
    assert codes([255], pa.uint8()) == [255]
    assert codes([65535], pa.uint16()) == [65535]
    assert codes([2**32 - 1], pa.uint32()) == [-1]
    assert codes([True, False], pa.bool_()) == [1231, 1237]
    assert codes([1.0, -1.5, 0.0, -0.0, float("nan")], pa.float64()) == [1072693248, -1074266112, 0, 0, 2146959360]
    assert codes([1.0, -1.5, -0.0, float("nan")], pa.float32()) == [1065353216, -1077936128, 0, 2143289344]
    assert codes([1.0, -1.5, 2.0**-24, 65504.0], pa.float16()) == codes([1.0, -1.5, 2.0**-24, 65504.0], pa.float32())
    assert codes([b"", b"\x01\xff"], pa.binary()) == [1, 31 * (31 + 1) - 1]
    assert codes([b"\x01\xff"], pa.binary(2)) == [31 * (31 + 1) - 1]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(-(10**38) + 1, 10**38 - 1)))
def test_decimals_hash_as_java_big_decimals(unscaled: list[int]) -> None:
    def expected(value: int) -> int:
        code, magnitude = 0, abs(value)
        words = []
        while magnitude:
            words.append(magnitude % 2**32)
            magnitude //= 2**32
        for word in reversed(words):
            code = 31 * code + word
        return int32(31 * int32(code if value >= 0 else -code) + 4)

    context = decimal.Context(prec=60)
    values = [context.create_decimal(value).scaleb(-4, context) for value in unscaled]
    assert codes(values, pa.decimal128(38, 4)) == [expected(value) for value in unscaled]
    assert codes(values, pa.decimal256(50, 4)) == [expected(value) for value in unscaled]


def test_several_columns_combine_as_arrays_hash_code() -> None:
    batch = pa.record_batch({"a": pa.array(["EUR", ""]), "b": pa.array([5, -1], pa.int32())})
    assigner = KeyGroupAssigner(batch.schema, [0, 1], 128)
    expected = [int32(31 * (31 * 1 + java_string_hash("EUR")) + 5), int32(31 * 31 - 1)]
    assert assigner.java_hash_codes(batch) == expected
    assert assigner.key_groups(batch) == [key_group(code, 128) for code in expected]


def test_murmur_is_never_negative() -> None:
    assert all(0 <= murmur_hash(int32(code * 2654435761)) < 2**31 for code in range(20000))


def test_a_null_key_is_refused() -> None:
    with pytest.raises(DataError, match=r"Assigned key must not be null! Key key, row 2 of a batch of 3"):
        groups(["a", "b", None], pa.string())


def test_nested_keys_and_senseless_maxima_are_refused() -> None:
    schema = pa.schema([("l", pa.list_(pa.int8())), ("i", pa.int8())])
    with pytest.raises(SchemaError, match=r"column 'l' of type list<item: int8> cannot be a key"):
        KeyGroupAssigner(schema, [0], 128)
    with pytest.raises(ValueError, match="max parallelism 0"):
        KeyGroupAssigner(schema, [1], 0)
    with pytest.raises(ValueError, match="at least one key"):
        KeyGroupAssigner(schema, [], 8)
