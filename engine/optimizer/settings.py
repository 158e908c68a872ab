"""OptimizerSettings: what the planner is told about the place where the job will run.

Held by: tests/optimizer/test_explain.py
"""

from __future__ import annotations

import msgspec

from engine.errors import ConfigurationError
from engine.graph.exchange_mode import ExecutionMode
from engine.graph.operator_descriptor import DRIVER_PAGES_MIN


class OptimizerSettings(msgspec.Struct, frozen=True):
    """Defaults and sizes that decisions depend on.

    parallelism: default for sources, joins and grouped aggregates, >= 1.
    managed_bytes_per_slot: managed memory of one slot; segment_size_bytes: size of its pages.
    process_shares: what the memory of one process is divided into, name and bytes; for explain alone, () if not known.
    has_small_parts: whether parts of a plan that read little have one subtask (``small_parts``).
    small_part_bytes: key ``debug.small-part-size``; None: as much as one subtask reads in no more time than several.
    is_one_process: whether all subtasks run in one process, and take turns wherever they run Python.
    legacy_estimates: configuration key ``optimizer.legacy-estimates``.
    is_adaptive, adaptive_bytes_per_subtask (0: never other than planned), skew_factor (0: nothing is split) and
    skew_bytes: keys ``execution.batch.adaptive.*``.
    runtime_filters: key ``table.optimizer.runtime-filter.enabled``.
    """

    parallelism: int = 1
    execution_mode: ExecutionMode = ExecutionMode.PIPELINED
    has_small_parts: bool = False
    small_part_bytes: int | None = None
    is_one_process: bool = False
    legacy_estimates: bool = False
    managed_bytes_per_slot: int = 128 << 20
    segment_size_bytes: int = 32 << 10
    is_adaptive: bool = True
    adaptive_bytes_per_subtask: int = 16 << 20
    skew_factor: float = 2.0
    skew_bytes: int = 1 << 20
    process_shares: tuple[tuple[str, int], ...] = ()
    runtime_filters: bool = True

    @property
    def pages_per_slot(self) -> int:
        """Pages of managed memory in one slot."""
        return self.managed_bytes_per_slot // self.segment_size_bytes

    def with_slots(self, count: int) -> OptimizerSettings:
        """Return what holds for a plan of at most so many subtasks: in one process, these share the memory of all."""
        if not self.is_one_process or count >= self.parallelism:
            return self
        return msgspec.structs.replace(
            self, managed_bytes_per_slot=self.managed_bytes_per_slot * self.parallelism // count
        )

    def validate(self) -> None:
        """Raise ConfigurationError when no plan could run with these settings."""
        if self.parallelism < 1:
            raise ConfigurationError(f"parallelism.default is {self.parallelism}; it must be at least 1")
        if self.pages_per_slot < DRIVER_PAGES_MIN:
            raise ConfigurationError(
                f"a slot has {self.managed_bytes_per_slot} bytes of managed memory, which is {self.pages_per_slot} "
                f"pages of {self.segment_size_bytes} bytes; an operator needs {DRIVER_PAGES_MIN}: raise "
                "taskmanager.memory.managed.size or lower taskmanager.numberOfTaskSlots"
            )
