"""ProcessMeter: the metrics of one process, those that every process has and those of its own parts.

    meter = ProcessMeter() ─► add(source) for each part that has numbers ─► read() -> {"Status.Disk.Free./data": 4.2e9}

A source is a function without arguments, called for each reading on the event loop, so it is quick and waits for
nothing. A name with a changing part, such as a folder, has it at its end. A part that goes away may raise: what it
cannot tell is left out.

Held by: tests/rest/test_process_meter.py
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from engine.insight.process_metrics import process_metrics

_log = logging.getLogger(__name__)

Source = Callable[[], Mapping[str, float]]


class ProcessMeter:
    """The sources of one process. Thread: the event loop."""

    def __init__(self, *sources: Source) -> None:
        self._sources = [process_metrics, *sources]
        #: sources that have failed, each of which is told once
        self._told: set[Source] = set()

    def add(self, source: Source) -> None:
        """Add the numbers of a part."""
        self._sources.append(source)

    def read(self) -> dict[str, float]:
        """Return the numbers of this moment by name."""
        values: dict[str, float] = {}
        for source in self._sources:
            try:
                values.update(source())
            except Exception:  # whatever is wrong with one number is nothing to the others
                if source not in self._told:
                    self._told.add(source)
                    _log.exception("metrics of a part of this process are missing")
        return values
