"""The decision: which attempts' files are the output of a job. Created if absent, then never changed.

    {"format": 1, "job_id": ..., "epoch": n,
     "outputs": [{"sink_index", "target", "staging", "overwrite", "files": [{"name", "part"} ...],
                  "texts": [{"name", "content"} ...]} ...]}

A leader that finds a decision repeats it and makes none of its own. Where decisions lie, and which process may make
one, is up to ``engine.dispatcher.job_storage``. Files stand in the order of subtasks, those of a subtask in the order
of their rows; that is the numbering of the parts.

Held by: tests/commit/test_publish.py
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import msgspec

from engine.errors import CorruptBlockError
from engine.graph.deployment import StagedFile
from engine.ids import JobId


class DecidedFile(msgspec.Struct, frozen=True):
    """A staged file and its name in the target."""

    name: str
    part: str
    row_count: int = 0
    size_bytes: int = 0


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


class Decision(msgspec.Struct, frozen=True):
    """The outcome of a job, by the leader of ``epoch``."""

    job_id: JobId
    epoch: int
    outputs: tuple[DecidedOutput, ...]
    format: int = 1


def decided_output(
    sink_index: int,
    target: Path,
    staging: Path,
    overwrite: bool,
    staged: Iterable[StagedFile],
    added_by: tuple[str, JobId] | None = None,
    *,
    is_passing: bool = False,
) -> DecidedOutput:
    """Return the output of one sink from the staged files of its finished attempts, numbered by subtask in each folder.

    is_passing: whether the output need not survive a crash of the machine.
    added_by: the mode in which files come into a target that stays, and the job, which is part of their names then.
    """
    ordered = sorted((file for file in staged if file.name), key=lambda file: (file.subtask_index, file.name))
    mode, suffix = (added_by[0], f"-{added_by[1]}") if added_by is not None else ("", "")
    counts: Counter[str] = Counter()
    files = []
    for file in ordered:
        part = f"part-{counts[file.folder]:05d}{suffix}{_extension(file.name)}"
        counts[file.folder] += 1
        place = f"{file.folder}/{part}" if file.folder else part
        files.append(DecidedFile(file.name, place, file.row_count, file.size_bytes))
    return DecidedOutput(
        sink_index, str(target), str(staging), overwrite, tuple(files), mode=mode, is_passing=is_passing
    )


def _extension(name: str) -> str:
    """Return the extension of a staged file's name, from its first dot: ".csv.gz"."""
    return name[name.index(".") :] if "." in name else ""


def encode_decision(decision: Decision) -> bytes:
    """Return the JSON of a decision."""
    return msgspec.json.format(msgspec.json.encode(decision), indent=1)


def decode_decision(content: bytes, source: str) -> Decision:
    """Return the decision in a file's content; CorruptBlockError names its ``source`` when it is none."""
    try:
        decision = msgspec.json.decode(content, type=Decision)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise CorruptBlockError(f"{source} is not a decision: {error}") from error
    if decision.format != 1:
        raise CorruptBlockError(f"{source} is a decision of format {decision.format}, not 1")
    return decision
