"""One engine once, in a process of its own, watched from outside.

``seconds`` is the life of the process, imports and start included, which is what a person waits for. ``peak_mb`` is the
largest sum of resident memory over the process and its descendants; pages that they share count once for each.
"""

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.bench.workload import THREADS

_SAMPLE_S = 0.02


@dataclass(frozen=True)
class MeasuredRun:
    """What one run took."""

    seconds: float
    cpu_seconds: float
    peak_mb: float


def measured_run(workload: str, engine: str, folder: Path, output: Path) -> MeasuredRun:
    """Run an engine over the input in ``folder``; ``output`` must not exist. A failure raises with its last words."""
    command = [sys.executable, "-m", "tests.bench.engine_run", workload, engine, str(folder), str(output)]
    environment = os.environ | {
        "DREY_PARALLELISM_DEFAULT": str(THREADS),
        "POLARS_MAX_THREADS": str(THREADS),
    }
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment)
    peak_bytes, usage, status = 0, None, 0
    watched = psutil.Process(process.pid)
    while usage is None:
        peak_bytes = max(peak_bytes, _resident_bytes(watched))
        time.sleep(_SAMPLE_S)
        pid, status, ended = os.wait4(process.pid, os.WNOHANG)
        usage = ended if pid else None
    seconds = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    with process.stdout:
        text = process.stdout.read().decode(errors="replace")
    if process.returncode:
        raise SystemExit(f"{engine} failed on {workload}:\n{text[-2000:]}")
    return MeasuredRun(seconds, usage.ru_utime + usage.ru_stime, peak_bytes / 1e6)


def _resident_bytes(process: psutil.Process) -> int:
    total = 0
    try:
        for one in [process, *process.children(recursive=True)]:
            total += one.memory_info().rss
    except psutil.Error:
        pass
    return total
