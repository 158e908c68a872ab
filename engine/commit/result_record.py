"""The record of how a job ended: created if absent, keyed by job id, read by whoever is asked later.

    <folder>/<job id>.json   {"job_id", "name", "status", "epoch", "runtime_ms", "message"}

A leader that takes over finds the record and does not run the job again. A lower epoch than the one recorded is
refused. Source: Flink's JobResultStore.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from engine.commit.durable_file import create_if_absent
from engine.errors import CorruptBlockError, FencedError
from engine.ids import JobId


class JobResultRecord(msgspec.Struct, frozen=True):
    """How a job ended. ``status`` is FINISHED, FAILED or CANCELED."""

    job_id: JobId
    name: str
    status: str
    epoch: int
    runtime_ms: int
    message: str = ""


class JobResultStore:
    """Records of ended jobs in one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self, job_id: JobId) -> JobResultRecord | None:
        """Return the record of a job, or None."""
        path = self._folder / f"{job_id}.json"
        try:
            return msgspec.json.decode(path.read_bytes(), type=JobResultRecord)
        except FileNotFoundError:
            return None
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise CorruptBlockError(f"{path} is not a result record: {error}") from error

    def write(self, record: JobResultRecord) -> JobResultRecord:
        """Create the record unless there is one; return the one in force, or raise FencedError."""
        if create_if_absent(self._folder / f"{record.job_id}.json", msgspec.json.encode(record)):
            return record
        in_force = self.read(record.job_id)
        assert in_force is not None, f"the record of {record.job_id} was there and is gone"
        if in_force.epoch > record.epoch:
            raise FencedError(in_force.epoch, record.epoch)
        return in_force
