"""Every decoder on damaged bytes: an error of the engine or a value; never a crash, never another exception.

More examples with ``TORTURE=1``; a crash would end the test run, which is the point.
"""

import datetime as dt
import decimal
import json
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine import Environment, col, sum_
from engine.commit.decision import Decision, decode_decision, encode_decision
from engine.connectors.records_manifest import (
    RecordsColumn,
    RecordsFile,
    RecordsManifest,
    decode_manifest,
    encode_manifest,
)
from engine.errors import CorruptBlockError, DataError, EngineError
from engine.exchange.partition_file import PartitionFile, partition_identity
from engine.gateways.messages import MESSAGE_TYPES, RequestJobStatus
from engine.graph.deployment import StagedFile
from engine.graph.plan import decode_plan, encode_plan
from engine.ids import ExecutionAttemptId, IntermediateDataSetId, JobId, JobVertexId, ResultPartitionId
from engine.iomanager.block_format import decode_block, encode_block
from engine.iomanager.spill_identity import SpillIdentity
from engine.lowering.logical_node import build_plan
from engine.records.row_codec import RowCodec
from engine.rpc.codec import MessageCodec
from tests.commit.decided import decided_output
from tests.property.damage import damaged

JOB = JobId("0123456789abcdef" * 2)


def examples(count):
    return settings(
        max_examples=count,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )


FLAT = pa.table(
    {
        "b": pa.array([True, None, False]),
        "i": pa.array([1, -1, None], pa.int32()),
        "s": pa.array(["", "a long value of some bytes", None]),
        "x": pa.array([b"\0\xff", b"", None], pa.large_binary()),
        "d": pa.array([decimal.Decimal("1.50"), None, decimal.Decimal("-2.25")], pa.decimal128(9, 2)),
        "t": pa.array([dt.datetime(2020, 1, 1), None, None], pa.timestamp("us")),
    }
)
NESTED = pa.table(
    {
        "l": pa.array([[1, None, 3], [], None], pa.list_(pa.int64())),
        "ll": pa.array([[["a"], []], None, [["b", "c", None]]], pa.large_list(pa.list_(pa.string()))),
        "st": pa.array([{"a": 1, "b": "x"}, None, {"a": None, "b": None}]),
        "m": pa.array([[("k", 1.5)], [], None], pa.map_(pa.string(), pa.float64())),
        "f": pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int16(), 2)),
    }
)


@pytest.mark.parametrize("table", [FLAT, NESTED], ids=["flat", "nested"])
@given(data=st.data())
@examples(400)
def test_damaged_rows_are_an_error_or_other_values(table, data):
    codec = RowCodec(table.schema)
    page = codec.to_rows(table.combine_chunks().to_batches()[0])
    try:
        batch = codec.from_rows(data.draw(damaged(page)))
    except (CorruptBlockError, DataError):
        return
    # What was decoded is a batch that Arrow finds sound, but for text that is no longer UTF-8.
    assert batch.schema == codec.schema
    batch.validate()


IDENTITY = SpillIdentity(JOB.value, 3, 1, 2)


@pytest.mark.parametrize("compress", [False, True])
@given(data=st.data())
@examples(200)
def test_damaged_blocks_are_refused(compress, data):
    good = encode_block(b"a row of bytes " * 300, IDENTITY, 1, 0, compress)
    bad = data.draw(damaged(good))
    if bad == good:
        return
    with pytest.raises(CorruptBlockError, match="offset 64"):
        decode_block(bad, IDENTITY, 1, 0, "spill-1", 64)


@given(data=st.data())
@examples(100)
def test_damaged_partition_files_are_refused(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("partition")
    attempt = ExecutionAttemptId(JobVertexId(1), 0, 0, "f" * 16)
    identity = partition_identity(ResultPartitionId(IntermediateDataSetId(JobVertexId(1), 0), attempt))
    file = PartitionFile(folder / "a.shuffle.data", identity, 3)
    file.finish()
    paths = [file.path, file.index_path]
    which = paths[data.draw(st.integers(0, 1))]
    good = which.read_bytes()
    bad = data.draw(damaged(good))
    which.write_bytes(bad)
    try:
        if bad != good:
            with pytest.raises(CorruptBlockError, match=str(which)):
                PartitionFile.open(file.path, identity)
    finally:
        file.delete()


ENVIRONMENT = Environment(config={"parallelism.default": 2, "taskmanager.memory.process.size": "512mb"})


@pytest.fixture(scope="module", autouse=True)
def the_environment_is_closed(nothing_is_left_by_the_module):
    yield
    ENVIRONMENT.close()


def some_plan():
    rows = ENVIRONMENT.from_arrow(FLAT)
    grouped = (
        rows.filter(col("i") > 0)
        .join(rows.select("i", col("s").alias("s2")), on="i")
        .group_by("i")
        .agg(n=sum_(col("i")))
    )
    return build_plan([grouped.sort("n")._node], "plan")


@given(data=st.data())
@examples(300)
def test_damaged_plans_are_refused(data):
    good = encode_plan(some_plan())
    try:
        decode_plan(data.draw(damaged(good))).validate()
    except EngineError:
        return


@given(data=st.data())
@examples(300)
def test_damaged_messages_are_refused(data):
    codec = MessageCodec(MESSAGE_TYPES)
    good = codec.encode(RequestJobStatus(JOB))
    try:
        codec.decode(data.draw(damaged(good)))
    except EngineError:
        return


@given(data=st.data())
@examples(300)
def test_damaged_manifests_are_refused(data):
    manifest = RecordsManifest(
        FLAT.schema.serialize().to_pybytes(),
        (RecordsFile("part-00000.parquet", 3, 100, 77),),
        3,
        100,
        {"i": RecordsColumn(-1, 1, 1, 2.0, (("1", 0.5),))},
    )
    try:
        decode_manifest(data.draw(damaged(encode_manifest(manifest))), "folder/_manifest.json")
    except DataError as error:
        assert "folder/_manifest.json" in str(error)


@given(data=st.data())
@examples(150)
def test_damaged_decisions_are_refused(data):
    staged = StagedFile(0, 0, "a-0.parquet", 3, 100)
    decision = Decision(JOB, 7, (decided_output(0, Path("/data/out"), Path("/data/staging"), False, [staged]),))
    try:
        decode_decision(data.draw(damaged(encode_decision(decision))), "folder/decision-7.json")
    except CorruptBlockError as error:
        assert "folder/decision-7.json" in str(error)


CSV = b'1,"a ""quoted"" one",2.5,2020-01-01\n2,plain,,\n3,"two\nlines",1e3,1999-12-31\n' * 3


@given(data=st.data())
@examples(60)
def test_damaged_csv_is_read_or_refused_with_its_place(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("csv") / "rows.csv"
    path.write_bytes(data.draw(damaged(CSV)))
    schema = pa.schema([("id", pa.int64()), ("text", pa.string()), ("number", pa.float64()), ("day", pa.date32())])
    try:
        ENVIRONMENT.read_csv(str(path), schema=schema).to_arrow().validate()
    except EngineError as error:
        assert str(path) in str(error)
        assert json.dumps(str(error))
