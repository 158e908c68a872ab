"""A limit of what was made of each row of files has the first ones, every time; one of very many rows has any."""

import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine import Environment, array, col
from engine.graph.expression import Call, ColumnRef
from engine.graph.plan import Limit
from engine.optimizer import small_parts
from engine.optimizer.optimizer import optimize
from engine.optimizer.settings import OptimizerSettings
from tests.optimizer.plan_building import Builder, schema
from tests.sampling import first

KEYED = schema(k="int64", a="int64")
KNOWN = Call("is_not_null", (ColumnRef("k"),))
SETTINGS = OptimizerSettings(parallelism=4)


def parallelism_of_sources(builder):
    nodes = optimize(builder.plan(), SETTINGS).nodes
    return [node.parallelism for node in nodes if not node.inputs]


def limited(count, between=lambda builder, source: source, rows=10_000_000):
    builder = Builder()
    source = builder.source(KEYED, rows=rows)
    builder.sink(builder.limit(between(builder, source), count))
    return builder


def test_a_small_limit_reads_with_one_subtask():
    assert parallelism_of_sources(limited(10)) == [1]


def test_a_large_limit_and_one_behind_a_filter_read_with_all():
    assert parallelism_of_sources(limited(9_000_000)) == [4]
    assert parallelism_of_sources(limited(10, lambda builder, source: builder.filter(source, KNOWN))) == [4]


def are_read_in_turn(builder):
    """Return whether the limit reads the subtasks before it one after the other."""
    nodes = optimize(builder.plan(), SETTINGS).nodes
    (limit,) = (node for node in nodes if node.descriptor.name.startswith("limit"))
    return limit.inputs[0].partitioner.in_order


def test_a_limit_behind_a_filter_reads_one_subtask_after_the_other():
    assert are_read_in_turn(limited(10, lambda builder, source: builder.filter(source, KNOWN)))


def test_a_large_limit_has_any_rows_and_its_readers_do_not_wait():
    assert not are_read_in_turn(limited(9_000_000))


def test_a_large_limit_whose_first_rows_are_passed_over_has_the_first_ones():
    builder = Builder()
    source = builder.source(KEYED, rows=10_000_000)
    limit = builder.add(Limit(9_000_000, is_first=True), (source,), KEYED)
    builder.sink(limit)
    assert are_read_in_turn(builder)


def test_there_is_no_order_to_keep_behind_an_exchange():
    grouped = limited(10, lambda builder, source: builder.aggregate(source, ("k",)))
    assert not are_read_in_turn(grouped)


ROWS, FILES = 24_000, 4
BEHIND = {
    "map": lambda data: data.map(lambda row: (row.a,), SCHEMA),
    "map_batches": lambda data: data.map_batches(lambda batch: batch, SCHEMA),
    "flat_map": lambda data: data.flat_map(lambda row: [(row.a,)], SCHEMA),
    "function as filter": lambda data: data.filter(lambda row: True),
    "filter": lambda data: data.filter(col("a") >= 0),
    "explode": lambda data: data.select(array(col("a")).alias("a")).explode("a"),
}
SCHEMA = pa.schema([("a", pa.int64())])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("files")
    for index in range(FILES):
        rows = range(index * ROWS // FILES, (index + 1) * ROWS // FILES)
        pq.write_table(pa.table({"a": rows}), path / f"f{index}.parquet", row_group_size=1000)
    return path


@pytest.mark.parametrize("parallelism", first(3, 1, 2, 7))
def test_first_rows_and_pages_go_by_the_order_of_the_files(monkeypatch, folder, parallelism):
    monkeypatch.setattr(small_parts, "SMALL_BYTES", 0)
    with Environment(config={"parallelism.default": parallelism, "python.execution-mode": "thread"}) as env:
        source = env.read_parquet(folder)
        for name, behind in BEHIND.items():
            data = behind(source)
            assert data.head(3).to_arrow()["a"].to_pylist() == [0, 1, 2], name
            pages = [data.limit(7_000, offset=begin).to_arrow()["a"].to_pylist() for begin in range(0, ROWS, 7_000)]
            assert [row for page in pages for row in page] == list(range(ROWS)), name


def test_readers_stop_when_the_first_rows_are_there(tmp_path, folder):
    seen = tmp_path / "seen"
    seen.mkdir()

    def slow(row):
        (seen / str(row.a)).touch()
        time.sleep(0.002)
        return (row.a,)

    with Environment(config={"parallelism.default": 4}) as env:
        found = env.read_parquet(folder).map(slow, SCHEMA).head(20).to_arrow()["a"].to_pylist()
    assert found == list(range(20))
    assert len(list(seen.iterdir())) < ROWS / 2


@pytest.mark.parametrize("call", [lambda data: data.limit(3), lambda data: data.head(3).select("x")])
def test_the_first_rows_come_every_time(call):
    with Environment(config={"parallelism.default": 2}) as env:
        data = env.from_arrow(pa.table({"x": range(100_000)})).with_columns(y=col("x") + 1)
        for _ in range(5):
            assert call(data).to_arrow().column("x").to_pylist() == [0, 1, 2]
