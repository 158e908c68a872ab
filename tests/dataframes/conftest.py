"""The session of Spark of tests/spark, and a pair of environments: embedded, and on Spark."""

import pytest

from engine import Environment
from tests.spark.conftest import spark  # noqa: F401 - a fixture

SETTINGS = {"parallelism.default": 2, "taskmanager.memory.process.size": "512mb"}


@pytest.fixture
def places(spark):  # noqa: F811
    """Environments that must give the same rows: (embedded, on Spark)."""
    with Environment(config=SETTINGS) as local, Environment(config=SETTINGS, target="spark") as on_spark:
        yield local, on_spark
