"""``python -m engine.entrypoint.standalone_job JOB.py [args]``: one job on a JobManager of its own.

    this process ── starts ──► JobManager ─ ready ─► flink-run job submit -t cluster -m <it> JOB.py [args]
                                                         └─ ends ─► JobManager is stopped ─► exit code of the job

A JobManager loads no user code, so the script runs in a process beside it; both end with this one, however it ends.
SIGTERM cancels the job.

Source: Flink's application mode (StandaloneApplicationClusterEntryPoint), whose JobManager runs the program itself.
Held by: tests/entrypoint/test_daemons.py
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from types import FrameType

from engine.entrypoint.daemon import build_parser
from engine.entrypoint.places import home_folder
from engine.entrypoint.readiness import Readiness
from engine.python_command import python_command

#: seconds that a component may take to end
_STOP_S = 12.0


def main(words: Sequence[str] | None = None) -> int:
    """Run the job and return its exit code."""
    parser = build_parser("standalone_job")
    parser.add_argument("script", metavar="JOB.py")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...")
    options = parser.parse_args(words)
    readiness = Readiness(options.ready_fd)
    settings = [word for text in options.options for word in ("-D", text)]
    job_manager, word, text = _start_job_manager(options, settings)
    try:
        if word != "ready":
            sys.stderr.write(f"the JobManager did not start: {text}\n")
            readiness.failed(text)
            return 1
        readiness.ready(text)
        return _run_job(text.partition("://")[2], settings, [options.script, *options.arguments])
    finally:
        readiness.close()
        _end(job_manager)


def _start_job_manager(options: argparse.Namespace, settings: list[str]) -> tuple[subprocess.Popen[bytes], str, str]:
    """Return the process and what it told: its word and the rest."""
    reading, writing = os.pipe()
    command = python_command("engine.entrypoint.jobmanager", "--ready-fd", str(writing), *settings)
    if options.log_file is not None:
        command += ["--log-file", str(options.log_file)]
    process = subprocess.Popen([*command, "--parent", str(os.getpid())], pass_fds=[writing], cwd=home_folder())
    os.close(writing)
    with os.fdopen(reading) as pipe:
        word, _, text = pipe.readline().rstrip("\n").partition(" ")
    return process, word, text


def _run_job(address: str, settings: list[str], job: list[str]) -> int:
    command = python_command("engine.cli.main", "job", "submit", "-t", "cluster", "-m", address, *settings)
    process = subprocess.Popen([*command, *job])
    with _passing_on_signals(process):
        return process.wait()


@contextlib.contextmanager
def _passing_on_signals(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Turn a signal that should end this process into the end of the job, which the command cancels and reports."""

    def cancel(number: int, frame: FrameType | None) -> None:
        process.send_signal(signal.SIGTERM)

    previous = {number: signal.signal(number, cancel) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


if __name__ == "__main__":
    sys.exit(main())
