"""Queries of TPC-H and TPC-DS in SQL, one job after the other: each answer goes to a folder of its own.

Where the variable TURNS names a folder, a query waits until a file of its name is there.
"""

import os
import sys
import time
from pathlib import Path

from engine import Environment
from tests.tpcds.queries import QUERIES as TPCDS
from tests.tpch.sql_queries import QUERIES as TPCH

source, target, *names = sys.argv[1:]
environment = Environment()
turns = os.environ.get("TURNS")
for name in names:
    while turns and not (Path(turns) / name).exists():
        time.sleep(0.01)
    benchmark, _, number = name.partition("-")
    for path in sorted((Path(source) / benchmark).glob("*.parquet")):
        environment.register(path.stem, environment.read_parquet(path))
    text = TPCH[int(number)] if benchmark == "tpch" else TPCDS[number]
    environment.sql(text).write_parquet(f"{target}/{name}")
    environment.execute(name)
    print(f"done {name}", flush=True)
