"""Whole jobs that read from a store: every reader, SQL, folders of values; and no secret anywhere."""

import pickle
import traceback

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from drey import Environment, PlanError, col
from engine.graph.plan import encode_plan
from engine.lowering.logical_node import build_plan
from engine.storage.file_systems import file_system_of
from tests.storage.moto_server import KEYS, running
from tests.storage.store_proxy import Proxy

pytestmark = [pytest.mark.integration]

ROWS = pa.table({"k": [index % 3 for index in range(3000)], "v": range(3000), "s": [f"{i}" for i in range(3000)]})


@pytest.fixture(scope="module")
def store():
    with running("data") as found:
        yield found


@pytest.fixture(scope="module")
def outputs(tmp_path_factory, store):
    """Upload what jobs have written, by format and in folders of values."""
    folder = tmp_path_factory.mktemp("outputs")
    with Environment() as env:
        rows = env.from_arrow(ROWS)
        for name in ("csv", "json", "ipc", "orc", "parquet"):
            options = {"header": True} if name == "csv" else {}
            getattr(rows, f"write_{name}")(folder / name, **options)
        rows.write_parquet(folder / "hive", partition_by=["k"])
        env.execute()
    store.upload(folder, "out")
    return "s3://data/out"


@pytest.fixture
def env(store):
    with Environment(config={**store.settings, "parallelism.default": 2}) as found:
        yield found


def ordered(data):
    return sorted(data.to_arrow().to_pylist(), key=lambda row: row["v"])


@pytest.mark.quick
def test_a_job_reads_parquet_of_a_store_with_filters_joins_and_sql(env, outputs):
    data = env.read_parquet(f"{outputs}/parquet")
    few = data.filter(col("v") < 10).select("k", "v")
    assert ordered(few) == [{"k": row % 3, "v": row} for row in range(10)]
    joined = data.join(env.read_parquet(f"{outputs}/parquet/*.parquet").select("v"), on="v").count()
    assert joined == 3000
    counted = env.sql(f"SELECT k, count(*) AS n FROM '{outputs}/hive' WHERE k > 0 GROUP BY k ORDER BY k")
    assert counted.to_arrow().to_pylist() == [{"k": 1, "n": 1000}, {"k": 2, "n": 1000}]


@pytest.mark.parametrize("name", ["csv", "json", "ipc", "orc", "parquet"])
def test_rows_of_each_reader_come_back(env, outputs, name):
    options = {"header": True, "schema": ROWS.schema} if name == "csv" else {}
    assert ordered(getattr(env, f"read_{name}")(f"{outputs}/{name}", **options)) == ROWS.to_pylist()
    assert env.read(name, f"{outputs}/{name}/*", **options).count() == 3000


def test_folders_of_values_are_columns_and_skipped(env, outputs):
    data = env.read_parquet(f"{outputs}/hive", file_name_column="file")
    assert [row["v"] for row in ordered(data.filter(col("k") == 1))] == list(range(1, 3000, 3))
    assert data.limit(1).collect()[0]["file"].startswith(f"{outputs}/hive/k=")


@pytest.mark.quick
def test_secrets_are_in_no_plan_page_pickle_or_message(env, outputs, store):
    data = env.read_parquet(f"{outputs}/parquet")
    shown = [data.explain(), repr(data), repr(env), repr(env.configuration), str(env.configuration.as_texts())]
    with pytest.raises(PlanError) as caught:
        env.read_parquet("s3://other/a.parquet")
    shown += [str(caught.value), repr(caught.value.__context__)]
    for secret in KEYS.values():
        assert not [text for text in shown if secret in text]
    assert not [key for key in env.configuration.as_texts() if key.startswith("storage.")]


def test_what_is_no_store_yet_is_refused_before_anything_is_done(env, outputs):
    with pytest.raises(PlanError, match=r"is not a record data set|manifest"):
        env.read_records(f"{outputs}/parquet")
    with pytest.raises(PlanError, match="this is not read from object stores or written to them"):
        env.read_csv(f"{outputs}/csv", header=True, on_bad_row="skip", bad_rows_path="s3://data/bad")


def test_environments_read_with_their_own_settings(store, outputs):
    settings = {**store.settings, "storage.s3.allow-http": False}
    with Environment(config=store.settings) as first, Environment(config=settings) as second:
        data = first.read_parquet(f"{outputs}/parquet")
        with pytest.raises(PlanError, match="allow-http"):
            second.read_parquet(f"{outputs}/parquet")
        assert data.count() == 3000


@pytest.mark.quick
def test_options_of_a_call_open_a_bucket_and_their_secrets_are_nowhere(store, outputs, tmp_path, caplog, capsys):
    options = {"endpoint_url": store.endpoint, "aws_region": "us-east-1", "allow_http": True, **KEYS}
    caplog.set_level("DEBUG")
    with Environment() as env:
        data = env.read_parquet(f"{outputs}/parquet", storage_options=options).filter(col("v") < 100)
        data.write_csv("s3://data/by-options", mode="overwrite", storage_options=options)
        plan = build_plan([*env._sinks], "job")
        result = env.execute()
        shown = [data.explain(), data.explain(analyze=True), repr(data), repr(env), str(result), repr(result)]
        shown += [str(plan), repr(encode_plan(plan)), repr(pickle.dumps(plan)), result._repr_html_()]
        with pytest.raises(PlanError) as caught:
            env.read_parquet(f"{outputs}/none", storage_options=options)
        shown += ["".join(traceback.format_exception(caught.value))]
        assert env.read_csv("s3://data/by-options", storage_options=options).count() == 100
    shown += [caplog.text, *capsys.readouterr()]
    for secret in KEYS.values():
        assert not [text for text in shown if secret in text]


@pytest.mark.quick
def test_requests_and_bytes_are_in_the_result_and_in_explain(env, outputs):
    data = env.read_csv(f"{outputs}/csv", header=True)
    text = data.explain(analyze=True)
    assert "s3://data: " in text and " KB read" in text
    data.write_csv("s3://data/counted", overwrite=True)
    result = env.execute()
    requests, read, written = result.stores["s3://data"]
    assert 10 <= requests <= 50 and read > 20_000 and written > 20_000
    assert result.to_json_dict()["stores"]["s3://data"]["read_bytes"] == read
    assert f"s3://data: {requests} requests" in str(result)


@pytest.mark.quick
def test_what_makes_a_plan_and_publishes_is_counted_as_the_store_sees_it(store, outputs):
    proxy = Proxy(store.endpoint)
    with proxy.running(), Environment(config={**store.settings, "storage.s3.endpoint": proxy.endpoint}) as env:
        env.read_parquet(f"{outputs}/parquet").filter(col("v") < 100).write_csv("s3://data/all-counted")
        requests, _, _ = env.execute().stores["s3://data"]
        assert requests == len(proxy.requests)
        seen = len(proxy.requests)
        text = env.read_csv("s3://data/all-counted").explain(analyze=True)
        assert f"s3://data: {len(proxy.requests) - seen} requests" in text, (
            "those of the job before are not of this one"
        )


@pytest.mark.quick
def test_a_file_of_parquet_is_opened_by_one_request_in_each_step(store, outputs):
    content = pa.BufferOutputStream()
    pq.write_table(ROWS, content)
    path = store.put("alone/a.parquet", content.getvalue().to_pybytes())
    proxy = Proxy(store.endpoint)
    with proxy.running(), Environment(config={**store.settings, "storage.s3.endpoint": proxy.endpoint}) as env:
        data = env.read_parquet(path)
        planned = [method for method, _ in proxy.requests]
        assert planned == ["GET"], "whether it is one file, and its footer"
        assert data.filter(col("v") >= 0).count() == 3000
        run = [method for method, _ in proxy.requests[len(planned) :]]
        assert run.count("GET") <= 2 and len(run) <= 4, run


def test_a_scan_of_some_columns_and_row_groups_reads_their_bytes_and_few_others(env, store):
    table = pa.table({"id": range(200_000), **{f"c{number}": [float(number)] * 200_000 for number in range(15)}})
    content = pa.BufferOutputStream()
    pq.write_table(table, content, row_group_size=50_000, use_dictionary=False, compression="none")
    path = store.put("wide/a.parquet", content.getvalue().to_pybytes())
    group = pq.ParquetFile(pa.BufferReader(content.getvalue())).metadata.row_group(1)
    needed = sum(group.column(column).total_compressed_size for column in (0, 4, 10))
    few = env.read_parquet(path).filter((col("id") >= 50_000) & (col("id") < 100_000)).select("id", "c3", "c9")
    # Whether the bucket heeds conditions is asked once, by the first output of a process.
    file_system_of("s3://data").objects.require_conditions("s3://data/tried")
    few.write_parquet("s3://data/few", overwrite=True)
    result = env.execute()
    requests, read, _ = result.stores["s3://data"]
    requests -= result.other_stores["s3://data"][0]
    assert env.read_parquet("s3://data/few").count() == 50_000
    assert needed <= read <= 1.1 * needed and requests <= 10, (read / needed, requests)
