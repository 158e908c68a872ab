"""The tree of errors: one class for each kind of failure that callers handle in their own way.

    EngineError
    ├── ConfigurationError      a key, a value, an option of the command line
    │   └── VersionMismatchError  another process has another Drey
    ├── SchemaError             a column, a type, an expression over them
    ├── PlanError               a plan that cannot be run as written (an output that exists, a missing sink)
    ├── NotYetSupportedError    named in the contract, not built
    ├── FencedError             a message or write of an older leader
    ├── JobNotFoundError        an unknown job id
    ├── LogNotFoundError        a name that no log file has
    ├── IllegalTransitionError  a state machine was asked for a move its table does not have
    ├── SegmentBoundsError      an access outside of a memory segment
    ├── MemoryLeakError         a memory manager was closed while owners held pages
    ├── ResourceError           retried: lost processes, partitions, connections, disks
    │   ├── DiskFullError  SpillError  CorruptBlockError
    │   ├── PartitionNotFoundError  PartitionReleasedError  PartitionConnectionError  ProducerFailedError
    │   └── SlotTimeoutError  MachineLimitError
    ├── JobStalledError         each of a job's tasks waits for another one
    └── JobExecutionError       what env.execute() raises; str() is the report a person reads
        ├── DataError           file, line, column, row of bad input
        ├── MemoryBudgetError   an owner asked for more than its budget
        └── JobCancelledError

``retryable`` says whether a new attempt may help; fail-over branches on it. What user code, data, schema or
configuration cause is never retried. Errors keep their fields; the text is made when it is shown.

Held by: tests/client/test_retryable_errors.py
Held by: tests/client/test_failure_text.py
"""

from __future__ import annotations

import os
from typing import ClassVar, Final

#: largest number of lines of an error that is shown
LINES_MAX: Final = 15
#: largest number of frames of the user's program shown with an error, two lines each
_FRAMES_MAX: Final = 3


class EngineError(Exception):
    """Base of every error that the engine raises on purpose.

    What to do: catch it where a program treats all errors of Drey alike.
    """

    #: True if a new attempt of the same work may succeed
    retryable: ClassVar[bool] = False
    #: lines of what the error is about, shown below its text
    excerpt: str = ""

    def _render_traceback_(self) -> list[str]:
        """Return the traceback that notebooks show, at most 15 lines: the text, and the last lines of the user's code.

        A notebook asks for it by this name, and scripts print it (``engine.api.uncaught_errors``). How the engine came
        to raise it says nothing to the author of the program; ``traceback.print_exception`` has it all.
        """
        import traceback

        others = (__file__.removesuffix("errors.py"), f"{os.sep}IPython{os.sep}", "<frozen ", f"{os.sep}runpy.py")
        frames = [
            frame
            for frame in traceback.extract_tb(self.__traceback__)
            if not frame.filename.startswith(others[0]) and not any(part in frame.filename for part in others[1:])
        ]
        # Of packages that a program uses none is shown beside the program itself.
        frames = [frame for frame in frames if "site-packages" not in frame.filename] or frames
        lines = self.shown().splitlines()
        count = max(1, min(_FRAMES_MAX, (LINES_MAX - len(lines)) // 2))
        places = []
        for frame in frames[-count:]:
            places.append(f'  File "{frame.filename}", line {frame.lineno}, in {frame.name}')
            places += [f"    {frame.line}"] if frame.line else []
        return [*lines[: LINES_MAX - len(places)], *places]

    def shown(self) -> str:
        """Return the text as a person reads it, which begins with the kind of the error, and the excerpt."""
        return "\n".join([f"{type(self).__name__}: {self}", *self.excerpt.splitlines()])


class ConfigurationError(EngineError, ValueError):
    """A configuration key or value, or a command line option, is wrong.

    What to do: correct the key or value that the error names; ``flink-run config show --describe`` lists all keys
    with their values and the places that set them.
    """


class VersionMismatchError(ConfigurationError):
    """Another process runs another version of Drey, or one with other messages.

    What to do: install one version of Drey on all machines, and start the older processes again.
    """


class SchemaError(EngineError, TypeError):
    """A column is missing, a type does not fit, or an expression has none.

    What to do: compare the names and types in the error with ``data.schema``; ``cast`` converts a column.
    """


class PlanError(EngineError, ValueError):
    """The plan cannot be run as it is written.

    What to do: change the call that the error names, such as an output that exists: another path, ``overwrite=True``.
    """


class NotYetSupportedError(EngineError, NotImplementedError):
    """Drey does not have this yet. The error names it, and often what to write instead.

    What to do: write what the error names instead, or leave the option out.
    """

    _SAYS: ClassVar = " is not supported yet"

    def __init__(self, what: str) -> None:
        name, advice = _before_semicolon(what)
        super().__init__(what if self._SAYS in what else f"{name}{self._SAYS}{advice}")


def _before_semicolon(text: str) -> tuple[str, str]:
    """Split a text at its first semicolon outside quotes and parentheses."""
    end = text.find("; ")
    while end >= 0 and (text.count("'", 0, end) % 2 or text.count("(", 0, end) > text.count(")", 0, end)):
        end = text.find("; ", end + 1)
    return (text, "") if end < 0 else (text[:end], text[end:])


class FencedError(EngineError):
    """A message carries another leader's epoch than the one in force.

    What to do: nothing. A process that was the leader goes on after another one took over; the job continues there.
    """

    def __init__(self, expected: int, received: int) -> None:
        super().__init__(f"fenced: the epoch in force is {expected}, the message carries {received}")
        self.expected = expected
        self.received = received


class JobNotFoundError(EngineError):
    """No job has that id.

    What to do: look for the id with ``flink-run job list -a``; a cluster forgets the oldest of its finished jobs.
    """


class LogNotFoundError(EngineError):
    """No log file has that name, or it is not one that may be read.

    What to do: look for the name with ``flink-run job logs ID``.
    """


class IllegalTransitionError(EngineError):
    """A state machine was asked for a move that its table does not have.

    What to do: report it with its text: it is a defect of Drey.
    """


class SegmentBoundsError(EngineError, IndexError):
    """An access to a memory segment lies outside of it.

    What to do: report it with its text: it is a defect of Drey.
    """

    def __init__(self, offset: int, count: int, size: int) -> None:
        super().__init__(f"{count} bytes at offset {offset} of a memory segment of {size} bytes")
        self.offset = offset
        self.count = count
        self.size = size


class MemoryLeakError(EngineError):
    """A memory manager was closed while owners held pages, or after some were lost.

    What to do: report it with its text: it is a defect of Drey.
    """

    def __init__(self, report: list[str]) -> None:
        super().__init__("memory pages were not given back: " + "; ".join(report))
        self.report = report


class TaskCancelledError(EngineError):
    """A wait inside a task ended because the task is being cancelled; nothing is wrong with the task itself.

    What to do: nothing. It ends threads of a job that was cancelled or has failed elsewhere.
    """


class ResourceError(EngineError):
    """A process, partition, connection or disk was lost; a new attempt may help.

    What to do: nothing at first: the task runs again. If every attempt fails, read the log of the process in its text.
    """

    retryable = True
    #: the ResultPartitionId that was being read, once the input gate has said so
    partition: object = None


class SpillError(ResourceError, OSError):
    """Reading or writing a spill file failed; ``path`` names it.

    What to do: check the folder that is named, which is one of ``io.tmp.dirs``.
    """


class DiskFullError(SpillError):
    """No spill directory has room for a block.

    What to do: free space, or set ``io.tmp.dirs`` to folders with more room.
    """


class CorruptBlockError(SpillError):
    """A block's checksum, identity or length is wrong; path and offset are in the text.

    What to do: nothing at first: the task runs again. If it is repeated on one machine, check its disk and memory.
    """


class PartitionNotFoundError(ResourceError):
    """The requested result partition is not registered here (not yet, or no more).

    What to do: nothing: the task that made the rows runs again.
    """


class PartitionReleasedError(ResourceError):
    """The result partition has been released and cannot be read or written.

    What to do: nothing: the task that made the rows runs again.
    """


class PartitionConnectionError(ResourceError):
    """The connection to the TaskManager that holds a result partition failed, or brought damaged data.

    What to do: nothing at first: the task runs again. If it is repeated, check the machine and the network.
    """


class ProducerFailedError(ResourceError):
    """The producer of a result partition failed while it was being read; its own error is the cause.

    Retryable: nothing is wrong with the consumer. The producer's own report decides whether the job is.

    What to do: read the error of the producer, which the report of the job has.
    """


class MachineLimitError(ResourceError):
    """A machine gives a process no more files, processes, threads or memory; another machine may.

    What to do: raise the limit that is named, such as ``ulimit -n``, or use fewer slots on the machine.
    """


class SlotTimeoutError(ResourceError):
    """A pipelined region could not get all its slots in time.

    What to do: start a TaskManager, lower the parallelism, or set ``execution.mode: BATCH``.
    """


class JobStalledError(EngineError):
    """All tasks of a job have waited for each other for too long; not retried: it is a defect, and would be again.

    What to do: report it with its text: it is a defect of Drey. With ``execution.mode: BATCH`` the job may succeed.
    """


class LimitExceededError(EngineError):
    """A job takes more than it may: time, slots, memory, disk, or bytes of a result; not retried.

    What to do: raise the limit that the error names by its key, or read less.
    """


class JobExecutionError(EngineError):
    """A job failed.

    ``str()`` begins with type and message of the root cause, of a subclass, which is that type, with the message; then
    come the user's function with file and line, the row, the task and its TaskManager; at most 15 lines. ``details``
    holds the rest (the whole traceback).

    What to do: read the first line, which is the cause, and the place below it.
    """

    def __init__(self, message: str, *, details: str = "", job_id: str | None = None) -> None:
        super().__init__(message)
        self.details = details
        self.job_id = job_id

    def shown(self) -> str:
        """Return the text, which begins with the type of the root cause: that of a failed job does so by itself."""
        is_told = type(self) is JobExecutionError and self.job_id is not None
        return str(self) if is_told else super().shown()


class DataError(JobExecutionError, ValueError):
    """Input data is wrong: file, line, column and row are in the text.

    What to do: correct the row that is named, or read bad rows apart with ``on_bad_row``; ``try_cast`` makes them null.
    """


class MemoryBudgetError(JobExecutionError, MemoryError):
    """An owner asked for more memory than its budget allows.

    What to do: set the key that the error names to the size that it names.
    """


class JobCancelledError(JobExecutionError):
    """The job was cancelled.

    What to do: nothing: the user, a signal or another program asked for it. No output was published.
    """

    def shown(self) -> str:
        """Return the text, which says how the job ended."""
        return str(self)


class DreyWarning(UserWarning):
    """A likely mistake in a program or its input; the program goes on (``engine.user_warnings``).

    What to do: change what the text names; ``warnings.filterwarnings`` hides a warning, or makes it an error.
    """
