"""``flink-run job submit``: runs a script and says what became of its jobs.

Standard output, in order: ``Job has been submitted with JobID <32 hex>``, then ``Job with JobID <...> has finished.``
and ``Job Runtime: N ms`` (or the state it ended in), with ``--verbose`` a line for each vertex and run-time decision.
With ``--json`` it is exactly one JSON object, that of the last job, and everything for people goes to standard error,
also what the script prints.

Held by: tests/cli/test_main.py
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

from engine.api.executor import check_target
from engine.cli.progress import TerminalProgress
from engine.cli.py_files import local_py_files
from engine.cli.run_script import run_script, set_verbose
from engine.cli.setting_argument import add_setting_argument
from engine.client.job_listener import install_listener, queued_text, restart_text
from engine.client.job_result import JobResult
from engine.config.command_line import CommandLine, current_command_line, given_once, install_command_line
from engine.errors import ConfigurationError
from engine.gateways.job_details import JobRestart
from engine.gateways.job_queue import WaitingJob
from engine.gateways.messages import JobProgress
from engine.shown_text import shown

#: names under which shells complete files (shtab.FILE; shtab is loaded only to print a completion)
_FILES = {"bash": "_shtab_compgen_files", "zsh": "_files", "tcsh": "f"}


class SubmitListener:
    """Prints what happens to jobs."""

    def __init__(self, lines: TextIO, *, is_verbose: bool = False) -> None:
        self._lines = lines
        self._is_verbose = is_verbose
        self._progress = TerminalProgress()
        #: report of the last job
        self.report: dict[str, Any] | None = None

    def _say(self, text: str) -> None:
        print(shown(text), file=self._lines, flush=True)

    def on_submitted(self, job_id: str, name: str) -> None:
        """Print the job's id."""
        self._say(f"Job has been submitted with JobID {job_id}")

    def on_waiting(self, reason: str) -> None:
        """Print that the job goes on when there is a leader."""
        self._progress.stop()
        self._say(f"Waiting for a JobManager that leads: {reason}")

    def on_queued(self, waiting: WaitingJob) -> None:
        """Print on standard error why the job waits; on a terminal the progress line does."""
        if not self._progress.is_shown:
            print(shown(queued_text(waiting)), file=sys.stderr, flush=True)

    def on_trouble(self, text: str) -> None:
        """Print on standard error what the end of the job waits for."""
        self._progress.stop()
        print(shown(text), file=sys.stderr, flush=True)

    def on_restart(self, restart: JobRestart) -> None:
        """Print why an attempt failed, on standard error: the job has not ended."""
        self._progress.stop()
        print(shown(restart_text(restart)), file=sys.stderr, flush=True)

    @property
    def wants_progress(self) -> bool:
        """Whether there is a terminal to show it on."""
        return self._progress.is_shown

    def on_progress(self, progress: JobProgress) -> None:
        """Show the counters on the terminal."""
        self._progress.update(progress)

    def on_finished(self, result: JobResult) -> None:
        """Print state and runtime; verbose: what each vertex took and what was decided at run time."""
        self._progress.stop()
        self.report = result.to_json_dict()
        self._say(f"Job with JobID {result.job_id} has finished.")
        self._say(f"Job State: {result.state}")
        self._say(f"Job Runtime: {result.runtime_ms} ms")
        if result.bad_rows:
            self._say(f"Bad Rows: {result.bad_rows} left out (on_bad_row='skip')")
        for line in result.report if self._is_verbose else ():
            self._say(line)

    def on_failed(self, job_id: str, state: str, error: BaseException) -> None:
        """Print the state; the error itself is reported when it leaves the script."""
        self._progress.stop()
        self.report = {"job_id": job_id, "state": state, "runtime_ms": 0, "bad_rows": 0, "vertices": []}
        self._say(f"Job with JobID {job_id} ended in state {state}.")


class _Suggested(tuple[str, ...]):
    """Values that a shell completes. The option's type decides which are accepted, because its error says more."""

    def __contains__(self, _word: object) -> bool:
        return True


def parse_target(text: str) -> str:
    """Return a target that exists, or say what to use instead."""
    try:
        check_target(text)
    except ConfigurationError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return text


def add_setting_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of every command that runs jobs."""
    parser.add_argument(
        "-t",
        "--target",
        type=parse_target,
        choices=_Suggested(("local", "cluster", "spark")),
        metavar="{local,cluster,spark}",
        help="where to run: embedded (default), cluster, Spark",
    )
    parser.add_argument("-p", "--parallelism", type=int, metavar="N", help="subtasks of each operator")
    add_setting_argument(parser)
    parser.add_argument(
        "--priority", type=int, metavar="N", help="jobs of higher priority get slots first (default 0; cluster)"
    )
    parser.add_argument("--verbose", action="store_true", help="show what each vertex did, and whole errors")


def add_script_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of every command that runs a script."""
    parser.usage = "%(prog)s [options] JOB.py [args ...]"
    add_setting_arguments(parser)
    parser.add_argument("-n", "--name", metavar="NAME", help="name of the job, instead of the script's")
    modules = parser.add_argument(
        "--py-files", default="", metavar="FILE,...", help="modules, folders or archives to import from"
    )
    script = parser.add_argument(
        "script", type=Path, metavar="JOB.py", help="a script that builds a plan and executes it"
    )
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...", help="the script's own arguments")
    for argument in (modules, script):
        vars(argument)["complete"] = _FILES


def install_settings(options: argparse.Namespace) -> None:
    """Make the settings of a command line those of the script."""
    settings = given_once(options.options)
    if options.parallelism is not None:
        settings["parallelism.default"] = str(options.parallelism)
    if getattr(options, "remote", None):
        if options.target != "spark":
            raise ConfigurationError("--remote names a server of Spark Connect: give -t spark with it")
        settings["spark.remote"] = options.remote
    if options.priority is not None:
        settings["job.priority"] = str(options.priority)
    py_files = tuple(entry for entry in getattr(options, "py_files", "").split(",") if entry)
    line = CommandLine(
        settings,
        _target(options),
        getattr(options, "name", None),
        getattr(options, "script", None),
        is_detached=getattr(options, "detached", False),
        master=getattr(options, "master", None),
    )
    install_command_line(line)  # its settings open object stores
    line.py_files = local_py_files(py_files)
    set_verbose(options.verbose)


def _target(options: argparse.Namespace) -> str | None:
    """Return the target: ``-m`` and ``-d`` imply a cluster."""
    is_spark = options.target == "spark"
    has_master = getattr(options, "master", None) and not is_spark
    flag = "-m" if has_master else "-d" if getattr(options, "detached", False) else ""
    if flag and options.target not in (None, "cluster"):
        raise ConfigurationError(f"{flag} needs a cluster: leave -t {options.target} out")
    return "cluster" if flag else options.target


def _run(options: argparse.Namespace, module_path: Sequence[str]) -> int:
    if not options.replay_failed_row:
        return run_script(options.script, options.arguments, module_path)
    from engine.cli.replay import replay_failed_row, want_failed_row

    want_failed_row(_target(options))
    exit_code = run_script(options.script, options.arguments, module_path)
    if exit_code:
        replay_failed_row()
    return exit_code


def submit(options: argparse.Namespace) -> int:
    """Run the script and return the exit code."""
    install_settings(options)
    stdout = sys.stdout
    if options.json:
        sys.stdout = sys.stderr
    listener = SubmitListener(sys.stdout, is_verbose=options.verbose)
    install_listener(listener)
    exit_code = _run(options, current_command_line().py_files)
    if options.json:
        empty: dict[str, Any] = {
            "job_id": None,
            "state": "FAILED" if exit_code else "NONE",
            "runtime_ms": 0,
            "bad_rows": 0,
            "vertices": [],
        }
        print(json.dumps(listener.report or empty), file=stdout, flush=True)
    return exit_code
