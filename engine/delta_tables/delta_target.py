"""DeltaTarget: tables, of which a job's files are part as soon as a commit of their log names them.

    <table>/drey-<job id>/
        owner.json                          what made it, until the job is over
        year=2024/<sink>-<subtask>-<nonce>-<n>.parquet      files of attempts; they stay there

A file that the log does not name is none of the table's: so attempts write where their files will lie, and nothing is
moved. Folders are named after values, for readers that do not take these from the log. Files of attempts that failed,
and those of a job that did not commit, are removed.

Held by: tests/delta_tables/test_write_delta.py
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from engine.commit.decision import DecidedOutput
from engine.commit.folder_check import resolve_target
from engine.commit.output_target import OutputTarget
from engine.commit.staging import OWNER_FILE, is_left_at, is_stale, is_unowned, own_staging, read_owner
from engine.commit.targets import target_of_path
from engine.delta_tables.table_write import PLACES, change_file, partition_folder, vector_file, written_file
from engine.errors import PlanError
from engine.graph.deployment import Staging
from engine.graph.source_spec import SinkSpec
from engine.ids import JobId
from engine.storage.file_systems import file_system_of, is_folder

_PREFIX: Final = "drey-"
_JOB: Final = re.compile(f"{_PREFIX}([0-9a-f]{{32}})")


class DeltaTarget(OutputTarget):
    """Tables of file systems and of object stores."""

    name = "delta"
    keeps_statistics = True

    def resolved(self, spec: SinkSpec) -> str:
        """Return the absolute path, symbolic links followed, or the URL without slashes at its end."""
        if file_system_of(spec.path).folders is None:
            return spec.path.rstrip("/")
        return os.fspath(resolve_target(spec.path))

    def check(self, spec: SinkSpec, output: str) -> None:
        """Raise PlanError where there is something that is no table, or a table that is to be made."""
        from engine.delta_tables.table_commit import check_table

        check_table(output, spec.options)

    def staging(self, output: str, job_id: JobId) -> Staging:
        """Return the job's folder in the table."""
        return Staging(f"{output}/{_PREFIX}{job_id}", output, self.name)

    def sweep(self, output: str, cluster: str, is_over: Callable[[JobId], bool]) -> None:
        """Remove the files of jobs with which no process goes on, unless the log names them."""
        _remove_temporaries(output)
        with contextlib.suppress(FileNotFoundError):
            for entry in list(file_system_of(output).entries(output)):
                job_id = JobId(entry.name.removeprefix(_PREFIX))
                if not entry.name.startswith(_PREFIX) or not entry.is_folder or entry.is_link:
                    continue
                if is_stale(entry.path, job_id, cluster, is_over):
                    self.abort(self.staging(output, job_id), job_id)

    def prepare(self, spec: SinkSpec, staging: Staging, job_id: JobId, cluster: str) -> None:
        """Make the table's folder, where it is not there, and the job's within it; a store has no folders."""
        folders = file_system_of(staging.output).folders
        made: tuple[str, ...] = ()
        try:
            if folders is not None:
                made = folders.make_missing(staging.output)
                folders.make(staging.path)
            own_staging(staging.path, made, cluster)
        except OSError as error:
            if folders is not None:
                folders.remove_empty(made)
            raise PlanError(f"output {staging.output} cannot be created: {error.strerror or error}") from error

    def adopt(self, staging: Staging, job_id: JobId, cluster: str) -> None:
        """Become the owner of the job's folder."""
        folders = file_system_of(staging.path).folders
        if folders is not None:
            folders.make(staging.path)
        own_staging(staging.path, (), cluster)

    def attempt_name(self, stem: str, ending: str, folder: str) -> str:
        """Return a name in the folder of a partition."""
        folder = partition_folder(folder)
        return f"{folder}/{stem}.{ending}" if folder else f"{stem}.{ending}"

    def publish(
        self, output: DecidedOutput, job_id: JobId, after_step: Callable[[str], None], *, is_durable: bool
    ) -> Mapping[str, int | str]:
        """Commit the job's files to the log, unless that was done."""
        from engine.delta_tables.table_commit import commit

        if is_durable:
            self._sync(output)
        facts = commit(output, job_id)
        after_step("commit")
        return facts

    def _sync(self, output: DecidedOutput) -> None:
        folders = file_system_of(output.staging).folders
        if folders is None:
            return
        for file in output.files:
            for name in (file.name, file.name + PLACES, change_file(file.name)):
                with contextlib.suppress(FileNotFoundError):
                    folders.sync_file(f"{output.staging}/{name}")
        with contextlib.suppress(FileNotFoundError):
            folders.sync(output.staging)

    def clean(self, output: DecidedOutput, job_id: JobId, after_step: Callable[[str], None]) -> None:
        """Remove the files of other attempts, and the owner."""
        names = {file.name for file in output.files if file.row_count}
        names |= {change_file(file.name) for file in output.files if written_file(file).change_bytes}
        self._keep(output.staging, names | {vector_file(job_id)})
        after_step("remove files")

    def _keep(self, folder: str, names: set[str]) -> None:
        """Remove all other files; the owner goes last, so that what a crash leaves can still be swept."""
        if not is_folder(folder):
            return
        files = file_system_of(folder)
        kept = {f"{folder}/{name}" for name in (*names, OWNER_FILE)}
        for place, _, found in list(files.walk(folder)):
            for name in found:
                if f"{place}/{name}" not in kept:
                    files.delete(f"{place}/{name}")
        if names:
            files.delete(f"{folder}/{OWNER_FILE}")
        else:
            files.delete_tree(folder)

    def abort(self, staging: Staging, job_id: JobId) -> None:
        """Remove the job's files, unless the log names them, and empty folders that were made for it."""
        if not is_folder(staging.path):
            return
        from engine.delta_tables.table_commit import committed_files

        owner, folders = read_owner(staging.path), file_system_of(staging.output).folders
        _remove_temporaries(staging.output)
        self._keep(staging.path, committed_files(staging.output, job_id))
        if owner is not None and folders is not None:
            folders.remove_empty(owner.created_parents)

    def is_there(self, staging: Staging) -> bool:
        """Return whether there are files of a job that is not over."""
        owner = file_system_of(staging.path).find(f"{staging.path}/{OWNER_FILE}")
        return owner is not None or is_unowned(staging.path)

    def is_of_cluster(self, staging: Staging, cluster: str) -> bool:
        """Return whether the owner in the job's folder belongs to the cluster."""
        return is_left_at(staging.path, cluster)

    def stagings_in(self, folder: str) -> Iterator[tuple[JobId, Staging]]:
        """Yield the folders of jobs that are not over, in the tables in a folder."""
        files = file_system_of(folder)
        for table in [entry for entry in files.entries(folder) if entry.is_folder]:
            for entry in files.entries(table.path):
                match = _JOB.fullmatch(entry.name)
                staging = Staging(entry.path, table.path, self.name)
                if match is not None and self.is_there(staging):
                    yield JobId(match[1]), staging

    def extent(self, staging: Staging) -> tuple[int, float | None]:
        """Return bytes, and the time of the last change."""
        return target_of_path(staging.path).extent(staging)


def _remove_temporaries(table: str) -> None:
    """Remove what processes of this machine have left in the log when they ended."""
    folders = file_system_of(table).folders
    if folders is not None:
        folders.remove_left(f"{table}/_delta_log")
