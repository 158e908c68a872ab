"""W1: instruments joined with their currencies, 13 of 14 rows with the same key, CSV to CSV."""

from pathlib import Path

from engine.examples import skew_join
from engine.examples.generate_instruments import CURRENCIES, INSTRUMENTS
from engine.examples.generate_instruments import main as generate
from tests.bench.workload import Job

TITLE = "skewed join, CSV to CSV"
ROWS = 14_000_000

_DUCKDB_TYPES = {"string": "VARCHAR", "double": "DOUBLE", "int32": "INTEGER", "int64": "BIGINT"}


def _columns(schema, rename=None):
    pairs = ((rename or {}).get(field.name, (field.name, _DUCKDB_TYPES[str(field.type)])) for field in schema)
    return "{" + ", ".join(f"'{name}': '{kind}'" for name, kind in pairs) + "}"


def prepare(folder: Path, rows: int) -> None:
    generate(["--rows", str(rows), "--out", str(folder)])


def output_query(output: Path) -> str:
    # A null and an empty string are the same here: the peers do not tell them apart in CSV.
    kinds = _columns(INSTRUMENTS, {"CurrencyID": ("CurrencyCode", "VARCHAR")})
    names = ", ".join(
        f"coalesce({name}, '')" if name == "CurrencyCode" or str(INSTRUMENTS.field(name).type) == "string" else name
        for name in skew_join.OUTPUT_COLUMNS
    )
    return f"SELECT {names} FROM read_csv('{output}/*.csv', header=false, quote='\"', escape='\"', columns={kinds})"


def check(output: Path) -> None:
    """Nothing beyond the fingerprint."""


def run_drey(job: Job) -> None:
    skew_join.main(["--input", str(job.source), "--out", str(job.output)])


def run_duckdb(job: Job) -> None:
    import duckdb

    connection = duckdb.connect()
    connection.execute(job.duckdb_settings())
    connection.execute(
        f"""COPY (
            SELECT {", ".join(skew_join.OUTPUT_COLUMNS)}
            FROM read_csv('{job.source}/instruments/*.csv', header=false, columns={_columns(INSTRUMENTS)})
            JOIN (
                SELECT CurrencyID,
                       CASE WHEN coalesce(ISOCode, '') = '' THEN ISOExtended ELSE ISOCode END AS CurrencyCode
                FROM read_csv('{job.source}/currencies.csv', header=false, columns={_columns(CURRENCIES)})
            ) USING (CurrencyID)
        ) TO '{job.output}' (FORMAT csv, HEADER false, PER_THREAD_OUTPUT true)"""
    )


def run_polars(job: Job) -> None:
    import polars as pl

    instruments = pl.scan_csv(job.source / "instruments/*.csv", has_header=False, schema=dict(pl.Schema(INSTRUMENTS)))
    currencies = pl.scan_csv(job.source / "currencies.csv", has_header=False, schema=dict(pl.Schema(CURRENCIES)))
    is_missing = pl.col("ISOCode").is_null() | (pl.col("ISOCode") == "")
    code = pl.when(is_missing).then(pl.col("ISOExtended")).otherwise(pl.col("ISOCode")).alias("CurrencyCode")
    job.output.mkdir()
    joined = instruments.join(currencies.select("CurrencyID", code), on="CurrencyID")
    selected = joined.select(skew_join.OUTPUT_COLUMNS)
    selected.sink_csv(job.output / "part-0.csv", include_header=False, engine="streaming")
