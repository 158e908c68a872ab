"""Versions: the forms of what processes tell each other and keep for each other, and which of them this program knows.

    PROTOCOL   messages between processes, and with them everything that one process reads of another one
    HANDLE, JOURNAL, DECISION, BACKUP   what a JobManager keeps of jobs, for the next one
    ROWS, FRAMES   rows and frames between TaskManagers
    RESULTS, SPILL  files of a TaskManager, which no other process reads

A program knows the forms from ``oldest`` to ``newest`` of each, and writes the newest. Two processes work together if
there is a protocol that both know. Until a release, its protocol may still get fields. After it, a change of a message
needs a new number; the number before stays known, so a release works beside the one before it.

A form may get fields that have a default and may be lost: an older program ignores them, and leaves them out when it
writes again. What may not be ignored (``engine.graph.exact``) an older program refuses by name. What is neither, such
as another layout of rows, ends the work side by side: ``oldest`` of PROTOCOL is raised to its ``newest`` then.

Held by: tests/gateways/test_forms.py
"""

from __future__ import annotations

from typing import Final, NamedTuple

from engine.errors import VersionMismatchError


class Form(NamedTuple):
    """One form: its number now, and the oldest one that is understood."""

    what: str
    newest: int
    oldest: int

    def check(self, number: int, where: str) -> None:
        """Raise VersionMismatchError for the form of another program that this one does not know."""
        if not self.oldest <= number <= self.newest:
            known = f"{self.oldest} to {self.newest}" if self.oldest < self.newest else f"{self.newest}"
            kind = "a newer" if number > self.newest else "an older"
            raise VersionMismatchError(
                f"{where} is a {self.what} of form {number}, written by {kind} version of Drey; "
                f"this one knows form {known}: start a process of that version to go on with it"
            )


PROTOCOL: Final = Form("message", 1, 1)
HANDLE: Final = Form("handle of a job", 1, 1)
JOURNAL: Final = Form("journal", 1, 1)
DECISION: Final = Form("decision", 1, 1)
BACKUP: Final = Form("backup", 1, 1)
ROWS: Final = Form("row", 2, 2)
FRAMES: Final = Form("frame", 1, 1)
RESULTS: Final = Form("result partition", 1, 1)
SPILL: Final = Form("spill file", 1, 1)

#: all forms, by the names that the documentation has for them
FORMS: Final = {
    "protocol": PROTOCOL,
    "handle": HANDLE,
    "journal": JOURNAL,
    "decision": DECISION,
    "backup": BACKUP,
    "rows": ROWS,
    "frames": FRAMES,
    "results": RESULTS,
    "spill": SPILL,
}
