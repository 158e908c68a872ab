"""Catalogs, schemas and tables by the filters that clients send; columns of keys; types."""

import pyarrow as pa
import pytest

from engine import Environment
from engine.flight_sql.catalog import answer, is_of_catalog, schema_of
from engine.flight_sql.messages import packed, unpacked
from engine.flight_sql.sql_info import sql_info, type_info


@pytest.fixture(scope="module")
def env():
    with Environment() as environment:
        data = environment.from_arrow(pa.table({"n": [1], "s": ["a"]}))
        for name in ("orders", "order_items", "a%b"):
            environment.register(name, data)
        environment.register("seen", data.select("n"))
        yield environment


def asked(env, command, **fields):
    name, message = unpacked(packed(command, **fields))
    assert is_of_catalog(name)
    table = answer(name, message, env, is_read_only=False)
    assert table.schema.equals(schema_of(name, message))
    return table


def names(env, **fields):
    return asked(env, "CommandGetTables", **fields)["table_name"].to_pylist()


def test_tables_are_found_by_patterns_and_kinds(env):
    assert names(env) == ["a%b", "order_items", "orders", "seen"]
    assert names(env, table_name_filter_pattern="order%") == ["order_items", "orders"]
    assert names(env, table_name_filter_pattern="order_") == ["orders"]
    assert names(env, table_name_filter_pattern="order\\_items") == ["order_items"]
    assert names(env, table_name_filter_pattern="a\\%b") == ["a%b"]
    assert names(env, table_name_filter_pattern="ORDERS") == []
    assert names(env, table_types=["VIEW"]) == ["seen"]
    assert names(env, catalog="drey", db_schema_filter_pattern="ma%") == names(env)
    assert names(env, catalog="") == names(env, db_schema_filter_pattern="other") == []
    table = asked(env, "CommandGetTables", table_name_filter_pattern="seen", include_schema=True)
    assert pa.ipc.read_schema(pa.py_buffer(table["table_schema"][0].as_py())) == pa.schema([("n", pa.int64())])


def test_catalogs_and_schemas(env):
    assert asked(env, "CommandGetCatalogs").to_pylist() == [{"catalog_name": "drey"}]
    main = [{"catalog_name": "drey", "db_schema_name": "main"}]
    assert asked(env, "CommandGetDbSchemas").to_pylist() == main
    assert asked(env, "CommandGetDbSchemas", catalog="other").num_rows == 0
    assert asked(env, "CommandGetTableTypes")["table_type"].to_pylist() == ["TABLE", "VIEW"]


@pytest.mark.parametrize("kind", ["PrimaryKeys", "ExportedKeys", "ImportedKeys"])
def test_there_are_no_keys(env, kind):
    assert asked(env, f"CommandGet{kind}", table="orders").num_rows == 0


def test_there_are_no_keys_between_tables(env):
    assert asked(env, "CommandGetCrossReference", pk_table="orders", fk_table="seen").num_rows == 0


def test_tables_of_attached_catalogs_have_their_own_names(tmp_path):
    pytest.importorskip("pyiceberg")
    with Environment() as env:
        (tmp_path / "lake" / "sales").mkdir(parents=True)
        env.attach("lake", str(tmp_path / "lake"))
        env.from_arrow(pa.table({"n": [1]})).write_iceberg("sales.orders", str(tmp_path / "lake"))
        env.execute()
        assert asked(env, "CommandGetCatalogs")["catalog_name"].to_pylist() == ["drey", "lake"]
        rows = asked(env, "CommandGetTables", catalog="lake", include_schema=True).to_pylist()
        assert [(row["db_schema_name"], row["table_name"], row["table_type"]) for row in rows] == [
            ("sales", "orders", "TABLE")
        ]
        assert asked(env, "CommandGetDbSchemas", catalog="lake")["db_schema_name"].to_pylist() == ["sales"]


def test_what_the_server_says_of_itself():
    known = {row["info_name"]: row["value"] for row in sql_info([], is_read_only=True).to_pylist()}
    assert (known[0], known[3], known[8], known[504]) == ("Drey", True, 0, '"')
    assert sql_info([8, 0, 9999], is_read_only=False)["info_name"].to_pylist() == [8, 0]
    assert sql_info([3], is_read_only=False).to_pylist() == [{"info_name": 3, "value": False}]


def test_types_are_in_the_order_of_their_numbers():
    table = type_info(None)
    assert table["data_type"].to_pylist() == sorted(table["data_type"].to_pylist())
    assert type_info(3)["create_params"].to_pylist() == [["precision", "scale"]]
    assert type_info(12345).num_rows == 0
