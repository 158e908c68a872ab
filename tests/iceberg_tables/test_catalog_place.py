"""A catalog as data that travels: no secret is in it, and a process without them says what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from engine import Environment
from engine.config.loader import Configuration
from engine.errors import ConfigurationError
from engine.files.store_access import GivenOptions, StoreAccess
from engine.iceberg_tables import catalog_place
from engine.iceberg_tables.catalog_place import described, opened

STORES = StoreAccess(Configuration(), GivenOptions(), "write_iceberg")


def _properties(tmp_path: Path, **more: str) -> dict[str, str]:
    return {
        "name": "lake",
        "type": "sql",
        "uri": f"sqlite:///{tmp_path}/lake.db",
        "warehouse": f"file://{tmp_path}",
        **more,
    }


def test_secrets_stay_in_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = {"s3.secret-access-key": "hush-1", "token": "hush-2", "credential": "id:hush-3"}
    place, found = described(_properties(tmp_path, **secret), STORES)
    text = msgspec.json.encode(place).decode()
    assert "hush" not in text
    assert "lake.db" in text
    assert opened(place, "write_iceberg") is found
    found.close()
    monkeypatch.setattr(catalog_place, "_opened", {})
    with pytest.raises(ConfigurationError, match=r"secrets of the catalog 'lake' stay .* PYICEBERG_CATALOG__LAKE__"):
        opened(place, "write_iceberg")


def test_a_password_in_a_uri_is_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    class Catalog:
        name = "lake"
        properties = {"uri": "postgresql://me:hush@host/db"}  # noqa: RUF012

        def load_table(self, name: str) -> Any:
            """Look like a catalog."""

    place, _ = described(Catalog(), STORES)
    assert place.properties == {"uri": "postgresql://me@host/db"}
    assert place.is_of_process


def test_properties_without_secrets_open_the_catalog_in_another_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, first = described(_properties(tmp_path), STORES)
    first.create_namespace("db")
    first.close()
    monkeypatch.setattr(catalog_place, "_opened", {})
    again = opened(place, "write_iceberg")
    assert isinstance(again, SqlCatalog)
    assert again.namespace_exists("db")
    again.close()


def test_a_catalog_that_cannot_be_opened_is_told(env: Environment) -> None:
    for catalog in ({"type": "nope"}, {"name": "x"}, "no_such_catalog"):
        with pytest.raises(ConfigurationError, match="the catalog cannot be opened"):
            env.read_iceberg("db.t", catalog)
        with pytest.raises(ConfigurationError, match="the catalog cannot be opened"):
            env.from_arrow(pa.table({"x": [1]})).write_iceberg("db.t", catalog)
