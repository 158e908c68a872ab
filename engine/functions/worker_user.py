"""Worker user: the rights of Python functions are the TaskManager's, or those of ``functions.worker-user``.

    TaskManager, root ──► zygote, root ──► fork ─► become(user) ─► loads and runs the functions of one job

A function of the TaskManager's own user reads what that one reads: the secret of the cluster, the rows that other jobs
spill. A cluster is one tenant, then. With the setting a worker opens nothing of the TaskManager's by name: memory,
modules that came with the job and the log ride along as descriptors; its own temporary files lie in the system's
folder for them. Workers of different jobs share that user, though, and may meddle with each other.

What is imported later is read as that user. Where the interpreter or the installation lies in a folder that the user
may not enter (root's home), a worker has opened the folders of the module search path before it becomes that user, and
imports through the descriptors. So folders below a closed one need be readable, not reachable.

    opened_search_path() ─► become(user) ─► read_by_descriptor(opened) ─► folders that the user cannot read even so

Limits: a program that a function starts does not have the descriptors.
Source: YARN's LinuxContainerExecutor, which changes rights by a setuid program.
Held by: tests/functions/test_worker_user.py
"""

from __future__ import annotations

import logging
import os
import pwd
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from engine.config.loader import Configuration
from engine.config.options import PYTHON_EXECUTION_MODE, WORKER_USER
from engine.errors import ConfigurationError
from engine.functions.worker_protocol import OPENED_MAX
from engine.log_output import LogFile

_log = logging.getLogger(__name__)
_FOLDER_ACCESS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def configured_worker_user(configuration: Configuration) -> str:
    """Return the user of a process's own configuration, "" without one; ConfigurationError where it cannot be."""
    name: str = configuration.get(WORKER_USER) or ""
    if not name:
        return ""
    try:
        user = pwd.getpwnam(name)
    except KeyError:
        raise ConfigurationError(f"{WORKER_USER.key}: this machine has no user {name!r}") from None
    if user.pw_uid == 0:
        raise ConfigurationError(f"{WORKER_USER.key}: {name} is root: name a user with fewer rights")
    if os.geteuid() != 0:
        raise ConfigurationError(
            f"{WORKER_USER.key}: only root can run functions as another user, and this process is of "
            f"{pwd.getpwuid(os.geteuid()).pw_name}: start it as root, or leave the key out"
        )
    warn_of_unreadable(name, [Path(os.__file__).parent, Path(__file__).parent])
    return name


def warn_of_unreadable(name: str, folders: Iterable[Path]) -> None:
    """Warn of folders of the installation that others may not read: functions could not import from them."""
    for folder in folders:
        if folder.stat().st_mode & 0o005 != 0o005:
            _log.warning("functions run as %s, and %s is closed to others: chmod -R o+rX it", name, folder)


def refuse_inline(configuration: Configuration, user: str) -> None:
    """Raise ConfigurationError where a job wants its functions in this very process, past the user they are to have."""
    if user and is_inline(configuration):
        raise ConfigurationError(
            f"{PYTHON_EXECUTION_MODE.key}: functions run as {user} here ({WORKER_USER.key}), "
            "so not in the TaskManager itself"
        )


def is_inline(configuration: Configuration) -> bool:
    """Return whether functions are to run in the task's thread."""
    return bool(configuration.get(PYTHON_EXECUTION_MODE) == "thread")


def open_for_worker(folders: Sequence[str], log_file: str) -> list[int]:
    """Return descriptors of what a worker with other rights cannot open itself: of the folders, then of the log."""
    if len(folders) >= OPENED_MAX:
        raise ConfigurationError(f"a job brings {len(folders)} modules and archives: pack them, {OPENED_MAX} are taken")
    opened: list[int] = []
    try:
        opened.extend(os.open(folder, _FOLDER_ACCESS) for folder in folders)
        if log_file:
            opened.append(log_descriptor(log_file))
    except OSError:
        close_all(opened)
        raise
    return opened


def log_descriptor(path: str) -> int:
    """Return a descriptor of a function's log; of nothing where there is no room for one, which the task has said."""
    log = LogFile(Path(path))
    try:
        log.open()
        return os.dup(log.fileno())
    except OSError:
        return os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    finally:
        log.close()


def close_all(descriptors: Iterable[int]) -> None:
    """Close descriptors."""
    for descriptor in descriptors:
        os.close(descriptor)


def become(name: str) -> None:
    """Take the rights of a user, for good. Raises: OSError, KeyError."""
    user = pwd.getpwnam(name)
    os.initgroups(name, user.pw_gid)
    os.setresgid(user.pw_gid, user.pw_gid, user.pw_gid)
    os.setresuid(user.pw_uid, user.pw_uid, user.pw_uid)
    os.environ.update(HOME=user.pw_dir, USER=name, LOGNAME=name)


def opened_search_path() -> dict[str, int]:
    """Return descriptors of the folders of the module search path, by name."""
    opened: dict[str, int] = {}
    for folder in sys.path:
        with suppress(OSError):
            opened[folder] = os.open(folder, _FOLDER_ACCESS)
    return opened


def read_by_descriptor(opened: dict[str, int]) -> list[str]:
    """Import through descriptors what this process can no longer reach by name; return what it cannot read even so."""
    unreadable: list[str] = []
    names: dict[str, str] = {}
    for folder, descriptor in opened.items():
        name = f"/proc/self/fd/{descriptor}"
        if os.access(folder, os.R_OK | os.X_OK) or not os.access(name, os.R_OK | os.X_OK):
            os.close(descriptor)
            if not os.access(folder, os.R_OK | os.X_OK):
                unreadable.append(folder)
        else:
            names[folder] = name
    if names:
        _rename(sys.path, names)
        for module in list(sys.modules.values()):
            path = getattr(module, "__path__", None)
            if isinstance(path, list):
                _rename(path, names)
        sys.path_importer_cache.clear()
    return unreadable


def _rename(path: list[str], names: dict[str, str]) -> None:
    """Give folders of a search path, and those below them, their other names."""
    for at, entry in enumerate(path):
        for folder, name in names.items():
            if entry == folder or entry.startswith(f"{folder}/"):
                path[at] = name + entry[len(folder) :]
