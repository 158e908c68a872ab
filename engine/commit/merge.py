"""Publication into a target that stays: files are added, or partitions replaced, with one exchange of folders.

    staging/new/                  the decided files, under their names
    staging/output/               a folder like the target: hard links to its files, and to those of new/
    under the target's lock:      output/ is made, then exchanged with the target

At every moment the target is the old one or the new one, whole; who lists it in between sees one of them. Whether it is
placed already is seen by its files: all of new/ are in it, by inode. What is made twice is made anew.

Two jobs that add to one target take turns at its lock (``target_lock``). A reader that has opened files of the old
folder goes on reading them: they are removed as names only.

Held by: tests/commit/test_merge.py
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable
from pathlib import Path

from engine.commit.durable_file import fsync_folder
from engine.commit.rename import exchange, rename_if_absent
from engine.commit.staging import REPLACED, remove_path
from engine.commit.target_lock import target_lock
from engine.errors import JobExecutionError


def merge_into(
    target: Path,
    staging: Path,
    parts: Iterable[str],
    after_step: Callable[[str], None],
    *,
    replaces_partitions: bool,
) -> None:
    """Make the files in staging/new, ``parts`` by name, part of the target; idempotent.

    replaces_partitions: folders that get a file lose those that they had.
    """
    names = list(parts)
    new, output = staging / "new", staging / "output"
    with target_lock(target):
        _restore(target, staging)
        if _is_placed(target, new, names):
            return
        remove_path(output)
        output.mkdir()
        after_step("create output")
        replaced = {os.path.dirname(name) for name in names} if replaces_partitions else set()  # noqa: PTH120
        if target.is_dir():
            _link_tree(target, output, replaced)
        after_step("link old files")
        for name in names:
            (output / name).parent.mkdir(parents=True, exist_ok=True)
            if not os.path.lexists(output / name):
                _link(new / name, output / name)
        fsync_folder(output)
        after_step("link new files")
        if not target.is_dir():
            rename_if_absent(output, target)
        elif not exchange(output, target):
            target.rename(staging / REPLACED)
            after_step("set aside")
            rename_if_absent(output, target)
        after_step("place")


def _restore(target: Path, staging: Path) -> None:
    """Put a target back that was set aside before a crash."""
    if os.path.lexists(staging / REPLACED) and not os.path.lexists(target):
        (staging / REPLACED).rename(target)


def _is_placed(target: Path, new: Path, names: Iterable[str]) -> bool:
    for name in names:
        try:
            if not os.path.samestat((target / name).lstat(), (new / name).lstat()):
                return False
        except (FileNotFoundError, NotADirectoryError):
            return False
    return target.is_dir()


def _link_tree(folder: Path, copy: Path, replaced: set[str], inside: str = "") -> None:
    """Make links to all files of a folder but for those right in folders that are replaced."""
    for entry in os.scandir(folder):
        name = f"{inside}/{entry.name}" if inside else entry.name
        if entry.is_dir(follow_symlinks=False):
            (copy / entry.name).mkdir()
            _link_tree(Path(entry.path), copy / entry.name, replaced, name)
        elif inside not in replaced:
            _link(Path(entry.path), copy / entry.name)


def _link(old: Path, new: Path) -> None:
    try:
        os.link(old, new, follow_symlinks=False)
    except OSError as error:
        if error.errno in (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS):
            raise JobExecutionError(
                f"{old}: its file system has no hard links, which modes append and overwrite_partitions need"
            ) from error
        raise
