"""A job whose function stands still at a row until a file is there; its sources have far more than buffers hold."""

import sys
import time
from pathlib import Path

import pyarrow as pa

from engine import Environment, count, sum_

source, target, gate, reached = sys.argv[1:]


def wait(row):
    if row.v == 20_000:
        Path(reached).touch()
        while not Path(gate).exists():
            time.sleep(0.05)
    return row.v, len(row.text)


environment = Environment()
wide = environment.read_parquet(source).rebalance()
sizes = wide.map(wait, pa.schema([("v", pa.int64()), ("length", pa.int64())]))
sizes.group_by().agg(rows=count(), total=sum_("v"), length=sum_("length")).write_csv(target)
environment.execute("a consumer that stands still")
