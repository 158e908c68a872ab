"""The sorted runs of producers in other processes, brought here for a merge.

    channels to other processes, one after the other ─► row pages in order ─► one run on disk for each producer

What comes is in order, so it is only written: bounded memory however large the range is, and the merge reads it beside
the runs of this process as if it had been sorted here.

Held by: tests/sort/test_run_transfer.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.exchange.buffer_pool import Buffer
from engine.exchange.elements import OversizedRow
from engine.operators.task_inputs import is_remote

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.graph.sort_key import SortKey
    from engine.operators.operator import TaskContext
    from engine.operators.task_inputs import TaskInput
    from engine.sort.sorted_runs import SortedRuns

#: bytes of a block of such a run: two for each producer are held by the merge
BLOCK_BYTES: Final = 64 << 10


def receive_runs(context: TaskContext, keys: Sequence[SortKey], task_input: TaskInput) -> SortedRuns:
    """Read everything of an input that is read in order; returns a run for each channel, which the caller releases."""
    from engine.sort.run_transfer import RunReceiver

    space = context.spill_space(context.descriptor.chain[0])
    receiver = RunReceiver(task_input.schema, tuple(keys), space, BLOCK_BYTES)
    channels = context.descriptor.gates[0].channels
    producers = [number for number, channel in enumerate(channels) if is_remote(channel)]
    channel_index = 0
    for element in task_input.elements():
        if task_input.channel_index != channel_index:
            receiver.end_run(producers[channel_index])
            channel_index = task_input.channel_index
        if isinstance(element, Buffer):
            try:
                receiver.add_page(element.segment, element.size)
            finally:
                element.recycle()
        else:
            assert isinstance(element, OversizedRow), "sorted results travel as rows"
            receiver.add_row(element.take())
    receiver.end_run(producers[channel_index])
    return receiver.take_runs()
