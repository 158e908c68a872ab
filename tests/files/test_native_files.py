"""Every format is read and written through the file system of its path, also one that has neither paths nor folders."""

import pyarrow as pa
import pytest

from engine.connectors.arrow_writer import ArrowWriter
from engine.connectors.block_source import block_source
from engine.connectors.json_source import json_source
from engine.connectors.json_writer import JsonWriter
from engine.connectors.orc_writer import OrcWriter
from engine.connectors.text_source import text_source
from engine.connectors.text_writer import TextWriter
from engine.csv.options import CsvOptions
from engine.csv.source import csv_source
from engine.csv.writer import CsvWriter
from engine.errors import PlanError
from engine.files.native_files import mapped_file, native_file, native_output, path_or_stream
from engine.formats.registry import open_source
from engine.parquet.footers import read_footer
from engine.parquet.writer import ParquetWriter
from engine.storage import file_systems
from tests.storage.memory import MemoryFileSystem

TABLE = pa.table({"n": range(5000), "s": [f"text {index % 100}" for index in range(5000)]})
PLACE = "memory://bucket/folder/a"


@pytest.fixture
def memory(monkeypatch):
    store = MemoryFileSystem()
    monkeypatch.setattr(file_systems, "FILE_SYSTEMS", (file_systems.LOCAL, store))
    return store


def written(writer, table=TABLE):
    for batch in table.to_batches(max_chunksize=1000):
        writer.write(batch)
    return writer.finish()


def rows_of(spec):
    reader = open_source(spec, spec.splits)
    batches = list(reader)
    reader.close()
    return pa.Table.from_batches(batches).to_pylist()


WRITERS = {
    "csv": lambda place: CsvWriter(TABLE.schema, place, True, ",", ""),
    "csv.gz": lambda place: CsvWriter(TABLE.schema, place, True, ",", "gzip"),
    "json": lambda place: JsonWriter(TABLE.schema, place, ""),
    "arrow": lambda place: ArrowWriter(TABLE.schema, place),
    "arrows": lambda place: ArrowWriter(TABLE.schema, place, is_stream=True),
    "orc": lambda place: OrcWriter(TABLE.schema, place, "zlib"),
    "parquet": lambda place: ParquetWriter(TABLE.schema, place),
}
SOURCES = {
    "csv": lambda path: csv_source(path, options=CsvOptions(header=True), parallelism=2)[0],
    "json": lambda path: json_source(path, parallelism=2)[0],
    "arrow": lambda path: block_source("ipc", path)[0],
    "arrows": lambda path: block_source("ipc", path)[0],
    "orc": lambda path: block_source("orc", path)[0],
}


@pytest.mark.parametrize("ending", WRITERS)
def test_what_is_written_has_its_size_and_nothing_is_left_of_what_is_aborted(memory, ending):
    rows, size, _ = written(WRITERS[ending](f"{PLACE}.{ending}"))
    assert (rows, size) == (5000, memory.status(f"{PLACE}.{ending}").size_bytes)
    with pytest.raises(FileExistsError):
        WRITERS[ending](f"{PLACE}.{ending}")
    WRITERS[ending](f"{PLACE}.other.{ending}").abort()
    assert list(memory.files) == [f"{PLACE}.{ending}"]


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "json", "arrow", "arrows", "orc"])
@pytest.mark.parametrize("path", [f"{PLACE}.{{}}", "memory://bucket/folder", "memory://bucket/*/a.*"])
def test_rows_come_back_from_a_file_a_folder_and_a_glob(memory, ending, path):
    written(WRITERS[ending](f"{PLACE}.{ending}"))
    source = SOURCES[ending.removesuffix(".gz")]
    assert rows_of(source(path.format(ending))) == TABLE.to_pylist()


def test_texts_come_back(memory):
    table = TABLE.select(["s"])
    written(TextWriter(table.schema, f"{PLACE}.txt", ""), table)
    assert [row["line"] for row in rows_of(text_source(f"{PLACE}.txt", 2)[0])] == table["s"].to_pylist()


def test_the_footer_of_a_parquet_file_is_read_in_ranges(memory):
    written(ParquetWriter(TABLE.schema, f"{PLACE}.parquet"))
    assert read_footer(f"{PLACE}.parquet").num_rows == 5000
    memory.delete(f"{PLACE}.parquet")
    written(ParquetWriter(TABLE.schema, f"{PLACE}.parquet"), TABLE.slice(0, 10))
    assert read_footer(f"{PLACE}.parquet").num_rows == 10, "the content has another version"


def test_what_is_not_there_is_told_with_its_place(memory):
    memory.put(f"{PLACE}.csv", b"a\n1\n")
    with pytest.raises(PlanError, match=r"no file matches it; did you mean 'memory://bucket/folder/a.csv'\?"):
        csv_source("memory://bucket/folder/b.csv")
    with pytest.raises(PlanError, match=r"other:// is no place that can be reached"):
        csv_source("other://bucket/a.csv")


def test_files_of_this_machine_are_opened_by_the_library(tmp_path, memory):
    path = str(tmp_path / "a")
    with native_output(path) as file:
        assert isinstance(file, pa.OSFile)
        file.write(b"abc")
    with pytest.raises(FileExistsError):
        native_output(path)
    with native_file(path) as file, mapped_file(path) as mapped:
        assert (type(file), type(mapped)) == (pa.OSFile, pa.MemoryMappedFile)
        assert (file.read(), mapped.read()) == (b"abc", b"abc")
    assert path_or_stream(path) == path
    memory.put(PLACE, b"abc")
    for opened in (native_file(PLACE), mapped_file(PLACE)):
        with opened as file:
            assert file.read() == b"abc"
