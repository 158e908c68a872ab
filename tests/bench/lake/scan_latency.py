"""A scan of all columns through a store that takes 30 ms a request, beside one of the same file on this machine.

Both are jobs of a process of its own, in turns; the clock counts from the plan on. The server has a part of the same
processors, which counts against the store. Two files: one as tables mostly are, compressed, with numbers, prices, days
and texts; one of doubles that do not compress, where a scan on this machine does little more than read.
"""

from pathlib import Path
from statistics import median

import numpy
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tests.bench.lake import scan_requests
from tests.bench.lake.measured import measured
from tests.bench.lake.row import Figure
from tests.bench.lake.store_server import served

DEFAULT_ROWS = 16_000_000
DELAY_MS = 30
_GROUP_ROWS = 200_000
#: doubles that do not compress are half as many rows, which are as many bytes
_DOUBLES_SHARE = 2
_SCAN = """
from engine import Environment, col, count, max_, sum_
with Environment(arguments["settings"]) as env:
    begin()
    data = env.read_parquet(arguments["path"])
    names = [name for name in data.columns if name != "key"]
    largest = {name: max_(name) for name in names if name[0] in "td"}
    added = {name: sum_(name) for name in names if name not in largest}
    data.agg(**largest, **added, rows=count()).to_arrow()
    end()
"""


def prepared(rows: int, folder: Path) -> Path:
    """Return the folder of the file, which is made where it is missing."""
    made = folder / f"lake-table-{rows}"
    if not (made / "wide.parquet").exists():
        made.mkdir(parents=True, exist_ok=True)
        rnd = numpy.random.default_rng(2)
        words = pa.array([f"word {number * 7919 % 5000:05} of many" for number in range(5000)])
        writer, unfinished = None, made / "wide.unfinished"
        for first in range(0, rows, _GROUP_ROWS):
            table = _table(rnd, words, first, min(_GROUP_ROWS, rows - first))
            writer = writer or pq.ParquetWriter(unfinished, table.schema, write_page_index=True)
            writer.write_table(table)
        writer.close()
        unfinished.rename(made / "wide.parquet")
    return made


def _table(rnd: numpy.random.Generator, words: pa.Array, first: int, count: int) -> pa.Table:
    numbers = {f"n{at}": rnd.integers(0, 10 ** (2 * at + 1), count) for at in range(4)}
    prices = {f"p{at}": numpy.round(rnd.gamma(2.0, 50.0, count), 2) for at in range(4)}
    days = {f"d{at}": pa.array(rnd.integers(8000, 12_000, count).astype("int32")).cast(pa.date32()) for at in range(2)}
    texts = {f"t{at}": words.take(pa.array(rnd.integers(0, len(words), count))) for at in range(3)}
    names = {
        f"t{at}": pc.binary_join_element_wise("customer", pa.array(rnd.integers(0, 10**7, count)).cast("string"), "#")
        for at in (3, 4)
    }
    return pa.table({"key": numpy.arange(first, first + count)} | numbers | prices | days | texts | names)


def figures(rows: int, runs: int, folder: Path) -> list[Figure]:
    """Scan both files in turns."""
    return [
        _figure("a table", prepared(rows, folder), runs, 1.5, 1.15),
        _figure("doubles", scan_requests.prepared(rows // _DOUBLES_SHARE, folder), runs, None, None),
    ]


def _figure(what: str, made: Path, runs: int, must: float | None, aim: float | None) -> Figure:
    path = made / "wide.parquet"
    local, through = [], []
    with served(made, DELAY_MS) as store:
        for _ in range(runs):
            local.append(measured(_SCAN, settings={}, path=str(path)))
            through.append(measured(_SCAN, settings=store.settings, path="s3://bucket/wide.parquet"))
        requests, _ = store.counts()
    ratios = {
        figure: median(far[figure] / near[figure] for far, near in zip(through, local, strict=True))
        for figure in ("seconds", "cpu_seconds")
    }
    seconds = [median(each["seconds"] for each in one) for one in (through, local)]
    about = (
        f"{path.stat().st_size / 1e9:.1f} GB, {requests // runs} requests, {seconds[0]:.2f} s for {seconds[1]:.2f} s,"
        f" processor time x {ratios['cpu_seconds']:.2f}"
    )
    return Figure(f"scan with {DELAY_MS} ms a request, {what}, by the clock", ratios["seconds"], must, aim, about)
