"""Names of data: as OpenLineage has them, the same for the job that writes and the one that reads."""

import pyarrow as pa
import pytest

from engine import Environment
from engine.graph.source_spec import SinkSpec
from engine.lineage.datasets import Dataset, _common, dataset_of, named, output_of


@pytest.fixture
def env():
    with Environment() as environment:
        yield environment


@pytest.mark.parametrize(
    ("path", "namespace", "name"),
    [
        ("/data/a.parquet", "file", "/data/a.parquet"),
        ("/data/out/", "file", "/data/out"),
        ("file:///data/out", "file", "/data/out"),
        ("s3://bucket/a/b.csv", "s3://bucket", "a/b.csv"),
        ("s3://bucket", "s3://bucket", "/"),
        ("postgresql://me:pw@host:5432/db", "postgresql://host:5432", "db"),
    ],
)
def test_paths_and_places(path, namespace, name):
    assert named(path) == Dataset(namespace, name)


def test_files_are_named_by_the_folder_that_has_them():
    assert _common(("/a/b/1.parquet", "/a/b/2.parquet")) == "/a/b"
    assert _common(("/a/b/year=1/x.parquet", "/a/b/year=1/y.parquet")) == "/a/b"
    assert _common(("/a/b/x.parquet",)) == "/a/b/x.parquet"
    assert _common(("s3://bucket/a/1.csv", "s3://bucket/b/2.csv")) == "s3://bucket"


@pytest.mark.parametrize("kind", ["parquet", "csv", "json", "delta", "iceberg"])
def test_what_a_job_writes_has_the_name_of_what_the_next_one_reads(env, tmp_path, kind):
    data, path = env.from_arrow(pa.table({"n": [1]})), str(tmp_path / "out")
    if kind == "iceberg":
        (tmp_path / "lake" / "db").mkdir(parents=True)
        data.write_iceberg("db.out", str(tmp_path / "lake"))
    else:
        getattr(data, f"write_{kind}")(path)
    written = output_of(env._sinks[0].operator.spec)
    env.execute()
    read = (
        env.read_iceberg("db.out", str(tmp_path / "lake")) if kind == "iceberg" else getattr(env, f"read_{kind}")(path)
    )
    assert dataset_of(read._node.operator) == written
    assert written.namespace == "file" and written.name.startswith(str(tmp_path))


def test_what_a_program_has_in_its_memory_has_no_name(env):
    assert dataset_of(env.from_arrow(pa.table({"n": [1]}))._node.operator) is None
    assert output_of(SinkSpec("arrow", "/tmp/x")) is None
