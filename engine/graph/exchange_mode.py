"""Whether an exchange is pipelined or goes through a finished result: by execution mode and kind of edge.

    ExecutionMode      FORWARD      SHUFFLE (any network strategy, broadcast too)   BREAKING (a closed branch)
    ----------------   ----------   ---------------------------------------------   --------------------------
    PIPELINED          PIPELINED    PIPELINED                                       BATCH
    PIPELINED_FORCED   PIPELINED    PIPELINED                                       PIPELINED
    BATCH              PIPELINED    BATCH                                           BATCH
    BATCH_FORCED       BATCH        BATCH                                           BATCH

A DataExchangeMode then gives the producer's ResultPartitionType: PIPELINED keeps queues, BATCH a persistent BLOCKING
result. BREAKING edges are those that leave a node whose branches meet again in a join: pipelined, the branch that is
read second fills up, the node waits for it, and the branch read first never ends.

PIPELINE_WITH_BATCH_FALLBACK is a name only, as in Flink, where it runs like PIPELINED.

Source: Flink's ExecutionMode, DataExchangeMode and its ``getForForwardExchange``, ``getForShuffleOrBroadcast`` and
``getPipelineBreakingExchange``.
"""

from __future__ import annotations

from enum import StrEnum

from engine.graph.ship_strategy import ResultPartitionType, ShipStrategy


class ExecutionMode(StrEnum):
    """The execution mode of a job's exchanges; embedded default PIPELINED, cluster default BATCH."""

    PIPELINED = "PIPELINED"
    BATCH = "BATCH"
    PIPELINED_FORCED = "PIPELINED_FORCED"
    BATCH_FORCED = "BATCH_FORCED"


class DataExchangeMode(StrEnum):
    """The exchange mode of one edge."""

    PIPELINED = "PIPELINED"
    BATCH = "BATCH"
    PIPELINE_WITH_BATCH_FALLBACK = "PIPELINE_WITH_BATCH_FALLBACK"

    @property
    def result_type(self) -> ResultPartitionType:
        """The type of the producer's result."""
        if self is DataExchangeMode.BATCH:
            return ResultPartitionType.BLOCKING
        return ResultPartitionType.PIPELINED


class EdgeKind(StrEnum):
    """The properties of an edge that decide its exchange mode."""

    FORWARD = "FORWARD"
    SHUFFLE = "SHUFFLE"
    BREAKING = "BREAKING"


_PIPELINED, _BATCH = DataExchangeMode.PIPELINED, DataExchangeMode.BATCH

#: exchange modes as the table in the header has them
EXCHANGE_MODES: dict[tuple[ExecutionMode, EdgeKind], DataExchangeMode] = {
    (ExecutionMode.PIPELINED, EdgeKind.FORWARD): _PIPELINED,
    (ExecutionMode.PIPELINED, EdgeKind.SHUFFLE): _PIPELINED,
    (ExecutionMode.PIPELINED, EdgeKind.BREAKING): _BATCH,
    (ExecutionMode.PIPELINED_FORCED, EdgeKind.FORWARD): _PIPELINED,
    (ExecutionMode.PIPELINED_FORCED, EdgeKind.SHUFFLE): _PIPELINED,
    (ExecutionMode.PIPELINED_FORCED, EdgeKind.BREAKING): _PIPELINED,
    (ExecutionMode.BATCH, EdgeKind.FORWARD): _PIPELINED,
    (ExecutionMode.BATCH, EdgeKind.SHUFFLE): _BATCH,
    (ExecutionMode.BATCH, EdgeKind.BREAKING): _BATCH,
    (ExecutionMode.BATCH_FORCED, EdgeKind.FORWARD): _BATCH,
    (ExecutionMode.BATCH_FORCED, EdgeKind.SHUFFLE): _BATCH,
    (ExecutionMode.BATCH_FORCED, EdgeKind.BREAKING): _BATCH,
}


def exchange_mode(mode: ExecutionMode, strategy: ShipStrategy, *, breaks_pipeline: bool = False) -> DataExchangeMode:
    """Return the exchange mode of an edge of that strategy under an execution mode."""
    unbroken = EdgeKind.SHUFFLE if strategy.is_network else EdgeKind.FORWARD
    kind = EdgeKind.BREAKING if breaks_pipeline else unbroken
    return EXCHANGE_MODES[mode, kind]
