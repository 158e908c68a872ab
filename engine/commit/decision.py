"""The decision: which attempts' files are the output of a job. Created if absent, then never changed.

    {"format": 1, "job_id": ..., "epoch": n,
     "outputs": [{"sink_index", "target", "staging", "overwrite", "kind", "options",
                  "files": [{"name", "part", "row_count", "size_bytes", "folder", "statistics"} ...],
                  "texts": [{"name", "content"} ...]} ...]}

A leader that finds a decision repeats it and makes none of its own. Where decisions lie, and which process may make
one, is up to ``engine.dispatcher.job_storage``. Files stand in the order of subtasks, those of a subtask in the order
of their rows; that is the numbering of the parts.

Held by: tests/commit/test_publish.py
"""

from __future__ import annotations

import msgspec

from engine.errors import CorruptBlockError
from engine.ids import JobId
from engine.versions import DECISION


class DecidedFile(msgspec.Struct, frozen=True, omit_defaults=True):
    """A staged file and its name in the target."""

    name: str
    part: str
    row_count: int = 0
    size_bytes: int = 0
    #: folder of its partition in the target: "year=2024/kind=a"
    folder: str = ""
    #: statistics of its columns as its writer reported them, for targets that keep them
    statistics: str = ""


class DecidedText(msgspec.Struct, frozen=True):
    """A small file of an output whose text is part of the decision (the manifest of a record data set)."""

    name: str
    content: str


class DecidedOutput(msgspec.Struct, frozen=True, omit_defaults=True):
    """The files of one sink. ``target`` and ``staging`` are absolute."""

    sink_index: int
    target: str
    staging: str
    overwrite: bool
    files: tuple[DecidedFile, ...]
    #: texts that are written when the files are in their place
    texts: tuple[DecidedText, ...] = ()
    #: write mode, as in ``SinkSpec``
    mode: str = ""
    #: True if the output need not survive a crash of the machine: nothing is synced
    is_passing: bool = False
    #: name of the OutputTarget
    kind: str = "folder"
    #: options of the target as JSON, as in ``SinkSpec``
    options: str = ""


class Decision(msgspec.Struct, frozen=True):
    """The outcome of a job, by the leader of ``epoch``."""

    job_id: JobId
    epoch: int
    outputs: tuple[DecidedOutput, ...]
    format: int = DECISION.newest


def encode_decision(decision: Decision) -> bytes:
    """Return the JSON of a decision."""
    return msgspec.json.format(msgspec.json.encode(decision), indent=1)


def decode_decision(content: bytes, source: str) -> Decision:
    """Return the decision in a file's content; CorruptBlockError names its ``source`` when it is none."""
    try:
        decision = msgspec.json.decode(content, type=Decision)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise CorruptBlockError(f"{source} is not a decision: {error}") from error
    DECISION.check(decision.format, source)
    return decision
