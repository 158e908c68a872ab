"""Whole jobs from and to JSON lines, Arrow IPC and ORC, by DataSet and by SQL, read by DuckDB and pyarrow too."""

import duckdb
import pyarrow as pa
import pytest
from pyarrow import feather, orc

from engine import Environment, col, sum_
from engine.errors import ConfigurationError, NotYetSupportedError

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


def test_sql_reads_them_by_their_endings(env, tmp_path):
    pytest.importorskip("datafusion")
    data = env.from_arrow(ROWS)
    data.write_json(tmp_path / "json")
    data.write_orc(tmp_path / "orc")
    env.execute()
    for path in (parts(tmp_path / "json")[0], parts(tmp_path / "orc")[0]):
        assert env.sql(f"SELECT count(*) AS n, max(id) AS m FROM '{path}'").collect()[0].m <= 2999


def test_what_is_not_there_is_refused_by_name(env, tmp_path):
    data = env.from_arrow(ROWS)
    for call in (
        lambda: env.read_delta("x"),
        lambda: data.write_delta("x"),
    ):
        with pytest.raises(NotYetSupportedError, match=r"read_|write_"):
            call()
    with pytest.raises(ConfigurationError, match="write_ipc: format='feather': choose file or stream"):
        data.write_ipc(tmp_path / "x", format="feather")
    with pytest.raises(ConfigurationError, match="write_ipc: compression='gzip': choose lz4"):
        data.write_ipc(tmp_path / "x", compression="gzip")
