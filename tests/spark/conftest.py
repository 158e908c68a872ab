"""One session of Spark for all tests of a process: each new one takes seconds until its first rows are there."""

import shutil

import pytest

from engine.spark import export as spark_export


@pytest.fixture(scope="session")
def spark():
    if shutil.which("java") is None and not spark_export.os.environ.get("JAVA_HOME"):
        pytest.skip("no Java; bin/run-tests provides one")
    session = spark_export.start_spark("tests")
    session.conf.set("spark.sql.shuffle.partitions", "4")
    yield session
    session.stop()
