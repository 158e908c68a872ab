"""Manifest switch: a write of Spark becomes part of a record data set, parts first, then one rename of the manifest.

    data set/_manifest.json                   what a reader sees: the old one or the new one
             part-<write>-<number>.parquet    listed there, or of no account
             .drey-write-<write>/             parts of a write that is going on
                 owner.json                   whose: host, process, its start

    begin    checks what is there, makes the folder of the write                              on the driver
    (tasks)  each attempt writes files of its own names; what it says of them is its message  on executors
    commit   under the lock: parts get their names ─► manifest renamed ─► leftovers removed   on the driver
    abort    the folder of the write is removed                                               on the driver

Files of attempts that Spark did not commit (failed, speculative, retried tasks) stay in the folder of the write, which
goes with it. Two writes at once take turns at the lock (``target_lock``): appended rows are all there, the later
overwrite wins. A commit that ended between parts and manifest leaves parts that no manifest lists. The next commit
removes these, folders of writes whose process is gone (on another host: after a day), and parts that were replaced,
except those that the switch before it has replaced: a reader may have them open.

Invariant: whatever is in the folder, the manifest lists only whole parts of writes that were committed.
Source: the table formats' optimistic commits, with a lock instead of a retry.
Held by: tests/spark/test_manifest_switch.py
"""

from __future__ import annotations

import decimal
import os
import re
import socket
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec
import psutil
import pyarrow as pa

from engine.commit.target_lock import target_lock
from engine.connectors.records_manifest import (
    MANIFEST_NAME,
    RecordsColumn,
    RecordsManifest,
    read_manifest,
    write_manifest,
)
from engine.connectors.records_parts import PartColumn, WrittenPart, merged_column, merged_manifest
from engine.errors import EngineError, PlanError, SchemaError
from engine.storage.file_systems import LOCAL, is_folder
from engine.storage.temporary_files import temporary_names_of

_WRITE_PREFIX: Final = ".drey-write-"
_OWNER: Final = "owner.json"
#: a manifest before it has its name
_UNNAMED: Final = re.compile(rf"{temporary_names_of(MANIFEST_NAME)}|\._manifest\.json\.(?:[0-9a-f]{{16}}|tmp)")
_OURS: Final = re.compile(rf"part-(?:[0-9a-f]{{12}}-)?\d{{5}}\.parquet|_manifest\.json|{_UNNAMED.pattern}|\.drey-.*")
_PRODUCER: Final = "spark"
#: age after which a write of another host, whose processes cannot be seen from here, is a leftover
_FOREIGN_AGE_S: Final = 24 * 3600.0
#: age after which a folder without its owner's name has none
_UNOWNED_AGE_S: Final = 600.0


class Owner(msgspec.Struct, frozen=True):
    """The process that a write belongs to."""

    host: str
    pid: int
    started: float
    #: folders created for the write, innermost first
    made: tuple[str, ...] = ()


def begin_write(folder: Path, schema: pa.Schema, *, overwrite: bool) -> Path:
    """Return the new folder for the parts of a write, having checked that the data set can take it.

    Raises: PlanError (the folder holds something else), SchemaError (appended rows have other columns).
    """
    check_target(folder, schema, overwrite=overwrite)
    staging = folder / f"{_WRITE_PREFIX}{uuid.uuid4().hex[:12]}"
    own_folder(staging)
    return staging


def own_folder(path: Path) -> None:
    """Make a folder that is a leftover when this process is gone; PlanError where that cannot be."""
    try:
        made = LOCAL.folders.make_missing(os.fspath(path.parent))
        LOCAL.folders.make(os.fspath(path))
    except OSError as error:
        raise PlanError(f"{path.parent} cannot be written to: {error.strerror or error}") from error
    # A search for leftovers finds it whole, or not yet.
    owner = msgspec.json.encode(msgspec.structs.replace(_owner(), made=made))
    LOCAL.replace(os.fspath(path / _OWNER), owner, is_durable=False)


def remove_owned(path: Path) -> None:
    """Remove such a folder, and what was made for it as far as it is empty."""
    made: tuple[str, ...] = ()
    with suppress(OSError, msgspec.DecodeError):
        made = msgspec.json.decode(LOCAL.read(os.fspath(path / _OWNER)), type=Owner).made
    _remove_tree(path)
    LOCAL.folders.remove_empty(made)


def _remove_tree(path: Path) -> None:
    """Remove a folder, first its name: tasks that Spark has given up may still make files under it."""
    removed = path.with_name(f"{path.name}.removed")
    with suppress(OSError):
        LOCAL.folders.rename(os.fspath(path), os.fspath(removed))
    for each in (removed, path):
        with suppress(OSError):
            LOCAL.delete_tree(os.fspath(each))


def remove_dead(paths: Iterable[Path]) -> None:
    """Remove those folders of ``own_folder`` whose process is gone."""
    for path in paths:
        if _is_leftover(path):
            remove_owned(path)


class Promises(msgspec.Struct, frozen=True):
    """Properties that a write promises for its parts, as the manifest has them."""

    producer: str = _PRODUCER
    bad_rows: int = 0
    sorted_by: tuple[str, ...] = ()
    partitioned_by: tuple[str, ...] = ()


def commit_write(
    folder: Path,
    staging: Path,
    schema: pa.Schema,
    parts: Sequence[WrittenPart],
    promises: Promises,
    *,
    overwrite: bool,
    before: RecordsManifest | None = None,
    beside: Callable[[], None] | None = None,
) -> None:
    """Make the parts of a write the data set, or a part of it, and remove what is left over from others.

    With ``before`` that must be there still; PlanError when something else is. ``beside``: done before the manifest is
    switched, when nothing can be refused any more.
    """
    write = staging.name.removeprefix(_WRITE_PREFIX)
    with target_lock(folder):
        if not is_folder(os.fspath(staging)):
            raise PlanError(f"{folder} was replaced while rows were being written to it; write them again")
        there = check_target(folder, schema, overwrite=overwrite)
        if before is not None and there != before:
            raise PlanError(
                f"{folder} was changed by another export meanwhile; nothing was written, run this one again"
            )
        named = [
            msgspec.structs.replace(part, name=f"part-{write}-{number:05d}.parquet")
            for number, part in enumerate(parts)
        ]
        added = msgspec.structs.replace(
            merged_manifest(schema.serialize().to_pybytes(), named), **msgspec.structs.asdict(promises)
        )
        for part, final in zip(parts, named, strict=True):
            LOCAL.publish(os.fspath(staging / part.name), os.fspath(folder / final.name))
        manifest = added if overwrite or there is None else appended(there, added)
        if beside is not None:
            beside()
        write_manifest(folder, manifest)
        _remove_tree(staging)
        _remove_leftovers(folder, (manifest, there) if there else (manifest,))


def abort_write(staging: Path) -> None:
    """Remove the parts of a write, and folders that it has made."""
    remove_owned(staging)


def appended(before: RecordsManifest, added: RecordsManifest) -> RecordsManifest:
    """Return the manifest of a data set with more parts, with what both say of its columns.

    How many values are different in both together is not known: it is their sum where the bounds do not meet, else at
    least the larger of both.
    """
    names = [name for name in before.columns if name in added.columns]
    rows = (before.row_count, added.row_count)
    types = {field.name: field.type for field in pa.ipc.read_schema(pa.py_buffer(before.schema))}
    columns = {
        name: _joined(before.columns[name], added.columns[name], rows, is_decimal=pa.types.is_decimal(types[name]))
        for name in names
    }
    return msgspec.structs.replace(
        before,
        files=(*before.files, *added.files),
        row_count=sum(rows),
        size_bytes=before.size_bytes + added.size_bytes,
        columns=columns if all(rows) else (before if before.row_count else added).columns,
        # Parts stay sorted; a value may be in parts of both.
        sorted_by=before.sorted_by if before.sorted_by == added.sorted_by else (),
        partitioned_by=(),
    )


def _joined(first: RecordsColumn, second: RecordsColumn, rows: tuple[int, int], *, is_decimal: bool) -> RecordsColumn:
    parts = [
        (count, _as_part(column, count, is_decimal=is_decimal))
        for column, count in zip((first, second), rows, strict=True)
    ]
    distinct = None
    if first.distinct_estimate is not None and second.distinct_estimate is not None:
        counts = (first.distinct_estimate, second.distinct_estimate)
        distinct = sum(counts) if _are_apart(*(part for _, part in parts)) else max(counts)
    return msgspec.structs.replace(merged_column(parts), distinct_estimate=distinct)


def _as_part(column: RecordsColumn, rows: int, *, is_decimal: bool) -> PartColumn:
    """Return the statistics of a column; missing bounds are unknown where there are values."""
    has_bounds = column.min is not None or column.null_count == rows
    return PartColumn(
        column.min, column.max, has_bounds, is_decimal, null_count=column.null_count, heavy_keys=column.heavy_keys
    )


def _are_apart(first: PartColumn, second: PartColumn) -> bool:
    """Return whether the bounds of two columns are known and do not meet."""
    if None in (first.min, second.min):
        return False
    order: Callable[[Any], Any] = decimal.Decimal if first.is_decimal else _itself
    least, most = (order(first.min), order(second.min)), (order(first.max), order(second.max))
    return bool(most[0] < least[1] or most[1] < least[0])


def _itself(value: Any) -> Any:
    return value


def check_target(folder: Path, schema: pa.Schema, *, overwrite: bool) -> RecordsManifest | None:
    """Return the manifest of the data set that is there, None where there is none yet; refuse rows of other columns."""
    known = LOCAL.find(os.fspath(folder))
    if known is None:
        return None
    if not known.is_folder:
        raise PlanError(f"{folder} is a file, not the folder of a record data set")
    foreign = sorted(each.name for each in LOCAL.entries(os.fspath(folder)) if not _OURS.fullmatch(each.name))
    if foreign:
        raise PlanError(
            f"{folder} holds {foreign[0]!r}, which is no part of a record data set; nothing was written: "
            "choose another folder, or empty this one"
        )
    if LOCAL.find(os.fspath(folder / MANIFEST_NAME)) is None:
        return None
    before = _manifest_of(folder, overwrite=overwrite)
    if before is not None and not overwrite:
        _check_same_columns(folder, pa.ipc.read_schema(pa.py_buffer(before.schema)), schema)
    return before


def _manifest_of(folder: Path, *, overwrite: bool) -> RecordsManifest | None:
    try:
        return read_manifest(folder)
    except EngineError:
        # A data set that is damaged can be replaced.
        if overwrite:
            return None
        raise


def _check_same_columns(folder: Path, there: pa.Schema, added: pa.Schema) -> None:
    if there.names == added.names and there.types == added.types:
        return
    for field in there:
        index = added.get_field_index(field.name)
        if index < 0:
            raise SchemaError(f"append to {folder}: the rows have no column {field.name!r}; they have {added.names}")
        if added.types[index] != field.type:
            raise SchemaError(
                f"append to {folder}: column {field.name!r} is {field.type} there and {added.types[index]} in the rows "
                "to append; cast it, or overwrite"
            )
    more = [name for name in added.names if name not in there.names]
    if more:
        raise SchemaError(f"append to {folder}: it has no column {more[0]!r}; it has {there.names}")
    raise SchemaError(f"append to {folder}: its columns are in the order {there.names}; select them in it")


def _remove_leftovers(folder: Path, manifests: Sequence[RecordsManifest]) -> None:
    listed = {file.name for manifest in manifests for file in manifest.files}
    for each in list(LOCAL.entries(os.fspath(folder))):
        if each.name.startswith(_WRITE_PREFIX):
            remove_dead([Path(each.path)])
        elif _UNNAMED.fullmatch(each.name) or (each.name.endswith(".parquet") and each.name not in listed):
            LOCAL.delete(each.path)


def _is_leftover(staging: Path) -> bool:
    """Return whether the write that a folder belongs to is over."""
    try:
        owner = msgspec.json.decode(LOCAL.read(os.fspath(staging / _OWNER)), type=Owner)
        if owner.host == socket.gethostname():
            return _start_of(owner.pid) != owner.started
        return time.time() - LOCAL.status(os.fspath(staging)).modified_ns / 1e9 > _FOREIGN_AGE_S
    except FileNotFoundError:
        # It is just being made, or has just been removed.
        with suppress(FileNotFoundError):
            return time.time() - LOCAL.status(os.fspath(staging)).modified_ns / 1e9 > _UNOWNED_AGE_S
        return False
    except msgspec.DecodeError:
        return True


def _owner() -> Owner:
    """Return the process that ends when this write can't go on: Spark's JVM, of which Python's workers are children."""
    process = psutil.Process()
    above = [process, *process.parents()]
    owner = next((one for one in above if "java" in one.name()), process)
    return Owner(socket.gethostname(), owner.pid, owner.create_time())


def _start_of(pid: int) -> float | None:
    """Return the start time of a process; None: it has ended, even if its parent has not reaped it."""
    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else process.create_time()
    except psutil.NoSuchProcess:
        return None
