"""Files of Delta and Iceberg in stores are opened and fetched while others are read, as those of plain sources are."""

import contextlib
import gc
import threading

import pyarrow as pa
import pytest

from engine import Environment, col
from engine.delta_tables.delta_reader import DeltaReader
from engine.errors import DataError
from engine.iceberg_tables.iceberg_reader import IcebergReader
from engine.memory.budget import Budget, Kind, process_budget
from engine.parquet import read_ahead, scan_memory
from engine.storage.file_systems import file_system_of
from engine.storage.store_client import use_store_settings
from tests.storage.store_proxy import Proxy
from tests.storage.test_read_ahead import memory_files, read_ahead_threads

pytest.importorskip("deltalake")
pytest.importorskip("pyiceberg")

FILES = 10
ROWS = pa.table({"id": range(FILES * 100), "s": [f"text {n}" for n in range(FILES * 100)]})


@pytest.fixture(scope="module")
def tables(server):
    """The same rows in ten files of a table of each kind."""
    with Environment({"parallelism.default": str(FILES), **server.settings}) as env:
        rows = env.from_arrow(ROWS).partition_custom(lambda key, channel_count: key % channel_count, "id")
        rows.write_delta("s3://data/ahead/delta", mode="append")
        rows.write_iceberg("db.t", "s3://data/ahead/lake", mode="append")
        env.execute()
        # Other columns than the other files have.
        rows = env.from_arrow(ROWS.slice(0, 0).append_column("more", pa.array([], pa.int64())))
        rows.write_delta("s3://data/ahead/delta", mode="append", schema_mode="union")
        env.execute()


@pytest.fixture
def proxy(server, tables):
    found = Proxy(server.endpoint)
    use_store_settings(server.settings | {"storage.s3.endpoint": found.endpoint, "storage.s3.allow-http": "true"})
    with found.running():
        yield found
    use_store_settings({})


@pytest.fixture(params=["delta", "iceberg"])
def reader(request, proxy):
    """A function that returns a reader of all files, or of those that a predicate leaves."""

    def new(predicate=None):
        settings = {"storage.s3.endpoint": proxy.endpoint}
        with Environment({"parallelism.default": "1", **stores(proxy), **settings}) as env:
            data = (
                env.read_delta("s3://data/ahead/delta")
                if request.param == "delta"
                else env.read_iceberg("db.t", "s3://data/ahead/lake")
            )
            spec = data._node.operator.spec
        if predicate is not None:
            spec = type(spec)(
                **{name: getattr(spec, name) for name in spec.__struct_fields__} | {"predicate": predicate.expression}
            )
        proxy.requests.clear()
        return {"delta": DeltaReader, "iceberg": IcebergReader}[request.param](spec, spec.splits)

    return new


def stores(proxy):
    return {"storage.s3.region": "us-east-1", "storage.s3.allow-http": True} | dict.fromkeys(
        ("storage.s3.access-key-id", "storage.s3.secret-access-key"), "test"
    )


def rows_of(found):
    with contextlib.closing(found) as reader:
        return sorted(row["id"] for batch in reader for row in batch.to_pylist())


def left_over():
    gc.collect()
    return memory_files(), read_ahead_threads()


def test_several_files_are_asked_for_at_the_same_time(reader, proxy):
    found, before = reader(), process_budget.held(Kind.ARROW)
    under_way, most, lock = [], [], threading.Lock()
    enough = threading.Event()

    def fault(number, method, path):
        del number, method
        with lock:
            under_way.append(path)
            most.append(len({*under_way}))
            if most[-1] == read_ahead._THREADS:
                enough.set()
        enough.wait(5)
        with lock:
            under_way.remove(path)

    proxy.fault = fault
    assert rows_of(found) == list(range(FILES * 100))
    assert max(most) == read_ahead._THREADS
    assert left_over() == (0, [])
    assert process_budget.held(Kind.ARROW) <= before


def test_a_file_is_asked_for_its_end_and_its_columns_alone(reader, proxy):
    assert rows_of(reader()) == list(range(FILES * 100))
    paths = [path for method, path in proxy.requests if path.partition("?")[0].endswith(".parquet")]
    assert len({*paths}) >= FILES
    assert len(paths) <= 2 * len({*paths})


def test_rows_of_a_filter_are_the_same_and_files_keep_their_own_columns(reader):
    predicate = (col("id") % 100 < 3) & (col("s") != "text 101")
    wanted = [n for n in range(FILES * 100) if n % 100 < 3 and n != 101]
    assert rows_of(reader(predicate)) == wanted


@pytest.mark.parametrize("batches", [0, 1, 3])
def test_a_reader_that_is_closed_leaves_nothing(reader, batches):
    found = reader()
    with contextlib.closing(found):
        rows = iter(found)
        for _ in range(batches):
            next(rows)
    assert left_over() == (0, [])


@pytest.mark.parametrize("reader", ["delta"], indirect=True)
def test_a_file_that_is_missing_is_told_where_its_rows_are_read(server, proxy, reader):
    found = reader()
    gone = found._spec.splits[4].path
    content = file_system_of(gone).read(gone)
    file_system_of(gone).delete(gone)
    try:
        with contextlib.closing(found), pytest.raises(DataError, match="the file is missing") as caught:
            list(found)
        assert gone in str(caught.value)
    finally:
        file_system_of(gone).replace(gone, content)
    assert left_over() == (0, [])


def test_memory_of_what_is_fetched_ahead_is_one_reservation(reader, monkeypatch):
    made = []

    class Counting(Budget):
        def reserve(self, *args):
            made.append(args)
            return super().reserve(*args)

    monkeypatch.setattr(scan_memory, "process_budget", Counting())
    found = reader()
    assert len(rows_of(found)) == FILES * 100
    assert len(made) == 1
