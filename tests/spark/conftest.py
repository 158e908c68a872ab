"""One session of Spark for all tests of a process: each new one takes seconds until its first rows are there."""

import os
import shutil

import pytest

from engine.spark.session import open_session


@pytest.fixture(scope="session")
def spark():
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        pytest.skip("no Java; bin/run-tests provides one")
    session = open_session("tests")
    session.conf.set("spark.sql.shuffle.partitions", "4")
    yield session
    session.stop()
