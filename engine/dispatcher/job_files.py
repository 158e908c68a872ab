"""JobFiles: what the files of a job hold: its graph, the events of its journals, its decision, where it staged.

    store_graph, store_decision, store_end ─► StoredFile: name and digest, for the handle
    graph, decision(handle) ─► the same again; DamagedJobError when a digest is another one
    end_journal(journal), events(journal) ─► what it says      stagings ─► where a job may have left something

Blocking, for any thread. Raises OSError. A file that no handle names counts for nothing.

Held by: tests/dispatcher/test_job_storage.py
"""

from __future__ import annotations

import contextlib
import hashlib
import logging

import msgspec

from engine.commit.decision import Decision, decode_decision, encode_decision
from engine.commit.targets import target_named
from engine.dispatcher.job_handle import DamagedJobError, JobHandle, StoredFile, checked_content
from engine.dispatcher.storage_folder import StorageFolder
from engine.errors import CorruptBlockError, PlanError, VersionMismatchError
from engine.formats.output_check import sinks_of, staging_of
from engine.graph.deployment import Staging
from engine.graph.job_graph import JobGraph
from engine.ids import JobId
from engine.jobmaster.job_commit import JobEnd
from engine.jobmaster.job_event import JobEvent, Prepared
from engine.jobmaster.journal_files import end_journal, read_journal
from engine.storage.file_systems import file_system_of

_log = logging.getLogger(__name__)


class JobFiles:
    """Files of jobs in one folder, named by their digests; a journal by the epoch of the leader that writes it."""

    def __init__(self, folder: StorageFolder, epoch: int) -> None:
        self._folder = folder
        self._epoch = epoch

    def path(self, job_id: JobId, name: str) -> str:
        """Return the path of a file of a job."""
        return self._folder.file(job_id, name)

    def journal_path(self, job_id: JobId) -> str:
        """Return the path of this leader's journal of a job."""
        return self.path(job_id, f"journal-{self._epoch:x}")

    def is_there(self, job_id: JobId, name: str) -> bool:
        """Return whether a job has a file."""
        return file_system_of(self._folder.path).is_taken(self.path(job_id, name))

    def store_graph(self, job_graph: JobGraph) -> StoredFile:
        """Write a graph."""
        content = msgspec.msgpack.encode(job_graph)
        digest = hashlib.sha256(content).hexdigest()
        graph = StoredFile(f"graph-{digest[:16]}", digest)
        self._folder.write(self.path(job_graph.job_id, graph.file), content)
        return graph

    def store_decision(self, decision: Decision) -> StoredFile:
        """Write a decision of this leader."""
        content = encode_decision(decision)
        digest = hashlib.sha256(content).hexdigest()
        stored = StoredFile(f"decision-{digest[:16]}.json", digest)
        self._folder.write(self.path(decision.job_id, stored.file), content)
        return stored

    def store_end(self, end: JobEnd) -> StoredFile:
        """Write how a job ended."""
        content = msgspec.json.encode(end)
        digest = hashlib.sha256(content).hexdigest()
        stored = StoredFile(f"{end.record.job_id}-{digest[:16]}.json", digest)
        self._folder.write(self._folder.result(stored.file), content)
        return stored

    def graph(self, handle: JobHandle) -> JobGraph:
        """Return the graph that a handle names. Raises DamagedJobError, VersionMismatchError."""
        path = self.path(handle.job_id, handle.graph.file)
        try:
            graph = msgspec.msgpack.decode(checked_content(path, handle.graph), type=JobGraph)
            graph.validate()
        except msgspec.MsgspecError as error:  # its digest is right: another program has written it so
            raise VersionMismatchError(
                f"{path} is a JobGraph that this version of Drey does not understand ({error}): start a JobManager of "
                "the version that the job was submitted with, or a newer one"
            ) from error
        except (UnicodeDecodeError, PlanError) as error:
            raise DamagedJobError(f"{path} is not a JobGraph: {error}") from error
        if graph.job_id != handle.job_id:
            raise DamagedJobError(f"{path} is the graph of job {graph.job_id}")
        return graph

    def decision(self, handle: JobHandle) -> Decision | None:
        """Return the decision that a handle names, or None."""
        if handle.decision is None:
            return None
        path = self.path(handle.job_id, handle.decision.file)
        try:
            return decode_decision(checked_content(path, handle.decision), path)
        except CorruptBlockError as error:
            raise DamagedJobError(str(error)) from error

    def events(self, job_id: JobId, journal: str) -> tuple[JobEvent, ...]:
        """Return the events of a journal; none where there is no journal. Raises VersionMismatchError, OSError."""
        try:
            return read_journal(journal).events
        except FileNotFoundError:
            return ()
        except CorruptBlockError as error:
            _log.warning("job %s begins anew: %s", job_id, error)
            return ()

    def end_journal(self, journal: str) -> None:
        """Keep a former leader from adding to its journal. Raises OSError."""
        if int(journal.rpartition("-")[2], 16) < self._epoch:
            end_journal(journal)

    def staged_by_journal(self, job_id: JobId, journal: str) -> set[Staging]:
        """Return the places in which a job staged, according to its journal."""
        try:
            events = self.events(job_id, journal)
        except VersionMismatchError as error:
            _log.warning("what job %s staged is found by the names of its outputs: %s", job_id, error)
            return set()
        return {staging for event in events if isinstance(event, Prepared) for staging in event.places.values()}

    def staged_by_name(self, handle: JobHandle) -> set[Staging]:
        """Return the places in which a job may have staged, by its outputs in the handle and in the graph."""
        folder = target_named("folder")
        found = {folder.staging(each, handle.job_id) if isinstance(each, str) else each for each in handle.outputs}
        with contextlib.suppress(DamagedJobError, VersionMismatchError):
            found |= {staging_of(sink.spec, handle.job_id) for sink in sinks_of(self.graph(handle))}
        return found
