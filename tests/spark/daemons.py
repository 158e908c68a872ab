"""Processes of Spark that stand beside a test: masters, workers, servers of Spark Connect."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pyspark

SPARK = Path(pyspark.__file__).parent
ROOT = Path(__file__).parents[2]


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def wait_for(log, pattern):
    deadline = time.monotonic() + 90
    while not re.search(pattern, log.read_text() if log.exists() else ""):
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.1)


def environment_of_spark():
    return os.environ | {
        "SPARK_HOME": str(SPARK),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT),
    }


@contextlib.contextmanager
def daemon(log, *command):
    with log.open("w") as said:
        process = subprocess.Popen(
            command, stdout=said, stderr=said, env=environment_of_spark(), cwd=log.parent, start_new_session=True
        )
        try:
            yield
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextlib.contextmanager
def connect_server(folder):
    """The URL of a server of Spark Connect, in a process of its own."""
    log, port = folder / "connect.log", free_port()
    settings = {"spark.connect.grpc.binding.port": port, "spark.ui.enabled": "false"}
    words = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    server = "org.apache.spark.sql.connect.service.SparkConnectServer"
    submit = [str(SPARK / "bin" / "spark-submit"), "--master", "local[2]", "--class", server]
    with daemon(log, *submit, *words, "spark-internal"):
        wait_for(log, "Spark Connect server started at")
        yield f"sc://127.0.0.1:{port}"
