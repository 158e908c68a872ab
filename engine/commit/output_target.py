"""OutputTarget: the seam between the JobMaster and the places where outputs land: folders, stores, tables, databases.

    before the job    resolved ─► check ─► sweep ─► prepare              a next leader: adopt
    tasks             attempt_name                                       where an attempt writes its next file
    the end           decided ─► (the decision is kept) ─► publish ─► clean
                      abort                                              failure, cancel, and what killed jobs left
    leftovers         stagings_in, is_there, is_of_cluster, extent

An entry has no state, and there is one of each (``engine.commit.targets``). A ``Staging`` is all that a leader needs
to abort a job of which it knows nothing else; a ``DecidedOutput`` is all that it needs to publish one. Both are data,
which is kept and travels, so that neither may hold a secret.

``publish`` may be repeated by any leader, after any crash, and arrives at the same output: a rename sees that it was
done, an upload that was completed is complete, a table finds the job's id in its log. All steps are blocking calls,
which run in threads.

Held by: tests/commit/test_targets.py
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ClassVar

from engine.commit.decision import DecidedFile, DecidedOutput
from engine.errors import JobExecutionError
from engine.graph.deployment import StagedFile, Staging
from engine.graph.source_spec import SinkSpec
from engine.ids import JobId


class OutputTakenError(JobExecutionError):
    """Another program created the target while the job ran.

    What to do: run the job again with another path, or with ``overwrite=True``.
    """


class OutputTarget(ABC):
    """An entry: what has to be done where outputs of one kind land."""

    #: the word for it in stagings and decisions
    name: ClassVar[str]
    #: flag of targets that need the statistics of each file when they publish
    keeps_statistics: ClassVar[bool] = False
    #: bytes after which the next file begins in any case; 0: a file may have any size
    file_bytes_max: ClassVar[int] = 0

    #: flag of targets whose steps wait for nothing, neither a disk nor another process
    is_at_once: ClassVar[bool] = False

    # ---- before the job

    @abstractmethod
    def resolved(self, spec: SinkSpec) -> str:
        """Return the name of an output that is the same in every process; no secret is in it. Raises PlanError."""

    def check(self, spec: SinkSpec, output: str) -> None:
        """Raise PlanError when an output cannot be written; nothing has been done for the job yet."""
        return

    @abstractmethod
    def staging(self, output: str, job_id: JobId) -> Staging:
        """Return the place in which a job writes what becomes the output, whether it is there or not."""

    def sweep(self, output: str, cluster: str, is_over: Callable[[JobId], bool]) -> None:
        """Remove what jobs left at an output with which no process goes on.

        cluster: the cluster of this process; ``is_over`` tells whether another job of it has ended.
        """
        return

    @abstractmethod
    def prepare(self, spec: SinkSpec, staging: Staging, job_id: JobId, cluster: str) -> None:
        """Make the place where attempts write. Raises PlanError, OSError; what was made is gone then."""

    def adopt(self, staging: Staging, job_id: JobId, cluster: str) -> None:
        """Answer for what an earlier leader of the job has prepared."""
        return

    # ---- tasks

    def attempt_name(self, stem: str, ending: str, folder: str) -> str:
        """Return the name, within the staging's path, of an attempt's next file; folders in it are made.

        stem: a name that no other attempt of any job uses; ``folder``: of its partition in the output.
        """
        return f"{stem}.{ending}"

    # ---- the end

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
        """Return the output of one sink from the files of its finished attempts, in the order of their rows.

        is_passing: whether the output need not survive a crash of the machine.
        """
        suffix = f"-{job_id}" if spec.mode else ""
        return DecidedOutput(
            sink_index,
            staging.output,
            staging.path,
            spec.overwrite,
            decided_files(files, suffix, keeps_statistics=self.keeps_statistics),
            mode=spec.mode,
            is_passing=is_passing,
            kind=self.name,
            options=spec.options,
        )

    @abstractmethod
    def publish(
        self, output: DecidedOutput, job_id: JobId, after_step: Callable[[str], None], *, is_durable: bool
    ) -> Mapping[str, int | str]:
        """Make decided files the output; return facts for the job's result, the same when it is repeated.

        after_step: called with each step's name when it is done.
        is_durable: whether a leader may go on after a crash of the machine.
        """

    @abstractmethod
    def clean(self, output: DecidedOutput, job_id: JobId, after_step: Callable[[str], None]) -> None:
        """Remove what is left of the job beside the output that was published; idempotent."""

    @abstractmethod
    def abort(self, staging: Staging, job_id: JobId) -> None:
        """Remove what a job wrote that is not published; idempotent."""

    # ---- leftovers

    @abstractmethod
    def is_there(self, staging: Staging) -> bool:
        """Return whether ``abort`` would find something."""

    def stagings_in(self, folder: str) -> Iterable[tuple[JobId, Staging]]:
        """Yield the stagings of outputs that are directly in a folder."""
        return ()

    def is_of_cluster(self, staging: Staging, cluster: str) -> bool:
        """Return whether a job of that cluster made it, or a process of this machine that is gone, if that is known."""
        return True

    def extent(self, staging: Staging) -> tuple[int, float | None]:
        """Return the bytes of what a job wrote, and the time of the last change, seconds since 1970; None: unknown."""
        return 0, None


def decided_files(files: Sequence[StagedFile], suffix: str = "", *, keeps_statistics: bool) -> tuple[DecidedFile, ...]:
    """Return files with their names in the output, numbered by subtask in each folder; ``suffix`` is in each name."""
    ordered = sorted((file for file in files if file.name), key=lambda file: (file.subtask_index, file.name))
    counts: Counter[str] = Counter()
    found = []
    for file in ordered:
        part = f"part-{counts[file.folder]:05d}{suffix}{_extension(file.name)}"
        counts[file.folder] += 1
        place = f"{file.folder}/{part}" if file.folder else part
        statistics = file.statistics_json if keeps_statistics else ""
        found.append(DecidedFile(file.name, place, file.row_count, file.size_bytes, file.folder, statistics))
    return tuple(found)


def _extension(name: str) -> str:
    """Return the extension of a staged file's name, from its first dot: ".csv.gz"."""
    last = name.rpartition("/")[2]
    return last[last.index(".") :] if "." in last else ""
