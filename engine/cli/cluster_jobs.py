"""``flink-run job list | status | cancel | logs``: jobs of a running cluster.

list      running and waiting jobs (-r only running, -s only waiting, -a all that the JobManager knows); --name, --user,
          --state and --since choose among them
status    state and runtime of one job, a line for each vertex, what went wrong last
cancel    begin to cancel, and wait until the job has ended
logs      names of the log files of a job's task attempts; with a name, that file

``--json`` prints the JobManager's own answer. Exit code 1 for a job that is not known.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any
from urllib.parse import quote

from engine.cli.progress import format_bytes, format_count
from engine.cli.setting_argument import add_setting_argument
from engine.client.cluster_client import ClusterClient, JobLine
from engine.client.leader_address import cluster_client
from engine.config.command_line import CommandLine, given_once, install_command_line
from engine.config.loader import load_configuration
from engine.errors import ConfigurationError, EngineError
from engine.ids import JobId
from engine.shown_text import shown, shown_line

_RUNNING = frozenset({"RUNNING", "RESTARTING", "FAILING", "CANCELLING", "RECONCILING"})
_WAITING = frozenset({"INITIALIZING", "CREATED"})
_CANCEL_S = 30.0


def add_cluster_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of every command that asks a JobManager."""
    parser.add_argument("-m", "--master", metavar="HOST:PORT,...", help="JobManager to talk to; default: rest.address")
    add_setting_argument(parser)
    parser.add_argument("--json", action="store_true", help="print the JobManager's answer as JSON")


def asking(
    command: Callable[[argparse.Namespace, ClusterClient], int],
) -> Callable[[argparse.Namespace], int]:
    """Return a command that is given a client."""

    def run(options: argparse.Namespace) -> int:
        install_command_line(CommandLine(given_once(options.options), master=options.master))
        with closing(cluster_client(load_configuration(), _say_waiting)) as client:
            return command(options, client)

    return run


def _say_waiting(reason: str) -> None:
    print(f"Waiting for a leading JobManager: {reason}", file=sys.stderr)


def list_jobs(options: argparse.Namespace, client: ClusterClient) -> int:
    """Print jobs, newest last; jobs that wait for slots in the order in which they get them."""
    query = _query(options)
    if options.json:
        print(json.dumps(client.document(f"/jobs/overview{query}")))
        return 0
    jobs = client.jobs(query)
    waiting = sorted((job for job in jobs if _waits(job)), key=lambda job: job.waiting.place if job.waiting else 0)
    groups = [
        ("Running/restarting jobs", [job for job in jobs if job.state in _RUNNING and not _waits(job)]),
        ("Scheduled/waiting jobs", waiting),
    ]
    if options.running:
        groups = groups[:1]
    elif options.scheduled:
        groups = groups[1:]
    for title, members in groups:
        _print_group(title, members)
    if options.all or options.state or options.since is not None:
        _print_group("Terminated jobs", [job for job in jobs if job.state not in _RUNNING | _WAITING])
    return 0


def _query(options: argparse.Namespace) -> str:
    """Return the query for the jobs that the options choose."""
    chosen = {"name": options.name, "user": options.user, "state": options.state}
    if options.since is not None:
        chosen["since"] = str(int((time.time() - options.since) * 1000))
    words = [f"{key}={quote(text, safe='')}" for key, text in chosen.items() if text is not None]
    return f"?{'&'.join(words)}" if words else ""


def _waits(job: JobLine) -> bool:
    return job.waiting is not None or job.state in _WAITING


def _print_group(title: str, jobs: list[JobLine]) -> None:
    if not jobs:
        print(f"No {title.lower()}.")
        return
    print(f" {title} ".center(66, "-"))
    for job in jobs:
        started = time.strftime("%d.%m.%Y %H:%M:%S", time.localtime(job.start_ms / 1000))
        state = job.state if job.waiting is None else f"WAITING, {job.waiting.text}"
        user = f" of {shown_line(job.user)}" if job.user else ""
        print(f"{started} : {job.job_id} : {shown_line(job.name)}{user} ({shown_line(state)})")
    print("-" * 66)


def show_status(options: argparse.Namespace, client: ClusterClient) -> int:
    """Print a job's state."""
    job_id = parse_job_id(options.job_id)
    if options.json:
        print(json.dumps(client.document(f"/jobs/{job_id}")))
        return 0
    job = client.document(f"/jobs/{job_id}")
    waiting = job.get("waiting")  # an older JobManager does not say
    state = f"WAITING, {waiting['text']}" if waiting else job["state"]
    print(f"Job {job_id} ({shown_line(job['name'])}): {shown_line(state)}, {job['duration']} ms")
    for vertex in job["vertices"]:
        numbers = vertex["metrics"]
        print(
            f"  {shown_line(vertex['name'])}: {vertex['tasks']['FINISHED']}/{vertex['parallelism']} subtasks, "
            f"{format_count(numbers['read-records'])} rows in, {format_count(numbers['write-records'])} out, "
            f"{format_bytes(numbers['spilled-bytes'])} spilled"
        )
    for decision in job["decisions"]:
        print(f"  decided: {shown_line(decision)}")
    if job["state"] not in ("FINISHED", "CANCELED"):  # tasks of a job that is cancelled may fail on their way out
        _print_cause(client.document(f"/jobs/{job_id}/exceptions?maxExceptions=1"))
    return 0


def _print_cause(exceptions: dict[str, Any]) -> None:
    """Print what went wrong last, without its traceback."""
    for each in exceptions["all-exceptions"]:
        place = f"  task: {each['task']} on TaskManager {each['location']}" if each["task"] else ""
        cause = itertools.takewhile(lambda line: not line.startswith("Traceback"), each["exception"].splitlines())
        print(shown("\n".join([*cause, *filter(None, [place])])))


def cancel_job(options: argparse.Namespace, client: ClusterClient) -> int:
    """Cancel a job and wait for its end."""
    job_id = parse_job_id(options.job_id)
    client.cancel(job_id)
    outcome = client.outcome(job_id, _CANCEL_S)
    if outcome is None:
        raise EngineError(f"job {job_id} is being cancelled, but has not ended within {_CANCEL_S:g} s")
    if options.json:
        print(json.dumps({"job_id": job_id.value, "state": outcome.status}))
    else:
        print(f"Job {job_id} has ended: {outcome.status}.")
    return 0 if outcome.status == "CANCELED" else 1


def show_logs(options: argparse.Namespace, client: ClusterClient) -> int:
    """Print the names of a job's log files, or one of them."""
    job_id = parse_job_id(options.job_id)
    if options.file:
        sys.stdout.write(shown(client.text(f"/jobs/{job_id}/logs/{options.file}")))
        return 0
    listing = client.document(f"/jobs/{job_id}/logs")
    if options.json:
        print(json.dumps(listing))
        return 0
    for log in listing["logs"]:
        print(f"{shown_line(log['name'])}  {format_bytes(log['size'])}  {shown_line(log['taskmanager-id'])}")
    if not listing["logs"]:
        print(f"Job {job_id} has left no log files.", file=sys.stderr)
    return 0


def parse_job_id(text: str) -> JobId:
    """Return the job id a person wrote, or raise ConfigurationError."""
    if len(text) != 32 or any(digit not in "0123456789abcdef" for digit in text):
        raise ConfigurationError(f"{text!r} is not a job id: 32 digits 0-9 and a-f, as job list prints them")
    return JobId(text)
