"""HelperThreads: threads that work beside a task's own on one thing that it waits for.

    helpers = HelperThreads(context, count)         count: with the task's own thread
    helpers.run(work)                               work() once in each thread; all have ended then

    task      ── work() ───────┐
    helper    ─── work() ──────┴─► join ──► the first error

``work`` takes its next piece of what is to be done from what all of its calls share, until there is none, and ends
early where it is told to by another call. A helper's processor time counts for the task.

Held by: tests/operators/test_helper_threads.py
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from engine.insight.processor_time import ProcessorTime

if TYPE_CHECKING:
    from engine.operators.operator import TaskContext


class HelperThreads:
    """Args: count: threads, the task's own included. Thread: the task's."""

    def __init__(self, context: TaskContext, count: int) -> None:
        self.count = count
        self._context = context
        self._processors = [ProcessorTime() for _ in range(count - 1)]
        context.helpers.extend(self._processors)

    def run(self, work: Callable[[], None]) -> None:
        """Call work in all threads, and wait until they have ended. Raises the first error of theirs."""
        errors: list[BaseException] = []

        def guarded() -> None:
            try:
                work()
            except BaseException as error:
                errors.append(error)

        def beside(processor: ProcessorTime) -> None:
            with processor.of_this_thread():
                guarded()

        name = f"drey-beside-{self._context.task_name}"
        new_thread = self._context.services.new_thread
        threads = [new_thread(lambda one=each: beside(one), name) for each in self._processors]  # type: ignore[misc]
        begun = []
        try:
            for thread in threads:
                thread.start()
                begun.append(thread)
            guarded()
        finally:
            for thread in begun:
                thread.join()
        if errors:
            raise errors[0]
