"""First rows: what a small limit takes of a source comes from one subtask, which reads no more than is asked for.

    limit ── project ── project ── source          one subtask, which reads in the order of the files and stops
    limit ── filter, map ── source                 all subtasks: it is unknown how far the rows lie apart
    limit ── sort ── ...                           as without this rule

With several subtasks a limit takes the rows of one after the other (``sort_planning``), and the rows that the others
have read are dropped. A parallelism that the user sets at a node is kept.

Held by: tests/optimizer/test_first_rows.py
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from engine.graph.plan import Limit, Plan, PlanNode, Project, Source
from engine.optimizer.sort_planning import LIMIT_BYTES
from engine.statistics.estimates import Estimates


def first_rows(plan: Plan, estimates: Sequence[Estimates]) -> set[int]:
    """Return the nodes, by id, whose rows a small limit takes in the order of a source."""
    uses = Counter(source for node in plan.nodes for source in node.inputs)
    found: set[int] = set()
    for node in plan.nodes:
        if isinstance(node.operator, Limit) and estimates[node.id].size_bytes <= LIMIT_BYTES:
            found |= _below(plan, node, uses)
    return found


def _below(plan: Plan, limit: PlanNode, uses: Counter[int]) -> set[int]:
    """Return projections and the source right below a limit, none of them where something else is there."""
    passed: set[int] = set()
    node = limit
    while True:
        node = plan.nodes[node.inputs[0]]
        if uses[node.id] > 1 or node.parallelism is not None:
            return set()
        passed.add(node.id)
        if isinstance(node.operator, Source):
            return set() if node.operator.is_replicated else passed
        if not isinstance(node.operator, Project):
            return set()
