"""Publication of an export under its name, with other writers at the same time.

    staging(target)    a folder beside the target, whose name begins with a dot; those of processes that are gone go
    publish            no target       ─► one rename; the second writer finds it taken, and reports so
                       a data set      ─► its manifest is switched: readers that have begun go on with the old parts
                       something else  ─► the folder is replaced, under the target's lock
    append             the switch of the manifest, unless another writer has changed the data set since it was read

Held by: tests/spark/test_export_publishing.py
"""

from __future__ import annotations

import errno
import os
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from engine.commit.target_lock import remove_stale_lock, target_lock
from engine.connectors.records_manifest import MANIFEST_NAME, RecordsManifest
from engine.connectors.records_parts import WrittenPart
from engine.errors import PlanError
from engine.spark.manifest_switch import (
    Promises,
    abort_write,
    begin_write,
    check_target,
    commit_write,
    own_folder,
    remove_dead,
    remove_owned,
)
from engine.storage.file_systems import LOCAL, is_file


@contextmanager
def staging(target: Path) -> Iterator[Path]:
    """Give a folder of this export's own beside its target; leftovers of killed exports are removed first."""
    leftovers = LOCAL.matching(f"{target.parent}/.{_literal(target.name)}.drey-export-*")
    remove_dead(map(Path, leftovers))
    remove_stale_lock(target)
    folder = target.with_name(f".{target.name}.drey-export-{uuid.uuid4().hex}")
    own_folder(folder)
    try:
        yield folder
    finally:
        remove_owned(folder)


def _literal(name: str) -> str:
    return "".join(f"[{each}]" if each in "*?[" else each for each in name)


class Made(NamedTuple):
    """Parts and their manifest in a staging folder."""

    folder: Path
    schema: pa.Schema
    parts: Sequence[WrittenPart]
    manifest: RecordsManifest


def publish(made: Made, target: Path, *, overwrite: bool) -> None:
    """Put a folder with parts and their manifest where the target is to be, or in place of what is there.

    Raises: PlanError when another writer has made a target that was not there, and it is not to be replaced.
    """
    if not overwrite or not LOCAL.find(os.fspath(target)):
        try:
            LOCAL.folders.rename(os.fspath(made.folder), os.fspath(target))
            return
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise
        if not overwrite:
            raise PlanError(
                f"output {target} was created by another writer while this export ran; "
                "nothing was exported: run it again with --overwrite to replace it, or with another output"
            )
    if is_file(os.fspath(target / MANIFEST_NAME)):
        _switch(made, target, None)
    else:
        with target_lock(target):
            LOCAL.folders.rename(os.fspath(target), os.fspath(made.folder.with_name("replaced")))
            LOCAL.folders.rename(os.fspath(made.folder), os.fspath(target))


def append(made: Made, target: Path, before: RecordsManifest, beside: Callable[[], None] | None = None) -> None:
    """Add the parts in a folder to a data set, and do what goes with it.

    Raises: PlanError when it is not as it was before: rows beyond a watermark would be there twice. SchemaError when
    the columns are others, also where there is no row yet.
    """
    check_target(target, made.schema, overwrite=False)
    if made.manifest.row_count:
        _switch(made, target, before, beside)
    elif beside is not None:
        with target_lock(target):
            beside()


def _switch(made: Made, target: Path, before: RecordsManifest | None, beside: Callable[[], None] | None = None) -> None:
    write = begin_write(target, made.schema, overwrite=before is None)
    known = made.manifest
    promises = Promises(known.producer, known.bad_rows, known.sorted_by, known.partitioned_by)
    is_whole = before is None
    try:
        for part in made.parts:
            LOCAL.publish(os.fspath(made.folder / part.name), os.fspath(write / part.name))
        commit_write(target, write, made.schema, made.parts, promises, overwrite=is_whole, before=before, beside=beside)
    except BaseException:
        abort_write(write)
        raise
