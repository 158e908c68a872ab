"""Tables of a REST catalog are made, read and changed through its server; a token for it is in no plan."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import requests

from engine import Environment, col, iceberg
from engine.errors import ResourceError
from engine.iceberg_tables.folder_catalog import FolderCatalog
from tests.iceberg_tables.rest_server import serving

pytestmark = pytest.mark.thorough


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_a_table_of_a_rest_catalog(env: Environment, tmp_path: Path, mode: str) -> None:
    inner = FolderCatalog(str(tmp_path))
    inner.create_namespace("db")
    with serving(inner) as (uri, asked):
        catalog: dict[str, Any] = {"name": "lake", "type": "rest", "uri": uri, "token": "a-secret-token"}
        rows = pa.table({"id": range(20), "p": ["a", "b"] * 10})
        env.from_arrow(rows).write_iceberg(
            "db.t", catalog, partition_by=["p", "bucket(2, id)"], properties={"write.merge.mode": mode}
        )
        env.execute()
        data = env.read_iceberg("db.t", catalog).filter(col("id") > 15)
        assert "a-secret-token" not in data.explain()
        changes = env.from_arrow(pa.table({"id": [3, 40], "p": ["c", "c"]}))
        assert changes.merge_into(iceberg("db.t", catalog), "id")[:3] == (1, 1, 0)
        env.attach("lake", catalog)
        assert tuple(env.sql("DELETE FROM lake.db.t WHERE id < 3").collect()[0])[:3] == (0, 0, 3)
        found = sorted(tuple(row) for row in env.sql("SELECT * FROM lake.db.t").collect())
        wanted = [(k, "c" if k == 3 else "ab"[k % 2]) for k in range(3, 20)]
        assert found == [*wanted, (40, "c")]
        # each change is one commit; making a table is staged without one
        assert asked.count("POST /v1/namespaces/db/tables/t") == 3


def test_a_server_that_does_not_answer_is_told(env: Environment) -> None:
    with pytest.raises(ResourceError, match="does not answer"):
        env.read_iceberg("db.t", Unanswered())


class Unanswered:
    """A catalog whose server is gone."""

    def load_table(self, _name: str) -> Any:
        """Raise what the client of HTTP raises."""
        raise requests.exceptions.ConnectionError("Connection refused")
