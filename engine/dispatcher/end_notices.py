"""EndNotices: other programs hear of the end of each job, by a webhook, and by what has a part in it besides.

    {"id": "0d9c...", "name": "daily sales", "user": "ada", "state": "FAILED",
     "start-time": 1764434000000, "end-time": 1764434032000, "duration": 32000}

Whether it hears or not is nothing to the job. Under another leader an end may be told again: the id is the same.

Held by: tests/rpc/test_webhook.py
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from engine.gateways.messages import JobOverview
from engine.rpc.webhook import Webhook


def notice(job: JobOverview) -> bytes:
    """Return the text about a job that has ended."""
    return msgspec.json.encode(
        {
            "id": job.job_id.value,
            "name": job.name,
            "user": job.user,
            "state": job.status,
            "start-time": job.start_ms,
            "end-time": job.end_ms,
            "duration": max(0, job.end_ms - job.start_ms),
        }
    )


class EndNotices:
    """Tells of the ends of jobs; without a webhook and ``also`` nothing."""

    def __init__(self, webhook: Webhook | None = None, also: Callable[[JobOverview], None] | None = None) -> None:
        self._webhook, self._also = webhook, also

    def tell(self, job: JobOverview) -> None:
        """Queue what is told of a job that has ended."""
        if self._webhook is not None:
            self._webhook.post(f"the end of job {job.job_id}", notice(job))
        if self._also is not None:
            self._also(job)
