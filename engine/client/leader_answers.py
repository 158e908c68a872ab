"""Prefixes of answers that send a client to another JobManager, or ask it to try again later.

Held by: tests/client/test_following_the_leader.py
"""

from __future__ import annotations

from typing import Final

#: prefix of the answer of a JobManager that does not lead
NOT_LEADING: Final = "this JobManager does not lead"
#: prefix of a leader's answer about a job whose files it cannot read yet
NOT_RECOVERED: Final = "waits to be recovered"
