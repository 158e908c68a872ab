"""Scans and aggregates over a wide table, as ClickBench asks them: Drey, DuckDB and Polars in turns, 2 M rows.

A hundred columns of visits to pages: addresses and titles, mostly empty phrases and phone models, small integers of all
kinds, days and moments. Questions are SQL, the same text for all; each sorts by something that no two rows share, so
that the first ten are the same ones.

    python -m tests.bench wide [--rows 2000000] [--runs 3] [--limit-mb 1000]

Source: the table and the queries of https://github.com/ClickHouse/ClickBench; values are hashes of row numbers.
"""

from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.bench import questions
from tests.bench.workload import THREADS, Job

ROWS = 2_000_000
_SUMS = ", ".join(f"sum(width + {number}) AS s{number}" for number in range(30))
_GOOGLE = "url LIKE '%google%'"
#: name: SQL over hits
_QUESTIONS = {
    "count": "SELECT count(*) AS n FROM hits",
    "count, not 0": "SELECT count(*) AS n FROM hits WHERE engine <> 0",
    "sum, count, avg": "SELECT sum(engine) AS a, count(*) AS n, avg(width) AS b FROM hits",
    "min, max of days": "SELECT min(day) AS a, max(day) AS b FROM hits",
    "distinct users": "SELECT count(DISTINCT user_id) AS n FROM hits",
    "distinct phrases": "SELECT count(DISTINCT phrase) AS n FROM hits",
    "by engine": "SELECT engine, count(*) AS n FROM hits WHERE engine <> 0 GROUP BY engine ORDER BY n DESC, engine",
    "distinct users by region": "SELECT region, count(DISTINCT user_id) AS n FROM hits GROUP BY region"
    " ORDER BY n DESC, region LIMIT 10",
    "by region, four ways": "SELECT region, sum(engine) AS a, count(*) AS n, avg(width) AS b,"
    " count(DISTINCT user_id) AS u FROM hits GROUP BY region ORDER BY n DESC, region LIMIT 10",
    "by phone": "SELECT phone, count(DISTINCT user_id) AS n FROM hits WHERE phone <> '' GROUP BY phone"
    " ORDER BY n DESC, phone LIMIT 10",
    "by phrase": "SELECT phrase, count(*) AS n FROM hits WHERE phrase <> '' GROUP BY phrase"
    " ORDER BY n DESC, phrase LIMIT 10",
    "by user": "SELECT user_id, count(*) AS n FROM hits GROUP BY user_id ORDER BY n DESC, user_id LIMIT 10",
    "by user, phrase": "SELECT user_id, phrase, count(*) AS n FROM hits GROUP BY user_id, phrase"
    " ORDER BY n DESC, user_id, phrase LIMIT 10",
    "one user": "SELECT user_id FROM hits WHERE user_id = 435090932899",
    "contains": f"SELECT count(*) AS n FROM hits WHERE {_GOOGLE}",
    "contains, by phrase": f"SELECT phrase, min(url) AS a, count(*) AS n FROM hits WHERE {_GOOGLE} AND phrase <> ''"
    " GROUP BY phrase ORDER BY n DESC, phrase LIMIT 10",
    "contains, rows": f"SELECT * FROM hits WHERE {_GOOGLE} ORDER BY moment, watch_id LIMIT 10",
    "first phrases": "SELECT phrase, moment FROM hits WHERE phrase <> '' ORDER BY moment, phrase LIMIT 10",
    "thirty sums": f"SELECT {_SUMS} FROM hits",
    "by url": "SELECT url, count(*) AS n FROM hits GROUP BY url ORDER BY n DESC, url LIMIT 10",
    "one counter, by url": "SELECT url, count(*) AS n FROM hits WHERE counter = 62 AND day >= DATE '2013-07-10'"
    " AND refresh = 0 AND url <> '' GROUP BY url ORDER BY n DESC, url LIMIT 10",
    "by ip, agent": "SELECT ip, agent, count(*) AS n, sum(refresh) AS a, avg(width) AS b FROM hits WHERE phrase <> ''"
    " GROUP BY ip, agent ORDER BY n DESC, ip, agent LIMIT 10",
}
ASKED = questions.Asked("wide", list(_QUESTIONS))


def run_drey(job: Job) -> None:
    from engine import Environment

    with Environment(config=job.process_size()) as env:
        env.register("hits", env.read_parquet(str(job.source / "hits.parquet")))
        questions.ask(job, {name: partial(_by_drey, env, query) for name, query in _QUESTIONS.items()}, digest)


def _by_drey(env: Any, query: str) -> pa.Table:
    return env.sql(query).to_arrow()


def run_duckdb(job: Job) -> None:
    import duckdb

    connection = duckdb.connect()
    connection.execute(job.duckdb_settings())
    connection.execute(f"CREATE VIEW hits AS SELECT * FROM read_parquet('{job.source}/hits.parquet')")

    def answer(query: str) -> pa.Table:
        return connection.sql(query).to_arrow_table()

    questions.ask(job, {name: partial(answer, query) for name, query in _QUESTIONS.items()}, digest)


def run_polars(job: Job) -> None:
    import polars as pl

    tables = pl.SQLContext(hits=pl.scan_parquet(job.source / "hits.parquet"))

    def answer(query: str) -> pa.Table:
        return tables.execute(query).collect(engine="streaming").to_arrow()

    questions.ask(job, {name: partial(answer, query) for name, query in _QUESTIONS.items()}, digest)


def digest(table: pa.Table) -> pa.Table:
    """Return an answer as it is: none has many rows."""
    return table


def prepare(folder: Path, rows: int) -> None:
    """Write the table into an empty folder."""
    import duckdb

    folder.mkdir(parents=True)
    with duckdb.connect() as connection:
        connection.execute(f"SET threads = {THREADS}")

        def number(seed: int, domain: int) -> str:
            return f"(hash(i * 128 + {seed}) % {domain})"

        def rare(seed: int, share: int, value: str, other: str) -> str:
            return f"CASE WHEN {number(seed, share)} = 0 THEN {value} ELSE {other} END"

        def texts(seed: int, share: int, text: str, domain: int) -> str:
            return rare(seed, share, f"'{text}' || {number(seed + 1, domain)}", "''")

        users, skewed = max(rows // 12, 1), f"(({number(1, 1000)} * {number(2, 1000)}) // 1000)"
        sites = "['google.com', 'example.org', 'shop.net', 'news.info', 'auto.biz']"
        site = f"'http://' || {sites}[1 + ({number(3, 97)} % 5)::INT]"
        columns = [
            "(hash(i) >> 2)::BIGINT AS watch_id",
            f"DATE '2013-07-01' + {number(4, 31)}::INT AS day",
            f"TIMESTAMP '2013-07-01' + INTERVAL 1 SECOND * {number(5, 31 * 86400)}::BIGINT AS moment",
            f"(435090932899 + {number(6, users)} * 7919)::BIGINT AS user_id",
            f"{skewed}::INT AS region",
            f"({skewed} * 7 % 5000)::INT AS counter",
            f"({rare(7, 30, number(8, 20), '0')})::SMALLINT AS engine",
            f"(1000 + {number(9, 30)} * 50)::SMALLINT AS width",
            f"{rare(10, 10, '1', '0')}::SMALLINT AS refresh",
            f"({number(11, max(rows // 8, 1))})::INT AS ip",
            f"({number(12, 80)})::SMALLINT AS agent",
            f"{site} || '/path/' || {number(13, max(rows // 10, 1))} || '/page.html?id=' || {number(14, 50)} AS url",
            f"'A title of the page number ' || {number(13, max(rows // 10, 1))} AS title",
            f"{texts(15, 3, 'http://search.org/?q=', 99999)} AS referer",
            f"{texts(17, 8, 'a phrase of words ', max(rows // 40, 1))} AS phrase",
            f"{texts(19, 12, 'phone ', 90)} AS phone",
        ]
        columns += [f"({number(21 + place, 2 + place * place)})::SMALLINT AS small_{place}" for place in range(40)]
        columns += [f"({number(61 + place, 10 ** (place % 9 + 1))})::INT AS number_{place}" for place in range(24)]
        columns += [f"{texts(85 + place, 20, 'text ', 500)} AS text_{place}" for place in range(20)]
        listed = ", ".join(columns)
        query = f"SELECT {listed} FROM range({rows}) t(i)"
        connection.execute(f"COPY ({query}) TO '{folder}/hits.parquet' (FORMAT parquet, COMPRESSION snappy)")


def table_of(rows: int, folder: Path) -> Path:
    """Return the folder of the table, made unless it is there already."""
    source = folder / f"wide-{rows}"
    if not source.exists():
        unfinished = source.with_suffix(".unfinished")
        prepare(unfinished, rows)
        unfinished.rename(source)
    return source


def report(rows: int, runs: int, engines: list[str], folder: Path, limit_mb: int | None) -> str:
    """Run all engines in turns and return a table; an answer that is not DuckDB's ends the program."""
    source = table_of(rows, folder)
    about = f"scans and aggregates over a hundred columns, {rows:,} rows"
    return questions.report(ASKED, source, about, runs, engines, folder, limit_mb)
