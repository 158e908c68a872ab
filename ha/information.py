"""LeaderInformation: what a leader publishes of itself.

    epoch    strictly increasing from leader to leader: the fencing token
    session  a random UUID of this grant, for people and logs
    address  where the leader is reached

Source: Flink's LeaderInformation, which has no epoch; there only the session is compared for equality.
Held by: tests/ha/test_zookeeper.py
Held by: tests/ha/test_embedded.py
"""

from __future__ import annotations

import uuid
from typing import NamedTuple


class LeaderInformation(NamedTuple):
    """One leader. ``epoch`` >= 1."""

    epoch: int
    session: uuid.UUID
    address: str
