"""Outputs that jobs on Spark cannot write are refused before a task begins."""

import pytest

from engine.dataframes.outputs import Outputs
from engine.errors import PlanError
from engine.graph.source_spec import SinkSpec
from engine.ids import JobId
from engine.storage import file_systems
from tests.storage.memory import MemoryStore


def test_an_output_on_a_store_is_refused_and_nothing_is_staged_for_the_others(monkeypatch, tmp_path):
    store = MemoryStore()
    monkeypatch.setattr(file_systems, "FILE_SYSTEMS", (file_systems.LOCAL, store))
    specs = [SinkSpec("csv", str(tmp_path / "out")), SinkSpec("csv", "memory://bucket/out")]
    with pytest.raises(PlanError, match="output memory://bucket/out: target spark writes to folders"):
        Outputs(JobId("a" * 32), specs)
    assert store.files == {} and list(tmp_path.iterdir()) == []
