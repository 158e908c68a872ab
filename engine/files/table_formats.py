"""Folders of tables, whose log says which of their files are valid: found, so that they are not read as plain files.

    table/_delta_log/...                        Delta
          year=2024/part-0.parquet              files of the table, and files that it has removed
    table/metadata/v2.metadata.json             Iceberg
          data/year=2024/0.parquet
    table/.hoodie/                              Hudi
    data set/_manifest.json                     records, where files lie beside it that the manifest does not list

    check_no_table(places, "read_parquet")      folders that files are listed in: none is in a table
    check_not_added(target, mode, writer)       what is written makes no file that a table does not know

A file that is named, not found in a folder or by a glob, is read: a table's own library says which files these are. So
are files of the log itself. Folders above a place count, up to the root.

Held by: tests/integration/test_table_formats.py
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from functools import cache
from typing import Final, NamedTuple

from engine.errors import PlanError
from engine.storage.file_systems import file_system_of, is_file, is_folder

_MANIFEST: Final = "_manifest.json"
_METADATA_ENDINGS: Final = (".metadata.json", ".metadata.json.gz")


class _Format(NamedTuple):
    """A kind of table."""

    name: str
    #: the folder of its log
    log: str
    advice: str


_DELTA: Final = _Format(
    "a Delta table",
    "_delta_log",
    "env.read_delta({root!r}) reads its rows",
)
_ICEBERG: Final = _Format(
    "an Iceberg table",
    "metadata",
    "env.read_iceberg({root!r}) reads its rows",
)
_HUDI: Final = _Format("a Hudi table", ".hoodie", "read it with Spark, and export its rows with bin/spark-export")
_FORMATS: Final = (_DELTA, _ICEBERG, _HUDI)
#: names of the folders of logs
LOGS: Final = frozenset(one.log for one in _FORMATS)


class _Table(NamedTuple):
    """A folder that is a table."""

    root: str
    format: _Format


def check_no_table(folders: Iterable[str], reader: str) -> None:
    """Raise PlanError for a folder, absolute, whose files belong to a table or are not all of a record data set."""
    found = _finder()
    for folder in dict.fromkeys(folders):
        table = found(folder)
        if table is not None:
            raise PlanError(
                f"{reader}: {table.root} is {table.format.name}, whose log ({table.format.log}/) says which of its"
                f" files are valid; {table.format.advice.format(root=table.root)}; files that are listed by name are"
                " read as they are"
            )
        unlisted = _unlisted(folder)
        if unlisted:
            raise PlanError(
                f"{reader}: {folder} is a record data set, whose manifest does not list {unlisted}, a file that was"
                " replaced or never belonged to it; read_records reads those that it lists"
            )


def check_not_added(target: str, mode: str, writer: str) -> None:
    """Raise PlanError for an output that adds files to a table, or removes some that it knows.

    target: absolute. mode: of the sink, "append", "overwrite_partitions" or "overwrite"; the last may replace a table.
    """
    found = _finder()
    table = found(os.path.dirname(target) if mode == "overwrite" else target)  # noqa: PTH120
    if table is not None:
        raise PlanError(
            f"{writer}({target!r}): mode={mode!r}: {table.root} is {table.format.name}, whose log"
            f" ({table.format.log}/) would not know what becomes of its files; write to another folder"
        )
    if mode != "overwrite" and is_file(f"{target}/{_MANIFEST}"):
        raise PlanError(
            f"{writer}({target!r}): mode={mode!r}: this is a record data set, whose manifest would not list the files;"
            " Spark's format('drey') appends to one, write_records makes a new one"
        )


def _finder() -> Callable[[str], _Table | None]:
    """Return a function that finds the table a folder belongs to, and looks at each folder once."""

    @cache
    def found(folder: str) -> _Table | None:
        parent, name = os.path.split(folder)
        for one in _FORMATS:
            if _is_table(folder, one):
                return _Table(folder, one)
            if name == one.log and _is_table(parent, one):
                return None  # the log itself
        is_last = parent == folder or ("://" in folder and "://" not in parent)
        return None if is_last else found(parent)

    return found


def _is_table(folder: str, one: _Format) -> bool:
    log = f"{folder.removesuffix('/')}/{one.log}"
    try:
        objects = file_system_of(log).objects
        if not (is_folder(log) if objects is None else objects.has_below(log)):
            return False
        return one is not _ICEBERG or any(
            each.name.endswith(_METADATA_ENDINGS) for each in file_system_of(log).entries(log)
        )
    except OSError:
        return False


def _unlisted(folder: str) -> str:
    """Return the name of a data file that a record data set in the folder does not list; "" for none."""
    try:
        files = file_system_of(folder)
        listed = {each["name"] for each in json.loads(files.read(f"{folder}/{_MANIFEST}"))["files"]}
        there = (entry.name for entry in files.entries(folder) if entry.is_file)
        return next((name for name in there if name.endswith(".parquet") and name not in listed), "")
    except (OSError, ValueError, KeyError, TypeError):
        return ""  # none, or one that its own reader says is damaged
