"""One engine once, in a process of its own, watched from outside.

``seconds`` is the life of the process, imports and start included, which is what a person waits for. ``peak_mb`` is the
largest sum of resident memory over the process and its descendants, looked at every 10 ms; pages that they share count
once for each. With a cap the same watch kills the processes once they hold more: that run has died.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tests.bench.workload import THREADS, Job

_SAMPLE_S = 0.01
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class MeasuredRun:
    """What one run took. ``died`` is "" or why it ended early, and then the numbers are those of its end."""

    seconds: float
    cpu_seconds: float
    peak_mb: float
    died: str = ""


def measured_run(
    workload: str, engine: str, job: Job, limit_bytes: int | None = None, group: Path | None = None
) -> MeasuredRun:
    """Run an engine, in a control group if one is given.

    A failure within a cap (``limit_bytes``) is a result, any other ends the program.
    """
    with tempfile.TemporaryFile() as text:
        began = time.perf_counter()
        process = subprocess.Popen(
            [*_entering(group), *engine_command(workload, engine, job)], stdout=text, stderr=subprocess.STDOUT,
            env=engine_environment(job), start_new_session=True,
        )  # fmt: skip
        peak_bytes, usage, status, died = 0, None, 0, ""
        while usage is None:
            resident = resident_bytes(process.pid)
            peak_bytes = max(peak_bytes, resident)
            if limit_bytes is not None and resident > limit_bytes and not died:
                died = "killed above the cap"
                os.killpg(process.pid, signal.SIGKILL)
            time.sleep(_SAMPLE_S)
            pid, status, ended = os.wait4(process.pid, os.WNOHANG)
            usage = ended if pid else None
        seconds = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        text.seek(0)
        words = text.read().decode(errors="replace")
    if process.returncode and limit_bytes is None:
        raise SystemExit(f"{engine} failed on {workload}, exit code {process.returncode}:\n{words[-2000:]}")
    if process.returncode and not died:
        died = words.strip().splitlines()[-1][:120] if words.strip() else f"exit code {process.returncode}"
    return MeasuredRun(seconds, usage.ru_utime + usage.ru_stime, peak_bytes / 1e6, died)


def _entering(group: Path | None) -> list[str]:
    """Return the words before a command that have it run in a control group from its first instruction on."""
    return [] if group is None else ["sh", "-c", 'echo $$ > "$0" && exec "$@"', str(group / "cgroup.procs")]


def engine_command(workload: str, engine: str, job: Job) -> list[str]:
    """Return what runs an engine's job."""
    paths = [str(job.source), str(job.output), str(job.spill)]
    numbers = [str(job.limit_mb or 0), str(job.rounds)]
    return [sys.executable, "-m", "tests.bench.engine_run", workload, engine, *paths, *numbers]


def engine_environment(job: Job) -> dict[str, str]:
    """Return the variables of a job: threads, and what an engine takes only as a variable."""
    variables = {
        "DREY_IO_TMP_DIRS": str(job.spill),
        "POLARS_MAX_THREADS": str(THREADS),
    }
    if job.limit_mb is not None:
        variables |= {"POLARS_OOC_MEMORY_BUDGET_MB": str(job.limit_mb), "POLARS_OOC_SPILL_DIR": str(job.spill)}
    # DREY_ is the engine's own prefix, and it refuses what it does not know.
    return {name: value for name, value in os.environ.items() if name != "DREY_BENCH_DIR"} | variables


def resident_bytes(pid: int) -> int:
    """Return the resident memory of a process and its descendants."""
    total = 0
    try:
        total = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_BYTES
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                total += resident_bytes(int(child))
    except (OSError, IndexError):
        pass
    return total


def idle_bytes(engine: str, folder: Path) -> int:
    """Return what a process of an engine holds after a job of one row."""
    job = Job(folder / "idle", folder / "idle-output", folder / "spill")
    words = subprocess.run(
        engine_command("idle", engine, job), capture_output=True, text=True, check=True, env=engine_environment(job)
    ).stdout
    return int(words.split("resident ")[1].split()[0])
