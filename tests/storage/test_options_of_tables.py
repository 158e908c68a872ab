"""``storage_options=`` of every call on a table: two buckets with credentials of their own, which nothing shows."""

import datetime
import pickle

import msgspec
import pyarrow as pa
import pytest

from engine import Environment, delta, iceberg
from engine.errors import ConfigurationError, EngineError, PlanError
from engine.files.store_access import GivenOptions
from tests.storage.moto_server import REGION, running

pytest.importorskip("deltalake")
SqlCatalog = pytest.importorskip("pyiceberg.catalog.sql").SqlCatalog

ROWS = pa.table({"id": [1, 2, 3], "day": [datetime.date(2026, 1, day) for day in (1, 2, 3)]})
CHANGES = pa.table({"id": [3, 4], "day": [datetime.date(2026, 2, 1)] * 2})
MERGED = [1, 2, 3, 4]


@pytest.fixture(scope="module")
def stores():
    """Two servers; a bucket of the one is not one of the other, so that mixed up options find nothing."""
    with running("ours") as ours, running("theirs") as theirs:
        yield {"ours": ours, "theirs": theirs}


def options_of(store, name):
    keys = {"access_key_id": f"id-of-{name}", "secret_access_key": f"hush-of-{name}"}
    return {"endpoint_url": store.endpoint, "region": REGION, "allow_http": True, **keys}


@pytest.fixture
def options(stores):
    return {name: options_of(store, name) for name, store in stores.items()}


@pytest.fixture
def env():
    """An environment that has no settings of stores."""
    with Environment({"parallelism.default": "2"}) as found:
        yield found


def ids(data):
    assert b"hush-of" not in msgspec.msgpack.encode(data._node.operator)
    assert "hush-of" not in data.explain()
    return sorted(data.to_arrow().column("id").to_pylist())


class DeltaCalls:
    """The calls on a Delta table."""

    def __init__(self, env, bucket, options):
        self.env, self.options, self.place = env, options, f"s3://{bucket}/delta"

    def write(self, rows):
        properties = {"delta.enableChangeDataFeed": "true"}
        self.env.from_arrow(rows).write_delta(self.place, properties=properties, storage_options=self.options)
        self.env.execute()

    def read(self):
        return self.env.read_delta(self.place, storage_options=self.options)

    @property
    def target(self):
        return delta(self.place, storage_options=self.options)


class IcebergCalls:
    """The calls on a table of Iceberg."""

    def __init__(self, env, catalog, options):
        self.env, self.options, self.catalog = env, options, catalog

    def write(self, rows):
        data = self.env.from_arrow(rows)
        data.write_iceberg("db.t", self.catalog, partition_by="day", storage_options=self.options)
        self.env.execute()

    def read(self):
        return self.env.read_iceberg("db.t", self.catalog, storage_options=self.options)

    @property
    def target(self):
        return iceberg("db.t", self.catalog, storage_options=self.options)


def catalog_of(kind, bucket, folder):
    """A catalog that has no settings of a store."""
    if kind == "folder":
        return f"s3://{bucket}/lake"
    properties = {"type": "sql", "uri": f"sqlite:///{folder}/{bucket}.db", "warehouse": f"s3://{bucket}/{kind}"}
    catalog = SqlCatalog(bucket, **properties)
    catalog.create_namespace("db")
    return catalog if kind == "object" else {"name": bucket, **properties}


@pytest.fixture(params=["delta", "folder", "object", "properties"])
def tables(request, env, options, tmp_path):
    """The same table in both buckets, of one environment."""
    if request.param == "delta":
        return [DeltaCalls(env, name, each) for name, each in options.items()]
    return [IcebergCalls(env, catalog_of(request.param, name, tmp_path), each) for name, each in options.items()]


@pytest.mark.thorough
def test_tables_of_two_stores_are_written_read_and_changed_in_one_environment(env, tables):
    for table in tables:
        table.write(ROWS)
        assert "hush-of" not in repr(table.target)
    for table in tables:
        result = env.from_arrow(CHANGES).merge_into(table.target, on="id")
        assert (result.rows_inserted, result.rows_updated) == (1, 1)
        env.optimize(table.target)
    ours, theirs = (table.read() for table in tables)
    assert ids(ours) == ids(theirs) == MERGED
    # Both in one job.
    assert ids(ours.select("id").union(theirs.select("id"))) == sorted(MERGED * 2)


@pytest.mark.parametrize("call", ["read_delta", "read_changes", "read_iceberg", "write_iceberg", "merge_into"])
def test_keys_that_a_store_refuses_are_not_shown(env, stores, options, call):
    rows, each = env.from_arrow(ROWS), {"storage_options": options["theirs"]}
    calls = {
        "read_delta": lambda: env.read_delta("s3://theirs/none", **each),
        "read_changes": lambda: env.read_changes("s3://theirs/none", **each),
        "read_iceberg": lambda: env.read_iceberg("db.none", "s3://theirs/none", **each),
        "write_iceberg": lambda: rows.write_iceberg("db.none", "s3://theirs/none", **each),
        "merge_into": lambda: rows.merge_into(delta("s3://theirs/none", **each), on="id"),
    }
    with stores["theirs"].checked_keys(), pytest.raises(EngineError) as caught:
        calls[call]()
    assert "hush-of" not in str(caught.value) + repr(caught.value.__cause__) + repr(caught.value.__context__)
    assert "none" in str(caught.value)


def test_changes_are_read_by_options_of_their_own(env, options):
    table = DeltaCalls(env, "ours", options["ours"])
    table.place = "s3://ours/changed"
    table.write(ROWS)
    env.from_arrow(CHANGES).merge_into(table.target, on="id")
    with Environment() as other:
        kinds = other.read_changes(table.place, since=1, storage_options=options["ours"])
        found = sorted(kinds.to_arrow().column("_change_type").to_pylist())
    assert found == ["insert", "update_postimage", "update_preimage"]


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["folder", "object"])
def test_catalogs_are_attached_by_options_of_their_own(env, options, tmp_path, kind):
    for name, each in options.items():
        catalog = catalog_of(kind, name, tmp_path)
        env.from_arrow(ROWS).write_iceberg(f"db.{kind}", catalog, storage_options=each)
        env.execute()
    with Environment({"parallelism.default": "2"}) as other:
        for name, each in options.items():
            other.attach(name, _catalog_again(kind, name, tmp_path), storage_options=each)
        other.sql(f"UPDATE theirs.db.{kind} SET id = id + 10 WHERE id > 1")
        other.sql(f"DELETE FROM ours.db.{kind} WHERE id = 2")
        joined = other.sql(f"SELECT id FROM ours.db.{kind} UNION ALL SELECT id FROM theirs.db.{kind}")
        assert ids(joined) == [1, 1, 3, 12, 13]


def _catalog_again(kind, bucket, folder):
    if kind == "folder":
        return f"s3://{bucket}/lake"
    return SqlCatalog(bucket, uri=f"sqlite:///{folder}/{bucket}.db", warehouse=f"s3://{bucket}/{kind}")


@pytest.mark.thorough
def test_a_metadata_file_and_a_table_object_are_read_by_options(env, options, tmp_path):
    each = options["ours"]
    env.from_arrow(ROWS).write_iceberg("db.once", "s3://ours/alone", storage_options=each)
    env.execute()
    with Environment() as other:
        assert ids(other.read_iceberg("s3://ours/alone/db/once", storage_options=each)) == [1, 2, 3]
        place = "s3://ours/alone/db/once/metadata/v1.metadata.json"
        assert ids(other.read_iceberg(place, storage_options=each)) == [1, 2, 3]
        catalog = catalog_of("object", "ours", tmp_path)
        env.from_arrow(ROWS).write_iceberg("db.table", catalog, storage_options=each)
        env.execute()
        own = {"s3.endpoint": each["endpoint_url"], "s3.access-key-id": "a", "s3.secret-access-key": "b"}
        loaded = SqlCatalog("ours", uri=f"sqlite:///{tmp_path}/ours.db", warehouse="s3://ours/object", **own)
        assert ids(other.read_iceberg(loaded.load_table("db.table"), storage_options=each)) == [1, 2, 3]


def test_options_for_a_table_that_is_in_no_store_are_an_error(env, tmp_path):
    with pytest.raises(PlanError, match=r"write_delta: storage_options= is for paths"):
        env.from_arrow(ROWS).write_delta(f"{tmp_path}/t", storage_options={"region": "x"})
    (tmp_path / "lake" / "db").mkdir(parents=True)
    with pytest.raises(PlanError, match=r"write_iceberg: storage_options= is for paths"):
        env.from_arrow(ROWS).write_iceberg("db.t", f"{tmp_path}/lake", storage_options={"region": "x"})
    env.from_arrow(ROWS).write_delta(f"{tmp_path}/t")
    env.execute()
    for call in (
        lambda: env.read_changes(f"{tmp_path}/t", storage_options={"region": "x"}),
        lambda: env.optimize(delta(f"{tmp_path}/t", storage_options={"region": "x"})),
        lambda: env.from_arrow(ROWS).merge_into(delta(f"{tmp_path}/t", storage_options={"region": "x"}), on="id"),
    ):
        with pytest.raises(PlanError, match="storage_options= is for paths"):
            call()


def test_options_are_in_no_pickle_and_no_text():
    given = GivenOptions({"secret_access_key": "hush"})
    assert "hush" not in repr(given) + str(delta("s3://b/t", {"secret_access_key": "hush"}))
    with pytest.raises(PlanError, match="stay in the process"):
        pickle.dumps(given)


def test_records_take_a_mode_and_no_second_manifest(env, options):
    place, each = "s3://ours/records", options["ours"]
    for mode in ("error", "overwrite"):
        env.from_arrow(ROWS).write_records(place, mode=mode, storage_options=each)
        env.execute()
    assert ids(env.read_records(place, storage_options=each)) == [1, 2, 3]
    with pytest.raises(PlanError, match="exists"):
        env.from_arrow(ROWS).write_records(place, mode="error", storage_options=each)
        env.execute()
    with pytest.raises(ConfigurationError, match=r"mode='append': one manifest is of all parts"):
        env.from_arrow(ROWS).write_records(place, mode="append", storage_options=each)
    with pytest.raises(ConfigurationError, match="choose one of error"):
        env.from_arrow(ROWS).write_records(place, mode="merge", storage_options=each)
