"""A folder as a catalog: tables that pyiceberg, Polars and DuckDB find by its hint, one writer for each version."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.exceptions import CommitFailedException, NoSuchNamespaceError, NoSuchTableError, TableAlreadyExistsError
from pyiceberg.table import StaticTable

from engine import Environment
from engine.errors import PlanError
from engine.iceberg_tables.folder_catalog import FolderCatalog

_ROWS = pa.table({"id": [1, 2]})


def test_tables_are_written_and_read_through_a_folder(env: Environment, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    with pytest.raises(PlanError, match=f"no namespace 'sales'; make it: it is the folder '{lake}/sales'"):
        env.from_arrow(_ROWS).write_iceberg("sales.orders", str(lake))
    (lake / "sales").mkdir(parents=True)
    env.from_arrow(_ROWS).write_iceberg("sales.orders", str(lake), partition_by="bucket(2, id)")
    env.execute()
    env.from_arrow(_ROWS).write_iceberg("sales.orders", str(lake), mode="append")
    env.execute()
    assert (lake / "sales/orders/metadata/version-hint.text").read_text() == "2"
    assert env.read_iceberg("sales.orders", str(lake)).count() == 4
    assert env.read_iceberg(lake / "sales" / "orders").count() == 4
    assert env.read_iceberg(lake / "sales/orders/metadata/v1.metadata.json").count() == 2
    assert StaticTable.from_metadata(str(lake / "sales" / "orders")).scan().to_arrow().num_rows == 4
    with pytest.raises(PlanError, match="no such table in the catalog"):
        env.read_iceberg("sales.other", str(lake))


def test_a_version_is_made_by_one_writer(tmp_path: Path) -> None:
    catalog = FolderCatalog(str(tmp_path))
    catalog.create_namespace("db")
    catalog.create_table("db.t", schema=_ROWS.schema)
    with pytest.raises(TableAlreadyExistsError):
        catalog.create_table("db.t", schema=_ROWS.schema)
    catalog.load_table("db.t").append(_ROWS)
    present = catalog.load_table("db.t")
    catalog._write_version(present.location(), 3, present.metadata, CommitFailedException)
    with pytest.raises(CommitFailedException, match=r"version 3 of \S+ was committed by another writer"):
        catalog._write_version(present.location(), 3, present.metadata, CommitFailedException)


def test_namespaces_and_tables_are_folders(tmp_path: Path) -> None:
    catalog = FolderCatalog(str(tmp_path))
    catalog.create_namespace("a")
    catalog.create_namespace(("a", "b"))
    catalog.create_table("a.t", schema=_ROWS.schema)
    assert (catalog.list_namespaces(), catalog.list_namespaces("a")) == ([("a",)], [("a", "b")])
    assert catalog.list_tables("a") == [("a", "t")]
    catalog.drop_table("a.t")
    with pytest.raises(NoSuchTableError):
        catalog.load_table("a.t")
    with pytest.raises(NoSuchNamespaceError):
        catalog.list_tables("nope")
    with pytest.raises(ValueError, match="no name of a namespace and a table"):
        catalog.load_table("../etc.passwd/x")
