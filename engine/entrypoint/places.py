"""The places of the files of this installation's processes.

home    the root of a checkout, $DREY_HOME, or ~/.local/state/drey         the working directory of daemons
conf    $DREY_CONF_DIR or the folder of ``engine.config.home``             config.yaml, masters, workers, cluster.secret
log     $DREY_LOG_DIR  or <home>/log       flink-<user>-<daemon>-<number>-<host>.{log,out}, jobs/<job id>/
pid     $DREY_PID_DIR  or a folder of the user's own        flink-<user>-<daemon>.pid

Held by: tests/entrypoint/test_storage_places.py
"""

from __future__ import annotations

import getpass
import os
import socket
from dataclasses import dataclass
from pathlib import Path

from engine.config.home import chosen_home, conf_folder, copy_delivered, is_checkout
from engine.errors import ConfigurationError
from engine.network_address import is_ipv6, plain_host, split_address
from engine.private_folder import make_private, own_folder


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
        conf=conf_folder().absolute(),
        log=Path(os.environ.get("DREY_LOG_DIR") or home_folder() / "log").absolute(),
        pid=Path(pid).absolute() if pid else own_folder("pid", host),
        user=os.environ.get("USER") or getpass.getuser(),
        host=host,
    )


def listed_hosts(places: Places, name: str) -> list[str]:
    """Return the hosts of ``masters`` or ``workers``, one a line; this one when there is no such file."""
    try:
        lines = (places.conf / name).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return ["localhost"]
    return [host for line in lines if (host := line.partition("#")[0].strip())]


def listed_masters(places: Places) -> list[tuple[str, int | None]]:
    """Return host and port of the JobManagers in ``masters``; None: the configuration's port.

    Raises: ConfigurationError.
    """
    found: list[tuple[str, int | None]] = []
    for line in listed_hosts(places, "masters"):
        if line.endswith("]") or ":" not in line or is_ipv6(line):
            found.append((plain_host(line), None))
            continue
        try:
            found.append(split_address(line))
        except ValueError as error:
            raise ConfigurationError(f"{places.conf / 'masters'}: {line!r} is no host or host:port: {error}") from None
    return found


def home_folder() -> Path:
    """Return the home of daemons, which relative paths of settings start from. Raises: NotPrivateError, OSError."""
    return chosen_home() or own_folder()


def make_conf(places: Places) -> bool:
    """Make the folder of an installation's configuration from what was delivered; return whether there is one.

    Raises: NotPrivateError; ConfigurationError where it cannot be made.
    """
    if not is_checkout() and not os.environ.get("DREY_CONF_DIR") and not places.conf.is_dir():
        try:
            make_private(places.conf)
            copy_delivered(places.conf)
        except OSError as error:
            reason = f"{places.conf} cannot be made ({error.strerror})"
            raise ConfigurationError(f"{reason}: name a folder of your own in DREY_HOME or DREY_CONF_DIR") from error
    return places.conf.is_dir()
