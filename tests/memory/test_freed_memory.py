"""What the C library has free goes back to the system, for a hundredth of the time."""

import asyncio
import contextlib
import os
import platform
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from engine.clock import ManualClock, SystemClock
from engine.gateways.memory_use import MemoryInUse
from engine.gateways.messages import MESSAGE_TYPES, ReleaseJob, ReleasePartitions
from engine.ids import ExecutionAttemptId, IntermediateDataSetId, JobId, JobVertexId, ResourceId, ResultPartitionId
from engine.memory.heap import FreedMemory, daemon_variables
from engine.rpc.codec import MessageCodec
from engine.rpc.local_gateway import LocalRpcService
from engine.taskexecutor import task_executor
from engine.taskexecutor.task_executor import TaskExecutor
from engine.taskexecutor.task_executor_settings import TaskExecutorSettings

pytestmark = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="holes are of glibc's heap")

#: 64 MB in blocks of 4 KB, of which one in a thousand stays
SCRIPT = """
import ctypes
from engine.clock import SystemClock
from engine.memory.heap import FreedMemory
from tests.heap import resident_bytes

library = ctypes.CDLL(None)
library.malloc.restype = ctypes.c_void_p
library.free.argtypes = [ctypes.c_void_p]
library.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
freed = FreedMemory(SystemClock())
began = resident_bytes()
blocks = [library.malloc(4096) for _ in range(16_000)]
for block in blocks:
    library.memset(block, 1, 4096)
for number, block in enumerate(blocks):
    if number % 1000:
        library.free(block)
before = resident_bytes() - began
print(before, freed.give_back(), resident_bytes() - began)
"""


@pytest.mark.skipif("libasan" in os.environ.get("LD_PRELOAD", ""), reason="the sanitizer's heap keeps what is freed")
def test_holes_of_the_heap_go_back():
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2]
    )
    grown, is_done, kept = done.stdout.split()
    assert int(grown) > 48 << 20
    assert is_done == "True"
    assert int(kept) < 16 << 20


class SlowClock(ManualClock):
    """Each look at it takes a second."""

    def monotonic_s(self):
        self.advance(1.0)
        return super().monotonic_s()


def test_it_takes_a_hundredth_of_the_time():
    clock = SlowClock()
    freed = FreedMemory(clock)
    assert freed.give_back()
    assert not freed.give_back()
    clock.advance(97)
    assert not freed.give_back()
    assert freed.give_back()


#: eight threads that allocate at one time; malloc_stats writes a line for each arena
THREADS = """
import ctypes, threading

library = ctypes.CDLL(None)
together = threading.Barrier(8)

def allocate():
    together.wait()
    library.malloc(4096)
    together.wait()

threads = [threading.Thread(target=allocate) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
library.malloc_stats()
"""


@pytest.mark.skipif("libasan" in os.environ.get("LD_PRELOAD", ""), reason="the sanitizer has a heap of its own")
@pytest.mark.parametrize(("variables", "arenas"), [({}, 2), ({"MALLOC_ARENA_MAX": "5"}, 5)])
def test_the_threads_of_a_daemon_share_two_arenas_unless_told_otherwise(monkeypatch, variables, arenas):
    monkeypatch.delenv("MALLOC_ARENA_MAX", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    done = subprocess.run(
        [sys.executable, "-c", THREADS],
        capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2], env=daemon_variables(),
    )  # fmt: skip
    assert sum(line.startswith("Arena") for line in done.stderr.splitlines()) == arenas


class Notes:
    """Resources of an executor, and what gives memory back, in the order in which they are asked."""

    def __init__(self):
        self.taken = []

    def release_partition(self, partition):
        self.taken.append(partition)

    def memory_in_use(self, resource_id):
        return MemoryInUse(resource_id)

    def release_attempts(self, job_id, attempts):
        self.taken.append(job_id)

    def give_back(self):
        self.taken.append("freed memory")


@pytest.fixture
def notes(monkeypatch):
    notes = Notes()
    monkeypatch.setattr(task_executor, "FREED_MEMORY", notes)
    return notes


@contextlib.asynccontextmanager
async def task_executor_of(notes):
    with ThreadPoolExecutor(1) as blocking_work:
        rpc, settings = LocalRpcService(MessageCodec(MESSAGE_TYPES)), TaskExecutorSettings(1, 1, 10.0, 50.0, 30.0)
        executor = TaskExecutor(ResourceId.random(), rpc, settings, notes, SystemClock(), blocking_work, pytest.fail)
        yield executor
        await executor.stop()


def test_memory_goes_back_when_stored_results_were_read(notes):
    async def work(partitions):
        async with task_executor_of(notes) as executor:
            await executor.release_partitions(ReleasePartitions(partitions))

    attempt = ExecutionAttemptId.create(JobVertexId(0), 0, 0)
    partitions = tuple(ResultPartitionId(IntermediateDataSetId(attempt.vertex, index), attempt) for index in range(2))
    asyncio.run(work(partitions))
    assert notes.taken == [*partitions, "freed memory"]


@pytest.mark.parametrize("goes_on", [False, True], ids=["idle", "the next job has begun"])
def test_memory_goes_back_once_no_job_has_come_for_a_moment(monkeypatch, notes, goes_on):
    jobs = [JobId.random(), JobId.random()]

    async def work():
        async with task_executor_of(notes) as executor:
            for job_id in jobs:
                await executor.release_job(ReleaseJob(job_id))
            assert notes.taken == jobs
            if goes_on:
                executor._tasks = {"attempt": "task"}
            await asyncio.sleep(0.3)
            executor._tasks = {}

    monkeypatch.setattr(task_executor, "_IDLE_S", 0.05)
    asyncio.run(work())
    assert notes.taken == (jobs if goes_on else [*jobs, "freed memory"])
