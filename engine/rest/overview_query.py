"""OverviewQuery: a search, filters and a page of the list of jobs, as the address of the overview has them.

    /?name=sums&user=ann&state=RUNNING&within=24h&page=2  ─► OverviewQuery ─► choose(jobs) -> Chosen(jobs, fitting, ...)

``name`` is in a job's name, in letters of any case, or is the beginning of its id. ``state`` may be WAITING, for jobs
without a slot. ``within`` takes jobs that run, or ended in that time. Pure.

Held by: tests/rest/test_overview.py
"""

from __future__ import annotations

import urllib.parse
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from engine.gateways.messages import JobOverview
from engine.rest.job_document import ENDED_JOB_STATES, JOB_STATES
from engine.rpc.http_messages import HttpError

PAGE_JOBS = 50
WAITING = "WAITING"
#: choices of states and of times, in ms, by what the address has
STATES = ("RUNNING", WAITING, "FINISHED", "FAILED", "CANCELED", "RESTARTING")
WITHIN = {"1h": 3_600_000, "24h": 86_400_000, "7d": 7 * 86_400_000}
_PAGES_MAX = 1_000_000


class Chosen(NamedTuple):
    """The jobs of one page, of ``fitting`` ones, of ``total``."""

    jobs: list[JobOverview]
    fitting: int
    total: int
    page: int
    pages: int


class OverviewQuery(NamedTuple):
    """A query; "" and 1 mean everything."""

    name: str = ""
    user: str = ""
    state: str = ""
    within: str = ""
    page: int = 1

    @classmethod
    def of(cls, query: Mapping[str, str]) -> OverviewQuery:
        """Return the query of a request; HttpError 400 for what cannot be."""
        state, within = query.get("state", "").upper(), query.get("within", "")
        if state and state not in (*JOB_STATES, WAITING):
            raise HttpError(400, f"state {state[:20]!r} is none of {', '.join((*JOB_STATES, WAITING))}")
        if within and within not in WITHIN:
            raise HttpError(400, f"within {within[:20]!r} is none of {', '.join(WITHIN)}")
        page = query.get("page") or "1"
        if not (page.isascii() and page.isdigit() and 1 <= int(page[:9]) <= _PAGES_MAX):
            raise HttpError(400, f"page {page[:20]!r} is not a number from 1")
        return cls(query.get("name", "").strip()[:200], query.get("user", "").strip()[:200], state, within, int(page))

    def address(self, **changes: object) -> str:
        """Return the address of the page with this query, changed."""
        changed = self._replace(**changes)  # type: ignore[arg-type]
        words = {name: value for name, value in changed._asdict().items() if value not in ("", 1)}
        return f"?{urllib.parse.urlencode(words)}" if words else "/"

    def choose(self, jobs: Iterable[JobOverview], now_ms: int) -> Chosen:
        """Return the jobs of the page: running, then waiting in the order of their turns, then ended, latest first."""
        known = tuple(jobs)
        found = sorted((job for job in known if self._fits(job, now_ms)), key=_place)
        pages = max(1, -(-len(found) // PAGE_JOBS))
        page = min(self.page, pages)
        return Chosen(found[(page - 1) * PAGE_JOBS : page * PAGE_JOBS], len(found), len(known), page, pages)

    def _fits(self, job: JobOverview, now_ms: int) -> bool:
        name = self.name.casefold()
        return (
            (name in job.name.casefold() or job.job_id.value.startswith(name))
            and self.user in ("", job.user)
            and self.state in ("", WAITING if job.waiting is not None else job.status)
            and (not self.within or job.end_ms < 0 or job.end_ms >= now_ms - WITHIN[self.within])
        )


def _place(job: JobOverview) -> tuple[int, int, int]:
    group = 2 if job.status in ENDED_JOB_STATES else 0 if job.waiting is None else 1
    return group, job.waiting.place if job.waiting is not None else 0, -job.start_ms
