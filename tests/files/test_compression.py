"""Text that is compressed: whatever the codec it reads back the same, in bounded memory; damage is named."""

import bz2
import gzip
import lzma
import random
import tracemalloc
from itertools import pairwise

import lz4.frame
import pyarrow as pa
import pytest

from engine.connectors.json_source import json_source
from engine.connectors.text_reader import TextReader
from engine.connectors.text_source import text_source
from engine.csv.options import CsvOptions
from engine.csv.reader import CsvReader
from engine.csv.rejects import CsvRejects, rejects_source
from engine.csv.source import csv_source
from engine.csv.splits import exact_splits
from engine.errors import ConfigurationError, DataError, MemoryBudgetError, NotYetSupportedError, PlanError
from engine.files import compression, line_blocks
from engine.files.compression import CODECS, ENDING_OF, codec_of, open_text, plain_ending, text_sizes
from engine.files.output_file import OutputFile
from engine.memory.budget import Budget, Kind

TEXT = b"".join(b"%d,name %d\n" % (index, index % 7) for index in range(20_000))


def zstd(data):
    out = pa.BufferOutputStream()
    with pa.CompressedOutputStream(out, "zstd") as stream:
        stream.write(data)
    return out.getvalue().to_pybytes()


PACK = {"gzip": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress, "lz4": lz4.frame.compress, "zstd": zstd}


def stored(folder, codec, data, name="data.csv"):
    path = folder / f"{name}{ENDING_OF[codec]}"
    path.write_bytes(PACK[codec](data))
    return path


def text_of(path, codec):
    with open_text(str(path), codec) as file:
        return file.read(1 << 30)


@pytest.mark.parametrize("codec", CODECS)
def test_what_is_written_is_read_by_us_and_by_the_codecs_own_library(tmp_path, codec):
    path = tmp_path / f"a{ENDING_OF[codec]}"
    data = random.Random(1).randbytes(300_000) + TEXT
    file = OutputFile(path, codec)
    for begin, end in pairwise([0, 1, 1, 200_000, len(data)]):
        file.write(memoryview(data)[begin:end])
    file.close()
    assert file.size_bytes == path.stat().st_size < len(data)
    assert text_of(path, codec) == data
    unpack = {"gzip": gzip, "bz2": bz2, "xz": lzma, "lz4": lz4.frame}.get(codec)
    assert unpack is None or unpack.decompress(path.read_bytes()) == data
    file.abort()
    assert path.exists()


@pytest.mark.parametrize("codec", CODECS)
def test_a_file_that_is_given_up_is_gone(tmp_path, codec):
    path = tmp_path / "a"
    file = OutputFile(path, codec)
    file.write(memoryview(TEXT))
    file.abort()
    assert not path.exists()


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("data", [b"", TEXT])
def test_several_streams_in_one_file_are_one_text(tmp_path, codec, data):
    path = tmp_path / "a"
    path.write_bytes(PACK[codec](data) + PACK[codec](b"more"))
    assert text_of(path, codec) == data + b"more"


@pytest.mark.parametrize("codec", CODECS)
def test_a_text_goes_back_and_forth(tmp_path, codec):
    with open_text(str(stored(tmp_path, codec, TEXT)), codec) as file:
        for position in (100_000, 5, 150_000, 0):
            assert file.seek(position) == file.tell() == position
            assert file.read(10) == TEXT[position : position + 10]
        assert file.seek(0, 2) == len(TEXT)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("damage", ["cut", "other"])
def test_damage_is_named_with_its_place(tmp_path, codec, damage):
    path = stored(tmp_path, codec, TEXT)
    whole = path.read_bytes()
    path.write_bytes(whole[:-20] if damage == "cut" else b"plain text, " * 30)
    with pytest.raises(DataError, match=rf"file {path}: no whole {codec} file: .*, behind \d+ bytes of its text"):
        text_of(path, codec)
    schema = pa.schema([("a", pa.int64()), ("b", pa.string())])
    with pytest.raises(DataError, match=f"no whole {codec} file"):
        list(CsvReader(*_splits(csv_source(path, schema))))


def _splits(found):
    spec = exact_splits(found[0], 4)
    return spec, spec.splits


def test_the_codec_comes_from_the_ending_unless_it_is_said(tmp_path):
    assert [codec_of(f"a{ending}") for ending in (".gz", ".ZST", ".csv", "")] == ["gzip", "zstd", "", ""]
    assert codec_of("a.csv", "xz") == "xz"
    assert codec_of("a.gz", "none") == ""
    assert [plain_ending(name) for name in ("A.CSV.gz", "a.json", "b")] == [".csv", ".json", ""]
    with pytest.raises(PlanError, match=r"a zip archive, whose members are read by their names: zip://a\.zip!/NAME"):
        codec_of("a.zip")
    with pytest.raises(NotYetSupportedError, match=r"a rar archive is not supported yet; unpack it"):
        codec_of("a.rar")
    with pytest.raises(ConfigurationError, match=r"compression='rar': choose one of gzip, zstd"):
        csv_source(tmp_path, options=CsvOptions(compression="rar"))


def rows_of(reader):
    return [tuple(row.values()) for batch in reader for row in batch.to_pylist()]


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("block_bytes", [64, 1 << 20])
def test_csv_is_read_as_its_text_whatever_the_block(tmp_path, codec, block_bytes):
    text = b"\xef\xbb\xbfa,b\n" + b'1,"x\ny"\n' * 50 + b"2," + b"z" * 500 + b'\n3,""\n4,'
    path = stored(tmp_path, codec, text)
    schema = pa.schema([("a", pa.int64()), ("b", pa.string())])
    spec, splits = _splits(csv_source(path, schema, CsvOptions(header=True)))
    assert len(splits) == 1
    expected = [(1, "x\ny")] * 50 + [(2, "z" * 500), (3, ""), (4, None)]
    assert rows_of(CsvReader(spec, splits, block_bytes)) == expected


@pytest.mark.parametrize("block_bytes", [64, 1 << 20])
def test_malformed_records_are_named_by_line_kept_or_skipped(tmp_path, block_bytes):
    lines = [f"{index},x" for index in range(100)]
    lines[40], lines[77] = "no,x", "1,2,3"
    path = stored(tmp_path, "gzip", "\r\n".join(lines).encode())
    schema = pa.schema([("a", pa.int64()), ("b", pa.string())])
    with pytest.raises(DataError, match=r"data\.csv\.gz, line 41, column 1 \(a\): 'no' is not int64"):
        list(CsvReader(*_splits(csv_source(path, schema)), block_bytes))
    spec, splits = _splits(csv_source(path, schema, CsvOptions(on_bad_row="skip", bad_rows_path=tmp_path / "bad")))
    reader = CsvReader(spec, splits, block_bytes)
    assert [row[0] for row in rows_of(reader)] == [n for n in range(100) if n not in (40, 77)]
    assert reader.bad_rows == 2
    kept = rows_of(CsvRejects(rejects_source(spec, 1.0)[0], splits))
    assert [(line, record) for _, line, _, record in kept] == [(41, "no,x"), (78, "1,2,3")]


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("block_bytes", [1, 7, 1 << 20])
def test_lines_are_read_as_of_the_plain_file(tmp_path, codec, block_bytes):
    path = stored(tmp_path, codec, b"\xef\xbb\xbfone\r\n\n" + b"x" * 300 + b"\nlast")
    spec, statistics, _ = text_source(path, 4)
    assert rows_of(TextReader(spec, spec.splits, block_bytes)) == [("one",), ("",), ("x" * 300,), ("last",)]
    assert (statistics.row_count, statistics.is_exact, len(spec.splits)) == (4, True, 1)


def test_what_is_not_utf8_in_a_compressed_file_is_named_by_line(tmp_path):
    path = stored(tmp_path, "zstd", b"one\ntwo\nth\xffee\n")
    spec, _, _ = text_source(path, 1)
    with pytest.raises(DataError, match=r"line 3: byte 3 of the line \(0xff\) is not UTF-8"):
        list(TextReader(spec, spec.splits, 4))


def test_a_line_that_no_process_of_this_size_has_room_for_is_named(tmp_path, monkeypatch):
    path = stored(tmp_path, "gzip", b"one\n" + b"x" * 3000 + b"\nlast")
    no_memory = Budget()
    for kind in (Kind.ARROW, Kind.WORKER):
        no_memory.set_limit(kind, 100)
    monkeypatch.setattr(line_blocks, "process_budget", no_memory)
    spec, _, _ = text_source(path, 1)
    with pytest.raises(MemoryBudgetError, match=rf"file {path}: the line at byte 4 of its text"):
        list(TextReader(spec, spec.splits, 64))


def test_plain_and_compressed_files_are_one_source(tmp_path):
    stored(tmp_path, "gzip", b"1,a\n", "one.csv")
    stored(tmp_path, "xz", b"2,b\n", "two.csv")
    (tmp_path / "three.csv").write_bytes(b"3,c\n")
    spec, statistics, schema = csv_source(tmp_path)
    assert schema == pa.schema([("column_0", pa.int64()), ("column_1", pa.string())])
    assert sorted(rows_of(CsvReader(*_splits((spec,))))) == [(1, "a"), (2, "b"), (3, "c")]
    assert statistics.size_bytes == 12


def test_sizes_are_known_or_guessed_from_the_first_files(tmp_path, monkeypatch):
    paths = [str(stored(tmp_path, "gzip", TEXT, f"{index}.csv")) for index in range(6)]
    sizes = text_sizes(paths, "")
    assert sizes.sizes[:4] == [len(TEXT)] * 4
    assert sizes.total == pytest.approx(6 * len(TEXT), rel=0.01)
    assert not sizes.is_exact
    assert text_sizes(paths[:4], "").is_exact
    monkeypatch.setattr(compression, "_SKIP_BYTES", 1000)
    assert not text_sizes(paths[:1], "").is_exact


def test_memory_does_not_grow_with_the_file(tmp_path):
    times = 36
    path = stored(tmp_path, "gzip", TEXT * times)
    spec, _, _ = text_source(path, 1)
    tracemalloc.start()
    try:
        rows = sum(batch.num_rows for batch in TextReader(spec, spec.splits))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert rows == times * 20_000
    assert peak < 8 << 20 < len(TEXT) * times


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("source", [csv_source, json_source, lambda path: text_source(path, 1)])
def test_a_file_that_is_compressed_says_so_or_is_refused(tmp_path, codec, source):
    path = tmp_path / "data.dat"
    path.write_bytes(PACK[codec](b'{"a": 1}\n'))
    with pytest.raises(PlanError, match=rf"data\.dat is compressed by {codec}, .* pass compression='{codec}'"):
        source(path)
    path.rename(tmp_path / f"data{ENDING_OF[codec]}")
    assert source(tmp_path)[0].paths
