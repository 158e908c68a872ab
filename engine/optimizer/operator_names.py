"""Short names of operators for vertices, logs and explain: what the user called it, else what it does.

Held by: tests/optimizer/test_rules.py
"""

from __future__ import annotations

from engine.graph.plan import PlanNode
from engine.optimizer.operator_entries.registry import entry_of


def operator_name(node: PlanNode) -> str:
    """Return the name of a plan node for people, one line, at most about 80 characters."""
    return node.name or entry_of(node.operator).name(node.operator)
