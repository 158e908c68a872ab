"""``--replay-failed-row``: the function that has failed is called with its row again, under Python's debugger.

The debugger stops at the function's first line, and where it fails. It reads the terminal, or what standard input
brings, and ends with it.

Held by: tests/integration/test_replay.py
"""

from __future__ import annotations

import bdb
import pdb
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from engine.errors import ConfigurationError
from engine.functions.failed_row import FAILED_ROWS, FailedRow
from engine.functions.function_error import describe_row
from engine.shown_text import shown, shown_line

_HELP = "n: next line, s: into calls, p NAME: show, c: go on, also to where it fails, q: quit"
#: modules that the debugger steps over
_SKIPPED = ("engine.*", "asyncio.*", "selectors", "contextlib", "threading", "bdb", "pdb")


def want_failed_row(target: str | None) -> None:
    """Keep the row of a failure, or raise an error where that does not work."""
    if target not in (None, "local"):
        raise ConfigurationError(
            f"--replay-failed-row needs the rows in this process: leave -t {target} out, or run a part of the input "
            "embedded"
        )
    FAILED_ROWS.is_wanted = True


def replay_failed_row() -> None:
    """Call the function that has failed with its row under the debugger; say so where there is none."""
    failed = FAILED_ROWS.kept
    if failed is None:
        text = "no row to replay: none is kept but of map, flat_map, filter and udf"
    elif failed.operator.broadcasts:
        text = f"no replay: {failed.operator.function_name} reads broadcast data sets, which are not kept"
    else:
        _replay(failed)
        return
    print(shown(text), file=sys.stderr)


def _replay(failed: FailedRow) -> None:
    print(shown(f"{failed.operator.function_name} is called again with {describe_row(failed.row)}"), flush=True)
    print(f"({_HELP})", flush=True)
    try:
        value = failed.replayed(_debugged)
    except bdb.BdbQuit:
        print("the debugger was left", flush=True)
    except Exception as error:
        sys.stdout.write(shown("".join(traceback.format_exception_only(error))))
        _look_at(error)
    else:
        print(f"returned {shown_line(describe_row(value))}", flush=True)


def _debugged(call: Callable[[], Any]) -> Any:
    made: list[Any] = []
    pdb.Pdb(skip=_SKIPPED, nosigint=True).runcall(lambda: made.append(call()))
    if not made:
        raise bdb.BdbQuit  # which runcall keeps to itself
    return made[0]


def _look_at(error: BaseException) -> None:
    """Start the debugger at the place of the failure."""
    debugger = pdb.Pdb(nosigint=True)
    debugger.reset()
    with suppress(bdb.BdbQuit):
        debugger.interaction(None, error.__traceback__)
