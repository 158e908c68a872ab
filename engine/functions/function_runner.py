"""FunctionRunner: gives each task a session with a worker process of its job.

    runner.open(job, plan, configuration) -> FunctionSession       (function_session.py)
    runner.release_job(job)     all workers of a finished job end: memory given back, modules forgotten
    runner.close()

What all workers hold is kept within their budget (worker_watch.py).

``open`` does not wait: the worker starts and loads the function while the task opens the rest of its chain. That may
take long (the first one imports Arrow, each one what the user imports), so waiting for it can be cancelled. A
worker runs one function after another of its job.
"""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from engine.closing import close_all
from engine.config.loader import Configuration
from engine.config.options import FUNCTIONS_TIMEOUT
from engine.functions.worker_user import is_inline, refuse_inline
from engine.iomanager.disk_limit import DiskLimit
from engine.iomanager.spill_directory import spill_directories
from engine.memory.worker_budget import WorkerBudget
from engine.task_log import current_task_log, json_fields

if TYPE_CHECKING:
    from engine.functions.function_session import FunctionPlan, FunctionSession
    from engine.functions.worker_process import Worker, Zygote
    from engine.functions.worker_watch import WorkerWatch


class FunctionRunner:
    """Sessions and workers of one process."""

    def __init__(
        self,
        worker_budget: WorkerBudget | None = None,
        process_bytes: int = 0,
        process_for: Callable[[int], int] | None = None,
        worker_user: str = "",
        limit: DiskLimit | None = None,
    ) -> None:
        """Args: limit: of the disk where functions keep rows; None: without a limit."""
        self._worker_user = worker_user
        self._limit = limit or DiskLimit("")
        self._worker_budget = WorkerBudget() if worker_budget is None else worker_budget
        self._process_bytes = process_bytes
        self._process_for = process_for
        self._watch: WorkerWatch | None = None  # guarded by: self._lock
        self._zygote: Zygote | None = None  # guarded by: self._lock
        self._lock = threading.Lock()
        self._idle: dict[str, deque[Worker]] = defaultdict(deque)  # guarded by: self._lock

    def open(self, job_id: str, plan: FunctionPlan, configuration: Configuration) -> FunctionSession:
        """Return a session; its worker loads the function meanwhile, an error of that is raised by the first call."""
        # Loaded with the first function: most jobs have none.
        from engine.functions.function_room import FunctionRoom
        from engine.functions.function_session import WorkerSession
        from engine.functions.thread_session import open_thread_session

        log_file = current_task_log()
        refuse_inline(configuration, self._worker_user)
        self._worker_budget.take(job_id)
        plan = plan._replace(
            folder="" if self._worker_user else spill_directories(configuration)[0],
            room=None if self._worker_user else FunctionRoom(self._limit.share(job_id), plan.operator.function_name),
            log_file="" if log_file is None else str(log_file),
            log_fields=json_fields(),
            timeout_s=configuration.get(FUNCTIONS_TIMEOUT) / 1000,
        )
        if is_inline(configuration):
            return open_thread_session(plan)
        return WorkerSession(partial(self._give_back, job_id), self._worker_of(job_id), plan)

    def release_job(self, job_id: str) -> None:
        """End the idle workers of a job."""
        with self._lock:
            workers = self._idle.pop(job_id, deque())
        settle = [] if self._watch is None else [self._watch.settle]
        close_all([*(worker.discard for worker in workers), *settle, partial(self._worker_budget.give_back, job_id)])

    def close(self) -> None:
        """End all workers and the zygote; idempotent."""
        jobs = [partial(self.release_job, job_id) for job_id in list(self._idle)]
        close_all([*jobs, *(part.close for part in (self._watch, self._zygote) if part is not None)])

    def _worker_of(self, job_id: str) -> Worker:
        """Return an idle worker of the job, or a new one."""
        while True:
            with self._lock:
                idle = self._idle[job_id]
                worker = idle.pop() if idle else None
            watch = self._open_watch()
            if worker is None:
                worker = self._open_zygote().fork()
                try:
                    watch.begin(worker)
                except RuntimeError:  # no thread
                    worker.discard()
                    raise
                return worker
            watch.begin(worker)
            if worker.is_waiting and not worker.is_killed:
                return worker
            # It died while it had nothing to do (a thread of the user's, a kill): nothing is lost.
            worker.discard()

    def _open_zygote(self) -> Zygote:
        from engine.functions.worker_process import Zygote

        with self._lock:
            if self._zygote is not None and self._zygote.has_ended:
                # It was killed, and its workers ended with it.
                self._zygote.close()
                self._zygote = None
            if self._zygote is None:
                self._zygote = Zygote(self._worker_user)
            return self._zygote

    def _open_watch(self) -> WorkerWatch:
        from engine.functions.worker_watch import WorkerWatch

        with self._lock:
            if self._watch is None:
                self._watch = WorkerWatch(self._worker_budget, self._process_bytes, process_for=self._process_for)
            return self._watch

    def _give_back(self, job_id: str, worker: Worker) -> None:
        """Keep an unharmed worker for the job's next session."""
        # Before another task can take it: what waits is ended where memory is short.
        self._open_watch().rest(worker)
        with self._lock:
            self._idle[job_id].append(worker)
