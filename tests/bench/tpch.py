"""The 22 queries of TPC-H: engines in turns, each query's answer compared with DuckDB's.

    python -m tests.bench tpch [--scale 1] [--runs 3] [--limit-mb 1000] [--engines drey_sql,duckdb,polars,datafusion]
                               [--rounds 2]

``drey`` asks through the API, ``drey_sql`` in SQL, with the texts that DuckDB and DataFusion are given. With
``--limit-mb`` Drey is given it as the size of its process and DuckDB as its memory limit, and nothing else; the others
have no such setting that they keep to. DataFusion is installed by hand; its answers are not compared, since its
averages of decimals are decimals of six digits.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow as pa

from tests.bench import questions
from tests.bench.workload import THREADS, Job
from tests.tpch.tables import generate

SCALE = 1.0
_NUMBERS = range(1, 23)
ASKED = questions.Asked("tpch", [str(number) for number in _NUMBERS], prefix="Q", unlike=("datafusion",))


def run_drey(job: Job) -> None:
    from engine import Environment
    from tests.tpch.queries import QUERIES, read_tables

    with Environment(config=job.process_size()) as env:
        tables = read_tables(env, job.source)
        _ask(job, lambda number: QUERIES[number](tables).to_arrow())


def run_drey_sql(job: Job) -> None:
    from engine import Environment
    from tests.tpch.sql_queries import QUERIES

    with Environment(config=job.process_size()) as env:
        for path in sorted(job.source.glob("*.parquet")):
            env.register(path.stem, env.read_parquet(path))
        _ask(job, lambda number: env.sql(QUERIES[number]).to_arrow())


def run_duckdb(job: Job) -> None:
    import duckdb

    from tests.tpch.sql_queries import QUERIES, views

    connection = duckdb.connect()
    connection.execute(job.duckdb_settings())
    connection.execute(views(job.source))
    _ask(job, lambda number: connection.sql(QUERIES[number]).to_arrow_table())


def run_polars(job: Job) -> None:
    from tests.tpch.polars_queries import QUERIES, read_tables

    tables = read_tables(job.source)
    _ask(job, lambda number: QUERIES[number](tables).collect(engine="streaming").to_arrow())


def run_datafusion(job: Job) -> None:
    import datafusion

    from tests.tpch.sql_queries import QUERIES

    context = datafusion.SessionContext(datafusion.SessionConfig().with_target_partitions(THREADS))
    for path in sorted(job.source.glob("*.parquet")):
        context.register_parquet(path.stem, str(path))
    _ask(job, lambda number: context.sql(QUERIES[number]).to_arrow_table())


def _ask(job: Job, answer: Callable[[int], pa.Table]) -> None:
    questions.ask(job, {str(number): partial(answer, number) for number in _NUMBERS}, digest=questions.numbered)


def tables_of(scale: float, folder: Path) -> Path:
    """Return the folder of the tables, made unless it is there already."""
    source = folder / f"tpch-sf{scale:g}"
    if not source.exists():
        unfinished = source.with_suffix(".unfinished")
        generate(unfinished, scale)
        unfinished.rename(source)
    return source


def report(scale: float, runs: int, engines: list[str], folder: Path, limit_mb: int | None, rounds: int) -> str:
    """Run all engines in turns and return a table; an answer that is not DuckDB's ends the program."""
    about = f"TPC-H at scale factor {scale:g}"
    return questions.report(ASKED, tables_of(scale, folder), about, runs, engines, folder, limit_mb, rounds)
