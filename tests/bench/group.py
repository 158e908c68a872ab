"""W4: rows in groups of four on average, count and sum by an integer key, Parquet to Parquet."""

from pathlib import Path

from tests.bench.workload import THREADS, Job

TITLE = "groups of four rows, count and sum by an integer, Parquet to Parquet"
ROWS = 20_000_000


def prepare(folder: Path, rows: int) -> None:
    import duckdb

    folder.mkdir(parents=True)
    with duckdb.connect() as connection:
        connection.execute(f"SET threads = {THREADS}")
        connection.execute(
            f"""COPY (
                SELECT (hash(index) % {max(1, rows // 4)})::BIGINT AS key, (hash(index + 1) % 1000)::BIGINT AS amount,
                       (hash(index + 2) % 1000000)::DOUBLE / 1000 AS weight
                FROM range({rows}) AS numbers(index)
            ) TO '{folder}/rows.parquet' (FORMAT parquet, COMPRESSION snappy)"""
        )


def output_query(output: Path) -> str:
    return f"SELECT key, items, amount::BIGINT FROM read_parquet('{output}/*.parquet')"


def check(output: Path) -> None:
    """Nothing beyond the fingerprint."""


def run_drey(job: Job) -> None:
    from engine import Environment, col, count, sum_

    with Environment(config=job.drey_config(managed_share=0.65)) as env:
        rows = env.read_parquet(str(job.source))
        rows.group_by("key").agg(items=count(), amount=sum_(col("amount"))).write_parquet(str(job.output))
        env.execute("group")


def run_duckdb(job: Job) -> None:
    import duckdb

    connection = duckdb.connect()
    connection.execute(job.duckdb_settings())
    job.output.mkdir()
    connection.execute(
        f"""COPY (
            SELECT key, count(*) AS items, sum(amount) AS amount
            FROM read_parquet('{job.source}/*.parquet')
            GROUP BY key
        ) TO '{job.output}/part-0.parquet' (FORMAT parquet)"""
    )


def run_polars(job: Job) -> None:
    import polars as pl

    job.output.mkdir()
    rows = pl.scan_parquet(job.source / "*.parquet")
    grouped = rows.group_by("key").agg(items=pl.len(), amount=pl.sum("amount"))
    grouped.sink_parquet(job.output / "part-0.parquet", compression="snappy", engine="streaming")
