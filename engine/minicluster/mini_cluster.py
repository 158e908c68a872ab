"""MiniCluster: Dispatcher, ResourceManager, JobMasters and one TaskExecutor in this process, on one event loop.

    cluster = mini_cluster(settings, owner)        one for each distinct configuration
    release_mini_clusters(owner)                   the last owner's release closes it; at exit all are closed
    result = cluster.submit(job_graph, on_progress) ─► JobResult, or the error of the job       any thread, blocks
    details = cluster.details(job_id)                                                         any thread
    cluster.cancel(job_id)                                                                    any thread
    cluster.close()

    client thread ──► loop thread "drey-cluster": all components, no locks ──► task threads

The components are those of a real cluster and talk through gateways; with ``debug.check-gateways`` every message
passes its bytes. They lead only after the (embedded) election granted it, under its epoch.

Slots follow the job: when nothing runs, their number becomes the plan's largest parallelism, and all pages are
divided among them. A job that does not fit beside those that run waits in line: higher priorities first, then the
earlier ones, and none passes one that waits. Nothing is started before the first job. After ``close`` there is no
thread, file or descriptor left.

Source: Flink's MiniCluster.
Held by: tests/minicluster/test_minicluster.py
"""

from __future__ import annotations

import asyncio
import atexit
import bisect
import concurrent.futures
import contextlib
import logging
import os
import threading
import weakref
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

import msgspec

from engine.client.job_result import JobResult, job_result
from engine.client.termination import uninterrupted
from engine.clock import Clock, SystemClock
from engine.closing import close_all
from engine.config.debug_options import CHECK_GATEWAYS
from engine.config.loader import configuration_from_texts
from engine.config.options import (
    CANCELLATION_TIMEOUT,
    HEARTBEAT_INTERVAL,
    HEARTBEAT_TIMEOUT,
    PARALLELISM_DEFAULT,
    RUNNING_JOBS_MAX,
    SLOTS,
)
from engine.errors import EngineError, JobNotFoundError
from engine.gateways.job_details import JobDetails, RequestJobDetails
from engine.gateways.job_queue import JobTurn, WaitingJob, WaitingReason
from engine.gateways.messages import (
    MESSAGE_TYPES,
    CancelJob,
    JobOutcome,
    JobProgress,
    RequestJobOutcome,
    RequestJobProgress,
    SubmitJob,
)
from engine.graph.job_graph import JobGraph
from engine.ids import JobId, ResourceId
from engine.jobmaster.job_master_settings import job_master_settings, job_turn
from engine.minicluster.cluster_components import ClusterComponents, ClusterResources, ClusterSettings
from engine.minicluster.cluster_loop import place_of, run_loop
from engine.minicluster.local_loop import LocalLoop
from engine.resourcemanager.resource_manager import RESOURCE_MANAGER_ADDRESS
from engine.rpc.codec import MessageCodec
from engine.rpc.local_gateway import LocalRpcService
from engine.rpc.request import Request
from engine.taskexecutor.task_resources import ProcessResources

_log = logging.getLogger(__name__)

R = TypeVar("R")

_PROGRESS_INTERVAL_S = 0.2
#: seconds for which progress is waited for, before the job's end is checked again
_PROGRESS_WAIT_S = 10.0
#: seconds that the loop may take for a call, and, beyond the time-out of cancelled tasks, to end everything
_LOOP_WAIT_S = 120.0

#: factory of the resources of tasks, for a TaskExecutor and its initial number of slots
ResourcesFactory = Callable[[ResourceId, int], ClusterResources]


class _InLine(msgspec.Struct, eq=False):
    """A job that waits for its turn."""

    turn: JobTurn
    job_graph: JobGraph
    parallelism: int  # slots that it needs


class MiniCluster:
    """A whole cluster in this process.

    Args:
        settings: configuration by key, as text.
        resources_factory: makes what tasks run with, for a TaskExecutor and its first number of slots; for tests.
        slots_follow_job: False keeps ``taskmanager.numberOfTaskSlots`` whatever jobs need, and lets all jobs in at
            once: they compete for slots as on a real cluster.
    """

    def __init__(
        self,
        settings: Mapping[str, str],
        resources_factory: ResourcesFactory | None = None,
        slots_follow_job: bool = True,
    ) -> None:
        self._configuration = configuration_from_texts(settings, "cluster")
        self._clock: Clock = SystemClock()
        self._resources_factory = resources_factory or self._process_resources
        self._slots_follow_job = slots_follow_job
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None  # guarded by: self._lock
        self._thread: threading.Thread | None = None  # guarded by: self._lock
        self._is_closed = False  # guarded by: self._lock
        # The rest belongs to the loop.
        self._components: ClusterComponents | None = None
        #: slots of each admitted submission
        self._slots_of: dict[object, int] = {}
        #: jobs that wait for their turn, the next one first: higher priorities, then earlier submissions
        self._waiting: list[_InLine] = []
        self._arrivals = 0
        self._runs: dict[JobId, asyncio.Task[JobOutcome]] = {}
        self._starting: asyncio.Task[ClusterComponents] | None = None
        self._giving_up: set[asyncio.Task[bool]] = set()
        self._job_ended = asyncio.Condition()
        self._fatal_error: BaseException | None = None
        #: requests that the Dispatcher has not answered yet
        self._asked: set[asyncio.Future[Any]] = set()

    # ---- client's thread ----

    @property
    def is_usable(self) -> bool:
        """Whether jobs can be submitted: not closed, and no component has failed."""
        return not self._is_closed and self._fatal_error is None

    def submit(self, job_graph: JobGraph, on_progress: Callable[[JobProgress], None] | None = None) -> JobResult:
        """Run a job to its end and return its result.

        ``on_progress`` is called in this thread, about five times a second. Raises what the job failed with
        (JobExecutionError and its subclasses). An interrupt from the keyboard cancels the job, waits for its end and
        goes on.
        """
        job_id = job_graph.job_id
        with uninterrupted() as interrupts:
            loop = self._started_loop()
            run: concurrent.futures.Future[JobOutcome] = concurrent.futures.Future()
            try:
                loop.call_soon_threadsafe(self._begin, job_graph, run)
                interrupts.tell(lambda: loop.call_soon_threadsafe(self._begin_to_give_up, job_id))
                outcome = self._await_outcome(run, job_id, on_progress)
            except BaseException:
                # The caller's own callback failed, or its time ended: the job is not wanted any more.
                if not run.done() and self._call(self._give_up(job_id)):
                    concurrent.futures.wait([run])
                raise
            if outcome.status != "FINISHED":
                from engine.client.failure_text import job_error

                raise job_error(outcome)
            return job_result(outcome)

    def details(self, job_id: JobId) -> JobDetails:
        """Return everything about a job that runs or has ended; JobNotFoundError for one that is not known any more."""
        return self._call(self._details(job_id))

    def cancel(self, job_id: JobId) -> None:
        """Begin to cancel a job; one that is not known or has ended is left alone."""
        if self._loop is not None:
            self._call(self._abandon(job_id))

    def close(self) -> None:
        """End all jobs and all threads; idempotent. The cluster cannot be used again. No signal breaks it off."""
        with uninterrupted():
            self._close()

    def _close(self) -> None:
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            loop, thread = self._loop, self._thread
        if loop is None or thread is None:
            return
        wait_s = self._configuration.get(CANCELLATION_TIMEOUT) / 1000 + _LOOP_WAIT_S
        ending = asyncio.run_coroutine_threadsafe(self._stop(), loop)
        ending.add_done_callback(lambda _: loop.call_soon_threadsafe(loop.stop))  # also when no caller waits any more
        try:
            self._wait_for(ending, wait_s, "end")
        finally:
            if ending.done():
                thread.join()

    def _await_outcome(
        self,
        run: concurrent.futures.Future[JobOutcome],
        job_id: JobId,
        on_progress: Callable[[JobProgress], None] | None,
    ) -> JobOutcome:
        # Never without a time-out: a signal may be delivered to another thread, and its handler runs in this one only.
        while not concurrent.futures.wait([run], timeout=_PROGRESS_INTERVAL_S).done:
            if on_progress is not None:
                progress = self._call(self._progress(job_id))
                if progress is not None:
                    on_progress(progress)
        return run.result()

    def _call(self, coroutine: Coroutine[Any, Any, R]) -> R:
        assert self._loop is not None, "the cluster is not started"
        return self._wait_for(asyncio.run_coroutine_threadsafe(coroutine, self._loop), _LOOP_WAIT_S, "answer")

    def _wait_for(self, answer: concurrent.futures.Future[R], wait_s: float, what: str) -> R:
        assert self._thread is not None, "the cluster is not started"
        try:
            return answer.result(wait_s)
        except TimeoutError:
            if answer.done():  # the coroutine's own
                raise
            raise EngineError(
                f"the embedded cluster did not {what} within {wait_s:g} s; {place_of(self._thread)}, see its log"
            ) from None

    def _started_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._is_closed:
                raise EngineError("the embedded cluster is closed")
            if self._loop is None:
                self._loop = LocalLoop()
                self._loop.set_exception_handler(self._loop_failed)
                self._thread = threading.Thread(target=run_loop, args=(self._loop,), name="drey-cluster", daemon=True)
                self._thread.start()
            return self._loop

    # ---- the loop ----

    def _begin(self, job_graph: JobGraph, run: concurrent.futures.Future[JobOutcome]) -> None:
        """Run a job; its end goes to ``run``, which a thread waits for."""

        def ended(task: asyncio.Task[JobOutcome]) -> None:
            self._runs.pop(job_graph.job_id, None)
            if task.cancelled():
                run.cancel()
            if run.set_running_or_notify_cancel():
                error = task.exception()
                if error is None:
                    run.set_result(task.result())
                else:
                    run.set_exception(error)

        task = self._runs[job_graph.job_id] = asyncio.get_running_loop().create_task(self._run_job(job_graph))
        task.add_done_callback(ended)

    def _begin_to_give_up(self, job_id: JobId) -> None:
        """Give a job up; waiting callers are told of its end."""
        task = asyncio.get_running_loop().create_task(self._give_up(job_id))
        self._giving_up.add(task)
        task.add_done_callback(self._giving_up.discard)

    async def _give_up(self, job_id: JobId) -> bool:
        """Begin to cancel a job, in the line too; return whether there is one whose end can be waited for."""
        task = self._runs.get(job_id)
        if task is not None and await self._abandon(job_id):
            task.cancel()
        return task is not None

    async def _run_job(self, job_graph: JobGraph) -> JobOutcome:
        submission = object()
        components = await self._admit(job_graph, submission)
        try:
            await self._answer(components, SubmitJob(job_graph))
            return await self._answer(components, RequestJobOutcome(job_graph.job_id))
        finally:
            async with self._job_ended:
                del self._slots_of[submission]
                self._job_ended.notify_all()

    async def _answer(self, components: ClusterComponents, request: Request[R]) -> R:
        """Return the Dispatcher's answer, however late; EngineError when the cluster fails first."""
        self._check_failed()
        ask = asyncio.get_running_loop().create_task(components.dispatcher.ask(request, None))
        self._asked.add(ask)
        ask.add_done_callback(self._asked.discard)
        try:
            return await ask
        except asyncio.CancelledError:
            self._check_failed()
            raise

    async def _details(self, job_id: JobId) -> JobDetails:
        assert self._components is not None, "a job has run, so the cluster is started"
        return await self._answer(self._components, RequestJobDetails(job_id))

    async def _admit(self, job_graph: JobGraph, submission: object) -> ClusterComponents:
        """Wait until the job fits; make the slots fit the job when nothing else runs."""
        parallelism = max(vertex.parallelism for vertex in job_graph.vertices)
        self._arrivals += 1
        own = _InLine(job_turn(job_graph, self._arrivals), job_graph, parallelism)
        bisect.insort(self._waiting, own, key=lambda each: each.turn.key)
        try:
            async with self._job_ended:
                await self._job_ended.wait_for(lambda: self._may_begin(own))
                self._check_failed()
                components = await self._prepare(parallelism)
                self._slots_of[submission] = parallelism
                return components
        finally:
            self._waiting.remove(own)
            async with self._job_ended:  # the next one may fit as well
                self._job_ended.notify_all()

    def _may_begin(self, job: _InLine) -> bool:
        """Whether it is a job's turn, and it fits: one that does not keeps those behind it waiting."""
        if not self._slots_follow_job or self._fatal_error is not None:
            return True
        return self._waiting[0] is job and (not self._slots_of or (self._fits(job.parallelism) and not self._is_full))

    @property
    def _is_full(self) -> bool:
        running_max: int = self._configuration.get(RUNNING_JOBS_MAX)
        return 0 < running_max <= len(self._slots_of)

    async def _prepare(self, parallelism: int) -> ClusterComponents:
        slots: int = self._configuration.get(SLOTS)
        if self._slots_follow_job:
            slots = max(slots, parallelism)
        if self._components is None:
            self._components = await self._started(slots)
        task_executor = self._components.task_executor
        if not self._slots_of and task_executor.slot_table.is_idle:
            self._components.resources.prepare()
            if slots != task_executor.slot_table.slot_count:
                await task_executor.resize(slots)
        return self._components

    async def _started(self, slot_count: int) -> ClusterComponents:
        """Return the components once they have started, whatever becomes of the job that needs them first."""
        if self._starting is None:
            self._starting = asyncio.get_running_loop().create_task(self._start(slot_count))
        try:
            return await asyncio.shield(self._starting)
        except BaseException:
            if self._starting.done() and (self._starting.cancelled() or self._starting.exception() is not None):
                self._starting = None  # the next job tries again
            raise

    def _fits(self, parallelism: int) -> bool:
        assert self._components is not None, "a job runs, so the cluster is started"
        return parallelism + sum(self._slots_of.values()) <= self._components.task_executor.slot_table.slot_count

    def _check_failed(self) -> None:
        if self._fatal_error is not None:
            raise EngineError(f"the embedded cluster failed: {self._fatal_error!r}") from self._fatal_error

    async def _abandon(self, job_id: JobId) -> bool:
        """Begin to cancel a job; return whether it still waits for its turn instead."""
        if any(each.job_graph.job_id == job_id for each in self._waiting):
            return True
        if self._components is not None and self._fatal_error is None:
            try:
                await self._answer(self._components, CancelJob(job_id))
            except JobNotFoundError:
                _log.info("job %s is not here", job_id)
            except EngineError:
                if self._fatal_error is None:  # else that ends the job
                    raise
        return False

    async def _progress(self, job_id: JobId) -> JobProgress | None:
        for place, waiting in enumerate(self._waiting, 1):
            if waiting.job_graph.job_id == job_id:
                return self._progress_in_line(place, waiting)
        if self._components is None or self._fatal_error is not None:
            return None
        try:
            return await self._components.dispatcher.ask(RequestJobProgress(job_id), _PROGRESS_WAIT_S)
        except EngineError as error:
            # The job is not to end because its numbers were late: it is asked for them again.
            _log.debug("no progress of job %s: %s", job_id, error)
            return None

    def _progress_in_line(self, place: int, job: _InLine) -> JobProgress | None:
        """Return the place of a job in the queue; None while it is about to begin."""
        if self._components is None or not self._slots_of:
            return None
        graph, slots = job.job_graph, self._components.task_executor.slot_table.slot_count
        reason = WaitingReason.LIMIT if self._is_full else WaitingReason.SLOTS
        waiting = WaitingJob(place, len(self._waiting), job.parallelism, slots, reason, job.turn.priority)
        return JobProgress(graph.job_id, graph.name, "CREATED", 0, (), waiting=waiting)

    async def _start(self, slot_count: int) -> ClusterComponents:
        configuration = self._configuration
        resource_id = ResourceId.random()
        components = ClusterComponents(
            LocalRpcService(MessageCodec(MESSAGE_TYPES) if configuration.get(CHECK_GATEWAYS) else None, None),
            resource_id,
            self._resources_factory(resource_id, slot_count),
            ClusterSettings(
                slot_count=slot_count,
                heartbeat_interval_s=configuration.get(HEARTBEAT_INTERVAL) / 1000,
                heartbeat_timeout_s=configuration.get(HEARTBEAT_TIMEOUT) / 1000,
                cancellation_timeout_s=configuration.get(CANCELLATION_TIMEOUT) / 1000,
                # By default nothing is tried again in one's own process.
                job_master=job_master_settings(configuration, RESOURCE_MANAGER_ADDRESS, "none"),
                # A job that waits in the line has no slots; here none is kept waiting twice.
                running_jobs_max=0 if self._slots_follow_job else configuration.get(RUNNING_JOBS_MAX),
            ),
            self._clock,
            self._component_failed,
        )
        try:
            await components.start()
        except BaseException:
            await components.stop()
            raise
        return components

    def _process_resources(self, resource_id: ResourceId, slot_count: int) -> ClusterResources:
        # The first job may need few slots; pages stay as they are when a later one needs all of them.
        usual = self._configuration.get(PARALLELISM_DEFAULT) or len(os.sched_getaffinity(0))
        return ProcessResources(resource_id, self._configuration, max(slot_count, usual), self._clock)

    def _component_failed(self, error: BaseException) -> None:
        self._fatal_error = self._fatal_error or error
        for ask in list(self._asked):
            ask.cancel()

    def _loop_failed(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception") or RuntimeError(str(context.get("message")))
        _log.error("%s", context.get("message"), exc_info=error)
        self._component_failed(error)

    async def _stop(self) -> None:
        if self._components is None and self._starting is not None:
            with contextlib.suppress(Exception):  # then there is nothing to be stopped
                self._components = await self._starting
        if self._components is not None:
            await self._components.stop()
        async with self._job_ended:
            await self._job_ended.wait_for(lambda: not self._slots_of)


class _Shared(msgspec.Struct):
    cluster: MiniCluster
    #: environments that use it and have not released it
    owners: weakref.WeakSet[Any] = msgspec.field(default_factory=weakref.WeakSet)


_clusters_lock = threading.Lock()
#: clusters by process and settings, since threads do not survive a fork; guarded by: _clusters_lock
_clusters: dict[tuple[int, frozenset[tuple[str, str]]], _Shared] = {}


def mini_cluster(settings: Mapping[str, str], owner: object | None = None) -> MiniCluster:
    """Return the cluster of a configuration: the same one for the same settings, until it is closed or has failed.

    An ``owner`` (compared by identity, not kept alive) gives it back with ``release_mini_clusters``.
    """
    key = (os.getpid(), frozenset(settings.items()))
    with _clusters_lock:
        shared = _clusters.get(key)
        if shared is None or not shared.cluster.is_usable:
            shared = _clusters[key] = _Shared(MiniCluster(settings))
        if owner is not None:
            shared.owners.add(owner)
        return shared.cluster


def release_mini_clusters(owner: object) -> None:
    """Close the clusters that ``owner`` was the last one to use; others live on."""
    with uninterrupted():
        unused = []
        with _clusters_lock:
            for key, shared in list(_clusters.items()):
                if owner in shared.owners:
                    shared.owners.discard(owner)
                    if not shared.owners:
                        unused.append(_clusters.pop(key).cluster)
        close_all(cluster.close for cluster in unused)


def close_mini_clusters() -> None:
    """Close all clusters of this process; runs at exit."""
    with uninterrupted():
        with _clusters_lock:
            clusters = [shared.cluster for (pid, _), shared in _clusters.items() if pid == os.getpid()]
            _clusters.clear()
        close_all(cluster.close for cluster in clusters)


atexit.register(close_mini_clusters)
