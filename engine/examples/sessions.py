"""Sessions: visits of a user that are less than half an hour apart belong together.

    bin/flink-run engine/examples/sessions.py

A visit begins a session where the one before it is too long ago, or there is none. The running number of beginnings
numbers the sessions of a user. Both are window functions over the same order, so rows are sorted once.

Held by: tests/integration/test_examples.py
"""

from datetime import datetime, timedelta

import pyarrow as pa

from drey import DataSet, Environment, col, count, lag, max_, min_, sum_, when

GAP = timedelta(minutes=30)


def visits() -> pa.Table:
    """Return visits of three users on one morning."""
    begin = datetime(2026, 3, 2, 8)
    minutes = {"ann": (0, 10, 25, 90, 95), "ben": (5, 6, 7), "cem": (0, 29, 58, 120)}
    rows = [(user, begin + timedelta(minutes=at)) for user, times in minutes.items() for at in times]
    return pa.table({"user": [user for user, _ in rows], "at": [at for _, at in rows]})


def sessions(data: DataSet) -> DataSet:
    """Return the sessions of each user: their number, beginning, length and visits."""
    previous = lag("at").over("user", order_by="at")
    begins = when(previous.is_null() | (col("at").dt.diff(previous, "second") >= GAP.seconds)).then(1).otherwise(0)
    numbered = data.with_columns(begins=begins).with_columns(
        session=sum_("begins").over("user", order_by="at", rows=(None, 0))
    )
    found = numbered.group_by("user", "session").agg(begin=min_("at"), end=max_("at"), visits=count())
    return found.with_columns(minutes=col("end").dt.diff(col("begin"), "minute")).sort(["user", "session"])


def main() -> None:
    """Print the sessions."""
    with Environment() as env:
        sessions(env.from_arrow(visits())).show()


if __name__ == "__main__":
    main()
