"""Task waits: the current wait of a task, from which a job without progress is recognized.

    wait_of(descriptor, inputs, partitions, operators, waits_for) -> TaskWait, or None: it is at work

At work is also a task that waits for more input while a worker of its runs the user's function on what was there
before. Asked from any thread, while the task goes on: what it says may be over already.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.exchange.result_partition import ResultPartition
from engine.graph.deployment import TaskDeploymentDescriptor
from engine.graph.task_wait import NAMED_MAX, TaskWait, WaitKind
from engine.operators.operator import ChainedOperator
from engine.operators.task_inputs import TaskInput


def wait_of(
    descriptor: TaskDeploymentDescriptor,
    inputs: Sequence[TaskInput],
    partitions: Sequence[ResultPartition],
    operators: Sequence[ChainedOperator],
    waits_for: str,
) -> TaskWait | None:
    """Return the wait of a task, None while it works; ``waits_for``: another task's work that comes first, or ""."""
    if any(operator.is_at_work for operator in operators):
        return None
    first, last = descriptor.chain[0].name, descriptor.chain[-1].name
    if waits_for:
        return TaskWait(WaitKind.TASK, first, text=waits_for)
    for partition in partitions:
        if partition.is_waiting:
            full = partition.full_subpartitions()
            return TaskWait(
                WaitKind.ROOM, last, (partition.id,), tuple(full[:NAMED_MAX]), max(0, len(full) - NAMED_MAX)
            )
    for task_input in inputs:
        if task_input.is_waiting:
            unread = task_input.unread
            return TaskWait(
                WaitKind.INPUT,
                first,
                tuple(channel.partition for channel in unread[:NAMED_MAX]),
                tuple(channel.subpartition_index for channel in unread[:NAMED_MAX]),
                max(0, len(unread) - NAMED_MAX),
            )
    return None
