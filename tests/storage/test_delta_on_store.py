"""A Delta table in a bucket of a real server is read with the settings of its store; no secret is in its plan."""

from concurrent.futures import ThreadPoolExecutor

import msgspec
import pyarrow as pa
import pytest

from engine import Environment, col, delta
from engine.errors import EngineError, PlanError
from engine.storage.file_systems import file_system_of
from tests.storage.moto_server import KEYS

deltalake = pytest.importorskip("deltalake")


def options_of(server):
    return {"endpoint": server.endpoint, "region": "us-east-1", "allow_http": "true", **KEYS}


def test_a_table_in_a_bucket_is_read(server):
    options = options_of(server)
    place = "s3://data/delta/table"
    for part in range(3):
        rows = pa.table({"id": [10 * part, 10 * part + 1], "p": ["a b", f"x/{part}"]})
        deltalake.write_deltalake(place, rows, mode="append", partition_by=["p"], storage_options=options)
    with Environment({"parallelism.default": "2", **server.settings}) as env:
        data = env.read_delta(place)
        assert sorted(data.to_arrow().column("id").to_pylist()) == [0, 1, 10, 11, 20, 21]
        wanted = data.filter(col("p") == "x/1")
        assert "reads 1 of 6 files" in wanted.explain()
        assert wanted.collect() == [(11, "x/1")]
        assert env.read_delta(place, version=0).count() == 2
        plan = msgspec.msgpack.encode(data._node.operator)
        assert KEYS["secret_access_key"].encode() not in plan
        for nothing in ("s3://data/delta/nothing", "s3://nowhere/table"):
            with pytest.raises(EngineError, match=r"no Delta table|NoSuchBucket") as caught:
                env.read_delta(nothing)
            assert KEYS["secret_access_key"] not in str(caught.value)


def test_a_table_in_a_bucket_is_written_and_changed(server):
    place, options = "s3://data/written/table", options_of(server)
    rows = pa.table({"id": [1, 2, 3], "p": ["a b", "x/y", None]})
    with Environment({"parallelism.default": "2"}) as env:
        env.from_arrow(rows).write_delta(place, partition_by="p", storage_options=options)
        assert env.execute().outputs[0].facts["version"] == 0
        with pytest.raises(PlanError, match="there is a table"):
            env.from_arrow(rows).write_delta(place)
            env.execute()
    with Environment({"parallelism.default": "2", **server.settings}) as env:
        changes = env.from_arrow(pa.table({"id": [2, 4], "p": ["new", "x/y"]}))
        assert changes.merge_into(delta(place), on="id")[:4] == (1, 1, 0, 1)
        assert env.read_delta(place).sort("id").to_arrow().column("p").to_pylist() == ["a b", "new", None, "x/y"]
    table = deltalake.DeltaTable(place, storage_options=options)
    assert sorted(table.to_pyarrow_table().column("id").to_pylist()) == [1, 2, 3, 4]
    left = file_system_of(place).walk(place)
    assert not [name for _, _, names in left for name in names if name == "owner.json"]


@pytest.mark.thorough
def test_writers_at_once_lose_nothing(server):
    place = "s3://data/several/table"
    deltalake.write_deltalake(place, pa.table({"id": pa.array([], pa.int64())}), storage_options=options_of(server))

    def append(number):
        with Environment({"parallelism.default": "1", **server.settings}) as env:
            env.from_arrow(pa.table({"id": [number]})).write_delta(place, mode="append")
            return env.execute().outputs[0].facts["version"]

    with ThreadPoolExecutor(4) as threads:
        assert sorted(threads.map(append, range(4))) == [1, 2, 3, 4]
    with Environment(server.settings) as env:
        assert sorted(env.read_delta(place).to_arrow().column("id").to_pylist()) == [0, 1, 2, 3]
