"""Publication into a target that stays: files are added, or partitions replaced, with one exchange of folders.

    staging/new/                  the decided files, under their names
    staging/output/               a folder like the target: hard links to its files, and to those of new/
    under the target's lock:      output/ is made, then exchanged with the target

At every moment the target is the old one or the new one, whole; a listing in between shows one of them. Whether it is
placed already is seen by its files: all of new/ are in it, by inode. What is made twice is made anew.

Two jobs that add to one target take turns at its lock (``target_lock``). A reader that has opened files of the old
folder goes on reading them: they are removed as names only.

Held by: tests/commit/test_merge.py
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from engine.commit.staging import REPLACED
from engine.commit.target_lock import target_lock
from engine.errors import JobExecutionError
from engine.storage.file_system import FileSystem, Folders, HardLinksError
from engine.storage.file_systems import file_system_of, folders_of, is_folder


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
    names, old = list(parts), os.fspath(target)
    new, output, aside = f"{staging}/new", f"{staging}/output", f"{staging}/{REPLACED}"
    files, folders = file_system_of(old), folders_of(old, "modes append and overwrite_partitions")
    with target_lock(target):
        if files.is_taken(aside) and not files.is_taken(old):
            folders.rename(aside, old)  # set aside before a crash
        if _is_placed(old, new, names, folders):
            return
        files.delete_tree(output)
        folders.make(output)
        after_step("create output")
        replaced = {name.rpartition("/")[0] for name in names} if replaces_partitions else set()
        if is_folder(old):
            _link_tree(old, output, replaced, files, folders)
        after_step("link old files")
        for name in names:
            place = f"{output}/{name}"
            folders.make(place.rpartition("/")[0])
            if not files.is_taken(place):
                _link(f"{new}/{name}", place, folders)
        folders.sync(output)
        after_step("link new files")
        if not is_folder(old):
            folders.rename_if_absent(output, old)
        elif not folders.exchange(output, old):
            folders.rename(old, aside)
            after_step("set aside")
            folders.rename_if_absent(output, old)
        after_step("place")


def _is_placed(target: str, new: str, names: Iterable[str], folders: Folders) -> bool:
    for name in names:
        identity = folders.identity(f"{new}/{name}")
        if identity is None or folders.identity(f"{target}/{name}") != identity:
            return False
    return is_folder(target)


def _link_tree(
    folder: str, copy: str, replaced: set[str], files: FileSystem, folders: Folders, inside: str = ""
) -> None:
    """Make links to all files of a folder but for those right in folders that are replaced."""
    for entry in files.entries(folder):
        name = f"{inside}/{entry.name}" if inside else entry.name
        if entry.is_folder and not entry.is_link:
            folders.make(f"{copy}/{entry.name}")
            _link_tree(entry.path, f"{copy}/{entry.name}", replaced, files, folders, name)
        elif inside not in replaced:
            _link(entry.path, f"{copy}/{entry.name}", folders)


def _link(old: str, new: str, folders: Folders) -> None:
    try:
        folders.link(old, new)
    except HardLinksError as error:
        raise JobExecutionError(f"{error}, which modes append and overwrite_partitions need") from error
