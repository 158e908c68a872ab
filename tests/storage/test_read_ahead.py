"""Row groups of files in stores are fetched while others are read, within what a reader may hold."""

import contextlib
import gc
import threading
from pathlib import Path

import pyarrow as pa
import pytest

from engine import col
from engine.graph.source_spec import ParquetSource
from engine.memory.budget import Kind, process_budget
from engine.parquet.reader import ParquetReader
from engine.parquet.source import parquet_source
from engine.storage.store_client import use_store_settings
from engine.storage.store_files import StoreRangeFile
from tests.storage.store_proxy import Proxy
from tests.storage.test_object_store import WIDE, parquet_of


def memory_files():
    names = []
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            names.append(str(link.readlink()))
    return sum("drey-fetched-chunks" in name for name in names)


@pytest.fixture
def before():
    """Return the bytes that the process holds without what the test reads."""
    gc.collect()
    return process_budget.held(Kind.ARROW)


def read_ahead_threads():
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("drey-")]


@pytest.fixture
def proxy(server):
    found = Proxy(server.endpoint)
    settings = server.settings | {"storage.s3.endpoint": found.endpoint, "storage.s3.allow-http": "true"}
    use_store_settings(settings)
    with found.running():
        yield found
    use_store_settings({})


@pytest.fixture
def sources(server, proxy):
    """Sources of one file, and of several."""
    one = server.put("ahead/one.parquet", parquet_of(WIDE, row_group_size=2000))
    for index in range(3):
        server.put(f"ahead/many/{index}.parquet", parquet_of(WIDE.slice(index * 7000, 7000), row_group_size=1500))
    return {"one": parquet_source(one)[0], "many": parquet_source("s3://data/ahead/many")[0]}


@pytest.mark.parametrize("files", ["one", "many"])
def test_several_row_groups_are_asked_for_at_the_same_time(sources, proxy, before, files):
    under_way, most, lock = [0], [0], threading.Lock()
    barrier = threading.Barrier(2, action=lambda: most.__setitem__(0, 2))

    def fault(number, method, path):
        del number, method, path
        with lock:
            under_way[0] += 1
        with contextlib.suppress(threading.BrokenBarrierError):
            if most[0] < 2:
                barrier.wait(10)

    proxy.fault = fault
    assert rows_of(sources[files]) == WIDE.to_pylist()
    assert most[0] == 2
    assert (memory_files(), read_ahead_threads(), process_budget.held(Kind.ARROW)) == (0, [], before)


def test_what_is_fetched_ahead_is_reserved_or_left_to_the_reader(sources, before, monkeypatch):
    held = []
    monkeypatch.setattr(
        StoreRangeFile,
        "_buffer",
        lambda file, *part, get=StoreRangeFile._buffer: (
            held.append(process_budget.held(Kind.ARROW)) or get(file, *part)
        ),
    )
    limit = process_budget.limit(Kind.ARROW)
    process_budget.set_limit(Kind.ARROW, 1 << 20)
    try:
        assert rows_of(sources["one"]) == WIDE.to_pylist()
        assert max(held) <= 9 << 20
    finally:
        process_budget.set_limit(Kind.ARROW, limit)
    assert process_budget.held(Kind.ARROW) == before


@pytest.mark.parametrize("batches", [0, 1, 3])
def test_a_reader_that_is_closed_leaves_nothing(sources, before, batches):
    for spec in sources.values():
        with contextlib.closing(ParquetReader(spec, spec.splits)) as reader:
            rows = iter(reader)
            for _ in range(batches):
                next(rows)
        assert (memory_files(), read_ahead_threads(), process_budget.held(Kind.ARROW)) == (0, [], before)


def test_a_request_that_fails_ahead_is_told_by_who_reads_its_row_group(sources, proxy, server):
    server.put("ahead/many/1.parquet", b"another object")
    spec = sources["many"]
    with contextlib.closing(ParquetReader(spec, spec.splits)) as reader:
        rows = iter(reader)
        assert sum(next(rows).num_rows for _ in range(5)) == 7000, "those of the first file"
        with pytest.raises(OSError, match="replaced meanwhile") as caught:
            next(rows)
    assert caught.value.filename == "s3://data/ahead/many/1.parquet"
    assert (memory_files(), read_ahead_threads()) == (0, [])


def test_rows_of_a_filter_are_the_same(sources):
    for spec in sources.values():
        predicate = (col("n") % 1000 < 3) & (col("n") > 2500)
        wanted = ParquetSource(
            spec.paths, spec.splits, ("n", "z"), spec.types_ipc, predicate.expression, stored=spec.stored
        )
        expected = [row for row in WIDE.select(["n", "z"]).to_pylist() if row["n"] % 1000 < 3 and row["n"] > 2500]
        assert rows_of(wanted) == expected


def test_many_small_files_are_read_at_the_same_time(server, proxy):
    for index in range(20):
        server.put(f"ahead/small/{index:02}.parquet", parquet_of(WIDE.slice(index * 10, 10)))
    spec, _, _ = parquet_source("s3://data/ahead/small")
    proxy.requests.clear()
    assert rows_of(spec) == WIDE.slice(0, 200).to_pylist()
    assert len(proxy.requests) == 20, "one request a file"


def rows_of(spec):
    with contextlib.closing(ParquetReader(spec, spec.splits)) as reader:
        return pa.Table.from_batches(list(reader)).to_pylist()
