"""A job whose subtasks write many files each: four very wide rows of a thousand columns fill a footer."""

import sys

from engine import Environment, col

source, target, sink = sys.argv[1:]
environment = Environment()
rows = environment.read_parquet(source, rate_limit=4)
more = [(col("k") + number).alias(f"c{number}") for number in range(1100)]
getattr(rows.select("k", "text", *more), sink)(target)
environment.execute("wide rows to files")
