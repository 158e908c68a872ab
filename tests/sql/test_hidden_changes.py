"""A change stands alone: EXPLAIN and its siblings do not make it while they look at it."""

import pyarrow as pa
import pytest

from engine import Environment
from engine.errors import PlanError


@pytest.mark.parametrize("before", ["EXPLAIN", "EXPLAIN ANALYZE", "EXPLAIN (FORMAT html)"])
def test_explain_changes_nothing(tmp_path, before):
    pytest.importorskip("deltalake")
    path = str(tmp_path / "delta")
    with Environment(config={"parallelism.default": 1}) as env:
        env.from_arrow(pa.table({"n": [1, 2]})).write_delta(path)
        env.execute()
        for change in (
            f'DELETE FROM delta."{path}" WHERE n = 1',
            f'WITH a AS (SELECT 1 AS n) DELETE FROM delta."{path}" WHERE n = 1',
            f'/* a */ WITH a AS (SELECT 1 AS n) UPDATE delta."{path}" SET n = 5',
        ):
            with pytest.raises(PlanError, match="stands alone"):
                env.sql(f"{before} {change}")
        assert env.sql(f'SELECT sum(n) AS s FROM delta."{path}"').collect()[0].s == 3
