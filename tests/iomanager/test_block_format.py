"""Spill blocks: golden bytes, checksums, identity, and every flipped bit refused."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import CorruptBlockError
from engine.iomanager.block_format import HEADER_BYTES, decode_block, encode_block
from engine.iomanager.crc32c import crc32c, crc32c_by_table
from engine.iomanager.lz4_codec import native_lz4, use_package
from engine.iomanager.spill_identity import SpillIdentity
from tests.iomanager.conftest import IDENTITY

GOLDEN = (
    "44525942"  # magic DRYB
    "01000000"  # version, codec none, flags
    "f8be699b"  # CRC32C of the header with this field zero
    "839206e3"  # CRC32C of the payload: 0xE3069283, the published check value
    "0900000000000000"  # raw length
    "0900000000000000"  # stored length
    "0500000000000000"  # sequence
    "00112233445566778899aabbccddeeff"  # job
    "030000000100000002000000"  # vertex, subtask, attempt
    "07000000"  # file
    "313233343536373839"  # payload
)


def bitwise_crc32c(data: bytes) -> int:
    """The definition, bit by bit."""
    register = 0xFFFFFFFF
    for byte in data:
        register ^= byte
        for _ in range(8):
            register = register >> 1 ^ (0x82F63B78 if register & 1 else 0)
    return register ^ 0xFFFFFFFF


def test_crc32c_has_the_published_check_values() -> None:
    # the check value of the catalogue, and the vectors of RFC 3720 B.4
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(bytes(32)) == 0x8A9136AA
    assert crc32c(b"\xff" * 32) == 0x62A8AB43
    assert crc32c(bytes(range(32))) == 0x46DD794E
    assert crc32c(b"") == 0


@pytest.mark.thorough
@pytest.mark.parametrize("size", [1, 7, 8, 9, 255, 767, 768, 769, 800, 8191, 24575, 24576, 24577, 50000, 100003])
def test_crc32c_agrees_with_its_table_and_with_its_definition_at_every_stretch(size: int) -> None:
    data = random.Random(size).randbytes(size)
    assert crc32c(data) == crc32c_by_table(data) == bitwise_crc32c(data)


@given(st.binary(max_size=2000), st.integers(0, 2000))
def test_crc32c_goes_on_where_it_stopped(data: bytes, cut: int) -> None:
    assert crc32c(data[cut:], crc32c(data[:cut])) == crc32c(data)
    assert crc32c_by_table(data[cut:], crc32c_by_table(data[:cut])) == crc32c(data)


def test_the_bytes_of_a_block_are_the_golden_ones() -> None:
    block = encode_block(b"123456789", IDENTITY, 7, 5, False)
    assert block.hex() == GOLDEN
    assert HEADER_BYTES == 72 == len(block) - 9
    assert decode_block(block, IDENTITY, 7, 5, "file", 0) == b"123456789"


def test_the_header_checksum_covers_the_header_with_its_own_field_zero() -> None:
    block = encode_block(b"123456789", IDENTITY, 7, 5, False)
    header = block[:8] + bytes(4) + block[12:72]
    assert int.from_bytes(block[8:12], "little") == bitwise_crc32c(header)


@given(
    st.one_of(st.binary(max_size=3000), st.builds(lambda unit, n: unit * n, st.binary(max_size=9), st.integers(0, 900)))
)
def test_a_payload_comes_back_compressed_or_not(payload: bytes) -> None:
    for compress in (False, True):
        block = encode_block(payload, IDENTITY, 1, 0, compress)
        assert decode_block(block, IDENTITY, 1, 0, "file", 0) == payload
        assert len(block) - HEADER_BYTES <= len(payload)
    if len(payload) > 1000 and len(set(payload)) == 1:
        assert len(block) - HEADER_BYTES < len(payload) // 10


@pytest.mark.parametrize("compress", [False, True])
def test_every_flipped_bit_of_a_block_is_refused(compress: bool) -> None:
    block = encode_block(b"abcdefgh" * 40, IDENTITY, 1, 0, compress)
    for position in range(len(block)):
        for bit in (0, 7):
            changed = bytearray(block)
            changed[position] ^= 1 << bit
            with pytest.raises(CorruptBlockError, match=r"block 0 at offset 4711 of /data/file"):
                decode_block(changed, IDENTITY, 1, 0, "/data/file", 4711)


@pytest.mark.parametrize("compress", [False, True])
def test_every_truncation_and_every_extension_is_refused(compress: bool) -> None:
    block = encode_block(b"abcdefgh" * 40, IDENTITY, 1, 0, compress)
    for size in range(len(block)):
        with pytest.raises(CorruptBlockError, match="cut short"):
            decode_block(block[:size], IDENTITY, 1, 0, "file", 0)
    with pytest.raises(CorruptBlockError, match="length"):
        decode_block(block + b"x", IDENTITY, 1, 0, "file", 0)


@pytest.mark.parametrize(
    "stranger",
    [
        SpillIdentity("ff112233445566778899aabbccddeeff", 3, 1, 2),
        SpillIdentity(IDENTITY.job_id, 4, 1, 2),
        SpillIdentity(IDENTITY.job_id, 3, 0, 2),
        SpillIdentity(IDENTITY.job_id, 3, 1, 3),
    ],
)
def test_a_block_of_another_owner_is_refused(stranger: SpillIdentity) -> None:
    block = encode_block(b"abc", stranger, 1, 0, False)
    with pytest.raises(CorruptBlockError, match="another job, subtask, attempt or file"):
        decode_block(block, IDENTITY, 1, 0, "file", 0)


def test_a_block_of_another_file_or_place_is_refused() -> None:
    block = encode_block(b"abc", IDENTITY, 1, 6, False)
    with pytest.raises(CorruptBlockError, match="another job, subtask, attempt or file"):
        decode_block(block, IDENTITY, 2, 6, "file", 0)
    with pytest.raises(CorruptBlockError, match="another block of this file"):
        decode_block(block, IDENTITY, 1, 7, "file", 0)


def sealed(block: bytes, **fields: tuple[int, bytes]) -> bytes:
    """Return the block with bytes changed at offsets, and checksums that say it is meant so."""
    changed = bytearray(block)
    for offset, content in fields.values():
        changed[offset : offset + len(content)] = content
    changed[12:16] = crc32c(changed[72:]).to_bytes(4, "little")
    changed[8:12] = bytes(4)
    changed[8:12] = crc32c(changed[:72]).to_bytes(4, "little")
    return bytes(changed)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"version": (4, b"\2")}, "version, flags or codec are unknown"),
        ({"codec": (5, b"\3")}, "version, flags or codec are unknown"),
        ({"flags": (6, b"\1")}, "version, flags or codec are unknown"),
        ({"raw_length": (16, b"\xff" * 8)}, "length is not the one that was written"),
        ({"stored_length": (24, b"\xff" * 8)}, "length is not the one that was written"),
        ({"raw_length": (16, (7).to_bytes(8, "little"))}, "length is not the one that was written"),
        ({"codec": (5, b"\1"), "payload": (72, b"\xff" * 64)}, "does not decompress"),
        ({"codec": (5, b"\2"), "payload": (72, b"\xff" * 64)}, "does not decompress"),
    ],
)
def test_a_block_whose_checksums_are_right_but_not_its_header_is_refused(
    fields: dict[str, tuple[int, bytes]], fault: str
) -> None:
    block = sealed(encode_block(bytes(range(256)), IDENTITY, 1, 0, False), **fields)
    with pytest.raises(CorruptBlockError, match=fault):
        decode_block(block, IDENTITY, 1, 0, "file", 0)


def test_a_job_id_has_32_digits() -> None:
    with pytest.raises(ValueError, match="32 hex digits"):
        encode_block(b"", SpillIdentity("abcd", 0, 0, 0), 1, 0, False)


@given(st.builds(lambda unit, n: unit * n, st.binary(min_size=1, max_size=50), st.integers(1, 500)))
def test_the_library_and_the_package_understand_each_other(payload: bytes) -> None:
    direct = encode_block(payload, IDENTITY, 1, 0, True)
    use_package(True)
    try:
        assert not native_lz4()
        by_package = encode_block(payload, IDENTITY, 1, 0, True)
        assert decode_block(direct, IDENTITY, 1, 0, "file", 0) == payload
    finally:
        use_package(False)
    assert decode_block(by_package, IDENTITY, 1, 0, "file", 0) == payload


def test_lz4_is_called_without_the_gil_here() -> None:
    assert native_lz4(), "this build of the lz4 package hides the library's functions; spilling will be slower"
