"""The most memory that Arrow held while a task ran, without what others held before."""

import pyarrow as pa

from engine.operators.arrow_peak import ArrowPeak


def test_what_was_there_before_any_task_ran_is_left_out():
    held = pa.allocate_buffer(8 << 20)
    peak = ArrowPeak()
    assert peak.bytes < 1 << 20
    more = pa.allocate_buffer(4 << 20)
    peak.look()
    del more
    assert 4 << 20 <= peak.bytes < 5 << 20
    peak.close()
    later = pa.allocate_buffer(16 << 20)
    assert 4 << 20 <= peak.bytes < 5 << 20
    del held, later


def test_an_attempt_that_never_began_does_not_count():
    ArrowPeak()
    held = pa.allocate_buffer(8 << 20)
    peak = ArrowPeak()
    assert peak.bytes < 1 << 20
    peak.close()
    del held


def test_what_a_script_lets_go_meanwhile_hides_nothing_and_is_not_counted():
    held = pa.allocate_buffer(64 << 20)
    peak = ArrowPeak()
    del held
    peak.look()
    more = pa.allocate_buffer(4 << 20)
    peak.look()
    peak.close()
    del more
    assert 4 << 20 <= peak.bytes < 5 << 20


def test_a_new_record_of_the_allocator_is_seen_without_looking():
    peak = ArrowPeak()
    size = pa.default_memory_pool().max_memory() + (1 << 20)
    buffer = pa.allocate_buffer(size)
    del buffer
    assert peak.bytes >= size - (1 << 20)
    peak.close()
    peak.close()


def test_tasks_at_the_same_time_see_each_others_memory():
    first = ArrowPeak()
    buffer = pa.allocate_buffer(4 << 20)
    second = ArrowPeak()
    second.look()
    assert second.bytes >= 4 << 20
    del buffer
    first.close()
    second.close()
