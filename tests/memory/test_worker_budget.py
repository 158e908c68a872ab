"""What Python workers may hold, and what pages have of it while no function runs."""

from contextlib import closing

from engine.memory.manager import MemoryManager
from engine.memory.worker_budget import WorkerBudget

PAGE = 4096
MANAGED, SPARE = 64 * PAGE, 32 * PAGE


def test_workers_have_what_pages_have_not_reserved_of_their_budget() -> None:
    with MemoryManager(MANAGED + SPARE, PAGE) as manager:
        budget = WorkerBudget(SPARE, SPARE, manager)
        with closing(manager.pool("sort of a job with functions", 64)):
            assert budget.size == SPARE
            with closing(manager.pool("sort of a job without", 24)):
                assert budget.size == 8 * PAGE
            assert budget.size == SPARE
        with closing(manager.pool("sort of a job without", 96)):
            assert budget.size == 0


def test_free_pages_are_not_kept_warm_where_functions_run() -> None:
    with MemoryManager(MANAGED + SPARE, PAGE) as manager:
        budget = WorkerBudget(SPARE, SPARE, manager)
        manager.release("sort", manager.allocate("sort", 96))
        assert manager.pages_resident == 96
        budget.take("a")
        budget.take("b")
        assert manager.pages_resident == 64
        budget.give_back("a")
        manager.release("sort", manager.allocate("sort", 96))
        budget.give_back("b")
        manager.release("sort", manager.allocate("sort", 96))
        assert manager.pages_resident == 96


def test_what_owners_keep_for_later_goes_before_workers_lose_of_their_budget() -> None:
    with MemoryManager(MANAGED + SPARE, PAGE) as manager:
        budget = WorkerBudget(SPARE, SPARE, manager)
        kept = manager.pool("sorted run", 60)
        manager.on_shortage(kept, kept.close)
        manager.pool("sort", 20).close()
        assert kept.page_limit == 60
        budget.take("a")
        with closing(manager.pool("sort", 20)):
            assert budget.size == SPARE
        with closing(manager.pool("sort", 96)):
            assert budget.size == 0, "slots are promised what they offer"
        budget.give_back("a")


def test_a_budget_that_pages_have_no_part_of_is_what_it_is() -> None:
    budget = WorkerBudget(SPARE)
    budget.take("a")
    budget.give_back("a")
    assert budget.size == SPARE
