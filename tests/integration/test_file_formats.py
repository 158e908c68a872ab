"""Whole jobs from and to JSON lines, Arrow IPC and ORC, by DataSet and by SQL, read by DuckDB and pyarrow too."""

from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest
from pyarrow import feather, orc

from engine import Environment, col, sum_

ROWS = pa.table(
    {"id": range(3000), "name": [f"n{index % 9}" for index in range(3000)], "xs": [[index] for index in range(3000)]}
)


@pytest.fixture
def env():
    with Environment(config={"parallelism.default": 2}) as environment:
        yield environment


def parts(folder):
    return sorted(folder.iterdir())


def test_rows_come_back_from_every_format(env, tmp_path):
    data = env.from_arrow(ROWS)
    data.write_json(tmp_path / "json", compression="zstd")
    data.write_ipc(tmp_path / "ipc", compression="lz4")
    data.write_ipc(tmp_path / "stream", format="stream")
    data.write_orc(tmp_path / "orc")
    env.execute()
    reads = {"json": env.read_json, "ipc": env.read_ipc, "stream": env.read_ipc, "orc": env.read_orc}
    for folder, read in reads.items():
        assert read(tmp_path / folder).sort("id").to_arrow() == ROWS, folder
        total = read(tmp_path / folder).filter(col("id") >= 10).group_by("name").agg(n=sum_(col("id"))).sort("name")
        assert (
            total.to_arrow().to_pydict()
            == duckdb.sql("SELECT name, sum(id)::BIGINT n FROM ROWS WHERE id >= 10 GROUP BY name ORDER BY name")
            .to_arrow_table()
            .to_pydict()
        ), folder
    assert parts(tmp_path / "json")[0].name == "part-00000.json.zst"
    assert parts(tmp_path / "stream")[0].name == "part-00000.arrows"
    assert sum(feather.read_table(path).num_rows for path in parts(tmp_path / "ipc")) == 3000
    assert sum(orc.read_table(path).num_rows for path in parts(tmp_path / "orc")) == 3000


@pytest.mark.parametrize("kind", ["csv", "json"])
@pytest.mark.parametrize(
    "made", [pa.decimal32, pa.decimal64, pa.decimal128, pa.decimal256], ids=lambda made: made.__name__
)
def test_texts_keep_decimals_of_negative_scale(env, tmp_path, kind, made):
    values = [Decimal("9999900"), Decimal("-1200"), Decimal(0), None]
    data_type = made(5, -2)
    table = pa.table({"a": pa.array(values, pa.decimal256(60, -2)).cast(data_type), "b": [1, 2, 3, 4]})
    getattr(env.from_arrow(table), f"write_{kind}")(tmp_path / "out")
    env.execute()
    found = getattr(env, f"read_{kind}")(tmp_path / "out", table.schema).sort("b").to_arrow()
    assert found["a"].type == data_type
    assert found["a"].to_pylist() == values


def test_sql_reads_them_by_their_endings(env, tmp_path):
    data = env.from_arrow(ROWS)
    data.write_json(tmp_path / "json")
    data.write_orc(tmp_path / "orc")
    env.execute()
    for path in (parts(tmp_path / "json")[0], parts(tmp_path / "orc")[0]):
        assert env.sql(f"SELECT count(*) AS n, max(id) AS m FROM '{path}'").collect()[0].m <= 2999
