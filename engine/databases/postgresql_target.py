"""PostgresqlTarget: tables of PostgreSQL, into which one transaction puts the rows of a job.

    before the job     a row of drey_jobs says "writing"
    attempts           tables drey_<job>_<attempt>, each complete when others see it (``postgresql_writer``)
    publication        one transaction: "writing" becomes "published", the rows of decided attempts go into the table,
                       their tables go
    abort, sweep       "writing" becomes "aborted", the tables of attempts go

drey_jobs lies in the schema of the table. It makes a publication idempotent: a leader that repeats it finds "published"
and does nothing; one whose job was aborted meanwhile fails. Other rows than "writing" are forgotten after a month, when
no leader goes on with their job; until then tables of late attempts are found by them.

Source: transaction identifiers of Delta's log (``txn``), as a table.
Held by: tests/databases/test_write_database.py
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import msgspec

from engine.commit.decision import DecidedOutput
from engine.commit.output_target import OutputTakenError, OutputTarget
from engine.commit.staging import StagingOwner, is_dead, this_process
from engine.databases.database_connection import connected
from engine.databases.database_queries import quoted
from engine.databases.postgresql_table import fitted, literal, look
from engine.databases.repeated_publication import repeated
from engine.databases.written_queries import (
    UNHURRIED,
    check_keys,
    create_text,
    insert_text,
    qualified,
    rows_of,
    union_text,
)
from engine.databases.written_table import (
    JOBS_TABLE,
    STAGING_LENGTH,
    WrittenTable,
    place_of,
    staging_prefix,
    staging_table,
    written_of,
)
from engine.errors import EngineError, JobExecutionError, PlanError
from engine.graph.deployment import StagedFile, Staging
from engine.graph.source_spec import SinkSpec
from engine.ids import JobId

if TYPE_CHECKING:
    from engine.databases.adbc_connection import AdbcCursor

_log = logging.getLogger(__name__)
#: number of the lock under which drey_jobs is made: two transactions that make one table at once would fail
_MAKING: Final = 0x64726579
_KEPT: Final = "INTERVAL '1 month'"


class PostgresqlTarget(OutputTarget):
    """Tables of PostgreSQL."""

    name = "postgresql"

    def resolved(self, spec: SinkSpec) -> str:
        """Return the URI without its password, schema and table."""
        return spec.path

    def check(self, spec: SinkSpec, output: str) -> None:
        """Raise PlanError or SchemaError when the table is there and must not be, or the rows do not fit."""
        written = written_of(spec.options)
        with _transaction(written) as cursor:
            found = look(cursor, written.schema, written.table)
        if found is None:
            return
        if written.mode == "error":
            raise PlanError(
                f"table {written.shown} already exists; pass mode='overwrite' to replace its rows, 'append' to add"
                " rows, or 'upsert' to do so by a key"
            )
        fitted(written, found)

    def staging(self, output: str, job_id: JobId) -> Staging:
        """Return the prefix of the attempts' tables."""
        return Staging(staging_prefix(output, job_id), output, self.name)

    def sweep(self, output: str, cluster: str, is_over: Callable[[JobId], bool]) -> None:
        """Remove tables of jobs with which no process goes on, and of late attempts."""
        place = place_of(output)
        with connected(place.uri, in_transaction=True) as connection, connection.cursor() as cursor:
            jobs = _jobs_table(place.schema)
            if not rows_of(cursor, f"SELECT to_regclass({literal(jobs)})::text")[0][0]:
                return
            of_output = f"FROM {jobs} WHERE output = {literal(output)}"
            # A row that is locked is of a job that is published right now.
            writing = f"SELECT staging, job, owner {of_output} AND state = 'writing' FOR UPDATE SKIP LOCKED"
            for staging, job, owner in rows_of(cursor, writing):
                if _is_stale(msgspec.json.decode(owner, type=StagingOwner), JobId(job), cluster, is_over):
                    _set_state(cursor, jobs, staging, "aborted")
            _drop_tables(cursor, place.schema, f"IN (SELECT staging {of_output} AND state <> 'writing')")
            cursor.execute(f"DELETE {of_output} AND state <> 'writing' AND at < now() - {_KEPT}")
            connection.commit()

    def prepare(self, spec: SinkSpec, staging: Staging, job_id: JobId, cluster: str) -> None:
        """Note that the job writes."""
        written = written_of(spec.options)
        jobs = _jobs_table(written.schema)
        values = ", ".join(map(literal, (staging.path, str(job_id), staging.output, "writing", _owner(cluster))))
        with (
            connected(written.uri, has_password=written.has_password, in_transaction=True) as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute(f"SELECT pg_advisory_xact_lock({_MAKING})")
            cursor.execute(
                f"CREATE TABLE IF NOT EXISTS {jobs} (staging text PRIMARY KEY, job text NOT NULL, output text NOT NULL,"
                " state text NOT NULL, owner text NOT NULL, at timestamptz NOT NULL DEFAULT now())"
            )
            # A leader that was killed right after this has told no other one that it was here.
            noted = rows_of(
                cursor,
                f"INSERT INTO {jobs} AS j (staging, job, output, state, owner) VALUES ({values}) ON CONFLICT (staging)"
                " DO UPDATE SET owner = excluded.owner WHERE j.state = 'writing' RETURNING 1",
            )
            if not noted:
                raise PlanError(f"table {written.shown}: the job was aborted before; submit it anew")
            connection.commit()

    def adopt(self, staging: Staging, job_id: JobId, cluster: str) -> None:
        """Become the owner."""
        place = place_of(staging.output)
        with connected(place.uri, in_transaction=True) as connection, connection.cursor() as cursor:
            cursor.execute(
                f"UPDATE {_jobs_table(place.schema)} SET owner = {literal(_owner(cluster))}"
                f" WHERE staging = {literal(staging.path)}"
            )
            connection.commit()

    def attempt_name(self, stem: str, ending: str, folder: str) -> str:
        """Return the name of an attempt, of which its table's name is made."""
        return stem

    def decided(
        self,
        spec: SinkSpec,
        sink_index: int,
        staging: Staging,
        files: Sequence[StagedFile],
        job_id: JobId,
        *,
        is_passing: bool = False,
    ) -> DecidedOutput:
        """Return the output; DataError where two rows of ``upsert`` have one key."""
        output = super().decided(spec, sink_index, staging, files, job_id, is_passing=is_passing)
        written = written_of(spec.options)
        if written.mode == "upsert" and any(file.row_count for file in output.files):
            with _transaction(written) as cursor:
                check_keys(cursor, written, union_text(written, _tables(written, output)))
        return output

    def publish(
        self, output: DecidedOutput, job_id: JobId, after_step: Callable[[str], None], *, is_durable: bool
    ) -> Mapping[str, int | str]:
        """Put the rows of decided attempts into the table, once."""
        written = written_of(output.options)
        repeated(lambda: self._publish(written, output, after_step), f"table {written.shown}")
        return {"rows": sum(file.row_count for file in output.files)}

    def _publish(self, written: WrittenTable, output: DecidedOutput, after_step: Callable[[str], None]) -> None:
        with (
            connected(written.uri, has_password=written.has_password, in_transaction=True) as connection,
            connection.cursor() as cursor,
        ):
            for statement in UNHURRIED:
                cursor.execute(statement)
            jobs = _jobs_table(written.schema)
            if not _set_state(cursor, jobs, output.staging, "published"):
                where = f"WHERE staging = {literal(output.staging)} AND state = 'published'"
                if rows_of(cursor, f"SELECT 1 FROM {jobs} {where}"):
                    return
                raise JobExecutionError(
                    f"table {written.shown}: the rows of the job are gone; it was aborted, or taken for dead"
                )
            after_step("note")
            _check_counts(cursor, written, output)
            _put_rows(cursor, written, output)
            after_step("insert")
            _drop_tables(cursor, written.schema, f"= {literal(output.staging)}")
            after_step("drop")
            connection.commit()
            after_step("commit")

    def clean(self, output: DecidedOutput, job_id: JobId, after_step: Callable[[str], None]) -> None:
        """Do nothing: the publication has removed all tables of attempts."""
        after_step("clean")

    def abort(self, staging: Staging, job_id: JobId) -> None:
        """Remove the tables of attempts, and note that the job is aborted."""
        place = place_of(staging.output)
        with connected(place.uri, in_transaction=True) as connection, connection.cursor() as cursor:
            jobs = _jobs_table(place.schema)
            if rows_of(cursor, f"SELECT to_regclass({literal(jobs)})::text")[0][0]:
                _set_state(cursor, jobs, staging.path, "aborted")
                _drop_tables(cursor, place.schema, f"= {literal(staging.path)}")
                connection.commit()

    def is_there(self, staging: Staging) -> bool:
        """Return whether the job writes, as far as is known."""
        return self._owner(staging) is not None

    def is_of_cluster(self, staging: Staging, cluster: str) -> bool:
        """Return whether the job belongs to the cluster."""
        owner = self._owner(staging)
        return owner is not None and owner.cluster == cluster != ""

    def _owner(self, staging: Staging) -> StagingOwner | None:
        try:
            return self._found_owner(staging)
        except EngineError as error:
            _log.warning("what job left tables in a database is not known: %s", error)
            return None

    def _found_owner(self, staging: Staging) -> StagingOwner | None:
        place = place_of(staging.output)
        with connected(place.uri, in_transaction=True) as connection, connection.cursor() as cursor:
            jobs = _jobs_table(place.schema)
            if not rows_of(cursor, f"SELECT to_regclass({literal(jobs)})::text")[0][0]:
                return None
            where = f"WHERE staging = {literal(staging.path)} AND state = 'writing'"
            owners = rows_of(cursor, f"SELECT owner FROM {jobs} {where}")
        return msgspec.json.decode(owners[0][0], type=StagingOwner) if owners else None


@contextmanager
def _transaction(written: WrittenTable) -> Iterator[AdbcCursor]:
    """Have the cursor of a transaction, which ends without a trace unless it commits."""
    with (
        connected(written.uri, has_password=written.has_password, in_transaction=True) as connection,
        connection.cursor() as cursor,
    ):
        yield cursor


def _jobs_table(schema: str) -> str:
    return qualified(schema, JOBS_TABLE)


def _owner(cluster: str) -> str:
    return msgspec.json.encode(msgspec.structs.replace(this_process(), cluster=cluster)).decode()


def _is_stale(owner: StagingOwner, job_id: JobId, cluster: str, is_over: Callable[[JobId], bool]) -> bool:
    """Whether no process goes on with a job."""
    return owner.cluster == cluster and is_over(job_id) if owner.cluster else is_dead(owner)


def _set_state(cursor: AdbcCursor, jobs: str, staging: str, state: str) -> bool:
    """Give a job that writes another state; return whether it did write."""
    return bool(
        rows_of(
            cursor,
            f"UPDATE {jobs} SET state = {literal(state)}, at = now() WHERE staging = {literal(staging)}"
            " AND state = 'writing' RETURNING 1",
        )
    )


def _put_rows(cursor: AdbcCursor, written: WrittenTable, output: DecidedOutput) -> None:
    """Put the rows of decided attempts into the table, which is made where it is missing."""
    target, tables = qualified(written.schema, written.table), _tables(written, output)
    found = look(cursor, written.schema, written.table)
    if found is None:
        # Of two jobs that make one table the second waits, and finds it then.
        cursor.execute(f"SELECT pg_advisory_xact_lock(hashtextextended({literal(output.target)}, 0))")
        found = look(cursor, written.schema, written.table)
    if found is None and tables and not written.on:
        # The first attempt's table becomes the target: its rows are not written again.
        cursor.execute(f"ALTER TABLE {tables.pop(0)} RENAME TO {quoted(written.table)}")
    elif found is None:
        cursor.execute(create_text(written, target))
    elif written.mode == "error":
        raise OutputTakenError(
            f"table {written.shown} was created by another program while the job ran; it was left as it is"
        )
    else:
        written = msgspec.structs.replace(written, columns=fitted(written, found))
    if found is not None and written.mode in ("overwrite", "upsert"):
        cursor.execute(f"LOCK TABLE {target} IN SHARE ROW EXCLUSIVE MODE")
    if found is not None and written.mode == "overwrite":
        cursor.execute(f"DELETE FROM {target}")
    if tables:
        cursor.execute(insert_text(written, target, union_text(written, tables)))


def _tables(written: WrittenTable, output: DecidedOutput) -> list[str]:
    """Return the tables of decided attempts that have rows, the largest first."""
    files = sorted((file for file in output.files if file.row_count), key=lambda file: -file.row_count)
    return [qualified(written.schema, staging_table(output.staging, file.name)) for file in files]


def _check_counts(cursor: AdbcCursor, written: WrittenTable, output: DecidedOutput) -> None:
    """Raise JobExecutionError where rows of an attempt were lost."""
    for file in output.files:
        if not file.row_count:
            continue
        table = qualified(written.schema, staging_table(output.staging, file.name))
        found = rows_of(cursor, f"SELECT count(*) FROM {table}")[0][0]
        if found != file.row_count:
            raise JobExecutionError(
                f"table {written.shown}: {table} has {found} rows, and {file.row_count} were written; run the job again"
            )


def _drop_tables(cursor: AdbcCursor, schema: str, stagings: str) -> None:
    """Remove the tables of attempts whose prefix meets a condition."""
    prefix = f"left(tablename::text, {STAGING_LENGTH})"
    found = rows_of(
        cursor,
        f"SELECT tablename::text FROM pg_tables WHERE schemaname = {literal(schema)}"
        f" AND tablename <> {literal(JOBS_TABLE)} AND {prefix} {stagings}",
    )
    if found:
        cursor.execute(f"DROP TABLE {', '.join(qualified(schema, table) for (table,) in found)}")
