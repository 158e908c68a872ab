"""Pages of very wide values are read value by value, and give what pyarrow gives."""

import io
import itertools
import os
import random
from types import SimpleNamespace

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import DataError
from engine.parquet import wide_columns
from engine.parquet.delta_values import lengths_first, shared_fronts
from engine.parquet.pages import HEADER_BYTES, bits_and_runs, first_page, pages
from engine.parquet.reader import ParquetReader
from engine.parquet.snappy_stream import BlockStream
from engine.parquet.source import parquet_source


@pytest.fixture
def small_pages(monkeypatch):
    """Pages from a kilobyte on are large, values of a hundred bytes wide."""
    monkeypatch.setattr(wide_columns, "PAGE_BYTES", 1 << 10)
    monkeypatch.setattr(wide_columns, "VALUE_BYTES", 100)
    monkeypatch.setattr(wide_columns, "BATCH_BYTES_MAX", 3000)


def wide_table(kind, rows=60, nulls=True):
    chosen = random.Random(rows)
    values = [chosen.randbytes(chosen.choice([0, 20, 900, 5000])) for _ in range(rows)]
    if kind == pa.string():
        values = [value.hex() for value in values]
    values = [None if nulls and chosen.random() < 0.2 else value for value in values]
    repeated = [values[chosen.randrange(5)] if index % 3 else value for index, value in enumerate(values)]
    return pa.table(
        {"id": pa.array(range(rows)), "blob": pa.array(repeated, kind), "name": [f"n{index}" for index in range(rows)]}
    )


def read(path, columns, new_space):
    spec, _, _ = parquet_source(path)
    reader = ParquetReader(msgspec.structs.replace(spec, columns=columns), spec.splits, new_space)
    try:
        return pa.Table.from_batches(list(reader))
    finally:
        reader.close()


@pytest.mark.sample("pairs")
@pytest.mark.parametrize("compression", ["none", "snappy", "zstd", "gzip", "brotli", "lz4"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("dictionary", [True, False])
@pytest.mark.parametrize("kind", [pa.binary(), pa.string(), pa.large_binary()])
@pytest.mark.parametrize("checksums", [True, False])
def test_wide_columns_are_what_was_written(
    small_pages, new_space, tmp_path, monkeypatch, compression, version, dictionary, kind, checksums
):
    path = tmp_path / "wide.parquet"
    table = wide_table(kind)
    pq.write_table(
        table,
        path,
        compression=compression,
        data_page_version=version,
        use_dictionary=dictionary,
        write_page_checksum=checksums,
        row_group_size=25,
        data_page_size=7000,
        write_batch_size=3,
    )
    taken = []
    plan = wide_columns.plan_wide
    monkeypatch.setattr("engine.parquet.reader.plan_wide", lambda *given: taken.append(plan(*given)) or taken[-1])
    for columns in (("id", "blob", "name"), ("blob",), ("name", "blob")):
        assert read(path, columns, new_space).to_pydict() == table.select(columns).to_pydict()
    assert all(taken)


@pytest.mark.parametrize("encoding", ["DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"])
@pytest.mark.parametrize("compression", ["none", "zstd"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("kind", [pa.binary(), pa.large_string()])
def test_lengths_and_shared_fronts_are_what_was_written(
    small_pages, new_space, tmp_path, encoding, compression, version, kind
):
    chosen = random.Random(5)
    values = []
    for row in range(400):
        front = values[-1][: chosen.choice([0, 0, 1, 300, 9999])] if row and values[-1] is not None else ""
        values.append(None if row % 11 == 5 else front + chosen.randbytes(chosen.choice([0, 9, 900])).hex())
    table = pa.table({"id": range(400), "blob": pa.array(values, pa.string()).cast(kind)})
    path = tmp_path / "wide.parquet"
    pq.write_table(
        table,
        path,
        compression=compression,
        data_page_version=version,
        use_dictionary=False,
        column_encoding={"id": "PLAIN", "blob": encoding},
        write_page_checksum=True,
        row_group_size=250,
        data_page_size=40_000,
        write_batch_size=3,
    )
    assert encoding in pq.read_metadata(path).row_group(0).column(1).encodings
    spec, _, _ = parquet_source(path)
    with pq.ParquetFile(path) as file:
        wide = wide_columns.plan_wide(str(path), file, 0, spec.columns, None)
    assert [column.field.name for column in wide] == ["blob"]
    wide[0].close()
    assert read(path, ("id", "blob"), new_space).to_pydict() == table.to_pydict()


@pytest.mark.parametrize("encoding", ["DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"])
def test_damaged_lengths_and_fronts_of_a_page_without_checksum_crash_nothing(
    small_pages, new_space, tmp_path, encoding
):
    path = tmp_path / "wide.parquet"
    table = pa.table({"blob": [bytes([97 + row % 3]) * (900 + row) for row in range(200)]})
    pq.write_table(table, path, compression="none", use_dictionary=False, column_encoding={"blob": encoding})
    data = path.read_bytes()
    with path.open("rb") as file:
        (page,) = pages(file.fileno(), pq.read_metadata(path).row_group(0).column(0))
    chosen = random.Random(4)
    refused = 0
    for _ in range(150):
        damaged = bytearray(data)
        damaged[page.position + chosen.randrange(60)] ^= 1 << chosen.randrange(8)
        path.write_bytes(damaged)
        try:
            assert read(path, ("blob",), new_space).num_rows == 200
        except DataError:
            refused += 1
    assert 0 < refused < 150


class Bytes:
    """A page's bytes, as a stream has them."""

    def __init__(self, data):
        self._source = io.BytesIO(data)

    @property
    def left_bytes(self):
        return len(self._source.getbuffer()) - self._source.tell()

    def read(self, size):
        data = self._source.read(size)
        if len(data) < size:
            raise pa.ArrowInvalid("ends before its values do")
        return data

    def readinto(self, view):
        view[:] = self.read(len(view))


def numbers_text(numbers):
    """Return numbers as one block in one part, 8 bits each."""
    head = number_text(32) + number_text(1) + number_text(len(numbers)) + number_text(numbers[0] * 2)
    deltas = bytes(after - before + 10 for before, after in itertools.pairwise(numbers))
    return head + (number_text(19) + bytes([8]) + deltas.ljust(32, b"\0") if deltas else b"")


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "ends before"),
        (b"\xff" * 12, "does not end"),
        (bytes([0, 1, 1, 2]), "in blocks of 0 in 1 parts"),
        (bytes([32, 0, 1, 2]), "in blocks of 32 in 0 parts"),
        (bytes([32, 2, 1, 2]), "in blocks of 32 in 2 parts"),
        (bytes([32, 1, 3, 2]), "a page of 2 values has 3 lengths"),
        (bytes([32, 1, 2, 2, 0, 65]), "65 bits"),
        (bytes([32, 1, 2, 2, 0, 8, 1]), "ends before"),
        (bytes([32, 1, 1, 2]), "a page of 2 values has 1 lengths"),
        (bytes([32, 1, 2, 2, 9, 0]), "negative ones"),
        (bytes([32, 1, 2, 40, 0, 0]), "values of 40 bytes in a page that has 0 left"),
    ],
)
def test_damaged_lengths_are_refused(data, text):
    with pytest.raises(pa.ArrowInvalid, match=text):
        list(lengths_first(Bytes(data), 2))


def test_values_are_put_together_of_what_they_share():
    for shared, is_sound in (([0, 3, 5, 0], True), ([1, 3, 5, 0], False), ([0, 4, 5, 0], False), ([0, 3, 6, 0], False)):
        data = numbers_text(shared) + numbers_text([3, 2, 0, 1]) + b"abcdex"
        found = []
        try:
            for size, reader in shared_fronts(Bytes(data), 4):
                value = bytearray(size)
                reader(memoryview(value))
                found.append(bytes(value))
        except pa.ArrowInvalid as error:
            assert not is_sound
            assert "shares more bytes" in str(error)
        else:
            assert is_sound
            assert found == [b"abc", b"abcde", b"abcde", b"x"]


def test_columns_without_nulls_and_of_nulls_only(small_pages, new_space, tmp_path):
    path = tmp_path / "wide.parquet"
    schema = pa.schema([pa.field("blob", pa.binary(), nullable=False), ("none", pa.binary())])
    table = pa.table({"blob": [b"x" * 4000, b"", b"y" * 90] * 5, "none": pa.nulls(15, pa.binary())}, schema)
    pq.write_table(table, path, use_dictionary=False)
    assert read(path, ("blob", "none"), new_space).to_pydict() == table.to_pydict()


@pytest.mark.thorough
@pytest.mark.parametrize("dictionary", [True, False])
@pytest.mark.parametrize("compression", ["none", "snappy"])
def test_each_bit_of_headers_and_of_a_chunks_end_is_seen(small_pages, new_space, tmp_path, compression, dictionary):
    path = tmp_path / "wide.parquet"
    table = wide_table(pa.binary(), 12)
    pq.write_table(table, path, compression=compression, use_dictionary=dictionary, write_page_checksum=True)
    data = path.read_bytes()
    chunk = pq.read_metadata(path).row_group(0).column(1)
    begin, size = first_page(chunk), chunk.total_compressed_size
    for position in (*range(begin, begin + 24), *range(begin + size - 40, begin + size)):
        for bit in range(8):
            damaged = bytearray(data)
            damaged[position] ^= 1 << bit
            path.write_bytes(damaged)
            try:
                found = read(path, ("blob",), new_space)
            except DataError:
                continue
            assert found.to_pydict() == table.select(["blob"]).to_pydict(), (position - begin, bit)


@pytest.mark.parametrize("compression", ["none", "snappy", "zstd", "lz4"])
@pytest.mark.parametrize("dictionary", [True, False])
def test_a_damaged_page_is_an_error_and_never_a_crash(small_pages, new_space, tmp_path, compression, dictionary):
    path = tmp_path / "wide.parquet"
    table = wide_table(pa.binary(), 12)
    pq.write_table(table, path, compression=compression, use_dictionary=dictionary, write_page_checksum=True)
    data = path.read_bytes()
    chunk = pq.read_metadata(path).row_group(0).column(1)
    begin = first_page(chunk)
    chosen = random.Random(3)
    wrong = 0
    for _ in range(120):
        position = begin + chosen.randrange(chunk.total_compressed_size)
        damaged = bytearray(data)
        damaged[position] ^= 1 << chosen.randrange(8)
        path.write_bytes(damaged)
        try:
            found = read(path, ("blob",), new_space)
        except DataError:
            wrong += 1
        else:
            assert found.to_pydict() == table.select(["blob"]).to_pydict()
    assert wrong > 100


@pytest.mark.parametrize("codec", ["snappy", "lz4"])
@pytest.mark.parametrize("size", [0, 1, 5, 100, 70_000, 3_000_001])
def test_blocks_are_read_in_pieces_of_any_size(size, codec):
    chosen = random.Random(size)
    for data in (chosen.randbytes(size), (b"abc" * size)[:size], bytes(chosen.choices(b"ab c", k=size))):
        block = pa.Codec({"lz4": "lz4_raw"}.get(codec, codec)).compress(data, asbytes=True)
        position = 0
        step = chosen.choice([1, 7, 1000]) if size < 1000 else 100_000

        def take(count, block=block, step=step):
            nonlocal position
            piece = block[position : position + min(count, step)]
            position += len(piece)
            return piece

        stream = BlockStream(take, size, codec)
        found = b""
        while len(found) < size:
            found += stream.read(chosen.randint(1, max(1, size - len(found))))
        assert found == data
        with pytest.raises(ValueError, match="ends before"):
            stream.read(1)


@pytest.mark.parametrize(
    "block",
    [
        bytes([0x10]) + b"x" + (2).to_bytes(2, "little"),  # a copy from before the block
        bytes([0x10]) + b"x" + (0).to_bytes(2, "little"),
        bytes([0xF0, 255, 255, 0]) + bytes(30),  # a literal, and a copy, of more bytes than the page has
        bytes([0x1F]) + b"x" + (1).to_bytes(2, "little") + bytes([255, 0]),
        bytes([0x1F]) + b"x" + (1).to_bytes(2, "little") + bytes([255]),
        bytes([0x10]) + b"x" + bytes([1]),
        bytes([0x40]) + b"xyz",
        bytes([0xF0]),
        b"",
    ],
)
def test_a_damaged_block_of_lz4_is_refused(block):
    stream = BlockStream(io.BytesIO(block).read, 100, "lz4")
    with pytest.raises(ValueError, match="a page compressed by lz4 is damaged"):
        stream.read(100)


def test_what_bits_are_flipped_in_a_block_of_lz4_is_an_error_or_what_the_library_makes_of_it():
    chosen = random.Random(8)
    codec = pa.Codec("lz4_raw")
    data = bytes(chosen.choices(b"ab c", k=3000)) + chosen.randbytes(500) + bytes(700)
    block = codec.compress(data, asbytes=True)
    refused = 0
    for _ in range(400):
        damaged = bytearray(block)
        damaged[chosen.randrange(len(block))] ^= 1 << chosen.randrange(8)
        try:
            found = BlockStream(io.BytesIO(damaged).read, len(data), "lz4").read(len(data))
        except ValueError:
            refused += 1
            continue
        try:
            expected = codec.decompress(bytes(damaged), len(data), asbytes=True)
        except (OSError, pa.ArrowInvalid):
            continue  # it also minds what comes behind the last byte
        assert found == expected
    assert 0 < refused < 400


def number_text(number):
    """Return a varint."""
    low = number & 0x7F
    return bytes([low]) if number < 0x80 else bytes([low | 0x80]) + number_text(number >> 7)


def test_a_copy_from_before_the_window_is_refused_and_reads_nothing_else():
    # It begins before the window moves on and goes on behind that, where its distance leads out of it.
    window = 1 << 20
    literal, copied = 2 * window - 10, 64
    for distance, is_sound in ((window, True), (window + 1, False), (literal - 10, False)):
        block = number_text(literal + copied) + bytes([63 << 2]) + (literal - 1).to_bytes(4, "little")
        block += bytes(window) + b"x" * (window - 10)
        block += bytes([copied - 1 << 2 | 3]) + distance.to_bytes(4, "little")
        stream = BlockStream(io.BytesIO(block).read, literal + copied, "snappy")
        assert stream.read(literal - 1) == block[-literal - 5 : -6]
        if is_sound:
            assert stream.read(copied + 1) == b"x" + bytes(10) + b"x" * 54
        else:
            with pytest.raises(ValueError, match="damaged"):
                stream.read(copied + 1)


@given(st.integers(0, 24), st.lists(st.tuples(st.booleans(), st.integers(1, 40)), max_size=6), st.data())
@settings(max_examples=60)
def test_runs_and_packed_bits_are_what_was_written(width, runs, drawn):
    expected, data = [], b""
    for is_packed, length in runs:
        largest = (1 << width) - 1
        if is_packed:
            numbers = drawn.draw(st.lists(st.integers(0, largest), min_size=8 * length, max_size=8 * length))
            packed = sum(number << width * index for index, number in enumerate(numbers))
            data += number_text(length << 1 | 1) + packed.to_bytes(length * width, "little")
        else:
            number = drawn.draw(st.integers(0, largest))
            numbers = [number] * length
            data += number_text(length << 1) + number.to_bytes((width + 7) // 8, "little")
        expected += numbers
    count = drawn.draw(st.integers(0, len(expected)))
    assert bits_and_runs(data, width, count) == expected[:count]
    with pytest.raises(pa.ArrowInvalid):
        bits_and_runs(data, width, len(expected) + 1)


def test_a_long_run_of_packed_bits_takes_no_longer_than_many_short_ones():
    # Read as one number it would be shifted once for each of its values: hours.
    groups, width = 1 << 17, 20
    data = number_text(groups << 1 | 1) + bytes(range(width)) * groups
    assert bits_and_runs(data, width, 8 * groups)[-8:] == bits_and_runs(b"\x03" + bytes(range(width)), width, 8)


def test_a_damaged_header_does_not_bring_a_column_into_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("engine.parquet.pages.HEADER_BYTES_MAX", 8 * HEADER_BYTES)
    path = tmp_path / "wide.parquet"
    pq.write_table(pa.table({"blob": [bytes(100 * HEADER_BYTES)]}), path, compression="none", use_dictionary=False)
    chunk = pq.read_metadata(path).row_group(0).column(0)
    data = bytearray(path.read_bytes())
    data[first_page(chunk) : first_page(chunk) + 6] = b"\x18" + number_text(90 * HEADER_BYTES) + b"\0\0"
    path.write_bytes(data)
    taken = []

    def pread(descriptor, size, position):
        taken.append(size)
        return os.pread(descriptor, size, position)

    monkeypatch.setattr("engine.parquet.pages.os", SimpleNamespace(pread=pread))
    with path.open("rb") as file, pytest.raises(pa.ArrowInvalid, match="does not end"):
        list(pages(file.fileno(), chunk))
    assert max(taken) == 8 * HEADER_BYTES
