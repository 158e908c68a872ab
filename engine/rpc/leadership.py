"""Leadership: what a process gives the components that act while it leads, under one epoch.

    Leadership(rpc, epoch, clock, blocking_work, is_leading, on_fatal) ─► Dispatcher, ResourceManager, JobMasters

Source: the services that Flink's ClusterEntrypoint passes to its components.
Held by: tests/jobmaster/test_takeover.py
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from typing import NamedTuple

from engine.clock import Clock
from engine.rpc.gateway import RpcService


class Leadership(NamedTuple):
    """One leadership of this process."""

    rpc: RpcService
    epoch: int
    clock: Clock
    #: threads for file operations
    blocking_work: Executor
    #: True if this epoch is still in force, as far as this process knows
    is_leading: Callable[[], bool]
    #: callback for errors after which a component cannot go on
    on_fatal: Callable[[BaseException], None]
