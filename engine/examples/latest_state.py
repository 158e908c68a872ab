"""The latest state from a log of changes: of the versions of each row, the last one counts.

    bin/flink-run engine/examples/latest_state.py

``drop_duplicates`` with an order keeps one row a key; rows whose last change was a deletion are left out after that.

Held by: tests/integration/test_examples.py
"""

import pyarrow as pa

from drey import DataSet, Environment, col

CHANGES = [
    {"customer": 1, "version": 1, "change": "insert", "city": "Oslo"},
    {"customer": 2, "version": 1, "change": "insert", "city": "Rome"},
    {"customer": 1, "version": 2, "change": "update", "city": "Bergen"},
    {"customer": 3, "version": 1, "change": "insert", "city": "Lima"},
    {"customer": 2, "version": 2, "change": "delete", "city": None},
    {"customer": 3, "version": 2, "change": "update", "city": "Cusco"},
    {"customer": 3, "version": 2, "change": "update", "city": "Cusco"},
]


def latest(changes: DataSet) -> DataSet:
    """Return the customers that there are, as their last change left them."""
    last = changes.drop_duplicates("customer", keep="last", order_by="version")
    return last.filter(col("change") != "delete").drop("change").sort("customer")


def main() -> None:
    """Print them."""
    with Environment() as env:
        latest(env.from_arrow(pa.Table.from_pylist(CHANGES))).show()


if __name__ == "__main__":
    main()
