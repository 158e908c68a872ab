"""Limit of the subtasks in one process: those that its processors can run at a time.

    parallelism.default 16, 2 processors ─► 2 subtasks of each operator, told by explain
    functions, databases, stores         ─► 16: a subtask that waits leaves its processor to others
    set_parallelism(16)                  ─► 16, for that operator: its files, or what the user knows of it

A subtask that finds no processor makes nothing faster, and has an own table, channels to all others, threads and
messages. With two processors, TPC-H at scale factor 1, eight queries, processor seconds with 1, 2, 4, 8 and 16
subtasks: 2.1, 2.6, 2.9, 3.3 and 5.5; resident memory 261, 353, 440, 583 and 781 MB.

Held by: tests/optimizer/test_processors.py
"""

from __future__ import annotations

from engine.formats.registry import format_of
from engine.graph.plan import Plan, Source
from engine.graph.source_spec import SourceSpec

_OF_THIS_MACHINE = "file://"


def useful_parallelism(plan: Plan, asked: int, most: int) -> int:
    """Return the default parallelism of a plan: what is asked for, and at most ``most`` unless subtasks wait."""
    return asked if asked <= most or _waits(plan) else most


def _waits(plan: Plan) -> bool:
    """Whether a plan may wait for anything but processors and files of this machine."""
    sources = (node.operator for node in plan.nodes if isinstance(node.operator, Source))
    return plan.has_functions or any(each.rate_limit is not None or _is_remote(each.spec) for each in sources)


def _is_remote(spec: SourceSpec) -> bool:
    is_stored = any("://" in path and not path.startswith(_OF_THIS_MACHINE) for path in spec.paths)
    return is_stored or format_of(spec).waits_for_server
