"""Outputs that a program declares and never writes: ``write_csv(...)`` without an ``execute()`` behind it.

    UNWRITTEN.add(spec, place)        write_* was called there
    UNWRITTEN.take(spec)              a job is about to write it
    UNWRITTEN.forget() -> text        the end of the program: what is left, None when nothing is

One list for the process: environments may be closed or gone when a program ends, and what they were asked for still
was not done. A program that ends with an error of its own is not told. ``flink-run`` asks before Python ends and makes
an exit code of it; a program that runs without it is warned.

Held by: tests/api/test_environment.py
"""

from __future__ import annotations

import atexit
import sys

from engine.formats.registry import sink_format_of
from engine.graph.source_spec import SinkSpec
from engine.user_warnings import Place, warn_user


class UnwrittenOutputs:
    """Outputs that wait for a job, with the lines that declared them, in order."""

    def __init__(self) -> None:
        self._waiting: list[tuple[SinkSpec, Place]] = []
        self._is_watched = False

    def add(self, spec: SinkSpec, place: Place) -> None:
        """Take note of an output, and look after it when Python ends."""
        if not self._is_watched:
            self._is_watched = True
            atexit.register(self._warn)
        self._waiting.append((spec, place))

    def take(self, spec: SinkSpec) -> None:
        """Take note that a job is about to write an output; what becomes of it is the job's to say."""
        self._waiting = [each for each in self._waiting if each[0] is not spec]

    def first_place(self) -> Place | None:
        """Return the line that declared the first of them."""
        return self._waiting[0][1] if self._waiting else None

    def forget(self) -> str | None:
        """Return a sentence about unwritten outputs that says what to do, once; None if there are none."""
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return None
        spec, place = waiting[0]
        more = f" and {len(waiting) - 1} more" if len(waiting) > 1 else ""
        call = sink_format_of(spec).call
        where = f" ({place.file}, line {place.line})" if place.file else ""
        return (
            f"nothing was written to {spec.path}{more}: {call}{where} only declares an output, and no"
            " env.execute() came after it; call env.execute() at the end of the program"
        )

    def _warn(self) -> None:
        place = self.first_place()
        text = self.forget()
        if text is not None and not hasattr(sys, "last_value"):
            warn_user(text, place)


#: unwritten outputs of this process
UNWRITTEN = UnwrittenOutputs()
