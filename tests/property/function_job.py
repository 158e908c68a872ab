"""One job of a Python function over very wide rows in a process of its own: prints what it held as JSON.

    python -m tests.property.function_job FUNCTION FEED INPUT OUTPUT MANAGED SLOTS PROCESS

FEED: where the function's rows come from: source (read by the task itself), exchange (from other tasks), sort (of the
task). INPUT: a Parquet file of columns id and blob. The engine is loaded before pyarrow, so that it chooses Arrow's
allocator. The worker's memory is counted apart.
"""

import json
import sys
from pathlib import Path

from engine import Environment  # isort: skip
import pyarrow as pa

from tests.property.budget_job import resident, warm_up

SCHEMA = pa.schema([("id", pa.int64()), ("blob", pa.binary())])
SMALL = pa.schema([("id", pa.int64()), ("name", pa.string())])


def both(left, right):
    """Return the left rows of a key which has right ones."""
    names = len(list(right))
    return ((row.id, row.blob) for row in left if names)


FUNCTIONS = {
    "map_batches": lambda rows, small: rows.map_batches(lambda batch: batch, SCHEMA),
    "map": lambda rows, small: rows.map(lambda row: (row.id, row.blob), SCHEMA),
    "flat_map": lambda rows, small: rows.flat_map(lambda row: [(row.id, row.blob)], SCHEMA),
    "filter": lambda rows, small: rows.filter(lambda row: len(row.blob) > 0),
    "map_partition": lambda rows, small: rows.map_partition(lambda rows: ((r.id, r.blob) for r in rows), SCHEMA),
    "reduce": lambda rows, small: rows.group_by("id").reduce(lambda rows: ((r.id, r.blob) for r in rows), SCHEMA),
    "co_group": lambda rows, small: rows.co_group(small, "id", both, SCHEMA),
}
FEEDS = {
    "source": lambda rows: rows,
    "exchange": lambda rows: rows.rebalance(),
    "sort": lambda rows: rows.sort("id"),
}


def main():
    """Run the job and report."""
    function, feed, source, target, managed, slots, process = sys.argv[1:]
    settings = {
        "taskmanager.memory.managed.size": managed,
        "taskmanager.memory.process.size": process,
        "parallelism.default": int(slots),
        "io.tmp.dirs": target,
    }
    with Environment(config=settings) as environment:
        warm_up(environment, target)
        rows = FEEDS[feed](environment.read_parquet(source))
        small = environment.from_rows([(index, f"n{index}") for index in range(100)], SMALL)
        FUNCTIONS[function](rows, small).write_parquet(f"{target}/out")
        idle = resident()
        Path("/proc/self/clear_refs").write_text("5")
        environment.execute(f"{function} over {feed}")
        print(json.dumps({"growth": resident("VmHWM") - idle}))


if __name__ == "__main__":
    main()
