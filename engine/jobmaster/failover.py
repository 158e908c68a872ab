"""What a failure means: the cause among several failures of one job.

A task that fails tears others down with it: their inputs vanish, their buffers are closed. Their reports may come
first. The cause is the first failure that is not such a consequence. Pure.

In this version any failure ends the job: all tasks are cancelled and the job fails with its cause.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.graph.deployment import FailureInfo

#: failures that others cause
_CONSEQUENCES = frozenset(
    {"TaskCancelledError", "ProducerFailedError", "PartitionNotFoundError", "PartitionReleasedError"}
)


def root_failure(failures: Sequence[FailureInfo]) -> FailureInfo:
    """Return the cause among the failures of a job (at least one, in order of arrival)."""
    for failure in failures:
        if failure.type_name not in _CONSEQUENCES:
            return failure
    return failures[0]
