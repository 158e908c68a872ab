"""W5: rows of a thousand keys' partitions: number, running sum and a sliding average of 100, Parquet to Parquet."""

from pathlib import Path

from tests.bench.workload import THREADS, Job

TITLE = "partitions of a thousand rows: row number, running sum, average of the last 100, Parquet to Parquet"
ROWS = 10_000_000


def prepare(folder: Path, rows: int) -> None:
    import duckdb

    folder.mkdir(parents=True)
    with duckdb.connect() as connection:
        connection.execute(f"SET threads = {THREADS}")
        connection.execute(
            f"""COPY (
                SELECT (hash(index) % {max(1, rows // 1000)})::BIGINT AS key, (index * 7919) % {rows} AS moment,
                       (hash(index + 1) % 1000)::BIGINT AS amount, (hash(index + 2) % 1000000)::DOUBLE / 1000 AS weight
                FROM range({rows}) AS numbers(index)
            ) TO '{folder}/rows.parquet' (FORMAT parquet, COMPRESSION snappy)"""
        )


def output_query(output: Path) -> str:
    # means of thousandths lie half-way between rounded ones now and then, moved a little they do not
    mean = "round(mean + 0.0000001234567, 6) AS mean"
    return f"SELECT key, number::BIGINT, total::BIGINT, {mean} FROM read_parquet('{output}/*.parquet')"


def check(output: Path) -> None:
    """Nothing beyond the fingerprint."""


def run_drey(job: Job) -> None:
    from engine import Environment, avg, row_number, sum_

    with Environment(config=job.drey_config(managed_share=0.65)) as env:
        rows = env.read_parquet(str(job.source))
        rows.select(
            "key",
            row_number().over("key", order_by="moment").alias("number"),
            sum_("amount").over("key", order_by="moment").alias("total"),
            avg("weight").over("key", order_by="moment", rows=(-99, 0)).alias("mean"),
        ).write_parquet(str(job.output))
        env.execute("windows")


def run_duckdb(job: Job) -> None:
    import duckdb

    connection = duckdb.connect()
    connection.execute(job.duckdb_settings())
    job.output.mkdir()
    connection.execute(
        f"""COPY (
            SELECT key, row_number() OVER running AS number, sum(amount) OVER running AS total,
                   avg(weight) OVER (running ROWS BETWEEN 99 PRECEDING AND CURRENT ROW) AS mean
            FROM read_parquet('{job.source}/*.parquet')
            WINDOW running AS (PARTITION BY key ORDER BY moment)
        ) TO '{job.output}/part-0.parquet' (FORMAT parquet)"""
    )


def run_polars(job: Job) -> None:
    import polars as pl

    job.output.mkdir()
    rows = pl.scan_parquet(job.source / "*.parquet").sort("key", "moment")
    windows = rows.select(
        "key",
        number=pl.int_range(1, pl.len() + 1).over("key"),
        total=pl.col("amount").cum_sum().over("key"),
        mean=pl.col("weight").rolling_mean(100, min_samples=1).over("key"),
    )
    windows.sink_parquet(job.output / "part-0.parquet", compression="snappy", engine="streaming")
