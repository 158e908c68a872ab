"""Log formats: text for people, or one JSON object a line for log collectors.

    line_formatter("text" | "json") -> logging.Formatter
    FIELDS.values                        what this thread works for: {"job": ..., "task": ..., "attempt": ...}
    JsonLines(fields)                    a worker of a task: the same of all of its lines

    {"time": "2026-11-21T10:03:04.123+00:00", "level": "INFO", "logger": "engine.taskexecutor.task", "process": 4711,
     "thread": "sort (1/4)", "message": "...", "job": "5f...", "task": "sort (1/4)", "attempt": "v3-0-1-9c..."}

Ids are those of the task whose thread logs; of other threads those that the line itself names (arguments of the types
of ``engine.ids``). A failure has its traceback as ``error``. Line breaks in texts are escaped: one record is one line.

Thread: any. Source: the JSON layouts of log4j and ECS, of which these are the few fields that everything knows.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

import msgspec

from engine.ids import ExecutionAttemptId, JobId

TEXT_FORMAT = "%(asctime)s %(levelname)-5s %(name)s [%(threadName)s] - %(message)s"
_ID_FIELDS: dict[type, str] = {JobId: "job", ExecutionAttemptId: "attempt"}


class _Fields(threading.local):
    values: Mapping[str, str] = {}


#: fields of each thread's log lines
FIELDS = _Fields()


class JsonLines(logging.Formatter):
    """Format a record as one JSON object.

    Args: fields: the fields of every line, whichever thread logs it.
    """

    def __init__(self, fields: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self._fields = fields or {}

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line: dict[str, str | int] = {
            "time": datetime.fromtimestamp(record.created, UTC).astimezone().isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "thread": record.threadName or "",
            "process": record.process or 0,
            "message": record.getMessage(),
            **dict(_named_ids(record)),
            **self._fields,
            **FIELDS.values,
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        if record.stack_info:
            line["stack"] = self.formatStack(record.stack_info)
        # What no encoding has (lone surrogates of file names) is written as the text log writes it.
        return msgspec.json.encode({name: _encodable(value) for name, value in line.items()}).decode()


def _encodable(value: str | int) -> str | int:
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


def _named_ids(record: logging.LogRecord) -> Iterator[tuple[str, str]]:
    arguments = record.args if isinstance(record.args, tuple) else ()
    for argument in reversed(arguments):  # the first one of a type wins
        name = _ID_FIELDS.get(type(argument))
        if name is not None:
            yield name, str(argument)


def line_formatter(kind: str) -> logging.Formatter:
    """Return the formatter of a kind of log (``logging.format``)."""
    return JsonLines() if kind == "json" else logging.Formatter(TEXT_FORMAT)
