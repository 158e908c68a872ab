"""Python functions beside a bare loop in as many processes: ``python -m tests.bench functions``.

    drey   from_arrow(table).map(function) and the like, what comes out is counted: two slots, two workers
    loop   two forked processes with half of the same table each: to_pylist, the function, pa.array

Both run in turns within one process that has run each of them before, so starting up counts for nobody. CPU seconds are
those of the process and all that it has started; the least of the turns counts. Polars is shown for functions of one
value (``map_elements``, in one thread: that is how it calls Python). Ratios are what counts.
"""

import datetime
import gc
import os
import re
import time
from collections.abc import Callable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.compute as pc

from engine import Environment
from engine.api.data_set import DataSet
from tests.bench.workload import THREADS

ROWS = 1_000_000

_DIGITS = re.compile(r"\d+")
_DAY = datetime.timedelta(days=1)
#: strings and dates are of so many different ones
_VARIETY = 4096


class Case(NamedTuple):
    """A function in both shapes. ``loop`` makes the columns of the output from those of the input."""

    name: str
    table: Callable[[int], pa.Table]
    drey: Callable[[DataSet], DataSet]
    loop: Callable[[pa.Table], object]
    polars: Callable[[Any], object] | None = None
    #: of the rows that are asked for
    share: float = 1.0


def _numbers(rows: int, columns: int = 1) -> pa.Table:
    rng = np.random.default_rng(1)
    return pa.table({f"c{index}": rng.integers(0, 1_000_000, rows) for index in range(columns)})


def _texts(rows: int, columns: int = 1) -> pa.Table:
    rng = np.random.default_rng(2)
    words = pa.array([f"word {number:x} of {number % 97}" for number in rng.integers(1 << 16, 1 << 40, _VARIETY)])
    return pa.table(
        {f"c{index}": words.take(pa.array(rng.integers(0, _VARIETY, rows))) for index in range(columns)}
    ).combine_chunks()


def _dates(rows: int, columns: int = 1) -> pa.Table:
    rng = np.random.default_rng(3)
    return pa.table(
        {f"c{index}": pa.array(rng.integers(0, 20_000, rows).astype("i4"), pa.date32()) for index in range(columns)}
    )


def _mixed(rows: int) -> pa.Table:
    """Return five columns: number, text, fraction, date, number."""
    parts = [_numbers(rows)["c0"], _texts(rows)["c0"], pa.array(np.random.default_rng(4).random(rows))]
    return pa.table(dict(zip("abcde", [*parts, _dates(rows)["c0"], _numbers(rows, 2)["c1"]], strict=True)))


def _lines(rows: int) -> pa.Table:
    """Return lines of six words."""
    rng = np.random.default_rng(5)
    words = np.array([f"w{number:x}" for number in range(_VARIETY)])
    lines = pa.array([" ".join(words[picked]) for picked in rng.integers(0, _VARIETY, (_VARIETY, 6))])
    return pa.table({"line": lines.take(pa.array(rng.integers(0, _VARIETY, rows)))}).combine_chunks()


def _groups(rows: int) -> pa.Table:
    """Return rows of ten in a group, sorted: the bare loop has no sort of its own."""
    return pa.table({"k": np.arange(rows) // 10, "v": np.random.default_rng(6).integers(0, 1000, rows)})


def _columns(table: pa.Table) -> list[list[Any]]:
    return [column.to_pylist() for column in table.columns]


def _loop_of_rows(function: Callable[..., Any], schema: pa.Schema) -> Callable[[pa.Table], object]:
    """Return the loop of a map as one writes it who knows Python: by batch, and without tuples of one value."""

    def loop(table: pa.Table) -> object:
        made = []
        for batch in table.to_batches(8192):
            columns = [column.to_pylist() for column in batch.columns]
            if len(columns) == len(schema) == 1:
                made.append(pa.array([function(value) for value in columns[0]], schema[0].type))
                continue
            rows = [function(*values) for values in zip(*columns, strict=True)]
            out = zip(*rows, strict=True)
            made.append([pa.array(column, field.type) for column, field in zip(out, schema, strict=True)])
        return made

    return loop


def _schema(**types: pa.DataType) -> pa.Schema:
    return pa.schema(list(types.items()))


def _map_cases() -> Iterator[Case]:
    number, text, date = pa.int64(), pa.string(), pa.date32()
    yield Case(
        "map, 1 number",
        _numbers,
        lambda data: data.map(lambda row: (row.c0 + 1,), _schema(y=number)),
        _loop_of_rows(lambda c0: c0 + 1, _schema(y=number)),
        lambda pl: pl.col("c0").map_elements(lambda c0: c0 + 1, return_dtype=pl.Int64),
    )
    yield Case(
        "map, 1 number by value",
        _numbers,
        lambda data: data.map(lambda c0: c0 + 1, _schema(y=number), "c0"),
        _loop_of_rows(lambda c0: c0 + 1, _schema(y=number)),
    )
    yield Case(
        "map, 1 text by a regular expression",
        _texts,
        lambda data: data.map(lambda row: (_DIGITS.sub("#", row.c0),), _schema(y=text)),
        _loop_of_rows(lambda c0: _DIGITS.sub("#", c0), _schema(y=text)),
        lambda pl: pl.col("c0").map_elements(lambda c0: _DIGITS.sub("#", c0), return_dtype=pl.String),
    )
    yield Case(
        "map, 1 date",
        _dates,
        lambda data: data.map(lambda row: (row.c0 + _DAY,), _schema(y=date)),
        _loop_of_rows(lambda c0: c0 + _DAY, _schema(y=date)),
        lambda pl: pl.col("c0").map_elements(lambda c0: c0 + _DAY, return_dtype=pl.Date),
    )
    five = _schema(a=number, b=text, c=pa.float64(), d=date, e=number)

    def by_values(a: int, b: str, c: float, d: datetime.date, e: int) -> tuple[Any, ...]:
        return (a + e, b.upper(), c * 2, d, e)

    yield Case(
        "map, 5 columns",
        _mixed,
        lambda data: data.map(lambda row: (row.a + row.e, row.b.upper(), row.c * 2, row.d, row.e), five),
        _loop_of_rows(by_values, five),
    )
    twenty = pa.schema([(f"c{index}", number) for index in range(20)])
    yield Case(
        "map, 20 numbers, all used",
        lambda rows: _numbers(rows, 20),
        lambda data: data.map(lambda row: (row[0] + 1, *row[1:]), twenty),
        _loop_of_rows(lambda *row: (row[0] + 1, *row[1:]), twenty),
        share=0.2,
    )
    yield Case(
        "map, 20 texts, two used",
        lambda rows: _texts(rows, 20),
        lambda data: data.map(lambda row: (row.c3, row.c7.upper()), _schema(a=text, b=text)),
        lambda table: _loop_of_rows(lambda c3, c7: (c3, c7.upper()), _schema(a=text, b=text))(
            table.select(["c3", "c7"])
        ),
        share=0.2,
    )


def _other_cases() -> Iterator[Case]:
    number, text = pa.int64(), pa.string()
    word = _schema(word=text)

    def words_of(table: pa.Table) -> object:
        words: list[str] = []
        for line in table["line"].to_pylist():
            words.extend(line.split())
        return pa.array(words)

    yield Case(
        "flat_map, lines into words",
        _lines,
        lambda data: data.flat_map(lambda row: [(each,) for each in row.line.split()], word),
        words_of,
        share=0.5,
    )

    yield Case(
        "flat_map, lines into words by value",
        _lines,
        lambda data: data.flat_map(str.split, word, "line"),
        words_of,
        share=0.5,
    )

    def one_in_thirty(table: pa.Table) -> object:
        kept = [(a, b) for a, b in zip(*_columns(table.select(["a", "b"])), strict=True) if a % 30 == 0]
        a, b = zip(*kept, strict=True)
        return pa.array(a), pa.array(b)

    def spread(row: Any) -> Any:
        return [(row.a, row.b)] if row.a % 30 == 0 else ()

    yield Case(
        "flat_map, one in thirty rows",
        _mixed,
        lambda data: data.flat_map(spread, _schema(a=number, b=text)),
        one_in_thirty,
    )
    yield Case(
        "filter, one in thirty rows of 5 columns",
        _mixed,
        lambda data: data.filter(lambda row: row.a % 30 == 0),
        lambda table: table.filter(pa.array([a % 30 == 0 for a in table["a"].to_pylist()])),
        lambda pl: pl.col("a").map_elements(lambda a: a % 30 == 0, return_dtype=pl.Boolean),
    )

    def totals(rows: Any) -> Iterator[tuple[int, int]]:
        total = 0
        for row in rows:
            total += row.c0
            yield row.c0, total

    def running(table: pa.Table) -> object:
        values, found, total = table["c0"].to_pylist(), [], 0
        for c0 in values:
            total += c0
            found.append(total)
        return pa.array(values), pa.array(found)

    two = _schema(c0=number, total=number)
    yield Case("map_partition, running sum", _numbers, lambda data: data.map_partition(totals, two), running)

    def sums(table: pa.Table) -> object:
        rows = zip(*_columns(table), strict=True)
        found = [(key, sum(v for _, v in group)) for key, group in groupby(rows, itemgetter(0))]
        return [pa.array(column) for column in zip(*found, strict=True)]

    def total_of(rows: Any) -> Iterator[tuple[int, int]]:
        first = next(rows)
        yield first.k, first.v + sum(row.v for row in rows)

    yield Case(
        "reduce, groups of ten",
        _groups,
        lambda data: data.group_by("k").reduce(total_of, _schema(k=number, v=number)),
        sums,
        share=0.5,
    )

    def sizes(left: Any, right: Any) -> Iterator[tuple[int, int]]:
        yield sum(row.v for row in left), sum(row.v for row in right)

    def pairs(table: pa.Table) -> object:
        groups: dict[int, tuple[list[int], list[int]]] = {}
        for side in (0, 1):
            for key, value in zip(*_columns(table), strict=True):
                groups.setdefault(key, ([], []))[side].append(value)
        found = [(sum(left), sum(right)) for left, right in groups.values()]
        return [pa.array(column) for column in zip(*found, strict=True)]

    yield Case(
        "co_group, ten rows on either side",
        _groups,
        lambda data: data.co_group(data, "k", sizes, _schema(a=number, b=number)),
        pairs,
        share=0.25,
    )

    def doubled(batch: pa.RecordBatch) -> pa.RecordBatch:
        # enough of a loop for the way there and back to be a part of it only
        texts = [value.upper() for value in batch["b"].to_pylist()]
        return pa.record_batch({"a": pc.add(batch["a"], batch["e"]), "b": pa.array(texts)})

    yield Case(
        "map_batches",
        _mixed,
        lambda data: data.map_batches(doubled, _schema(a=number, b=text)),
        lambda table: [doubled(batch) for batch in table.combine_chunks().to_batches()],
    )


def _tree_cpu_seconds() -> float:
    """Return the CPU seconds of this process and all that it has started."""
    own = psutil.Process()
    while True:
        try:
            times = [process.cpu_times() for process in (own, *own.children(recursive=True))]
        except psutil.NoSuchProcess:
            continue  # it has ended in between: its parent has its seconds now
        return sum(each.user + each.system + each.children_user + each.children_system for each in times)


def _measured(run: Callable[[], object]) -> tuple[float, float]:
    """Return the seconds and the CPU seconds of a run."""
    gc.collect()
    before, began = _tree_cpu_seconds(), time.perf_counter()
    run()
    return time.perf_counter() - began, _tree_cpu_seconds() - before


def _in_processes(loop: Callable[[pa.Table], object], table: pa.Table) -> None:
    """Run a loop in as many processes as Drey has slots, each with its part of the table."""
    size = -(-table.num_rows // THREADS)
    pids = []
    for start in range(0, table.num_rows, size):
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                loop(table.slice(start, size))
                code = 0
            finally:
                os._exit(code)
        pids.append(pid)
    if any(os.waitpid(pid, 0)[1] for pid in pids):
        raise SystemExit("the bare loop failed")


def _by_polars(expression: Callable[[Any], object], table: pa.Table) -> Callable[[], object]:
    import warnings

    import polars as pl

    frame: Any = pl.from_arrow(table)

    def run() -> object:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return frame.select(expression(pl))

    return run


def report(rows: int, turns: int, only: str = "") -> str:
    """Run all cases whose names have ``only`` in them; return a table of seconds and ratios."""
    lines = [
        "| function | rows | drey s | loop s | ratio | drey cpu s | loop cpu s | **cpu ratio** | polars cpu s |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    with Environment(config={"parallelism.default": THREADS}) as environment:
        for case in (*_map_cases(), *_other_cases()):
            if only not in case.name:
                continue
            count = int(rows * case.share)
            table = case.table(count)
            result = case.drey(environment.from_arrow(table))
            runs: dict[str, Callable[[], object]] = {
                "drey": result.count,
                "loop": lambda case=case, table=table: _in_processes(case.loop, table),  # type: ignore[misc]
            }
            if case.polars is not None:
                runs["polars"] = _by_polars(case.polars, table)
            result.limit(1).count()
            found: dict[str, list[tuple[float, float]]] = {name: [] for name in runs}
            for _ in range(turns):
                for name, run in runs.items():
                    found[name].append(_measured(run))
            wall = {name: min(seconds for seconds, _ in each) for name, each in found.items()}
            cpu = {name: min(seconds for _, seconds in each) for name, each in found.items()}
            polars = f"{cpu['polars']:.2f}" if "polars" in cpu else ""
            lines.append(
                f"| {case.name} | {count:,} | {wall['drey']:.2f} | {wall['loop']:.2f} "
                f"| {wall['drey'] / wall['loop']:.2f} | {cpu['drey']:.2f} | {cpu['loop']:.2f} "
                f"| {cpu['drey'] / cpu['loop']:.2f} | {polars} |"
            )
    return "\n".join(lines)
