"""One job over very wide rows in a process of its own: prints the growth of its resident memory as JSON.

    python -m tests.property.wide_job PROGRAM SOURCE FOLDER OUTPUT MANAGED SLOTS

SOURCE: parquet (wide.parquet), csv (wide.csv), text (wide.txt), records (a data set, records/). Beside it lies
small.parquet with ids and names. The engine is loaded before pyarrow, so that it chooses Arrow's allocator.
"""

import json
import sys
from pathlib import Path

from engine import Environment, JoinHint, col, count, first, max_  # isort: skip
import pyarrow as pa

from tests.property.budget_job import PROCESS_SIZE, resident, warm_up

BINARY = pa.schema([("id", pa.int64()), ("blob", pa.binary())])
TEXT = pa.schema([("id", pa.int64()), ("blob", pa.string())])


def read(environment, source, folder):
    """Return the wide rows."""
    if source == "csv":
        return environment.read_csv(f"{folder}/wide.csv", schema=TEXT)
    if source == "text":
        return environment.read_text(f"{folder}/wide.txt").select(col("line").alias("blob"))
    if source == "records":
        return environment.read_records(f"{folder}/records")
    return environment.read_parquet(f"{folder}/wide.parquet")


PROGRAMS = {
    "passes": lambda wide, small: wide,
    "sort": lambda wide, small: wide.sort("id", descending=True),
    "top": lambda wide, small: wide.top(3, "id"),
    "union": lambda wide, small: wide.union(wide),
    "rebalance": lambda wide, small: wide.rebalance(),
    "max": lambda wide, small: wide.group_by("id").agg(blob=max_(col("blob"))),
    "first": lambda wide, small: wide.group_by("id").agg(blob=first(col("blob")), rows=count()),
    "broadcast_probe": lambda wide, small: wide.join(small, on="id", hint=JoinHint.BROADCAST_HASH_SECOND),
    "broadcast_build": lambda wide, small: small.join(wide, on="id", hint=JoinHint.BROADCAST_HASH_SECOND),
    "sent_probe": lambda wide, small: wide.join(small, on="id", hint=JoinHint.REPARTITION_HASH_SECOND),
    "sent_build": lambda wide, small: wide.join(small, on="id", hint=JoinHint.REPARTITION_HASH_FIRST),
    "merge": lambda wide, small: wide.join(small, on="id", hint=JoinHint.REPARTITION_SORT_MERGE),
    "outer": lambda wide, small: small.join(wide, on="id", how="full", hint=JoinHint.REPARTITION_HASH_SECOND),
    "semi": lambda wide, small: wide.join(small, on="id", how="semi", hint=JoinHint.REPARTITION_HASH_SECOND),
    "mapped": lambda wide, small: wide.map_batches(lambda batch: batch, BINARY),
}


def main():
    """Run the program and report."""
    program, source, folder, target, managed, slots = sys.argv[1:]
    settings = {
        "taskmanager.memory.managed.size": managed,
        "taskmanager.memory.process.size": PROCESS_SIZE,
        "parallelism.default": int(slots),
        "io.tmp.dirs": target,
    }
    with Environment(config=settings) as environment:
        warm_up(environment, target)
        wide = read(environment, source, folder)
        made = PROGRAMS[program](wide, environment.read_parquet(f"{folder}/small.parquet"))
        write = {"csv": made.write_csv, "text": made.write_text, "records": made.write_records}
        write.get(source, made.write_parquet)(f"{target}/out")
        idle = resident()
        Path("/proc/self/clear_refs").write_text("5")
        environment.execute(program)
        print(json.dumps({"growth": resident("VmHWM") - idle}))


if __name__ == "__main__":
    main()
