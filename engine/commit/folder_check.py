"""A folder that cannot be written is refused before anything starts.

An output that exists, even as an empty folder, is an error unless ``overwrite`` is set. So is an ``overwrite`` that
would replace the working folder, the home folder or a folder around them.

Held by: tests/formats/test_output_check.py
"""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import unquote

from engine.errors import PlanError
from engine.graph.source_spec import SinkSpec
from engine.storage.file_system import FolderEntry
from engine.storage.file_systems import file_system_of, folders_of, is_folder


def resolve_target(path: str) -> Path:
    """Return the absolute path of a target: symbolic links followed, ``~`` not."""
    return Path(folders_of(path, "an output").resolved(path))


def _is_taken(path: str | Path) -> bool:
    return file_system_of(os.fspath(path)).is_taken(os.fspath(path))


def check_folder(spec: SinkSpec, target: Path) -> None:
    """Raise PlanError when an output cannot be written; ``target`` is its resolved path."""
    if spec.mode and _is_taken(spec.path) and not is_folder(os.fspath(target)):
        raise PlanError(f"output {spec.path} is no folder; mode={spec.mode!r} adds files to one")
    if spec.mode and is_folder(os.fspath(target)):
        check_partitions(os.fspath(target), spec)
    if _is_taken(spec.path) and not spec.overwrite and not spec.mode:
        raise PlanError(
            f"output {spec.path} already exists; pass overwrite=True to replace it, or mode='append' to add to it"
        )
    if _is_taken(target) and not spec.mode:
        _check_replaceable(target, spec.path)
    _check_parents(target, spec.path)


def check_file(spec: SinkSpec, target: Path) -> None:
    """Raise PlanError when the one file of an output cannot be written; ``target`` is its resolved path."""
    if is_folder(os.fspath(target)):
        raise PlanError(
            f"output {spec.path} is a folder, and single_file=True writes a file; name one, such as"
            f" {spec.path.rstrip('/')}/data.{spec.format}"
        )
    if _is_taken(spec.path) and not spec.overwrite:
        raise PlanError(f"output {spec.path} already exists; pass overwrite=True to replace it")
    _check_parents(target, spec.path)


def check_partitions(target: str, sink: SinkSpec) -> None:
    """Raise PlanError when files of a target lie below other folders than those that would be added."""
    folder, found = target, list[str]()
    while (inside := _first_folder(folder)) is not None:
        found.append(inside.name.partition("=")[0])
        folder = inside.path
    if (found or _first_file(target) is not None) and tuple(map(unquote, found)) != sink.partition_by:
        raise PlanError(
            f"output {sink.path} is partitioned by {', '.join(found) or 'nothing'}, and partition_by is"
            f" {', '.join(sink.partition_by) or 'nothing'}; add files with the same folders"
        )


def _first_folder(folder: str) -> FolderEntry | None:
    named = (each for each in file_system_of(folder).entries(folder) if "=" in each.name and each.name[0] != ".")
    return next((each for each in sorted(named, key=lambda each: each.name) if each.is_folder), None)


def _first_file(folder: str) -> FolderEntry | None:
    entries = file_system_of(folder).entries(folder)
    return next((each for each in entries if each.is_file and not each.name.startswith((".", "_"))), None)


def _current_folder() -> Path | None:
    """Return the current folder; None where it was removed, so that no output can replace it."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return None


def _check_replaceable(target: Path, path: str) -> None:
    for folder, what in ((_current_folder(), "the working folder"), (Path.home(), "the home folder")):
        if folder is None:
            continue
        resolved = resolve_target(os.fspath(folder))
        if target == resolved or target in resolved.parents:
            raise PlanError(f"output {path} would replace {what} {folder}; choose a folder of its own")


def _check_parents(target: Path, path: str) -> None:
    for parent in target.parents:
        if is_folder(os.fspath(parent)):
            return
        if _is_taken(parent):
            raise PlanError(f"output {path} cannot be created: {parent} is not a folder")
