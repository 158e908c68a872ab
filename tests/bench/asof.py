"""W6: trades, each with the last quote of its symbol before it: an as-of join, Parquet to Parquet.

Both files are in the order of time, of which Polars is told. Times of quotes are unique, so that all engines mean the
same one. There are five quotes for each trade, and symbols of which a few have most of the rows.
"""

from pathlib import Path

from tests.bench.workload import THREADS, Job

TITLE = "as-of join of trades with five times as many quotes by one of a thousand symbols, Parquet to Parquet"
ROWS = 1_000_000
QUOTES_PER_TRADE = 5


def prepare(folder: Path, rows: int) -> None:
    import duckdb

    quotes = QUOTES_PER_TRADE * rows
    for name, count, number in (("trades", rows, "price"), ("quotes", quotes, "bid")):
        (folder / name).mkdir(parents=True)
        # of a share of 1 / n the square is small for most: few symbols have many rows
        draw = f"hash(index + {count}) % 1000000 / 1000000"
        instant = "index * 5 + 2" if name == "quotes" else f"hash(index) % {5 * quotes}"
        with duckdb.connect() as connection:
            connection.execute(f"SET threads = {THREADS}")
            connection.execute(
                f"""COPY (
                    SELECT make_timestamp(1600000000000000 + ({instant})::BIGINT * 1000) AS moment,
                           'S' || (floor(1000 * pow({draw}, 3)))::INTEGER AS symbol,
                           (hash(index + 7) % 100000)::DOUBLE / 100 AS {number}, index AS {name[:-1]}
                    FROM range({count}) AS numbers(index) ORDER BY moment
                ) TO '{folder}/{name}/rows.parquet' (FORMAT parquet, COMPRESSION snappy)"""
            )


def output_query(output: Path) -> str:
    return f"SELECT trade, symbol, price, bid, quote FROM read_parquet('{output}/*.parquet')"


def check(output: Path) -> None:
    """Nothing beyond the fingerprint."""


def run_drey(job: Job) -> None:
    from engine import Environment

    with Environment(config=job.drey_config(managed_share=0.65)) as env:
        trades, quotes = (env.read_parquet(str(job.source / name)) for name in ("trades", "quotes"))
        trades.asof_join(quotes, on="moment", by="symbol").write_parquet(str(job.output))
        env.execute("as-of join")


def run_duckdb(job: Job) -> None:
    import duckdb

    connection = duckdb.connect()
    connection.execute(job.duckdb_settings())
    job.output.mkdir()
    connection.execute(
        f"""COPY (
            SELECT trades.*, bid, quote
            FROM read_parquet('{job.source}/trades/*.parquet') AS trades
            ASOF LEFT JOIN read_parquet('{job.source}/quotes/*.parquet') AS quotes
            ON trades.symbol = quotes.symbol AND trades.moment >= quotes.moment
        ) TO '{job.output}/part-0.parquet' (FORMAT parquet)"""
    )


def run_polars(job: Job) -> None:
    import polars as pl

    job.output.mkdir()
    trades, quotes = (
        pl.scan_parquet(job.source / name / "*.parquet").set_sorted("moment") for name in ("trades", "quotes")
    )
    joined = trades.join_asof(quotes, on="moment", by="symbol", check_sortedness=False)
    joined.sink_parquet(job.output / "part-0.parquet", compression="snappy", engine="streaming")
