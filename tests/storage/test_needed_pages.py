"""What a scan asks a store for: the pages that are needed, with as many requests as there are runs of them."""

import contextlib
import io
import threading
import time

import msgspec
import numpy
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from engine import Environment, col, count
from engine.parquet.reader import ParquetReader
from engine.parquet.source import parquet_source
from engine.storage.known_objects import known_statuses
from engine.storage.store_counters import StoreTraffic, counted
from tests.storage.store_proxy import Proxy

ROWS, GROUPS = 200_000, 20
_RANDOM = numpy.random.default_rng(3)
TABLE = pa.table(
    {"k": numpy.arange(ROWS)} | {f"c{index:02}": _RANDOM.integers(0, 1 << 40, ROWS) for index in range(15)}
)
WANTED = ["k", "c03", "c09"]


@pytest.fixture(scope="module")
def content():
    sink = io.BytesIO()
    pq.write_table(
        TABLE, sink, row_group_size=ROWS // GROUPS, write_page_index=True, data_page_size=8192, write_batch_size=256,
        use_dictionary=False, compression="none",
    )  # fmt: skip
    return sink.getvalue()


@pytest.fixture
def asked(server):
    """A proxy before the store, and an environment that reads through it."""
    proxy = Proxy(server.endpoint)
    with proxy.running(), Environment(server.settings | {"storage.s3.endpoint": proxy.endpoint}) as env:
        yield proxy, env


def test_a_plan_and_its_job_ask_for_an_object_once(server, asked, content):
    proxy, env = asked
    path = server.put("needed/pages.parquet", content)
    data = env.read_parquet(path)
    assert [method for method, _ in proxy.requests] == ["GET"], "status and footer with one request"
    proxy.requests.clear()
    rows = data.filter(col("k").between(100_500, 103_000)).select(*WANTED)
    assert rows.to_arrow().equals(TABLE.select(WANTED).slice(100_500, 2501))
    assert {method for method, _ in proxy.requests} == {"GET"}, "the plan has its version: it is not looked for again"


@pytest.mark.parametrize(
    ("predicate", "first", "count", "page_runs"),
    [
        (col("k").between(100_500, 103_000), 100_500, 2501, 1),
        (col("k").between(109_000, 121_000), 109_000, 12_001, 3),
        ((col("k") < 300) | (col("k") >= 199_800), 0, 500, 2),
    ],
    ids=["within a row group", "three row groups", "both ends"],
)
def test_a_scan_reads_the_pages_that_are_needed(store, content, predicate, first, count, page_runs):
    spec, _, _ = parquet_source(store.put("needed/pages.parquet", content))
    traffic = StoreTraffic()
    rows, requests, read = rows_of(spec, predicate, traffic)
    assert rows.num_rows == count
    assert rows["k"][0].as_py() == first
    assert rows.sort_by("k").equals(TABLE.filter(pc.is_in(TABLE["k"], rows["k"])).select(WANTED))
    assert requests <= 2 + page_runs * len(WANTED), "indexes of pages, then a run of pages of each column"
    page = 8192 + 64
    assert read <= 1.1 * len(WANTED) * (8 * count + 2 * page_runs * page) + 64_000


def test_a_file_without_indexes_is_read_by_row_groups(store, content):
    sink = io.BytesIO()
    pq.write_table(TABLE, sink, row_group_size=ROWS // GROUPS, use_dictionary=False, compression="none")
    spec, _, _ = parquet_source(store.put("needed/plain.parquet", sink.getvalue()))
    rows, requests, read = rows_of(spec, col("k").between(100_500, 103_000), StoreTraffic())
    assert rows.num_rows == 2501
    assert requests == len(WANTED)
    assert read < 1.01 * 8 * len(WANTED) * ROWS // GROUPS


def test_objects_that_are_named_are_looked_at_together_and_once(server, asked):
    proxy, env = asked
    paths = [server.put(f"needed/named/{index:02}.parquet", small_file_of(index)) for index in range(24)]
    most, under_way, lock = [0], [0], threading.Lock()

    def fault(number, method, path):
        del number, method, path
        with lock:
            under_way[0] += 1
            most[0] = max(most[0], under_way[0])
        time.sleep(0.02)
        with lock:
            under_way[0] -= 1

    proxy.fault = fault
    data = env.read_parquet(paths)
    assert (len(proxy.requests), most[0] > 4) == (24, True)
    assert sorted(data.to_arrow()["k"].to_pylist()) == list(range(24))
    assert len(proxy.requests) == 48


@pytest.mark.parametrize("kept", [1, 3])
def test_of_folders_of_values_the_objects_that_a_filter_leaves_are_opened(server, asked, kept):
    proxy, env = asked
    for index in range(70):
        server.put(f"needed/folders/part={index}/a.parquet", small_file_of(index))
    data = env.read_parquet("s3://data/needed/folders")
    objects = [path for _, path in proxy.requests if path.endswith(".parquet")]
    assert len(objects) == 1, "the footer of the first one"
    proxy.requests.clear()
    assert data.filter(col("part") < kept).count() == kept
    assert {method for method, _ in proxy.requests} == {"GET"}
    assert len(proxy.requests) <= 2 * kept


def small_file_of(number):
    sink = io.BytesIO()
    pq.write_table(pa.table({"k": [number]}), sink)
    return sink.getvalue()


@pytest.mark.parametrize("has_index", [True, False])
def test_a_plan_that_is_sampled_fetches_little_for_it(server, asked, content, has_index):
    _, env = asked
    if not has_index:
        sink = io.BytesIO()
        pq.write_table(TABLE, sink, row_group_size=ROWS // 4, use_dictionary=False, compression="none")
        content = sink.getvalue()
    path = server.put(f"needed/sampled-{has_index}.parquet", content)
    env.read_parquet(path).filter(col("k") < 20_000).group_by("c03").agg(n=count()).limit(5).write_csv(
        f"s3://data/needed/groups-{has_index}"
    )
    ((_, read, _),) = env.execute().stores.values()
    needed = 2 * 8 * (20_000 if has_index else ROWS // 4)
    assert read < needed + 260_000


def test_a_footer_that_is_longer_than_was_guessed_takes_one_more_request(store):
    wide = pa.table({f"a column with a rather long name {index}": [index] for index in range(900)})
    sink = io.BytesIO()
    pq.write_table(wide, sink)
    traffic = StoreTraffic()
    with counted(traffic), known_statuses(reads_tails=True):
        spec, _, _ = parquet_source(store.put("needed/wide.parquet", sink.getvalue()))
    ((requests, read, _),) = traffic.by_store().values()
    assert (requests, len(spec.columns)) == (2, 900)
    assert read < len(sink.getvalue()), "nothing twice"


def test_an_object_that_is_replaced_after_the_plan_is_an_error(store, content):
    spec, _, _ = parquet_source(store.put("needed/replaced.parquet", content))
    store.put("needed/replaced.parquet", content[:-4] + b"PAR2")
    with pytest.raises(OSError, match="replaced meanwhile"):
        rows_of(spec, col("k") > 5, StoreTraffic())


def rows_of(spec, predicate, traffic):
    """Return the wanted rows of a source, and requests and bytes that they took."""
    spec = msgspec.structs.replace(spec, columns=tuple(WANTED), predicate=predicate.expression)
    with counted(traffic), contextlib.closing(ParquetReader(spec, spec.splits)) as reader:
        rows = pa.Table.from_batches(list(reader))
    ((requests, read, _),) = traffic.by_store().values()
    return rows, requests, read
