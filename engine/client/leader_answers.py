"""How a JobManager begins to say that another one, or a later moment, is the one to ask.

Held by: tests/client/test_following_the_leader.py
"""

from __future__ import annotations

from typing import Final

#: by one that does not lead
NOT_LEADING: Final = "this JobManager does not lead"
#: what a leader says of a job whose files it cannot read yet
NOT_RECOVERED: Final = "waits to be recovered"
