"""Limits of the operating system for a process: open files, processes and threads, memory.

    raise_descriptor_limit()              at the start of a process: as many open files as its user may have
    machine_limit(error)                  whether an error comes from such a limit: a MachineLimitError, or None
    no_process(error, doing)              the same of a process that could not be started

Such an error says nothing about what was being done, and a task on another machine may not meet it. So it is known by
the reason at the end of its chain, whatever was raised from that: an error of a spill file, of a connection, of a
source.

Held by: tests/test_machine_limits.py
"""

from __future__ import annotations

import contextlib
import errno
import logging
import resource
from typing import Final

from engine.errors import MachineLimitError

_LOG = logging.getLogger(__name__)
#: open files that a process asks for, and those below which it warns
DESCRIPTORS_WANTED: Final = 65_536
DESCRIPTORS_FEW: Final = 4_096
#: errno of a process or thread that could not be started; of a socket it means something else
_NO_PROCESS: Final = errno.EAGAIN
_NO_THREAD: Final = "can't start new thread"


def raise_descriptor_limit() -> None:
    """Have this process open as many files as it may, up to DESCRIPTORS_WANTED; warn where those are few."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return
    wanted = DESCRIPTORS_WANTED if hard == resource.RLIM_INFINITY else min(hard, DESCRIPTORS_WANTED)
    if soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            _LOG.info("this process may have %d open files: the limit was %d", wanted, soft)
            soft = wanted
    if soft < DESCRIPTORS_FEW:
        _LOG.warning(
            "this process may have no more than %d open files, and its user cannot raise that; %d and more are better: "
            "raise the hard limit (ulimit -Hn, limits.conf, LimitNOFILE= of a systemd unit)",
            soft,
            DESCRIPTORS_FEW,
        )


def machine_limit(error: BaseException) -> MachineLimitError | None:
    """Return the MachineLimitError behind an error, None where it has another cause.

    Args: error: whose chain of causes is followed to its end.
    """
    first, last, passed = error, error, {id(error)}
    while (cause := last.__cause__) is not None and id(cause) not in passed:
        last = cause
        passed.add(id(last))
    if isinstance(first, MachineLimitError):
        return first
    advice = _advice(last)
    return None if advice is None else MachineLimitError(f"{first}; {advice}")


def no_process(error: Exception, doing: str) -> MachineLimitError | None:
    """Return the limit that kept a process or thread from starting, None where the cause is another.

    Args: doing: what could not be done.
    """
    is_full = isinstance(error, OSError) and error.errno == _NO_PROCESS
    advice = _of_processes() if is_full else _advice(error)
    return None if advice is None else MachineLimitError(f"{doing}: {error}; {advice}")


def _advice(error: BaseException) -> str | None:
    if isinstance(error, RuntimeError):
        return _of_processes() if str(error) == _NO_THREAD else None
    if not isinstance(error, OSError):
        return None
    match error.errno:
        case errno.EMFILE | errno.ETOOMANYREFS:
            most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
            return (
                f"a process may have {most} open files here: raise the limit (ulimit -n, LimitNOFILE= of a systemd "
                "unit) on the machine of this TaskManager, or give it fewer slots"
            )
        case errno.ENFILE:
            return "all processes of this machine together have as many open files as they may: raise fs.file-max"
        case errno.ENOMEM | errno.ENOBUFS:
            return (
                "this machine, or container, has no memory left: give it more, or lower taskmanager.memory.process.size"
            )
    return None


def _of_processes() -> str:
    most = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    allowed = "as many" if most == resource.RLIM_INFINITY else f"{most}"
    return (
        f"its user may have {allowed} processes and threads here: raise the limit (ulimit -u, TasksMax= of a systemd "
        "unit, pids.max of a container) on the machine of this TaskManager, or give it fewer slots"
    )
