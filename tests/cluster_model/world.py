"""A cluster in virtual time: JobManagers over a quorum, TaskExecutors, clients, faults; what must hold at each step.

    world = run_world(seed, KINDS[name]) ─► its end, once faults have stopped and all has come to it

Held at each write to the quorum's handles: it is checked against the latch node of an epoch that only one process has,
that is the first in line, and that is not lower than one before. At each leadership: one process leads at a time.
At each death of a leader: its journal says what it knew. At the end: every job that was accepted has ended, once, as
its client was told; what is published is what one decision says; nothing of a job is left but its history.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import random
from unittest import mock

import msgspec

from engine.commit import targets
from engine.dispatcher import job_archive
from engine.formats import registry
from engine.graph.source_spec import SinkSpec
from engine.jobmaster import job_commit, job_journal
from engine.storage import file_systems
from ha import zookeeper_close, zookeeper_session, zookeeper_state
from ha.zookeeper_preflight import ServerState
from tests.cluster_model import output_model, virtual_threads
from tests.cluster_model.cluster_parts import ClientModel, JobManagerModel, TaskManagerModel
from tests.cluster_model.invariants import Invariants
from tests.cluster_model.kazoo_model import KazooModel
from tests.cluster_model.network_model import Network
from tests.cluster_model.output_model import Outputs
from tests.cluster_model.quorum_model import Quorum
from tests.cluster_model.store_model import StoreModel
from tests.cluster_model.virtual_threads import ModelLoop
from tests.jobmaster.job_graphs import BLOCKING, PIPELINED, Edge, job_graph

#: virtual seconds after the last fault from which on a cluster that has not ended hangs
LIMIT_S = 2_000.0
#: modules whose threads, queues and clocks are the model's
_THREADED = (zookeeper_session, zookeeper_state, zookeeper_close, job_journal, job_commit, job_archive)


def random_graph(chance, number):
    """Return 1 to 3 vertices, of which the last one writes."""
    count = chance.randint(1, 3)
    edges = [
        Edge(consumer - 1, consumer, chance.choice(["HASH", "REBALANCE"]), chance.choice([BLOCKING, PIPELINED]))
        for consumer in range(1, count)
    ]
    sinks = {count - 1: SinkSpec(output_model.FORMAT, f"output {number}")}
    return job_graph([chance.randint(1, 2) for _ in range(count)], edges, sinks=sinks, name=f"job {number}")


class World(Invariants):
    """One cluster."""

    def __init__(self, loop, chance, store, settings):
        super().__init__()
        self.loop, self.chance, self.store, self.settings = loop, chance, store, settings
        self.failure_rate, self.bug_rate = settings.failure_rate, settings.bug_rate
        self.network = Network(loop, chance, settings.delay_s, settings.is_rough)
        self.quorum = Quorum(loop, chance, self.check_write)
        for server in self.quorum.servers:
            server.lag_s = chance.choice([0.005, 0.05, 0.5])
        self.outputs = Outputs()
        self.hosts = [f"jm{number}" for number in range(settings.job_managers)]
        self.job_managers, self.task_managers = {}, {}
        self._next_host = 0
        self.clients = []
        #: tasks of processes that were killed: collected, they would go on to their ends
        self._kept = []
        self._buried = set()
        self._is_quiet = False

    @property
    def executors(self):
        return [each.executor for each in self.task_managers.values()]

    @property
    def processes(self):
        return [*self.job_managers.values(), *self.task_managers.values()]

    # ---- processes come and go ----

    def add_task_manager(self, slot_count):
        self._next_host += 1
        host = f"tm{self._next_host}"
        self.task_managers[host] = TaskManagerModel(self, host, slot_count)

    def add_client(self, number):
        after_s = self.chance.expovariate(0.2) if self.chance.random() < self.settings.cancels else None
        self.clients.append(ClientModel(self, number, random_graph(self.chance, number), after_s))

    def note_lost(self, _, told):
        """Hear of an error that nothing has heard of."""
        error = told.get("exception") or AssertionError(told)
        if not isinstance(error, virtual_threads.KilledError):
            self.faults.append(error)

    def note_fatal(self, process, error):
        """Have a process end that cannot go on; its supervisor starts it again."""
        self.check_fatal(process, error)
        self.loop.call_soon(self.kill, process, context=virtual_threads.NOWHERE)

    def kill(self, process):
        """Kill a process; another one comes in its place, the session may be ended by its guardian."""
        if process in self._buried:
            return
        self._buried.add(process)
        is_job_manager = process.host in self.job_managers
        if is_job_manager and not process.is_dead:
            self.check_journals(process)
        session_id = process.client.session_id if process.client is not None else 0
        self._kept += asyncio.all_tasks(self.loop)
        process.kill()
        after_s = self.chance.uniform(0.1, 3.0)
        if is_job_manager:
            if session_id and self.chance.random() < 0.5:
                self._later(self.chance.uniform(0.0, 0.3), self.quorum.end_session, session_id)
            self._later(after_s, self._restart, process.host)
        else:
            del self.task_managers[process.host]
            self._later(after_s, self.add_task_manager, process.slot_count)

    def get(self, point):
        """Have a JobManager that has come to a fault point die there, now and then; none is armed."""
        process = virtual_threads.PROCESS.get()
        is_alive = process is not None and not process.is_dead and process.name in self.job_managers
        if is_alive and not self._is_quiet and self.chance.random() < self.settings.crashes:
            process.is_dead = True
            self._kept += asyncio.all_tasks(self.loop)
            self.loop.call_soon(self.kill, process, context=virtual_threads.NOWHERE)
            raise virtual_threads.KilledError(point)

    def _restart(self, host):
        self.job_managers[host] = JobManagerModel(self, host)

    def _later(self, seconds, call, *args):
        self.loop.call_later(seconds, call, *args, context=virtual_threads.NOWHERE)

    # ---- faults ----

    def kill_leader(self):
        alive = [each for each in self.job_managers.values() if not each.is_dead]
        leading = [each for each in alive if each.contender.components is not None]
        if leading:
            self.kill(self.chance.choice(leading))

    def kill_job_manager(self):
        self.kill(self.chance.choice(list(self.job_managers.values())))

    def leave(self):
        """Have a JobManager end as it is told to."""
        process = self.chance.choice(list(self.job_managers.values()))
        if not process.is_dead and not process.is_stopped:
            self.check_journals(process)
            leaving = process.task(process.leave())
            leaving.add_done_callback(lambda _: self._later(0.0, self.kill, process))

    def stop_process(self):
        """Stop a process for a while, as the kernel or a debugger may."""
        process = self.chance.choice(self.processes if self.settings.has_losses else list(self.job_managers.values()))
        if not process.is_dead and not process.is_stopped:
            process.stop()
            self._later(self.chance.choice([0.5, 3.0, 8.0]), process.go_on)

    def cut_from_quorum(self):
        process = self.chance.choice(self.processes)
        if not process.is_dead and process.client is not None:
            process.client.cut(self.chance.choice([0.3, 2.0, 5.0, 12.0]))

    def elect(self):
        self.quorum.elect(self.chance.uniform(0.1, 3.0))

    def lose_server(self):
        server = self.chance.choice(self.quorum.servers)
        if all(each.is_up for each in self.quorum.servers):
            self.quorum.lose_server(server)
            self._later(self.chance.uniform(0.5, 10.0), self.quorum.restore_server, server)

    def kill_task_manager(self):
        if self.task_managers:  # all may be about to be started again
            self.kill(self.chance.choice(list(self.task_managers.values())))

    def cut_network(self):
        one, other = self.chance.sample([*self.hosts, *self.task_managers], 2)
        self.network.cut(one, other, self.chance.choice([1.0, 8.0, 30.0]))

    def lose_partition(self):
        """Have a finished result vanish from its disk."""
        held = [(each, key) for each in self.executors for key in each.partitions if key.producer not in each.tasks]
        if held:
            executor, key = self.chance.choice(held)
            del executor.partitions[key]

    def fail_store(self):
        self.store.failing = self.chance.choice([0.05, 0.3, 1.0])
        self._later(self.chance.choice([0.5, 2.0, 8.0]), self._mend_store)

    def slow_store(self):
        self.store.slow_s = self.chance.choice([0.2, 2.0, 15.0])
        self._later(self.chance.choice([2.0, 10.0, 30.0]), self._mend_store)

    def fill_store(self):
        self.store.is_full = True
        self._later(self.chance.choice([0.5, 3.0, 12.0]), self._mend_store)

    def _mend_store(self):
        self.store.failing = self.store.slow_s = 0.0
        self.store.is_full = False

    def reset_connections(self):
        self.network.reset(*self.chance.sample([*self.hosts, *self.task_managers], 2))

    def set_clock(self):
        """Have the wall clock of a process jump."""
        self.chance.choice(self.processes).clock_ahead_s = self.chance.choice([-86_400.0, -30.0, 0.0, 30.0, 86_400.0])

    @property
    def faults_there_are(self):
        of_leaders = [
            self.kill_leader,
            self.kill_leader,
            self.kill_job_manager,
            self.leave,
            self.stop_process,
            self.cut_from_quorum,
            self.elect,
            self.lose_server,
        ]
        losses = [self.kill_task_manager, self.cut_network, self.lose_partition] if self.settings.has_losses else []
        of_stores = [self.fail_store] if self.settings.has_store_faults else []
        of_disks = [self.slow_store, self.slow_store, self.fill_store] if self.settings.has_disk_faults else []
        rough = [self.reset_connections, self.reset_connections, self.set_clock] if self.settings.is_rough else []
        return [*of_leaders, *losses, *of_stores, *of_disks, *rough]

    # ---- a run ----

    async def run(self):
        """Have jobs run, and faults happen; then wait until everything has come to its end."""
        settings = self.settings
        for host in self.hosts:
            self._restart(host)
        for count in settings.slots:
            self.add_task_manager(count)
        for number in range(settings.jobs):
            self._later(self.chance.expovariate(0.3), self.add_client, number)
        for _ in range(settings.faults):
            await asyncio.sleep(self.chance.expovariate(1 / settings.mean_pause_s))
            self.chance.choice(self.faults_there_are)()
            self.check_leaders()
        self._is_quiet = True
        deadline_s = self.loop.time() + LIMIT_S
        while not self.is_over:
            assert self.loop.time() < deadline_s, f"it hangs: {self.told()}"
            await asyncio.sleep(0.5)
            self.check_leaders()
        self.check_end()

    @property
    def is_over(self):
        has_answers = len(self.clients) == self.settings.jobs and all(each.outcome for each in self.clients)
        return bool(self.faults) or (has_answers and not self.left())

    def close(self):
        for process in (*self.processes, *self.clients):
            process.kill()


class Settings(msgspec.Struct, frozen=True):
    """The kind of a run."""

    jobs: int = 2
    job_managers: int = 2
    slots: tuple[int, ...] = (2, 2)
    faults: int = 6
    mean_pause_s: float = 3.0
    delay_s: float = 0.01
    #: chance of a job that its client cancels it
    cancels: float = 0.0
    has_losses: bool = False
    has_store_faults: bool = False
    #: flag: the storage is slow, or full
    has_disk_faults: bool = False
    #: flag: calls pass each other, connections break, and clocks jump
    is_rough: bool = False
    #: chance of a task that it fails, and that its function does
    failure_rate: float = 0.0
    bug_rate: float = 0.0
    #: chance that a JobManager dies at a fault point that it comes to
    crashes: float = 0.0


#: the kinds of runs by name
KINDS = {
    "quiet": Settings(faults=0),
    "leaders": Settings(crashes=0.02),
    "losses": Settings(crashes=0.02, faults=8, has_losses=True, failure_rate=0.03),
    "store": Settings(crashes=0.02, faults=8, has_losses=True, has_store_faults=True),
    "ends": Settings(crashes=0.05, has_losses=True, cancels=0.5, bug_rate=0.05),
    "disks": Settings(crashes=0.02, faults=8, has_losses=True, has_disk_faults=True),
    "rough": Settings(
        crashes=0.02, faults=12, has_losses=True, has_disk_faults=True, cancels=0.2, delay_s=0.3, is_rough=True
    ),
    "late": Settings(job_managers=3, has_losses=True, delay_s=0.3),
    "crowd": Settings(jobs=5, slots=(2, 1, 1), job_managers=3, faults=10, crashes=0.02, cancels=0.2),
}


@contextlib.contextmanager
def _modelled(world):
    """Have the real modules use what the model has."""
    clients = lambda timeout, **_: KazooModel(world.quorum, world.chance, timeout)  # noqa: E731
    serving = (ServerState("model:1", ""),)
    threaded = ((module, name) for module in _THREADED for name in ("threading", "queue", "time"))
    modules = {"threading": virtual_threads.THREADING, "queue": virtual_threads.QUEUE, "time": virtual_threads.TIME}
    with contextlib.ExitStack() as patches:
        for module, name in threaded:
            if hasattr(module, name):
                patches.enter_context(mock.patch.object(module, name, modules[name]))
        for target, value in (
            ("engine.fault_points._armed", world),
            ("engine.clock.time", virtual_threads.TIME),
            ("engine.dispatcher.live_jobs.threading", virtual_threads.THREADING),
            ("engine.dispatcher.job_archive.ThreadPoolExecutor", virtual_threads.Pool),
            ("ha.zookeeper_session.KazooClient", clients),
            ("ha.zookeeper_session.examine", lambda *_: serving),
            ("ha.zookeeper_session.limits", lambda *_: ()),
            # the same seed gives the same ids, and with them the same run
            ("os.urandom", world.chance.randbytes),
            ("random._urandom", world.chance.randbytes),
        ):
            patches.enter_context(mock.patch(target, value))
        patches.enter_context(
            mock.patch.object(file_systems, "FILE_SYSTEMS", (*file_systems.FILE_SYSTEMS, world.store))
        )
        place = ("tests.cluster_model.output_model",)
        patches.enter_context(mock.patch.dict(targets.TARGET_PLACES, {output_model.FORMAT: (*place, "ModelTarget")}))
        patches.enter_context(mock.patch.dict(registry.SINK_PLACES, {output_model.FORMAT: (*place, "ModelSink")}))
        virtual_threads.use(world.loop)
        yield
        virtual_threads.use(None)


def _take_apart(loop):
    """Close what processes that were killed have left, without a word; it begins nothing."""
    loop.is_over = True
    for task in asyncio.all_tasks(loop) - {asyncio.current_task()}:
        task._log_destroy_pending = False
        while inspect.getcoroutinestate(task.get_coro()) != inspect.CORO_CLOSED:
            with contextlib.suppress(BaseException):
                task.get_coro().close()
    loop.is_over = False


def run_world(seed, settings):
    """Run a cluster by a seed; return it."""
    random.seed(seed)
    loop = ModelLoop()
    chance = random.Random(seed)
    world = World(loop, chance, StoreModel(chance), settings)
    loop.set_exception_handler(world.note_lost)

    async def run():
        try:
            await world.run()
        finally:
            world.close()
            _take_apart(loop)

    with _modelled(world):
        try:
            loop.run_until_complete(run())
        finally:
            loop.close()
    return world
