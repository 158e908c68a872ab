"""The optimizer's entry point: ``optimize(plan, settings) -> OptimizedPlan``.

    rewrite the plan ─► estimate ─► enumerate and choose ─► physical operators ─► filters into scans ─► exchange modes
    ─► unions into joins ─► run-time filters ─► whole groups ─► pages

Pure and deterministic: the same plan and settings give the same result, in any process.

Held by: tests/optimizer/test_physical_operators.py
"""

from __future__ import annotations

from engine.graph.exchange_mode import ExecutionMode
from engine.graph.plan import Plan
from engine.optimizer.aggregate_threads import with_aggregate_threads
from engine.optimizer.candidates import most_subtasks
from engine.optimizer.estimates import estimate, estimate_plan, flink_estimate
from engine.optimizer.exchange_planning import assign_exchange_modes
from engine.optimizer.logical_optimizer import rewrite
from engine.optimizer.memory_plan import with_pages
from engine.optimizer.operator_translation import physical_nodes
from engine.optimizer.partition_planning import fold_partitions
from engine.optimizer.physical_plan import OptimizedPlan
from engine.optimizer.plan_enumerator import enumerate_plan
from engine.optimizer.runtime_filter_planning import with_runtime_filters
from engine.optimizer.scan_fusion import fuse_scans
from engine.optimizer.scan_planning import with_scan_threads
from engine.optimizer.settings import OptimizerSettings
from engine.optimizer.stored_filter_planning import with_stored_filters
from engine.optimizer.top_planning import with_top_thresholds
from engine.optimizer.union_fusion import fuse_unions
from engine.optimizer.whole_groups import with_whole_groups


def optimize(plan: Plan, settings: OptimizerSettings) -> OptimizedPlan:
    """Optimize a plan.

    Raises:
        PlanError: a hint or the execution mode cannot be followed without making the job wrong or hang.
        NotYetSupportedError: a join type or hint that is not built, by name.
        ConfigurationError: no plan could run with these settings.
    """
    settings.validate()
    plan.validate()
    rewritten = rewrite(plan)
    estimates = estimate_plan(rewritten, flink_estimate if settings.legacy_estimates else estimate)
    roots = enumerate_plan(rewritten, estimates, settings)
    least = settings.page_budget  # the slots are as many where other jobs run, too
    settings = settings.with_slots(most_subtasks(roots))
    nodes = fuse_scans(fold_partitions(physical_nodes(rewritten, roots, settings), rewritten), rewritten)
    planned = assign_exchange_modes(nodes, settings.execution_mode, least)
    if settings.execution_mode is ExecutionMode.PIPELINED:
        planned = tuple(fuse_unions(planned, rewritten))
    if settings.runtime_filters:
        planned = with_top_thresholds(with_runtime_filters(with_stored_filters(planned, settings.execution_mode)))
    planned = with_aggregate_threads(with_scan_threads(with_whole_groups(planned), settings), settings)
    return OptimizedPlan(with_pages(planned, settings.page_budget.slot_pages), rewritten, plan, settings)
