"""What Python workers may hold, and what pages have of it while no function runs."""

from contextlib import closing

from engine.memory.manager import MemoryManager
from engine.memory.worker_share import WorkerShare

PAGE = 4096
MANAGED, LENT = 64 * PAGE, 32 * PAGE


def test_workers_have_what_pages_have_not_reserved_of_their_share() -> None:
    with MemoryManager(MANAGED + LENT, PAGE) as manager:
        share = WorkerShare(LENT, LENT, manager)
        with closing(manager.pool("sort of a job with functions", 64)):
            assert share.size == LENT
            with closing(manager.pool("sort of a job without", 24)):
                assert share.size == 8 * PAGE
            assert share.size == LENT
        with closing(manager.pool("sort of a job without", 96)):
            assert share.size == 0


def test_free_pages_are_not_kept_warm_where_functions_run() -> None:
    with MemoryManager(MANAGED + LENT, PAGE) as manager:
        share = WorkerShare(LENT, LENT, manager)
        manager.release("sort", manager.allocate("sort", 96))
        assert manager.pages_resident == 96
        share.take("a")
        share.take("b")
        assert manager.pages_resident == 64
        share.give_back("a")
        manager.release("sort", manager.allocate("sort", 96))
        share.give_back("b")
        manager.release("sort", manager.allocate("sort", 96))
        assert manager.pages_resident == 96


def test_what_owners_keep_for_later_goes_before_workers_lose_of_their_share() -> None:
    with MemoryManager(MANAGED + LENT, PAGE) as manager:
        share = WorkerShare(LENT, LENT, manager)
        kept = manager.pool("sorted run", 60)
        manager.on_shortage(kept, kept.close)
        manager.pool("sort", 20).close()
        assert kept.page_limit == 60
        share.take("a")
        with closing(manager.pool("sort", 20)):
            assert share.size == LENT
        with closing(manager.pool("sort", 96)):
            assert share.size == 0, "slots are promised what they offer"
        share.give_back("a")


def test_a_share_that_is_not_lent_is_what_it_is() -> None:
    share = WorkerShare(LENT)
    share.take("a")
    share.give_back("a")
    assert share.size == LENT
