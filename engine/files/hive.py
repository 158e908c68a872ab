"""Files in folders that are named after values, as Hive, Spark, DuckDB and pyarrow write them.

    sales/year=2024/city=S%C3%A3o%20Paulo/part-00000.parquet      year "2024", city "São Paulo"
    sales/year=__HIVE_DEFAULT_PARTITION__/...                     year null

    found = hive_files("sales/", "read_parquet", None)   .paths  .keys  .values, a tuple of texts for each path
    folder_name("city", "São Paulo") -> "city=S%C3%A3o Paulo"

A folder is entered where all that it holds is folders named so; with ``partitioning="hive"`` paths that a glob or a
list gives are taken apart too. All files must lie below the same keys, in the same order.

Held by: tests/files/test_hive.py
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import unquote

from engine.errors import PlanError
from engine.files.paths import PathLike, check_names, expand_paths, is_hidden, local_path
from engine.files.table_formats import LOGS, check_no_table
from engine.storage.file_systems import file_system_of, is_folder

NULL_FOLDER: Final = "__HIVE_DEFAULT_PARTITION__"
#: characters that Hive and Spark write as %XX in the name of a folder
_ESCAPED: Final = frozenset("\"#%'*/:=?\\{[]^\x7f" + "".join(map(chr, range(1, 0x20))))
_NAME_BYTES_MAX: Final = 255


class HiveFiles(NamedTuple):
    """Files, and the texts that the folders above each of them are named after; None: null."""

    paths: tuple[str, ...]
    keys: tuple[str, ...]
    values: tuple[tuple[str | None, ...], ...]


def hive_files(path: PathLike | Iterable[PathLike], reader: str, is_asked: bool | None) -> HiveFiles:
    """Return the files of a path. ``is_asked``: None takes folders apart where all are named after values.

    Raises: PlanError: no files, or files below different keys.
    """
    if is_asked is False or (is_asked is None and not _is_one_hive_folder(path, reader)):
        plain = expand_paths(path, reader)
        return HiveFiles(plain, (), ((),) * len(plain))
    paths: tuple[str, ...] = ()
    bases: list[int] = []
    for one in [path] if isinstance(path, str | os.PathLike) else list(path):
        place = local_path(one, reader)
        if is_folder(place) and _is_hive(place):
            check_no_table([place], reader)
            found = tuple(_files_below(place, reader))
            check_names(found, reader)
            if not found:
                raise PlanError(f"{reader}({place!r}): the folders in it hold no files")
            base = len(place.split("/"))
        else:
            # Of a file or a glob every folder of the path counts.
            found, base = expand_paths(one, reader), 0
        paths += found
        bases += [base] * len(found)
    known = dict(reversed(list(zip(paths, bases, strict=True))))  # a file is read once, as the first path has it
    paths = tuple(dict.fromkeys(paths))
    bases = [known[file] for file in paths]
    of_folder = lru_cache(maxsize=None)(values_of)
    parsed = [of_folder(file.rpartition("/")[0], base) for file, base in zip(paths, bases, strict=True)]
    keys = tuple(name for name, _ in parsed[0])
    for file, pairs in zip(paths, parsed, strict=True):
        if tuple(name for name, _ in pairs) != keys:
            raise PlanError(
                f"{reader}: {file} lies below {_shown(name for name, _ in pairs)}, {paths[0]} below {_shown(keys)};"
                " read them as two sources"
            )
    return HiveFiles(paths, keys, tuple(tuple(value for _, value in pairs) for pairs in parsed))


def _shown(names: Iterable[str]) -> str:
    return ", ".join(names) or "no folder of a value"


def _is_one_hive_folder(path: PathLike | Iterable[PathLike], reader: str) -> bool:
    if not isinstance(path, str | os.PathLike):
        return False
    place = local_path(path, reader)
    return is_folder(place) and _is_hive(place)


def _is_hive(folder: str) -> bool:
    """Whether all that a folder holds, hidden names aside, is folders named after values."""
    entries = [each for each in file_system_of(folder).entries(folder) if not is_hidden(each.name)]
    return bool(entries) and all(each.is_folder and _parted(each.name) is not None for each in entries)


def _files_below(folder: str, reader: str) -> Iterable[str]:
    # There may be ten thousand of them: they are texts, an object of a path each takes five times as long.
    for entry in sorted(file_system_of(folder).entries(folder), key=lambda each: each.name):
        if entry.name in LOGS:
            check_no_table([folder], reader)
        if is_hidden(entry.name):
            continue
        if entry.is_folder:
            yield from _files_below(entry.path, reader)
        elif entry.is_file:
            yield entry.path


def _parted(name: str) -> tuple[str, str | None] | None:
    """Return key and value of a folder's name; None: it is named after something else."""
    key, mark, value = name.partition("=")
    if not mark or not key:
        return None
    return _unescaped(key), None if value == NULL_FOLDER else _unescaped(value)


def _unescaped(text: str) -> str:
    """Return a text with the characters that %XX stand for; as it is where they are no UTF-8."""
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        return text


def values_of(folder: str, base: int = 0) -> list[tuple[str, str | None]]:
    """Return keys and values that the folders of a path are named after, those from the ``base`` one on."""
    return [pair for name in folder.split("/")[base:] if (pair := _parted(name)) is not None]


def escaped(text: str) -> str:
    """Return a text as part of a folder's name: what would mean something else as %XX of its bytes."""
    return "".join(f"%{ord(each):02X}" if each in _ESCAPED else each for each in text)


def folder_name(key: str, value: str | None) -> str:
    """Return the name of the folder of a value; "" and null are one folder, as for Hive and Spark.

    Raises: PlanError: no folder of that name can be read back as the value.
    """
    if value == NULL_FOLDER:
        raise PlanError(f"{key} is {value!r}, the name of the folder of null: replace the text before it is written")
    name = f"{escaped(key)}={escaped(value) if value else NULL_FOLDER}"
    if name.startswith("."):
        name = f"%2E{name[1:]}"  # readers pass over hidden folders
    if len(name.encode()) > _NAME_BYTES_MAX:
        raise PlanError(f"the folder {name[:60]}... has a name of more than 255 bytes; partition by shorter values")
    return name
