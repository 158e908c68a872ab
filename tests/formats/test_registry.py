"""Each source has an entry; what no entry says is safe."""

import dataclasses
import importlib.metadata
import inspect
import subprocess
import sys
from typing import get_args

import pytest

from engine.connectors.json_source import json_source
from engine.connectors.text_source import text_source
from engine.csv.options import CsvOptions
from engine.errors import NotYetSupportedError, PlanError
from engine.formats.registry import PLACES, SINK_PLACES, format_named, format_of, formats_by_ending, sink_format_of
from engine.formats.source_format import Layout, Origin, ReadRequest, SourceFormat
from engine.graph.source_spec import (
    ArrowSource,
    CsvSource,
    FormatSource,
    JsonSource,
    ParquetSource,
    PathSource,
    SinkSpec,
    SourceSpec,
    TextSource,
)

SPECS = {
    "csv": CsvSource((), (), b"", ("a",)),
    "parquet": ParquetSource((), (), ("a",)),
    "text": TextSource((), (), ("line",)),
    "json": JsonSource((), (), b"", ("a",)),
    "ipc": FormatSource("ipc", (), (), b"", ("a",)),
    "orc": FormatSource("orc", (), (), b"", ("a",)),
    "avro": FormatSource("avro", (), (), b"", ("a",)),
    "excel": FormatSource("excel", (), (), b"", ("a",)),
    "records": ParquetSource((), (), ("a",)),
    "arrow": ArrowSource((), (), ("a",), inline=b""),
    "database": FormatSource("database", (), (), b"", ("a",)),
    "delta": FormatSource("delta", (), (), b"", ("a",)),
    "iceberg": FormatSource("iceberg", (), (), b"", ("a",)),
    "paths": PathSource(TextSource((), (), ("line",)), (), (), ("line",), b"", {}),
}


def test_each_source_has_an_entry():
    assert {type(spec) for spec in SPECS.values()} == set(get_args(SourceSpec))
    assert SPECS.keys() == PLACES.keys()
    for name, spec in SPECS.items():
        assert format_named(name).name == name
        # the parts of a record data set are Parquet files
        assert format_of(spec) is format_named("parquet" if name == "records" else name)


def test_entries_are_loaded_without_arrow():
    script = f"""
import sys
from engine.formats.registry import format_named, sink_format_of
from engine.graph.source_spec import SinkSpec
for name in {sorted(PLACES)!r}:
    format_named(name)
for name in {sorted(SINK_PLACES)!r}:
    sink_format_of(SinkSpec(name, ""))
print(sorted({{'pyarrow', 'cloudpickle', 'numpy', 'pandas'}} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


class Plainest(SourceFormat[TextSource]):
    """A format that says nothing of itself but how it is read."""

    name = "plain"

    def reader(self, spec, splits, new_space=None):
        """Return no reader."""
        raise NotImplementedError


def test_what_an_entry_does_not_say_is_safe():
    entry, spec = Plainest(), SPECS["text"]
    assert not (
        entry.takes_filters
        or entry.takes_first
        or entry.tells_runs
        or entry.is_columnar
        or entry.is_prunable
        or entry.names_paths
    )
    assert entry.exact_splits(spec, 3) is spec
    assert entry.rejects(spec, 1.0) is None
    assert entry.layout(spec) == Layout()
    assert entry.origin(spec) is Origin.FILES
    assert entry.predicate(spec) is None
    assert entry.details(spec) == []
    assert not entry.shares_splits(spec)
    assert entry.spark_reader(spec) == ""


@pytest.mark.parametrize(
    ("spec", "origin"),
    [
        (ArrowSource((), (), ("a",), inline=b""), Origin.PLAN),
        (ArrowSource(("/tmp/a.arrow",), (), ("a",)), Origin.CLIENT),
        (SPECS["parquet"], Origin.FILES),
    ],
    ids=["plan", "client", "files"],
)
def test_an_entry_says_where_rows_lie(spec, origin):
    assert format_of(spec).origin(spec) is origin


def test_a_format_that_no_call_reads_by_its_name_says_so():
    with pytest.raises(NotYetSupportedError, match="reading plain by its name"):
        Plainest().source(ReadRequest())


def test_a_format_of_an_installed_package_is_found_by_its_entry_point(monkeypatch):
    class Point:
        """An entry point of a package."""

        def load(self):
            """Return what the package names."""
            return Plainest

    points = {"plain": [Point()]}
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group, name="": points.get(name, []))
    format_named.cache_clear()
    assert isinstance(format_named("plain"), Plainest)
    with pytest.raises(
        PlanError, match="there is no format 'plane': this process knows avro, csv, database, delta, excel, ipc"
    ):
        format_named("plane")
    format_named.cache_clear()


@pytest.mark.parametrize(
    ("name", "compression", "ending"),
    [
        ("csv", "gzip", "csv.gz"),
        ("text", "", "txt"),
        ("json", "zstd", "json.zst"),
        ("records", "", "parquet"),
        ("ipc", "lz4", "arrow"),
        ("ipc_stream", "", "arrows"),
        ("orc", "zlib", "orc"),
        ("discard", "", "none"),
    ],
)
def test_files_have_the_endings_of_their_format_and_codec(name, compression, ending):
    spec = SinkSpec(name, "/out", compression=compression)
    assert sink_format_of(spec).file_ending(spec) == ending


def test_each_sink_has_an_entry_and_results_alone_are_passing():
    entries = {name: sink_format_of(SinkSpec(name, "/out")) for name in SINK_PLACES}
    assert {name: entry.name for name, entry in entries.items()} == {name: name for name in SINK_PLACES}
    assert {name for name, entry in entries.items() if entry.is_passing} == {"arrow", "handed", "stream", "discard"}
    assert {name for name, entry in entries.items() if entry.is_of_client} == {"arrow", "handed", "stream"}
    assert entries["ipc_stream"].call == "write_ipc"


def test_endings_of_files_name_a_format():
    found = formats_by_ending()
    assert (found[".ndjson"], found[".feather"], found[".avro"], found[".parquet"]) == (
        "json",
        "ipc",
        "avro",
        "parquet",
    )


def test_a_sink_of_a_format_that_is_not_installed_says_so():
    with pytest.raises(PlanError, match="there is no format 'xlsx': this process knows csv, database, delta"):
        sink_format_of(SinkSpec("xlsx", "/out"))


def test_options_of_entries_are_those_that_their_sources_take():
    assert {*format_named("csv").options} == {field.name for field in dataclasses.fields(CsvOptions)}
    for name, make in (("json", json_source), ("text", text_source)):
        taken = {*inspect.signature(make).parameters} - {"path", "schema", "parallelism", "keeps_nulls"}
        assert {*format_named(name).options} == taken
    assert all(meaning for name in PLACES for meaning in format_named(name).options.values())
