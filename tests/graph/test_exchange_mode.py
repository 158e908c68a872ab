"""Exchange modes and ship strategies, against their tables."""

from __future__ import annotations

import pytest

from engine.graph.exchange_mode import EXCHANGE_MODES, DataExchangeMode, EdgeKind, ExecutionMode, exchange_mode
from engine.graph.ship_strategy import ResultPartitionType, ShipStrategy

# one row per execution mode: forward, shuffle or broadcast, breaking (P pipelined, B batch)
TABLE = {
    ExecutionMode.PIPELINED: "PPB",
    ExecutionMode.PIPELINED_FORCED: "PPP",
    ExecutionMode.BATCH: "PBB",
    ExecutionMode.BATCH_FORCED: "BBB",
}
LETTERS = {"P": DataExchangeMode.PIPELINED, "B": DataExchangeMode.BATCH}


@pytest.mark.parametrize("mode", ExecutionMode)
def test_every_edge_kind_has_the_mode_of_the_table(mode):
    forward, shuffle, breaking = (LETTERS[letter] for letter in TABLE[mode])
    assert exchange_mode(mode, ShipStrategy.FORWARD) is forward
    for strategy in ShipStrategy:
        if strategy.is_network:
            assert exchange_mode(mode, strategy) is shuffle
        assert exchange_mode(mode, strategy, breaks_pipeline=True) is breaking


def test_the_table_is_complete():
    assert set(EXCHANGE_MODES) == {(mode, kind) for mode in ExecutionMode for kind in EdgeKind}


def test_batch_exchanges_are_blocking_results():
    assert DataExchangeMode.BATCH.result_type is ResultPartitionType.BLOCKING
    assert DataExchangeMode.PIPELINED.result_type is ResultPartitionType.PIPELINED
    assert DataExchangeMode.PIPELINE_WITH_BATCH_FALLBACK.result_type is ResultPartitionType.PIPELINED


def test_ship_strategies_say_whether_rows_leave_their_subtask():
    assert {strategy.value: strategy.is_network for strategy in ShipStrategy} == {
        "NONE": False,
        "FORWARD": False,
        "PARTITION_RANDOM": True,
        "PARTITION_HASH": True,
        "PARTITION_RANGE": True,
        "BROADCAST": True,
        "PARTITION_FORCED_REBALANCE": True,
        "PARTITION_CUSTOM": True,
    }
