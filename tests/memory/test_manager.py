"""The memory manager: pools and their limits, leaks by owner, large pages, threads that share it."""

import random
import threading
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from engine.errors import ConfigurationError, DiskFullError, MemoryBudgetError, MemoryLeakError
from engine.memory.manager import MemoryManager
from engine.memory.page_pool import PagePool
from tests.heap import heap_bytes, resident_bytes
from tests.native import _memory_probe as probe

PAGE = 4096
#: from this size on a large page is mapped
LARGE_MAPPED_BYTES = 256 << 10


def test_pools_reserve_and_the_refusal_names_owner_size_rest_and_holders() -> None:
    with MemoryManager(100 * PAGE, PAGE) as manager:
        with manager.pool("sort of v3-0", 60), manager.pool("join of v4-0", 30):
            with pytest.raises(MemoryBudgetError) as caught:
                manager.pool("aggregate of v5-0", 11)
            text = str(caught.value)
            for part in ("aggregate of v5-0", "11 pages", "10 of 100", "sort of v3-0 60", "join of v4-0 30"):
                assert part in text
            manager.pool("aggregate of v5-0", 10).close()
        assert manager.pages_unreserved == manager.pages_total == 100


def test_a_pool_gives_its_limit_and_not_one_page_more() -> None:
    with MemoryManager(10 * PAGE + 100, PAGE) as manager, manager.pool("a", 7) as pool:
        pages = [probe.take(pool) for _ in range(7)]
        assert all(pages) and len(set(pages)) == 7
        assert all(page % 64 == 0 for page in pages)
        assert probe.take(pool) == 0
        assert (pool.pages_used, pool.pages_peak, probe.pages_free(pool), manager.pages_free) == (7, 7, 0, 3)
        for index, page in enumerate(pages):
            probe.fill(page, PAGE, index)
        assert [probe.count_other(page, PAGE, index) for index, page in enumerate(pages)] == [0] * 7
        for page in pages:
            probe.give(pool, page)
        assert (pool.pages_used, pool.pages_peak, manager.pages_free, manager.pages_peak) == (0, 7, 10, 7)


def test_pages_are_recycled_so_that_little_is_ever_mapped() -> None:
    with MemoryManager(1 << 30) as manager, manager.pool("a", 20000) as pool:
        for _ in range(1000):
            probe.give(pool, probe.take(pool))
        assert manager.pages_mapped <= 64
        assert manager.pages_total == 32768


def test_all_of_a_budget_that_is_not_whole_slabs_can_be_used() -> None:
    page_count = 3 * 512 + 17
    with MemoryManager(page_count * PAGE, PAGE) as manager, manager.pool("a", page_count) as pool:
        pages = [probe.take(pool) for _ in range(page_count)]
        assert len(set(pages)) == page_count and all(pages)
        for page in pages:
            probe.fill(page, PAGE, 1)
            probe.give(pool, page)


def test_a_leak_is_reported_with_its_owner_and_the_pages_are_taken_back() -> None:
    manager = MemoryManager(10 * PAGE, PAGE)
    pool = manager.pool("join of v4-0", 5)
    probe.take(pool)
    probe.take(pool)
    assert manager.leak_report() == ["join of v4-0: 2 of 5 pages still out"]
    pool.close()
    pool.close()
    assert manager.leak_report() == ["join of v4-0: closed with 2 pages still out"]
    assert manager.pages_free == manager.pages_unreserved == 10
    assert probe.take(pool) == 0
    with pytest.raises(MemoryLeakError, match="join of v4-0: closed with 2 pages"):
        manager.close()
    manager.close()


def test_close_names_owners_that_still_hold_pages_and_shuts_their_pools() -> None:
    manager = MemoryManager(10 * PAGE, PAGE)
    pool, idle = manager.pool("a", 5), manager.pool("b", 5)
    page = probe.take(pool)
    with pytest.raises(MemoryLeakError, match="a: 1 of 5 pages"):
        manager.close()
    assert pool.closed and idle.closed and manager.closed
    if probe.pages_lie_in_slabs():
        probe.fill(page, PAGE, 1)  # still mapped: a late write must not take the process down
    assert probe.take(pool) == 0
    with pytest.raises(MemoryBudgetError, match="closed"):
        manager.pool("c", 1)


def test_a_leak_does_not_hide_the_error_that_caused_it() -> None:
    with pytest.raises(KeyError), MemoryManager(10 * PAGE, PAGE) as manager:
        probe.take(manager.pool("a", 5))
        raise KeyError("the cause")


def test_large_pages_count_in_pages_and_respect_the_limit() -> None:
    with MemoryManager(100 * PAGE, PAGE) as manager, manager.pool("a", 10) as pool:
        size = 5 * PAGE + 1
        memory = probe.take_large(pool, size)
        assert memory % 64 == 0
        assert (pool.pages_used, manager.pages_free) == (6, 94)
        probe.fill(memory, size, 7)
        assert probe.take_large(pool, size) == 0
        pages = [probe.take(pool) for _ in range(4)]
        assert all(pages) and probe.take(pool) == 0
        probe.give_large(pool, memory, size)
        assert pool.pages_used == 4
        for page in pages:
            probe.give(pool, page)


@pytest.mark.skipif(not probe.pages_lie_in_slabs(), reason="pages are allocations of their own in this build")
def test_free_pages_go_back_to_the_system_when_large_pages_need_the_room() -> None:
    with MemoryManager(64 << 20) as manager, manager.pool("a", 2048) as pool:
        pages = [probe.take(pool) for _ in range(2048)]
        for page in pages:
            probe.fill(page, 32768, 1)
            probe.give(pool, page)
        before = resident_bytes()
        memory = probe.take_large(pool, 32 << 20)
        probe.fill(memory, 32 << 20, 2)
        assert resident_bytes() < before + (8 << 20)
        again = [probe.take(pool) for _ in range(1024)]
        for page in again:
            probe.fill(page, 32768, 3)
        assert probe.count_other(memory, 32 << 20, 2) == 0
        probe.give_large(pool, memory, 32 << 20)
        for page in again:
            probe.give(pool, page)


@pytest.mark.skipif(not probe.pages_lie_in_slabs(), reason="pages are allocations of their own in this build")
def test_free_pages_go_back_when_they_are_not_to_be_kept_warm() -> None:
    with MemoryManager(64 << 20) as manager, manager.pool("kept", 100) as kept, manager.pool("sort", 1500) as pool:
        held = [probe.take(kept) for _ in range(100)]
        for page in held:
            probe.fill(page, 32768, 1)
        for round_number in range(2):
            taken = [probe.take(pool) for _ in range(1500)]
            for page in taken:
                probe.fill(page, 32768, 2)
            assert manager.pages_resident >= 1600
            before = resident_bytes()
            for page in taken:
                probe.give(pool, page)
            manager.give_back_free()
            assert manager.pages_resident == manager.pages_used == 100, round_number
            assert resident_bytes() < before - (40 << 20)
        assert all(probe.count_other(page, 32768, 1) == 0 for page in held)
        for page in held:
            probe.give(kept, page)
    manager.give_back_free()  # a closed one has nothing


@pytest.mark.skipif(not probe.pages_lie_in_slabs(), reason="large pages are of the heap in this build")
@pytest.mark.parametrize("size", [LARGE_MAPPED_BYTES, (1 << 20) + 5, 4 << 20, (5 << 20) - 64])
def test_large_pages_are_not_of_the_heap_and_go_back_whole(size: int) -> None:
    with MemoryManager(64 << 20) as manager, manager.pool("a", manager.pages_total) as pool:
        before_heap, before_mapped = heap_bytes(), _mapped_bytes()
        for _ in range(100):
            first, second = probe.take_large(pool, size), probe.take_large(pool, size)
            assert first % 64 == second % 64 == 0
            assert heap_bytes() < before_heap + size // 2
            for memory in (first, second):
                probe.fill(memory, size, 1)
                probe.give_large(pool, memory, size)
        assert _mapped_bytes() < before_mapped + size


def _mapped_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * 4096


def test_a_large_page_beyond_the_limit_counts_as_no_page_and_waits_for_nobody() -> None:
    with MemoryManager(10 * PAGE, PAGE) as manager, manager.pool("a", 3) as first, manager.pool("b", 3) as second:
        size = 100 * PAGE
        assert probe.take_large(first, size) == 0
        held = [probe.take_large(pool, size, True) for pool in (first, first, second)]  # one thread: it would hang
        assert all(held) and first.pages_used == second.pages_used == manager.pages_used == 0
        for pool, memory in zip((first, first, second), held, strict=True):
            probe.fill(memory, size, 1)
            probe.give_large(pool, memory, size)


def test_a_large_page_beyond_the_limit_that_leaks_is_reported_and_taken_back() -> None:
    manager = MemoryManager(10 * PAGE, PAGE)
    pool = manager.pool("a", 3)
    assert probe.take_large(pool, 50 * PAGE, True)
    pool.close()
    with pytest.raises(MemoryLeakError, match="a: closed with 1 pages"):
        manager.close()


def test_four_threads_share_a_manager_without_ever_sharing_a_page() -> None:
    with MemoryManager(200 * PAGE, PAGE) as manager:
        pools = [manager.pool(f"owner {index}", 50) for index in range(4)]
        strange: list[int] = []
        threads = [
            threading.Thread(target=lambda pool=pool: strange.append(probe.churn(pool, 3000, 50))) for pool in pools
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert strange == [0, 0, 0, 0]
        assert manager.leak_report() == []
        for pool in pools:
            pool.close()


@pytest.mark.parametrize("others", [0, 3])
def test_threads_that_take_the_whole_budget_at_a_time_get_what_they_reserved(others: int) -> None:
    # Slabs of 512 pages: who finds none left waits for those that another thread makes resident.
    for _ in range(20):
        with MemoryManager(1553 * PAGE, PAGE) as manager:
            pools = [
                manager.pool(f"owner {index}", count)
                for index, count in enumerate([1553 - 400 * others, *[400] * others])
            ]
            barrier = threading.Barrier(len(pools))
            taken: dict[PagePool, list[int]] = {}

            def take_all(
                pool: PagePool, barrier: threading.Barrier = barrier, taken: dict[PagePool, list[int]] = taken
            ) -> None:
                barrier.wait()
                taken[pool] = [probe.take(pool) for _ in range(pool.page_limit)]

            threads = [threading.Thread(target=take_all, args=[pool]) for pool in pools]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert [len(taken[pool]) for pool in pools] == [pool.page_limit for pool in pools]
            pages = {page for each in taken.values() for page in each}
            assert len(pages) == manager.pages_mapped == manager.pages_peak == 1553
            assert 0 not in pages
            for pool in pools:
                assert probe.take(pool) == 0
                assert pool.pages_used == pool.pages_peak == pool.page_limit
                for page in taken[pool]:
                    probe.give(pool, page)
                pool.close()


def test_release_gives_pages_back_one_by_one_and_refuses_strangers() -> None:
    with MemoryManager(10 * PAGE, PAGE) as manager:
        segments = manager.allocate("a", 4)
        manager.release("a", segments[:2])
        assert manager.pages_used == 2
        with pytest.raises(ValueError, match="not allocated for b"):
            manager.release("b", segments[2:])
        manager.release("a", segments[2:])
        assert (manager.pages_used, manager.pages_unreserved) == (0, 10)


@pytest.mark.parametrize(("budget", "page_size"), [(100, PAGE), (1 << 20, 5000), (1 << 20, 2048), (-1, PAGE)])
def test_impossible_budgets_and_page_sizes_are_refused(budget: int, page_size: int) -> None:
    with pytest.raises(ConfigurationError):
        MemoryManager(budget, page_size)


def test_a_pool_is_not_made_by_hand() -> None:
    with pytest.raises(TypeError, match=r"MemoryManager\.pool"):
        PagePool()
    with MemoryManager(10 * PAGE, PAGE) as manager, pytest.raises(ValueError, match="at least one"):
        manager.pool("a", 0)


class PoolMachine(RuleBasedStateMachine):
    """Owners take, give and close in any order; a dictionary is the oracle."""

    PAGES = 40

    def __init__(self) -> None:
        super().__init__()
        self.manager = MemoryManager(self.PAGES * PAGE, PAGE)
        self.pools: list[tuple[PagePool, list[int], list[tuple[int, int]]]] = []
        self.leaked = False

    @rule(pages=st.integers(1, 50))
    def open_pool(self, pages: int) -> None:
        reserved = sum(pool.page_limit for pool, _, _ in self.pools)
        if reserved + pages > self.PAGES:
            with pytest.raises(MemoryBudgetError):
                self.manager.pool("x", pages)
        else:
            self.pools.append((self.manager.pool("x", pages), [], []))

    @rule(choice=st.randoms(use_true_random=False), count=st.integers(1, 10))
    def take(self, choice: random.Random, count: int) -> None:
        if self.pools:
            pool, pages, large = choice.choice(self.pools)
            for _ in range(count):
                page = probe.take(pool)
                used = len(pages) + sum(-(-size // PAGE) for _, size in large)
                assert (page != 0) == (used < pool.page_limit)
                if page:
                    pages.append(page)
                    probe.fill(page, PAGE, 5)

    @rule(choice=st.randoms(use_true_random=False), size=st.integers(1, 5 * PAGE))
    def take_large(self, choice: random.Random, size: int) -> None:
        if self.pools:
            pool, _, large = choice.choice(self.pools)
            if memory := probe.take_large(pool, size):
                probe.fill(memory, size, 6)
                large.append((memory, size))

    @rule(choice=st.randoms(use_true_random=False))
    def give_some(self, choice: random.Random) -> None:
        for pool, pages, large in self.pools:
            while pages and choice.random() < 0.7:
                probe.give(pool, pages.pop(choice.randrange(len(pages))))
            while large and choice.random() < 0.7:
                probe.give_large(pool, *large.pop())

    @rule(choice=st.randoms(use_true_random=False))
    def close_pool(self, choice: random.Random) -> None:
        if self.pools:
            pool, pages, large = self.pools.pop(choice.randrange(len(self.pools)))
            self.leaked |= bool(pages or large)
            pool.close()

    @invariant()
    def counters_agree(self) -> None:
        everything = [page for _, pages, _ in self.pools for page in pages]
        assert len(set(everything)) == len(everything)
        used = 0
        for pool, pages, large in self.pools:
            mine = len(pages) + sum(-(-size // PAGE) for _, size in large)
            assert pool.pages_used == mine <= pool.pages_peak
            used += mine
        assert self.manager.pages_used == used
        assert self.manager.pages_free == self.PAGES - used
        assert self.manager.pages_unreserved == self.PAGES - sum(pool.page_limit for pool, _, _ in self.pools)

    def teardown(self) -> None:
        self.leaked |= any(pages or large for _, pages, large in self.pools)
        if self.leaked:
            with pytest.raises(MemoryLeakError):
                self.manager.close()
        else:
            self.manager.close()


TestPoolMachine = PoolMachine.TestCase
TestPoolMachine.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


def test_who_keeps_pages_is_asked_for_them_before_a_pool_is_refused() -> None:
    manager = MemoryManager(10 * 4096, 4096)
    asked: list[str] = []

    def keeper(name: str, pages: int) -> PagePool:
        pool = manager.pool(name, pages)

        def give_back() -> None:
            asked.append(name)
            pool.close()

        manager.on_shortage(pool, give_back)
        return pool

    keeper("old", 4)
    keeper("new", 4)
    gone = keeper("gone", 1)
    gone.close()
    with manager.pool("small", 1):
        assert asked == []
    with manager.pool("larger", 4):
        assert asked == ["old"]
    with pytest.raises(MemoryBudgetError, match="nobody"):
        manager.pool("too large", 11)
    assert asked == ["old", "new"]
    manager.close()


def test_who_cannot_give_pages_back_is_asked_again_by_the_next() -> None:
    manager = MemoryManager(10 * 4096, 4096)
    keeper = manager.pool("keeper", 8)
    disk_is_full = True

    def give_back() -> None:
        if disk_is_full:
            raise DiskFullError("no space")
        keeper.close()

    manager.on_shortage(keeper, give_back)
    with pytest.raises(DiskFullError):
        manager.pool("one", 4)
    disk_is_full = False
    with manager.pool("another", 4):
        pass
    manager.close()


def test_who_begins_to_keep_pages_while_another_is_asked_is_asked_as_well() -> None:
    """Two slots: while one's task has runs written, the other's ends and keeps pages, and the next one takes its."""
    manager = MemoryManager(10 * 4096, 4096)
    keeper, ending = manager.pool("keeper", 5), manager.pool("task that ends", 5)
    begun: list[PagePool] = []

    def give_back() -> None:
        keeper.close()
        manager.on_shortage(ending, ending.close)
        begun.append(manager.pool("task after it", 5))

    manager.on_shortage(keeper, give_back)
    with manager.pool("task that asks", 5):
        assert ending.closed
    begun[0].close()
    manager.close()


def test_a_pool_is_not_refused_for_pages_that_are_given_back_at_that_moment() -> None:
    """Keepers that close while others ask: what is asked for fits whenever every keeper has gone."""
    manager = MemoryManager(10 * 4096, 4096)
    for _ in range(300):
        keeper = manager.pool("keeper", 6)
        is_free = threading.Lock()

        def give_back(keeper: PagePool = keeper, is_free: threading.Lock = is_free) -> None:
            with is_free:
                keeper.close()

        manager.on_shortage(keeper, give_back)
        closer = threading.Thread(target=give_back)
        closer.start()
        manager.pool("next", 8).close()
        closer.join()
    manager.close()


def test_a_pool_that_shrinks_hands_back_what_it_does_not_use() -> None:
    manager = MemoryManager(10 * 4096, 4096)
    pool = manager.pool("first", 10)
    with pytest.raises(MemoryBudgetError):
        manager.pool("second", 1)
    pool.shrink()
    assert pool.page_limit == 0
    manager.pool("second", 10).close()
    pool.close()
    pool.shrink()
    manager.close()
