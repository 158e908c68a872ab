"""OptimizerSettings: what the planner is told about the place where the job will run.

Held by: tests/optimizer/test_explain.py
"""

from __future__ import annotations

import msgspec

from engine.errors import ConfigurationError
from engine.graph.exchange_mode import ExecutionMode
from engine.memory.page_budget import OPERATOR_PAGES_MIN, PageBudget


class OptimizerSettings(msgspec.Struct, frozen=True):
    """Defaults and sizes that decisions depend on.

    parallelism: default for sources, joins and grouped aggregates, >= 1.
    limited_from: the parallelism that was set, where the processors of the process made it less (``processors``).
    page_budget: pages of a slot; where it is one process, of all slots that a plan may need.
    slots_min: slots that this process has however few a plan needs.
    process_parts: what the memory of one process is divided into, name and bytes; for explain alone, () if not known.
    has_small_parts: whether parts of a plan that read little have one subtask (``small_parts``).
    small_part_bytes: key ``debug.small-part-size``; None: as much as one subtask reads in no more time than several.
    small_input_bytes: limit of parts with one subtask that feed larger ones, where a parallelism is set; 0: none.
    is_one_process: whether all subtasks run in one process, and take turns wherever they run Python.
    legacy_estimates: configuration key ``optimizer.legacy-estimates``.
    is_adaptive, adaptive_bytes_per_subtask (0: never other than planned), skew_factor (0: nothing is split) and
    skew_bytes: keys ``execution.batch.adaptive.*``.
    runtime_filters: key ``table.optimizer.runtime-filter.enabled``.
    """

    parallelism: int = 1
    limited_from: int | None = None
    execution_mode: ExecutionMode = ExecutionMode.PIPELINED
    has_small_parts: bool = False
    small_part_bytes: int | None = None
    small_input_bytes: int = 0
    is_one_process: bool = False
    legacy_estimates: bool = False
    page_budget: PageBudget = PageBudget(128 << 20)
    slots_min: int = 1
    is_adaptive: bool = True
    adaptive_bytes_per_subtask: int = 16 << 20
    skew_factor: float = 2.0
    skew_bytes: int = 1 << 20
    process_parts: tuple[tuple[str, int], ...] = ()
    runtime_filters: bool = True

    @property
    def split_factor(self) -> float:
        """``skew_factor``, and 0 where plans are to be those of Flink 1.x, which splits no keys."""
        return 0.0 if self.legacy_estimates else self.skew_factor

    def with_slots(self, count: int) -> OptimizerSettings:
        """Return the settings of a plan with at most so many subtasks; one process has as many slots."""
        if not self.is_one_process:
            return self
        return msgspec.structs.replace(self, page_budget=self.page_budget.with_slots(max(count, self.slots_min)))

    def validate(self) -> None:
        """Raise ConfigurationError when no plan could run with these settings."""
        if self.parallelism < 1:
            raise ConfigurationError(f"parallelism.default is {self.parallelism}; it must be at least 1")
        budget = self.with_slots(self.parallelism).page_budget
        if budget.slot_pages < OPERATOR_PAGES_MIN:
            raise ConfigurationError(
                f"a slot has {budget.slot_bytes} bytes of managed memory, which is {budget.slot_pages} "
                f"pages of {budget.page_bytes} bytes; an operator needs {OPERATOR_PAGES_MIN}: raise "
                "taskmanager.memory.managed.size or lower taskmanager.numberOfTaskSlots"
            )
