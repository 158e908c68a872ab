"""Spark's Python workers begin with the engine: what forks them has loaded it, and no thread of its own runs there."""

import sys

import pytest

from engine.targets.spark_daemon import LOADED

NAMES = LOADED  # travels with the function
pytestmark = pytest.mark.spark


def loaded(batches):
    """Say what a worker has before anything of ours is imported by name."""
    import pyarrow as pa

    for _ in batches:
        yield pa.record_batch({"n": [sum(name in sys.modules for name in NAMES)]})


def test_workers_have_the_engine_loaded(spark):
    loaded.__module__ = "__main__"  # by value: the name of this module would import others
    assert spark.range(1).mapInArrow(loaded, "n BIGINT").collect()[0].n == len(LOADED)


def test_a_session_of_another_master_keeps_its_own_daemon(monkeypatch):
    from engine.spark import session

    asked = {}
    builder = type("Builder", (), {"getOrCreate": lambda self: None})()
    builder.appName = builder.master = lambda _: builder
    builder.config = lambda key, value: asked.update({key: value}) or builder
    monkeypatch.setattr(session.SparkSession, "builder", builder)
    session.start_spark("x", "spark://elsewhere:7077")
    assert "spark.python.daemon.module" not in asked
    session.start_spark("x", "local[2]")
    assert asked["spark.python.daemon.module"] == "engine.targets.spark_daemon"
