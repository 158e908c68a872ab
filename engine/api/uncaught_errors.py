"""Errors that a script does not catch: their text and the lines of the script, instead of the engine's own frames.

    python job.py
    DataError: 10 // a: divide by zero; in a row with a=0
      expression: job.py, line 7: q=10 // col("a"),
      task: arrow source -> project 2 columns -> arrow sink (1/1) on TaskManager 3f89...
      job: job (collect) (f29b...)
      File "job.py", line 10, in <module>
        print(bad.collect())

Python asks ``sys.excepthook`` what to print. A script that has set one keeps it, and other errors are printed as ever.
``client.whole-tracebacks`` leaves all to Python.

Held by: tests/integration/test_uncaught_errors.py
"""

from __future__ import annotations

import sys
from types import TracebackType

from engine.errors import EngineError
from engine.shown_text import shown


def report_uncaught() -> None:
    """Print uncaught errors of the engine in short form, where nothing else prints them."""
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = _print_error


def _print_error(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    if not isinstance(error, EngineError):
        sys.__excepthook__(kind, error, traceback)
        return
    sys.stderr.write(shown("\n".join(error._render_traceback_())) + "\n")
