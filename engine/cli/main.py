"""``bin/flink-run``: the argument tree.

flink-run job submit [options] JOB.py [args]     run a job          (short: flink-run [options] JOB.py [args])
flink-run job info   [options] JOB.py [args]     explain its plan
flink-run job list | status ID | cancel ID | logs ID [FILE] | trace ID [FILE]      jobs of a cluster
flink-run taskmanager list | drain ID | stop ID   processes that run its tasks
flink-run token add NAME --role ROLE | list | remove NAME     users of a cluster
flink-run sql -e QUERY --table NAME=PATH         queries over files
flink-run serve --flight-sql PORT                a server of Flight SQL for tools
flink-run mcp --table NAME=PATH                  tables for an agent, on standard input and output
flink-run config show                            effective settings
flink-run config copy FOLDER                     files of conf: systemd, Kubernetes, Helm, Grafana, Prometheus
flink-run docs [PAGE]                            the documentation, in a browser
flink-run --print-completion bash                completion of commands and options for a shell
flink-run ha gc [--delete]                       what a cluster has stored and no job needs any more
flink-run ha backup FILE | restore FILE          the state of a cluster as one file
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn, TypeAlias

from engine import __version__
from engine.cli.agent_server import add_mcp_arguments, serve_agent
from engine.cli.cluster_jobs import add_cluster_arguments, asking, cancel_job, list_jobs, show_logs, show_status
from engine.cli.config_show import copy_config, show_config
from engine.cli.docs import open_docs
from engine.cli.job_report import write_report
from engine.cli.job_trace import write_trace
from engine.cli.run_script import report_error
from engine.cli.serve import add_serve_arguments, serve
from engine.cli.setting_argument import run_with_settings
from engine.cli.sql_statements import add_sql_arguments
from engine.cli.submit import add_script_arguments, submit
from engine.cli.task_managers import drain_task_manager, list_task_managers, stop_task_manager
from engine.cli.tokens import add_token, list_tokens, remove_token
from engine.config.durations import parse_duration_ms
from engine.errors import EngineError
from engine.near_names import did_you_mean
from engine.python_command import drop_current_folder

#: the actions of a group of commands
_Actions: TypeAlias = "argparse._SubParsersAction[Parser]"


class Parser(argparse.ArgumentParser):
    """A parser that prints what is wrong and exits with 1, the code of all failures."""

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse; words that no action knows are an error of that action, with its usage."""
        found, unknown = super().parse_known_args(args, namespace)
        if unknown and self._subparsers is None:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown

    def error(self, message: str) -> NoReturn:
        """Print usage and message."""
        self.print_usage(sys.stderr)
        self.exit(1, f"{self.prog}: error: {message}{_near_choice(message)}\n")


def _near_choice(message: str) -> str:
    """Return a hint for a word that is nearly one of those that argparse has listed."""
    if "invalid choice" not in message:
        return ""
    given, *choices = re.findall(r"'([^']*)'", message)
    return did_you_mean(given, choices)


def _add_gc_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--delete", action="store_true", help="remove what is listed; otherwise nothing is changed")
    parser.add_argument(
        "--older-than",
        metavar="AGE",
        type=_age_s,
        default=600.0,
        help="leave alone what was changed within this time: 30 s, 2 h (default: 10 min)",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.add_argument(
        "outputs",
        nargs="*",
        metavar="FOLDER",
        help="folders, or prefixes of stores, in which outputs are: also look for what jobs left of them",
    )


def _age_s(text: str) -> float:
    if text.strip().replace(".", "", 1).isdigit():
        raise argparse.ArgumentTypeError(f"{text} has no unit: write {text.strip()} s, {text.strip()} min")
    try:
        return parse_duration_ms(text) / 1000
    except EngineError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _run_info(options: argparse.Namespace) -> int:
    from engine.cli.info import info

    return info(options)


def _run_sql(options: argparse.Namespace) -> int:
    from engine.cli.sql_statements import run_sql

    return run_sql(options)


def _run_gc(options: argparse.Namespace) -> int:
    from engine.cli.ha_gc import collect_garbage

    return collect_garbage(options)


def _run_backup(options: argparse.Namespace) -> int:
    from engine.cli.ha_backup import back_up

    return back_up(options)


def _run_restore(options: argparse.Namespace) -> int:
    from engine.cli.ha_backup import restore_backup

    return restore_backup(options)


def build_parser() -> Parser:
    """Return the argument tree."""
    parser = Parser(
        prog="drey" if Path(sys.argv[0]).name == "drey" else "flink-run",
        description="Run and inspect Drey jobs.",
        epilog="%(prog)s [options] JOB.py [args] is short for %(prog)s job submit [options] JOB.py [args]",
    )
    parser.add_argument("--version", action="version", version=f"Drey {__version__}")
    parser.add_argument(
        "--print-completion", choices=("bash", "zsh", "tcsh"), help="print the completion script of a shell"
    )
    groups = parser.add_subparsers(title="commands", metavar="COMMAND")

    jobs = groups.add_parser("job", help="submit, explain, list, follow and cancel jobs").add_subparsers(
        title="actions", metavar="ACTION", required=True
    )
    _add_script_commands(jobs)
    _add_cluster_commands(jobs)

    _add_task_manager_commands(groups)
    _add_token_commands(groups)

    querying = _add_action(groups, "sql", "run SQL statements over files and show their rows")
    querying.add_argument(
        "-m", "--master", metavar="HOST:PORT,...", help="JobManager to talk to (cluster); master's URL (spark)"
    )
    querying.add_argument("--remote", metavar="sc://HOST:PORT", help="server of Spark Connect (spark)")
    add_sql_arguments(querying)
    querying.set_defaults(run=_run_sql)

    serving = _add_action(groups, "serve", "serve tools over Flight SQL")
    serving.add_argument("-m", "--master", metavar="HOST:PORT,...", help="JobManager to talk to (cluster)")
    add_serve_arguments(serving)
    serving.set_defaults(run=serve)

    agents = _add_action(groups, "mcp", "serve tables to an agent over the Model Context Protocol")
    agents.add_argument("-m", "--master", metavar="HOST:PORT,...", help="JobManager to talk to (cluster)")
    add_mcp_arguments(agents)
    agents.set_defaults(run=serve_agent)

    settings = groups.add_parser("config", help="show settings and where they come from").add_subparsers(
        title="actions", metavar="ACTION", required=True
    )
    showing = _add_action(settings, "show", "show the effective value of every key and where it comes from")
    showing.add_argument("--describe", action="store_true", help="describe each key")
    run_with_settings(showing, show_config)
    copying = _add_action(settings, "copy", "copy config.yaml, units, manifests, chart, board and rules into a folder")
    copying.add_argument("folder", metavar="FOLDER", help="folder that is not there yet")
    copying.set_defaults(run=copy_config)

    reading = _add_action(groups, "docs", "open the documentation, which needs no network")
    reading.add_argument("page", nargs="?", default="index", metavar="PAGE", help="such as reference/api or cookbook")
    reading.add_argument("--path", action="store_true", help="print the path of the page, and open nothing")
    reading.set_defaults(run=open_docs)

    _add_ha_commands(groups)
    return parser


def _add_ha_commands(groups: _Actions) -> None:
    high_availability = groups.add_parser(
        "ha", help="clean up, back up and restore what JobManagers store"
    ).add_subparsers(title="actions", metavar="ACTION", required=True)
    collecting = high_availability.add_parser(
        "gc",
        help="list and remove stored files that no job needs any more",
        description="List stored files that no job of a cluster needs any more: files of jobs that no handle in "
        "ZooKeeper names, handles whose files are missing, staging folders of ended jobs. It may run "
        "while the cluster runs.",
    )
    _add_gc_arguments(collecting)
    run_with_settings(collecting, _run_gc)
    for action, text, command in (
        ("backup", "write handles, files of jobs and history to a file; the cluster may run", _run_backup),
        ("restore", "restore such a file where no JobManager leads", _run_restore),
    ):
        acting = _add_action(high_availability, action, text)
        acting.add_argument("file", metavar="FILE", help="the backup")
        acting.add_argument("--json", action="store_true", help="one JSON object on standard output")
        run_with_settings(acting, command)


def _add_action(actions: _Actions, name: str, text: str) -> Parser:
    """Add a command that says of itself what the list of commands says of it."""
    return actions.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")


def _add_script_commands(jobs: _Actions) -> None:
    """Add the commands that run a script."""
    submitting = _add_action(jobs, "submit", "run a job and follow it to its end")
    submitting.add_argument(
        "-d",
        "--detached",
        action="store_true",
        help="return as soon as the jobs that write outputs are accepted; rows that the script reads itself, with "
        "collect and the like, are waited for (cluster)",
    )
    submitting.add_argument(
        "-m", "--master", metavar="HOST:PORT,...", help="JobManager to talk to (cluster); master's URL (spark)"
    )
    submitting.add_argument("--remote", metavar="sc://HOST:PORT", help="server of Spark Connect (spark)")
    submitting.add_argument("--json", action="store_true", help="one JSON object on standard output")
    submitting.add_argument(
        "--replay-failed-row",
        action="store_true",
        help="when a function fails at a row, call it with that row again under pdb (embedded)",
    )
    add_script_arguments(submitting)
    submitting.set_defaults(run=submit)
    explaining = _add_action(jobs, "info", "explain the plan of a job, without running it")
    explaining.add_argument("--short", action="store_true", help="only the decisions, in at most three lines")
    add_script_arguments(explaining)
    explaining.set_defaults(run=_run_info)


def _add_cluster_commands(jobs: _Actions) -> None:
    """Add the commands that ask a cluster for its jobs."""
    listing = _add_action(jobs, "list", "list the jobs of a cluster that have not ended")
    for flag, name, text in (
        ("-a", "all", "also those that have ended"),
        ("-r", "running", "running jobs only"),
        ("-s", "scheduled", "waiting jobs only"),
    ):
        listing.add_argument(flag, dest=name, action="store_true", help=text)
    listing.add_argument("--name", metavar="TEXT", help="jobs with this in their names")
    listing.add_argument("--user", metavar="NAME", help="jobs of this user")
    listing.add_argument("--state", metavar="STATE,...", help="jobs in one of these states, ended ones too")
    listing.add_argument(
        "--since", metavar="TIME", type=_age_s, help="also jobs that have ended within this time: 30 min, 2 h"
    )
    add_cluster_arguments(listing)
    listing.set_defaults(run=asking(list_jobs))
    for action, text, command in (
        ("status", "show the state of a job and its vertices", show_status),
        ("cancel", "cancel a job and wait for its end", cancel_job),
        ("logs", "list or print the log files of a job's tasks", show_logs),
        ("trace", "write the run of a job as a trace that Perfetto opens", write_trace),
        ("report", "write the profile of a job as one page: what its time went into", write_report),
    ):
        acting = _add_action(jobs, action, text)
        acting.add_argument("job_id", metavar="ID", help="32 digits 0-9 and a-f, as job list prints them")
        if action == "logs":
            acting.add_argument("file", nargs="?", metavar="FILE", help="print this file; without it, list the files")
        if action == "trace":
            acting.add_argument("file", nargs="?", metavar="FILE", help="write it there; default: standard output")
        if action == "report":
            acting.add_argument("-o", "--output", metavar="FILE", help="write it there; default: standard output")
        add_cluster_arguments(acting)
        acting.set_defaults(run=asking(command))


def _add_task_manager_commands(groups: _Actions) -> None:
    """Add the commands about the TaskManagers of a cluster."""
    actions = groups.add_parser("taskmanager", help="list, drain and stop TaskManagers").add_subparsers(
        title="actions", metavar="ACTION", required=True
    )
    listing = _add_action(actions, "list", "list the TaskManagers of a cluster")
    add_cluster_arguments(listing)
    listing.set_defaults(run=asking(list_task_managers))
    for action, text, command in (
        ("drain", "let a TaskManager take no more slots, and end once it is empty", drain_task_manager),
        ("stop", "drain a TaskManager for a limited time, then stop it", stop_task_manager),
    ):
        acting = _add_action(actions, action, text)
        acting.add_argument(
            "taskmanager_id", metavar="ID", help="as taskmanager list prints it; its first digits are enough"
        )
        if action == "drain":
            acting.add_argument("--wait", action="store_true", help="wait for its end")
        else:
            acting.add_argument(
                "--timeout",
                metavar="TIME",
                type=_age_s,
                default=300.0,
                help="time to drain: 30 s, 2 h (default: 5 min)",
            )
        add_cluster_arguments(acting)
        acting.set_defaults(run=asking(command))


def _add_token_commands(groups: _Actions) -> None:
    """Add the commands about the users of a cluster."""
    actions = groups.add_parser("token", help="add, list and remove users with their tokens").add_subparsers(
        title="actions", metavar="ACTION", required=True
    )
    for action, text, command in (
        ("add", "add a user, or give one another token, and print it", add_token),
        ("list", "list users and their roles", list_tokens),
        ("remove", "remove a user, whose token is refused from then on", remove_token),
    ):
        acting = _add_action(actions, action, text)
        if action != "list":
            acting.add_argument("name", metavar="NAME", help="name of the user")
        if action == "add":
            acting.add_argument(
                "--role", choices=("read", "submit", "admin"), required=True, help="what the user may do"
            )
        acting.add_argument("--json", action="store_true", help="one JSON object on standard output")
        run_with_settings(acting, command)


def _is_short_form(word: str) -> bool:
    """Whether a command line leaves ``job submit`` out: it begins with a script, or with an option of a submission."""
    is_own = word.partition("=")[0] in ("-h", "--help", "--version", "--print-completion")
    return word.endswith(".py") or (word.startswith("-") and not is_own)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    drop_current_folder()
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words and _is_short_form(words[0]):
        words = ["job", "submit", *words]
    parser = build_parser()
    options = parser.parse_args(words)
    if options.print_completion:
        import shtab

        script = shtab.complete(parser, options.print_completion)
        # The short form begins with a script, and a script's own arguments may be files.
        print(script.replace("\ncomplete -o ", "\ncomplete -o default -o "))
        return 0
    if not hasattr(options, "run"):
        parser.error("a command is missing: try flink-run job submit JOB.py, or --help")
    try:
        exit_code: int = options.run(options)
        sys.stdout.flush()
    except EngineError as error:
        report_error(error)
        return 1
    except BrokenPipeError:
        # The reader of the output (head, less) has ended. Nothing must be left to be written when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    return exit_code


if __name__ == "__main__":
    sys.exit(main())
