"""One job in a process of its own, within a control group of just the size that the process is told to have.

    python -m tests.property.process_size_job JOB INPUT OUTPUT PROCESS_SIZE SLOTS [GROUP]

It joins the group before it loads anything: interpreter, libraries, all pages and Python workers are charged to it.
"""

import os
import sys
from pathlib import Path


def sort(environment, source):
    return environment.read_parquet(f"{source}/facts.parquet").sort(["k", "v"])


def join(environment, source):
    facts, others = (environment.read_parquet(f"{source}/{name}.parquet") for name in ("facts", "others"))
    return facts.join(others, on="v")


def group(environment, source):
    from engine import col, count, max_, sum_

    facts = environment.read_parquet(f"{source}/facts.parquet")
    return facts.group_by("v").agg(rows=count(), total=sum_(col("k")), text=max_(col("text")))


def mapped(environment, source):
    import pyarrow as pa
    import pyarrow.compute as pc

    schema = pa.schema([("k", pa.int64()), ("v", pa.int64()), ("text", pa.string())])

    def doubled(batch):
        return batch.set_column(0, "k", pc.add(batch.column("k"), batch.column("k")))

    facts = environment.read_parquet(f"{source}/facts.parquet")
    once = facts.map_batches(doubled, schema)
    return once.map(lambda row: (row.k, row.v + 1, row.text), schema).sort("v")


def text(environment, source):
    from engine import col

    return environment.read_csv(f"{source}/facts.csv", header=True).filter(col("k") >= 500).sort("v", descending=True)


def columns(environment, source):
    return environment.read_parquet(f"{source}/columns.parquet").rebalance()


def hoarding(environment, source):
    import pyarrow as pa

    kept = []

    def hoard(batch):
        kept.append(b"x" * (64 << 20))
        return batch

    facts = environment.read_parquet(f"{source}/facts.parquet")
    return facts.map_batches(hoard, pa.schema([("k", pa.int64()), ("v", pa.int64()), ("text", pa.string())]))


JOBS = {one.__name__: one for one in (sort, join, group, mapped, text, columns, hoarding)}


def main():
    """Run the job."""
    name, source, target, process_size, slots, *group_folder = sys.argv[1:]
    for folder in group_folder:
        (Path(folder) / "cgroup.procs").write_text(str(os.getpid()))
    from engine import Environment

    environment = Environment(
        config={
            "taskmanager.memory.process.size": process_size,
            "parallelism.default": int(slots),
            "io.tmp.dirs": target,
        }
    )
    result = JOBS[name](environment, source)
    if name == "text":
        result.write_csv(f"{target}/{name}", header=True)
    else:
        result.write_parquet(f"{target}/{name}")
    sys.stdout.write("\n".join(environment.execute(name).report))
    environment.close()


if __name__ == "__main__":
    main()
