"""Where the files of this installation's processes lie.

root    of the checkout                    the working directory of daemons
conf    $DREY_CONF_DIR or <root>/conf      config.yaml, masters, workers, cluster.secret
log     $DREY_LOG_DIR  or <root>/log       flink-<user>-<daemon>-<number>-<host>.{log,out}, jobs/<job id>/
pid     $DREY_PID_DIR  or a folder of the user's own        flink-<user>-<daemon>.pid
"""

from __future__ import annotations

import getpass
import os
import socket
from dataclasses import dataclass
from pathlib import Path

from engine.private_folder import own_folder

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Places:
    """Absolute folders, and the names of files in them."""

    conf: Path
    log: Path
    pid: Path
    user: str
    host: str

    def pid_file(self, daemon: str) -> Path:
        """Return the pid file of a kind of daemon."""
        return self.pid / f"flink-{self.user}-{daemon}.pid"

    def log_file(self, daemon: str, number: int) -> Path:
        """Return the log file of a daemon; what it writes to standard output lies beside it as ``.out``."""
        return self.log / f"flink-{self.user}-{daemon}-{number}-{self.host}.log"


def find_places() -> Places:
    """Return the places that the environment names. Raises: NotPrivateError, OSError."""
    host, pid = socket.gethostname(), os.environ.get("DREY_PID_DIR")
    return Places(
        conf=Path(os.environ.get("DREY_CONF_DIR") or ROOT / "conf").absolute(),
        log=Path(os.environ.get("DREY_LOG_DIR") or ROOT / "log").absolute(),
        pid=Path(pid).absolute() if pid else own_folder("pid", host),
        user=os.environ.get("USER") or getpass.getuser(),
        host=host,
    )
