"""The decided output of one sink of plain files, for tests of steps that follow a decision."""

import os

from engine.commit.folder_target import FolderTarget
from engine.graph.deployment import Staging
from engine.graph.source_spec import SinkSpec
from engine.ids import JobId


def decided_output(sink_index, target, staging, overwrite, staged, added_by=None):
    """Return the output of staged files; ``added_by``: mode and job of files that are added to a target."""
    mode, job_id = added_by or ("", JobId("0" * 32))
    spec = SinkSpec("csv", os.fspath(target), overwrite, mode=mode)
    place = Staging(os.fspath(staging), os.fspath(target))
    return FolderTarget().decided(spec, sink_index, place, list(staged), job_id)
