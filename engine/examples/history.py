"""A slowly changing dimension: each version of a row with the time from which and until which it was valid.

    bin/flink-run engine/examples/history.py

Orders of the past meet the price that was valid then: a join by product and a condition on the time.

Held by: tests/integration/test_examples.py
"""

from datetime import date

import pyarrow as pa

from drey import DataSet, Environment, col, lag, lead

PRICES = pa.table(
    {
        "product": ["pen", "pen", "pen", "ink", "ink"],
        "since": [date(2026, 1, 1), date(2026, 2, 1), date(2026, 3, 1), date(2026, 1, 1), date(2026, 2, 15)],
        "price": [2.0, 2.0, 2.5, 7.0, 6.5],
    }
)
ORDERS = pa.table(
    {
        "order": [1, 2, 3, 4],
        "product": ["pen", "ink", "pen", "ink"],
        "day": [date(2026, 2, 20), date(2026, 2, 14), date(2026, 3, 5), date(2026, 2, 15)],
    }
)
FOREVER = date(9999, 12, 31)


def history(prices: DataSet) -> DataSet:
    """Return the prices with the day until which each was valid, itself not included; equal ones in a row are one."""
    before = lag("price").over("product", order_by="since")
    changes = prices.filter(before.is_null() | (before != col("price")))
    until = lead("since", default=FOREVER).over("product", order_by="since")
    return changes.with_columns(until=until)


def priced(orders: DataSet, prices: DataSet) -> DataSet:
    """Return the orders with the price of their day."""
    was_valid = (col("day") >= col("since")) & (col("day") < col("until"))
    joined = orders.join(history(prices), on="product", condition=was_valid)
    return joined.select("order", "product", "day", "price").sort("order")


def main() -> None:
    """Print them."""
    with Environment() as env:
        priced(env.from_arrow(ORDERS), env.from_arrow(PRICES)).show()


if __name__ == "__main__":
    main()
