"""The words codec: rows come back as they were, and bytes that are not rows are refused."""

import random
import struct

from hypothesis import given
from hypothesis import strategies as st

from engine.iomanager.block_format import HEADER_BYTES, decode_block, encode_block
from engine.iomanager.words_codec import compress_rows, decompress_rows
from tests.iomanager.conftest import IDENTITY

CODEC_OFFSET, LZ4, WORDS = 5, 1, 2


def rows(count: int, seed: int = 1) -> bytes:
    """Rows of 32 bytes: size and null bits, a key, a decimal."""
    chance = random.Random(seed)
    return b"".join(
        struct.pack("<IIqqq", 32, 0, 32 * number, chance.randrange(10_000_000), 0) for number in range(count)
    )


words_of_rows = st.integers(1, 5).flatmap(
    lambda stride: st.lists(
        st.lists(
            st.one_of(st.integers(0, 300), st.integers(0, 2**64 - 1), st.sampled_from([0, 2**56, 2**64 - 1])),
            min_size=stride - 1,
            max_size=stride - 1,
        ),
        min_size=1,
        max_size=60,
    ).map(lambda table: b"".join(struct.pack(f"<{stride}Q", 8 * stride, *row) for row in table))
)


@given(words_of_rows)
def test_rows_come_back_as_they_were(data: bytes) -> None:
    stored = compress_rows(data)
    if stored is not None:
        assert len(stored) <= len(data)
        assert decompress_rows(stored, len(data)) == data


def test_rows_of_numbers_are_a_fifth() -> None:
    data = rows(4000)
    stored = compress_rows(data)
    assert stored is not None
    assert len(stored) < len(data) / 5
    assert decompress_rows(stored, len(data)) == data


def test_a_block_takes_the_codec_that_pays() -> None:
    numbers = rows(1000)
    texts = b"".join(struct.pack("<II24s", 32, 0, b"the same text in each row"[:24]) for _ in range(1000))
    noise = b"".join(struct.pack("<II", 32, 0) + random.Random(n).randbytes(24) for n in range(1000))
    like_text = b"".join(struct.pack("<II24s", 32, 0, (b"text %d" % (n % 50)) * 3) for n in range(1000))
    for data, codec in ((numbers, WORDS), (texts, WORDS), (noise, LZ4), (like_text, LZ4), (b"a" * 5000, LZ4)):
        block = encode_block(data, IDENTITY, 1, 0, True)
        assert block[CODEC_OFFSET] == codec
        assert decode_block(block, IDENTITY, 1, 0, "file", 0) == data
        assert len(block) - HEADER_BYTES < len(data) * 0.9


@given(st.integers(0, 1000), st.data())
def test_damaged_bytes_are_refused_or_give_so_many_bytes(seed: int, data: st.DataObject) -> None:
    raw = rows(20 + seed % 20, seed)
    stored = bytearray(compress_rows(raw) or b"")
    for _ in range(data.draw(st.integers(1, 4))):
        stored[data.draw(st.integers(0, len(stored) - 1))] = data.draw(st.integers(0, 255))
    size = data.draw(st.sampled_from([len(stored), len(stored) - 1, 16, 8, 3]))
    raw_size = data.draw(st.sampled_from([len(raw), len(raw) + 8, len(raw) - 8, 0, 7, 1 << 20]))
    result = decompress_rows(bytes(stored[:size]), raw_size)
    assert result is None or len(result) == raw_size


@given(st.binary(max_size=400), st.integers(0, 60))
def test_any_bytes_are_refused_or_give_so_many_bytes(stored: bytes, words: int) -> None:
    result = decompress_rows(stored, 8 * words)
    assert result is None or len(result) == 8 * words


def test_what_is_cut_or_longer_is_refused() -> None:
    data = rows(50)
    stored = compress_rows(data)
    assert stored is not None
    for size in range(len(stored)):
        assert decompress_rows(stored[:size], len(data)) is None
    assert decompress_rows(stored + bytes(8), len(data)) is None
