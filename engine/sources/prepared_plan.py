"""A plan with all that is looked up of its sources before it is optimized.

    with_exact_splits(operator, subtask_count)      of each source, when a job is about to run

    prepared(plan): filters near sources ──► splits without a row for them left out ──► runs of values ──► samples

Held by: tests/sources/test_possible_splits.py
"""

from __future__ import annotations

import msgspec

from engine.errors import PlanError
from engine.files.stored_files import statuses
from engine.formats.registry import format_of
from engine.graph.plan import Operator, Plan, Source
from engine.sources.key_samples import with_samples
from engine.sources.source_filters import is_prunable, source_filters
from engine.storage.file_system import FileStatus
from engine.storage.known_objects import known_statuses


def prepared(plan: Plan) -> Plan:
    """Return a plan with the splits, cuts and statistics of its sources. Raises: DataError (damaged files)."""
    with known_statuses(_stored(plan)):
        return _prepared(plan)


def _stored(plan: Plan) -> dict[str, FileStatus]:
    specs = [node.operator.spec for node in plan.nodes if isinstance(node.operator, Source)]
    return statuses(each for spec in specs for each in format_of(spec).stored(spec))


def _prepared(plan: Plan) -> Plan:
    filters = source_filters(plan)
    if any(map(is_prunable, plan.nodes)):
        # Most jobs of a small process read no files that say anything of their values.
        from engine.sources.possible_splits import with_possible_splits
        from engine.sources.value_runs import with_value_runs

        plan = with_value_runs(with_possible_splits(plan, filters.sole))
    return with_samples(plan, filters.every)


def with_exact_splits(operator: Operator, subtask_count: int) -> Operator:
    """Return an operator, a source with splits of its files as they are now. Raises: PlanError (changed files)."""
    if not isinstance(operator, Source):
        return operator
    entry = format_of(operator.spec)
    try:
        spec = entry.exact_splits(operator.spec, subtask_count)
    except OSError as error:
        raise PlanError(
            f"read_{entry.kind(operator.spec)}: {error.filename}: {error.strerror}; it changed since the plan was built"
        ) from None
    return operator if spec is operator.spec else msgspec.structs.replace(operator, spec=spec)
