"""A catalog in a SQLite file, and an environment that reads and writes its tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.utils.concurrent import ExecutorFactory

from engine import Environment
from engine.minicluster.mini_cluster import close_mini_clusters
from tests.integration.conftest import nothing_is_left_by_the_module

__all__ = ["nothing_is_left_by_the_module"]


@pytest.fixture(autouse=True)
def nothing_is_left_behind() -> Iterator[None]:
    """Clusters live as long as a module here, whose own check comes at its end; pyiceberg's threads go at once."""
    yield
    ExecutorFactory.get_or_create().shutdown()
    ExecutorFactory._instance = None


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Any]:
    """Return a catalog with the namespace db."""
    found = SqlCatalog("default", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}/warehouse")
    found.create_namespace("db")
    yield found
    found.close()


@pytest.fixture(scope="module")
def env(nothing_is_left_by_the_module: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Environment]:
    """Return an environment for all tests of a module."""
    spill = tmp_path_factory.mktemp("spill")
    with Environment(config={"parallelism.default": 2, "io.tmp.dirs": str(spill)}) as found:
        yield found
    close_mini_clusters()
