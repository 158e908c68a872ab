"""A Delta table in a bucket of a real server is read with the settings of its store; no secret is in its plan."""

import msgspec
import pyarrow as pa
import pytest

from engine import Environment, col
from engine.errors import EngineError
from tests.storage.moto_server import KEYS

deltalake = pytest.importorskip("deltalake")


def test_a_table_in_a_bucket_is_read(server):
    options = {"endpoint": server.endpoint, "region": "us-east-1", "allow_http": "true", **KEYS}
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
