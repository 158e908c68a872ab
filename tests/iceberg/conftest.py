"""A catalog in a SQLite file, and an environment that reads its tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.utils.concurrent import ExecutorFactory

from engine import Environment


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Any]:
    """Return a catalog with the namespace db."""
    found = SqlCatalog("default", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}/warehouse")
    found.create_namespace("db")
    yield found
    found.close()
    # pyiceberg keeps its threads for the next call.
    ExecutorFactory.get_or_create().shutdown()
    ExecutorFactory._instance = None


@pytest.fixture(scope="module")
def env() -> Iterator[Environment]:
    """Return an environment for all tests of a module."""
    with Environment(config={"parallelism.default": 2}) as found:
        yield found
