"""ChainedOperator: one step of a chain; TaskContext: what a step is told about its task.

    open(context, output) ─► process(batch)* ─► finish() ─► close()

``process`` may call ``output.process`` any number of times. ``finish`` is called once, after the last batch, and
emits what is left; the chain then finishes the next operator. ``close`` runs in every case, also after a failure,
and gives back what the operator holds; it is idempotent. ``is_satisfied`` tells the head that nothing more is needed
(a limit has its rows): a source stops reading.

Held by: tests/operators/test_batch_task.py
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from engine.closing import close_all
from engine.config.debug_options import FORCE_SPILL
from engine.config.loader import Configuration
from engine.graph.deployment import StagedFile, TaskDeploymentDescriptor
from engine.graph.operator_descriptor import OperatorDescriptor
from engine.insight.processor_time import ProcessorTime
from engine.iomanager.spill_identity import SpillIdentity
from engine.iomanager.value_store import CountedValues
from engine.memory.page_budget import OPERATOR_PAGES_MIN
from engine.operators.arrow_peak import ArrowPeak
from engine.operators.chain_link import Cancellable, ChainLink
from engine.operators.spill_accounts import FurtherSpill, SpillAccounts
from engine.operators.task_services import TaskServices
from engine.storage.store_counters import StoreTraffic

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from engine.functions.function_session import FunctionSession
    from engine.iomanager.spill_space import SpillSpace
    from engine.memory.page_pool import PagePool
    from engine.memory.segment import MemorySegment
    from engine.operators.work_ahead import Ahead
    from engine.partitions.partition_router import PartitionRouter

_PAGES_PEAK: Final = attrgetter("pages_peak")
_PEAK_BYTES: Final = attrgetter("peak_bytes")
_SPILLED_BYTES: Final = attrgetter("spilled_bytes")


class Output(Protocol):
    """The target of an operator's batches."""

    @property
    def takes_pages(self) -> bool:
        """Whether it is a RowsOutput: pages of rows need not become batches for it."""
        ...

    @property
    def router(self) -> PartitionRouter | None:
        """The ``PartitionRouter`` that takes rows of pages before they become batches; None: there is none."""
        ...

    @property
    def takes_opened(self) -> bool:
        """Whether batches may come opened (``records.opened_batch``): none is passed to a function of Arrow's."""
        ...

    @property
    def compact_columns(self) -> frozenset[str]:
        """Columns that may come smaller than plain.

        Texts as codes: Arrow's dictionaries with int32 indices, all of which are in there. Decimals in 64 bits
        (``narrow_decimals``).
        """
        ...

    @property
    def is_satisfied(self) -> bool:
        """Whether nothing more is needed."""
        ...

    def ahead(self) -> Ahead | None:
        """Return a function that other threads may call with a batch that is about to come; None: there is none."""
        ...

    def say_whole_groups(self) -> None:
        """Say before the first batch that rows are whole groups.

        They come from one first phase of an aggregate, which gives each of its groups out once, and at most one row
        comes of each (``optimizer.whole_groups``).
        """
        ...

    def process(self, batch: pa.RecordBatch) -> None:
        """Take one batch (never empty)."""
        ...


class RowsOutput(Output, Protocol):
    """One that works on rows."""

    @property
    def rows_in(self) -> int:
        """Rows taken so far."""
        ...

    def process_page(self, segment: MemorySegment, size_bytes: int) -> None:
        """Take a page of rows."""
        ...

    def process_rows(self, rows: bytearray) -> None:
        """Take rows that are larger than a page."""
        ...


class SourceCounts(NamedTuple):
    """Counts of a source that a task reads."""

    node_id: int
    bad_rows: int
    #: notes as in ``TaskCounters``
    notes: dict[str, str]
    #: row groups left out by statistics, and rows left out for joins or a top-n
    pruned_groups: int
    filtered_rows: int


class TaskContext(Cancellable):
    """The context that operators of one attempt share: descriptor, services, counters, spaces, cancellation."""

    def __init__(
        self, descriptor: TaskDeploymentDescriptor, services: TaskServices, configuration: Configuration
    ) -> None:
        self.descriptor = descriptor
        self.services = services
        self.configuration = configuration
        self.force_spill: bool = configuration.get(FORCE_SPILL)
        self.staged_files: list[StagedFile] = []
        #: whole bytes spilled and most pages held, of operators already closed
        self.spilled_bytes = 0
        self.pages_peak = 0
        #: counts of the sources that the task reads, by node
        self.sources: dict[int, Callable[[], SourceCounts]] = {}
        #: times of other threads that work for the task
        self.helpers: list[ProcessorTime] = []
        #: time that the source has waited for filters of joins
        self.filter_wait_ns = 0
        #: number of the run that rows of the source are in, where they come in runs (``SourceOperator.in_runs``)
        self.run = 0
        self.arrow_peak = ArrowPeak()
        #: most that its Python workers held together
        self.worker_bytes_peak = 0
        #: requests to object stores
        self.store_traffic = StoreTraffic()
        #: counters of rich functions of this attempt
        self.function_counters: dict[str, int] = {}
        #: work of another task of the process that comes first, for people; "": none
        self.waits_for = ""
        self._pools: list[PagePool] = []
        self._spaces: list[SpillSpace] = []
        self._values: list[CountedValues] = []
        self._further: list[FurtherSpill] = []
        self._functions: list[FunctionSession] = []
        #: spill accounts by operator
        self.accounts = SpillAccounts()
        #: bytes spilled to spaces that other owners close
        self._handed_over_bytes = 0

    @property
    def task_name(self) -> str:
        """Name for people: ``join (1/4)``."""
        return f"{self.descriptor.vertex_name} ({self.descriptor.subtask_index + 1}/{self.descriptor.parallelism})"

    def page_pool(self, operator: OperatorDescriptor, pages_max: int | None = None) -> PagePool:
        """Return the pool of an operator; ``pages_max``: the pages it can use, OPERATOR_PAGES_MIN in any case."""
        pages = self._pages_of(operator)
        if pages_max is not None:
            pages = max(OPERATOR_PAGES_MIN, min(pages, pages_max))
        return self._pool(operator, pages)

    def half_page_pool(self, operator: OperatorDescriptor) -> PagePool:
        """Return half of the operator's pages, its minimum at least: the others stand for what it holds elsewhere."""
        return self.page_pool(operator, self._pages_of(operator) // 2)

    def two_page_pools(
        self, operator: OperatorDescriptor, first_share: float, outside_part: int
    ) -> tuple[PagePool, PagePool, int]:
        """Return the operator's pages as two pools, each at least two, and the bytes of those that are left out.

        first_share: of the first pool, 0..1; outside_part: one page of so many, and at least one, is left for what the
        operator holds outside of pages.
        """
        pages = self._pages_of(operator)
        outside = max(1, pages // outside_part)
        first = max(2, min(pages - outside - 2, int((pages - outside) * first_share)))
        second = pages - outside - first
        pools = self._pool(operator, first), self._pool(operator, second)
        return *pools, outside * pools[0].page_size

    def _pages_of(self, operator: OperatorDescriptor) -> int:
        chain = zip(self.descriptor.chain, self.descriptor.pages, strict=True)
        return next(pages for step, pages in chain if step is operator)

    def _pool(self, operator: OperatorDescriptor, pages: int) -> PagePool:
        pool = self.services.memory_manager.pool(f"{operator.name} of {self.task_name}", pages)
        self._pools.append(pool)
        self.accounts.of(operator).add_pool(pool)
        return pool

    def spill_space(self, operator: OperatorDescriptor | None = None) -> SpillSpace:
        """Return a new space for the spill files of one operator, whose account it goes to."""
        attempt = self.descriptor.attempt
        identity = SpillIdentity(
            self.descriptor.job_id.value, attempt.vertex.index, attempt.subtask_index, attempt.attempt_number
        )
        space = self.services.io_manager.space(identity)
        self._spaces.append(space)
        if operator is not None:
            self.accounts.of(operator).add(space)
        self.check_cancelled()
        return space

    def value_owner(self, operator: OperatorDescriptor | None = None) -> CountedValues:
        """Return the owner of wide values that outlive the task: the job's in this process.

        What it takes is counted here, and for the operator, if it is one's.
        """
        values = CountedValues(self.services.io_manager.job_space(self.descriptor.job_id.value))
        self._values.append(values)
        if operator is not None:
            self.accounts.of(operator).add(values)
        return values

    @property
    def shares_values(self) -> bool:
        """Whether rows that leave the task hold references: all of their readers can follow these."""
        return self.services.data_plane is None

    def hand_over(self, pool: PagePool, space: SpillSpace) -> None:
        """Let memory and files outlive the attempt: their new owner closes them."""
        self.count_resources()
        self._handed_over_bytes += space.spilled_bytes
        self.accounts.hand_over(pool, space)
        self._pools.remove(pool)
        self._spaces.remove(space)

    def take_over(self, further: FurtherSpill, operator: OperatorDescriptor) -> None:
        """Count what is written from now on to a space that another attempt counts no further."""
        self._further.append(further)
        self.accounts.of(operator).add(further)
        self.check_cancelled()

    def cancel(self) -> None:
        """Have the attempt's loops and its spilling end with TaskCancelledError. Thread: any."""
        self.is_cancelled = True
        for space in tuple(self._spaces):
            space.cancel()
        for further in tuple(self._further):
            further.cancel()

    def add_function_counters(self, counters: dict[str, int]) -> None:
        """Add the counters of a rich function."""
        # A new dict: others read the old one for progress.
        names = {*self.function_counters, *counters}
        self.function_counters = {n: self.function_counters.get(n, 0) + counters.get(n, 0) for n in sorted(names)}

    def count_function(self, session: FunctionSession) -> None:
        """Count the memory of a function's worker in ``worker_bytes_peak`` from now on."""
        self._functions.append(session)

    def count_resources(self) -> None:
        """Refresh ``spilled_bytes``, ``pages_peak`` and ``worker_bytes_peak`` from what is in use."""
        held = sum(map(_PEAK_BYTES, tuple(self._functions)))  # chained functions have a worker each
        self.worker_bytes_peak = max(self.worker_bytes_peak, held)
        spilled = sum(map(_SPILLED_BYTES, (*self._spaces, *self._values, *self._further)))
        self.spilled_bytes = self._handed_over_bytes + spilled
        self.pages_peak = max(self.pages_peak, sum(map(_PAGES_PEAK, tuple(self._pools))))

    def close(self) -> None:
        """Close all spaces and pools; runs every step and raises the first error."""
        self.count_resources()
        self.arrow_peak.close()
        close_all([*(space.close for space in self._spaces), *(pool.close for pool in self._pools)])


class ChainedOperator(ChainLink):
    """Base of the steps of a chain."""

    def __init__(self, descriptor: OperatorDescriptor) -> None:
        self.descriptor = descriptor
        self.output: Output
        self.context: TaskContext

    #: rows that left the job here: written by a sink
    rows_out = 0
    #: True for a RowsOutput
    takes_pages = False
    #: True where batches may be opened ones; set once it is open
    takes_opened = False
    #: ``PartitionRouter`` that takes rows of pages before they become batches
    router: PartitionRouter | None = None
    #: columns that may be compact; set once it is open
    compact_columns: frozenset[str] = frozenset()
    #: True if work for it runs beside the task; from any thread
    is_at_work = False

    def open(self, context: TaskContext, output: Output) -> None:
        """Prepare; called from tail to head."""
        self.context = context
        self.output = output

    def ahead(self) -> Ahead | None:
        """Return None: what it does needs what came before."""
        return None

    def say_whole_groups(self) -> None:
        """Do nothing: what it makes of whole groups are none, as far as is known."""

    def process(self, batch: pa.RecordBatch) -> None:
        """Take one batch."""
        raise NotImplementedError

    def finish(self) -> None:
        """Emit what is left; the input has ended."""

    def cancel(self) -> None:
        """End what may take long without looking at the context; from any thread, before ``close`` and after."""

    def close(self) -> None:
        """Give back what is held; idempotent, runs after failures too."""
