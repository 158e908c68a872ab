"""The epoch of a standalone JobManager: it only grows, also when the clock is set back or the process starts again.

Without a quorum no service assigns epochs. The milliseconds of the start do, as long as each is larger than the one
before; that one is kept in a file beside the pid file, and like it this user's own: the folder may belong to another
user.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
from pathlib import Path

from engine.clock import Clock
from engine.entrypoint.pid_file import open_own
from engine.log_output import FULL_DISK
from engine.private_folder import make_closed

_log = logging.getLogger(__name__)

#: digits of an epoch as text: milliseconds, beyond any clock
_DIGITS_MAX = 18


def next_epoch(path: Path, clock: Clock) -> int:
    """Return the epoch of a JobManager that starts now, and note it; without room it is not noted.

    Raises: NotPrivateError, OSError.
    """
    last = 0
    with contextlib.suppress(FileNotFoundError):
        descriptor = open_own(path, os.O_RDONLY)
        # A ValueError of the number alone: that the file is not this user's own is one as well.
        with os.fdopen(descriptor, errors="replace") as file, contextlib.suppress(ValueError):
            last = int(file.read(_DIGITS_MAX))
    epoch = max(clock.wall_ms(), last + 1)
    try:
        _note(path, epoch)
    except OSError as error:
        if error.errno not in FULL_DISK:
            raise
        _log.warning("%s cannot be written: %s; do not set the clock back before the next start", path, error.strerror)
    return epoch


def _note(path: Path, epoch: int) -> None:
    make_closed(path.parent)
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(f"{epoch}\n")
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
