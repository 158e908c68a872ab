"""Kernels on one thread, in memory that is warm, in nanoseconds per row: ``python -m tests.bench kernels``.

A row is (int64 key, int64, double, string of 5 to 11 characters); aggregates are count and sum of an int64. Batches
have 8192 rows. ``spill`` writes pages of rows to a file and reads them back, lz4 and checksum included.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from engine.accumulators.aggregate_functions import result_schema
from engine.aggregate.aggregate_spec import AggregateSpec
from engine.aggregate.hash_aggregate import HashAggregate
from engine.exchange.key_selector import HashSelector
from engine.graph.expression import AggregateCall, ColumnRef
from engine.graph.said_operators import JoinType
from engine.graph.sort_key import SortKey
from engine.iomanager.io_manager import IOManager
from engine.iomanager.spill_identity import SpillIdentity
from engine.iomanager.spill_space import SpillSpace
from engine.join.hash_join import HashJoin
from engine.join.join_spec import JoinInput, JoinSpec
from engine.memory.manager import MemoryManager
from engine.memory.page_pool import PagePool
from engine.records.row_codec import RowCodec
from engine.sort.external_sorter import ExternalSorter
from tests.bench.machine_limits import machine_limits
from tests.bench.report import limits_line
from tests.native._partition_probe import nanoseconds_per_select
from tests.native._records_probe import nanoseconds_per_row

ROWS = 2_000_000

_BATCH_ROWS = 8192
_PAGE_BYTES = 32768
_CALLS = (AggregateCall("count_all", None, "rows"), AggregateCall("sum", ColumnRef("amount"), "total"))

Figures = Iterator[tuple[str, float]]


def _table(rows: int, keys: int, seed: int = 1) -> pa.Table:
    """Return rows whose keys are of so many."""
    rng = np.random.default_rng(seed)
    texts = pa.array([f"{number:x}" for number in rng.integers(1 << 16, 1 << 44, 4096)])
    return pa.table(
        {
            "key": rng.integers(0, keys, rows),
            "amount": rng.integers(0, 1000, rows),
            "weight": rng.random(rows),
            "text": texts.take(pa.array(rng.integers(0, 4096, rows))),
        }
    ).combine_chunks()


def _timed(rows: int, *steps: Callable[[], object]) -> list[float]:
    """Run steps one after the other; return the nanoseconds per row of each."""
    taken = []
    for step in steps:
        began = time.perf_counter()
        step()
        taken.append((time.perf_counter() - began) / rows * 1e9)
    return taken


def _drain(batches: Iterator[pa.RecordBatch]) -> None:
    for _ in batches:
        pass


def _record_figures(table: pa.Table) -> Figures:
    batch = table.slice(0, _BATCH_ROWS).combine_chunks().to_batches()[0]
    found = nanoseconds_per_row(RowCodec(batch.schema), batch, [0], 200)
    yield "encode to rows", found["measure"] + found["encode"]
    yield "decode to Arrow", found["decode"]
    yield "hash of a key, Arrow", found["hash batch"]
    yield "hash of a key, rows", found["hash rows"]
    yield "partition by hash, 8 channels", nanoseconds_per_select(HashSelector(8, batch.schema, ["key"]), batch, 200)


def _sort_figures(table: pa.Table, pool: PagePool, space: SpillSpace) -> Figures:
    sorter = ExternalSorter(table.schema, (SortKey("key"),), pool, space)
    names = ("sort: take", "sort: order", "sort: give out")
    steps = (
        lambda: [sorter.add_batch(batch) for batch in table.to_batches(_BATCH_ROWS)],
        sorter.finish,
        lambda: _drain(sorter.batches()),
    )
    yield from zip(names, _timed(table.num_rows, *steps), strict=True)
    sorter.close()


def _join_figures(table: pa.Table, pool: PagePool, space: SpillSpace) -> Figures:
    build = table.set_column(0, "key", pa.array(np.random.default_rng(2).permutation(table.num_rows)))
    schema = pa.schema([("key", pa.int64()), ("amount", pa.int64()), ("weight", pa.float64())])
    spec = JoinSpec(
        how=JoinType.INNER,
        left=JoinInput(table.schema, (0,)),
        right=JoinInput(build.schema, (0,)),
        output=((0, 0), (0, 1), (1, 2)),
        output_schema=schema,
    )
    join = HashJoin(spec, pool, space)
    steps = (
        lambda: [join.add_build_batch(batch) for batch in build.to_batches(_BATCH_ROWS)],
        join.finish_build,
        lambda: [_drain(join.probe(batch)) for batch in table.to_batches(_BATCH_ROWS)],
    )
    names = ("join: take the build side", "join: make the table", "join: probe and give out")
    yield from zip(names, _timed(table.num_rows, *steps), strict=True)
    _drain(join.finish_probe())
    join.close()


def _aggregate_figures(table: pa.Table, pool: PagePool, space: SpillSpace) -> Figures:
    for groups in (128, 1024, None):
        keys = table["key"] if groups is None else pa.compute.bit_wise_and(table["key"], groups - 1)
        rows = pa.table({"key": keys, "__arg1": table["amount"]}).combine_chunks()
        schema = result_schema([rows.schema.field("key")], _CALLS, [None, pa.int64()])
        aggregate = HashAggregate(AggregateSpec("single", rows.schema, ("key",), _CALLS, schema), pool, space)
        batches = rows.to_batches(_BATCH_ROWS)
        add, give = _timed(
            rows.num_rows,
            lambda batches=batches, to=aggregate: [_drain(to.add_batch(batch)) for batch in batches],
            lambda to=aggregate: _drain(to.finish()),
        )
        yield f"aggregate: {aggregate.group_count:,} groups", add + give
        aggregate.close()


def _spill_figures(table: pa.Table, space: SpillSpace) -> Figures:
    codec = RowCodec(table.schema)
    pages = [codec.to_rows(batch) for batch in table.to_batches(1024)]
    writer = space.writer("kernels")
    files = []
    names = ("spill: write", "spill: read")
    steps = (
        lambda: ([writer.write_bytes(page) for page in pages], files.append(writer.finish())),
        lambda: _drain(files[0].reader()),
    )
    yield from zip(names, _timed(table.num_rows, *steps), strict=True)
    files[0].delete()


def report(rows: int, folder: Path) -> str:
    """Return the table of kernels: nanoseconds per row, the least of three runs, and millions of rows per second."""
    least: dict[str, float] = {}
    table = _table(rows, rows // 4)
    pages = max(4096, rows * 256 // _PAGE_BYTES)
    with MemoryManager(pages * _PAGE_BYTES, _PAGE_BYTES) as manager, manager.pool("kernels", pages) as pool:
        io = IOManager([str(folder)])
        space = io.space(SpillIdentity("0" * 32, 0, 0, 0))
        for _ in range(3):
            for figures in (
                _record_figures(table),
                _sort_figures(table, pool, space),
                _join_figures(table, pool, space),
                _aggregate_figures(table, pool, space),
                _spill_figures(table, space),
            ):
                for name, nanoseconds in figures:
                    least[name] = min(least.get(name, nanoseconds), nanoseconds)
        space.close()
        io.close()
    lines = ["| kernel | ns a row | million rows a second |", "|---|---|---|"]
    lines += [f"| {name} | {nanoseconds:.1f} | {1e3 / nanoseconds:.0f} |" for name, nanoseconds in least.items()]
    return "\n".join(lines) + f"\n\n{rows:,} rows of about 56 bytes; {limits_line(machine_limits(folder))}"
