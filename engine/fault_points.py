"""Fault points: named places at which a process may be told to die or to stop, for tests of what survives that.

    debug.fault-point: "sink.decided:kill:/tmp/marker"          reach("sink.decided") ─► marker made ─► SIGKILL
                                                                a marker that is there already: nothing happens

A point acts once, in the first process that reaches it: the marker is created exclusively. Several points are
separated by commas. Without the option ``reach`` is one comparison. Actions are ``kill`` (SIGKILL), ``stop`` (SIGSTOP)
and ``fail`` (InjectedFaultError).

The points, in the order in which a job passes them:

    job.accepted      Dispatcher: the JobMaster has started          task.finishing    before FINISHED is reported
    job.prepared      staging exists, unrecorded                       sink.deciding     before the decision is recorded
    job.scheduled     slots are written down, no task is sent        sink.decided      before anything is published
    task.submitted    TaskExecutor: before the thread starts         sink.published    before the result is recorded
    task.running      in the task's thread                           job.recorded      before anything is given back
    partition.stored  a BLOCKING result is complete                  job.released      before staging is removed
    job.reported      a task has ended, which is not written down    job.ended         before it is forgotten
    job.reattaching   of a recovered job: before it asks             job.reattached    before it goes on
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import NamedTuple

from engine.errors import ConfigurationError, ResourceError

POINTS = (
    "job.accepted",
    "job.prepared",
    "job.scheduled",
    "task.submitted",
    "task.running",
    "partition.stored",
    "task.finishing",
    "sink.deciding",
    "sink.decided",
    "sink.published",
    "job.recorded",
    "job.released",
    "job.ended",
    "job.reported",
    "job.reattaching",
    "job.reattached",
)
_SIGNALS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}


class InjectedFaultError(ResourceError):
    """A fault point of this process was told to fail."""


class _FaultPoint(NamedTuple):
    action: str
    marker: Path


_armed: dict[str, _FaultPoint] = {}


def arm(text: str) -> None:
    """Arm the points of an option's text for this process; "" disarms all. ConfigurationError for anything else."""
    _armed.clear()
    for part in filter(None, text.split(",")):
        name, _, rest = part.partition(":")
        action, _, marker = rest.partition(":")
        if name not in POINTS or action not in (*_SIGNALS, "fail") or not marker:
            raise ConfigurationError(
                f"debug.fault-point {part!r}: write POINT:kill|stop|fail:MARKER-FILE, a point of {', '.join(POINTS)}"
            )
        _armed[name] = _FaultPoint(action, Path(marker))


def reach(name: str) -> None:
    """Die, stop or fail here if this point is armed and has not acted yet."""
    if not _armed:
        return
    point = _armed.get(name)
    if point is None:
        return
    try:
        with point.marker.open("x") as marker:
            marker.write(f"{name} {os.getpid()}\n")
    except FileExistsError:
        return
    if point.action == "fail":
        raise InjectedFaultError(f"fault point {name}")
    os.kill(os.getpid(), _SIGNALS[point.action])
