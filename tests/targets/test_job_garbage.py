"""What a statement and its tasks made is freed as it ends: in cycles it would wait for a collection of all objects."""

from __future__ import annotations

import gc
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from engine import Environment

STATEMENT = """
    select g, sum(v), count(distinct w) from rows join (select g as h, max(v) as m from rows group by g) on g = h
    where v < m group by g order by g
"""


def test_a_statement_leaves_no_rooms_of_its_own_to_the_collector(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"g": [1, 2, 1, 2] * 500, "v": list(range(2000)), "w": [1, 2, 3, 4] * 500}), path)
    with Environment() as env:
        env.register("rows", env.read_parquet(path))
        expected = env.sql(STATEMENT).to_arrow()
        gc.collect()
        gc.disable()
        try:
            assert env.sql(STATEMENT).to_arrow().equals(expected)
            gc.set_debug(gc.DEBUG_SAVEALL)
            gc.collect()
        finally:
            gc.set_debug(0)
            gc.enable()
        left = Counter(type(one).__name__ for one in gc.garbage if type(one).__module__.startswith("engine."))
        gc.garbage.clear()
    assert not left.keys() & {"ParquetReader", "TaskContext", "BlockingPartition", "BlockingView", "Frame", "DataSet"}
