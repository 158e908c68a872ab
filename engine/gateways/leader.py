"""The protocol of JobManagers for processes that do not know the leader yet. Calls of any epoch are answered.

Held by: tests/entrypoint/test_high_availability.py
"""

from __future__ import annotations

from typing import Protocol

from engine.gateways.messages import LeaderReply, RequestLeader

LEADER_ADDRESS = "leader"


class LeaderGateway(Protocol):
    """A JobManager, seen by processes that look for the leader."""

    async def request_leader(self, request: RequestLeader) -> LeaderReply:
        """Return the leading JobManager; ResourceError when none leads."""
        ...
