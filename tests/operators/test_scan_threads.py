"""A source read by several threads: batches in the order of the splits, bounded, whatever ends it."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import TaskCancelledError
from engine.graph.source_spec import SourceSplit
from engine.operators.scan_threads import ScanThreads
from engine.operators.task_services import _new_thread


class Reader:
    """Reads splits of so many batches of one row; the file's place is the value."""

    is_in_runs = False

    def __init__(self, counts, faults=(), gate=None):
        self.counts, self.faults, self.gate = counts, faults, gate
        self.most_read, self.closed = 0, 0

    def take_from(self, take):
        self._take = take

    def __iter__(self):
        while (split := self._take()) is not None:
            for number in range(self.counts[split.start]):
                if self.gate is not None:
                    self.gate(split.start)
                if (split.start, number) in self.faults:
                    raise ValueError(f"split {split.start}")
                self.most_read = max(self.most_read, split.start)
                yield pa.record_batch({"split": [split.start], "number": [number]})

    def close(self):
        self.closed += 1


class World:
    def __init__(self, counts, threads, *, keeps_runs=True, **more):
        self.threads = []
        splits = [SourceSplit("t", number, number + 1, 1) for number in range(len(counts))]
        self.context = SimpleNamespace(
            services=SimpleNamespace(new_thread=self.new_thread),
            helpers=[],
            task_name="scan (1/1)",
            check_cancelled=lambda: None,
        )
        self.readers = [Reader(counts, **more) for _ in range(threads)]
        self.scan = ScanThreads(self.readers, splits, self.context, keeps_runs=keeps_runs)

    def new_thread(self, work, name):
        self.threads.append(_new_thread(work, name))
        return self.threads[-1]

    def close(self):
        self.scan.close()
        assert not any(thread.is_alive() for thread in self.threads)
        assert {reader.closed for reader in self.readers} == {1}


def places(batches):
    return [place for batch in batches for place in zip(*(column.to_pylist() for column in batch.columns), strict=True)]


def wanted(counts):
    return [(split, number) for split, count in enumerate(counts) for number in range(count)]


@given(st.lists(st.integers(0, 7), max_size=30), st.integers(1, 5), st.booleans())
def test_all_rows_come_in_order(counts, threads, keeps_runs):
    world = World(counts, threads, keeps_runs=keeps_runs)
    assert places(world.scan) == wanted(counts)
    assert len(world.context.helpers) == threads - 1
    world.close()


def test_runs_are_told_apart():
    world = World([2, 0, 3, 1], 2)
    assert [(world.scan.run, *place) for batch in world.scan for place in places([batch])] == [
        (split + 1, split, number) for split, number in wanted([2, 0, 3, 1])
    ]
    world.close()


def test_a_slow_split_holds_the_others_up_and_what_waits_is_bounded():
    """The thread that has taken split 0 stands still; the others read a few batches and wait."""
    go, held = threading.Event(), threading.Event()
    world = World([1] * 100, 4, gate=lambda split: split == 0 and (held.set(), go.wait(20)))
    found = []
    reading = threading.Thread(target=lambda: found.extend(places(world.scan)))
    reading.start()
    assert held.wait(20)
    turns = world.scan._turns
    while turns.waiting_batches < turns.batches_max:
        pass
    assert max(reader.most_read for reader in world.readers) < turns.batches_max + len(world.readers)
    go.set()
    reading.join(20)
    assert found == wanted([1] * 100)
    world.close()


@pytest.mark.parametrize("place", [(0, 0), (5, 1), (9, 1)])
def test_an_error_comes_after_the_rows_before_it(place):
    world, found = World([2] * 10, 3, faults=[place]), []
    with pytest.raises(ValueError, match=f"split {place[0]}"):
        for batch in world.scan:
            found.append(batch)  # noqa: PERF402 - what came before the error counts
    assert places(found) == wanted([2] * 10)[: 2 * place[0] + place[1]]
    world.close()


def test_a_machine_that_gives_no_further_thread_ends_those_that_run():
    class NoThread(threading.Thread):
        def start(self):
            raise RuntimeError("can't start new thread")

        def join(self, timeout=None):
            raise AssertionError("it has never begun")

    world = World([1] * 50, 3)
    begin = world.new_thread
    world.context.services.new_thread = lambda work, name: begin(work, name) if not world.threads else NoThread()
    with pytest.raises(RuntimeError, match="can't start new thread"):
        list(world.scan)
    world.close()


def test_a_reader_that_stops_early_and_one_that_is_cancelled_end_the_threads():
    world = World([3] * 50, 3)
    assert places([next(iter(world.scan))]) == [(0, 0)]
    world.close()

    def cancelled():
        raise TaskCancelledError("scan")

    go = threading.Event()
    world = World([1, 1], 2, gate=lambda split: threading.current_thread() in world.threads and go.wait(20))
    world.context.check_cancelled = cancelled
    with pytest.raises(TaskCancelledError):
        list(world.scan)
    go.set()
    world.close()
