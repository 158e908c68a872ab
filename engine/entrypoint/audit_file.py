"""AuditFile: the record of changes of a JobManager, a file of its own with one JSON object a line.

    flink-<user>-jobmanager-<number>-<host>-audit.log      beside the log, mode 0600; full ones end with .log.1, .log.2

    {"time":"2026-11-29T16:30:00.123Z","process":4711,"what":"submit","address":"127.0.0.1","credential":"secret",
     "status":202,"path":"/jobs","details":{"job":"5f...","name":"sums"}}

It is put away when it is as large as a log may be (``env.log.file-size``, ``env.log.max``), not at each start, and it
is not among the log files that readers of REST are shown. A process without a log file has none. What cannot be
written, as on a full disk, is told in the file when it can again: a change does not wait for its record.

Held by: tests/entrypoint/test_audit_file.py
"""

from __future__ import annotations

import logging
import os
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from engine.config.loader import Configuration
from engine.config.options import LOG_FILE_SIZE, LOG_FILES_MAX, all_options
from engine.config.secret_keys import shown_text
from engine.entrypoint.log_files import LogFileHandler
from engine.rpc.audit import AuditEntry


class AuditFile:
    """Writes entries. Thread: any."""

    def __init__(self, configuration: Configuration, log_file: Path | None) -> None:
        self._handler: LogFileHandler | None = None
        if log_file is not None:
            size_max, kept = configuration.get(LOG_FILE_SIZE), configuration.get(LOG_FILES_MAX)
            self._handler = LogFileHandler(log_file.with_name(f"{log_file.stem}-audit.log"), size_max, kept)
            self._handler.setFormatter(logging.Formatter("%(message)s"))

    def note(self, entry: AuditEntry) -> None:
        """Write an entry with the time and this process."""
        if self._handler is not None:
            at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
            line = {"time": at, "process": os.getpid(), **msgspec.to_builtins(entry)}
            text = msgspec.json.encode(line).decode()
            self._handler.handle(logging.makeLogRecord({"msg": text, "args": ()}))

    def close(self) -> None:
        """Close the file."""
        if self._handler is not None:
            self._handler.close()


def start_entry(configuration: Configuration) -> AuditEntry:
    """Return the entry of a start: the settings that are not defaults, and their origins; secrets are hidden."""
    settings = {
        option.key: f"{text}    [{configuration.origin(option.key)}]"
        for option in all_options()
        if configuration.origin(option.key) != "default" and (text := shown_text(configuration, option.key)) is not None
    }
    return AuditEntry("start", "done", details=settings)
