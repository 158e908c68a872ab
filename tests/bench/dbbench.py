"""Groups and joins in the shapes of db-benchmark: Drey, DuckDB and Polars in turns, 10 M rows by default.

Groups by texts and integers of few and of many values, by two columns and by six; joins of 10 M rows with tables of ten
rows, of ten thousand, and of as many as it has, by integers and by a text, all columns taken. As there, answers are
compared by their number of rows and the sums of their columns of numbers. Regressions are left out.

    python -m tests.bench dbbench [--rows 10000000] [--runs 3] [--limit-mb 1000]

Source: the groupby and join tasks of https://github.com/duckdblabs/db-benchmark; values are hashes of row numbers.
"""

from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tests.bench import questions
from tests.bench.workload import THREADS, Job

ROWS = 10_000_000
_TABLES = ("groups", "left", "small", "medium", "big")
#: name: keys, aggregates
_GROUPS = {
    "sum by text of 100": (["id1"], {"v1": ("sum", "v1")}),
    "sum by two texts of 100": (["id1", "id2"], {"v1": ("sum", "v1")}),
    "sum, mean by text of many": (["id3"], {"v1": ("sum", "v1"), "v3": ("avg", "v3")}),
    "means by integer of 100": (["id4"], {name: ("avg", name) for name in ("v1", "v2", "v3")}),
    "sums by integer of many": (["id6"], {name: ("sum", name) for name in ("v1", "v2", "v3")}),
    "max, min by text of many": (["id3"], {"v1": ("max", "v1"), "v2": ("min", "v2")}),
    "median by integer of many": (["id6"], {"v3": ("median", "v3")}),
    "median, deviation by two integers": (["id4", "id5"], {"m": ("median", "v3"), "d": ("stddev", "v3")}),
    "sum, count by six": ([f"id{number}" for number in range(1, 7)], {"v3": ("sum", "v3"), "count": ("count", "v1")}),
}
#: name: table, key, how
_JOINS = {
    "join small by integer": ("small", "id1", "inner"),
    "join medium by integer": ("medium", "id2", "inner"),
    "join medium by integer, left": ("medium", "id2", "left"),
    "join medium by text": ("medium", "id5", "inner"),
    "join big by integer": ("big", "id3", "inner"),
}
ASKED = questions.Asked("dbbench", [*_GROUPS, *_JOINS])


def run_drey(job: Job) -> None:
    from engine import Environment, avg, col, count, max_, median, min_, stddev, sum_

    functions = {"sum": sum_, "avg": avg, "max": max_, "min": min_, "count": count, "median": median, "stddev": stddev}
    config = {} if job.limit_mb is None else {"taskmanager.memory.process.size": f"{job.limit_mb}mb"}

    def group(keys: list[str], aggregates: dict[str, tuple[str, str]]) -> pa.Table:
        calls = {name: functions[function](col(column)) for name, (function, column) in aggregates.items()}
        return tables["groups"].group_by(*keys).agg(**calls).to_arrow()

    def join(name: str, key: str, how: str) -> pa.Table:
        names = {column: column if column == key else f"r_{column}" for column in _columns_of(name)}
        right = tables[name].select(*(col(column).alias(alias) for column, alias in names.items()))
        return tables["left"].join(right, on=key, how=how).to_arrow()

    with Environment(config=config) as env:
        tables = {name: env.read_parquet(str(job.source / f"{name}.parquet")) for name in _TABLES}
        _ask(job, group, join)


def run_duckdb(job: Job) -> None:
    import duckdb

    connection = duckdb.connect()
    connection.execute(job.duckdb_settings())
    for name in _TABLES:
        connection.execute(f"CREATE VIEW \"{name}\" AS SELECT * FROM read_parquet('{job.source}/{name}.parquet')")

    def group(keys: list[str], aggregates: dict[str, tuple[str, str]]) -> pa.Table:
        calls = ", ".join(f"{function}({column}) AS {name}" for name, (function, column) in aggregates.items())
        listed = ", ".join(keys)
        return connection.sql(f"SELECT {listed}, {calls} FROM groups GROUP BY {listed}").to_arrow_table()

    def join(name: str, key: str, how: str) -> pa.Table:
        taken = ", ".join(f"r.{column} AS r_{column}" for column in _columns_of(name) if column != key)
        return connection.sql(f'SELECT l.*, {taken} FROM "left" l {how} JOIN {name} r USING ({key})').to_arrow_table()

    _ask(job, group, join)


def run_polars(job: Job) -> None:
    import polars as pl

    tables = {name: pl.scan_parquet(job.source / f"{name}.parquet") for name in _TABLES}
    functions = {name: name for name in ("sum", "max", "min", "count", "median")} | {"avg": "mean", "stddev": "std"}

    def group(keys: list[str], aggregates: dict[str, tuple[str, str]]) -> pa.Table:
        calls = [
            getattr(pl.col(column), functions[function])().alias(name)
            for name, (function, column) in aggregates.items()
        ]
        return tables["groups"].group_by(*keys).agg(*calls).collect(engine="streaming").to_arrow()

    def join(name: str, key: str, how: Any) -> pa.Table:
        right = tables[name].select(
            pl.col(column).alias(column if column == key else f"r_{column}") for column in _columns_of(name)
        )
        return tables["left"].join(right, on=key, how=how).collect(engine="streaming").to_arrow()

    _ask(job, group, join)


def _columns_of(name: str) -> list[str]:
    count = {"small": 1, "medium": 2, "big": 3}[name]
    numbers = range(1, count + 1)
    return [*(f"id{number}" for number in numbers), *(f"id{number + 3}" for number in numbers), "v2"]


def _ask(job: Job, group: Any, join: Any) -> None:
    answers = {name: partial(group, *asked) for name, asked in _GROUPS.items()}
    answers |= {name: partial(join, *asked) for name, asked in _JOINS.items()}
    questions.ask(job, answers, checksum)


def checksum(table: pa.Table) -> pa.Table:
    """Return one row: how many rows there are, and the sums of the columns of numbers as floats."""
    sums: dict[str, list[float]] = {"rows": [table.num_rows]}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_integer(column.type) or pa.types.is_floating(column.type) or pa.types.is_decimal(column.type):
            sums[name] = [pc.sum(column.cast(pa.float64())).as_py() or 0.0]
    return pa.table(sums)


def prepare(folder: Path, rows: int) -> None:
    """Write the tables into an empty folder."""
    import duckdb

    folder.mkdir(parents=True)
    many, few = max(rows // 100, 1), 100
    domains = [max(rows // 1_000_000, 1), max(rows // 1000, 1), rows]
    with duckdb.connect() as connection:
        connection.execute(f"SET threads = {THREADS}")

        def number(seed: int, domain: int) -> str:
            return f"(hash(i * 16 + {seed}) % {domain})::INT + 1"

        values = f"{number(7, 5)} AS v1, {number(8, 15)} AS v2, (hash(i * 16 + 9) % 100000000)::DOUBLE / 1e6 AS v3"
        texts = f"'id' || lpad(({number(1, few)})::VARCHAR, 3, '0') AS id1"
        texts += f", 'id' || lpad(({number(2, few)})::VARCHAR, 3, '0') AS id2"
        texts += f", 'id' || lpad(({number(3, many)})::VARCHAR, 10, '0') AS id3"
        integers = f"{number(4, few)} AS id4, {number(5, few)} AS id5, {number(6, many)} AS id6"
        _write(connection, folder, "groups", f"SELECT {texts}, {integers}, {values} FROM range({rows}) t(i)")
        sizes = {"left": (3, rows), "small": (1, domains[0]), "medium": (2, domains[1]), "big": (3, rows)}
        for name, (count, size) in sizes.items():
            # the left table's keys are random; those of a right one are all different, and a tenth of them is missing
            keys = [
                number(key, domain) if name == "left" else f"((i * 7919 + {key}) % {domain} + {domain // 10} + 1)::INT"
                for key, domain in enumerate(domains[:count])
            ]
            listed = ", ".join(f"{text} AS id{key + 1}" for key, text in enumerate(keys))
            listed += "".join(f", 'id' || ({text})::VARCHAR AS id{key + 4}" for key, text in enumerate(keys))
            value = f"(hash(i * 16 + 11) % 100000000)::DOUBLE / 1e6 AS v{1 if name == 'left' else 2}"
            _write(connection, folder, name, f"SELECT {listed}, {value} FROM range({size}) t(i)")


def _write(connection: Any, folder: Path, name: str, query: str) -> None:
    connection.execute(f"COPY ({query}) TO '{folder}/{name}.parquet' (FORMAT parquet)")


def report(rows: int, runs: int, engines: list[str], folder: Path, limit_mb: int | None) -> str:
    """Run all engines in turns and return a table; an answer that is not DuckDB's ends the program."""
    source = folder / f"dbbench-{rows}"
    if not source.exists():
        unfinished = source.with_suffix(".unfinished")
        prepare(unfinished, rows)
        unfinished.rename(source)
    return questions.report(ASKED, source, f"groups and joins of {rows:,} rows", runs, engines, folder, limit_mb)
