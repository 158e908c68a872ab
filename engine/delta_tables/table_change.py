"""TableChange: a version of a table that the library cannot make, since it names no deletion vectors and no changes.

    is_by_hand(table, write)          whether a version is one of these
    change.put(key, facts)            make it; False: another writer was first

Files of the table with deleted rows go together with their vectors. Rows that a merge deletes by their places, which
its tasks have noted beside their files, are those of the file's vector and of the new one. A file of which all rows are
deleted goes.

Held by: tests/delta_tables/test_deletion_vectors.py
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote

import msgspec

from engine.clock import SystemClock
from engine.commit.decision import DecidedOutput
from engine.delta_tables.deletion_vectors import NewVectors, rows_of
from engine.delta_tables.library import library, storage_options
from engine.delta_tables.log_actions import check_unchanged, live_files, put_version
from engine.delta_tables.table_log import file_place
from engine.delta_tables.table_write import PLACES, TableWrite, change_file, partition_values, written_file
from engine.errors import JobExecutionError
from engine.ids import JobId
from engine.parquet.footers import read_footer
from engine.storage.file_systems import file_system_of

if TYPE_CHECKING:
    from pyroaring import BitMap64

#: versions from one checkpoint to the next, where the table does not say it
_CHECKPOINT_INTERVAL: Final = 100


def is_by_hand(table: Any, write: TableWrite) -> bool:
    """Return whether a change may take files with deletion vectors away, or makes some."""
    has_vectors = "deletionVectors" in (table.protocol().writer_features or ())
    return write.keeps_changes or (has_vectors and write.mode in ("rewrite", "overwrite_partitions"))


class TableChange(NamedTuple):
    """A change of one version."""

    table: Any
    write: TableWrite
    output: DecidedOutput
    job_id: JobId
    #: add actions of the library
    added: Sequence[Any]
    #: files that go, by their paths in the log
    removed: Sequence[str]

    def put(self, key: str, facts: dict[str, int | str]) -> bool:
        """Make the next version, with facts under a key of its information.

        Raises: JobExecutionError (other writers, several matches of a row), DataError (a damaged vector).
        """
        place, version = self.output.target, self.table.version()
        deleted = self._deleted_rows()
        if deleted:
            check_unchanged(self.write, place, version, deleted)
        gone = [file_place(place, path) for path in self.removed]
        live = live_files(place, version, [*gone, *deleted])
        vectors, now = NewVectors(place, self.job_id), SystemClock().wall_ms()
        actions = [{"remove": self._removal(live[path], now)} for path in (*gone, *deleted)]
        for path, rows in deleted.items():
            with_vector = self._with_vector(live[path], rows, vectors)
            if with_vector is not None:
                actions.append({"add": with_vector})
        actions += [{"add": self._addition(each)} for each in self.added]
        actions += [{"cdc": each} for each in self._changes()]
        if not actions:
            facts["version"] = version
            return True
        vectors.write()
        facts["files_removed"] = len(gone)
        told: dict[str, Any] = {
            "timestamp": now,
            "operation": "MERGE" if self.write.merges else "WRITE",
            "operationParameters": {},
            "engineInfo": "drey",
            key: json.dumps({"job": str(self.job_id), **facts}),
        }
        transaction = {"appId": str(self.job_id), "version": 1, "lastUpdated": now}
        if not put_version(place, version + 1, [{"commitInfo": told}, {"txn": transaction}, *actions]):
            return False
        self._checkpoint(version + 1)
        return True

    def _deleted_rows(self) -> dict[str, BitMap64]:
        """Return the rows that tasks have noted, by files. Raises: JobExecutionError for a row that is in it twice."""
        if not self.write.deletes_rows:
            return {}
        from pyroaring import BitMap64

        found: dict[str, BitMap64] = {}
        count = 0
        for file in self.output.files:
            written = written_file(file)
            count += written.counts.get("rows_updated", 0) + written.counts.get("rows_deleted", 0)
            if written.has_places:
                content = file_system_of(self.output.staging).read(f"{self.output.staging}/{file.name}{PLACES}")
                for path, data in msgspec.msgpack.decode(content, type=dict[str, bytes]).items():
                    found[path] = found.get(path, BitMap64()) | BitMap64.deserialize(data)
        if sum(map(len, found.values())) != count:
            raise JobExecutionError(
                f"{self.output.target}: rows of the source have the same key as one row of the table, or were others"
                " when they were read again; nothing was changed"
            )
        return dict(sorted(found.items()))

    def _with_vector(self, file: dict[str, Any], rows: BitMap64, vectors: NewVectors) -> dict[str, Any] | None:
        """Return the add action of a file with more rows deleted, None where all are."""
        place = self.output.target
        told = json.loads(file.get("stats") or "{}", parse_float=str)
        row_count = told.get("numRecords")
        stats: str = file.get("stats") or "{}"
        if row_count is None:
            row_count = read_footer(file_place(place, file["path"])).num_rows
            stats = json.dumps({"numRecords": row_count})
        if file.get("deletionVector") is not None:
            rows = rows | rows_of(place, file["deletionVector"])
        if len(rows) >= row_count:
            return None
        # The bounds may be those of rows that are deleted.
        if "tightBounds" not in told:
            stats = '{"tightBounds":false,' + stats.lstrip().removeprefix("{").lstrip()
        else:
            stats = stats.replace('"tightBounds":true', '"tightBounds":false')
        known = {name: value for name, value in file.items() if value is not None}
        return {**known, "stats": stats, "dataChange": True, "deletionVector": vectors.add(rows)}

    def _removal(self, file: dict[str, Any], now: int) -> dict[str, Any]:
        known = {name: file.get(name) for name in ("path", "partitionValues", "size", "deletionVector")}
        known = {name: value for name, value in known.items() if value is not None}
        return {
            **known,
            "deletionTimestamp": now,
            "dataChange": self.write.changes_data,
            "extendedFileMetadata": True,
        }

    @staticmethod
    def _addition(added: Any) -> dict[str, Any]:
        return {
            "path": quote(added.path, safe="/=:"),
            "partitionValues": added.partition_values,
            "size": added.size,
            "modificationTime": added.modification_time,
            "dataChange": added.data_change,
            "stats": added.stats,
        }

    def _changes(self) -> Iterator[dict[str, Any]]:
        """Yield the actions of files for the change data feed."""
        folder = self.output.staging.removeprefix(f"{self.output.target}/")
        for file in self.output.files:
            size = written_file(file).change_bytes
            if size:
                path = quote(f"{folder}/{change_file(file.name)}", safe="/=:")
                values = partition_values(file, self.write)
                yield {"path": path, "partitionValues": values, "size": size, "dataChange": False}

    def _checkpoint(self, version: int) -> None:
        """Make a checkpoint where one is due; the library makes those of its own versions. It may fail."""
        place, known = self.output.target, self.table.metadata().configuration
        if version % int(known.get("delta.checkpointInterval", _CHECKPOINT_INTERVAL)) == 0:
            deltalake = library("merge_into")
            with contextlib.suppress(OSError, deltalake.exceptions.DeltaError):
                deltalake.DeltaTable(place, storage_options=storage_options(place)).create_checkpoint()
