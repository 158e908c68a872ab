"""BrokenLinks: TaskManagers of one job that cannot read from each other, and which of them the job does without.

    failed(reader, holder) ─► twice in different attempts: the link is broken ─► avoided: without these no broken link
                                                                                 is left
    answered(TaskExecutor): the JobMaster reaches it    next_attempts: failures from now on are of other attempts

A connection that fails once says little: a machine may be busy, a process about to be found dead. Which of two goes is
chosen so that few go (those with most failed links), then those that do not answer the JobMaster, then those that hold
less of the job's data: readers go where the data is. The choice is made anew with each failure, so a TaskManager that
was avoided for want of better knowledge is used again.

A slot of an avoided TaskManager is taken where there are no others. When the link fails then, too, the cluster has not
enough slots that reach each other, and ``hopeless`` says so after as many attempts.

Pure. Source: own; Flink tries again without end.
Held by: tests/jobmaster/test_broken_links.py
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

from engine.ids import ResourceId

#: number of failed attempts after which a link is broken
ATTEMPTS_MIN: Final = 2

_Link = frozenset[ResourceId]


class BrokenLinks:
    """Broken links of one job. Links have no direction: the reader that fails may itself be the one that is cut off."""

    def __init__(self) -> None:
        #: failed attempts of each link, and those in which it failed although one of its ends was avoided
        self._failed: Counter[_Link] = Counter()
        self._failed_in_spite: Counter[_Link] = Counter()
        #: links that attempts of the current run have reported
        self._seen: set[_Link] = set()
        self._silent: set[ResourceId] = set()
        self.avoided: frozenset[ResourceId] = frozenset()

    def failed(self, reader: ResourceId, holder: ResourceId, bytes_held: Callable[[ResourceId], int]) -> bool:
        """Take note that a result could not be read; return whether other TaskExecutors are avoided since.

        Args: bytes_held: of the job's results that are still to be read.
        """
        link = frozenset((reader, holder))
        if len(link) < 2 or link in self._seen:
            return False
        self._seen.add(link)
        self._failed[link] += 1
        if not self.avoided.isdisjoint(link):
            self._failed_in_spite[link] += 1
        before, self.avoided = self.avoided, self._cover(bytes_held)
        self._silent.add(holder)  # until it answers; the reader has just reported
        return self.avoided != before

    def answered(self, resource_id: ResourceId) -> None:
        """Take note that the JobMaster reaches a TaskExecutor."""
        self._silent.discard(resource_id)

    def lost(self, resource_id: ResourceId) -> None:
        """Remove a TaskExecutor that is gone: whatever comes in its place is another one."""
        for counts in (self._failed, self._failed_in_spite):
            for link in [link for link in counts if resource_id in link]:
                del counts[link]
        self._silent.discard(resource_id)
        self.avoided -= {resource_id}

    def next_attempts(self) -> None:
        """Take note that what failed runs again."""
        self._seen.clear()

    def is_hopeless(self, reader: ResourceId, holder: ResourceId) -> bool:
        """Whether both are used again and again, since the cluster has not enough slots without one of them."""
        return self._failed_in_spite[frozenset((reader, holder))] >= ATTEMPTS_MIN

    def _cover(self, bytes_held: Callable[[ResourceId], int]) -> frozenset[ResourceId]:
        """Return few TaskExecutors that have a part in all broken links."""
        broken = {link for link, count in self._failed.items() if count >= ATTEMPTS_MIN}
        suspects = Counter(resource_id for link in self._failed for resource_id in link)
        chosen: set[ResourceId] = set()
        while broken:
            ends = {resource_id for link in broken for resource_id in link}
            worst = max(sorted(ends), key=lambda each: (suspects[each], each in self._silent, -bytes_held(each)))
            chosen.add(worst)
            broken = {link for link in broken if worst not in link}
        return frozenset(chosen)
