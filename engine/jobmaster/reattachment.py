"""Reattachment: asks TaskExecutors what they have of a job that was recovered.

    Reattachment.run ─► each is asked under the new epoch, all at once, until it answers or counts as gone

A TaskExecutor that refuses the connection three times in a second is gone; one that does not answer has until the
time-out. One that holds nothing that is needed is asked too, so that it drops what it has, but its answer is not waited
for; without an answer it is gone as well, so that no later restart counts on what it had. On the JobMaster's loop.

Source: the reconciliation of Flink's FLIP-383, which waits for TaskManagers to come by themselves.
Held by: tests/jobmaster/test_takeover.py
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping

from engine.clock import Clock
from engine.errors import EngineError, FencedError
from engine.gateways.messages import AttachedJob, ReattachJob
from engine.ids import JobId, ResourceId
from engine.jobmaster.expectations import Expectation
from engine.rpc.errors import EndpointUnreachableError
from engine.rpc.gateway import ASK_TIMEOUT_S, RpcService

_log = logging.getLogger(__name__)

#: refused connections after which a TaskExecutor counts as gone, and the seconds from the first to the last of them
_REFUSALS = 3
_REFUSALS_S = 1.0
_PAUSE_S = 0.25


class Reattachment:
    """Asks the TaskExecutors of one job.

    Args:
        job_master_address: where tasks report to from now on.
        timeout_s: a TaskExecutor that has not answered by then counts as gone.
        expected: what each of them should have.
        on_attached: told of each that has answered, which waits for heartbeats from then on.
    """

    def __init__(
        self,
        rpc: RpcService,
        epoch: int,
        job_master_address: str,
        timeout_s: float,
        clock: Clock,
        job_id: JobId,
        expected: Mapping[ResourceId, Expectation],
        on_attached: Callable[[ResourceId, str], None],
    ) -> None:
        self._rpc = rpc
        self._epoch = epoch
        self._job_master_address = job_master_address
        self._timeout_s = timeout_s
        self._clock = clock
        self._job_id = job_id
        self._expected = expected
        self._on_attached = on_attached
        self._asking: dict[ResourceId, asyncio.Task[AttachedJob | None]] = {}
        self._lost: set[ResourceId] = set()

    async def run(self) -> dict[ResourceId, AttachedJob]:
        """Ask all; return the answers when no further one is to be waited for."""
        loop = asyncio.get_running_loop()
        self._asking = {
            resource_id: loop.create_task(self._ask(resource_id, there), name=f"reattach {resource_id}")
            for resource_id, there in self._expected.items()
        }
        try:
            needed = [self._asking[resource_id] for resource_id, there in self._expected.items() if there.is_needed]
            if needed:
                await asyncio.wait(needed)
            # The others had as long; where there was nothing to wait for they get a short time.
            others = [task for task in self._asking.values() if not task.done()]
            if others:
                await asyncio.wait(others, timeout=_REFUSALS_S)
        finally:
            for task in self._asking.values():
                task.cancel()
        answers: dict[ResourceId, AttachedJob] = {}
        for resource_id, task in self._asking.items():
            with contextlib.suppress(asyncio.CancelledError):
                answer = await task
                if answer is not None and resource_id not in self._lost:
                    answers[resource_id] = answer
        return answers

    def lose(self, resource_id: ResourceId) -> None:
        """Ask a TaskExecutor no longer, and forget its answer: it is known to be gone."""
        self._lost.add(resource_id)
        if resource_id in self._asking:
            self._asking[resource_id].cancel()

    async def _ask(self, resource_id: ResourceId, there: Expectation) -> AttachedJob | None:
        request = ReattachJob(
            self._job_id,
            self._job_master_address,
            tuple(there.attempts),
            tuple(there.partitions),
            tuple(dict.fromkeys(there.slots)),
        )
        begin_s, refused_s = self._clock.monotonic_s(), list[float]()
        while (left_s := begin_s + self._timeout_s - self._clock.monotonic_s()) > 0:
            try:
                gateway = self._rpc.connect(there.address, self._epoch)
                answer = await gateway.ask(request, min(left_s, ASK_TIMEOUT_S))
            except EndpointUnreachableError as error:
                refused_s.append(self._clock.monotonic_s())
                if len(refused_s) >= _REFUSALS and refused_s[-1] - refused_s[0] >= _REFUSALS_S:
                    _log.warning("TaskManager %s is gone: %s", resource_id, error)
                    return None
            except FencedError:
                raise
            except EngineError as error:
                refused_s.clear()
                _log.warning("TaskManager %s has not answered yet: %s", resource_id, error)
            else:
                if answer.resource_id != resource_id:
                    return None
                self._on_attached(resource_id, there.address)
                return answer
            await asyncio.sleep(_PAUSE_S)
        _log.warning("TaskManager %s has not answered for %g s", resource_id, self._timeout_s)
        return None
