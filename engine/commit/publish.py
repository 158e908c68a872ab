"""Publication of a decision: each output by its target, then what is left beside it is removed. Idempotent.

Held by: tests/commit/test_publish.py
"""

from __future__ import annotations

from collections.abc import Callable

from engine.commit.decision import Decision
from engine.commit.targets import target_named
from engine.graph.deployment import PublishedOutput


def _no_step(step: str) -> None:
    """Do nothing after a step; tests stop there."""


def publish(
    decision: Decision, after_step: Callable[[str], None] = _no_step, is_durable: bool = True
) -> tuple[PublishedOutput, ...]:
    """Make every decided output its target, and clean up; return what targets tell of it.

    after_step: called with each step's name when it is done.
    is_durable: whether a leader may go on after a crash of the machine; else only the output is synchronised.
    """
    published = []
    for output in decision.outputs:
        facts = target_named(output.kind).publish(output, decision.job_id, after_step, is_durable=is_durable)
        published.append(PublishedOutput(output.sink_index, output.target, dict(facts)))
    # The first staging folder may hold the decision: it goes last.
    for output in reversed(decision.outputs):
        target_named(output.kind).clean(output, decision.job_id, after_step)
    return tuple(published)
