"""TaskTotals: what the attempts of a TaskExecutor have done altogether, for metrics.

    note(report) at the end of an attempt ─► metrics(counters of those that run) -> {"Status.Tasks.SpilledBytes": ...}

Sums never fall: an attempt's last counters take the place of its running ones at the moment of its end.

Held by: tests/taskexecutor/test_task_totals.py
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from engine.graph.deployment import TaskCounters, TaskReport, store_totals

ENDED: Final = "Status.Tasks.Ended."
STORE_REQUESTS: Final = "Status.Store.Requests."
STORE_READ: Final = "Status.Store.BytesRead."
STORE_WRITTEN: Final = "Status.Store.BytesWritten."
#: names of sums by the field of TaskCounters
_SUMS = {
    "rows_in": "Status.Tasks.RowsIn",
    "rows_out": "Status.Tasks.RowsOut",
    "bytes_in": "Status.Tasks.BytesIn",
    "bytes_out": "Status.Tasks.BytesOut",
    "spilled_bytes": "Status.Tasks.SpilledBytes",
    "stored_bytes": "Status.Tasks.StoredBytes",
}
_FUNCTION_TIME = "Status.Tasks.FunctionTime"


class TaskTotals:
    """Sums of one TaskExecutor. Thread: the event loop."""

    def __init__(self) -> None:
        self._ended: Counter[str] = Counter()
        self._sums: Counter[str] = Counter()
        self._stores: dict[str, tuple[int, int, int]] = {}

    def note(self, report: TaskReport) -> None:
        """Add an attempt that has ended."""
        self._ended[report.state] += 1
        _add(self._sums, report.counters)
        self._stores = store_totals((self._stores, report.counters.stores))

    def metrics(self, running: Iterable[TaskCounters]) -> dict[str, float]:
        """Return the sums over attempts that have ended and those that run."""
        live = tuple(running)
        sums = Counter(self._sums)
        for counters in live:
            _add(sums, counters)
        values = {name: float(sums[name]) for name in _SUMS.values()}
        values[_FUNCTION_TIME] = sums[_FUNCTION_TIME] / 1e6
        values["Status.Tasks.Running"] = float(len(live))
        for state in ("FINISHED", "FAILED", "CANCELED"):
            values[f"{ENDED}{state}"] = float(self._ended[state])
        stores = store_totals((self._stores, *(counters.stores for counters in live)))
        for store, (requests, read, written) in stores.items():
            values |= {
                f"{STORE_REQUESTS}{store}": float(requests),
                f"{STORE_READ}{store}": float(read),
                f"{STORE_WRITTEN}{store}": float(written),
            }
        return values


def _add(sums: Counter[str], counters: TaskCounters) -> None:
    for field, name in _SUMS.items():
        sums[name] += getattr(counters, field)
    for each in counters.operators:
        sums[_FUNCTION_TIME] += each.function_us
