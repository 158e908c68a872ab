"""Sorts with the default process size in a control group, beside what the script itself holds.

    python -m tests.property.default_size_job INPUT OUTPUT GROUP HELD_MB ENVIRONMENTS

The script holds so many megabytes, and sorts the input in so many environments of different settings, one after the
other; none is closed before the end.
"""

import os
import sys
from pathlib import Path


def main():
    """Run the jobs."""
    source, target, group, held_mb, environments = sys.argv[1:]
    (Path(group) / "cgroup.procs").write_text(str(os.getpid()))
    held = [bytearray(os.urandom(1 << 10) * 1024) for _ in range(int(held_mb))]
    from engine import Environment

    kept = []
    for number in range(int(environments)):
        config = {"io.tmp.dirs": target, "parallelism.default": 1 + number}
        kept.append(Environment(config=config))
        kept[-1].read_parquet(source).sort("text").write_parquet(f"{target}/{number}")
        sys.stdout.write("\n".join(kept[-1].execute().report) + "\n")
    assert len(held) == int(held_mb)
    for environment in kept:
        environment.close()


if __name__ == "__main__":
    main()
