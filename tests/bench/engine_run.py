"""One engine, one workload, once: ``python -m tests.bench.engine_run WORKLOAD ENGINE FOLDER OUTPUT``."""

import sys
from pathlib import Path

from tests.bench.workload import load_workload

if __name__ == "__main__":
    workload_name, engine, folder, output = sys.argv[1:]
    getattr(load_workload(workload_name), f"run_{engine}")(Path(folder), Path(output))
