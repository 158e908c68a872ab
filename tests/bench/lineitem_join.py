"""W3: lineitem joined with orders, count and sum by o_orderpriority; the columns of TPC-H at scale factor 5.

The data is generated as dbgen does as far as the query can tell: 8 of 32 order keys are used, an order has 1 to 7
items, both tables are in the order of the key, and there are columns that the query does not read. ROWS is the number
of items; 30 million are scale factor 5.
"""

from pathlib import Path

from tests.bench.workload import THREADS, Job

TITLE = "lineitem ⋈ orders (TPC-H), count and sum by o_orderpriority, Parquet to Parquet"
ROWS = 30_000_000

_ORDERS = """
    SELECT (index // 8) * 32 + index % 8 + 1 AS o_orderkey,
           (hash(index) % 500000)::BIGINT + 1 AS o_custkey,
           (['O', 'F', 'P'])[(hash(index + 1) % 3)::INTEGER + 1] AS o_orderstatus,
           ((hash(index + 2) % 50000000)::DECIMAL(15, 2) / 100)::DECIMAL(15, 2) AS o_totalprice,
           DATE '1992-01-01' + (hash(index + 3) % 2400)::INTEGER AS o_orderdate,
           (['1-URGENT', '2-HIGH', '3-MEDIUM', '4-NOT SPECIFIED', '5-LOW'])[(hash(index + 4) % 5)::INTEGER + 1]
               AS o_orderpriority,
           'Clerk#' || lpad((hash(index + 5) % 5000)::VARCHAR, 9, '0') AS o_clerk
    FROM range({orders}) AS numbers(index)
"""
_LINEITEM = """
    SELECT (index // 8) * 32 + index % 8 + 1 AS l_orderkey,
           (hash(index, number) % 1000000)::BIGINT + 1 AS l_partkey,
           (hash(index, number + 10) % 50000)::BIGINT + 1 AS l_suppkey,
           number AS l_linenumber,
           (hash(index, number + 20) % 50 + 1)::DECIMAL(15, 2) AS l_quantity,
           ((hash(index, number + 30) % 10000000)::DECIMAL(15, 2) / 100 + 900)::DECIMAL(15, 2) AS l_extendedprice,
           ((hash(index, number + 40) % 11)::DECIMAL(15, 2) / 100)::DECIMAL(15, 2) AS l_discount,
           DATE '1992-01-02' + (hash(index, number + 50) % 2500)::INTEGER AS l_shipdate
    FROM (SELECT index, unnest(range(1, (hash(index + 6) % 7)::BIGINT + 2)) AS number
          FROM range({orders}) AS numbers(index))
"""


def prepare(folder: Path, rows: int) -> None:
    import duckdb

    folder.mkdir(parents=True)
    with duckdb.connect() as connection:
        connection.execute(f"SET threads = {THREADS}")
        for name, template in (("orders", _ORDERS), ("lineitem", _LINEITEM)):
            query = template.format(orders=rows // 4)
            connection.execute(f"COPY ({query}) TO '{folder}/{name}.parquet' (FORMAT parquet, COMPRESSION snappy)")


def output_query(output: Path) -> str:
    return f"SELECT o_orderpriority, items, revenue::DECIMAL(38, 2) FROM read_parquet('{output}/*.parquet')"


def check(output: Path) -> None:
    """Nothing beyond the fingerprint."""


def run_drey(job: Job) -> None:
    from engine import Environment, col, count, sum_

    with Environment(config=job.drey_config(managed_share=0.55)) as env:
        orders = env.read_parquet(str(job.source / "orders.parquet")).select("o_orderkey", "o_orderpriority")
        lineitem = env.read_parquet(str(job.source / "lineitem.parquet")).select("l_orderkey", "l_extendedprice")
        joined = lineitem.join(orders, left_on="l_orderkey", right_on="o_orderkey")
        grouped = joined.group_by("o_orderpriority").agg(items=count(), revenue=sum_(col("l_extendedprice")))
        grouped.write_parquet(str(job.output))
        env.execute("lineitem join")


def run_duckdb(job: Job) -> None:
    import duckdb

    connection = duckdb.connect()
    connection.execute(job.duckdb_settings())
    job.output.mkdir()
    connection.execute(
        f"""COPY (
            SELECT o_orderpriority, count(*) AS items, sum(l_extendedprice) AS revenue
            FROM read_parquet('{job.source}/lineitem.parquet')
            JOIN read_parquet('{job.source}/orders.parquet') ON l_orderkey = o_orderkey
            GROUP BY o_orderpriority
        ) TO '{job.output}/part-0.parquet' (FORMAT parquet)"""
    )


def run_polars(job: Job) -> None:
    import polars as pl

    job.output.mkdir()
    orders = pl.scan_parquet(job.source / "orders.parquet")
    lineitem = pl.scan_parquet(job.source / "lineitem.parquet")
    joined = lineitem.join(orders, left_on="l_orderkey", right_on="o_orderkey")
    grouped = joined.group_by("o_orderpriority").agg(items=pl.len(), revenue=pl.sum("l_extendedprice"))
    grouped.sink_parquet(job.output / "part-0.parquet", compression="snappy", engine="streaming")
