"""Fences: a message of another leader is refused before it touches any state.

    LeaderFence    an elected component acts under exactly one epoch: any other one is refused
    FollowerFence  a component that serves leaders takes the highest epoch it has seen: lower ones are refused

Pure. The epoch grows from leader to leader (``ha``), so a stale leader always carries a lower one.

Held by: tests/rpc/test_local_gateway.py
"""

from __future__ import annotations

from typing import Protocol

from engine.errors import FencedError


class Fence(Protocol):
    """Decides about a message by its epoch."""

    def check(self, epoch: int) -> None:
        """Raise FencedError when a message of that epoch must not act."""
        ...


class LeaderFence:
    """A fence that accepts one epoch."""

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch

    def check(self, epoch: int) -> None:
        """Raise FencedError for any other epoch."""
        if epoch != self.epoch:
            raise FencedError(self.epoch, epoch)


class FollowerFence:
    """A fence that accepts the highest epoch so far."""

    def __init__(self) -> None:
        self.epoch = 0

    def check(self, epoch: int) -> None:
        """Raise FencedError for an epoch lower than one already seen."""
        if epoch < self.epoch:
            raise FencedError(self.epoch, epoch)
        self.epoch = epoch
