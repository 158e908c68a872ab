"""Memory: what a process may hold, which part of it each operator has reserved, and where the bytes are.

An operator gets a ``PagePool``, a reservation of its process's ``MemoryManager``, and works inside it: when ``take``
gives no page it spills. The memory of records comes from the operating system in no other way.

    segment.pyx         MemorySegment: bytes with an address, a size and checked bounds
    status.pxd          codes that kernels return, ASSERT
    page_slabs.pyx      native part of a manager: slabs mapped once and made resident beside the mutex, in huge pages
                        where these are cheap; free list, owner of every page, large pages
    page_pool.pyx       PagePool: take and give for kernels
    manager.pyx         MemoryManager: owners, reservation, leak report
    page_size.py        how large a page is for a budget
    page_budget.py      pages of a process, of a slot, and of each operator in it
    budget.pyx          what a process may hold of each kind; a Reservation is a part of it; the one place to wait
    blocks.pyx          blocks of the columns of batches, reused; taken and given without the GIL
    heap.py             settings of the heap: collector, holes, allocators, in this process
    kept_results.py     results of questions that come again, by their keys
    value_stores.py     where values lie that are not in their rows, by number
    control_group.py    what the kernel allows this process
    worker_budget.py    what Python workers may hold: their budget, of which pages have a part while no function runs
    process_memory.py   from the process size to the budgets of pages, network, Arrow and Python workers
"""
