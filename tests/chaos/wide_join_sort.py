"""A job whose rows do not fit memory: a join and a total order of wide rows, both on disk and between processes."""

import sys

from engine import Environment, JoinHint

source, target, rate = sys.argv[1], sys.argv[2], float(sys.argv[3])
environment = Environment()
wide = environment.read_parquet(f"{source}/wide.parquet", rate_limit=rate or None)
names = environment.read_parquet(f"{source}/names.parquet")
joined = wide.join(names, on="k", hint=JoinHint.REPARTITION_HASH_FIRST)
joined.sort("text").write_csv(target)
environment.execute("wide join and sort")
