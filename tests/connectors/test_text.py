"""Lines in and out: whatever the line ends, wherever a split is cut, whatever the block size."""

from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.connectors import text_reader
from engine.connectors.text_lines import lines_of
from engine.connectors.text_reader import TextReader
from engine.connectors.text_source import text_source
from engine.connectors.text_writer import TextWriter
from engine.errors import DataError, MemoryBudgetError, PlanError, SchemaError
from engine.graph.source_spec import SourceSplit, TextSource
from engine.memory.budget import Budget, Kind

SCHEMA = pa.schema([("line", pa.string())])


def oracle(data):
    """Return the lines of bytes, in plain Python."""
    *ended, last = data.split(b"\n")
    lines = [line[:-1] if line.endswith(b"\r") else line for line in ended]
    return [line.decode() for line in [*lines, *([last] if last else [])]]


def read(path, *cuts, block_bytes=1 << 20):
    bounds = [0, *cuts, path.stat().st_size]
    splits = [SourceSplit(str(path), start, end, end - start) for start, end in pairwise(bounds)]
    spec = TextSource((str(path),), tuple(splits), ("line",))
    found = []
    for split in splits:
        reader = TextReader(spec, [split], block_bytes)
        found += [value for batch in reader for value in batch.column(0).to_pylist()]
        reader.close()
    return found


@given(st.lists(st.sampled_from([b"a", b"\n", b"\r\n", b"\r", "ö".encode(), b"xyz"]), max_size=20), st.data())
def test_every_line_is_read_once_wherever_splits_are_cut(tmp_path_factory, pieces, data):
    content = b"".join(pieces)
    path = tmp_path_factory.mktemp("text") / "t.txt"
    path.write_bytes(content)
    cuts = data.draw(st.lists(st.integers(0, len(content)), max_size=4).map(sorted))
    block_bytes = data.draw(st.sampled_from([1, 2, 3, 7, 1 << 20]))
    assert read(path, *cuts, block_bytes=block_bytes) == oracle(content)


def test_line_ends_empty_lines_and_the_last_line():
    assert lines_of(b"a\r\n\nb").to_pylist() == ["a", "", "b"]
    assert lines_of(b"a\n").to_pylist() == ["a"]
    assert lines_of(b"\n").to_pylist() == [""]
    assert lines_of(b"").to_pylist() == []
    assert lines_of(b"a\rb").to_pylist() == ["a\rb"]


def test_blocks_are_smaller_where_many_read_at_a_time_and_lines_the_same(tmp_path, monkeypatch):
    path = tmp_path / "t.txt"
    path.write_bytes(b"one\n\nthree\r\n" * 50 + b"x" * 300 + b"\nlast")
    monkeypatch.setattr(text_reader, "BLOCK_BYTES_MIN", 5)
    no_memory = Budget()
    no_memory.set_limit(Kind.ARROW, 0)
    monkeypatch.setattr(text_reader, "process_budget", no_memory)
    assert read(path) == oracle(path.read_bytes())


def test_a_line_that_no_process_of_this_size_has_room_for_is_named(tmp_path, monkeypatch):
    path = tmp_path / "t.txt"
    path.write_bytes(b"one\n" + b"x" * 300 + b"\nlast")
    no_memory = Budget()
    for kind in (Kind.ARROW, Kind.WORKER):
        no_memory.set_limit(kind, 100)
    monkeypatch.setattr(text_reader, "process_budget", no_memory)
    with pytest.raises(
        MemoryBudgetError, match=rf"file {path}: the line at byte 4, of 301b does not fit into the 200b"
    ):
        read(path, block_bytes=64)


def test_a_byte_order_mark_is_passed_over(tmp_path):
    path = tmp_path / "t.txt"
    path.write_bytes(b"\xef\xbb\xbfa\nb\n")
    assert read(path) == ["a", "b"]
    assert read(path, 1, 2, 3, 4) == ["a", "b"]


def test_a_line_longer_than_a_block_is_whole(tmp_path):
    path = tmp_path / "t.txt"
    path.write_bytes(b"x" * 100_000 + b"\nshort\n" + b"y" * 50_000)
    assert [len(line) for line in read(path, 10, 100_003, block_bytes=64)] == [100_000, 5, 50_000]


@pytest.mark.parametrize("cut", [0, 4, 9])
def test_what_is_not_utf8_is_named_by_file_line_and_byte(tmp_path, cut):
    path = tmp_path / "t.txt"
    path.write_bytes(b"one\ntwo\nth\xffee\n")
    with pytest.raises(DataError, match=r"t\.txt, line 3: byte 3 of the line \(0xff\) is not UTF-8"):
        read(path, cut, block_bytes=5)


def test_batches_are_bounded(tmp_path):
    path = tmp_path / "t.txt"
    path.write_bytes(b"x\n" * 100_000)
    spec, statistics, schema = text_source(path, 2)
    batches = list(TextReader(spec, spec.splits))
    assert schema == SCHEMA
    assert max(batch.num_rows for batch in batches) <= 8192
    assert sum(batch.num_rows for batch in batches) == statistics.row_count == 100_000
    assert statistics.is_exact


def test_a_large_file_is_sampled_and_cut(tmp_path):
    path = tmp_path / "t.txt"
    path.write_bytes(b"".join(b"line %d\n" % index for index in range(400_000)))
    spec, statistics, _ = text_source(tmp_path, 3)
    assert len(spec.splits) == 3
    assert statistics.row_count == pytest.approx(400_000, rel=0.05)
    assert not statistics.is_exact
    assert sum(batch.num_rows for split in spec.splits for batch in TextReader(spec, [split])) == 400_000


def test_what_cannot_be_read_is_said(tmp_path):
    with pytest.raises(PlanError, match="read_text"):
        text_source(tmp_path / "nope", 1)
    (tmp_path / "t.zip").write_bytes(b"")
    with pytest.raises(PlanError, match="a zip archive, whose members are read by their names"):
        text_source(tmp_path / "t.zip", 1)


def write(path, *values, schema=SCHEMA):
    writer = TextWriter(schema, path)
    for value in values:
        writer.write(pa.record_batch([pa.array(value, schema.field(0).type)], schema=schema))
    return writer.finish()


def test_rows_become_lines_and_nulls_empty_ones(tmp_path):
    path = tmp_path / "t.txt"
    assert write(path, ["a", None, ""], [], ["ö", "b\nc"]) == (5, path.stat().st_size, "")
    assert path.read_bytes() == "a\n\n\nö\nb\nc\n".encode()


def test_sliced_and_large_strings_are_written(tmp_path):
    schema = pa.schema([("s", pa.large_string())])
    write(tmp_path / "t.txt", pa.array(["x", "a", "b", "y"], pa.large_string()).slice(1, 2), schema=schema)
    assert (tmp_path / "t.txt").read_bytes() == b"a\nb\n"


@given(st.lists(st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs"])), max_size=20))
def test_what_was_written_reads_back(tmp_path_factory, values):
    path = tmp_path_factory.mktemp("text") / "t.txt"
    write(path, values)
    assert read(path, path.stat().st_size // 2) == ([v.removeprefix("\ufeff") for v in values[:1]] + values[1:])


def test_an_aborted_file_is_gone(tmp_path):
    writer = TextWriter(SCHEMA, tmp_path / "t.txt")
    writer.abort()
    writer.abort()
    assert not (tmp_path / "t.txt").exists()


@pytest.mark.parametrize(
    "schema", [pa.schema([("a", pa.int64())]), pa.schema([("a", pa.string()), ("b", pa.string())])]
)
def test_only_one_string_column_is_text(tmp_path, schema):
    with pytest.raises(SchemaError, match="write_text"):
        TextWriter(schema, tmp_path / "t.txt")
