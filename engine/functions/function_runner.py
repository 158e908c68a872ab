"""FunctionRunner: gives each task a session with a worker process of its job.

    runner.open(job, plan, configuration) -> FunctionSession       (function_session.py)
    runner.release_job(job)     all workers of a finished job end: memory given back, modules forgotten
    runner.close()

The worker loads the function while the task opens the rest of its chain; that runs the user's imports, so whoever waits
for it can be cancelled. A worker runs one function after another of its job.
"""

from __future__ import annotations

import tempfile
import threading
from collections import defaultdict, deque
from functools import partial

from engine.config.loader import Configuration
from engine.config.options import PYTHON_EXECUTION_MODE, TMP_DIRS
from engine.functions.function_session import FunctionPlan, FunctionSession, WorkerSession
from engine.functions.thread_session import open_thread_session
from engine.functions.worker_process import Worker, Zygote
from engine.task_log import current_task_log


class FunctionRunner:
    """Sessions and workers of one process."""

    def __init__(self) -> None:
        self._zygote = Zygote()
        self._lock = threading.Lock()
        self._idle: dict[str, deque[Worker]] = defaultdict(deque)  # guarded by: self._lock

    def open(self, job_id: str, plan: FunctionPlan, configuration: Configuration) -> FunctionSession:
        """Return a session; its worker loads the function meanwhile, an error of that is raised by the first call."""
        directories = configuration.get(TMP_DIRS) or tempfile.gettempdir()
        log_file = current_task_log()
        plan = plan._replace(
            folder=directories.split(",")[0].strip(), log_file="" if log_file is None else str(log_file)
        )
        if configuration.get(PYTHON_EXECUTION_MODE) == "thread":
            return open_thread_session(plan)
        return WorkerSession(partial(self._give_back, job_id), self._worker_of(job_id), plan)

    def release_job(self, job_id: str) -> None:
        """End the idle workers of a job."""
        with self._lock:
            workers = self._idle.pop(job_id, deque())
        for worker in workers:
            worker.kill()
            worker.reap()

    def close(self) -> None:
        """End all workers and the zygote; idempotent."""
        for job_id in list(self._idle):
            self.release_job(job_id)
        self._zygote.close()

    def _worker_of(self, job_id: str) -> Worker:
        """Return an idle worker of the job, or a new one."""
        while True:
            with self._lock:
                idle = self._idle[job_id]
                worker = idle.pop() if idle else None
            if worker is None:
                return self._zygote.fork()
            if worker.is_waiting:
                return worker
            # It died while it had nothing to do (a thread of the user's, somebody's kill): nothing is lost.
            worker.kill()
            worker.reap()

    def _give_back(self, job_id: str, worker: Worker) -> None:
        """Keep an unharmed worker for the job's next session."""
        with self._lock:
            self._idle[job_id].append(worker)
