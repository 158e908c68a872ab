"""A format is added by one entry: it has filters, pruned splits, statistics, options and columns of paths."""

import importlib.metadata
from pathlib import Path
from typing import ClassVar

import msgspec
import pyarrow as pa
import pytest

from engine import Environment, col, count, sum_
from engine.errors import ConfigurationError, PlanError, SchemaError
from engine.expressions.evaluate import evaluate
from engine.formats import registry
from engine.formats.registry import _ADDED, add_format, format_named
from engine.formats.sink_format import SinkFormat
from engine.formats.source_format import ReadRequest, SourceFormat
from engine.graph.source_spec import ColumnStatistics, FormatSource, SourceSplit, SourceStatistics
from engine.records.arrow_functions import pc
from engine.statistics.bounds_predicate import highest, lowest, null_count
from tests.docs.pages import blocks_of

SCHEMA = pa.schema({"n": pa.int64(), "square": pa.int64()})


class Numbers(SourceFormat[FormatSource]):
    """Files of blocks of numbers: a line ``first last`` each. A split is a block."""

    name = "numbers"
    options: ClassVar = {"times": "what each number is multiplied by"}
    takes_filters = True
    is_prunable = True
    is_columnar = True
    blocks_read: ClassVar[list[int]] = []

    def source(self, request):
        """Return a source of all blocks, whose counts and bounds are exact."""
        splits = [split for path in request.paths for split in self._splits(path)]
        rows = sum(split.row_count for split in splits)
        low, high = min(split.start for split in splits), max(split.end for split in splits) - 1
        known = SourceStatistics(
            float(rows),
            16.0 * rows,
            "numbers",
            is_exact=True,
            columns={"n": ColumnStatistics(rows, 0.0, 8.0, low, high)},
        )
        schema_ipc = SCHEMA.serialize().to_pybytes()
        spec = FormatSource(
            self.name, tuple(request.paths), tuple(splits), schema_ipc, tuple(SCHEMA.names), None, {**request.options}
        )
        return spec, known, SCHEMA

    def _splits(self, path):
        with open(path, encoding="ascii") as file:  # noqa: PTH123 - a path of a plan is a text
            bounds = [tuple(map(int, line.split())) for line in file]
        return [SourceSplit(path, first, last + 1, 16 * (last + 1 - first), last + 1 - first) for first, last in bounds]

    def bounds(self, spec, schema, names):
        """Return what is known of n."""
        columns = {
            lowest("n"): [split.start for split in spec.splits],
            highest("n"): [split.end - 1 for split in spec.splits],
            null_count("n"): [0] * len(spec.splits),
        }
        return pa.table(columns)

    def reader(self, spec, splits, new_space=None):
        """Return a reader of blocks."""
        return NumbersReader(spec, splits)


class NumbersReader:
    """Makes the rows of blocks."""

    bad_rows = 0
    pruned_groups = 0

    def __init__(self, spec, splits):
        self._spec, self._splits = spec, splits
        self.bytes_read = 0

    def __iter__(self):
        """Yield a batch for each block, without the rows that are not wanted."""
        for split in self._splits:
            Numbers.blocks_read.append(split.start)
            self.bytes_read += split.size_bytes
            numbers = pa.array(range(split.start, split.end), pa.int64())
            times = pa.scalar(self._spec.options.get("times", 1), pa.int64())
            batch = pa.record_batch([numbers, pc.multiply(pc.multiply(numbers, numbers), times)], schema=SCHEMA)
            if self._spec.predicate is not None:
                batch = batch.filter(evaluate(self._spec.predicate, batch))
            yield batch.select(list(self._spec.columns))

    def close(self):
        """Do nothing: no file is open."""


@pytest.fixture
def env():
    add_format(Numbers())
    Numbers.blocks_read.clear()
    with Environment({"parallelism.default": "2"}) as environment:
        yield environment
    del _ADDED["numbers"]
    format_named.cache_clear()


def write(path, *blocks):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{first} {last}\n" for first, last in blocks))
    return path


def test_rows_of_a_new_format_are_read(env, tmp_path):
    write(tmp_path / "a.numbers", (1, 3), (4, 5))
    rows = env.read("numbers", tmp_path)
    assert rows.schema == SCHEMA
    assert sorted(row.square for row in rows.collect()) == [1, 4, 9, 16, 25]
    assert env.read("numbers", tmp_path, times=2).agg(s=sum_("square")).collect() == [(110,)]


def test_its_statistics_are_those_of_the_plan(env, tmp_path):
    write(tmp_path / "a.numbers", (1, 300), (301, 500))
    text = env.read("numbers", tmp_path / "a.numbers").explain()
    assert "numbers source a.numbers" in text
    assert "500 rows" in text


def test_a_filter_is_applied_by_its_reader_and_leaves_out_splits(env, tmp_path):
    write(tmp_path / "a.numbers", (1, 1000), (1001, 2000), (2001, 3000), (3001, 4000))
    rows = env.read("numbers", tmp_path / "a.numbers").filter((col("n") > 1900) & (col("n") <= 2100))
    text = rows.explain()
    assert "filter n > 1900 & n <= 2100" in text.replace("(", "").replace(")", "")
    assert "2 of 4 splits" in text
    assert "Filter" not in text
    assert sorted(row.n for row in rows.collect()) == [*range(1901, 2101)]
    assert sorted(Numbers.blocks_read) == [1001, 2001]


def test_a_filter_of_other_columns_leaves_all_splits(env, tmp_path):
    write(tmp_path / "a.numbers", (1, 10), (11, 20))
    rows = env.read("numbers", tmp_path).filter(col("square") == 144)
    assert [row.n for row in rows.collect()] == [12]
    assert sorted(Numbers.blocks_read) == [1, 11]


def test_a_filter_that_no_split_meets_reads_none(env, tmp_path):
    write(tmp_path / "a.numbers", (1, 10), (11, 20))
    assert env.read("numbers", tmp_path).filter(col("n") > 20).collect() == []
    assert Numbers.blocks_read == []


def test_columns_of_paths_are_beside_its_own(env, tmp_path):
    for year in (2023, 2024):
        write(tmp_path / f"year={year}" / "a.numbers", (year, year + 1), (year + 2, year + 2))
    rows = env.read("numbers", tmp_path)
    assert rows.schema.names == ["n", "square", "year"]
    kept = rows.filter((col("year") == 2024) & (col("n") > 2025)).select("n", "year")
    assert kept.collect() == [(2026, 2024)]
    assert Numbers.blocks_read == [2026]


def test_options_and_words_that_it_does_not_take_are_errors(env, tmp_path):
    write(tmp_path / "a.numbers", (1, 3))
    with pytest.raises(
        TypeError, match=r"numbers: read\(\) has no option tims=: did you mean times=\?\n  times=: what"
    ):
        env.read("numbers", tmp_path, tims=2)
    with pytest.raises(ConfigurationError, match=r"read\('numbers'\): the format takes no schema=; leave it out"):
        env.read("numbers", tmp_path, SCHEMA)
    with pytest.raises(ConfigurationError, match=r"the format takes no schema_mode="):
        env.read("numbers", tmp_path, schema_mode="union")
    with pytest.raises(ConfigurationError, match=r"the format takes no partitioning="):
        env.read("records", tmp_path, file_name_column="f")


def test_own_formats_are_read_by_their_names(env, tmp_path):
    (tmp_path / "a.csv").write_text("a;b\n1;2\n")
    read = env.read("csv", tmp_path / "a.csv", header=True, delimiter=";")
    assert read.collect() == env.read_csv(tmp_path / "a.csv", header=True, delimiter=";").collect() == [(1, 2)]
    env.read("csv", tmp_path / "a.csv", header=True, delimiter=";").write_records(tmp_path / "out")
    env.execute()
    assert env.read("records", tmp_path / "out").collect() == [(1, 2)]


def test_its_source_travels(env, tmp_path):
    path = write(tmp_path / "a.numbers", (1, 3))
    spec, _, _ = format_named("numbers").source(ReadRequest((str(path),), options={"times": 2}))
    filtered = msgspec.structs.replace(spec, predicate=(col("n") > 1).expression)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(filtered), type=FormatSource) == filtered


class NumbersSink(SinkFormat):
    """Files of one line: the least and the greatest number."""

    name = "numbers"

    def checked(self, spec, schema, file_schema):
        """Return the sink of one column."""
        if file_schema.names != ["n"]:
            raise SchemaError(f"{self.call}: one column n is written, there are {', '.join(file_schema.names)}")
        return spec

    def writer(self, spec, schema, path, former=None):
        """Return a writer."""
        return NumbersWriter(path)


class NumbersWriter:
    """Writes a block for the numbers of a task."""

    is_full = False

    def __init__(self, path):
        self._path, self._numbers = Path(path), []
        self._path.touch(exist_ok=False)

    def write(self, batch):
        """Take numbers."""
        self._numbers += batch.column("n").to_pylist()

    def finish(self):
        """Write the line, where there are numbers."""
        if self._numbers:
            self._path.write_text(f"{min(self._numbers)} {max(self._numbers)}\n")
        return len(self._numbers), self._path.stat().st_size, ""

    def abort(self):
        """Remove the file."""
        self._path.unlink(missing_ok=True)


@pytest.fixture
def installed(monkeypatch):
    """Return a function that installs an entry as that of a package."""

    def install(entry, group="drey.sinks", wanted="numbers"):
        class Point:
            """An entry point of a package."""

            name = wanted

            def load(self):
                """Return what the package names."""
                return entry

        def points(group, name=wanted, wanted=(group, wanted)):
            return [Point()] if (group, name) == wanted else []

        monkeypatch.setattr(importlib.metadata, "entry_points", points)
        registry._sink_format_named.cache_clear()

    yield install
    registry._sink_format_named.cache_clear()


@pytest.fixture
def numbers_sink(installed):
    installed(NumbersSink)


@pytest.mark.usefixtures("numbers_sink")
def test_a_sink_of_an_installed_package_is_written_by_its_name(env, tmp_path):
    rows = env.from_rows([(3,), (9,), (4,)], pa.schema({"n": pa.int64()}))
    rows.write("numbers", tmp_path / "out")
    with pytest.raises(TypeError, match=r"numbers: write\(\) has no option header=: it has overwrite, compression"):
        rows.write("numbers", tmp_path / "again", header=True)
    env.execute()
    assert env.read("numbers", tmp_path / "out").agg(c=count()).collect() == [(7,)]
    with pytest.raises(SchemaError, match=r"numbers: write: one column n is written, there are m"):
        rows.select(m=col("n")).write("numbers", tmp_path / "again")


def test_the_sink_that_contributing_shows_writes_and_removes_what_is_broken(env, tmp_path, installed):
    page = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (code,) = [block.code for block in blocks_of(page, "python") if "class NumbersSink" in block.code]
    shown: dict[str, object] = {}
    exec(compile(code, "CONTRIBUTING.md", "exec"), shown)
    installed(shown["NumbersSink"])
    rows = env.from_rows([(3,), (9,), (4,)], pa.schema({"n": pa.int64()}))
    rows.write("numbers", tmp_path / "out")
    env.execute()
    written = sorted(word for file in (tmp_path / "out").iterdir() for word in file.read_text().split())
    assert written == ["3", "4", "9"]
    shown["NumbersSink"]().writer(None, None, str(tmp_path / "broken")).abort()
    assert not (tmp_path / "broken").exists()


def test_files_of_a_format_of_a_package_are_not_appended_to_by_another(env, tmp_path, installed):
    class Fixed(SourceFormat[FormatSource]):
        """Files that only this package reads."""

        name, endings = "fixed", (".fxn",)

    installed(Fixed, group="drey.formats", wanted="fixed")
    format_named.cache_clear()
    (tmp_path / "a.fxn").write_bytes(b"3")
    rows = env.from_rows([(3,)], pa.schema({"n": pa.int64()}))
    with pytest.raises(ConfigurationError, match=r"a\.fxn"):
        rows.write_csv(tmp_path, mode="append")
        env.execute()
    format_named.cache_clear()


def test_entries_that_break_the_protocol_are_named(env, tmp_path, installed):
    rows = env.from_rows([(3,)], pa.schema({"n": pa.int64()}))

    class Nameless(SinkFormat):
        def writer(self, spec, schema, path, former=None):
            return NumbersWriter(path)

    class Renamed(NumbersSink):
        name = "digits"

    class Silent(NumbersSink):
        def writer(self, spec, schema, path, former=None):
            writer = NumbersWriter(path)
            writer.finish = lambda: None
            return writer

    for entry, said in (
        (Nameless, "the format Nameless has no name: its class needs one, such as name = 'nameless'"),
        (Renamed, "the package names the format 'numbers' in drey.sinks, and Renamed calls itself 'digits'"),
    ):
        installed(entry)
        with pytest.raises(PlanError, match=said):
            rows.write("numbers", tmp_path / "out")
    installed(Silent)
    rows.write("numbers", tmp_path / "out")
    with pytest.raises(PlanError, match=r"NumbersWriter.finish\(\) returned None: the writer of a file returns"):
        env.execute()

    class Unexplained(Numbers):
        options: ClassVar = ("times",)

    for entry, said in (
        (Unexplained(), r"the options of the format Unexplained are tuple: make them a dict of names and what each"),
        (SourceFormat(), "the format SourceFormat has no name"),
        (Numbers, "give an object of a class"),
    ):
        with pytest.raises(PlanError, match=said):
            add_format(entry)


@pytest.mark.usefixtures("numbers_sink")
def test_a_sink_takes_a_codec_only_if_it_says_so(env, tmp_path, installed):
    class Plain(SinkFormat):
        name = "numbers"

        def writer(self, spec, schema, path, former=None):
            return NumbersWriter(path)

    installed(Plain)
    with pytest.raises(ConfigurationError, match=r"numbers: write: the format takes no compression="):
        env.from_rows([(3,)], pa.schema({"n": pa.int64()})).write("numbers", tmp_path / "out", compression="gzip")


def test_formats_that_have_no_files_are_not_offered(env, tmp_path):
    rows = env.from_rows([(3,)], pa.schema({"n": pa.int64()}))
    for name in ("nothing", "arrow", "paths", "discard"):
        with pytest.raises(
            PlanError, match=rf"no format '{name}': this process knows avro, csv, database, delta, excel, ipc, json"
        ):
            env.read(name, tmp_path)
    with pytest.raises(PlanError, match="this process knows csv, database, delta, excel, iceberg, ipc, ipc_stream"):
        rows.write("nothing", tmp_path / "out")


def test_own_formats_are_written_by_their_names(env, tmp_path):
    rows = env.from_rows([(3, "x")], pa.schema({"n": pa.int64(), "s": pa.string()}))
    for name in ("csv", "parquet", "json", "ipc", "orc"):
        rows.write(name, tmp_path / name, mode="overwrite")
    env.execute()
    for name in ("csv", "parquet", "json", "ipc", "orc"):
        assert env.read(name, tmp_path / name).collect() == [(3, "x")]
    with pytest.raises(ConfigurationError, match=r"write\('arrow'\): its files are results of this process"):
        rows.write("arrow", tmp_path / "results")
