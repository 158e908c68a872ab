"""SqliteTarget: tables of SQLite, into which one transaction puts the rows of a job.

    attempts       Arrow files in a folder beside the database: one writer at a time is all that SQLite has
    publication    one transaction: the job is noted in drey_jobs, the rows of decided files go into the table
    abort, sweep   the folder goes (``engine.commit.staging``)

A job that is noted is published: a leader that repeats it does nothing.

Held by: tests/databases/test_write_database.py
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from engine.commit.beside_target import BesideTarget
from engine.commit.decision import DecidedOutput
from engine.commit.output_target import OutputTakenError
from engine.commit.staging import read_owner, remove_staging
from engine.databases.database_connection import SQLITE, connected, database_file
from engine.databases.database_queries import quoted, text_literal
from engine.databases.repeated_publication import repeated
from engine.databases.sqlite_table import check_fit, has_table
from engine.databases.written_queries import check_keys, create_text, insert_text, rows_of
from engine.databases.written_table import JOBS_TABLE, OutputPlace, WrittenTable, place_of, written_of
from engine.errors import JobExecutionError, PlanError
from engine.graph.deployment import Staging
from engine.graph.source_spec import SinkSpec
from engine.ids import JobId
from engine.storage.file_systems import is_file, is_folder

if TYPE_CHECKING:
    from engine.databases.adbc_connection import AdbcCursor

#: table of one connection
_UPSERTED = "drey_upserted"


class SqliteTarget(BesideTarget):
    """Tables of SQLite."""

    name = "sqlite"

    def resolved(self, spec: SinkSpec) -> str:
        """Return the URI and the table."""
        return spec.path

    def check(self, spec: SinkSpec, output: str) -> None:
        """Raise PlanError or SchemaError when the table is there and must not be, or the rows do not fit."""
        written = written_of(spec.options)
        folder = os.fspath(Path(database_file(written.uri)).parent)
        if not is_folder(folder):
            raise PlanError(f"database {written.uri}: there is no folder {folder}")
        if not is_file(database_file(written.uri)):
            return
        with connected(written.uri) as connection, connection.cursor() as cursor:
            if not has_table(cursor, written.table):
                return
            if written.mode == "error":
                raise PlanError(
                    f"table {written.shown} already exists; pass mode='overwrite' to replace its rows, 'append' to add"
                    " rows, or 'upsert' to do so by a key"
                )
            check_fit(cursor, written)

    def beside(self, output: str) -> Path:
        """Return the beginning of the paths of a table's folders, one for each job, which lie beside the database."""
        place: OutputPlace = place_of(output)
        mark = hashlib.blake2b(place.table.encode(), digest_size=4).hexdigest()
        return Path(f"{database_file(place.uri)}-{mark}")

    def publish(
        self, output: DecidedOutput, job_id: JobId, after_step: Callable[[str], None], *, is_durable: bool
    ) -> Mapping[str, int | str]:
        """Put the rows of decided files into the table, once."""
        written = written_of(output.options)
        repeated(lambda: self._publish(written, output, job_id, after_step), f"table {written.shown}")
        return {"rows": sum(file.row_count for file in output.files)}

    def _publish(
        self, written: WrittenTable, output: DecidedOutput, job_id: JobId, after_step: Callable[[str], None]
    ) -> None:
        with connected(written.uri, in_transaction=True) as connection, connection.cursor() as cursor:
            cursor.execute(
                f"CREATE TABLE IF NOT EXISTS {JOBS_TABLE} (job TEXT, output TEXT, at TEXT, PRIMARY KEY (job, output))"
            )
            noted = f"{text_literal(str(job_id), SQLITE)}, {text_literal(output.target, SQLITE)}"
            if rows_of(cursor, f"SELECT 1 FROM {JOBS_TABLE} WHERE (job, output) = ({noted})"):
                return
            if not is_folder(output.staging):
                raise JobExecutionError(f"table {written.shown}: the rows of the job are gone; it was aborted")
            cursor.execute(f"INSERT INTO {JOBS_TABLE} VALUES ({noted}, datetime())")
            after_step("note")
            if has_table(cursor, written.table):
                if written.mode == "error":
                    raise OutputTakenError(
                        f"table {written.shown} was created by another program while the job ran; it was left as it is"
                    )
                check_fit(cursor, written)
            else:
                cursor.execute(create_text(written, quoted(written.table)))
            if written.mode == "overwrite":
                cursor.execute(f"DELETE FROM {quoted(written.table)}")
            _insert(cursor, written, output)
            after_step("insert")
            connection.commit()
            after_step("commit")

    def clean(self, output: DecidedOutput, job_id: JobId, after_step: Callable[[str], None]) -> None:
        """Remove the folder."""
        if is_folder(output.staging):
            remove_staging(Path(output.staging))
        after_step("clean")

    def is_of_cluster(self, staging: Staging, cluster: str) -> bool:
        """Return whether the owner in the folder belongs to the cluster."""
        owner = read_owner(Path(staging.path))
        return owner is not None and owner.cluster == cluster != ""


def _insert(cursor: AdbcCursor, written: WrittenTable, output: DecidedOutput) -> None:
    """Put the rows of decided files into the table."""
    import pyarrow as pa

    from engine.connectors.block_files import open_blocks

    # Rows with keys are looked at in a table of the connection before they go into theirs.
    is_upsert = written.mode == "upsert"
    files = [file for file in output.files if file.row_count]
    for file in files:
        blocks = open_blocks("ipc", f"{output.staging}/{file.name}")
        try:
            batches = blocks.batches(0, blocks.block_count)
            rows = pa.RecordBatchReader.from_batches(blocks.schema, batches)
            count = cursor.ingest(_UPSERTED if is_upsert else written.table, rows, is_temporary=is_upsert)
        finally:
            blocks.close()
        if count != file.row_count:
            raise JobExecutionError(
                f"table {written.shown}: {file.name} has {count} rows, and {file.row_count} were written; run the job"
                " again"
            )
    if is_upsert and files:
        check_keys(cursor, written, f"temp.{_UPSERTED}")
        cursor.execute(insert_text(written, quoted(written.table), f"temp.{_UPSERTED} AS s"))
