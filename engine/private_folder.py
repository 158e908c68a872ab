"""Folders of one's own: where this user's processes keep pid files, spilled rows, files of jobs and sockets by default.

    ~/.local/state/drey/                      own_folder(): made with mode 0700, or checked
      pid/<host>/                             pid files (a home may be shared by hosts)
      tmp/                                    scratch_folder(): what goes with its process, see process_folder.py
    <temporary folder>/drey-<uid>[-n]/        the same where this user has no home that can be written

    make_private(path)      a folder that only this user can enter; an error when another user could change it
    make_closed(path)       the same where a person named it: one that is there keeps its mode, and may not be another
                            user's to which all users can write
    append_privately(path)  a text file of mode 0600, for logs: there are rows in messages

Nothing here lies under a name that another user can take first: a home is this user's, and in the common temporary
folder a name that another user has taken is skipped. Checked is the folder itself, through a descriptor: its
owner, its mode, that it is no link. Cleaners of temporary folders do not come here.

TMPDIR is a person's own choice of a place for temporary files and wins for ``scratch_folder``; what lies there is in
folders of mode 0700 all the same.

Source: the checks of sshd and tmux (/tmp/tmux-<uid>); the place is the one of the XDG base directories for state.
"""

from __future__ import annotations

import contextlib
import errno
import os
import pwd
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from engine.errors import ConfigurationError

#: permission bits of other users
_OTHERS, _OTHERS_WRITE = 0o077, 0o022
#: number of names tried in the common temporary folder
_NAMES_MAX = 100
_TEMPORARY_VARIABLES = ("TMPDIR", "TEMP", "TMP")


class NotPrivateError(ConfigurationError):
    """A folder that is, or was, open to another user."""


def make_private(path: Path) -> Path:
    """Make a folder of mode 0700, with its parents, or check one that is there; return the path.

    Raises: NotPrivateError when it is a link, no folder, of another user, or writable for others; OSError.
    """
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=0o700, parents=True)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except NotADirectoryError:
        what = "a symbolic link" if path.is_symlink() else "no folder"
        raise NotPrivateError(f"{path} is {what}: remove it, or name another place") from None
    except PermissionError:
        raise NotPrivateError(f"{path} is {_of_whom(path.lstat().st_uid)}: remove it, or name another place") from None
    try:
        status = os.fstat(descriptor)
        if status.st_uid != os.geteuid():
            raise NotPrivateError(f"{path} is {_of_whom(status.st_uid)}: remove it, or name another place")
        if status.st_mode & _OTHERS_WRITE:
            mode = stat.S_IMODE(status.st_mode)
            raise NotPrivateError(
                f"{path} can be written by others (mode {mode:04o}): look at what is in it, then chmod 700 {path}"
            )
        if status.st_mode & _OTHERS:
            os.fchmod(descriptor, 0o700)
    finally:
        os.close(descriptor)
    return path


def make_closed(path: Path) -> None:
    """Make a folder of mode 0700 where there is none, else check the one that is there.

    Raises: NotPrivateError, see ``check_place``; OSError.
    """
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=0o700, parents=True)
    check_place(path)


def check_place(path: Path) -> None:
    """Raise NotPrivateError for a folder of another user to which all users can write; OSError where there is none.

    Its owner, and where it is not sticky any user, could put something of their own in the place of what this user
    keeps there, and read it. A folder of root's is taken as it is: ``/tmp``, volumes of containers.
    """
    status = path.stat()
    if status.st_mode & stat.S_IWOTH and status.st_uid not in (os.geteuid(), 0):
        mode = stat.S_IMODE(status.st_mode)
        raise NotPrivateError(
            f"{path} is {_of_whom(status.st_uid)} and open to everybody (mode {mode:04o}): name another place, "
            f"or have its owner run chmod o-w {path}"
        )


def append_privately(path: Path, buffering: int = -1) -> TextIO:
    """Open a text file at its end; only this user can read it, also where it was there before. Raises: OSError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    close_to_others(descriptor)
    return os.fdopen(descriptor, "a", buffering, encoding="utf-8", errors="backslashreplace")


def close_to_others(descriptor: int) -> None:
    """Take away what others may do with a file of this user. Raises: OSError."""
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode) and status.st_mode & _OTHERS and status.st_uid == os.geteuid():
        os.fchmod(descriptor, 0o600)


def own_folder(*names: str) -> Path:
    """Return a folder of this user alone, below the one of all of them; it is made when it is not there.

    Raises: NotPrivateError, OSError.
    """
    folder = _root()
    for name in names:
        folder = make_private(folder / name)
    return folder


def scratch_folder() -> Path:
    """Return the parent of temporary folders: a folder of this user, or the one that TMPDIR names.

    Raises: NotPrivateError, OSError.
    """
    if any(os.environ.get(name) for name in _TEMPORARY_VARIABLES):
        chosen = Path(tempfile.gettempdir())
        check_place(chosen)
        return chosen
    return own_folder("tmp")


def _root() -> Path:
    for home in _homes():
        try:
            return make_private(home / ".local" / "state" / "drey")
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):
                raise  # it is there, and what lies in it is looked for there
            continue  # read only, or full: another place does as well
    return _root_in(Path(tempfile.gettempdir()))


def _homes() -> Iterator[Path]:
    """Yield the homes that are this user's; $HOME may be another user's, as sudo leaves it."""
    homes = [os.environ.get("HOME", "")]
    with contextlib.suppress(KeyError):  # a number without a name, as containers have them
        homes.append(pwd.getpwuid(os.geteuid()).pw_dir)
    for home in map(Path, dict.fromkeys(homes)):
        with contextlib.suppress(OSError):
            if home.is_absolute() and home.stat().st_uid == os.geteuid():
                yield home


def _root_in(temporary: Path) -> Path:
    """Return this user's folder in a shared one: the first that exists, else the first whose name is free."""
    paths = [temporary / f"drey-{os.geteuid()}{f'-{n}' if n else ''}" for n in range(_NAMES_MAX)]
    for path in paths:
        if not path.is_symlink() and path.is_dir() and path.lstat().st_uid == os.geteuid():
            return make_private(path)
    for path in paths:
        if not os.path.lexists(path):
            try:
                return make_private(path)
            except NotPrivateError:
                continue  # another process was faster
    raise NotPrivateError(f"{paths[0]} and {_NAMES_MAX - 1} names like it are taken by others: set TMPDIR")


def _of_whom(user: int) -> str:
    try:
        return f"of another user, {pwd.getpwuid(user).pw_name}"
    except KeyError:
        return f"of another user, number {user}"
