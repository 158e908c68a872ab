"""IcebergTarget: the table of a catalog as the place of an output.

    <table>/data/<job id>/<attempt file>.parquet        data files, written where they stay, in a folder or a store
    <table>/data/.drey-<job id>.json                    owner of the folder, and the table, until the job is over

    prepare ─► attempts write ─► (decision) ─► publish: commit of the table ─► clean: files of other attempts
                                    └── abort: the folder goes, unless the table says that it was committed

A reader sees no file before the commit names it. A folder whose job is over is removed by the next job of the table, or
by ``ha gc``, but never where a snapshot has the job's id or a file of the folder: then only the note of its owner goes.

Held by: tests/iceberg_tables/test_write_iceberg.py
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Final

import msgspec

from engine.commit.decision import DecidedOutput
from engine.commit.output_target import OutputTarget
from engine.commit.staging import StagingOwner, is_left, this_process
from engine.errors import EngineError, PlanError
from engine.graph.deployment import Staging
from engine.graph.source_spec import SinkSpec
from engine.iceberg_tables.planned_files import data_path
from engine.iceberg_tables.write_options import WriteOptions, decoded, options_of
from engine.ids import JobId
from engine.storage.file_systems import extent_of, file_system_of, is_folder
from engine.storage.temporary_files import is_left as is_left_temporary

_CALL: Final = "write_iceberg"
_PREFIX: Final = ".drey-"
_ENDING: Final = ".json"
#: name of a note, or of a temporary file of one
_NOTE: Final = re.compile(r"\.{1,2}drey-([0-9a-f]{32})\.json(?:\.[0-9a-f-]{26})?\Z")


class _Note(msgspec.Struct, frozen=True):
    """The owner of a job's folder, and what is needed to look whether it was committed."""

    owner: StagingOwner
    options: WriteOptions


class IcebergTarget(OutputTarget):
    """Tables of Iceberg."""

    name = "iceberg"
    keeps_statistics = True

    def resolved(self, spec: SinkSpec) -> str:
        """Return the folder of the table."""
        return data_path(options_of(spec).location.rstrip("/"))

    def check(self, spec: SinkSpec, output: str) -> None:
        """Raise PlanError where a table that is to be made is there."""
        options = options_of(spec)
        if options.is_new:
            from engine.iceberg_tables.catalog_place import opened

            if opened(options.catalog, _CALL).table_exists(options.table):
                raise PlanError(f"{_CALL}({options.table!r}): the table is there; pass mode='append' or 'overwrite'")

    def staging(self, output: str, job_id: JobId) -> Staging:
        """Return the folder of the job's data files."""
        return Staging(f"{output}/data/{job_id}", output, self.name)

    def prepare(self, spec: SinkSpec, staging: Staging, job_id: JobId, cluster: str) -> None:
        """Make the note of its owner, and the folder."""
        folders = file_system_of(staging.path).folders
        try:
            made = () if folders is None else folders.make_missing(staging.path.rpartition("/")[0])
            owner = msgspec.structs.replace(this_process(), created_parents=made, cluster=cluster)
            _write(staging, _Note(owner, options_of(spec)))
            if folders is not None:
                folders.make(staging.path)
        except OSError as error:
            raise PlanError(f"output {staging.output} cannot be written: {error.strerror or error}") from error

    def adopt(self, staging: Staging, job_id: JobId, cluster: str) -> None:
        """Answer for the folder."""
        note = _note(_place(staging))
        if note is not None:
            parents = note.owner.created_parents
            owner = msgspec.structs.replace(this_process(), created_parents=parents, cluster=cluster)
            _write(staging, msgspec.structs.replace(note, owner=owner))

    def publish(
        self, output: DecidedOutput, job_id: JobId, after_step: Callable[[str], None], *, is_durable: bool
    ) -> Mapping[str, int | str]:
        """Commit the files to the table."""
        from engine.iceberg_tables.table_commit import committed, facts_of

        options = decoded(output.options)
        folder = f"{options.location.rstrip('/')}/data/{job_id}"
        mode = output.mode or ("overwrite" if output.overwrite else "error")
        snapshot_id = committed(options, folder, output.files, str(job_id), mode)
        after_step("commit table")
        return {"snapshot_id": snapshot_id, **facts_of(options, output.files, snapshot_id)}

    def clean(self, output: DecidedOutput, job_id: JobId, after_step: Callable[[str], None]) -> None:
        """Remove files of attempts that were not decided on, and the note."""
        staging = Staging(output.staging, output.target, self.name)
        kept = {file.name for file in output.files if file.row_count} | _deletes_of(output, job_id)
        files = file_system_of(staging.path)
        with suppress(FileNotFoundError):
            for entry in list(files.entries(staging.path)):
                if entry.name not in kept:
                    files.delete(entry.path)
                    after_step(f"remove {entry.name}")
        if not kept:
            files.delete_tree(staging.path)
        files.delete(_place(staging))
        after_step("remove note")

    def abort(self, staging: Staging, job_id: JobId) -> None:
        """Remove the folder, and files of metadata, unless they were committed. Without a note nothing says that."""
        place = _place(staging)
        note = _note(place)
        files = file_system_of(staging.path)
        if files.folders is not None:
            files.folders.remove_left(place.rpartition("/")[0])
        if note is None:
            return
        if not _is_committed(note.options, staging, job_id):
            files.delete_tree(staging.path)
        files.delete(place)
        if files.folders is not None:
            files.folders.remove_empty(note.owner.created_parents)

    def sweep(self, output: str, cluster: str, is_over: Callable[[JobId], bool]) -> None:
        """Remove folders of jobs with which no process goes on."""
        for job_id in list(_noted(output)):
            staging = self.staging(output, job_id)
            note = _note(_place(staging))
            is_waited_for = note is not None and note.owner.cluster != "" and not is_over(job_id)
            if self.is_of_cluster(staging, cluster) and not is_waited_for:
                with suppress(EngineError):  # of a catalog that this process cannot open
                    self.abort(staging, job_id)

    def is_there(self, staging: Staging) -> bool:
        """Return whether there is a note."""
        return file_system_of(staging.path).find(_place(staging)) is not None

    def is_of_cluster(self, staging: Staging, cluster: str) -> bool:
        """Return whether the owner belongs to the cluster, or is a process of this machine that has ended."""
        place = _place(staging)
        note = _note(place)
        if note is not None:
            return is_left(note.owner, cluster)
        folder, _, name = place.rpartition("/")
        with suppress(OSError):
            names = [entry.name for entry in file_system_of(folder).entries(folder)]
            return any(each.startswith(f".{name}.") and is_left_temporary(each) for each in names)
        return False

    def stagings_in(self, folder: str) -> Iterator[tuple[JobId, Staging]]:
        """Yield the folders of jobs that are not over, in the tables in a folder."""
        for table in [entry for entry in file_system_of(folder).entries(folder) if entry.is_folder]:
            for job_id in _noted(table.path):
                yield job_id, self.staging(table.path, job_id)

    def extent(self, staging: Staging) -> tuple[int, float | None]:
        """Return bytes, and the time of the last change."""
        return extent_of(staging.path)


def _deletes_of(output: DecidedOutput, job_id: JobId) -> set[str]:
    """Return the names of files of deletes that a job's commit has, all of them where its snapshot has expired."""
    options, files = decoded(output.options), file_system_of(output.staging)
    if options.rewrite is None or not is_folder(output.staging):
        return set()
    from engine.iceberg_tables.catalog_place import opened
    from engine.iceberg_tables.planned_files import planned
    from engine.iceberg_tables.snapshot_files import snapshot_of_job
    from engine.iceberg_tables.table_commit import DELETES

    names = {entry.name for entry in files.entries(output.staging) if entry.name.startswith(DELETES)}
    if not names:
        return names
    table = opened(options.catalog, _CALL).load_table(options.table)
    snapshot_id = snapshot_of_job(table, str(job_id))
    if snapshot_id is None:
        return names
    plan = planned(table, table.metadata.snapshot_by_id(snapshot_id), _CALL)
    return names & {path.rpartition("/")[2] for each in plan.files for path in each.delete_paths()}


def _place(staging: Staging) -> str:
    folder, _, job_id = staging.path.rpartition("/")
    return f"{folder}/{_PREFIX}{job_id}{_ENDING}"


def _write(staging: Staging, note: _Note) -> None:
    place = _place(staging)
    file_system_of(place).replace(place, msgspec.json.encode(note), is_durable=bool(note.owner.cluster))


def _note(place: str) -> _Note | None:
    try:
        return msgspec.json.decode(file_system_of(place).read(place), type=_Note)
    except (OSError, msgspec.MsgspecError):
        return None


def _noted(output: str) -> Iterator[JobId]:
    """Yield the jobs with a note at a table, or with what a process has left of one."""
    folder = f"{output}/data"
    with suppress(OSError):
        found = [_NOTE.match(entry.name) for entry in file_system_of(folder).entries(folder)]
        yield from (JobId(each) for each in sorted({each[1] for each in found if each is not None}))


def _is_committed(options: WriteOptions, staging: Staging, job_id: JobId) -> bool:
    """Return whether the table has the job's snapshot, or a file of its folder. Raises what the catalog does."""
    from engine.iceberg_tables.catalog_place import opened
    from engine.iceberg_tables.planned_files import planned
    from engine.iceberg_tables.snapshot_files import snapshot_of_job
    from engine.iceberg_tables.tables import placed_errors
    from engine.iceberg_tables.uncommitted_metadata import remove_uncommitted

    with placed_errors(_CALL, options.table):
        catalog = opened(options.catalog, _CALL)
        table = catalog.load_table(options.table) if catalog.table_exists(options.table) else None
        remove_uncommitted(table, options.location, str(job_id))
        if table is None:
            return False
        if snapshot_of_job(table, str(job_id)) is not None:
            return True
        plan = planned(table, table.metadata.current_snapshot(), _CALL)
        paths = (path for each in plan.files for path in (each.file.file_path, *each.delete_paths()))
        return any(data_path(path).startswith(f"{staging.path}/") for path in paths)
