"""The physical operators of a plan as PlannedSteps, which go with the job into its profile. Pure.

Heavy keys are those of the statistics of what comes to an operator by the hash of its keys.

Held by: tests/profile/test_job_profile.py
"""

from __future__ import annotations

from engine.graph.operator_descriptor import JoinOperator, PhysicalOperator, PythonOperator, SourceOperator
from engine.graph.planned_step import PlannedStep
from engine.graph.ship_strategy import KeyText
from engine.optimizer.heavy_keys import key_shares
from engine.optimizer.physical_plan import OptimizedPlan, PhysicalNode
from engine.statistics.estimates import UNKNOWN

#: heavy keys that are told of one operator
_KEYS_TOLD = 5
#: kinds of functions that are called row by row
_BY_ROW = ("map", "flat_map", "filter", "column:scalar", "column:truth")


def planned_steps(optimized: OptimizedPlan) -> tuple[PlannedStep, ...]:
    """Return a step for each physical operator, in the order of the plan."""
    return tuple(_step(optimized, node) for node in optimized.nodes)


def _step(optimized: OptimizedPlan, node: PhysicalNode) -> PlannedStep:
    operator, estimates = node.descriptor.operator, node.estimates
    # Each subtask of a replicated source reads all of it, and what happened is a sum over subtasks.
    times = node.parallelism if isinstance(operator, SourceOperator) and operator.is_replicated else 1
    keys, heavy, spread = _keys(optimized, node)
    files, file_bytes = _files(operator)
    function = operator if isinstance(operator, PythonOperator) else None
    return PlannedStep(
        node.descriptor.node_id,
        node.descriptor.name,
        _kind(operator),
        node.strategy,
        -1.0 if estimates.rows == UNKNOWN else float(estimates.rows) * times,
        -1.0 if estimates.size_bytes == UNKNOWN else float(estimates.size_bytes) * times,
        estimates.origin,
        "" if function is None else function.function_name,
        "" if function is None else function.file,
        0 if function is None else function.line,
        keys,
        heavy,
        spread,
        files,
        file_bytes,
        function is not None and function.kind not in _BY_ROW,
    )


def _kind(operator: PhysicalOperator) -> str:
    is_cross = isinstance(operator, JoinOperator) and not operator.left_keys
    return "cross" if is_cross else str(type(operator).__struct_config__.tag)


def _keys(
    optimized: OptimizedPlan, node: PhysicalNode
) -> tuple[tuple[str, ...], tuple[tuple[str, float], ...], tuple[str, ...]]:
    """Return the keys by which rows come to an operator, the heavy ones with their shares, and those spread."""
    for channel in node.inputs:
        partitioner = channel.partitioner
        if partitioner.kind == "HASH" and partitioner.keys:
            shares = key_shares(optimized.nodes[channel.source].estimates, partitioner.keys)
            heaviest = sorted(shares.items(), key=lambda pair: -pair[1])[:_KEYS_TOLD]
            spread = () if partitioner.heavy is None else (*partitioner.heavy.spread, *partitioner.heavy.replicated)
            if heaviest:
                return (
                    partitioner.keys,
                    tuple((_text(key), share) for key, share in heaviest),
                    tuple(_text(key) for key in spread),
                )
    hashed = (each.partitioner.keys for each in node.inputs if each.partitioner.kind == "HASH")
    return next(hashed, ()), (), ()


def _text(key: KeyText) -> str:
    return ", ".join(key)


def _files(operator: PhysicalOperator) -> tuple[int, int]:
    """Return the number of files that a source reads, and their bytes."""
    splits = getattr(operator.spec, "splits", ()) if isinstance(operator, SourceOperator) else ()
    paths = {split.path for split in splits if split.path}
    return len(paths), sum(split.size_bytes for split in splits)
