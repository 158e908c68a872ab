"""One session of Spark for all tests of a process: each new one takes seconds until its first rows are there."""

import os
import shutil

import pytest

from engine.spark import export as spark_export

#: little runs long enough for the second compiler of the JVM, which takes most of its time in short runs
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


@pytest.fixture(scope="session")
def spark():
    if shutil.which("java") is None and not spark_export.os.environ.get("JAVA_HOME"):
        pytest.skip("no Java; bin/run-tests provides one")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JDK_JAVA_OPTIONS", os.environ.get("JDK_JAVA_OPTIONS", JAVA_OPTIONS))
        session = spark_export.start_spark("tests")
    session.conf.set("spark.sql.shuffle.partitions", "4")
    yield session
    session.stop()
