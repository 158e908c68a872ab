"""An as-of join: what was the price asked when a trade was made, and how much better or worse was the trade.

    bin/flink-run engine/examples/trades_and_quotes.py

Each trade gets the last quote of its symbol that is not later, and not older than a second. Both sides are sorted by
symbol and time and read once, whatever their sizes.

Held by: tests/integration/test_examples.py
"""

import random
from datetime import datetime, timedelta

import pyarrow as pa

from drey import DataSet, Environment, avg, col, count

SYMBOLS = ("ABC", "KLM", "XYZ")
OPENING = datetime(2026, 3, 2, 9)


def quotes(count: int = 5_000) -> pa.Table:
    """Return quotes of three symbols, some tenths of a second apart."""
    chance = random.Random(2)
    moments = sorted(OPENING + timedelta(milliseconds=chance.randrange(1_000_000)) for _ in range(count))
    symbols = [chance.choice(SYMBOLS) for _ in moments]
    asked = [round(100 + 10 * SYMBOLS.index(symbol) + chance.gauss(0, 0.5), 2) for symbol in symbols]
    return pa.table({"at": moments, "symbol": symbols, "asked": asked})


def trades(count: int = 1_000) -> pa.Table:
    """Return trades within the same time."""
    chance = random.Random(3)
    moments = [OPENING + timedelta(milliseconds=chance.randrange(1_000_000)) for _ in range(count)]
    symbols = [chance.choice(SYMBOLS) for _ in moments]
    paid = [round(100 + 10 * SYMBOLS.index(symbol) + chance.gauss(0, 0.6), 2) for symbol in symbols]
    return pa.table({"at": moments, "symbol": symbols, "paid": paid})


def slippage(trades: DataSet, quotes: DataSet) -> DataSet:
    """Return the trades of each symbol, those without a fresh quote, and the mean of paid less asked."""
    priced = trades.asof_join(quotes, on="at", by="symbol", tolerance=timedelta(seconds=1))
    compared = priced.with_columns(slip=col("paid") - col("asked"))
    found = compared.group_by("symbol").agg(trades=count(), quoted=count("slip"), slippage=avg("slip"))
    return found.with_columns(slippage=col("slippage").round(4)).sort("symbol")


def main() -> None:
    """Print them."""
    with Environment() as env:
        slippage(env.from_arrow(trades()), env.from_arrow(quotes())).show()


if __name__ == "__main__":
    main()
