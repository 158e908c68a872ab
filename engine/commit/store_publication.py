"""StorePublication: the decided files become the content of a prefix at one moment. Any step may be the last one.

    1  adding     the state names the files that are coming: no listing of ours shows them
    2  copy       the store copies each staged file to its name
    3  removing   the state names what they replace: from now on they count, and that does not
    4  delete     texts are put, such as a manifest; what was replaced is deleted; then _SUCCESS
    5  idle       the job's id is kept in the state: a repetition sees that it is done

Each change of the state replaces the version that was read (``store_folder``), so that of two publications one waits,
and of two leaders that repeat one both arrive at the same. What stopped before 3 is undone, what stopped behind it is
completed, by the next leader, by the next job with the same output, or by ``ha gc``.

Readers that only list see the files of a publication come one by one, between 1 and 5, and _SUCCESS last; it is not
there in the meantime.

Limits: a store has to know conditional puts. One that ignores their condition cannot keep two publications apart.

Held by: tests/commit/test_store_target.py
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from engine.commit.decision import DecidedOutput
from engine.commit.output_target import OutputTakenError
from engine.errors import JobExecutionError, PlanError
from engine.ids import JobId
from engine.storage.file_system import Objects
from engine.storage.file_systems import file_system_of
from engine.storage.known_objects import in_parallel
from engine.storage.store_folder import ADDING, IDLE, REMOVING, STATE_NAME, FolderState, decode_state, encode_state

_SUCCESS: Final = "_SUCCESS"
#: copies and deletions at the same time, and names in one request for deletion
_AT_ONCE: Final = 16
_DELETED_AT_ONCE: Final = 1000
#: jobs that a state remembers
_JOBS_MAX: Final = 100
#: seconds that a publication of another job may go on without a change before it is undone, and between two looks
_PATIENCE_S: Final = 60.0
_LOOK_S: Final = 0.2

Settle = Callable[[str, JobId], bool]


def objects_of(path: str) -> Objects:
    """Return the operations on objects of a path's store; PlanError where it has none."""
    objects = file_system_of(path).objects
    if objects is None:
        raise PlanError(f"{path}: its file system is no object store")
    return objects


def _no_step(step: str) -> None:
    """Do nothing after a step; tests stop there."""


class StorePublication:
    """Publications into one prefix. ``after_step``: called with each step's name when it is done."""

    def __init__(self, target: str, after_step: Callable[[str], None] = _no_step) -> None:
        self._target = target
        self._objects = objects_of(target)
        self._after_step = after_step

    def publish(self, output: DecidedOutput, job_id: JobId, settle: Settle) -> None:
        """Make decided files the content; idempotent.

        settle: undoes or completes the publication of another job, unless that goes on.
        """
        waited: tuple[int, float] = (-1, 0.0)
        while True:
            state, version = self._read()
            if str(job_id) in state.jobs and state.job_id != str(job_id):
                return
            if state.phase == IDLE:
                if str(job_id) in state.jobs:
                    return
                self._begin(output, job_id, state, version)
            elif state.job_id != str(job_id):
                if waited[0] != state.sequence:
                    waited = state.sequence, time.monotonic()
                if settle(self._target, JobId(state.job_id)):
                    continue
                if time.monotonic() - waited[1] > _PATIENCE_S:
                    self.settle(JobId(state.job_id))
                time.sleep(_LOOK_S)
            elif state.phase == ADDING:
                self._add(output, state, version)
            elif self._finish(state, version):
                return

    def settle(self, job_id: JobId) -> None:
        """Undo what a job had begun to publish; complete it where it counts already."""
        while True:
            state, version = self._read()
            if state.phase == IDLE or state.job_id != str(job_id):
                return
            if (state.phase == REMOVING and self._finish(state, version)) or (
                state.phase == ADDING and self._undo(state, version)
            ):
                return

    # ---- the steps

    def _read(self) -> tuple[FolderState, Any]:
        found = self._objects.read_version(f"{self._target}/{STATE_NAME}")
        return (FolderState(), None) if found is None else (decode_state(found[0]), found[1])

    def _change(self, state: FolderState, version: Any, **changes: Any) -> bool:
        """Replace the state; False when another has done so."""
        changed = msgspec.structs.replace(
            state, sequence=state.sequence + 1, changed_ms=time.time_ns() // 1_000_000, **changes
        )
        return self._objects.put_version(f"{self._target}/{STATE_NAME}", encode_state(changed), version) is not None

    def _begin(self, output: DecidedOutput, job_id: JobId, state: FolderState, version: Any) -> None:
        texts = {text.name: text.content for text in output.texts}
        is_complete = any(name == _SUCCESS for name, _, _ in self._objects.below(self._target))
        added = tuple(file.part for file in output.files)
        if self._change(
            state, version, phase=ADDING, job_id=str(job_id), added=added, texts=texts, was_complete=is_complete
        ):
            self._after_step("adding")

    def _add(self, output: DecidedOutput, state: FolderState, version: Any) -> None:
        added = frozenset(state.added)
        there = [name for name, _, _ in self._objects.below(self._target)]
        before = [name for name in there if name not in added and _is_data(name)]
        if before and not output.overwrite and not output.mode:
            self._undo(state, version)
            raise OutputTakenError(
                f"output {self._target} was created by another program while the job ran; it was left as it is"
            )
        self._objects.delete_all([f"{self._target}/{_SUCCESS}"] if _SUCCESS in there else [])
        self._each(self._copy_of(output, file.name, file.part) for file in output.files)
        if output.mode == "overwrite_partitions":
            folders = {file.part.rpartition("/")[0] for file in output.files}
            before = [name for name in before if name.rpartition("/")[0] in folders]
        removed = () if output.mode == "append" else tuple(before)
        jobs = (*state.jobs, state.job_id)[-_JOBS_MAX:]
        if self._change(state, version, phase=REMOVING, added=(), removed=removed, jobs=jobs):
            self._after_step("removing")

    def _copy_of(self, output: DecidedOutput, name: str, part: str) -> Callable[[], None]:
        def copy() -> None:
            place = f"{self._target}/{part}"
            try:
                self._objects.copy(f"{output.staging}/{name}", place)
            except FileNotFoundError:
                if file_system_of(place).find(place) is None and not self._is_done(output, part):
                    raise JobExecutionError(
                        f"{output.staging}/{name}: a staged file of the output {self._target} is missing"
                    ) from None
            self._after_step(f"copy {part}")

        return copy

    def _is_done(self, output: DecidedOutput, part: str) -> bool:
        """Whether another leader has come further with this publication."""
        return part not in self._read()[0].added

    def _finish(self, state: FolderState, version: Any) -> bool:
        """Remove what was replaced, and end; False when another has changed the state."""
        for name, content in state.texts.items():
            self._put_text(name, content.encode(), version)
            self._after_step(f"write {name}")
        self._delete(state.removed)
        file_system_of(self._target).replace(f"{self._target}/{_SUCCESS}", b"")
        self._after_step("complete")
        is_done = self._change(state, version, phase=IDLE, removed=(), texts={}, was_complete=False)
        self._after_step("idle")
        return is_done

    def _put_text(self, name: str, content: bytes, version: Any) -> None:
        """Put a text, unless a later publication has put its own: a request of a former leader may come late."""
        path = f"{self._target}/{name}"
        found = self._objects.read_version(path)
        # What is put later than the state is read here is another version than the one that was found.
        if self._read()[1] == version:
            self._objects.put_version(path, content, None if found is None else found[1])

    def _undo(self, state: FolderState, version: Any) -> bool:
        """Remove what was added, and end; False when another has changed the state."""
        self._delete(state.added)
        if state.was_complete:
            file_system_of(self._target).replace(f"{self._target}/{_SUCCESS}", b"")
        if not self._change(state, version, phase=IDLE, added=(), texts={}, was_complete=False, job_id=""):
            return False
        if version is not None and not state.jobs and state.sequence == 1:  # nothing was ever here
            self._objects.delete_all([f"{self._target}/{STATE_NAME}"])
        return True

    def _delete(self, names: Iterable[str]) -> None:
        paths = [f"{self._target}/{name}" for name in names]
        for start in range(0, len(paths), _DELETED_AT_ONCE):
            self._objects.delete_all(paths[start : start + _DELETED_AT_ONCE])
            self._after_step("delete")

    def _each(self, works: Iterable[Callable[[], None]]) -> None:
        for _ in in_parallel(lambda work: work(), works, _AT_ONCE):
            pass


def _is_data(name: str) -> bool:
    """Whether an object is neither a mark nor a file of another program's own."""
    return not any(part.startswith((".", "_")) and "=" not in part for part in name.split("/"))
