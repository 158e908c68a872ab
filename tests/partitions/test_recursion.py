"""Parts that wait: in memory, divided, or by another way; the next one first, and nothing is left."""

import threading

import pytest

from engine.partitions.recursion import LEVEL_WRITTEN_TWICE, PASSES_MAX, Recursion, parts_of_files, passes_pay


class Part:
    """So many rows, which halve when they are divided, but for a heavy key."""

    def __init__(self, name, rows, level=1, has_shrunk=True):
        self.name, self.rows, self.level, self.has_shrunk = name, rows, level, has_shrunk
        self.is_deleted = False

    def delete(self):
        self.is_deleted = True


class Consumer:
    """Ten rows are in memory."""

    def __init__(self, recursion, heavy=False):
        self.recursion, self.heavy = recursion, heavy
        self.made, self.ways = [], []

    def in_memory(self, part):
        self.made.append(part)
        return iter([part.name]) if part.rows <= 10 else None

    def divided(self, part):
        self.ways.append(("divided", part.name, part.level))
        yield part.name + "-kept"
        rows = part.rows if self.heavy else part.rows // 2
        self.recursion.add(Part(part.name + half, rows, part.level + 1, not self.heavy) for half in "ba")

    def undivided(self, part):
        self.ways.append(("undivided", part.name, part.level))
        return iter([part.name + "-sorted"])


def test_parts_are_divided_until_they_fit_the_next_one_first():
    recursion = Recursion(level_max=3)
    consumer = Consumer(recursion)
    recursion.add([Part("y", 5), Part("x", 40)])
    assert list(recursion.results(consumer)) == [
        *("x-kept", "xa-kept", "xaa", "xab", "xb-kept", "xba", "xbb"),
        "y",
    ]
    assert all(part.is_deleted for part in consumer.made)
    assert list(recursion.waiting) == []


class Threads:
    """Two threads that do a part each, one after the other."""

    count = 2

    def __init__(self):
        self.runs = 0

    def run(self, work):
        self.runs += 1
        threads = [threading.Thread(target=work) for _ in range(self.count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def test_parts_that_are_small_together_are_done_by_threads_in_their_order():
    recursion, threads = Recursion(level_max=3), Threads()
    recursion.do_together(threads, lambda part: part.rows if part.rows <= 10 else None, 25)
    consumer, names = Consumer(recursion), [f"p{number:02}" for number in range(12)]
    recursion.add([Part("z", 5), Part("x", 40), *(Part(name, 2) for name in reversed(names))])
    found = list(recursion.results(consumer))
    assert found == [*names, "x-kept", "xa-kept", "xaa", "xab", "xb-kept", "xba", "xbb", "z"]
    # 8 and 4 of them; two halves twice, the last two with one more
    assert threads.runs == 4
    assert all(part.is_deleted for part in consumer.made)
    assert list(recursion.waiting) == []


def test_parts_that_are_large_together_are_done_one_by_one():
    recursion, threads = Recursion(), Threads()
    recursion.do_together(threads, lambda part: part.rows, 7)
    recursion.add([Part("b", 4), Part("a", 4)])
    assert list(recursion.results(Consumer(recursion))) == ["a", "b"]
    assert threads.runs == 0


def test_what_threads_have_taken_is_deleted_when_it_is_not_wanted():
    recursion, parts = Recursion(), [Part(name, 1) for name in "abc"]
    recursion.do_together(Threads(), lambda part: part.rows, 100)
    recursion.add(parts)
    results = recursion.results(Consumer(recursion))
    assert next(results) == "c"
    results.close()
    assert all(part.is_deleted for part in parts)


def test_a_part_that_did_not_shrink_is_not_divided_again():
    recursion = Recursion(level_max=3)
    consumer = Consumer(recursion, heavy=True)
    recursion.add([Part("x", 40)])
    assert list(recursion.results(consumer)) == ["x-kept", "xa-sorted", "xb-sorted"]


def test_a_part_of_the_deepest_level_is_not_divided_again():
    recursion = Recursion(level_max=1)
    consumer = Consumer(recursion)
    recursion.add([Part("x", 80)])
    assert list(recursion.results(consumer)) == ["x-kept", "xa-sorted", "xb-sorted"]
    assert consumer.ways == [("divided", "x", 1), ("undivided", "xa", 2), ("undivided", "xb", 2)]


def test_what_waits_and_what_is_being_read_is_deleted_at_the_end():
    recursion = Recursion()
    parts = [Part("y", 5), Part("x", 40)]
    recursion.add(parts)
    results = recursion.results(Consumer(recursion))
    assert next(results) == "x-kept"
    assert not parts[1].is_deleted
    recursion.close()
    assert all(part.is_deleted for part in parts)
    recursion.close()
    results.close()


def test_a_consumer_that_fails_leaves_its_part_deleted():
    recursion = Recursion()
    part = Part("x", 40)
    recursion.add([part])
    consumer = Consumer(recursion)
    consumer.divided = lambda part: 1 / 0
    with pytest.raises(ZeroDivisionError):
        list(recursion.results(consumer))
    assert part.is_deleted


class File:
    def __init__(self, raw_bytes):
        self.raw_bytes = raw_bytes


def test_most_of_what_was_partitioned_in_one_part_did_not_shrink():
    left, right = [File(10), File(30), File(10)], [File(10), File(50), File(10)]
    assert [part.has_shrunk for part in parts_of_files([left, right], 2)] == [True, False, True]
    assert [part.has_shrunk for part in parts_of_files([left, right], 2, kept_bytes=200)] == [True, True, True]
    assert [part.level for part in parts_of_files([left], 2)] == [2, 2, 2]


def test_what_was_written_twice_is_read_more_often_before_it_is_written_again():
    assert passes_pay(8, 1, 8)
    assert not passes_pay(9, 1, 8)
    assert passes_pay(PASSES_MAX, LEVEL_WRITTEN_TWICE, 8)
    assert not passes_pay(PASSES_MAX + 1, LEVEL_WRITTEN_TWICE, 8)
