"""A job for a cluster: the rows of one table, some of them deleted, into another one with partitions."""

import sys

from engine import Environment, col

lake = sys.argv[1]
environment = Environment()
rows = environment.read_iceberg("db.source", lake).filter(col("id") >= 10)
rows.write_iceberg("db.t", lake, partition_by=["bucket(4, id)", "day(ts)"], mode="append")
environment.execute("write table")
