"""The best of each group: the three products of each category that sold most.

    bin/flink-run engine/examples/top_products.py

A filter on a row number keeps three rows a category while rows come, not all rows until the end: ``explain`` shows it.

Held by: tests/integration/test_examples.py
"""

import random

import pyarrow as pa

from drey import DataSet, Environment, col, row_number, sum_

CATEGORIES = ("books", "games", "tools")


def sales(count: int = 10_000) -> pa.Table:
    """Return sales of fifty products in each category."""
    chance = random.Random(1)
    categories = [chance.choice(CATEGORIES) for _ in range(count)]
    products = [f"{category}-{int(50 * chance.random() ** 2):02}" for category in categories]
    prices = [round(chance.uniform(1, 100), 2) for _ in range(count)]
    return pa.table({"category": categories, "product": products, "price": prices})


def top_products(data: DataSet, places: int = 3) -> DataSet:
    """Return the products of each category that earned most, the best first."""
    earned = data.group_by("category", "product").agg(earned=sum_("price").round(2))
    place = row_number().over("category", order_by="earned", descending=True)
    return earned.with_columns(place=place).filter(col("place") <= places).sort(["category", "place"])


def main() -> None:
    """Print them."""
    with Environment() as env:
        top_products(env.from_arrow(sales())).show()


if __name__ == "__main__":
    main()
