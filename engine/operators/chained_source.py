"""ChainedSource: an input of a task that is read by the task itself, not by another one.

    open(context) ─► filter_by(filters) ─► for batch in batches(): ... ─► close()

    source ─► projections, filters ─► batches        read when a batch is asked for: nothing before the first one

To its task it is an input as any: it counts what comes through. No operator runs on where its rows are not needed any
more, so one with enough rows stops to ask.

Source: Flink's ChainedSource of a multiple-input task; which sources are chained so: ``graph.chained_sources``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.closing import close_all
from engine.operators.drivers import SourceDriver
from engine.operators.operator_meters import ChainMeters
from engine.operators.registry import make_operator

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from engine.graph.operator_descriptor import OperatorDescriptor
    from engine.graph.runtime_filter import RuntimeFilter
    from engine.operators.operator import Output, TaskContext
    from engine.operators.runtime_filters import RuntimeFilters
    from engine.operators.task_inputs import TaskInput
    from engine.records.row_router import RowRouter


class _Made:
    """The end of the row-wise operators: what they have made of a batch."""

    takes_pages = False
    router = None
    compact_columns: frozenset[str] = frozenset()
    is_satisfied = False

    def __init__(self, takes_opened: bool) -> None:
        self.takes_opened = takes_opened
        self.batches: list[pa.RecordBatch] = []

    def ahead(self) -> None:
        """Return None: it does nothing."""

    def say_whole_groups(self) -> None:
        """Do nothing: rows of a source are no groups."""

    def process(self, batch: pa.RecordBatch) -> None:
        """Keep a batch until it is taken."""
        self.batches.append(batch)


class ChainedSource:
    """A source and row-wise operators behind it; arguments are those of ``SourceDriver`` and of ``Output``."""

    #: False: a consumer with enough rows need not read the rest
    is_drained = False
    #: True if every subtask of the task gets all rows
    is_broadcast = False

    def __init__(
        self,
        feed: Sequence[OperatorDescriptor],
        *,
        is_whole: bool = False,
        filters: Sequence[TaskInput] = (),
        takes_opened: bool = False,
    ) -> None:
        self._source = SourceDriver(feed[0], is_whole=is_whole, filters=filters)
        self._operators = [make_operator(step) for step in feed[1:]]
        self.meters = ChainMeters(feed, is_led=True)
        self._made = _Made(takes_opened)
        self._counted = self.meters.before(self._made)

    @property
    def rows_in(self) -> int:
        """Rows read so far, those of a batch that is about to be taken included."""
        return self._counted.rows

    @property
    def bytes_in(self) -> int:
        """Bytes of them."""
        return self._counted.bytes

    def open(self, context: TaskContext) -> None:
        """Make all of it ready."""
        output: Output = self._counted
        for operator in reversed(self._operators):
            operator.open(context, output)
            output = self.meters.before(operator)
        self._source.open(context, output)

    def filter_by(self, filters: RuntimeFilters, wanted: Sequence[RuntimeFilter]) -> None:
        """Leave out rows that the filters of the join say have no match; to be called before the first batch."""
        self._source.filter_by(filters, wanted)

    def elements_together(self) -> Iterator[pa.RecordBatch]:
        """Yield everything, as the rows of a build side come."""
        return self.batches()

    def batches(self, _router: RowRouter | None = None) -> Iterator[pa.RecordBatch]:
        """Yield everything; a ``router`` has nothing to do, since no rows come as pages."""
        made = self._made.batches
        for _ in self.meters.driving.each(self._source.steps()):
            while made:
                yield made.pop(0)  # a wide one is not kept while the next is read

    def close(self) -> None:
        """Close the source and what is behind it."""
        close_all([self._source.close, *(operator.close for operator in self._operators)])
