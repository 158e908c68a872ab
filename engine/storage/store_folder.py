"""FolderState: which objects below a prefix are its content, while a publication into it goes on.

    <prefix>/_drey.json    {"phase": idle | adding | removing, "job_id", "added": [names], "removed": [names], ...}

    idle       all objects are the content
    adding     those that are added are not yet
    removing   those that are added are; those that are removed are not any more

A store cannot rename a prefix, so what is listed changes name by name. The state is one object, and it is replaced
only as the version that was read, so that its change from adding to removing is the moment at which all names change.
A listing here leaves out what the state leaves out. Names are relative to the prefix.

Held by: tests/storage/test_store_writing.py
"""

from __future__ import annotations

from typing import Final

import msgspec

#: name of the state below its prefix; readers of all engines skip names that begin with _
STATE_NAME: Final = "_drey.json"
IDLE: Final = "idle"
ADDING: Final = "adding"
REMOVING: Final = "removing"


class FolderState(msgspec.Struct, frozen=True, omit_defaults=True):
    """The publication that goes on below a prefix."""

    phase: str = IDLE
    #: number of changes so far: no two versions are alike
    sequence: int = 0
    job_id: str = ""
    #: time of the change, milliseconds since 1970
    changed_ms: int = 0
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    #: texts that are put when the added names count, by name
    texts: dict[str, str] = {}
    #: flag of a _SUCCESS that was there
    was_complete: bool = False
    #: jobs that were published here, the latest last
    jobs: tuple[str, ...] = ()

    @property
    def hidden(self) -> frozenset[str]:
        """The names that are not the content."""
        return frozenset({ADDING: self.added, REMOVING: self.removed}.get(self.phase, ()))


def decode_state(content: bytes) -> FolderState:
    """Return the state in an object; an idle one for an object of another program."""
    try:
        return msgspec.json.decode(content, type=FolderState)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return FolderState()


def encode_state(state: FolderState) -> bytes:
    """Return the content of the object."""
    return msgspec.json.encode(state)
