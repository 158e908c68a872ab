"""The main job: instruments joined with their currencies, where 13 in 14 instruments have the same currency.

    bin/flink-run job submit engine/examples/skew_join.py --input DIR --out RESULT
        [--instruments PATH] [--currencies PATH] [--format csv|parquet|records]
        [--planner api|sql] [--join-type auto|normal|broadcast]

``DIR`` holds ``instruments`` and ``currencies`` as ``generate_instruments.py`` and ``spark-export`` write them. With
``--join-type auto`` the optimizer finds by itself that the small side is to be broadcast; ``normal`` is the
repartition hint, ``broadcast`` the broadcast hint. The same join is asked for by methods or, with ``--planner sql``, as
a query, which takes no hint. The result has the format of the input (``records``: Parquet).

Held by: tests/integration/test_skew_join.py
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from drey import DataSet, Environment, JoinHint, col, when
from drey.examples.generate_instruments import CURRENCIES, INSTRUMENTS

HINTS = {
    "auto": JoinHint.OPTIMIZER_CHOOSES,
    "normal": JoinHint.REPARTITION_HASH_SECOND,
    "broadcast": JoinHint.BROADCAST_HASH_SECOND,
}
OUTPUT_COLUMNS = [name if name != "CurrencyID" else "CurrencyCode" for name in INSTRUMENTS.names]
QUERY = """
    SELECT "RIC", "Asset", "AssetClass", "Exchange", "Periodicity", "ContractType", "CallPutOption", "ExpiryDate",
        "StrikePrice", "StrikePriceMultiplier", "LotSize",
        CASE WHEN "ISOCode" IS NULL OR "ISOCode" = '' THEN "ISOExtended" ELSE "ISOCode" END AS "CurrencyCode",
        "AssetState"
    FROM instruments JOIN currencies USING ("CurrencyID")
"""


def read_inputs(env: Environment, options: argparse.Namespace) -> tuple[DataSet, DataSet]:
    """Return instruments and currencies in the chosen format."""
    if options.format == "records":
        return env.read_records(options.instruments), env.read_records(options.currencies)
    if options.format == "parquet":
        return env.read_parquet(options.instruments), env.read_parquet(options.currencies)
    return (
        env.read_csv(options.instruments, schema=INSTRUMENTS),
        env.read_csv(options.currencies, schema=CURRENCIES),
    )


def skew_join(instruments: DataSet, currencies: DataSet, hint: JoinHint) -> DataSet:
    """Replace each instrument's currency id by the currency's code."""
    code = when(col("ISOCode").is_null() | (col("ISOCode") == "")).then(col("ISOExtended")).otherwise(col("ISOCode"))
    codes = currencies.select("CurrencyID", code.alias("CurrencyCode"))
    return instruments.join(codes, on="CurrencyID", hint=hint).select(*OUTPUT_COLUMNS)


def skew_join_in_sql(env: Environment, instruments: DataSet, currencies: DataSet) -> DataSet:
    """Return the result of ``skew_join``, from a query."""
    env.register("instruments", instruments)
    env.register("currencies", currencies)
    return env.sql(QUERY)


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options of the command line with the input paths filled in."""
    parser = argparse.ArgumentParser(prog="skew_join.py", description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--input", type=Path, metavar="DIR", help="folder with instruments and currencies")
    parser.add_argument("--instruments", type=Path, metavar="PATH", help="instead of DIR/instruments")
    parser.add_argument("--currencies", type=Path, metavar="PATH", help="instead of DIR/currencies*")
    parser.add_argument("--out", "--output", type=Path, required=True, metavar="RESULT", help="folder of the result")
    parser.add_argument("--format", choices=("csv", "parquet", "records"), default="csv", help="of input and output")
    parser.add_argument("--planner", choices=("api", "sql"), default="api", help="methods (the default), or a query")
    parser.add_argument("--join-type", choices=tuple(HINTS), default="auto", help="hint for the join (default: none)")
    options = parser.parse_args(arguments)
    if options.input is None and (options.instruments is None or options.currencies is None):
        parser.error("give --input DIR, or both --instruments and --currencies")
    if options.planner == "sql" and options.join_type != "auto":
        parser.error("--planner sql takes no --join-type: the query has no hint")
    suffix = "" if options.format == "records" else f".{options.format}"
    folder: Path = options.input or Path()  # without one both others are given
    options.instruments = options.instruments or folder / "instruments"
    options.currencies = options.currencies or folder / f"currencies{suffix}"
    return options


def main(arguments: Sequence[str] | None = None) -> None:
    """Build the plan and run it."""
    options = parse_arguments(arguments)
    env = Environment()
    inputs = read_inputs(env, options)
    is_query = options.planner == "sql"
    result = skew_join_in_sql(env, *inputs) if is_query else skew_join(*inputs, HINTS[options.join_type])
    if options.format == "csv":
        result.write_csv(str(options.out))
    else:
        result.write_parquet(str(options.out))
    env.execute("skew join")


if __name__ == "__main__":
    main()
