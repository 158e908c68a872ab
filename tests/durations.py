"""What share of a run each folder of tests takes: kept in tests/durations.json, and told where it has grown.

Seconds differ from machine to machine, shares of the same run hardly do. A run that takes a whole tier (tests/tiers.py)
ends with the folders whose share is far above the one that is kept, and with single tests that a quick run is too short
for. ``make durations`` fails where there is one; ``make durations RECORD=1`` keeps the shares of its own run instead.

    {"quick": {"aggregate": 2.1, ...},     percent of the seconds of all tests of the run, those of each process added
     "rest":  {...}}
"""

import json
from collections import Counter
from pathlib import Path

import pytest

from tests import tiers

FILE = Path(__file__).with_name("durations.json")
#: a share may differ by a half and by a hundredth of the run: machines, and what runs beside the tests, differ as well
TIMES, POINTS = 1.5, 1.0
#: percent of a quick run that a single test may take
LONGEST = 4.0


def add_options(parser):
    """Add ``--shares``."""
    parser.getgroup("tiers").addoption(
        "--shares", choices=("hold", "record"), help="hold the shares of tests/durations.json, or keep this run's there"
    )


def run_of(config):
    """Return the name of the whole run that the command line asks for, or None."""
    options = config.option
    if tiers.is_named(config) or options.all or options.keyword or options.markexpr or options.collectonly:
        return None
    return "rest" if options.rest else "quick"


def shares(seconds):
    """Return percents of the sum."""
    total = sum(seconds.values()) or 1.0
    return {name: 100 * spent / total for name, spent in sorted(seconds.items())}


def grown(found, kept):
    """Return lines for folders that take much more of the run than they took; a folder that is new has no share yet."""
    return [
        f"tests/{name}: {share:.1f} % of the run, {kept.get(name, 0.0):.1f} % before"
        for name, share in found.items()
        if share > TIMES * kept.get(name, 0.0) + POINTS
    ]


def too_long(seconds):
    """Return lines for single tests that take more than a quick run has for one."""
    return [
        f"{test}: {share:.1f} % of the run; mark it thorough, or let it do less"
        for test, share in shares(seconds).items()
        if share > LONGEST
    ]


class Durations:
    """Adds up the seconds of a run's tests, in the process that leads it."""

    def __init__(self, run, file=FILE):
        self._run, self._file = run, file
        self._folders, self._tests = Counter(), Counter()

    def pytest_runtest_logreport(self, report):
        """Add what one phase of a test took."""
        parts = report.nodeid.partition("::")[0].split("/")
        self._folders[parts[1] if len(parts) > 2 else "."] += report.duration
        self._tests[report.nodeid] += report.duration

    def complaints(self):
        """Return what has grown."""
        kept = json.loads(self._file.read_text())[self._run] if self._file.exists() else {}
        return grown(shares(self._folders), kept) + (too_long(self._tests) if self._run == "quick" else [])

    def record(self):
        """Keep the shares of this run beside those of the others."""
        kept = json.loads(self._file.read_text()) if self._file.exists() else {}
        kept[self._run] = {name: round(share, 1) for name, share in shares(self._folders).items()}
        self._file.write_text(json.dumps(kept, indent=2) + "\n")

    def pytest_sessionfinish(self, session):
        """Keep or hold the shares where the command line says so."""
        wish = session.config.option.shares
        if wish == "record":
            self.record()
        elif wish == "hold" and self.complaints() and session.exitstatus == 0:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter):
        """Tell what has grown."""
        lines = self.complaints()
        if lines:
            terminalreporter.section("more of the run than before (tests/durations.json)")
            terminalreporter.write_line("\n".join(lines))


def register(config):
    """Count in the process that leads a whole run."""
    run = run_of(config)
    if run is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Durations(run), "drey-durations")
