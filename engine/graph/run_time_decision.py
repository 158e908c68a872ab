"""Run-time decisions: the kinds of change to a running job, and those that were made.

    in the JobGraph     AdaptiveSettings      of the job; None: nothing is decided at run time
                        ExpectedSize          of each data set: what the planner expected of it
                        AdaptiveJoin          of a join's vertex: what may become of it

    a decision          RunTimeDecision ── vertex, planned, expected, real, became, reason     for people
                        └── change          what is done to the JobGraph                       for replay
                            BroadcastInput | RepartitionInputs | BuildSide | SplitSkew | KeepSkew | SubtaskRanges

A decision holds all that its change needs: the submitted JobGraph and the decisions in their order give the JobGraph
that runs, wherever they are applied (``engine.adaptive.changes``). Plain data.

Source: Spark's adaptive query execution and Flink's adaptive batch scheduler, which keep no such record.
Held by: tests/adaptive/test_decisions.py
"""

from __future__ import annotations

import msgspec

from engine.graph.exact import Exact
from engine.graph.subpartition_share import SubpartitionShare
from engine.ids import JobVertexId
from engine.memory.page_budget import PageBudget


class AdaptiveSettings(Exact, frozen=True):
    """The settings of run-time decisions; they also depend on sizes.

    execution_mode: name of an ExecutionMode.
    bytes_per_subtask: what a consumer of BLOCKING results should read; 0: parallelism stays as planned.
    skew_factor: a subtask of a join has too much when it is more than that many times the median; 0: never.
    skew_bytes: and that many bytes.
    """

    execution_mode: str
    page_budget: PageBudget
    bytes_per_subtask: int
    skew_factor: float = 0.0
    skew_bytes: int = 0


class ExpectedSize(Exact, frozen=True):
    """The size that the optimizer expected of all partitions of a data set together.

    ``is_certain``: nothing on the way to it is a guess, so waiting for the real size tells nothing new.
    """

    rows: float
    size_bytes: float
    is_certain: bool


class AdaptiveJoin(Exact, frozen=True):
    """The properties of a join for run-time decisions: its type, its hint and what follows it.

    may_broadcast: left, right: that input may be read whole by every subtask while the other one stays where it is.
    may_repartition: planned as a broadcast, it may be repartitioned: the broadcast input is kept in hash partitions.
    may_build: left, right: that input may be the one that is built.
    why_whole: left, right: why rows of that input with equal keys must stay together; "" they need not; None: not
    asks, or it was said.
    """

    may_broadcast: tuple[bool, bool] = (False, False)
    may_repartition: bool = False
    may_build: tuple[bool, bool] = (False, False)
    why_whole: tuple[str | None, str | None] = (None, None)


class BroadcastInput(Exact, frozen=True, tag="broadcast"):
    """A repartitioned join becomes a broadcast join.

    ``small`` (0 left, 1 right) is finished and read whole by every subtask; the other input is no longer shuffled.
    The vertices in ``followers`` (the join and what is connected with it through FORWARD) get its parallelism.
    """

    join: JobVertexId
    small: int
    followers: tuple[JobVertexId, ...]
    parallelism: int
    #: True if the join runs together with the producer of the other input
    is_pipelined: bool


class RepartitionInputs(Exact, frozen=True, tag="repartition"):
    """A broadcast join becomes a repartitioned one: its build input (``large``) is finished, the other not begun."""

    join: JobVertexId
    large: int


class BuildSide(Exact, frozen=True, tag="build_side"):
    """The other input of a join is built."""

    join: JobVertexId
    build_left: bool
    #: weight of the join among the operators of its slot from now on
    memory_weight: float


class SplitSkew(Exact, frozen=True, tag="split_skew"):
    """Subpartitions of a join's inputs that are too large are read by several subtasks.

    ``shares``: of the left and of the right input, for each subtask. Where a subtask reads a share of a subpartition of
    one input it reads that subpartition of the other input whole.
    """

    join: JobVertexId
    shares: tuple[tuple[tuple[SubpartitionShare, ...], ...], tuple[tuple[SubpartitionShare, ...], ...]]


class KeepSkew(Exact, frozen=True, tag="keep_skew"):
    """An input (0 left, 1 right) of a join is skewed, and stays so; nothing changes."""

    join: JobVertexId
    side: int


class SubtaskRanges(Exact, frozen=True, tag="parallelism"):
    """Vertices connected through FORWARD get fewer subtasks: one for each range [begin, end) of subpartitions."""

    vertices: tuple[JobVertexId, ...]
    ranges: tuple[tuple[int, int], ...]


Change = BroadcastInput | RepartitionInputs | BuildSide | SplitSkew | KeepSkew | SubtaskRanges


class RunTimeDecision(msgspec.Struct, frozen=True):
    """One decision. Sizes in bytes: of the results that decided it."""

    kind: str
    vertex: JobVertexId
    vertex_name: str
    planned: str
    became: str
    expected_bytes: float
    real_bytes: int
    reason: str
    change: Change

    @property
    def text(self) -> str:
        """One line for people."""
        return f"{self.vertex_name}: {self.planned} -> {self.became} ({self.reason})"
