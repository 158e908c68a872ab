"""One engine, one workload, once: ``python -m tests.bench.engine_run WORKLOAD ENGINE SOURCE OUTPUT SPILL LIMIT ROUNDS``

The process has as many processors as engines are told to take threads: Drey is left to its defaults, which are made for
the processors that there are. LIMIT: megabytes, 0 for none. WORKLOAD ``idle`` runs a job of one row and prints the
resident bytes of the process after it.
"""

import os
import sys
from pathlib import Path

from tests.bench.workload import THREADS, Job, load_workload

if __name__ == "__main__":
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:THREADS])
    workload_name, engine, source, output, spill, limit_mb, rounds = sys.argv[1:]
    job = Job(Path(source), Path(output), Path(spill), int(limit_mb) or None, int(rounds))
    getattr(load_workload(workload_name), f"run_{engine}")(job)
    if workload_name == "idle":
        resident_pages = int(Path("/proc/self/statm").read_text().split()[1])
        sys.stdout.write(f"resident {resident_pages * os.sysconf('SC_PAGE_SIZE')}\n")
