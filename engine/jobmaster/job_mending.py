"""JobMending: failures of a job, and the attempts to mend them. A part of ``JobState``.

    note(failure) ─► begin: regions are chosen, their tasks end, a pause
                  ─► judge, when they have ended: why, and whether another attempt makes sense ─► finish: new attempts

Which regions run again is decided in ``region_failover``, whether and when by the restart strategy, and whether trying
makes sense by ``repeated_failure``. Pure.

Held by: tests/jobmaster/test_job_state.py
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from engine.errors import PartitionConnectionError
from engine.graph.deployment import FailureInfo
from engine.ids import ResultPartitionId
from engine.jobmaster.execution_vertex import ExecutionVertex
from engine.jobmaster.failure_history import is_final
from engine.jobmaster.job_event import FailureNoted, Restarted
from engine.jobmaster.job_facts import JobFacts
from engine.jobmaster.job_instruction import Instruction, LookAfter, Timer, WriteDown
from engine.jobmaster.job_links import JobLinks
from engine.jobmaster.job_scheduling import JobScheduling
from engine.jobmaster.job_status import JobStatus
from engine.jobmaster.job_tasks import JobTasks
from engine.jobmaster.job_timers import JobTimers
from engine.jobmaster.repeated_failure import RepeatedFailure
from engine.jobmaster.status_history import StatusHistory

_log = logging.getLogger(__name__)


class JobMending:
    """Failures of one job. ``out`` takes the instructions."""

    def __init__(
        self,
        facts: JobFacts,
        out: list[Instruction],
        timers: JobTimers,
        history: StatusHistory,
        tasks: JobTasks,
        scheduling: JobScheduling,
        repeated: RepeatedFailure,
        links: JobLinks,
    ) -> None:
        self._links = links
        self._facts = facts
        self._out = out
        self._timers = timers
        self._history = history
        self._tasks = tasks
        self._scheduling = scheduling
        self._repeated = repeated
        #: time of the failure that is being recovered from, and end of the pause
        self._failed_ms = 0
        self._pause_end_s = 0.0
        self._is_judged = False

    def note(self, failure: FailureInfo) -> None:
        """Take note of a failure."""
        self._facts.failures.add(failure)
        self._out.append(WriteDown(FailureNoted(failure, self._facts.clock.wall_ms())))

    def begin(self, failure: FailureInfo, subtasks: Sequence[ExecutionVertex]) -> bool:
        """Begin to run the regions of subtasks again; return whether that is so."""
        facts = self._facts
        if not failure.retryable:
            return not is_final(failure) and all(map(facts.failover.covers, subtasks))
        if failure.type_name != PartitionConnectionError.__name__:  # which says nothing about what lies there
            facts.graph.note_damage(failure.partition)
        self._look_after(failure.partition)
        pause_s = facts.failover.begin(subtasks, facts.clock.monotonic_s())
        if pause_s is None:
            return False
        self._scheduling.withdraw_requests(facts.scheduler.withdraw_requests())
        if self._history.status is JobStatus.RUNNING:
            self._timers.stop(Timer.SLOTS)
            self._timers.watch(Timer.PAUSE, pause_s, is_wanted=True)
            self._history.enter(JobStatus.RESTARTING)
            self._failed_ms, self._pause_end_s = facts.clock.wall_ms(), facts.clock.monotonic_s() + pause_s
            self._is_judged = False
        self._tasks.cancel(facts.failover.subtasks)
        return True

    def begin_all(self, hurt: Sequence[tuple[ExecutionVertex, FailureInfo]]) -> bool:
        """Begin to run again what hurt subtasks need, all of it or nothing; return whether the job goes on."""
        if any(is_final(failure) for _, failure in hurt):
            return False
        # What is to run again first: it covers tasks that hung while their region was being cancelled.
        by_retryable = sorted(hurt, key=lambda pair: not pair[1].retryable)
        return all(
            self._facts.failover.covers(vertex) or self.begin(failure, [vertex]) for vertex, failure in by_retryable
        )

    def _look_after(self, partition: ResultPartitionId | None) -> None:
        """Ask the holder of a partition that could not be read: if it refuses connections, it is lost at once."""
        vertex = self._facts.graph.vertex_of(partition.producer) if partition is not None else None
        if vertex is not None and vertex.current.slot is not None:
            self._out.append(LookAfter(vertex.current.slot.resource_id))

    def judge(self) -> FailureInfo | None:
        """Explain once, when all parts to run again have ended, why they do; return the reason if the job ends.

        Not before: the first report may be of what the cause has torn down.
        """
        if self._is_judged:
            return None
        self._is_judged = True
        facts, now_s = self._facts, self._facts.clock.monotonic_s()
        failure = self._repeated.verdict(facts.failures, facts.failover.subtasks, facts.graph, now_s)
        if failure is not None:
            facts.failures.mended()  # by this one, which says more
            return failure
        pause_s = max(0.0, self._pause_end_s - now_s)
        left_s = self._repeated.left_s(now_s)
        if left_s is not None and left_s < pause_s:
            pause_s = left_s
            self._timers.stop(Timer.PAUSE)
            self._timers.watch(Timer.PAUSE, pause_s, is_wanted=True)
        root, job_id = facts.failures.root, facts.graph.job_graph.job_id
        _log.info("job %s: restart in %.1f s: %s: %s", job_id, pause_s, root.type_name, root.message)
        self._history.note_restart(facts.failover.restart_count, root, pause_s)
        return None

    def finish(self) -> None:
        """Begin new attempts of the regions that have ended."""
        facts = self._facts
        attempts = tuple(each.current.attempt for each in facts.failover.subtasks)
        now_ms = facts.clock.wall_ms()
        self._tasks.release(facts.failover.finish(now_ms))
        self._out.append(WriteDown(Restarted(attempts, self._failed_ms, now_ms)))
        facts.failures.mended()
        self._links.next_attempts()
        self._history.enter(JobStatus.RUNNING)
