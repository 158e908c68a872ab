"""A job that reads a table of a database in ranges and adds its rows to another one."""

import sys

from engine import Environment, col

source, target, uri = sys.argv[1:]
environment = Environment()
rows = environment.read_database(source, uri, partition_on="i", partitions=4)
rows.select("i", (col("i") * 2).alias("twice"), "s").write_database(target, uri, mode="append")
environment.execute("copy of a table")
