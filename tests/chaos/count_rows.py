"""A tiny job: how often each remainder occurs among some numbers, as CSV."""

import sys

import pyarrow as pa

from engine import Environment, col, count, max_

target, rows = sys.argv[1], int(sys.argv[2])
environment = Environment()
schema = pa.schema([("n", pa.int64()), ("r", pa.int64())])
numbers = environment.from_rows([(n, n % 7) for n in range(rows)], schema)
numbers.group_by("r").agg(rows=count(), top=max_(col("n"))).write_csv(target)
environment.execute(f"count {rows}")
