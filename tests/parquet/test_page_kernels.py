"""Kernels of pages: runs of numbers, snappy and checksums, against plain Python and pyarrow."""

import random
import zlib

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.native import _page_probe as probe

SNAPPY = pa.Codec("snappy")


def varint(number):
    encoded = bytearray()
    while number >= 0x80:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*encoded, number])


def packed(values, width):
    """Values side by side, the first in the lowest bits; filled up to groups of eight."""
    values = values + [0] * (-len(values) % 8)
    bits = sum(value << (index * width) for index, value in enumerate(values))
    return varint(len(values) // 8 << 1 | 1) + bits.to_bytes(len(values) * width // 8, "little")


def repeated(value, count, width):
    return varint(count << 1) + value.to_bytes((width + 7) // 8, "little")


@pytest.mark.parametrize("asks_same", [False, True])
@pytest.mark.parametrize("width", range(33))
def test_numbers_of_every_width_are_read_in_any_pieces(width, asks_same):
    rnd = random.Random(width)
    data, values = b"", []
    for _ in range(12):
        if rnd.random() < 0.5:
            block = [rnd.randrange(1 << width) for _ in range(8 * rnd.randint(1, 40))]
            data, values = data + packed(block, width), values + block
        else:
            value, count = rnd.randrange(1 << width), rnd.randint(0, 200)
            data, values = data + repeated(value, count, width), values + [value] * count
    pieces, expected, at = [], [], 0
    while at < len(values):
        size = min(rnd.randint(1, 77), len(values) - at)
        is_passed = rnd.random() < 0.3
        pieces.append(-size if is_passed else size)
        expected += [] if is_passed else values[at : at + size]
        at += size
    assert probe.numbers_of_runs(data, width, pieces, asks_same) == expected
    assert probe.numbers_of_runs(data, width, [len(values), 1], asks_same) is None


def test_a_last_group_that_was_cut_short_has_the_values_that_are_there():
    whole = packed([1, 2, 3, 4, 5, 6, 7, 0], 4)
    assert probe.numbers_of_runs(whole[:-2], 4, [4]) == [1, 2, 3, 4]
    assert probe.numbers_of_runs(whole[:-2], 4, [5]) is None


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 150)), max_size=20), st.integers(0, 2**32))
def test_bits_of_runs_are_those_of_their_values(blocks, seed):
    rnd = random.Random(seed)
    data, values = b"", []
    for is_packed, count in blocks:
        block = [rnd.randint(0, 1) for _ in range(8 * count)] if is_packed else [rnd.randint(0, 1)] * count
        data += packed(block, 1) if is_packed else repeated(block[0], count, 1)
        values += block
    assert probe.bits_of_runs(data, len(values)) == (sum(values), values)
    assert probe.bits_of_runs(data, len(values) + 1) is None


@given(st.integers(0, 2**32), st.integers(0, 5000), st.integers(1, 256))
def test_snappy_is_opened_as_by_arrow(seed, size, letters):
    rnd = random.Random(seed)
    words = [bytes(rnd.randrange(letters) for _ in range(rnd.randint(1, 20))) for _ in range(20)]
    data = b"".join(rnd.choice(words) for _ in range(size // 10))
    assert probe.uncompressed(SNAPPY.compress(data, asbytes=True), len(data)) == data


def test_long_literals_and_far_copies_are_opened():
    rnd = random.Random(0)
    noise = rnd.randbytes(70_000)
    data = noise + b"a" * 100_000 + noise + b"abc" * 999
    assert probe.uncompressed(SNAPPY.compress(data, asbytes=True), len(data)) == data


def snappy_tag(kind: int, length: int, distance: int) -> bytes:
    """Return the tag of bytes as they are (kind 0) or of a copy, without what follows the bytes' tag."""
    if kind == 0:
        return bytes([(length - 1) << 2]) if length <= 60 else bytes([60 << 2, length - 1])
    if kind == 1:
        return bytes([1 | (length - 4) << 2 | distance >> 8 << 5, distance & 0xFF])
    return bytes([kind | (length - 1) << 2]) + distance.to_bytes(2 if kind == 2 else 4, "little")


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 70), st.integers(1, 200)), max_size=60), st.integers(0, 9))
def test_every_kind_of_snappys_tags_at_every_distance(tags, seed):
    rnd = random.Random(seed)
    stream, data = b"", b""
    for kind, some, far in tags:
        distance = min(far, len(data))
        if kind == 0 or not distance:
            literal = rnd.randbytes(some)
            stream, data = stream + snappy_tag(0, some, 0) + literal, data + literal
        else:
            length = 4 + some % 8 if kind == 1 else min(some, 64)
            stream += snappy_tag(kind, length, distance)
            for _ in range(length):
                data += data[-distance : len(data) - distance + 1]
    size = bytes([len(data) & 0x7F | 0x80, len(data) >> 7]) if len(data) > 0x7F else bytes([len(data)])
    assert probe.uncompressed(size + stream, len(data)) == data


@given(st.binary(max_size=200), st.integers(0, 3000))
def test_bytes_that_are_no_snappy_do_no_harm(data, size):
    assert probe.uncompressed(data, size) is None or len(probe.uncompressed(data, size)) == size


@given(st.integers(0, 2**32))
def test_damaged_snappy_is_told_or_has_the_right_size(seed):
    rnd = random.Random(seed)
    data = bytes(rnd.randrange(4) for _ in range(3000))
    damaged = bytearray(SNAPPY.compress(data, asbytes=True))
    damaged[rnd.randrange(len(damaged))] ^= 1 << rnd.randrange(8)
    opened = probe.uncompressed(bytes(damaged), len(data))
    assert opened is None or len(opened) == len(data)
    assert probe.uncompressed(bytes(damaged[:-1]), len(data)) is None


@given(st.binary(max_size=100))
def test_checksums_are_those_of_zlib(data):
    assert probe.checksum(data) == zlib.crc32(data)


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
def test_bits_at_the_places_of_others_lie_side_by_side(bits, wanted):
    places = [place for place in range(64) if wanted >> place & 1]
    expected = sum((bits >> place & 1) << index for index, place in enumerate(places))
    assert probe.gathered_bits(bits, wanted) == (expected, expected)
    back = bits & wanted
    more = (expected | bits << len(places)) & (2**64 - 1)
    assert probe.placed_bits(expected, wanted) == probe.placed_bits(more, wanted) == (back, back)


@pytest.mark.parametrize("width", [1, 2, 4, 8, 12, 16])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.9, 1.0])
@pytest.mark.parametrize("rows", [1, 15, 64, 65, 1024])
def test_values_are_spread_over_the_rows_that_have_one(width, share, rows):
    rnd = random.Random(rows)
    is_valid = [rnd.random() < share for _ in range(rows)]
    values = [rnd.randbytes(width) for _ in range(sum(is_valid))]
    words = [
        sum(1 << place for place, one in enumerate(is_valid[start : start + 64]) if one) for start in range(0, rows, 64)
    ]
    waiting = iter(values)
    expected = b"".join(next(waiting) if one else bytes(width) for one in is_valid)
    assert probe.spread_values(b"".join(values), width, rows, words) == [expected, expected]
