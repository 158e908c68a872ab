"""View: where a page of a job is shown, and what is open on it; so its address says all of it.

    /jobs/ID/page?vertex=3           the subtasks of one vertex are unfolded
    /jobs/ID/page?log=v3-0-1.log     the end of a log file is shown
    /jobs/ID/page?refresh=off        the page does not load itself again

A page that loads itself again would close what a person has opened, were it not in its address. A page that stands
alone has no links.

Held by: tests/profile/test_profile_page.py
"""

from __future__ import annotations

from typing import NamedTuple


class View(NamedTuple):
    """One view of a page."""

    #: address of the job in the REST API, "" for a page that stands alone
    job: str = ""
    #: True if TaskManagers, with their logs, can be asked from here
    has_processes: bool = False
    #: position of the vertex whose subtasks are unfolded
    opened: int | None = None
    #: True if the page loads itself again while the job runs
    refreshes: bool = True
    #: name of a log file, and its end
    log: str = ""
    log_end: str = ""
    #: True if the person that sees the page may cancel the job from it
    may_cancel: bool = False

    def address(self, opened: int | None, *, refreshes: bool, log: str = "") -> str:
        """Return the address of this page in another view."""
        query = [] if opened is None else [f"vertex={opened}"]
        query += [f"log={log}"] if log else []
        query += [] if refreshes else ["refresh=off"]
        return "?" + "&".join(query)

    def vertex(self, place: int) -> str:
        """Return the address of a vertex on this page, its subtasks unfolded where a server makes the page."""
        return f"{self.address(place, refreshes=self.refreshes) if self.job else ''}#v{place}"
