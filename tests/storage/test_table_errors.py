"""A store's refusals, in every call on a table or a folder: one text, with the call, the place, and what to do."""

import pyarrow as pa
import pytest

from engine import Environment, delta, iceberg
from engine.errors import PlanError
from tests.storage.moto_server import KEYS

pytest.importorskip("deltalake")
pytest.importorskip("pyiceberg")

ROWS = pa.table({"id": [1], "v": [2]})
PLACE, LAKE = "s3://nowhere/x", "s3://nowhere/lake"
CALLS = {
    "write_parquet append": lambda env, rows: rows.write_parquet(PLACE, mode="append"),
    "write_csv append": lambda env, rows: rows.write_csv(PLACE, mode="append"),
    "write_parquet overwrite_partitions": lambda env, rows: rows.write_parquet(
        PLACE, mode="overwrite_partitions", partition_by="id"
    ),
    "write_delta": lambda env, rows: rows.write_delta(PLACE),
    "write_delta append": lambda env, rows: rows.write_delta(PLACE, mode="append"),
    "read_delta": lambda env, rows: env.read_delta(PLACE),
    "read_changes": lambda env, rows: env.read_changes(PLACE),
    "merge_into": lambda env, rows: rows.merge_into(delta(PLACE), on="id"),
    "optimize": lambda env, rows: env.optimize(delta(PLACE)),
    "write_iceberg": lambda env, rows: rows.write_iceberg("db.t", LAKE),
    "write_iceberg append": lambda env, rows: rows.write_iceberg("db.t", LAKE, mode="append"),
    "read_iceberg": lambda env, rows: env.read_iceberg("db.t", LAKE),
    "read_iceberg of a path": lambda env, rows: env.read_iceberg(f"{LAKE}/db/t"),
    "merge_into iceberg": lambda env, rows: rows.merge_into(iceberg("db.t", LAKE), on="id"),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_bucket_that_is_missing_is_told_by_the_call_that_names_it(server, call):
    with Environment(server.settings) as env:
        rows = env.from_arrow(ROWS)
        words = r"there is no such bucket \(NoSuchBucket, request .*; look at its name"
        with pytest.raises(PlanError, match=words) as caught:
            CALLS[call](env, rows)
        env._sinks.clear()
    text = str(caught.value)
    assert text.startswith(call.partition(" ")[0])
    assert "nowhere" in text
    assert "\x1b" not in text and "<Code>" not in text
    assert KEYS["secret_access_key"] not in text


@pytest.mark.parametrize("call", ["read_delta", "write_delta append", "read_iceberg", "write_parquet append"])
def test_keys_that_are_refused_are_told(server, call):
    with Environment(server.settings) as env, server.checked_keys():
        rows = env.from_arrow(ROWS)
        with pytest.raises(PlanError, match=r"the credentials are wrong|access is denied") as caught:
            CALLS[call](env, rows)
        env._sinks.clear()
    assert "AWS_ACCESS_KEY_ID" in str(caught.value)
