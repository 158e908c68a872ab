"""ChainMeters: rows, bytes and time of each operator of a task.

    driver ─ Meter ─► operator ─ Meter ─► operator ─ Meter ─► TaskOutput
    feed:  source ─ Meter ─► operator ─ Meter ─► (taken by the driver)

A Meter (``meter.pyx``) stands in front of an operator and counts batch by batch: rows, bytes, and how long ``process``
took, which has the time of everything behind it in it. An operator's own time is what it took, with its ``finish``,
less what the next one took; the first one's is that of the driver, less waiting for input and what a feed took. Sending
rows to other tasks is time of the task, and of no operator (``output_us``).

Two looks at the clock a batch: nothing beside what a batch costs. Numbers that are read while the task runs are those
of the batches that are through.

Thread: counts in the task's, may be read from any. Source: Flink's busy time, DuckDB's EXPLAIN ANALYZE.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from engine.graph.deployment import OperatorCounters
from engine.operators.meter import Meter, Stopwatch

if TYPE_CHECKING:
    from engine.graph.operator_descriptor import OperatorDescriptor
    from engine.operators.operator import Output
    from engine.operators.spill_accounts import SpillAccounts


class ChainMeters:
    """The meters of one chain.

    Args:
        chain: its operators.
        is_led: the first of them is a driver, with no meter in front of it.
    """

    def __init__(self, chain: Sequence[OperatorDescriptor], is_led: bool) -> None:
        self._chain = chain
        self._is_led = is_led
        #: meters before each operator but the first, then before the end
        self._meters: list[Meter] = []
        self._finishing = [Stopwatch() for _ in chain]
        #: time of the driver, or of reading a feed
        self.driving = Stopwatch()

    def before(self, output: Output) -> Meter:
        """Return a meter in front of the end of the chain, or of the operator before those that have one."""
        meter = Meter(output)
        self._meters.insert(0, meter)
        return meter

    def finish(self, index: int, call: Callable[[], None]) -> None:
        """Finish one of the chained operators, of which a leading one is none."""
        self._finishing[index + self._is_led].run(call)

    @property
    def output_ns(self) -> int:
        """Time that the end of the chain took for what it was sent."""
        return self._meters[-1].busy_ns if self._meters else 0

    def counters(self, accounts: SpillAccounts, waited_ns: int = 0) -> tuple[OperatorCounters, ...]:
        """Return the counters of all operators, in order, without exchanges with other tasks.

        waited_ns: the driver's time that was none of the first operator's.
        """
        meters: list[Meter | None] = [*([None] if self._is_led else []), *self._meters]
        if len(meters) <= len(self._chain):
            return ()  # it is being opened
        found, taken_ns = [], 0 if meters[0] is None else meters[0].busy_ns
        for index, step in enumerate(self._chain):
            meter, behind, account = meters[index], meters[index + 1], accounts.find(step)
            assert behind is not None, "only the first one leads"
            before_ns, taken_ns = taken_ns, behind.busy_ns
            own_ns = self._finishing[index].total_ns - taken_ns
            own_ns += self.driving.total_ns - waited_ns if index == 0 else before_ns
            found.append(
                OperatorCounters(
                    step.name,
                    0 if meter is None else meter.bytes,
                    0 if account is None else account.spilled_bytes,
                    node_id=step.node_id,
                    rows_in=0 if meter is None else meter.rows,
                    rows_out=behind.rows,
                    bytes_out=behind.bytes,
                    time_us=max(0, own_ns) // 1000,
                    function_us=0 if account is None else account.function_us,
                    managed_bytes=0 if account is None else account.managed_bytes,
                    managed_bytes_peak=0 if account is None else account.managed_bytes_peak,
                    spilled_raw_bytes=0 if account is None else account.raw_bytes,
                    opening_us=0 if account is None else account.opening_us,
                )
            )
        return tuple(found)


def with_edges(
    operators: tuple[OperatorCounters, ...], taken: tuple[int, int], given: tuple[int, int]
) -> tuple[OperatorCounters, ...]:
    """Return the counters of a chain with the rows and bytes that it took from other tasks and that left it."""
    if not operators:
        return ()
    first = msgspec.structs.replace(operators[0], rows_in=taken[0], bytes_in=taken[1])
    listed = [first, *operators[1:]]
    listed[-1] = msgspec.structs.replace(listed[-1], rows_out=given[0], bytes_out=given[1])
    return tuple(listed)
