"""ResourceManager: the endpoint over the SlotManager.

    (1) TaskExecutor ── register ──► here        (2) JobMaster ── request slots ──► here
    (3) here ── request slot ──► TaskExecutor    (4) TaskExecutor ── offer ──► JobMaster ── (5) free ──► TaskExecutor
    (6) TaskExecutor ── slot free ──► here: the next request is served

A TaskExecutor that is lost is forgotten, and every JobMaster is told: what it has stored there is gone, also where it
has no slot. It is lost at once when it says goodbye, when another one registers from its place, when it refuses
connections there, and when it takes no message of this process (its clock or secret is another one); only one that is
silent has until the time-out. Whether it can be reached is checked when there is a doubt:

    its held call (StayConnected) broke, or the next one does not come; a JobMaster, or a slot, did not reach it

One that drains is assigned no slot any more; the JobMasters are told, so that no task begins there. It ends by itself.
One that has signed off does not come back: a registration of it is a message that was late.

One that refused a slot knows more of it than is known here: its next such call has it register again.

Source: Flink's ResourceManager, for standalone clusters: it starts no TaskExecutors of its own.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

import msgspec

from engine.clock import Clock
from engine.errors import EngineError, ResourceError
from engine.gateways.job_master import job_master_name
from engine.gateways.job_queue import JobTurn, RequestWaitingJobs, SlotsShort, WaitingJobs
from engine.gateways.messages import (
    DisconnectTaskExecutor,
    EndProcess,
    EndTaskExecutors,
    Heartbeat,
    NotifySlotFree,
    RegisterTaskExecutor,
    RegistrationReply,
    ReleaseJob,
    RequestSlot,
    RequestSlotOverview,
    RequestSlots,
    SlotOverview,
    StayConnected,
    SuspectTaskExecutor,
    TaskExecutorLost,
    WithdrawSlotRequests,
)
from engine.gateways.resource_manager import ResourceManagerGateway
from engine.gateways.task_executors import (
    DrainTaskExecutor,
    ListTaskExecutors,
    TaskExecutorDraining,
    TaskExecutorList,
    TaskExecutorOverview,
)
from engine.ids import JobId, ResourceId
from engine.insight.cluster_events import CLUSTER_EVENTS, ClusterEvent
from engine.resourcemanager.slot_manager import SlotAssignment, SlotManager
from engine.rpc.endpoint import RpcEndpoint
from engine.rpc.errors import ACCEPTED_MS, REFUSES_ALL, EndpointUnreachableError, RpcTimeoutError
from engine.rpc.fencing import LeaderFence
from engine.rpc.gateway import RpcService
from engine.rpc.heartbeat import HeartbeatMonitor
from engine.rpc.request import ACKNOWLEDGE, Acknowledge, Request

_log = logging.getLogger(__name__)

RESOURCE_MANAGER_ADDRESS = "resourcemanager"
#: refused connections in a row after which a TaskExecutor counts as lost
_UNREACHABLE_MAX = 2
#: seconds in which a TaskExecutor opens its next call
_NEXT_CALL_S = 1.0
#: seconds for which jobs of the previous leader keep their places before they ask for slots
_EXPECTED_S = 10.0
#: seconds in which a TaskExecutor must confirm that it ends
_END_S = 5.0
#: number of tries to tell a TaskExecutor that does not answer to drop a job
_RELEASE_TRIES = 5
#: number of TaskExecutors that have signed off which are remembered
_LEFT_MAX = 1000
#: difference of clocks that is reported to users
_CLOCK_NOTE_MS = 5_000


class ResourceManagerSettings(msgspec.Struct, frozen=True):
    """The settings of a ResourceManager. Times in seconds."""

    heartbeat_interval_s: float
    heartbeat_timeout_s: float
    #: True if slots are taken of as many TaskExecutors as possible
    is_spread: bool = False
    #: limit of jobs with slots at one time; 0: none
    running_jobs_max: int = 0
    #: limits of the jobs of one user that have slots, and of their slots; 0: none
    user_jobs_max: int = 0
    user_slots_max: int = 0


class ResourceManager(RpcEndpoint):
    """Slots of the cluster, under one leader epoch."""

    protocol = ResourceManagerGateway

    def __init__(
        self,
        rpc: RpcService,
        epoch: int,
        settings: ResourceManagerSettings,
        clock: Clock,
        on_fatal: Callable[[BaseException], None] | None = None,
        is_known_job: Callable[[JobId], bool] = lambda job_id: True,
        led_jobs: Callable[[], Iterable[JobId]] = tuple,
    ) -> None:
        super().__init__(RESOURCE_MANAGER_ADDRESS, LeaderFence(epoch), on_fatal)
        self._rpc = rpc
        self._epoch = epoch
        self._slots = SlotManager(
            is_spread=settings.is_spread,
            running_max=settings.running_jobs_max,
            user_jobs_max=settings.user_jobs_max,
            user_slots_max=settings.user_slots_max,
        )
        #: jobs that were told that the cluster has too few slots
        self._short: frozenset[JobId] = frozenset()
        self._addresses: dict[ResourceId, str] = {}
        self._registrations: dict[ResourceId, RegisterTaskExecutor] = {}
        #: TaskExecutors that have signed off, the last ones, in that order
        self._left: dict[ResourceId, None] = {}
        #: time of the last message of each TaskExecutor
        self._seen_ms: dict[ResourceId, int] = {}
        self._clock = clock
        self._is_known_job = is_known_job
        #: jobs with a JobMaster, whether or not it has asked for slots
        self._led_jobs = led_jobs
        #: TaskExecutors that are being checked
        self._looked_after: set[ResourceId] = set()
        #: number of calls each has held open
        self._calls: Counter[ResourceId] = Counter()
        self._job_masters: dict[JobId, str] = {}
        self._ends = asyncio.Event()
        self._heartbeats = HeartbeatMonitor[ResourceId](
            settings.heartbeat_interval_s, settings.heartbeat_timeout_s, clock
        )

    def start(self, recovered: Mapping[JobId, JobTurn] | None = None) -> None:
        """Begin to watch TaskExecutors; ``recovered`` jobs are served in their turn although they ask later."""
        if recovered:
            self._slots.queue.expect(recovered)
            self.spawn(self._expect_for_a_while(), "recovered jobs")
        self.spawn(self._send_heartbeats(), "heartbeats")

    async def register_task_executor(self, request: RegisterTaskExecutor) -> RegistrationReply:
        """Register a TaskExecutor and its slots."""
        if request.resource_id in self._left:
            raise ResourceError(f"TaskManager {request.resource_id} has signed off")
        if request.resource_id not in self._addresses:
            _log.info("TaskManager %s registers %d slots", request.resource_id, len(request.slots))
        for former in self._at_the_place_of(request):
            self._lose(former, f"TaskManager {request.resource_id} has come in its place")
        self._addresses[request.resource_id] = request.address
        self._registrations[request.resource_id] = request
        self._seen_ms[request.resource_id] = self._clock.wall_ms()
        self._heartbeats.watch(request.resource_id)
        self._slots.register(request.resource_id, request.slots)
        if request.is_draining:
            self._note_draining(request.resource_id)
        self._assign()
        self._expect_call(request.resource_id)
        unknown = tuple(job_id for job_id in request.jobs if not self._is_known_job(job_id))
        return RegistrationReply(request.resource_id, unknown, self._clock_note(request))

    def _clock_note(self, request: RegisterTaskExecutor) -> str:
        """Return, and log, that a TaskExecutor's clock differs by more than messages take; "" when it does not."""
        ahead_ms = request.clock_ms - self._clock.wall_ms()
        if not request.clock_ms or abs(ahead_ms) < _CLOCK_NOTE_MS:
            return ""
        note = (
            f"the clock of TaskManager {request.resource_id} on {request.hardware.host or request.address} is "
            f"{round(abs(ahead_ms) / 1000)} s {'ahead of' if ahead_ms > 0 else 'behind'} that of the JobManager on "
            f"{socket.gethostname()}: set them; beyond {ACCEPTED_MS // 1000} s they refuse each other's messages"
        )
        _log.warning("%s", note)
        return note

    async def stay_connected(self, request: StayConnected) -> Acknowledge:
        """Hold the call for a heartbeat's interval; a caller that goes away meanwhile is looked after at once."""
        if request.resource_id not in self._addresses:
            raise ResourceError(f"TaskManager {request.resource_id} is not registered here")
        if self._slots.counts_of(request.resource_id)[0] < len(self._registrations[request.resource_id].slots):
            raise ResourceError(f"TaskManager {request.resource_id} refused a slot: it is to say again which are free")
        self._calls[request.resource_id] += 1
        try:
            await asyncio.wait_for(self._ends.wait(), self._heartbeats.interval_s)
        except TimeoutError:
            self._expect_call(request.resource_id)
            return ACKNOWLEDGE
        except asyncio.CancelledError:
            if not self._is_stopped and request.resource_id in self._addresses:
                self.spawn(self._look_after(request.resource_id), f"connection of {request.resource_id}")
            raise
        raise EndpointUnreachableError(f"{self.address} stops")

    def _at_the_place_of(self, newcomer: RegisterTaskExecutor) -> list[ResourceId]:
        """Return TaskExecutors registered before at the same host and port: those processes are gone."""
        place, data_address = newcomer.address.rpartition("/")[0], newcomer.data_address
        return [
            resource_id
            for resource_id, known in self._registrations.items()
            if resource_id != newcomer.resource_id
            and (
                (place and known.address.rpartition("/")[0] == place)
                or (place and data_address and known.data_address == data_address)
            )
        ]

    def _expect_call(self, resource_id: ResourceId) -> None:
        """Look after a TaskExecutor unless it holds a call open again in a moment."""
        self.spawn(self._await_call(resource_id, self._calls[resource_id]), f"next call of {resource_id}")

    async def _await_call(self, resource_id: ResourceId, count: int) -> None:
        await asyncio.sleep(_NEXT_CALL_S)
        if self._calls[resource_id] == count:
            await self._look_after(resource_id)

    async def suspect_task_executor(self, request: SuspectTaskExecutor) -> Acknowledge:
        """Check at once whether a TaskExecutor is still there."""
        self.spawn(self._look_after(request.resource_id), f"suspicion of {request.resource_id}")
        return ACKNOWLEDGE

    async def disconnect_task_executor(self, request: DisconnectTaskExecutor) -> Acknowledge:
        """Remove a TaskExecutor that leaves."""
        self._left[request.resource_id] = None
        if len(self._left) > _LEFT_MAX:
            del self._left[next(iter(self._left))]
        if request.resource_id in self._addresses:
            self._lose(request.resource_id, request.reason, is_expected=True)
        return ACKNOWLEDGE

    async def drain_task_executor(self, request: DrainTaskExecutor) -> Acknowledge:
        """Have a TaskExecutor take no more slots and end once nothing is left on it."""
        resource_id = request.resource_id
        if resource_id not in self._addresses:
            raise ResourceError(f"TaskManager {resource_id} is not registered here")
        await self._rpc.connect(self._addresses[resource_id], self._epoch).ask(request)
        if resource_id in self._addresses:
            self._note_draining(resource_id)
            self._assign()
        return ACKNOWLEDGE

    def _note_draining(self, resource_id: ResourceId) -> None:
        if resource_id in self._slots.draining:
            return
        _log.info("TaskManager %s drains: it is assigned no more slots", resource_id)
        self._slots.draining.add(resource_id)
        for job_id in sorted({*self._job_masters, *self._led_jobs()}):
            told = self._tell(self._job_master_of(job_id), TaskExecutorDraining(resource_id))
            self.spawn(told, f"{resource_id} drains")

    async def end_task_executors(self, request: EndTaskExecutors) -> Acknowledge:
        """Ask every TaskExecutor to end its process; those that do not answer are left alone."""
        _log.info("%d TaskManagers are asked to end: %s", len(self._addresses), request.reason)
        await asyncio.gather(*(self._end(*known, request.reason) for known in tuple(self._addresses.items())))
        return ACKNOWLEDGE

    async def _end(self, resource_id: ResourceId, address: str, reason: str) -> None:
        try:
            await self._rpc.connect(address, self._epoch).ask(EndProcess(reason), _END_S)
        except EngineError as error:
            _log.warning("TaskManager %s was not told to end: %s", resource_id, error)

    def release_job(self, job_id: JobId) -> None:
        """Make the TaskExecutors that hold a job drop it: it ended without a JobMaster."""
        for resource_id, known in self._registrations.items():
            if job_id in known.jobs:
                self.spawn(self._tell_over(resource_id, known.address, job_id), f"end of {job_id} on {resource_id}")

    async def _tell_over(self, resource_id: ResourceId, address: str, job_id: JobId) -> None:
        for _ in range(_RELEASE_TRIES):
            try:
                await self._rpc.connect(address, self._epoch).ask(ReleaseJob(job_id))
            except EngineError as error:
                _log.warning("TaskManager %s does not drop job %s: %s", resource_id, job_id, error)
                await asyncio.sleep(self._heartbeats.interval_s)
            else:
                return

    async def request_slots(self, request: RequestSlots) -> Acknowledge:
        """Queue a request for slots."""
        self._job_masters[request.job_id] = request.job_master_address
        self._slots.request(request)
        self._assign()
        return ACKNOWLEDGE

    async def withdraw_slot_requests(self, request: WithdrawSlotRequests) -> Acknowledge:
        """Remove what a job still waits for."""
        self._slots.withdraw(request.job_id, request.request_id)
        if request.request_id is None:
            self._job_masters.pop(request.job_id, None)
        self._assign()
        return ACKNOWLEDGE

    async def notify_slot_free(self, request: NotifySlotFree) -> Acknowledge:
        """Record that a slot was given back."""
        self._slots.free(request.resource_id, request.index, request.allocation_id)
        self._assign()
        return ACKNOWLEDGE

    async def list_task_executors(self, request: ListTaskExecutors) -> TaskExecutorList:
        """Return the registered TaskExecutors, by id."""
        return TaskExecutorList(
            tuple(
                TaskExecutorOverview(
                    resource_id,
                    known.address,
                    known.data_address,
                    *self._slots.counts_of(resource_id),
                    self._seen_ms[resource_id],
                    known.hardware,
                    known.program,
                    resource_id in self._slots.draining,
                )
                for resource_id, known in sorted(self._registrations.items())
            ),
            tuple(self._left),
        )

    async def request_slot_overview(self, request: RequestSlotOverview) -> SlotOverview:
        """Return the jobs that hold slots."""
        return self._slots.overview()

    async def request_waiting_jobs(self, request: RequestWaitingJobs) -> WaitingJobs:
        """Return the waiting jobs, with their places in the queue."""
        waiting = self._slots.waiting()
        if request.job_id is not None:
            waiting = {job_id: waiting[job_id] for job_id in (request.job_id,) if job_id in waiting}
        return WaitingJobs(waiting)

    def _assign(self) -> None:
        for assignment in self._slots.assign():
            self.spawn(self._request_slot(assignment), f"slot {assignment.index} of {assignment.resource_id}")
        short, told = self._slots.short(), self._short
        if short != told:
            self._short = short
            for job_id in sorted((short ^ told) & self._job_masters.keys()):
                self.spawn(self._tell_short(job_id, is_short=job_id in short), f"slots of job {job_id}")

    async def _tell_short(self, job_id: JobId, *, is_short: bool) -> None:
        """Tell a JobMaster whether there are too few slots for all that its job waits for."""
        await self._tell(self._job_master_of(job_id), SlotsShort(job_id, is_short))

    async def _expect_for_a_while(self) -> None:
        await asyncio.sleep(_EXPECTED_S)
        self._slots.queue.expect_nobody()
        self._assign()

    async def _request_slot(self, assignment: SlotAssignment) -> None:
        request = assignment.request
        if assignment.resource_id not in self._addresses:
            return  # it left at the same moment, and what was to be its slot is sought elsewhere
        gateway = self._rpc.connect(self._addresses[assignment.resource_id], self._epoch)
        try:
            await gateway.ask(
                RequestSlot(
                    assignment.index,
                    request.job_id,
                    assignment.allocation_id,
                    request.job_master_address,
                    request.request_id,
                )
            )
        except EngineError as error:
            _log.warning("slot %d of %s was refused: %s", assignment.index, assignment.resource_id, error)
            self._slots.reject(assignment.allocation_id)
            self._assign()
            if isinstance(error, (EndpointUnreachableError, *REFUSES_ALL)):
                await self._look_after(assignment.resource_id)
        else:
            self._slots.confirm(assignment.allocation_id)

    async def _send_heartbeats(self) -> None:
        while True:
            await asyncio.sleep(self._heartbeats.interval_s)
            for resource_id in self._heartbeats.poll():
                self._lose(resource_id, "it has not answered heartbeats")
            self._slots.queue.keep_running(self._is_known_job)
            self._assign()
            for resource_id in self._heartbeats.targets:
                self.spawn(self._heartbeat(resource_id), f"heartbeat to {resource_id}")

    async def _look_after(self, resource_id: ResourceId) -> None:
        """Ask a TaskExecutor at once, unless that is being done."""
        if resource_id not in self._looked_after:
            self._looked_after.add(resource_id)
            try:
                await self._heartbeat(resource_id)
            finally:
                self._looked_after.discard(resource_id)

    async def _heartbeat(self, resource_id: ResourceId) -> None:
        """Ask a TaskExecutor for a sign of life; where it cannot be reached, twice, it is lost."""
        reason = ""
        for _ in range(_UNREACHABLE_MAX):
            if resource_id not in self._addresses:
                return
            try:
                gateway = self._rpc.connect(self._addresses[resource_id], self._epoch)
                await gateway.ask(Heartbeat(self._rpc.address_of(self.address)))
            except RpcTimeoutError:
                return  # it is silent, which is not yet a loss
            except EndpointUnreachableError:
                reason = "nothing answers at its address"
            except REFUSES_ALL as error:
                reason = str(error)
            except EngineError as error:  # whatever is wrong with one TaskExecutor is nothing to the others
                _log.warning("TaskManager %s does not take a heartbeat: %s", resource_id, error)
                return
            else:
                self._heartbeats.received(resource_id)
                if resource_id in self._seen_ms:
                    self._seen_ms[resource_id] = self._clock.wall_ms()
                return
        if resource_id in self._addresses:
            self._lose(resource_id, reason)

    def _lose(self, resource_id: ResourceId, reason: str, *, is_expected: bool = False) -> None:
        if not is_expected:
            CLUSTER_EVENTS.note(ClusterEvent.TASK_MANAGER_LOST)
            _log.warning("TaskManager %s is given up: %s", resource_id, reason)
        else:
            _log.info("TaskManager %s leaves: %s", resource_id, reason)
        self._addresses.pop(resource_id, None)
        self._registrations.pop(resource_id, None)
        self._seen_ms.pop(resource_id, None)
        self._heartbeats.unwatch(resource_id)
        del self._calls[resource_id]
        lost = TaskExecutorLost(resource_id, reason)
        for job_id in sorted({*self._slots.unregister(resource_id), *self._job_masters, *self._led_jobs()}):
            self.spawn(self._tell(self._job_master_of(job_id), lost), f"lost {resource_id}")
        self._assign()

    def _job_master_of(self, job_id: JobId) -> str:
        # One that goes on with a job of a former leader need not have asked for slots here yet.
        return self._job_masters.get(job_id) or self._rpc.address_of(job_master_name(job_id))

    async def _tell(self, job_master_address: str, request: Request[Acknowledge]) -> None:
        try:
            await self._rpc.connect(job_master_address, self._epoch).ask(request)
        except EngineError as error:
            _log.warning("%s was not told %s: %s", job_master_address, request, error)

    async def stop(self) -> None:
        """End the calls that are held open, then stop."""
        self._ends.set()
        await super().stop()
