"""The 103 statements of TPC-DS, as SQL: Drey and DuckDB in turns, each answer compared with DuckDB's.

    python -m tests.bench tpcds [--scale 1] [--runs 3] [--limit-mb 1000] [--rounds 1]

With ``--limit-mb`` Drey is given it as the size of its process and DuckDB as its memory limit, and nothing else.
"""

from functools import partial
from pathlib import Path

from tests.bench import questions
from tests.bench.workload import Job
from tests.tpcds.queries import QUERIES, for_duckdb
from tests.tpcds.tables import generate, views

ENGINES = ["drey", "duckdb"]
ASKED = questions.Asked("tpcds", list(QUERIES), prefix="Q")


def run_drey(job: Job) -> None:
    from engine import Environment

    with Environment(config=job.process_size()) as env:
        for path in sorted(job.source.glob("*.parquet")):
            env.register(path.stem, env.read_parquet(path))
        answers = {name: partial(lambda text: env.sql(text).to_arrow(), text) for name, text in QUERIES.items()}
        questions.ask(job, answers, digest=questions.numbered)


def run_duckdb(job: Job) -> None:
    import duckdb

    connection = duckdb.connect()
    connection.execute(job.duckdb_settings())
    connection.execute(f"{views(job.source)} SET default_null_order = 'nulls_last_on_asc_first_on_desc'")
    texts = {name: for_duckdb(name) for name in QUERIES}
    answers = {name: partial(lambda text: connection.sql(text).to_arrow_table(), text) for name, text in texts.items()}
    questions.ask(job, answers, digest=questions.numbered)


def tables_of(scale: float, folder: Path) -> Path:
    """Return the folder of the tables, made unless it is there already."""
    source = folder / f"tpcds-sf{scale:g}"
    if not source.exists():
        unfinished = source.with_suffix(".unfinished")
        generate(unfinished, scale)
        unfinished.rename(source)
    return source


def report(scale: float, runs: int, folder: Path, limit_mb: int | None, rounds: int) -> str:
    """Run both engines in turns and return a table; an answer that is not DuckDB's ends the program."""
    source = tables_of(scale, folder)
    return questions.report(ASKED, source, f"TPC-DS at scale factor {scale:g}", runs, ENGINES, folder, limit_mb, rounds)
