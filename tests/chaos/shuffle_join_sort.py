"""A job of every kind of exchange: joins, groups, a Python function, a sort over all subtasks."""

import sys

import pyarrow as pa

from engine import Environment, JoinHint, col, count, sum_

source, target, rate = sys.argv[1], sys.argv[2], float(sys.argv[3])
environment = Environment()
facts = environment.read_parquet(f"{source}/facts.parquet", rate_limit=rate or None)
names = environment.read_parquet(f"{source}/names.parquet")
joined = facts.join(names, on="k", hint=JoinHint.REPARTITION_HASH_SECOND)
schema = pa.schema([("k", pa.int64()), ("v", pa.int64()), ("name", pa.string())])
marked = joined.map(lambda row: (row.k, row.v + 1, row.name.upper()), schema)
groups = marked.group_by("name").agg(rows=count(), total=sum_(col("v"))).sort(["total", "name"], descending=True)
groups.write_csv(target)
environment.execute("shuffle, join, sort")
