"""Where jobs run: the executors behind ``Environment(target=...)`` and ``flink-run -t``.

local.py            the embedded cluster of this process (``engine.minicluster``)
cluster.py          a standalone cluster, over REST
planned_job.py      what both do with a plan: optimize, hand over, wait, tell the listener
shipped_modules.py  what a job's functions import, packed to travel with it
spark               the same plan as DataFrame operations: not yet

Importing this package registers the executors with the API, which lies below and knows none of them.
"""

from __future__ import annotations

from engine.api.executor import Executor, register_executor
from engine.targets.local import LocalExecutor, explain_instead_of_running

__all__ = ["LocalExecutor", "explain_instead_of_running"]


def _cluster_executor() -> Executor:
    from engine.targets.cluster import ClusterExecutor  # noqa: PLC0415 - an embedded job needs no HTTP

    return ClusterExecutor()


register_executor("local", LocalExecutor)
register_executor("cluster", _cluster_executor)
