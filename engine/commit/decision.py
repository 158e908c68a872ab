"""The decision: which attempts' files are the output of a job. Created if absent, then never changed.

    {"format": 1, "job_id": ..., "epoch": n,
     "outputs": [{"sink_index", "target", "staging", "overwrite", "files": [{"name", "part"} ...],
                  "texts": [{"name", "content"} ...]} ...]}

    decide(decision) ─► the decision in force: ours, or the one that an earlier leader took

Whoever finds a decision repeats that one and not its own. A leader whose epoch is lower than the decision's is
refused: it lost its leadership while the job ran. The file is synchronised, and so is its folder, before ``decide``
returns. Files stand in the order of subtasks, and that is the numbering of the parts.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from engine.commit.durable_file import create_if_absent
from engine.errors import CorruptBlockError, FencedError
from engine.graph.deployment import StagedFile
from engine.ids import JobId

DECISION_FILE = "decision.json"


class DecidedFile(msgspec.Struct, frozen=True):
    """A staged file and its name in the target."""

    name: str
    part: str
    row_count: int = 0
    size_bytes: int = 0


class DecidedText(msgspec.Struct, frozen=True):
    """A small file that is part of an output as it was decided (the manifest of a record data set)."""

    name: str
    content: str


class DecidedOutput(msgspec.Struct, frozen=True, omit_defaults=True):
    """The files of one sink. ``target`` and ``staging`` are absolute."""

    sink_index: int
    target: str
    staging: str
    overwrite: bool
    files: tuple[DecidedFile, ...]
    #: written after the files are in their place
    texts: tuple[DecidedText, ...] = ()


class Decision(msgspec.Struct, frozen=True):
    """The outcome of a job, by the leader of ``epoch``."""

    job_id: JobId
    epoch: int
    outputs: tuple[DecidedOutput, ...]
    format: int = 1


def decided_output(
    sink_index: int, target: Path, staging: Path, overwrite: bool, staged: Iterable[StagedFile]
) -> DecidedOutput:
    """Return the output of one sink from the staged files of its finished attempts, numbered by subtask."""
    ordered = sorted(staged, key=lambda file: (file.subtask_index, file.name))
    files = tuple(
        DecidedFile(file.name, f"part-{index:05d}{Path(file.name).suffix}", file.row_count, file.size_bytes)
        for index, file in enumerate(ordered)
    )
    return DecidedOutput(sink_index, str(target), str(staging), overwrite, files)


def encode_decision(decision: Decision) -> bytes:
    """Return the JSON of a decision."""
    return msgspec.json.format(msgspec.json.encode(decision), indent=1)


class DecisionStore:
    """Decisions by job id in one folder.

    ``name`` is the file's name in it: a store of many jobs uses ``<job id>.json``, a staging folder DECISION_FILE.
    """

    def __init__(self, folder: Path, name: str | None = None) -> None:
        self._folder = folder
        self._name = name

    def path(self, job_id: JobId) -> Path:
        """Return the file of a job's decision."""
        return self._folder / (self._name or f"{job_id}.json")

    def read(self, job_id: JobId) -> Decision | None:
        """Return the decision of a job, or None; a file that is not one raises CorruptBlockError."""
        path = self.path(job_id)
        try:
            decision = msgspec.json.decode(path.read_bytes(), type=Decision)
        except FileNotFoundError:
            return None
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise CorruptBlockError(f"{path} is not a decision: {error}") from error
        if decision.job_id != job_id or decision.format != 1:
            raise CorruptBlockError(f"{path} is the decision of job {decision.job_id}, format {decision.format}")
        return decision

    def decide(self, decision: Decision) -> Decision:
        """Create the decision unless there is one; return the one in force, or raise FencedError."""
        if create_if_absent(self.path(decision.job_id), encode_decision(decision)):
            return decision
        in_force = self.read(decision.job_id)
        assert in_force is not None, f"{self.path(decision.job_id)} was there and is gone"
        if in_force.epoch > decision.epoch:
            raise FencedError(in_force.epoch, decision.epoch)
        return in_force
