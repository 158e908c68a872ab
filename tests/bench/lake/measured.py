"""A program in a process of its own, which ends by printing its figures as JSON."""

import json
import subprocess
import sys
from pathlib import Path

_FRAME = """
import json, resource, sys, time
arguments = json.loads(sys.argv[1])
def begin():
    global started, used
    started, used = time.perf_counter(), time.process_time()
def end(**more):
    seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - used
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    print(json.dumps({"seconds": seconds, "cpu_seconds": cpu_seconds, "peak_mb": peak_mb, **more}))
"""


def measured(program: str, **arguments: object) -> dict[str, float]:
    """Run a program that calls ``begin()`` and ``end(name=figure, ...)``; return its figures."""
    command = [sys.executable, "-c", _FRAME + program, json.dumps(arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[3])
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures
