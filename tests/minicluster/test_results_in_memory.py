"""Results that are read twice stay in memory up to a quarter of the network buffers, and lie in a file beyond."""

from __future__ import annotations

import pyarrow as pa
import pytest

from engine import Environment
from engine.exchange.partition_file import PartitionFile

KEYS = 150_000
TWICE = "WITH g AS (SELECT k, sum(v) s FROM t GROUP BY k) SELECT count(*) c FROM g a JOIN g b ON a.k = b.s"


@pytest.fixture
def written(monkeypatch):
    """Numbers of buffers that went to files of results."""
    counts, append = [], PartitionFile.append

    def counted(self, subpartition, buffers):
        counts.append(len(buffers))
        append(self, subpartition, buffers)

    monkeypatch.setattr(PartitionFile, "append", counted)
    return counts


@pytest.mark.parametrize(("most", "is_stored"), [(None, False), ("1mb", True)])
def test_a_shared_result_of_some_megabytes_lies_in_a_file_where_buffers_are_few(written, most, is_stored):
    config = {} if most is None else {"taskmanager.memory.network.max": most, "taskmanager.memory.network.min": most}
    with Environment(config=config) as env:
        env.register("t", env.from_arrow(pa.table({"k": range(KEYS), "v": range(KEYS)})))
        assert "BATCH" in env.sql(TWICE).explain()
        assert env.sql(TWICE).to_arrow()["c"].to_pylist() == [KEYS]
    assert (sum(written) > 0) is is_stored
