"""Warnings to the author of a program, which goes on: one category, one way, on standard error.

    warn_user("read_csv('a.csv'): the first row looks like names; pass header=True if it is a header")
    job.py:7: DreyWarning: read_csv('a.csv'): the first row ...

It is Python's own mechanism (``warnings``), so ``-W error::engine.DreyWarning`` makes an error of it, ``-W ignore``
silences it, and a line of a program that runs in a loop is told once. The place that is named is the line of the
program that called the engine, not one of the engine's. A text begins with the cause and says what to do.

Held by: tests/column_expressions/test_python_habits.py
"""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from engine.errors import DreyWarning

_OWN = __name__.partition(".")[0]
_EXAMPLES = f"{_OWN}.examples"
_OWN_FILES = f"{Path(__file__).parent}{os.sep}"
_FILES_OF_EXAMPLES = f"{_OWN_FILES}examples{os.sep}"


#: limit of callers examined where each expression asks
_NEAR_MAX = 8
#: files of the engine that were callers: to look at their paths again takes as long as the rest of the search
_known_files: set[str] = set()


class Place(NamedTuple):
    """A line of a program."""

    file: str
    line: int


def _calling_frame() -> FrameType | None:
    """Return the innermost frame that is not the engine's own, None in a thread of the engine."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if module.partition(".")[0] != _OWN or module.startswith(_EXAMPLES):
            return frame
        frame = frame.f_back
    return None


def near_place() -> Place | None:
    """Return the line of the program that called the engine; None where it is not among the nearest callers."""
    frame: FrameType | None = sys._getframe(1)
    for _ in range(_NEAR_MAX):
        if frame is None:
            return None
        file = frame.f_code.co_filename
        if file not in _known_files:
            if not file.startswith(_OWN_FILES) or file.startswith(_FILES_OF_EXAMPLES):
                return Place(file, frame.f_lineno)
            _known_files.add(file)
        frame = frame.f_back
    return None


def calling_place() -> Place:
    """Return the line of the program that called the engine."""
    frame = _calling_frame()
    return Place("", 0) if frame is None else Place(frame.f_code.co_filename, frame.f_lineno)


def warn_user(message: str, place: Place | None = None) -> None:
    """Print a warning once for a line of the program: the one that called, or the one that is given."""
    frame = _calling_frame() if place is None else None
    found = place or calling_place()
    registry = None if frame is None else frame.f_globals.setdefault("__warningregistry__", {})
    warnings.warn_explicit(message, DreyWarning, found.file or _OWN, found.line, registry=registry)
