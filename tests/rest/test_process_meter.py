"""The numbers of one process: of its parts, its event loop and its disks; and counts of what has happened."""

from __future__ import annotations

import asyncio
import logging
import threading
from concurrent.futures import ThreadPoolExecutor

from engine.clock import ManualClock
from engine.insight.cluster_events import BOUNDS_S, ClusterEvent, ClusterEvents
from engine.insight.disk_watch import DISK_FREE, DISK_USED, DiskWatch
from engine.insight.loop_lag import LOOP_LAG, LoopLag
from engine.insight.process_meter import ProcessMeter


def test_a_part_that_fails_takes_no_number_from_the_others_and_is_told_once(caplog):
    def broken():
        raise OSError("gone")

    meter = ProcessMeter(broken, lambda: {"own": 2.0})
    meter.add(lambda: {"later": 3.0})
    with caplog.at_level(logging.ERROR):
        for _ in range(3):
            values = meter.read()
    assert values["own"], values["later"] == (2.0, 3.0)
    assert values["Status.Process.Threads.Count"] > 0
    assert caplog.text.count("metrics of a part of this process are missing") == 1


def test_the_longest_delay_is_forgotten_after_a_minute():
    clock = ManualClock()
    lag = LoopLag(clock)
    lag.note(0.7)
    lag.note(0.2)
    assert lag.metrics() == {LOOP_LAG: 0.7}
    clock.advance(31)
    lag.note(0.1)
    assert lag.metrics() == {LOOP_LAG: 0.7}
    clock.advance(30)
    assert lag.metrics() == {LOOP_LAG: 0.1}
    clock.advance(3600)
    assert lag.metrics() == {LOOP_LAG: 0.0}


def test_a_loop_that_is_held_up_is_seen():
    async def body():
        lag = LoopLag()
        looking = asyncio.create_task(lag.run())
        await asyncio.sleep(0)
        threading.Event().wait(0.4)
        while lag.metrics()[LOOP_LAG] < 0.25:
            await asyncio.sleep(0.01)
        looking.cancel()

    asyncio.run(asyncio.wait_for(body(), 30))


def test_a_disk_that_does_not_answer_holds_up_one_thread_and_its_numbers_go(tmp_path, monkeypatch):
    clock, released, hung = ManualClock(), threading.Event(), tmp_path / "hung"
    asked = []

    def bytes_of(folder):
        asked.append(folder)
        if folder == hung and len(asked) > 2:
            assert released.wait(30)
        if not folder.exists():
            raise FileNotFoundError(folder)
        return 5, 7

    monkeypatch.setattr("engine.insight.disk_watch._bytes_of", bytes_of)
    hung.mkdir()
    there = tmp_path / "there"
    there.mkdir()

    async def body():
        disks = DiskWatch([hung, there, there, tmp_path / "missing"], clock)
        with ThreadPoolExecutor(4) as executor:
            disks.look(executor)
            await settled(disks, 0)
            before = disks.metrics()
            for _ in range(5):
                clock.advance(20)
                disks.look(executor)
                await settled(disks, 1)
            after = disks.metrics()
            released.set()
            await settled(disks, 0)
        return before, after

    async def settled(disks, count):
        while len(disks._asked) > count:
            await asyncio.sleep(0.001)

    before, after = asyncio.run(asyncio.wait_for(body(), 60))
    assert before[f"{DISK_FREE}{hung}"] == before[f"{DISK_FREE}{there}"] == 5
    assert before[f"{DISK_USED}{there}"] == 7
    assert set(after) == {f"{DISK_FREE}{there}", f"{DISK_USED}{there}"}
    assert asked.count(hung) == 2, "it is not asked again before it has answered"


def test_free_and_used_bytes_are_those_of_the_disk(tmp_path):
    async def body():
        disks = DiskWatch([tmp_path], own=lambda: (5, 7))
        with ThreadPoolExecutor(1) as executor:
            disks.look(executor)
            while len(disks.metrics()) < 4:
                await asyncio.sleep(0.001)
        return disks.metrics()

    values = asyncio.run(asyncio.wait_for(body(), 30))
    assert values[f"{DISK_FREE}{tmp_path}"] > 0
    assert values[f"{DISK_USED}{tmp_path}"] > 0
    assert (values["Status.Disk.Free"], values["Status.Disk.Used"]) == (5, 7), "of the process's own files"


def test_ends_of_jobs_are_counted_by_length():
    events = ClusterEvents()
    for seconds in (0.5, 1.0, 1.1, 1e9):
        events.job_ended("FINISHED", seconds)
    events.job_ended("SUSPENDED", 1.0)
    events.note(ClusterEvent.ATTEMPT_FAILED, 3)
    assert events.counts[ClusterEvent.ATTEMPT_FAILED] == 3
    assert set(events.durations) == {"FINISHED", "FAILED", "CANCELED"}
    finished = events.durations["FINISHED"]
    assert finished.counts == [2, 1, *[0] * (len(BOUNDS_S) - 2), 1]
    assert finished.total_s == 1e9 + 2.6
    assert sum(events.durations["FAILED"].counts) == 0
