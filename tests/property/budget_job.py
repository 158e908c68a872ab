"""One job in a process of its own, for tests of memory: prints what it held and a fingerprint of its result as JSON.

    python -m tests.property.budget_job WORKLOAD INPUT OUTPUT MANAGED SLOTS [ALLOWED [GROUP]]

The peak of resident memory is the kernel's own (VmHWM), reset when the process is idle: everything imported and one
tiny job run. With a control group the process joins it when idle, and the kernel allows it ALLOWED bytes more.
"""

import json
import os
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from engine import Environment, JoinHint, col, count, max_, min_, sum_

PROCESS_SIZE = "512mb"


def resident(field="VmRSS"):
    """Return bytes of the process, as the kernel counts them."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) << 10
    raise KeyError(field)


def sort(environment, source):
    return environment.read_parquet(f"{source}/facts.parquet").sort(["k", "v"])


def group(environment, source):
    facts = environment.read_parquet(f"{source}/facts.parquet")
    return facts.group_by("v").agg(rows=count(), total=sum_(col("k")), text=max_(col("text")))


def join(environment, source):
    facts = environment.read_parquet(f"{source}/facts.parquet")
    others = environment.read_parquet(f"{source}/others.parquet")
    return facts.join(others, on="v", hint=JoinHint.REPARTITION_HASH_SECOND)


def heavy_probe(environment, source):
    heavy = environment.read_parquet(f"{source}/heavy.parquet")
    names = environment.read_parquet(f"{source}/names.parquet")
    return heavy.join(names, on="h", hint=JoinHint.REPARTITION_HASH_SECOND)


def heavy_build(environment, source):
    heavy = environment.read_parquet(f"{source}/heavy.parquet")
    names = environment.read_parquet(f"{source}/names.parquet")
    return names.join(heavy, on="h", hint=JoinHint.REPARTITION_HASH_SECOND)


def three(environment, source):
    facts = environment.read_parquet(f"{source}/facts.parquet")
    others = environment.read_parquet(f"{source}/others.parquet")
    joined = facts.join(others, on="v", hint=JoinHint.REPARTITION_HASH_FIRST)
    grouped = joined.group_by("v").agg(rows=count(), total=sum_(col("k")), text=max_(col("other")))
    return grouped.sort(["total", "v"])


def many_sources(environment, source):
    facts = [environment.read_parquet(f"{source}/facts.parquet").filter(col("k") % 20 == rest) for rest in range(20)]
    return facts[0].union(*facts[1:]).group_by("k").agg(rows=count(), total=sum_(col("v")), text=max_(col("text")))


def wide(environment, source):
    return environment.read_parquet(f"{source}/wide.parquet").sort("id", descending=True)


def wide_passes(environment, source):
    return environment.read_parquet(f"{source}/wide.parquet").filter(col("id") >= 0)


def wide_probe(environment, source):
    names = environment.from_rows([(index, f"n{index}") for index in range(100)], NAMES)
    return environment.read_parquet(f"{source}/wide.parquet").join(names, on="id", hint=JoinHint.BROADCAST_HASH_SECOND)


def wide_group(environment, source):
    return environment.read_parquet(f"{source}/wide.parquet").group_by("id").agg(blob=max_(col("blob")))


def wide_sent_probe(environment, source):
    small = environment.read_parquet(f"{source}/small.parquet")
    blobs = environment.read_parquet(f"{source}/wide.parquet")
    return blobs.join(small, on="id", hint=JoinHint.REPARTITION_HASH_SECOND)


def wide_sent_build(environment, source):
    small = environment.read_parquet(f"{source}/small.parquet")
    blobs = environment.read_parquet(f"{source}/wide.parquet")
    return blobs.join(small, on="id", hint=JoinHint.REPARTITION_HASH_FIRST)


def wide_mapped(environment, source):
    rows = environment.read_parquet(f"{source}/wide.parquet")
    return rows.map(lambda row: (row.id, row.blob), pa.schema([("id", pa.int64()), ("blob", pa.binary())]))


def wide_keys(environment, source):
    blobs = environment.read_parquet(f"{source}/wide.parquet")
    grouped = blobs.group_by("blob").agg(id=min_(col("id")))
    return grouped.join(blobs.select("blob"), on="blob", hint=JoinHint.REPARTITION_HASH_SECOND).sort("blob")


def wide_key_sort(environment, source):
    return environment.read_parquet(f"{source}/wide.parquet").sort("blob", descending=True)


def wide_key_distinct(environment, source):
    return environment.read_parquet(f"{source}/wide.parquet").distinct()


NAMES = pa.schema([("id", pa.int64()), ("name", pa.string())])
SENT = (wide_group, wide_sent_probe, wide_sent_build)
BY_KEY = (wide_keys, wide_key_sort, wide_key_distinct)
WORKLOADS = {
    one.__name__: one
    for one in (
        sort,
        group,
        join,
        heavy_probe,
        heavy_build,
        three,
        many_sources,
        wide,
        wide_passes,
        wide_probe,
        wide_mapped,
        *SENT,
        *BY_KEY,
    )
}


def warm_up(environment, folder):
    """Run a tiny job of every kind, so that what stays resident is there."""
    rows = pa.table({"k": [1, 2, 3] * 100, "v": range(300), "text": ["x"] * 300})
    pq.write_table(rows, f"{folder}/warm.parquet")
    facts = environment.read_parquet(f"{folder}/warm.parquet")
    joined = facts.join(facts.select("k", col("v").alias("w")).limit(3), on="k")
    grouped = joined.group_by("v").agg(rows=count(), total=sum_(col("k")), text=max_(col("text"))).sort(["total", "v"])
    grouped.write_parquet(f"{folder}/warm", overwrite=True)
    environment.execute()


def join_group(group, allowed):
    """Move this process into a control group. What is resident already stays charged where it was."""
    (group / "memory.limit_in_bytes").write_text(str(allowed))
    (group / "cgroup.procs").write_text(str(os.getpid()))


def main():
    """Run the workload and report."""
    workload, source, target, managed, slots, *limits = sys.argv[1:]
    environment = Environment(
        config={
            "taskmanager.memory.managed.size": managed,
            "taskmanager.memory.process.size": PROCESS_SIZE,
            "parallelism.default": int(slots),
            "io.tmp.dirs": os.environ.get("BUDGET_SPILL", target),
        }
    )
    warm_up(environment, target)
    idle = resident()
    if len(limits) == 2:
        join_group(Path(limits[1]), int(limits[0]))
    Path("/proc/self/clear_refs").write_text("5")
    WORKLOADS[workload](environment, source).write_parquet(f"{target}/{workload}", overwrite=True)
    result = environment.execute(workload)
    peak = resident("VmHWM")
    spilled = sum(subtask.spilled_bytes for vertex in result.vertices for subtask in vertex.subtasks)
    print(json.dumps({"idle": idle, "peak": peak, "runtime_ms": result.runtime_ms, "spilled": spilled}))
    environment.close()


if __name__ == "__main__":
    main()
