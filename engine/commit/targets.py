"""The registry of output targets, one entry each.

    target_named("folder") -> the FolderTarget          by the word in a staging or a decision
    target_of_path("s3://data/out") -> the StoreTarget  of plain files, by the file system of their path, or of one
    targets_in("/data") -> [...]                        of whatever lies in a folder

Which target a sink has says the entry of its format (``SinkFormat.target``). An entry is loaded when it is needed. An
installed package names its own under the entry point group ``drey.targets``.

Held by: tests/commit/test_targets.py
"""

from __future__ import annotations

import importlib
from functools import cache
from typing import Final

from engine.commit.output_target import OutputTarget
from engine.errors import PlanError
from engine.storage.file_systems import file_system_of

#: entry point group of targets that other packages bring along
GROUP: Final = "drey.targets"
#: name of a target: module, class
TARGET_PLACES: Final = {
    "handed": ("engine.commit.handed_target", "HandedTarget"),
    "file": ("engine.commit.file_target", "FileTarget"),
    "folder": ("engine.commit.folder_target", "FolderTarget"),
    "iceberg": ("engine.iceberg_tables.iceberg_target", "IcebergTarget"),
    "postgresql": ("engine.databases.postgresql_target", "PostgresqlTarget"),
    "sqlite": ("engine.databases.sqlite_target", "SqliteTarget"),
    "renamed": ("engine.commit.renamed_target", "RenamedTarget"),
    "renamed_file": ("engine.commit.placed_files", "RenamedFileTarget"),
    "store": ("engine.commit.store_target", "StoreTarget"),
    "store_file": ("engine.commit.placed_files", "StoreFileTarget"),
    "delta": ("engine.delta_tables.delta_target", "DeltaTarget"),
}
#: targets of tables, whose places are folders among others
_TABLES: Final = ("delta", "iceberg")


@cache
def target_named(name: str) -> OutputTarget:
    """Return the entry of a target; PlanError where this process knows none."""
    if name in TARGET_PLACES:
        module, entry_name = TARGET_PLACES[name]
        found: OutputTarget = getattr(importlib.import_module(module), entry_name)()
        return found
    from importlib.metadata import entry_points

    for point in entry_points(group=GROUP, name=name):
        loaded: OutputTarget = point.load()()
        return loaded
    raise PlanError(
        f"there is no output target {name!r}: this process knows {', '.join(sorted(TARGET_PLACES))}; a package that"
        " has it must be installed wherever the job is planned and runs"
    )


def target_of_path(path: str, *, is_single_file: bool = False) -> OutputTarget:
    """Return the target of plain files at a path, or of a file that has this path."""
    files = file_system_of(path)
    if files.objects is not None:
        return target_named("store_file" if is_single_file else "store")
    if files.folders is None:
        return target_named("renamed_file" if is_single_file else "renamed")
    return target_named("file" if is_single_file else "folder")


def targets_in(folder: str) -> list[OutputTarget]:
    """Return the targets that may have left something in a folder."""
    return [target_of_path(folder), *map(target_named, _TABLES)]
