"""Closures of edges by WITH RECURSIVE: Drey and DuckDB in turns, sums compared.

    python -m tests.bench closure [--rows 10000000] [--runs 3] [--limit-mb 1000]

    reached   nodes reached from one, over random edges, two of each node: four fifths of the nodes, in some 25 rounds
    pairs     all pairs of nodes with a way between them, over paths of five edges: three times the edges, five rounds

Both with UNION, which takes rows away that are there already.
"""

from functools import partial
from pathlib import Path

import duckdb

from tests.bench import questions
from tests.bench.workload import Job, prepared_input

ROWS = 10_000_000
ENGINES = ["drey", "duckdb"]
_EDGES = {
    "random_edges": "SELECT i // 2 AS a, (hash(i) % ({rows} // 2))::BIGINT AS b FROM range({rows}) AS t(i)",
    "paths": "SELECT i + i // 5 AS a, i + i // 5 + 1 AS b FROM range({rows}) AS t(i)",
}
_QUESTIONS = {
    "reached": """WITH RECURSIVE reached(n) AS
        (SELECT 0::BIGINT UNION SELECT b FROM reached JOIN random_edges ON a = n)
        SELECT count(*) AS rows, sum(n) AS total FROM reached""",
    "pairs": """WITH RECURSIVE pairs(a, b) AS
        (SELECT a, b FROM paths UNION SELECT pairs.a, paths.b FROM pairs JOIN paths ON pairs.b = paths.a)
        SELECT count(*) AS rows, sum(a) AS a, sum(b - a) AS steps FROM pairs""",
}
ASKED = questions.Asked("closure", list(_QUESTIONS))


def run_drey(job: Job) -> None:
    from engine import Environment

    with Environment(config=job.process_size()) as env:
        for name in _EDGES:
            env.register(name, env.read_parquet(job.source / f"{name}.parquet"))
        answers = {name: partial(lambda text: env.sql(text).to_arrow(), text) for name, text in _QUESTIONS.items()}
        questions.ask(job, answers, digest=questions.numbered)


def run_duckdb(job: Job) -> None:
    connection = duckdb.connect()
    connection.execute(job.duckdb_settings())
    for name in _EDGES:
        connection.execute(f"CREATE VIEW {name} AS FROM '{job.source / name}.parquet'")
    answers = {
        name: partial(lambda text: connection.sql(text).to_arrow_table(), text) for name, text in _QUESTIONS.items()
    }
    questions.ask(job, answers, digest=questions.numbered)


def prepare(folder: Path, rows: int) -> None:
    """Write the edges of both graphs into an empty folder."""
    folder.mkdir(parents=True)
    with duckdb.connect() as connection:
        for name, query in _EDGES.items():
            connection.execute(f"COPY ({query.format(rows=rows)}) TO '{folder / name}.parquet'")


def report(rows: int, runs: int, folder: Path, limit_mb: int | None) -> str:
    """Run both engines in turns and return a table; an answer that is not DuckDB's ends the program."""
    source = prepared_input("closure", rows, folder)
    return questions.report(ASKED, source, f"closures of {rows:,} edges", runs, ENGINES, folder, limit_mb)
