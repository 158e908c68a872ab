"""OutputSteps: what a JobMaster does with the outputs of its job and with the record of its end. On the loop.

    PrepareOutputs │ Commit │ PublishAgain │ Record │ RemoveStaging ─► done in threads ─► the input that answers it

What may be done twice is done again and again while the storage does not answer. A leader that turns out to be none
any more leaves the job as it is, to be stopped and SUSPENDED here.

Held by: tests/jobmaster/test_end_of_job.py
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Executor
from typing import TypeVar

from engine.errors import EngineError, FencedError
from engine.fault_points import reach
from engine.formats.held_states import HeldStates
from engine.gateways.failure_info import failure_info
from engine.graph.deployment import Staging
from engine.ids import JobId
from engine.jobmaster.job_commit import JobCommit, JobEnd, StorageUnavailableError
from engine.jobmaster.job_ending import EndPhase
from engine.jobmaster.job_input import Deposed, JobInput, OutputsPrepared, PrepareFailed, PublishFailed, StepDone
from engine.jobmaster.job_instruction import Commit, PublishAgain
from engine.jobmaster.job_journal import Journal
from engine.storage.store_client import in_job
from engine.storage.store_counters import StoreTraffic, counted

_log = logging.getLogger(__name__)

T = TypeVar("T")

#: seconds between two requests to a storage that does not answer
_STORAGE_PAUSE_S = 1.0
#: seconds between two lines in the log about one that still does not answer
STORAGE_TOLD_S = 60.0


class OutputSteps:
    """Outputs and end of one job."""

    def __init__(
        self, job_id: JobId, commit: JobCommit, states: HeldStates, journal: Journal, blocking_work: Executor
    ) -> None:
        self._job_id = job_id
        self.commit = commit
        self._states = states
        self._journal = journal
        self._blocking_work = blocking_work
        #: requests to stores that these steps make
        self.traffic = StoreTraffic()
        #: error of the storage that does not answer at present; "": none
        self.trouble = ""

    @property
    def is_at_once(self) -> bool:
        """Whether all steps but the removal of staging wait for nothing."""
        return self.commit.is_at_once and self._journal.is_durable and not self._states.has_places

    async def prepare(self, known: dict[int, Staging] | None) -> JobInput:
        """Make room for the outputs, and hold the states of what is read."""
        try:
            if known is None:
                staging = await self._ask_outputs(self.commit.prepare)
            else:
                staging = known
                await self._ask_storage(lambda: self.commit.adopt(known))
            held = await self._ask_storage(self._states.hold) if self._states.has_places else {}
        except FencedError as error:
            return Deposed(EndPhase.NOT_BEGUN, str(error))
        except Exception as error:  # whatever it is, it is why the job fails
            return PrepareFailed(failure_info(error))
        reach("job.prepared")
        return OutputsPrepared(staging, held)

    async def publish(self, what: Commit | PublishAgain) -> JobInput:
        """Decide, unless that is done, and publish."""
        await self.let_go()
        # What the decision rests on is known to the next leader, too: it repeats no task to count its rows.
        await self._journal.flush()
        try:
            if isinstance(what, Commit):
                published = await self._ask_outputs(lambda: self.commit.commit(what.staged))
            else:
                published = await self._ask_storage(lambda: self.commit.publish_again(what.decision))
        except FencedError as error:
            return Deposed(EndPhase.PUBLISHING, str(error))
        except Exception as error:  # whatever it is, it is why the job fails
            return PublishFailed(failure_info(error))
        return StepDone(EndPhase.PUBLISHING, published)

    async def record(self, end: JobEnd) -> JobInput:
        """Record how the job ended; what was published stays published when that is not possible."""
        await self.let_go()
        try:
            if self.commit.records_at_once:
                self.commit.record(end)
            else:
                await self._ask_storage(lambda: self.commit.record(end))
        except FencedError as error:
            return Deposed(EndPhase.RECORDING, str(error))
        except (OSError, EngineError) as error:
            _log.warning("the result of job %s could not be recorded: %s", self._job_id, error)
        return StepDone(EndPhase.RECORDING)

    async def let_go(self) -> None:
        """Let go of the states of what was read."""
        if not self._states.has_places:
            return
        try:
            await asyncio.get_running_loop().run_in_executor(self._blocking_work, self._counted, self._states.close)
        except (OSError, EngineError) as error:
            _log.warning("what job %s has read is still held: %s", self._job_id, error)

    async def remove_staging(self) -> JobInput:
        """Remove what was staged, if that can be."""
        try:
            await asyncio.get_running_loop().run_in_executor(self._blocking_work, self._counted, self.commit.abort)
        except (OSError, EngineError) as error:
            _log.warning("staging of job %s could not be removed: %s", self._job_id, error)
        return StepDone(EndPhase.CLEANING)

    def _counted(self, work: Callable[[], T]) -> T:
        with counted(self.traffic), in_job(str(self._job_id)):
            return work()

    async def _ask_outputs(self, work: Callable[[], T]) -> T:
        """Do at once what waits for nothing, and all else as ``_ask_storage`` does."""
        return self._counted(work) if self.commit.is_at_once else await self._ask_storage(work)

    async def _ask_storage(self, work: Callable[[], T]) -> T:
        """Do what may be done twice, again and again while the storage does not answer."""
        loop = asyncio.get_running_loop()
        told_s = -STORAGE_TOLD_S
        while True:
            try:
                done = await loop.run_in_executor(self._blocking_work, self._counted, work)
                self.trouble = ""
                return done
            except StorageUnavailableError as error:
                self.trouble = str(error)
                if loop.time() - told_s >= STORAGE_TOLD_S:
                    told_s = loop.time()
                    _log.warning("job %s waits for its storage: %s", self._job_id, error)
                await asyncio.sleep(_STORAGE_PAUSE_S)
