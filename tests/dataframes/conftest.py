"""The session of Spark of tests/spark, and a pair of environments: embedded, and on Spark."""

import contextlib

import pytest

from engine import Environment
from tests.spark.conftest import spark  # noqa: F401 - a fixture

SETTINGS = {"parallelism.default": 2, "taskmanager.memory.process.size": "512mb"}


@pytest.fixture
def places(spark):  # noqa: F811
    """Environments that must give the same rows: (embedded, on Spark)."""
    with Environment(config=SETTINGS) as local, Environment(config=SETTINGS, target="spark") as on_spark:
        yield local, on_spark


@contextlib.contextmanager
def set_for(session, settings):
    """Have a session of Spark follow settings for a while."""
    before = {key: session.conf.get(key, None) for key in settings}
    for key, value in settings.items():
        session.conf.set(key, value)
    try:
        yield
    finally:
        for key, former in before.items():
            if former is None:
                session.conf.unset(key)
            else:
                session.conf.set(key, former)
