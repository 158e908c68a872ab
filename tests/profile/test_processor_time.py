"""Where the thread of a task was: on a processor, ready, or neither."""

import threading
import time
from pathlib import Path

import pytest

from engine.insight.processor_time import ProcessorTime

pytestmark = pytest.mark.skipif(not Path("/proc/thread-self/schedstat").exists(), reason="the kernel has no numbers")


def burn(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_work_counts_and_sleep_and_what_was_before_do_not():
    burn(0.05)
    processor = ProcessorTime()
    assert processor.times_us() == (0, 0)
    with processor.of_this_thread():
        time.sleep(0.05)
        slept_us = processor.times_us()[0]
        burn(0.05)
    worked_us = processor.times_us()[0]
    assert slept_us < 40_000 < 45_000 <= worked_us < 95_000


def test_several_blocks_count_together():
    processor = ProcessorTime()
    for _ in range(2):
        with processor.of_this_thread():
            burn(0.03)
        burn(0.03)
    worked_us, waited_us = processor.times_us()
    assert 60_000 <= worked_us < 90_000
    assert waited_us >= 0


def test_another_thread_may_ask_and_the_end_is_kept():
    processor, ready, go_on = ProcessorTime(), threading.Event(), threading.Event()

    def run():
        with processor.of_this_thread():
            burn(0.03)
            ready.set()
            go_on.wait(10)

    thread = threading.Thread(target=run)
    thread.start()
    assert ready.wait(10)
    asked_us = processor.times_us()[0]
    go_on.set()
    thread.join()
    assert processor.times_us()[0] >= asked_us >= 28_000
