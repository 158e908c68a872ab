"""One job by very wide keys in a process of its own: prints the growth of its resident memory as JSON.

    python -m tests.property.wide_key_job PROGRAM FOLDER MANAGED SLOTS MODE

FOLDER holds left.parquet (id, blob) and right.parquet (other, blob) and gets the output, out/. MODE: PIPELINED or
BATCH. The engine is loaded before pyarrow, so that it chooses Arrow's allocator.
"""

import json
import sys
from pathlib import Path

from engine import Environment, JoinHint, col  # isort: skip

from tests.property.budget_job import PROCESS_SIZE, resident, warm_up

MERGE = JoinHint.REPARTITION_SORT_MERGE
#: left, right ─► what is written
PROGRAMS = {
    "inner": lambda left, right: left.join(right, on="blob", hint=MERGE),
    "inner_ids": lambda left, right: left.join(right, on="blob", hint=MERGE).select("id", "other"),
    "left": lambda left, right: left.join(right, on="blob", how="left", hint=MERGE),
    "right": lambda left, right: left.join(right, on="blob", how="right", hint=MERGE),
    "full": lambda left, right: left.join(right, on="blob", how="full", hint=MERGE),
    "semi": lambda left, right: left.join(right, on="blob", how="semi", hint=MERGE),
    "anti": lambda left, right: left.join(right, on="blob", how="anti", hint=MERGE),
    "condition": lambda left, right: left.join(
        right.select(col("blob").alias("key"), "other"),
        left_on="blob",
        right_on="key",
        condition=col("id") <= col("other"),
        hint=MERGE,
    ).select("id", "other", "key"),
    "sort": lambda left, right: left.sort("blob", descending=True),
    "range": lambda left, right: left.partition_by_range("blob"),
    "chosen": lambda left, right: left.join(right, on="blob").sort("blob"),
}


def main():
    """Run the program and report."""
    program, folder, managed, slots, mode = sys.argv[1:]
    settings = {
        "taskmanager.memory.managed.size": managed,
        "taskmanager.memory.process.size": PROCESS_SIZE,
        "parallelism.default": int(slots),
        "execution.mode": mode,
        "io.tmp.dirs": folder,
    }
    with Environment(config=settings) as environment:
        warm_up(environment, folder)
        left, right = (environment.read_parquet(f"{folder}/{side}.parquet") for side in ("left", "right"))
        PROGRAMS[program](left, right).write_parquet(f"{folder}/out")
        idle = resident()
        Path("/proc/self/clear_refs").write_text("5")
        environment.execute(program)
        print(json.dumps({"growth": resident("VmHWM") - idle}))


if __name__ == "__main__":
    main()
