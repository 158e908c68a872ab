"""A job's profile as one page: ``flink-run job report ID -o report.html``; with ``--json`` the profile itself.

The page is a file that needs nothing else: no network, no script. It is made here of what the JobManager, or the
history server, knows of a job that runs or has ended.

Held by: tests/cli/test_job_report.py
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import msgspec

from engine.cli.cluster_jobs import parse_job_id
from engine.client.cluster_client import ClusterClient
from engine.errors import ConfigurationError
from engine.profile.profile_page import profile_page
from engine.shown_text import shown


def write_report(options: argparse.Namespace, client: ClusterClient) -> int:
    """Write the page of a job to a file, or print it; say the cause."""
    profile = client.profile(parse_job_id(options.job_id))
    text = msgspec.json.encode(profile).decode() + "\n" if options.json else profile_page(profile)
    if not options.output:
        sys.stdout.write(text)
        return 0
    try:
        Path(options.output).write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"-o {options.output}: {error.strerror}") from error
    for cause in profile.causes[:1]:
        print(shown(cause.text), file=sys.stderr)
    print(f"The {'profile' if options.json else 'page'} of the job is in {options.output}.", file=sys.stderr)
    return 0
