"""Logging of a daemon: one file for the process, to the terminal as well in the foreground.

    2026-11-21 10:03:04,123 INFO  engine.dispatcher.dispatcher [MainThread] - job ... is submitted

``logging.format: json`` writes an object a line instead, in the logs of tasks too (``engine.log_format``).
Values of keys that name a secret or a password are not written. Source: the pattern of Flink's log4j files.

Held by: tests/entrypoint/test_log_files.py
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path

from engine.config.loader import Configuration
from engine.config.options import LOG_FILE_SIZE, LOG_FILES_MAX, LOG_FORMAT, LOG_LEVEL
from engine.config.secret_keys import shown_text
from engine.entrypoint.log_files import LogFileHandler
from engine.log_format import line_formatter
from engine.log_output import guard_output
from engine.task_log import install_task_logs

_log = logging.getLogger(__name__)


def set_up_logging(configuration: Configuration, log_file: Path | None, *, to_terminal: bool) -> None:
    """Send what this process logs to its file and, in the foreground or without a file, to standard error."""
    guard_output()
    handlers: list[logging.Handler] = []
    if log_file is not None:
        handlers.append(LogFileHandler(log_file, configuration.get(LOG_FILE_SIZE), configuration.get(LOG_FILES_MAX)))
    if to_terminal or log_file is None:
        handlers.append(logging.StreamHandler(sys.stderr))
    formatter = line_formatter(configuration.get(LOG_FORMAT))
    if log_file is not None:
        install_task_logs(log_file.parent, formatter)
    root = logging.getLogger()
    for handler in handlers:
        handler.setFormatter(formatter)
        root.addHandler(handler)
    root.setLevel(configuration.get(LOG_LEVEL))
    # A line for each message between processes says nothing that the components do not say themselves.
    logging.getLogger("aiohttp.access").setLevel(logging.WARNING)
    logging.getLogger("asyncio").setLevel(logging.INFO)
    logging.captureWarnings(True)


def log_configuration(configuration: Configuration) -> None:
    """Write what was set, and where; no secrets."""
    for key in sorted(configuration):
        _log.info("%s: %s    [%s]", key, shown_text(configuration, key), configuration.origin(key))
