"""A job of five stages, each of which takes a while: slow functions between exchanges."""

import sys
import time

import pyarrow as pa

from engine import Environment, col, count, sum_

target, rows, stage_s = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
environment = Environment()


def slow(data, of, **columns):
    """Give each row of a stage, which has so many, its part of the stage's time, on two subtasks."""
    pause_s = 2 * stage_s / of
    names = tuple(columns)

    def taken(row):
        time.sleep(pause_s)
        return tuple(row[name] for name in names)

    return data.map(taken, pa.schema(columns))


whole = pa.int64()
numbers = environment.from_rows([(number,) for number in range(rows)], pa.schema({"n": whole}))
first = slow(numbers.rebalance(), rows, n=whole)
by_hundred = first.with_columns(k=col("n") % (rows // 4)).group_by("k").agg(a=count(), b=sum_(col("n")))
second = slow(by_hundred, rows // 4, k=whole, a=whole, b=whole)
third = slow(second.join(numbers.select(k=col("n")), on="k"), rows // 4, k=whole, a=whole, b=whole)
by_ten = third.with_columns(g=col("k") % (rows // 16)).group_by("g").agg(a=sum_(col("a")), b=sum_(col("b")))
fourth = slow(by_ten, rows // 16, g=whole, a=whole, b=whole)
slow(fourth.sort("g"), rows // 16, g=whole, a=whole, b=whole).write_csv(target)
environment.execute("five stages")
