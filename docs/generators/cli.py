"""Writes reference/cli.md: what ``--help`` of every command says."""

import argparse
import os
from collections.abc import Iterator

import mkdocs_gen_files

os.environ["COLUMNS"] = "100"  # as wide as a page; argparse asks for it when it formats

from engine.cli.main import build_parser as flink_run
from engine.cli.quickstart import build_parser as quickstart
from engine.spark.export_command import build_parser as spark_export

_SCRIPTS = (
    ("start-cluster.sh", "[-D key=value]...", "start a JobManager and a TaskManager for each line of `conf/workers`"),
    ("stop-cluster.sh", "", "stop what `start-cluster.sh` started"),
    ("jobmanager.sh", "(start|start-foreground) [host [port]] | stop | stop-all", "one JobManager on this machine"),
    ("taskmanager.sh", "(start|start-foreground) | stop | stop-all", "one TaskManager on this machine"),
    ("historyserver.sh", "(start|start-foreground) | stop | stop-all", "pages of ended jobs, without a cluster"),
    ("standalone-job.sh", "(start|start-foreground) JOB.py [args] | stop | stop-all", "a cluster for one job"),
    ("probe.sh", "(jobmanager|taskmanager|historyserver|any) [alive|ready]", "health of a process of this machine"),
    ("zookeeper.sh", "(start|start-foreground) N | stop | stop-all", "server N of `conf/zoo.cfg`"),
    ("start-zookeeper-quorum.sh", "", "every server of `conf/zoo.cfg`"),
    ("stop-zookeeper-quorum.sh", "", "stop them"),
    ("make-certificates.sh", "FOLDER [HOST...]", "an authority and a certificate for `security.ssl.enabled`"),
)


def _commands(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Yield a parser and those of its commands, in their order."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                yield from _commands(child)


def _page() -> str:
    lines = ["# Command line", "", "What each command says with `--help`. In a checkout they are in `bin/`.", ""]
    for parser in (flink_run(), quickstart(), spark_export()):
        for command in _commands(parser):
            lines += [f"## {command.prog}", "", "```text", command.format_help().rstrip(), "```", ""]
    lines += ["## Scripts of a cluster", "", "Each ends with 0 when what it was asked for is there.", ""]
    lines += ["| script | words | what it does |", "|---|---|---|"]
    for name, words, text in _SCRIPTS:
        shown = f"`{words}`" if words else ""
        lines.append(f"| `{name}` | {shown} | {text} |")
    return "\n".join(lines) + "\n"


with mkdocs_gen_files.open("reference/cli.md", "w") as page:
    page.write(_page())
